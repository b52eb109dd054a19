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
use crate::syntax::relation_calls::{ASOF_INNER, ASOF_LEFT};
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

    let keys: String = partition.iter().enumerate().map(|(n, key)| format!("{key} AS __k{n}, ")).collect();
    let times = format!("(SELECT DISTINCT {keys}{time} AS __ts FROM {data} WHERE ({time}) IS NOT NULL)");
    // The times with no other one of their partition within the gap on one side.
    let ends = |comparison: &str, bound: String| {
        let keys: String = (0..partition.len()).map(|n| format!("__a.__k{n}, ")).collect();
        let on: String =
            (0..partition.len()).map(|n| format!("(__a.__k{n} IS NOT DISTINCT FROM __b.__k{n}) AND ")).collect();
        format!(
            "(SELECT {keys}__a.__ts FROM {times} AS __a ASOF JOIN {times} AS __b MATCH_CONDITION ({ASOF_LEFT}()) ON {on}__a.__ts {comparison} __b.__ts AND {bound} WHERE __b.__ts IS NULL)"
        )
    };
    let starts = ends(">", format!("__b.__ts >= __a.__ts - {gap}"));
    let lasts = ends("<", format!("__b.__ts <= __a.__ts + {gap}"));
    let on = |side: &str| -> String {
        let keys = partition.iter().enumerate();
        keys.map(|(n, key)| format!("(__r.{} IS NOT DISTINCT FROM {side}.__k{n}) AND ", last_part(key))).collect()
    };
    let (of_start, of_last) = (on("__s"), on("__e"));
    let end = format!("__e.__ts + {gap}");
    let window_time = match (has_window_time, &gap) {
        (false, _) => String::new(),
        (true, Span::Ticks(_)) => format!(", {end} - 1 AS window_time"),
        (true, Span::Interval(_)) => format!(", {end} - INTERVAL '1 millisecond' AS window_time"),
    };
    let rows = format!("(SELECT * FROM {data} WHERE ({time}) IS NOT NULL)");
    let at = format!("__r.{}", last_part(&parse_expr(&time)?));
    Ok(format!(
        "SELECT __r.*, __s.__ts AS window_start, {end} AS window_end{window_time} FROM {rows} AS __r \
         ASOF JOIN {starts} AS __s MATCH_CONDITION ({ASOF_INNER}()) ON {of_start}{at} >= __s.__ts \
         ASOF JOIN {lasts} AS __e MATCH_CONDITION ({ASOF_INNER}()) ON {of_last}{at} <= __e.__ts"
    ))
}

/// A column without its table.
fn last_part(column: &Expr) -> String {
    match column {
        Expr::CompoundIdentifier(parts) => parts.last().map(ToString::to_string).unwrap_or_default(),
        other => other.to_string(),
    }
}
