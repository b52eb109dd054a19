//! Sums and casts of dates and timestamps, computed as PostgreSQL does: what is infinite stays so,
//! and the calendar reaches as far as the type.
//!
//! Law: where the planner's form has a value of finite moments, this one has the same. Cost: one
//! pass, without the planner's dates of each row's time.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use anabranch_sql::moments::{MomentShift, cast_moments, casts_moments, move_moments, moves_moments};
use arrow::array::RecordBatch;
use arrow::datatypes::{DataType, FieldRef, Schema};
use datafusion_common::{DataFusionError, ScalarValue};
use datafusion_expr::{ColumnarValue, Operator};
use datafusion_physical_expr::PhysicalExpr;
use datafusion_physical_expr::expressions::{BinaryExpr, CastExpr};

/// What is computed of the operands.
#[derive(Clone, Debug)]
enum Verb {
    /// The first moved by the second.
    Move(MomentShift),
    /// The second moved by the first.
    MoveSecond,
    Cast(DataType),
}

/// A computation over moments.
#[derive(Debug)]
pub(super) struct Moments {
    verb: Verb,
    /// The planner's form: its type, its text, its equality.
    general: Arc<dyn PhysicalExpr>,
}

impl Moments {
    /// The sum or difference, if it is of a moment and an interval.
    pub(super) fn of_sum(sum: &BinaryExpr, input: &Schema) -> Option<Moments> {
        let (left, right) = (sum.left().data_type(input).ok()?, sum.right().data_type(input).ok()?);
        let verb = match sum.op() {
            Operator::Plus if moves_moments(&left, &right) => Verb::Move(MomentShift::Later),
            Operator::Plus if moves_moments(&right, &left) => Verb::MoveSecond,
            Operator::Minus if moves_moments(&left, &right) => Verb::Move(MomentShift::Earlier),
            _ => return None,
        };
        Some(Moments { verb, general: Arc::new(sum.clone()) })
    }

    /// The cast, if it is of moments to moments.
    pub(super) fn of_cast(cast: &CastExpr, input: &Schema) -> Option<Moments> {
        let from = cast.expr().data_type(input).ok()?;
        let verb = Verb::Cast(cast.cast_type().clone());
        casts_moments(&from, cast.cast_type()).then(|| Moments { verb, general: Arc::new(cast.clone()) })
    }
}

impl PartialEq for Moments {
    fn eq(&self, other: &Moments) -> bool {
        self.general.eq(&other.general)
    }
}

impl Eq for Moments {}

impl Hash for Moments {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.general.hash(state);
    }
}

impl fmt::Display for Moments {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.general.fmt(f)
    }
}

impl PhysicalExpr for Moments {
    fn data_type(&self, input: &Schema) -> Result<DataType, DataFusionError> {
        self.general.data_type(input)
    }

    fn nullable(&self, _input: &Schema) -> Result<bool, DataFusionError> {
        Ok(true)
    }

    fn return_field(&self, input: &Schema) -> Result<FieldRef, DataFusionError> {
        self.general.return_field(input)
    }

    fn evaluate(&self, batch: &RecordBatch) -> Result<ColumnarValue, DataFusionError> {
        let operands: Vec<ColumnarValue> =
            self.general.children().into_iter().map(|child| child.evaluate(batch)).collect::<Result<_, _>>()?;
        // (Constants are computed once.)
        let is_constant = operands.iter().all(|operand| matches!(operand, ColumnarValue::Scalar(_)));
        let rows = if is_constant { 1 } else { batch.num_rows() };
        let columns = operands.iter().map(|operand| operand.to_array(rows)).collect::<Result<Vec<_>, _>>()?;
        let computed = match (&self.verb, columns.as_slice()) {
            (Verb::Move(way), [moments, intervals]) => move_moments(moments, intervals, *way),
            (Verb::MoveSecond, [intervals, moments]) => move_moments(moments, intervals, MomentShift::Later),
            (Verb::Cast(to), [moments]) if let Some(cast) = cast_moments(moments, to) => cast,
            _ => return self.general.evaluate(batch),
        }?;
        Ok(match is_constant {
            true => ColumnarValue::Scalar(ScalarValue::try_from_array(&computed, 0)?),
            false => ColumnarValue::Array(computed),
        })
    }

    fn children(&self) -> Vec<&Arc<dyn PhysicalExpr>> {
        self.general.children()
    }

    fn with_new_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn PhysicalExpr>>,
    ) -> Result<Arc<dyn PhysicalExpr>, DataFusionError> {
        let general = Arc::clone(&self.general).with_new_children(children)?;
        Ok(Arc::new(Moments { verb: self.verb.clone(), general }))
    }

    fn fmt_sql(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.general.fmt_sql(f)
    }
}
