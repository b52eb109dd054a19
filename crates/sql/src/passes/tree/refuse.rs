//! Constructs that DataFusion would drop in silence are refused, with what to write instead.

use datafusion_expr::sqlparser::ast::{self, Query, TableFactor};

use crate::error::{Result, SqlError};

/// Refuses clauses of a query.
///
/// # Errors
/// `Unsupported`, with another way.
pub(super) fn query(query: &Query) -> Result<()> {
    if !query.locks.is_empty() {
        return Err(SqlError::unsupported(
            "SELECT .. FOR UPDATE",
            "Leave the clause out: statements are strictly serialisable.",
        ));
    }
    if query.for_clause.is_some() || query.settings.is_some() || query.format_clause.is_some() {
        return Err(SqlError::unsupported("this clause at the end of the query", "Leave it out."));
    }
    if !query.pipe_operators.is_empty() {
        return Err(SqlError::unsupported("|>", "Write nested queries or WITH."));
    }
    Ok(())
}

/// Refuses clauses of a SELECT.
///
/// # Errors
/// `Unsupported`, with another way.
pub(super) fn select(select: &ast::Select) -> Result<()> {
    if select.into.is_some() {
        return Err(SqlError::unsupported("SELECT INTO", "Write CREATE TABLE, then INSERT INTO .. SELECT."));
    }
    if select.top.is_some() {
        return Err(SqlError::unsupported("SELECT TOP", "Write LIMIT at the end of the query."));
    }
    if !select.cluster_by.is_empty() || !select.distribute_by.is_empty() || !select.sort_by.is_empty() {
        return Err(SqlError::unsupported("SORT BY, CLUSTER BY and DISTRIBUTE BY", "Write ORDER BY."));
    }
    Ok(())
}

/// Refuses entries of FROM.
///
/// # Errors
/// `Unsupported`, with another way.
pub(super) fn factor(factor: &TableFactor) -> Result<()> {
    match factor {
        TableFactor::Table { version: Some(_), .. } => Err(SqlError::unsupported(
            "FOR SYSTEM_TIME AS OF",
            "Reads see the present; keep history in a table with a time column.",
        )),
        TableFactor::Table { sample: Some(_), .. } => {
            Err(SqlError::unsupported("TABLESAMPLE", "Filter by a condition on the key."))
        }
        TableFactor::TableFunction { .. } => {
            Err(SqlError::unsupported("TABLE(..) in FROM", "Name a table or a view, or write TUMBLE, HOP or CUMULATE."))
        }
        TableFactor::Pivot { .. } | TableFactor::Unpivot { .. } => {
            Err(SqlError::unsupported("PIVOT", "Write one aggregate with FILTER (WHERE ..) for each column."))
        }
        _ => Ok(()),
    }
}
