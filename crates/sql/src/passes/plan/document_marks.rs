//! Arguments of functions of documents that are columns, marked as documents once more.
//!
//! Law: `to_jsonb(d)` of a document is the document. Rows are computed without the marks of
//! columns, and a rule of DataFusion makes columns of calls that stand twice.

use datafusion_common::Result as DfResult;
use datafusion_common::tree_node::{Transformed, TreeNode};
use datafusion_expr::expr_rewriter::NamePreserver;
use datafusion_expr::logical_plan::LogicalPlan;
use datafusion_expr::utils::merge_schema;

use crate::functions::json::marked;

/// Marks the arguments in a whole plan.
pub(super) fn replace(plan: LogicalPlan) -> DfResult<LogicalPlan> {
    let replaced = plan.transform_up_with_subqueries(|node| {
        let schema = match &node {
            LogicalPlan::TableScan(_) | LogicalPlan::Extension(_) => return Ok(Transformed::no(node)),
            other => merge_schema(&other.inputs()),
        };
        let names = NamePreserver::new(&node);
        node.map_expressions(|expr| {
            let name = names.save(&expr);
            let replaced = expr.transform_up(|e| Ok(marked(e, &schema)))?;
            Ok(replaced.update_data(|e| name.restore(e)))
        })
    })?;
    Ok(replaced.data)
}
