//! Dates and timestamps, computed and compared as in PostgreSQL: rewritten on the resolved plan,
//! where types decide.
//!
//! - A date that is compared with a timestamp is made one of microseconds; DataFusion would make
//!   both of nanoseconds.
//! - A date whose parts are cut off is a `timestamptz`.
//! - A difference of timestamps has days; DataFusion would count hours only.

use std::sync::Arc;

use arrow::datatypes::{DataType, IntervalUnit, TimeUnit};
use datafusion_common::tree_node::Transformed;
use datafusion_common::{DFSchema, Result as DfResult, ScalarValue};
use datafusion_expr::{BinaryExpr, Expr, ExprSchemable, Operator, cast};

use crate::functions::conversions::TimestampDifference;
use crate::resolve::type_names::{UTC, is_text};

/// A date beside a timestamp: compared as dates where the timestamp is a date moved by whole days,
/// else in microseconds.
pub(crate) fn compare_dates(expr: Expr, schema: &DFSchema) -> DfResult<Transformed<Expr>> {
    let Expr::BinaryExpr(BinaryExpr { left, op, right }) = &expr else {
        return Ok(Transformed::no(expr));
    };
    if !op.supports_propagation() {
        return Ok(Transformed::no(expr));
    }
    let (Ok(l), Ok(r)) = (left.get_type(schema), right.get_type(schema)) else {
        return Ok(Transformed::no(expr));
    };
    let (left, right) = match (l, r) {
        (DataType::Date32, DataType::Timestamp(_, zone)) => match moved_by_days(right, schema) {
            Some(date) => (left.as_ref().clone(), date),
            None => (timestamp(left, zone), right.as_ref().clone()),
        },
        (DataType::Timestamp(_, zone), DataType::Date32) => match moved_by_days(left, schema) {
            Some(date) => (date, right.as_ref().clone()),
            None => (left.as_ref().clone(), timestamp(right, zone)),
        },
        _ => return Ok(Transformed::no(expr)),
    };
    Ok(Transformed::yes(Expr::BinaryExpr(BinaryExpr::new(Box::new(left), *op, Box::new(right)))))
}

fn timestamp(date: &Expr, zone: Option<Arc<str>>) -> Expr {
    cast(date.clone(), DataType::Timestamp(TimeUnit::Microsecond, zone))
}

/// Days from the epoch within which the planner computes: 200,000 years.
const FOLDED_DAYS_MAX: u32 = 73_000_000;

/// `date ± interval` of the timestamp that `functions::planner` made of it, where the interval has
/// whole days.
fn moved_by_days(expr: &Expr, schema: &DFSchema) -> Option<Expr> {
    let Expr::BinaryExpr(BinaryExpr { left, op: op @ (Operator::Plus | Operator::Minus), right }) = expr else {
        return None;
    };
    let (Expr::Cast(date), Expr::Literal(ScalarValue::IntervalMonthDayNano(Some(interval)), _)) =
        (left.as_ref(), right.as_ref())
    else {
        return None;
    };
    // (`TIMESTAMP '..'` is a cast, too, of a text.)
    if date.expr.get_type(schema).ok()? != DataType::Date32 {
        return None;
    }
    // (The planner folds dates within the years that its calendar has.)
    if matches!(date.expr.as_ref(), Expr::Literal(ScalarValue::Date32(Some(days)), _) if days.unsigned_abs() > FOLDED_DAYS_MAX)
    {
        return None;
    }
    (interval.nanoseconds == 0).then(|| Expr::BinaryExpr(BinaryExpr::new(date.expr.clone(), *op, right.clone())))
}

