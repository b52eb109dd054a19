//! `FETCH FIRST`, which DataFusion does not read.

use datafusion_expr::sqlparser::ast::{self, Expr, LimitClause, Query};

use crate::error::{Result, SqlError};

/// `FETCH FIRST n ROWS ONLY` is `LIMIT n`.
///
/// # Errors
/// `Unsupported` for WITH TIES and PERCENT.
pub(super) fn to_limit(query: &mut Query) -> Result<()> {
    let Some(fetch) = query.fetch.take() else {
        return Ok(());
    };
    if fetch.with_ties || fetch.percent {
        return Err(SqlError::unsupported("FETCH .. WITH TIES or PERCENT", "Write FETCH FIRST n ROWS ONLY."));
    }
    let count = fetch.quantity.unwrap_or_else(|| Expr::value(ast::Value::Number("1".into(), false)));
    match &mut query.limit_clause {
        Some(LimitClause::LimitOffset { limit, .. }) => *limit = Some(count),
        other => {
            *other = Some(LimitClause::LimitOffset { limit: Some(count), offset: None, limit_by: vec![] });
        }
    }
    Ok(())
}
