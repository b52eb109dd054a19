//! Arguments of functions of documents that are columns, marked as documents once more.
//!
//! Law: `to_jsonb(d)` of a document is the document. Rows are computed without the marks of
//! columns, and a rule of DataFusion makes columns of calls that stand twice.

use datafusion_common::Result as DfResult;
use datafusion_expr::logical_plan::LogicalPlan;

use super::everywhere::replace_parts;
use crate::functions::json::marked;

/// Marks the arguments in a whole plan.
pub(super) fn replace(plan: LogicalPlan) -> DfResult<LogicalPlan> {
    replace_parts(plan, marked)
}
