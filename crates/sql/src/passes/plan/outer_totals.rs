//! `SELECT (SELECT count(q.b) FROM p LIMIT 1) FROM q` is refused: the aggregate is one of the query
//! around, which DataFusion computes for each of its rows.
//!
//! Law: an aggregate belongs to the innermost query that has a column of its arguments. (Those of
//! subqueries without FROM are lifted before: `tree::outer_aggregates`.)

use datafusion_common::Result as DfResult;
use datafusion_common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion_expr::Expr;
use datafusion_expr::expr::AggregateFunction;
use datafusion_expr::logical_plan::LogicalPlan;

use crate::error::SqlError;
use crate::resolve::shown_forms::ONE_ROW;

/// Refuses aggregates all of whose columns are those of a query around.
///
/// # Errors
/// `Unsupported` for the first.
pub(super) fn refuse(plan: &LogicalPlan) -> DfResult<()> {
    plan.apply_with_subqueries(|node| {
        let LogicalPlan::Aggregate(aggregate) = node else { return Ok(TreeNodeRecursion::Continue) };
        for expr in &aggregate.aggr_expr {
            expr.apply(|part| match part {
                Expr::AggregateFunction(call) if is_written(call) && is_of_outer_columns(call)? => {
                    let what = format!("{}() of columns of an outer query, in a subquery with FROM,", call.func.name());
                    let hint = "Compute the aggregate in a derived table of the outer query, and read its column in \
                                the subquery.";
                    Err(SqlError::unsupported(what, hint).into())
                }
                _ => Ok(TreeNodeRecursion::Continue),
            })?;
        }
        Ok(TreeNodeRecursion::Continue)
    })?;
    Ok(())
}

/// Whether a user may have written the call: rewrites of the tree write the others, of any columns
/// (ARRAY(SELECT ..) is `array_agg`, which therefore passes).
fn is_written(call: &AggregateFunction) -> bool {
    !matches!(call.func.name(), "array_agg" | ONE_ROW) && !call.func.name().starts_with("__")
}

fn is_of_outer_columns(call: &AggregateFunction) -> DfResult<bool> {
    let (mut of_outer, mut of_own) = (false, false);
    let order = call.params.order_by.iter().map(|key| &key.expr);
    for expr in call.params.args.iter().chain(call.params.filter.as_deref()).chain(order) {
        expr.apply(|part| {
            of_outer |= matches!(part, Expr::OuterReferenceColumn(..));
            of_own |= matches!(part, Expr::Column(_));
            Ok(TreeNodeRecursion::Continue)
        })?;
    }
    Ok(of_outer && !of_own)
}
