//! Joins within a band: keys that are equal, and two columns that are near each other.
//!
//! ```text
//! Join a.k = b.k where b.t between a.t - 2 and a.t + 2
//! =   Join a.k = b.k and stretch = stretch where b.t between a.t - 2 and a.t + 2
//!       Stage a, stretch_of(16, t)
//!       Unnest Stage b, stretches_of(16, -2, 2, t)
//! ```
//!
//! A *stretch* is one of the pieces of equal length that a column's values are cut into, some times
//! as long as the band is wide. Rows of one side have the stretch of their value. Rows of the other
//! side stand in each stretch that holds values within the band: one, or two.
//!
//! Law: the plan keeps its meaning. A pair within the band meets in one stretch, that of its
//! unrepeated row, once; the condition of the join is tested as before. An outer, semi or anti join
//! repeats rows of the side whose rows it does not keep. NULL is near nothing: it has no stretch.
//!
//! Cost: a row is looked up among the rows of its key and stretch, not among all rows of its key.
//! Some 5 of 4 rows of the repeated side are kept. Left as they are: joins with at most one row a
//! key, FULL joins, and questions that are asked once where an index by the key exists.
//!
//! Source: interval joins of Flink; the stretches are ours (decision 0137).

mod condition;
mod stretch;

use std::sync::Arc;

use arrow::datatypes::{DataType, Field};
use datafusion_expr::{Expr, ScalarUDF};

use super::build::{column, field, schema, width};
use super::facts::Facts;
use super::inputs::with_inputs;
use super::keys_once::is_served;
use super::region::is_unique;
use super::selectivity::selectivity;
use crate::ir::{JoinKind, Node, Plan};
use crate::positions::positions;
use condition::Band;

/// A stretch is so many times as long as the band is wide. Shorter ones would repeat more rows,
/// longer ones hold more rows that are not near.
const BANDS_A_STRETCH: i64 = 4;

/// The functions that the rewritten plans call.
pub fn functions() -> [Arc<ScalarUDF>; 2] {
    [stretch::stretch_of(), stretch::stretches_of()]
}

/// The plan with joins within a band that look only at what is near.
pub(super) fn banded(plan: &Arc<Plan>, facts: &Facts<'_>) -> Arc<Plan> {
    let plan = with_inputs(plan, |input| banded(input, facts));
    by_stretches(&plan, facts).unwrap_or(plan)
}

fn by_stretches(plan: &Plan, facts: &Facts<'_>) -> Option<Arc<Plan>> {
    let Node::Join { left, right, kind, left_key, right_key, nulls, residual: Some(condition), output } = &plan.node
    else {
        return None;
    };
    let is_right_repeated = match kind {
        JoinKind::Left | JoinKind::LeftSemi | JoinKind::LeftAnti | JoinKind::LeftMark => true,
        JoinKind::Right => false,
        JoinKind::Inner => selectivity(right) <= selectivity(left),
        JoinKind::Full | JoinKind::LeftAntiNullAware => return None,
    };
    if [(left, left_key), (right, right_key)].into_iter().any(|(side, key)| is_left_alone(side, key, facts)) {
        return None;
    }
    let band = Band::of(condition, left, right)?;
    let size = band.width()?.checked_mul(BANDS_A_STRETCH)?.max(1);
    let [left_place, right_place] = if is_right_repeated {
        // (A left value `l` is near `r` if it lies from `r + low` to `r + high`.)
        [stretched(left, size, &band.left), repeated(right, size, band.low..=band.high, &band.right)]
    } else {
        let reach = band.high.checked_neg()?..=band.low.checked_neg()?;
        [repeated(left, size, reach, &band.left), stretched(right, size, &band.right)]
    };
    let n_left = width(left);
    let with_stretch = |key: &[usize], side: &Plan| key.iter().copied().chain([width(side)]).collect();
    let node = Node::Join {
        left: left_place,
        right: right_place,
        kind: *kind,
        left_key: with_stretch(left_key, left),
        right_key: with_stretch(right_key, right),
        nulls: *nulls,
        residual: Some(condition.clone()),
        // (The left stretch stands before the right columns, and before a mark.)
        output: output.iter().map(|&at| if at < n_left { at } else { at + 1 }).collect(),
    };
    Some(Arc::new(Plan { node, schema: plan.schema.clone() }))
}

/// Whether a side has at most a row a key, or few rows, or is looked up in what exists.
fn is_left_alone(side: &Plan, key: &[usize], facts: &Facts<'_>) -> bool {
    matches!(side.node, Node::Constant { .. })
        || is_unique(side, key)
        || is_key(side, key, facts)
        || is_by_stretch(side, key)
        || (!facts.is_standing && is_served(side, key, facts.indexes))
}

/// Whether some of the columns are a key of the relation that they come from.
fn is_key(plan: &Plan, columns: &[usize], facts: &Facts<'_>) -> bool {
    match &plan.node {
        Node::Scan { relation, columns: shown } => {
            let columns: Vec<usize> = columns.iter().map(|at| shown[*at]).collect();
            (facts.has_key)(relation, &columns)
        }
        Node::Stage { input, project, .. } => {
            let chosen: Vec<Expr> = columns.iter().map(|at| project[*at].clone()).collect();
            positions(&chosen, &input.schema).is_some_and(|columns| is_key(input, &columns, facts))
        }
        _ => false,
    }
}

/// Whether a key has a stretch already.
fn is_by_stretch(plan: &Plan, key: &[usize]) -> bool {
    let is_stretch = |expr: &Expr| matches!(expr, Expr::ScalarFunction(call) if stretch::is_ours(call.func.name()));
    match &plan.node {
        Node::Stage { project, .. } => key.iter().any(|at| is_stretch(&project[*at])),
        Node::Unnest { input, columns, .. } if key.iter().any(|at| columns.contains(at)) => is_by_stretch(input, key),
        _ => false,
    }
}

/// The rows with the stretch of their value.
fn stretched(side: &Arc<Plan>, size: i64, value: &Expr) -> Arc<Plan> {
    with_last(side, stretch::call_of(size, value), DataType::Int64)
}

/// The rows in each of the stretches that hold what is so far from their value.
fn repeated(side: &Arc<Plan>, size: i64, reach: std::ops::RangeInclusive<i64>, value: &Expr) -> Arc<Plan> {
    let list = DataType::List(Arc::new(Field::new_list_field(DataType::Int64, true)));
    let listed = with_last(side, stretch::call_of_all(size, reach, value), list);
    let at = width(side);
    let fields = (0..at).map(|at| field(&listed, at));
    let schema = schema(fields.chain([(listed.schema.field(at).name().clone(), DataType::Int64, true)]));
    Arc::new(Plan { node: Node::Unnest { input: listed, columns: vec![at], outer: false }, schema })
}

/// The rows with one column more.
fn with_last(side: &Arc<Plan>, value: Expr, data_type: DataType) -> Arc<Plan> {
    let n_columns = width(side);
    let fields = (0..n_columns).map(|at| field(side, at)).chain([("stretch".to_owned(), data_type, true)]);
    let project = (0..n_columns).map(|at| column(side, at)).chain([value]).collect();
    let node = Node::Stage { input: Arc::clone(side), filter: vec![], project };
    Arc::new(Plan { node, schema: schema(fields) })
}
