//! Expressions that were not written as SQL: their types made to fit, as the planner does it.

use datafusion_common::DFSchema;
use datafusion_common::tree_node::TreeNode;
use datafusion_expr::Expr;
use datafusion_optimizer::analyzer::type_coercion::TypeCoercionRewriter;

use crate::error::Result;

/// The same expression with casts where operands and arguments need them.
///
/// # Errors
/// When no cast makes the types fit, or a column is not in the schema.
pub fn coerce(expr: Expr, schema: &DFSchema) -> Result<Expr> {
    Ok(expr.rewrite(&mut TypeCoercionRewriter::new(schema))?.data)
}
