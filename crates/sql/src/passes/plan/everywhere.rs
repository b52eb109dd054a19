//! Each part of each expression of a whole plan, with the columns that it sees.

use datafusion_common::tree_node::{Transformed, TreeNode};
use datafusion_common::{DFSchema, Result as DfResult};
use datafusion_expr::Expr;
use datafusion_expr::expr_rewriter::NamePreserver;
use datafusion_expr::logical_plan::LogicalPlan;
use datafusion_expr::utils::merge_schema;

/// The plan, subqueries too, with parts of expressions replaced. Columns keep their names.
pub(super) fn replace_parts(
    plan: LogicalPlan,
    replace: impl Fn(Expr, &DFSchema) -> Transformed<Expr>,
) -> DfResult<LogicalPlan> {
    let replaced = plan.transform_up_with_subqueries(|node| {
        let schema = match &node {
            LogicalPlan::TableScan(_) | LogicalPlan::Extension(_) => return Ok(Transformed::no(node)),
            other => merge_schema(&other.inputs()),
        };
        let names = NamePreserver::new(&node);
        node.map_expressions(|expr| {
            let name = names.save(&expr);
            let replaced = expr.transform_up(|part| Ok(replace(part, &schema)))?;
            Ok(replaced.update_data(|expr| name.restore(expr)))
        })
    })?;
    Ok(replaced.data)
}
