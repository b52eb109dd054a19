//! `ARRAY[t.a, u.b]`: an array with columns is a call.

use datafusion_expr::sqlparser::ast::Expr;

use crate::error::Result;
use crate::syntax::relation_calls::call;
use crate::syntax::walk::names_column;

/// Writes the array as a call of its elements.
///
/// # Errors
/// None.
pub(super) fn as_call(expr: &mut Expr) -> Result<()> {
    if let Expr::Array(array) = expr
        && array.elem.iter().any(names_column)
    {
        *expr = call("make_array", std::mem::take(&mut array.elem));
    }
    Ok(())
}
