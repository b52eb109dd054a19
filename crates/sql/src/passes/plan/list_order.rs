//! Arrays that ANY and ALL compare, as PostgreSQL orders them: NULL within them is the greatest.
//!
//! ```text
//! a < b     array_compare(a, b) < 0
//! ```
//!
//! Operators that are written are such calls already. Those of ANY and ALL are made by DataFusion,
//! when it makes joins of the tests.

use arrow::datatypes::DataType;
use datafusion_common::tree_node::Transformed;
use datafusion_common::{DFSchema, Result as DfResult};
use datafusion_expr::logical_plan::LogicalPlan;
use datafusion_expr::{BinaryExpr, Expr, ExprSchemable, Operator, binary_expr, lit};

use super::everywhere::replace_parts;
use crate::functions::table::call;

/// Compares arrays by calls in a whole plan.
pub(super) fn compare(plan: LogicalPlan) -> DfResult<LogicalPlan> {
    replace_parts(plan, by_call)
}

fn by_call(expr: Expr, schema: &DFSchema) -> Transformed<Expr> {
    let is_list = |side: &Expr| matches!(side.get_type(schema), Ok(DataType::List(_)));
    match expr {
        Expr::BinaryExpr(BinaryExpr { left, op, right })
            if matches!(op, Operator::Lt | Operator::LtEq | Operator::Gt | Operator::GtEq)
                && is_list(&left)
                && is_list(&right) =>
        {
            Transformed::yes(binary_expr(call("array_compare", vec![*left, *right]), op, lit(0i32)))
        }
        other => Transformed::no(other),
    }
}
