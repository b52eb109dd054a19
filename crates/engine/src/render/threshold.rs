//! Comparisons of rows with a scalar: when a join is one, and its steps.
//!
//! A join without a key, on one comparison of a value of the left row with a column of the right,
//! whose right side is an aggregate of everything and shows nothing, is no join:
//! [`anabranch_operators::relational::threshold`] keeps the rows in order of the value, and a
//! change of the scalar costs the rows between.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use anabranch_batch::numeric;
use anabranch_operators::relational::threshold::{Comparison, is_comparable};
use anabranch_plan::bounds::{self, LeavingState, side_of, unqualified};
use anabranch_plan::rewrite::TO_NUMERIC;
use anabranch_plan::{JoinKind, Node, Plan};
use anabranch_sql::at_scale::{ceiling_at, floor_at};
use arrow::datatypes::{DECIMAL128_MAX_PRECISION, DataType, Field, Fields};
use datafusion_common::DFSchema;
use datafusion_expr::{BinaryExpr, Expr, ExprSchemable, Operator};

use super::expression::Compiled;
use super::join::Binding;
use super::physical::{Step, StepId};
use super::prepare::Preparer;
use super::specs::types_of;
use crate::cluster::promised::Reading;
use crate::cluster::spec::LimitStep;
use crate::error::Error;

/// A comparison of a left value with a right one.
struct Compared {
    value: Expr,
    scalar: Expr,
    comparison: Comparison,
}

impl Preparer<'_> {
    /// The steps of a join that compares with a scalar; `None` if the join does something else.
    /// `filter` and `project` are over the join's columns, left ones first.
    pub(super) fn threshold(
        &mut self,
        plan: &Plan,
        filter: &[Compiled],
        project: &[Compiled],
    ) -> Result<Option<StepId>, Error> {
        let Node::Join { left, right, kind: JoinKind::Inner, left_key, residual: Some(residual), .. } = &plan.node
        else {
            return Ok(None);
        };
        let used: BTreeSet<usize> = filter.iter().chain(project).flat_map(Compiled::columns).collect();
        let shows_left_only = used.iter().all(|column| *column < left.schema.fields().len());
        if !left_key.is_empty() || !shows_left_only || !is_scalar(right) || self.n_loops() > 0 {
            return Ok(None);
        }
        let Some(compared) = compared(residual, left, right) else { return Ok(None) };
        let used: Vec<usize> = used.into_iter().collect();
        let shown = used.iter().map(|at| Expr::Column(left.schema.field(*at).name().as_str().into()));
        let values = std::iter::once(compared.value).chain(shown).collect();
        let rows = self.stream(&computed(left, values)?)?;
        let scalars = self.stream(&computed(right, vec![compared.scalar])?)?;
        let limits = self.waiting(plan);
        let input = self.push(Step::Threshold { rows, scalars, comparison: compared.comparison, limits });
        let bind = Binding::new(&used, &types_of(&left.schema));
        let stage = bind.stage(filter, project);
        Ok(Some(self.push(Step::Stage { input, stage })))
    }
}

impl Preparer<'_> {
    /// What no longer waits: rows that a watermark has let out. (Rows have the value in front.)
    fn waiting(&self, plan: &Plan) -> Vec<LimitStep> {
        let LeavingState::Waiting(below) = bounds::state(plan, &Reading(self.reads)) else { return vec![] };
        vec![LimitStep { input: 0, column: 0, below }]
    }
}

/// An aggregate of everything: one row, always.
fn is_scalar(plan: &Plan) -> bool {
    match &plan.node {
        Node::Stage { input, filter, .. } => filter.is_empty() && is_scalar(input),
        Node::Aggregate { keys, .. } => keys.is_empty(),
        _ => false,
    }
}

/// The comparison that a residual is, its sides' columns without qualifiers.
fn compared(residual: &Expr, left: &Plan, right: &Plan) -> Option<Compared> {
    let Expr::BinaryExpr(BinaryExpr { left: first, op, right: second }) = residual else {
        return None;
    };
    // (There is one scalar, so a value is computed once a row either way, and fails for the same
    // rows.)
    let (value, op, scalar) = match (side_of(first)?, side_of(second)?) {
        (0, 1) => (first, *op, second),
        (1, 0) => (second, op.swap()?, first),
        _ => return None,
    };
    let comparison = match op {
        Operator::Gt => Comparison::Greater,
        Operator::GtEq => Comparison::GreaterOrEqual,
        Operator::Lt => Comparison::Less,
        Operator::LtEq => Comparison::LessOrEqual,
        _ => return None,
    };
    let (value, scalar) = as_decimals(unqualified(value), unqualified(scalar), comparison, left, right);
    let data_type = value.get_type(left.schema.as_ref()).ok()?;
    let same = scalar.get_type(right.schema.as_ref()).is_ok_and(|other| alike(&data_type, &other));
    (same && is_comparable(&data_type)).then_some(Compared { value, scalar, comparison })
}

/// Decimals beside a plain numeric: compared with the nearest decimal of their scale, which no
/// value lies between. (`v > x` is `v > floor(x)`.)
fn as_decimals(value: Expr, scalar: Expr, comparison: Comparison, left: &Plan, right: &Plan) -> (Expr, Expr) {
    let decimal = match &value {
        Expr::ScalarFunction(call) if call.func.name() == TO_NUMERIC => call.args[0].clone(),
        _ => return (value, scalar),
    };
    let is_plain = scalar.get_type(right.schema.as_ref()).is_ok_and(|is| is == numeric::TYPE);
    // (The widest decimals have no other beyond them for a scalar that is.)
    match decimal.get_type(left.schema.as_ref()) {
        Ok(DataType::Decimal128(..DECIMAL128_MAX_PRECISION, scale)) if is_plain => {
            let nearest = match comparison {
                Comparison::Greater | Comparison::LessOrEqual => floor_at(scalar, scale),
                Comparison::GreaterOrEqual | Comparison::Less => ceiling_at(scalar, scale),
            };
            (decimal, nearest)
        }
        _ => (value, scalar),
    }
}

/// Whether values of the two types compare as their numbers do.
fn alike(a: &DataType, b: &DataType) -> bool {
    match (a, b) {
        (DataType::Decimal128(_, s), DataType::Decimal128(_, t)) => s == t,
        _ => a == b,
    }
}

/// A stage that computes columns.
fn computed(input: &Arc<Plan>, project: Vec<Expr>) -> Result<Arc<Plan>, Error> {
    let internal = |error| Error::internal(format!("a comparison has no type: {error}"));
    let mut fields = Vec::with_capacity(project.len());
    for (n, expr) in project.iter().enumerate() {
        let data_type = expr.get_type(input.schema.as_ref()).map_err(internal)?;
        fields.push(Field::new(format!("{n}"), data_type, true));
    }
    let schema = DFSchema::from_unqualified_fields(Fields::from(fields), HashMap::new()).map_err(internal)?;
    let node = Node::Stage { input: Arc::clone(input), filter: vec![], project };
    Ok(Arc::new(Plan { node, schema: Arc::new(schema) }))
}
