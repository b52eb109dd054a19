//! `EMIT ON WINDOW CLOSE`: the rows of windows that are over, and no others.
//!
//! A window is over when the watermark of what it reads has passed its end. The session keeps the
//! watermark in a relation of one row, so the query becomes
//!
//! ```text
//!     SELECT * FROM (query) WHERE window_end <= (SELECT max(watermark) FROM "watermark of relation")
//! ```
//!
//! A query that groups by `window_end` and does not select it has it as one more column inside:
//!
//! ```text
//!     SELECT __c0 AS max
//!     FROM (SELECT max(x), window_end .. GROUP BY window_end) AS __closing (__c0, __window_end) WHERE ..
//! ```
//!
//! (`<` for sessions, which a row at the very end of the window would go on.)
//!
//! once for each relation with a watermark that the query's windows are over. Rows that come after
//! the watermark are left out where they come in, so a row that has appeared does not change any
//! more. Cost: the comparison of rows with one changing value.

use datafusion_expr::sqlparser::ast::{
    Expr, FunctionArg, FunctionArgExpr, GroupByExpr, Ident, Query, SelectItem, SetExpr, TableFactor,
};

use super::expression_names::item_name;
use super::subquery::has_aggregate;
use crate::error::{ErrorKind, Result, SqlError};
use crate::resolve::catalog::Catalog;
use crate::syntax::names::{fold, object_name};
use crate::syntax::template::template;
use crate::syntax::walk::{Look, Looking, look};

/// The column of a windowed table that says when the window is over.
const WINDOW_END: &str = "window_end";
/// The same column, where the user does not see it.
const HIDDEN_END: &str = "__window_end";

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
    let is_over = |end: &str| ends.iter().map(|is_over| format!("{end} {is_over}")).collect::<Vec<_>>().join(" AND ");
    let text = match (end_of_windows(query), with_end(query)) {
        (Ok(end), _) => format!("SELECT * FROM ({query}) AS __closing WHERE {}", is_over(&end)),
        (Err(_), Some((query, names))) => {
            let shown = names.iter().enumerate().map(|(n, name)| format!("__c{n} AS {}", quoted(name)));
            let shown = shown.collect::<Vec<_>>().join(", ");
            let columns: String = (0..names.len()).map(|n| format!("__c{n}, ")).collect();
            let over = is_over(HIDDEN_END);
            format!("SELECT {shown} FROM ({query}) AS __closing ({columns}{HIDDEN_END}) WHERE {over}")
        }
        (Err(error), None) => return Err(error),
    };
    Ok(*template(&text)?)
}

/// The query with the ends of windows behind its columns, and the names of these; `None` where it
/// does not say to which window a row belongs.
fn with_end(query: &Query) -> Option<(Query, Vec<String>)> {
    let mut query = query.clone();
    let SetExpr::Select(select) = query.body.as_mut() else { return None };
    let names = select.projection.iter().map(item_name).collect::<Option<Vec<String>>>()?;
    let GroupByExpr::Expressions(groups, _) = &select.group_by else { return None };
    let end = match groups.iter().find(|group| is_end(group)) {
        Some(end) => end.clone(),
        None if groups.is_empty() && !has_aggregate(&select.projection) && select.having.is_none() => {
            Expr::Identifier(Ident::new(WINDOW_END))
        }
        None => return None,
    };
    if select.distinct.is_some() {
        return None;
    }
    select.projection.push(SelectItem::ExprWithAlias { expr: end, alias: Ident::new(HIDDEN_END) });
    Some((query, names))
}

fn is_end(expr: &Expr) -> bool {
    match expr {
        Expr::Identifier(name) => fold(name) == WINDOW_END,
        Expr::CompoundIdentifier(parts) => parts.last().is_some_and(|name| fold(name) == WINDOW_END),
        _ => false,
    }
}

/// What the query calls its column `window_end`.
fn end_of_windows(query: &Query) -> Result<String> {
    let SetExpr::Select(select) = query.body.as_ref() else { return Ok(WINDOW_END.into()) };
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
    .with_detail("The query neither selects window_end nor groups by it.")
    .with_hint("List window_end in GROUP BY, or select it, under any name."))
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
