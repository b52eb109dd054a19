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
//! once for each relation with a watermark that the query's windows are over. Where windows are
//! over a view or a subquery, the plan says which watermarks bound `window_end`, and how far it may
//! be behind them ([`Bound::lag`]): windows close that much later. A query of TUMBLE or HOP that
//! groups by `window_start` groups by `window_end` as well: one tells the other.
//!
//! Rows that come after the watermark are left out where they come in, so a row that has appeared
//! does not change any more. Cost: the comparison of rows with one changing value.

use anabranch_plan::bounds::Bound;
use arrow::datatypes::DataType;
use datafusion_expr::sqlparser::ast::{
    Expr, FunctionArg, FunctionArgExpr, GroupByExpr, Ident, Query, Select, SelectItem, SetExpr, TableFactor,
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
const WINDOW_START: &str = "window_start";
/// The same column, where the user does not see it.
const HIDDEN_END: &str = "__window_end";

/// Says what bounds the column of that name of a query, in changes to come, and the column's type.
pub(crate) type BoundOf<'a> = &'a dyn Fn(&Query, &str) -> Result<Option<(Bound, DataType)>>;

/// The query, of closed windows only.
///
/// # Errors
/// `Invalid` when no watermark says when windows are over, or the ends of windows are not selected.
pub(crate) fn rewrite(query: &Query, catalog: &dyn Catalog, bound_of: BoundOf) -> Result<Query> {
    let mut windowed = Windowed { catalog, calls: vec![] };
    look(query, &mut windowed);
    let ends = Ends::of(query)?;
    let direct: Option<Vec<Closing>> = windowed.calls.into_iter().collect();
    let closings = match direct.filter(|closings| !closings.is_empty()) {
        Some(closings) => closings,
        None => {
            let bound = bound_of(&ends.query, &ends.end)?;
            bound.and_then(|(bound, of)| derived(&bound, &of, catalog)).ok_or_else(unknown)?
        }
    };
    let end = quoted(&ends.end);
    let mut conditions: Vec<String> = Vec::new();
    for closing in closings {
        let condition = closing.condition(&end);
        if !conditions.contains(&condition) {
            conditions.push(condition);
        }
    }
    let over = conditions.join(" AND ");
    let Ends { query, names, .. } = ends;
    Ok(*template(&match names {
        None => format!("SELECT * FROM ({query}) AS __closing WHERE {over}"),
        Some(names) => {
            let shown = names.iter().enumerate().map(|(n, name)| format!("__c{n} AS {}", quoted(name)));
            let shown = shown.collect::<Vec<_>>().join(", ");
            let columns: String = (0..names.len()).map(|n| format!("__c{n}, ")).collect();
            format!("SELECT {shown} FROM ({query}) AS __closing ({columns}{HIDDEN_END}) WHERE {over}")
        }
    })?)
}

fn unknown() -> SqlError {
    SqlError::new(ErrorKind::Invalid, "EMIT ON WINDOW CLOSE does not know when windows close")
        .with_detail("No window of the query is over a table or source with a watermark.")
        .with_hint(
            "Read TUMBLE, HOP, CUMULATE or SESSION of a table that was created with WATERMARK FOR, or of a view or a subquery that passes on the watermark's column of an APPEND ONLY one, and select window_end.",
        )
}

/// A watermark that windows wait for.
struct Closing {
    /// The relation that holds it.
    holder: String,
    /// How far the ends of windows whose rows may change are behind the watermark.
    lag: Lag,
}

enum Lag {
    /// They are ahead of it.
    Ahead,
    /// They are not behind it.
    Nothing,
    /// This far, at most.
    Behind(String),
}

impl Closing {
    fn condition(&self, end: &str) -> String {
        let mark = format!("(SELECT max(watermark) FROM {})", quoted(&self.holder));
        match &self.lag {
            Lag::Ahead => format!("{end} <= {mark}"),
            Lag::Nothing => format!("{end} < {mark}"),
            Lag::Behind(lag) => format!("{end} + {lag} < {mark}"),
        }
    }
}

/// The watermarks that a bound of the ends of windows is made of.
fn derived(bound: &Bound, of: &DataType, catalog: &dyn Catalog) -> Option<Vec<Closing>> {
    let lag = bound.lag()?;
    let lag = || match (lag, of) {
        (..0, _) => Lag::Ahead,
        (0, _) => Lag::Nothing,
        (ticks, DataType::Timestamp(..)) => Lag::Behind(format!("INTERVAL '{ticks} microseconds'")),
        (ticks, _) => Lag::Behind(ticks.to_string()),
    };
    let holder = |name: &str| catalog.relation(name)?.watermark_relation;
    let closings = bound.relations().into_iter().map(|name| Some(Closing { holder: holder(name)?, lag: lag() }));
    closings.collect::<Option<Vec<_>>>().filter(|closings| !closings.is_empty())
}

/// A query that shows to which window a row belongs.
struct Ends {
    query: Query,
    /// The column of the windows' ends.
    end: String,
    /// The columns that are shown, where the ends were put behind them.
    names: Option<Vec<String>>,
}

impl Ends {
    fn of(query: &Query) -> Result<Ends> {
        match (end_of_windows(query), with_end(query)) {
            (Ok(end), _) => Ok(Ends { query: query.clone(), end, names: None }),
            (Err(_), Some((query, names))) => Ok(Ends { query, end: HIDDEN_END.to_owned(), names: Some(names) }),
            (Err(error), None) => Err(error),
        }
    }
}

/// The query with the ends of windows behind its columns, and the names of these; `None` where it
/// does not say to which window a row belongs.
fn with_end(query: &Query) -> Option<(Query, Vec<String>)> {
    let mut query = query.clone();
    let SetExpr::Select(select) = query.body.as_mut() else { return None };
    let names = select.projection.iter().map(item_name).collect::<Option<Vec<String>>>()?;
    let is_told_by_start = starts_tell_ends(select);
    let GroupByExpr::Expressions(groups, _) = &mut select.group_by else { return None };
    let end = match groups.iter().find(|group| is_column(group, WINDOW_END)) {
        Some(end) => end.clone(),
        None if groups.is_empty() && !has_aggregate(&select.projection) && select.having.is_none() => {
            Expr::Identifier(Ident::new(WINDOW_END))
        }
        None => {
            let start = groups.iter().find(|group| is_column(group, WINDOW_START)).filter(|_| is_told_by_start)?;
            let end = end_beside(start);
            groups.push(end.clone());
            end
        }
    };
    if select.distinct.is_some() {
        return None;
    }
    select.projection.push(SelectItem::ExprWithAlias { expr: end, alias: Ident::new(HIDDEN_END) });
    Some((query, names))
}

/// Whether all windows of a start end together: those of one TUMBLE or HOP.
fn starts_tell_ends(select: &Select) -> bool {
    let [from] = &select.from[..] else { return false };
    let is_fixed = |factor: &TableFactor| match factor {
        TableFactor::Table { name, args: Some(_), .. } => {
            object_name(name).is_ok_and(|name| matches!(name.as_str(), "tumble" | "hop"))
        }
        _ => false,
    };
    from.joins.is_empty() && is_fixed(&from.relation)
}

/// The end of a window whose start is this column.
fn end_beside(start: &Expr) -> Expr {
    match start {
        Expr::CompoundIdentifier(parts) => {
            let mut parts = parts.clone();
            parts.pop();
            parts.push(Ident::new(WINDOW_END));
            Expr::CompoundIdentifier(parts)
        }
        _ => Expr::Identifier(Ident::new(WINDOW_END)),
    }
}

fn is_column(expr: &Expr, wanted: &str) -> bool {
    match expr {
        Expr::Identifier(name) => fold(name) == wanted,
        Expr::CompoundIdentifier(parts) => parts.last().is_some_and(|name| fold(name) == wanted),
        _ => false,
    }
}

/// What the query calls its column `window_end`.
fn end_of_windows(query: &Query) -> Result<String> {
    let SetExpr::Select(select) = query.body.as_ref() else { return Ok(WINDOW_END.into()) };
    for item in &select.projection {
        match item {
            SelectItem::UnnamedExpr(expr) if is_column(expr, WINDOW_END) => return Ok(WINDOW_END.into()),
            SelectItem::ExprWithAlias { expr, alias } if is_column(expr, WINDOW_END) || fold(alias) == WINDOW_END => {
                return Ok(fold(alias));
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

/// Calls of windows, and the watermarks of what they read.
struct Windowed<'a> {
    catalog: &'a dyn Catalog,
    /// `None` where a call reads something else than a relation with a watermark.
    calls: Vec<Option<Closing>>,
}

impl Looking for Windowed<'_> {
    fn table_factor(&mut self, factor: &TableFactor) -> Look {
        if let TableFactor::Table { name, args: Some(args), .. } = factor
            && let Ok(function) = object_name(name)
            && matches!(function.as_str(), "tumble" | "hop" | "cumulate" | "session")
        {
            let read = args.args.iter().find_map(|arg| match arg {
                FunctionArg::Unnamed(arg) => Some(arg),
                FunctionArg::Named { name, arg, .. } => (fold(name) == "data").then_some(arg),
                FunctionArg::ExprNamed { .. } => None,
            });
            let relation = match read {
                Some(FunctionArgExpr::Expr(Expr::Identifier(relation))) => self.catalog.relation(&fold(relation)),
                _ => None,
            };
            // (A row at the very end of a session's window still belongs to it.)
            let lag = if function == "session" { Lag::Nothing } else { Lag::Ahead };
            let holder = relation.and_then(|relation| relation.watermark_relation);
            self.calls.push(holder.map(|holder| Closing { holder, lag }));
        }
        Look::Continue(())
    }
}
