//! Bounds of computed values: of expressions that rise with the columns they read.
//!
//! Law: if `f` never falls as its columns rise, and each of them is at or above its bound, then
//! `f(columns)` is at or above `f(bounds)`. Not in the list, since they fall somewhere: `%`, parts
//! of a date, months added to a time, days of a zone with summer time, a difference of two columns.

use arrow::datatypes::{DataType, TimeUnit};
use datafusion_common::{DFSchema, ScalarValue};
use datafusion_expr::{BinaryExpr, Expr, ExprSchemable, Operator};

use super::bound::Bound;
use crate::positions::position_near;

const MICROS_A_DAY: i64 = 86_400_000_000;

/// The bounds of expressions over columns with these bounds.
pub(super) fn bounds_of(exprs: &[Expr], schema: &DFSchema, bounds: &[Option<Bound>]) -> Vec<Option<Bound>> {
    let of = |(at, expr): (usize, &Expr)| match position_near(expr, schema, at) {
        Some(at) => bounds.get(at)?.clone(),
        None => bound_of(expr, schema, bounds),
    };
    exprs.iter().enumerate().map(of).collect()
}

/// The bound of an expression over columns with these bounds. Of a list it is that of its elements.
pub(super) fn bound_of(expr: &Expr, schema: &DFSchema, bounds: &[Option<Bound>]) -> Option<Bound> {
    match expr {
        Expr::Column(column) => bounds.get(schema.maybe_index_of_column(column)?)?.clone(),
        Expr::Alias(alias) => bound_of(&alias.expr, schema, bounds),
        Expr::Cast(cast) => {
            let from = cast.expr.get_type(schema).ok()?;
            scaled(bound_of(&cast.expr, schema, bounds)?, &from, cast.field.data_type())
        }
        expr if matches!(expr, Expr::BinaryExpr(_)) || days_added(expr).is_some() => {
            let (inner, ticks) = shifted(expr, schema)?;
            Some(bound_of(inner, schema, bounds)?.plus(ticks))
        }
        Expr::ScalarFunction(call) => of_call(call.func.name(), &call.args, schema, bounds),
        _ => None,
    }
}

fn of_call(name: &str, args: &[Expr], schema: &DFSchema, bounds: &[Option<Bound>]) -> Option<Bound> {
    match (name, args) {
        ("window_floor", [Expr::Literal(size, _), time]) => {
            let from = time.get_type(schema).ok()?;
            let bound = bound_of(time, schema, bounds)?;
            match size {
                ScalarValue::IntervalMonthDayNano(_) => {
                    let unit = DataType::Timestamp(TimeUnit::Microsecond, None);
                    let bound = scaled(bound, &without_zone(&from), &unit)?;
                    Some(Bound::Floor(Box::new(bound), interval_ticks(size, TimeUnit::Microsecond)?))
                }
                size => Some(Bound::Floor(Box::new(bound), whole(size).filter(|size| *size > 0)?)),
            }
        }
        ("date_trunc", [Expr::Literal(unit, _), time]) => {
            let DataType::Timestamp(of, zone) = time.get_type(schema).ok()? else { return None };
            if !is_steady(&zone) {
                return None;
            }
            let bound = bound_of(time, schema, bounds)?;
            let micros = match unit.try_as_str()??.to_lowercase().as_str() {
                "microsecond" | "microseconds" => 1,
                "millisecond" | "milliseconds" => 1_000,
                "second" => 1_000_000,
                "minute" => 60_000_000,
                "hour" => 3_600_000_000,
                "day" => MICROS_A_DAY,
                // (Truncating goes back no further than that.)
                "week" => return Some(bound.plus(-ticks_of(7 * MICROS_A_DAY, of))),
                "month" => return Some(bound.plus(-ticks_of(31 * MICROS_A_DAY, of))),
                "quarter" => return Some(bound.plus(-ticks_of(92 * MICROS_A_DAY, of))),
                "year" => return Some(bound.plus(-ticks_of(366 * MICROS_A_DAY, of))),
                _ => return None,
            };
            Some(Bound::Floor(Box::new(bound), ticks_of(micros, of).max(1)))
        }
        ("make_array", [first, rest @ ..]) => {
            rest.iter().try_fold(bound_of(first, schema, bounds)?, |least, element| {
                Some(least.least(bound_of(element, schema, bounds)?))
            })
        }
        _ => None,
    }
}

