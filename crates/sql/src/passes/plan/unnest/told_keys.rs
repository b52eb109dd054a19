//! `GROUP BY t.id` beside a list: keys of groups that another key tells.
//!
//! DataFusion adds the columns that a primary key tells to the keys of groups, and leaves out again
//! those without a use, by what it knows of the rows below. Beside rows of a list it knows nothing
//! of keys any more, so what has no use is left out before.
//!
//! Law: a key is left out where nothing above names it, and a key that stays tells it.

use std::collections::HashSet;
use std::sync::Arc;

use datafusion_common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion_common::{Column, Result as DfResult};
use datafusion_expr::Expr;
use datafusion_expr::logical_plan::{Aggregate, LogicalPlan};

use super::free::{free_of, subquery_of};

/// The plan without such keys.
///
/// # Errors
/// None that a user can cause.
pub(super) fn leave_out(plan: LogicalPlan) -> DfResult<LogicalPlan> {
    let shorter = plan.transform_up_with_subqueries(|node| match node {
        LogicalPlan::Projection(_) => {
            let mut named = HashSet::new();
            Ok(match below(&node, &mut named)? {
                Some(shorter) => Transformed::yes(shorter.recompute_schema()?),
                None => Transformed::no(node),
            })
        }
        other => Ok(Transformed::no(other)),
    })?;
    Ok(shorter.data)
}

/// A plan of one input, down to an aggregate with fewer keys; `named` has the columns that the
/// nodes above it name.
fn below(node: &LogicalPlan, named: &mut HashSet<Column>) -> DfResult<Option<LogicalPlan>> {
    if let LogicalPlan::Aggregate(aggregate) = node {
        return shorter(aggregate, named);
    }
    let is_passed = matches!(node, LogicalPlan::Projection(_) | LogicalPlan::Filter(_) | LogicalPlan::Sort(_));
    let inputs = node.inputs();
    let (true, [input]) = (is_passed, inputs.as_slice()) else { return Ok(None) };
    // (A projection further down is the first of its own.)
    if matches!(input, LogicalPlan::Projection(_)) {
        return Ok(None);
    }
    for expr in node.expressions() {
        named.extend(expr.column_refs().into_iter().cloned());
        expr.apply(|part| {
            if let Some(subquery) = subquery_of(part) {
                named.extend(free_of(&subquery.subquery)?);
            }
            Ok(TreeNodeRecursion::Continue)
        })?;
    }
    match below(input, named)? {
        Some(input) => Ok(Some(node.with_new_exprs(node.expressions(), vec![input])?)),
        None => Ok(None),
    }
}

fn shorter(aggregate: &Aggregate, named: &HashSet<Column>) -> DfResult<Option<LogicalPlan>> {
    let Aggregate { input, group_expr, aggr_expr, .. } = aggregate;
    if group_expr.iter().any(|key| matches!(key, Expr::GroupingSet(_))) {
        return Ok(None);
    }
    let schema = input.schema();
    let places: Vec<Option<usize>> =
        group_expr.iter().map(|key| key.try_as_col().and_then(|column| schema.maybe_index_of_column(column))).collect();
    let mut kept: Vec<usize> = (0..group_expr.len()).collect();
    for dependence in schema.functional_dependencies().iter() {
        let has = |place: &usize| kept.iter().any(|at| places[*at] == Some(*place));
        // (NULL is not unique.)
        if dependence.nullable || !dependence.source_indices.iter().all(has) {
            continue;
        }
        kept.retain(|at| {
            let Some(place) = places[*at] else { return true };
            let is_told = dependence.target_indices.contains(&place) && !dependence.source_indices.contains(&place);
            !is_told || group_expr[*at].try_as_col().is_none_or(|column| named.contains(column))
        });
    }
    if kept.len() == group_expr.len() {
        return Ok(None);
    }
    let keys = kept.into_iter().map(|at| group_expr[at].clone()).collect();
    Ok(Some(LogicalPlan::Aggregate(Aggregate::try_new(Arc::clone(input), keys, aggr_expr.clone())?)))
}
