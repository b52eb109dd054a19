//! Conditions behind the index: a join reads all rows of a relation from an index that exists, and
//! drops those it does not want.
//!
//! ```text
//! Join a = b, Stage where d > 5 (Scan r)     and r is indexed by b
//! =   Join a = b where right.d > 5, Scan r
//! ```
//!
//! Law: the plan keeps its meaning: a condition over one input of an inner join may be tested
//! before or after it, and one over the side that an outer join may leave out belongs to its ON.
//! Only conditions that cannot fail move, and only over joins that test nothing else that can.
//!
//! Cost: rows that the condition drops are looked up first; so only conditions that keep a good
//! part of the relation, by guess, move. What is spared is an arrangement of that part of the
//! relation for every condition that some query has.
//!
//! Source: "Shared arrangements" (VLDB 2020), section 6.1: queries over relations that are indexed
//! beforehand.

use std::sync::Arc;

use datafusion_common::Column;
use datafusion_common::tree_node::{Transformed, TreeNode};
use datafusion_expr::Expr;
use datafusion_expr::utils::conjunction;

use super::build::{choose, width};
use super::facts::Indexes;
use super::inputs::with_inputs;
use super::selectivity::{cannot_fail, selectivity};
use crate::ir::{JoinKind, Node, Plan};
use crate::positions::positions;

/// The share of a relation's rows, by guess, from which on its index serves instead of an
/// arrangement of these rows alone.
const SHARE_MIN: f64 = 0.2;

/// The plan with joins that read indexes where these exist.
pub(super) fn behind_indexes(plan: &Arc<Plan>, indexes: Indexes) -> Arc<Plan> {
    let plan = with_inputs(plan, |input| behind_indexes(input, indexes));
    over_right(&over_left(&plan, indexes), indexes)
}

/// The rows of a relation that a join asks for, and the condition on them.
struct Filtered {
    /// The columns that the join knows, then those that only the condition needs.
    scan: Arc<Plan>,
    /// Over the columns of `scan`.
    condition: Expr,
}

impl Filtered {
    /// The side of a join taken apart, if that is to be read from an index.
    fn of(side: &Arc<Plan>, key: &[usize], indexes: Indexes) -> Option<Filtered> {
        let Node::Stage { input, filter, project } = &side.node else { return None };
        let Node::Scan { relation, columns } = &input.node else { return None };
        let shown = positions(project, &input.schema)?;
        let indexed: Vec<usize> = key.iter().map(|at| columns[shown[*at]]).collect();
        let is_distinct = shown.iter().enumerate().all(|(n, at)| !shown[..n].contains(at));
        let may_move = filter.iter().all(|condition| cannot_fail(condition, &input.schema));
        if filter.is_empty()
            || !is_distinct
            || !may_move
            || selectivity(side) < SHARE_MIN
            || !indexes(relation, &indexed)
        {
            return None;
        }
        let condition = conjunction(filter.iter().cloned())?;
        let asked = condition.column_refs().into_iter().map(|column| Expr::Column(column.clone()));
        let mut further = positions(&asked.collect::<Vec<Expr>>(), &input.schema)?;
        further.retain(|at| !shown.contains(at));
        further.sort_unstable();
        let wanted: Vec<usize> = shown.into_iter().chain(further).collect();
        Some(Filtered { scan: choose(input, &wanted), condition })
    }
}

fn over_left(plan: &Arc<Plan>, indexes: Indexes) -> Arc<Plan> {
    let Node::Join { left, right, kind, left_key, residual, output, .. } = &plan.node else { return Arc::clone(plan) };
    let may_move = matches!(kind, JoinKind::Inner | JoinKind::Right) && is_safe(residual.as_ref(), left, right);
    let Some(filtered) = Filtered::of(left, left_key, indexes).filter(|_| may_move) else { return Arc::clone(plan) };
    let n_more = width(&filtered.scan) - width(left);
    let moved = |at: &usize| if *at < width(left) { *at } else { *at + n_more };
    let mut node = plan.node.clone();
    if let Node::Join { left: to, residual: tests, output: to_output, .. } = &mut node {
        *tests = Some(both("left", &filtered, residual.as_ref(), left));
        *to_output = output.iter().map(moved).collect();
        *to = filtered.scan;
    }
    Arc::new(Plan { node, schema: plan.schema.clone() })
}

fn over_right(plan: &Arc<Plan>, indexes: Indexes) -> Arc<Plan> {
    let Node::Join { left, right, kind, right_key, residual, .. } = &plan.node else { return Arc::clone(plan) };
    let may_move = matches!(kind, JoinKind::Inner | JoinKind::Left) && is_safe(residual.as_ref(), left, right);
    let Some(filtered) = Filtered::of(right, right_key, indexes).filter(|_| may_move) else { return Arc::clone(plan) };
    let mut node = plan.node.clone();
    if let Node::Join { right: to, residual: tests, .. } = &mut node {
        *tests = Some(both("right", &filtered, residual.as_ref(), right));
        *to = filtered.scan;
    }
    Arc::new(Plan { node, schema: plan.schema.clone() })
}

fn is_safe(residual: Option<&Expr>, left: &Plan, right: &Plan) -> bool {
    residual.is_none_or(|residual| cannot_fail(residual, &Plan::join_schema(left, right)))
}

/// The condition of a side, and what the join tested before.
fn both(side: &str, filtered: &Filtered, residual: Option<&Expr>, before: &Plan) -> Expr {
    let qualified = |name: &str| Expr::Column(Column::new(Some(side), name));
    let renamed = |expr: &Expr, name: &dyn Fn(&Column) -> Option<String>| {
        let renamed = expr.clone().transform(|e| {
            let new = if let Expr::Column(column) = &e { name(column) } else { None };
            Ok(new.map_or(Transformed::no(e), |name| Transformed::yes(qualified(&name))))
        });
        renamed.expect("the closure does not fail").data
    };
    let condition = renamed(&filtered.condition, &|column| Some(column.name.clone()));
    let Some(residual) = residual else { return condition };
    // The columns that the join knew are in their places; they may be called otherwise.
    let now = |known: &Column| {
        let is_ours = known.relation.as_ref().is_some_and(|relation| relation.table() == side);
        let at = before.schema.index_of_column_by_name(None, &known.name).filter(|_| is_ours)?;
        Some(filtered.scan.schema.field(at).name().clone())
    };
    renamed(residual, &now).and(condition)
}