/// The expression without a constant that is added to it, and that constant in ticks.
pub(crate) fn shifted<'a>(expr: &'a Expr, schema: &DFSchema) -> Option<(&'a Expr, i64)> {
    let (inner, constant, sign) = match (days_added(expr), expr) {
        (Some(added), _) => added,
        (None, Expr::BinaryExpr(BinaryExpr { left, op, right })) => match (op, left.as_ref(), right.as_ref()) {
            (Operator::Plus, inner, Expr::Literal(constant, _)) => (inner, constant, 1),
            (Operator::Plus, Expr::Literal(constant, _), inner) => (inner, constant, 1),
            (Operator::Minus, inner, Expr::Literal(constant, _)) => (inner, constant, -1),
            _ => return None,
        },
        _ => return Some((expr, 0)),
    };
    let of = inner.get_type(schema).ok()?;
    if expr.get_type(schema).ok()? != of {
        return None;
    }
    let ticks = match &of {
        DataType::Timestamp(unit, zone) => {
            let has_days = matches!(constant, ScalarValue::IntervalMonthDayNano(Some(span)) if span.days != 0);
            if has_days && !is_steady(zone) {
                return None;
            }
            interval_ticks(constant, *unit)?
        }
        of if of.is_integer() || matches!(of, DataType::Decimal128(_, 0)) => whole(constant)?,
        DataType::Date32 => whole(constant).or_else(|| whole_days(constant))?,
        _ => return None,
    };
    let (inner, more) = shifted(inner, schema)?;
    Some((inner, ticks.checked_mul(sign)?.checked_add(more)?))
}

/// A date to which a constant number of days is added, that number, and its sign.
fn days_added(expr: &Expr) -> Option<(&Expr, &ScalarValue, i64)> {
    let Expr::ScalarFunction(call) = expr else { return None };
    let [date, Expr::Literal(days, _)] = &call.args[..] else { return None };
    match call.func.name() {
        "date_add_days" => Some((date, days, 1)),
        "date_subtract_days" => Some((date, days, -1)),
        _ => None,
    }
}

/// Whether all days of a zone are as long, and local time is that of UTC.
fn is_steady(zone: &Option<std::sync::Arc<str>>) -> bool {
    matches!(zone.as_deref(), None | Some("UTC" | "+00:00" | "Z"))
}

/// A bound in ticks of one type as one in ticks of another, if a cast between the two keeps the
/// order.
fn scaled(bound: Bound, from: &DataType, to: &DataType) -> Option<Bound> {
    let (from, to) = match (from, to) {
        (from, to) if from == to => return Some(bound),
        (from, to) if from.is_signed_integer() && to.is_signed_integer() => return Some(bound),
        (from, DataType::Decimal128(_, 0)) if from.is_signed_integer() => return Some(bound),
        (DataType::Timestamp(from, a), DataType::Timestamp(to, b)) if a == b || is_steady(a) && is_steady(b) => {
            (ticks_a_day(*from), ticks_a_day(*to))
        }
        (DataType::Timestamp(from, zone), DataType::Date32) if is_steady(zone) => (ticks_a_day(*from), 1),
        (DataType::Date32, DataType::Timestamp(to, zone)) if is_steady(zone) => (1, ticks_a_day(*to)),
        _ => return None,
    };
    // (Casts to a coarser unit may round towards zero: one tick less is surely low enough.)
    let rounds = i64::from(to < from);
    Some(match to >= from {
        true => Bound::Scaled(Box::new(bound), to / from, 1),
        false => Bound::Scaled(Box::new(bound), 1, from / to).plus(-rounds),
    })
}

fn without_zone(data_type: &DataType) -> DataType {
    match data_type {
        DataType::Timestamp(unit, _) => DataType::Timestamp(*unit, None),
        other => other.clone(),
    }
}

fn ticks_a_day(unit: TimeUnit) -> i64 {
    86_400
        * match unit {
            TimeUnit::Second => 1,
            TimeUnit::Millisecond => 1_000,
            TimeUnit::Microsecond => 1_000_000,
            TimeUnit::Nanosecond => 1_000_000_000,
        }
}

/// Microseconds in ticks of a unit, rounded up in size.
fn ticks_of(micros: i64, unit: TimeUnit) -> i64 {
    let ticks = i128::from(micros) * i128::from(ticks_a_day(unit)) / i128::from(MICROS_A_DAY);
    i64::try_from(ticks).unwrap_or(i64::MAX)
}

/// An interval without months in ticks of a unit, if it is a whole number of them.
fn interval_ticks(interval: &ScalarValue, unit: TimeUnit) -> Option<i64> {
    let nanos = match interval {
        ScalarValue::IntervalMonthDayNano(Some(span)) if span.months == 0 => {
            i128::from(span.days) * i128::from(MICROS_A_DAY) * 1000 + i128::from(span.nanoseconds)
        }
        ScalarValue::DurationMicrosecond(Some(micros)) => i128::from(*micros) * 1000,
        _ => return None,
    };
    let nanos_a_tick = i128::from(MICROS_A_DAY) * 1000 / i128::from(ticks_a_day(unit));
    if nanos % nanos_a_tick != 0 {
        return None;
    }
    i64::try_from(nanos / nanos_a_tick).ok()
}

/// An interval of days alone.
fn whole_days(interval: &ScalarValue) -> Option<i64> {
    let micros = interval_ticks(interval, TimeUnit::Microsecond)?;
    (micros % MICROS_A_DAY == 0).then_some(micros / MICROS_A_DAY)
}

/// A whole number.
pub(crate) fn whole(value: &ScalarValue) -> Option<i64> {
    match value {
        ScalarValue::Int64(value) => *value,
        ScalarValue::Int32(value) => value.map(i64::from),
        ScalarValue::Int16(value) => value.map(i64::from),
        ScalarValue::Decimal128(value, _, 0) => i64::try_from((*value)?).ok(),
        _ => None,
    }
}