/// The name that DataFusion knows of a unit, if PostgreSQL has others for it.
fn unit(name: &str) -> Option<&'static str> {
    let name = name.trim().to_lowercase();
    Some(match name.as_str() {
        "us" | "usec" | "usecs" | "useconds" | "microseconds" | "microsecon" => "microsecond",
        "ms" | "msec" | "msecs" | "mseconds" | "milliseconds" => "millisecond",
        "s" | "sec" | "secs" | "seconds" => "second",
        "m" | "min" | "mins" | "minutes" => "minute",
        "h" | "hr" | "hrs" | "hours" => "hour",
        "d" | "days" => "day",
        "w" | "weeks" => "week",
        "mon" | "mons" | "months" => "month",
        "qtr" => "quarter",
        "y" | "yr" | "yrs" | "years" => "year",
        _ => return None,
    })
}

/// `date_trunc`, `date_bin` and `generate_series`: dates are the `timestamptz` of their midnights,
/// literals in quotes are moments and intervals.
pub(crate) fn cut_dates(expr: Expr, schema: &DFSchema) -> DfResult<Transformed<Expr>> {
    let Expr::ScalarFunction(mut call) = expr else { return Ok(Transformed::no(expr)) };
    if !matches!(call.func.name(), "date_trunc" | "date_bin" | "generate_series") {
        return Ok(Transformed::no(Expr::ScalarFunction(call)));
    }
    let mut is_changed = false;
    if call.func.name() == "date_trunc"
        && let Some(Expr::Literal(name, _)) = call.args.first_mut()
        && let Some(known) = name.try_as_str().flatten().and_then(unit)
    {
        *name = ScalarValue::from(known);
        is_changed = true;
    }
    let types: Vec<DataType> = call.args.iter().filter_map(|arg| arg.get_type(schema).ok()).collect();
    let is_moment = |is: &DataType| matches!(is, DataType::Date32 | DataType::Timestamp(..));
    let is_of_moments = call.func.name() != "generate_series" || types.iter().any(is_moment);
    if types.len() != call.args.len() || !is_of_moments {
        let call = Expr::ScalarFunction(call);
        return Ok(if is_changed { Transformed::yes(call) } else { Transformed::no(call) });
    }
    let is_local = types.iter().any(|is| matches!(is, DataType::Timestamp(_, None)));
    let zone = || if is_local { None } else { Some(Arc::from(UTC)) };
    for (at, (arg, is)) in call.args.iter_mut().zip(&types).enumerate() {
        let is_literal = matches!(arg, Expr::Literal(..)) && is_text(is);
        let to = match (call.func.name(), at) {
            (_, _) if *is == DataType::Date32 => DataType::Timestamp(TimeUnit::Microsecond, Some(Arc::from(UTC))),
            ("date_trunc", 1) if is_literal => DataType::Timestamp(TimeUnit::Microsecond, zone()),
            ("date_bin", 0) | ("generate_series", 2) if is_literal => DataType::Interval(IntervalUnit::MonthDayNano),
            ("date_bin", 1 | 2) | ("generate_series", 0 | 1) if is_literal => {
                DataType::Timestamp(TimeUnit::Microsecond, zone())
            }
            _ => continue,
        };
        *arg = cast(arg.clone(), to);
        is_changed = true;
    }
    let call = Expr::ScalarFunction(call);
    Ok(if is_changed { Transformed::yes(call) } else { Transformed::no(call) })
}

/// A difference of timestamps has days.
pub(crate) fn timestamp_difference(expr: Expr, schema: &DFSchema) -> DfResult<Transformed<Expr>> {
    let Expr::BinaryExpr(BinaryExpr { left, op: Operator::Minus, right }) = &expr else {
        return Ok(Transformed::no(expr));
    };
    let is_timestamp = |e: &Expr| e.get_type(schema).is_ok_and(|is| matches!(is, DataType::Timestamp(_, _)));
    if !is_timestamp(left) || !is_timestamp(right) {
        return Ok(Transformed::no(expr));
    }
    let difference = TimestampDifference::udf().call(vec![left.as_ref().clone(), right.as_ref().clone()]);
    Ok(Transformed::yes(difference))
}
