//! Subqueries in the ON of outer joins become columns of the side that they are about.
//!
//! ```text
//! a LEFT JOIN b ON b.k = a.k AND a.x > (SELECT max(c.z) FROM c WHERE c.k = a.k)
//! =   (SELECT a.*, (SELECT max(c.z) ..) AS s FROM a) LEFT JOIN b ON b.k = a.k AND a.x > s
//! ```
//!
//! Law: the plan means what it did; a subquery has its value for each row of its side, whether or
//! not the row is compared with another. Conditions over the side that may be left out alone stay:
//! they become filters of that side (`subqueries`). Subqueries about both sides are evaluated for
//! pairs (`join_pairs`).

use std::sync::Arc;

use datafusion_common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion_common::{Column, JoinType, Result as DfResult};
use datafusion_expr::Expr;
use datafusion_expr::logical_plan::{Join, LogicalPlan, Projection};
use datafusion_expr::utils::{conjunction, split_conjunction_owned};

use crate::passes::plan::join_pairs::join_pairs;
use crate::passes::plan::subqueries::is_over;
use crate::passes::plan::unnest::{has_subquery, subquery_of};

/// Lifts the subqueries out of the conditions of all outer joins of a plan.
pub(crate) fn lift(plan: LogicalPlan) -> DfResult<LogicalPlan> {
    let mut n_lifted = 0;
    let lifted = plan.transform_up_with_subqueries(|node| match node {
        LogicalPlan::Join(join)
            if matches!(join.join_type, JoinType::Left | JoinType::Right | JoinType::Full)
                && join.filter.as_ref().is_some_and(has_subquery) =>
        {
            lift_out_of(join, &mut n_lifted)
        }
        other => Ok(Transformed::no(other)),
    })?;
    Ok(lifted.data)
}

/// Columns to be added to a side.
type Added = Vec<Expr>;

fn lift_out_of(mut join: Join, n_lifted: &mut usize) -> DfResult<Transformed<LogicalPlan>> {
    let shown: Vec<Expr> = join.schema.columns().into_iter().map(Expr::Column).collect();
    let (mut of_left, mut of_right): (Added, Added) = (vec![], vec![]);
    let stays = |test: &Expr| match join.join_type {
        JoinType::Left => is_over(test, join.right.schema()),
        JoinType::Right => is_over(test, join.left.schema()),
        _ => false,
    };
    let mut lifted = |part: Expr| {
        if subquery_of(&part).is_none() {
            return Ok(Transformed::no(part));
        }
        let added = match (is_over(&part, join.left.schema()), is_over(&part, join.right.schema())) {
            (true, _) => &mut of_left,
            (_, true) => &mut of_right,
            _ => return Ok(Transformed::new(part, false, TreeNodeRecursion::Jump)),
        };
        *n_lifted += 1;
        let name = format!("__tested_{n_lifted}");
        added.push(part.alias(&name));
        Ok(Transformed::new(Expr::Column(Column::new_unqualified(name)), true, TreeNodeRecursion::Jump))
    };
    let mut tests = Vec::new();
    for test in join.filter.clone().map(split_conjunction_owned).unwrap_or_default() {
        tests.push(if stays(&test) { test } else { test.transform_down(&mut lifted)?.data });
    }
    let is_about_both = tests.iter().any(|test| has_subquery(test) && !stays(test));
    if of_left.is_empty() && of_right.is_empty() {
        let paired = if is_about_both { join_pairs(&join, n_lifted)? } else { None };
        return Ok(paired.map_or(Transformed::no(LogicalPlan::Join(join)), Transformed::yes));
    }
    join.filter = conjunction(tests);
    join.left = with_columns(join.left, of_left)?;
    join.right = with_columns(join.right, of_right)?;
    let mut joined = LogicalPlan::Join(join).recompute_schema()?;
    if let (true, LogicalPlan::Join(join)) = (is_about_both, &joined) {
        joined = join_pairs(join, n_lifted)?.unwrap_or(joined);
    }
    Ok(Transformed::yes(LogicalPlan::Projection(Projection::try_new(shown, Arc::new(joined))?)))
}

fn with_columns(side: Arc<LogicalPlan>, added: Added) -> DfResult<Arc<LogicalPlan>> {
    if added.is_empty() {
        return Ok(side);
    }
    let own = side.schema().columns().into_iter().map(Expr::Column);
    Ok(Arc::new(LogicalPlan::Projection(Projection::try_new(own.chain(added).collect(), side)?)))
}
