//! `EMIT ON WINDOW CLOSE`: the rows of windows that are over, and no others.
//!
//! A window is over when the watermark of what it reads has passed its end. The session keeps the
//! watermark in a relation of one row, so the query becomes
//!
//! ```text
//!     SELECT * FROM (query) WHERE window_end <= (SELECT max(watermark) FROM "watermark of relation")
//! ```
//!
//! (`<` for sessions, which a row at the very end of the window would go on.)
//!
//! once for each relation with a watermark that the query's windows are over. Rows that come after
//! the watermark are left out where they come in, so a row that has appeared does not change any
//! more. Cost: the comparison of rows with one changing value.

use datafusion_expr::sqlparser::ast::{Expr, FunctionArg, FunctionArgExpr, Query, SelectItem, SetExpr, TableFactor};

use crate::error::{ErrorKind, Result, SqlError};
use crate::resolve::catalog::Catalog;
use crate::syntax::names::{fold, object_name};
use crate::syntax::template::template;
use crate::syntax::walk::{Look, Looking, look};

/// The column of a windowed table that says when the window is over.
const WINDOW_END: &str = "window_end";

/// The query, of closed windows only.
///
/// # Errors
/// `Invalid` when no window is over a relation with a watermark, or the ends of windows are not
/// selected.
pub(crate) fn rewrite(query: &Query, catalog: &dyn Catalog) -> Result<Query> {
    let mut windowed = Windowed::default();
    look(query, &mut windowed);
    let mut ends = Vec::new();
    for (name, is_session) in windowed.relations {
        if let Some(holder) = catalog.relation(&name).and_then(|relation| relation.watermark_relation) {
            // A row at the very end of a session's window still belongs to it.
            let comparison = if is_session { "<" } else { "<=" };
            ends.push(format!("{comparison} (SELECT max(watermark) FROM {})", quoted(&holder)));
        }
    }
    if ends.is_empty() {
        return Err(SqlError::new(ErrorKind::Invalid, "EMIT ON WINDOW CLOSE does not know when windows close")
            .with_detail("No window of the query is over a table or source with a watermark.")
            .with_hint(
                "Read TUMBLE, HOP, CUMULATE or SESSION of a table that was created with WATERMARK FOR, and select window_end.",
            ));
    }
    let end = end_of_windows(query)?;
    let conditions: Vec<String> = ends.iter().map(|is_over| format!("{end} {is_over}")).collect();
    let text = format!("SELECT * FROM ({query}) AS __closing WHERE {}", conditions.join(" AND "));
    Ok(*template(&text)?)
}

/// What the query calls its column `window_end`.
fn end_of_windows(query: &Query) -> Result<String> {
    let SetExpr::Select(select) = query.body.as_ref() else { return Ok(WINDOW_END.into()) };
    let is_end = |expr: &Expr| match expr {
        Expr::Identifier(name) => fold(name) == WINDOW_END,
        Expr::CompoundIdentifier(parts) => parts.last().is_some_and(|name| fold(name) == WINDOW_END),
        _ => false,
    };
    for item in &select.projection {
        match item {
            SelectItem::UnnamedExpr(expr) if is_end(expr) => return Ok(WINDOW_END.into()),
            SelectItem::ExprWithAlias { expr, alias } if is_end(expr) || fold(alias) == WINDOW_END => {
                return Ok(quoted(&fold(alias)));
            }
            SelectItem::Wildcard(_) | SelectItem::QualifiedWildcard(..) => return Ok(WINDOW_END.into()),
            _ => {}
        }
    }
    Err(SqlError::new(
        ErrorKind::Invalid,
        "EMIT ON WINDOW CLOSE does not know when the windows of the query's rows close",
    )
    .with_detail("The query does not select window_end.")
    .with_hint("Select window_end, under any name, and list it in GROUP BY."))
}

fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// Relations that window table functions read.
#[derive(Default)]
struct Windowed {
    /// Name, and whether the windows are sessions.
    relations: Vec<(String, bool)>,
}

impl Looking for Windowed {
    fn table_factor(&mut self, factor: &TableFactor) -> Look {
        if let TableFactor::Table { name, args: Some(args), .. } = factor
            && let Ok(function) = object_name(name)
            && matches!(function.as_str(), "tumble" | "hop" | "cumulate" | "session")
        {
            for arg in &args.args {
                let (FunctionArg::Unnamed(arg) | FunctionArg::Named { arg, .. } | FunctionArg::ExprNamed { arg, .. }) =
                    arg;
                if let FunctionArgExpr::Expr(Expr::Identifier(relation)) = arg
                    && !self.relations.contains(&(fold(relation), function == "session"))
                {
                    self.relations.push((fold(relation), function == "session"));
                }
            }
        }
        Look::Continue(())
    }
}
