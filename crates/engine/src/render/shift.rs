//! A time and a constant interval of fixed length, added as whole numbers.
//!
//! Law: the value of each row is that of the general form. Times near the ends of what the calendar
//! holds are left to the general form, errors included.
//!
//! Cost: one addition a row. The general form makes a date of each row's time, some 20 ns.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, RecordBatch};
use arrow::datatypes::{DataType, FieldRef, Schema, TimeUnit, TimestampMicrosecondType};
use datafusion_common::{DataFusionError, ScalarValue};
use datafusion_expr::{ColumnarValue, Operator};
use datafusion_physical_expr::PhysicalExpr;
use datafusion_physical_expr::expressions::{BinaryExpr, Literal};

use super::moments::Moments;

/// Microseconds from the epoch that the calendar of the general form holds on both sides, and more
/// than it needs: the year 255,000.
const MICROS_MAX: u64 = 8_000_000_000_000_000_000;

/// A time of microseconds, and microseconds to be added.
#[derive(Debug)]
pub(super) struct Shift {
    time: Arc<dyn PhysicalExpr>,
    micros: i64,
    general: Arc<dyn PhysicalExpr>,
}

impl Shift {
    /// The sum, or difference, if it is of a time and a constant of fixed length.
    pub(super) fn of(sum: &BinaryExpr, input: &Schema) -> Option<Shift> {
        let DataType::Timestamp(TimeUnit::Microsecond, zone) = sum.left().data_type(input).ok()? else { return None };
        let ScalarValue::IntervalMonthDayNano(Some(span)) = sum.right().downcast_ref::<Literal>()?.value() else {
            return None;
        };
        // (A day of a zone may have 23 hours.)
        let has_days = span.days != 0 && zone.is_some();
        if span.months != 0 || span.nanoseconds % 1_000 != 0 || has_days {
            return None;
        }
        let micros = i64::from(span.days) * 86_400_000_000 + span.nanoseconds / 1_000;
        let micros = match sum.op() {
            Operator::Plus => micros,
            Operator::Minus => -micros,
            _ => return None,
        };
        Some(Shift { time: Arc::clone(sum.left()), micros, general: Arc::new(Moments::of_sum(sum, input)?) })
    }

    /// The times, if all are well inside of the calendar.
    fn shifted(&self, times: &ArrayRef) -> Option<ArrayRef> {
        let times = times.as_primitive_opt::<TimestampMicrosecondType>()?;
        let mut farthest = self.micros.unsigned_abs();
        for time in times.values() {
            farthest = farthest.max(time.unsigned_abs());
        }
        let data_type = times.data_type().clone();
        let fits = farthest.checked_add(self.micros.unsigned_abs()).is_some_and(|all| all < MICROS_MAX);
        // (What lies below a NULL is any number, so that only times that fit are added up.)
        fits.then(|| {
            let shifted = times.unary::<_, TimestampMicrosecondType>(|time| time + self.micros);
            Arc::new(shifted.with_data_type(data_type)) as ArrayRef
        })
    }
}

impl PartialEq for Shift {
    fn eq(&self, other: &Shift) -> bool {
        self.general.eq(&other.general)
    }
}

impl Eq for Shift {}

impl Hash for Shift {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.general.hash(state);
    }
}

impl fmt::Display for Shift {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.general.fmt(f)
    }
}

impl PhysicalExpr for Shift {
    fn data_type(&self, input: &Schema) -> Result<DataType, DataFusionError> {
        self.general.data_type(input)
    }

    fn nullable(&self, input: &Schema) -> Result<bool, DataFusionError> {
        self.general.nullable(input)
    }

    fn return_field(&self, input: &Schema) -> Result<FieldRef, DataFusionError> {
        self.general.return_field(input)
    }

    fn evaluate(&self, batch: &RecordBatch) -> Result<ColumnarValue, DataFusionError> {
        if let ColumnarValue::Array(times) = self.time.evaluate(batch)?
            && let Some(shifted) = self.shifted(&times)
        {
            return Ok(ColumnarValue::Array(shifted));
        }
        self.general.evaluate(batch)
    }

    fn children(&self) -> Vec<&Arc<dyn PhysicalExpr>> {
        self.general.children()
    }

    fn with_new_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn PhysicalExpr>>,
    ) -> Result<Arc<dyn PhysicalExpr>, DataFusionError> {
        let time = Arc::clone(&children[0]);
        let general = Arc::clone(&self.general).with_new_children(children)?;
        Ok(Arc::new(Shift { time, micros: self.micros, general }))
    }

    fn fmt_sql(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.general.fmt_sql(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::array::TimestampMicrosecondArray;
    use arrow::datatypes::{Field, IntervalMonthDayNano};
    use datafusion_physical_expr::expressions::col;

    fn check(times: Vec<Option<i64>>, op: Operator, span: IntervalMonthDayNano, is_fast: bool) {
        let of_time = DataType::Timestamp(TimeUnit::Microsecond, None);
        let schema = Arc::new(Schema::new(vec![Field::new("t", of_time, true)]));
        let literal: Arc<dyn PhysicalExpr> = Arc::new(Literal::new(ScalarValue::IntervalMonthDayNano(Some(span))));
        let sum = BinaryExpr::new(col("t", &schema).unwrap(), op, literal);
        let column: ArrayRef = Arc::new(TimestampMicrosecondArray::from(times));
        let batch = RecordBatch::try_new(Arc::clone(&schema), vec![column.clone()]).unwrap();
        let value = |value: Result<ColumnarValue, DataFusionError>| {
            value.and_then(|value| value.into_array(batch.num_rows())).map_err(|error| error.to_string())
        };
        let shift = Shift::of(&sum, &schema);
        assert_eq!(shift.as_ref().is_some_and(|shift| shift.shifted(&column).is_some()), is_fast);
        if let Some(shift) = shift {
            let general = Moments::of_sum(&sum, &schema).unwrap();
            assert_eq!(value(shift.evaluate(&batch)), value(general.evaluate(&batch)));
        }
    }

    #[test]
    fn times_are_shifted_as_by_the_calendar() {
        let span = |months, days, nanoseconds| IntervalMonthDayNano { months, days, nanoseconds };
        let times = || vec![Some(0), None, Some(-1), Some(1_704_067_200_000_001)];
        for op in [Operator::Plus, Operator::Minus] {
            check(times(), op, span(0, 0, 10_000_000_000), true);
            check(times(), op, span(0, 3, -5_000), true);
            check(times(), op, span(1, 0, 0), false);
            check(times(), op, span(0, 0, 1), false);
            check(vec![Some(i64::MAX), Some(0)], op, span(0, 1, 0), false);
            check(vec![Some(MICROS_MAX as i64 - 1), Some(0)], op, span(0, 1, 0), false);
        }
    }
}
