//! Constructs that DataFusion would drop in silence are refused, with what to write instead.

use datafusion_expr::sqlparser::ast::{self, Query, TableFactor};

use crate::error::{Result, SqlError};
use crate::syntax::parse::fold;
use crate::syntax::walk::{Look, Looking, look};

/// Refuses clauses of a query.
///
/// # Errors
/// `Unsupported`, with another way.
pub(super) fn query(query: &Query) -> Result<()> {
    if let Some(with) = &query.with
        && with.recursive
        && with.cte_tables.iter().any(refers_to_itself)
    {
        return Err(SqlError::unsupported(
            "WITH RECURSIVE",
            "Recursive queries come with a later version; a fixed number of steps can be written as joins.",
        ));
    }
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

fn refers_to_itself(cte: &ast::Cte) -> bool {
    let mut mention = Mention { name: fold(&cte.alias.name), found: false };
    look(cte.query.as_ref(), &mut mention);
    mention.found
}

/// Whether a table is named.
struct Mention {
    name: String,
    found: bool,
}

impl Looking for Mention {
    fn relation(&mut self, relation: &ast::ObjectName) -> Look {
        self.found |=
            matches!(relation.0.as_slice(), [part] if part.as_ident().is_some_and(|part| fold(part) == self.name));
        if self.found { Look::Break(()) } else { Look::Continue(()) }
    }
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
