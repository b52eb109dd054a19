//! The window table function `SESSION`, as the query it stands for.
//!
//! ```text
//!     SESSION(TABLE t [PARTITION BY k, ..], DESCRIPTOR(ts), INTERVAL '5' MINUTES)      Flink: also a column window_time
//!     SESSION(t [PARTITION BY k, ..], ts, INTERVAL '5 minutes')
//! ```
//!
//! A session is a run of rows of a partition in which no row is further than the gap from the one
//! before; its window goes from its first row to a gap after its last. A time with no other time of
//! its partition within the gap before it is the start of a session, and one with none after it the
//! end of one; every row finds the start behind it and the end ahead of it. All of these are as-of
//! joins, so a row that comes or goes costs the rows of the sessions that it joins or parts.
//!
//! The parser has put the columns of the partition behind the other arguments.

use datafusion_expr::sqlparser::ast::{Expr, FunctionArg, FunctionArgExpr, TableFactor};

use super::window_table::{span, table, time_column};
use crate::error::{ErrorKind, Result, SqlError};
use crate::syntax::names::object_name;
use crate::syntax::parse::parse_expr;
use crate::syntax::relation_calls::{SESSION, SESSION_FIRST, SESSION_LAST};
use crate::syntax::span::Span;
use crate::syntax::template::template;

/// The function.
const NAME: &str = "SESSION";

const USAGE: &str = "Write SESSION(table [PARTITION BY column, ..], time column, gap).";

/// Replaces a call by its query.
///
/// # Errors
/// `Invalid` for arguments that do not fit.
pub(super) fn rewrite(factor: &mut TableFactor) -> Result<()> {
    let TableFactor::Table { name, alias, args: Some(args), .. } = factor else { return Ok(()) };
    if object_name(name)? != "session" {
        return Ok(());
    }
    let subquery = template(&query(&args.args)?)?;
    *factor = TableFactor::Derived { lateral: false, subquery, alias: alias.take(), sample: None };
    Ok(())
}

fn query(args: &[FunctionArg]) -> Result<String> {
    let invalid = |message: String| SqlError::new(ErrorKind::Invalid, message).with_hint(USAGE);
    let given = args.iter().map(|arg| match arg {
        FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) => Ok(expr.clone()),
        other => Err(invalid(format!("{NAME} has no such argument: {other}"))),
    });
    let given = given.collect::<Result<Vec<Expr>>>()?;
    let [data, time, gap, partition @ ..] = given.as_slice() else {
        return Err(invalid(format!("{NAME} lacks an argument")));
    };
    let data = table(NAME, data)?;
    let (time, has_window_time) = time_column(NAME, USAGE, time.clone())?;
    let gap = span(NAME, gap.clone())?;
    if gap.amount() <= 0 {
        return Err(invalid(format!("the gap of {NAME} is above zero, not {gap}")));
    }
    if let Some(other) = partition.iter().find(|key| !matches!(key, Expr::Identifier(_) | Expr::CompoundIdentifier(_)))
    {
        return Err(invalid(format!("{NAME} is partitioned by columns, not by {other}")));
    }

    let keys: String = partition.iter().map(|key| format!(", {}", last_part(key))).collect();
    let at = last_part(&parse_expr(&time)?);
    let rows = format!("(SELECT * FROM {data} WHERE ({time}) IS NOT NULL)");
    let end = format!("{SESSION_LAST} + {gap}");
    let window_time = match (has_window_time, &gap) {
        (false, _) => String::new(),
        (true, Span::Ticks(_)) => format!(", {end} - 1 AS window_time"),
        (true, Span::Interval(_)) => format!(", {end} - INTERVAL '1 millisecond' AS window_time"),
    };
    Ok(format!(
        "SELECT * EXCEPT ({SESSION_FIRST}, {SESSION_LAST}), {SESSION_FIRST} AS window_start, \
         {end} AS window_end{window_time} FROM {SESSION}({rows}, {at}, {gap}{keys})"
    ))
}

/// A column without its table.
fn last_part(column: &Expr) -> String {
    match column {
        Expr::CompoundIdentifier(parts) => parts.last().map(ToString::to_string).unwrap_or_default(),
        other => other.to_string(),
    }
}
