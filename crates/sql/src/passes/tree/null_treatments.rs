//! `lag(x IGNORE NULLS) OVER ..` and `RESPECT NULLS`, which says what is so without.
//!
//! ```text
//! lag(x IGNORE NULLS) OVER w     lag(x) IGNORE NULLS OVER w
//! lag(x) RESPECT NULLS OVER w    lag(x) OVER w
//! ```

use datafusion_expr::sqlparser::ast::{Expr, FunctionArgumentClause, FunctionArguments, NullTreatment};

use crate::error::Result;

/// Puts the words behind the call, or drops them.
///
/// # Errors
/// None.
pub(super) fn settle(expr: &mut Expr) -> Result<()> {
    let Expr::Function(function) = expr else { return Ok(()) };
    if let FunctionArguments::List(list) = &mut function.args {
        let treatment = list.clauses.iter().find_map(|clause| match clause {
            FunctionArgumentClause::IgnoreOrRespectNulls(treatment) => Some(*treatment),
            _ => None,
        });
        if treatment.is_some() {
            list.clauses.retain(|clause| !matches!(clause, FunctionArgumentClause::IgnoreOrRespectNulls(_)));
            function.null_treatment = treatment;
        }
    }
    if function.null_treatment == Some(NullTreatment::RespectNulls) {
        function.null_treatment = None;
    }
    Ok(())
}
