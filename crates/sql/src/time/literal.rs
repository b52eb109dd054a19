//! Literals and casts of times and intervals on the syntax tree: what DataFusion reads otherwise,
//! or whose precision it drops.
//!
//! An interval is read here and written again as `2 months 3 days 4000000 microseconds`, which says
//! the same to all.

use datafusion_expr::sqlparser::ast::{
    self, DataType, DateTimeField, Expr, IntervalFields, TimezoneInfo, UnaryOperator, Value,
};

use super::columns::to_arrow;
use super::interval::{Field, Interval, PRECISION_MAX, Qualifier};
use super::interval_input::read_interval;
use crate::error::{ErrorKind, Result, SqlError};
use crate::syntax::parse::parse_expr;
use crate::time::precision::{digits, precision_of};

/// Rewrites one expression whose parts are done; `None` leaves it as it is.
///
/// # Errors
/// A text that is no interval; fields that no interval has.
pub(crate) fn rewrite(expr: &Expr) -> Result<Option<Expr>> {
    match expr {
        Expr::Interval(interval) => {
            let text = match interval.value.as_ref() {
                Expr::Value(value) => match &value.value {
                    Value::SingleQuotedString(text) | Value::Number(text, _) => text,
                    _ => return Ok(None),
                },
                _ => return Ok(None),
            };
            match &interval.leading_field {
                // `INTERVAL '2' WEEK`: PostgreSQL has no such field, but the unit.
                Some(unit) if field_of(unit).is_none() && interval.last_field.is_none() => {
                    read_literal(&format!("{text} {unit}"), Qualifier::default()).map(Some)
                }
                _ => read_literal(text, qualifier_of(interval)?).map(Some),
            }
        }
        Expr::UnaryOp { op: UnaryOperator::Minus, expr } => match expr.as_ref() {
            Expr::Interval(interval) => negated(interval),
            _ => Ok(None),
        },
        Expr::TypedString(typed) => cast(&Expr::Value(typed.value.clone()), &typed.data_type),
        Expr::Cast { expr, data_type, array: false, .. } => cast(expr, data_type),
        _ => Ok(None),
    }
}

fn negated(interval: &ast::Interval) -> Result<Option<Expr>> {
    let Expr::Value(value) = interval.value.as_ref() else { return Ok(None) };
    let Value::SingleQuotedString(text) = &value.value else { return Ok(None) };
    let read = read_interval(text, Qualifier::default()).map_err(invalid)?;
    let negated = read.negated().ok_or_else(|| invalid("interval out of range".into()))?;
    Ok(Some(spelt(negated)))
}

/// A cast whose type has a precision or fields, or of a literal to an interval.
fn cast(value: &Expr, data_type: &DataType) -> Result<Option<Expr>> {
    if let DataType::Interval { fields, precision } = data_type {
        let qualifier = Qualifier { fields: fields.as_ref().map(fields_of), precision: precision.map(digits) };
        if let Expr::Value(literal) = value
            && let Value::SingleQuotedString(text) = &literal.value
        {
            return read_literal(text, qualifier).map(Some);
        }
        if qualifier == Qualifier::default() {
            return Ok(None);
        }
        let last = qualifier.fields.map_or(Field::Second, |(_, last)| last);
        let digits = qualifier.precision.unwrap_or(PRECISION_MAX);
        return parse_expr(&format!("cut_interval(CAST({value} AS interval), '{last:?}', {digits})")).map(Some);
    }
    if let Expr::Value(literal) = value
        && let Value::SingleQuotedString(text) = &literal.value
        && let Some(moment) = moment(text, data_type)
    {
        return parse_expr(moment).map(Some);
    }
    let Some((plain, digits)) = precision_of(data_type) else { return Ok(None) };
    parse_expr(&format!("round_time(CAST({value} AS {plain}), {digits})")).map(Some)
}

/// What a word stands for among the values of a type: the moment of the statement, or a day near
/// it.
fn moment(text: &str, data_type: &DataType) -> Option<&'static str> {
    let is_zoned = matches!(data_type, DataType::Timestamp(_, TimezoneInfo::Tz | TimezoneInfo::WithTimeZone));
    Some(match (data_type, text.trim().to_ascii_lowercase().as_str()) {
        (DataType::Date, "now" | "today") => "current_date",
        (DataType::Date, "tomorrow") => "(current_date + 1)",
        (DataType::Date, "yesterday") => "(current_date - 1)",
        (DataType::Timestamp(..), "now") if is_zoned => "now()",
        (DataType::Timestamp(..), "today") if is_zoned => "CAST(current_date AS timestamptz)",
        (DataType::Timestamp(..), "tomorrow") if is_zoned => "CAST(current_date + 1 AS timestamptz)",
        (DataType::Timestamp(..), "yesterday") if is_zoned => "CAST(current_date - 1 AS timestamptz)",
        (DataType::Timestamp(..), "now") => "CAST(now() AS timestamp)",
        (DataType::Timestamp(..), "today") => "CAST(current_date AS timestamp)",
        (DataType::Timestamp(..), "tomorrow") => "CAST(current_date + 1 AS timestamp)",
        (DataType::Timestamp(..), "yesterday") => "CAST(current_date - 1 AS timestamp)",
        (DataType::Time(..), "now") => "localtime",
        _ => return None,
    })
}

fn read_literal(text: &str, qualifier: Qualifier) -> Result<Expr> {
    let interval = read_interval(text, qualifier).map_err(invalid)?;
    if to_arrow(interval).is_none() {
        return Err(invalid(format!("interval field value out of range: \"{text}\"")));
    }
    Ok(spelt(interval))
}

fn invalid(problem: String) -> SqlError {
    SqlError::new(ErrorKind::Invalid, problem)
}

/// The literal that all read alike.
fn spelt(interval: Interval) -> Expr {
    let Interval { months, days, micros } = interval;
    let text = format!("{months} months {days} days {micros} microseconds");
    Expr::Interval(ast::Interval {
        value: Box::new(Expr::value(Value::SingleQuotedString(text))),
        leading_field: None,
        leading_precision: None,
        last_field: None,
        fractional_seconds_precision: None,
    })
}

/// `INTERVAL '90' DAY (3)`: the precision of the leading field says nothing about the value.
fn qualifier_of(interval: &ast::Interval) -> Result<Qualifier> {
    let known = |field: &DateTimeField| {
        let hint = "Write the units within the quotes: INTERVAL '2 weeks 1 day'.";
        field_of(field).ok_or_else(|| SqlError::unsupported(format!("interval field {field}"), hint))
    };
    let first = interval.leading_field.as_ref().map(known).transpose()?;
    let last = interval.last_field.as_ref().map(known).transpose()?;
    let fields = first.map(|first| (first, last.unwrap_or(first)));
    let seconds = match interval.leading_field {
        // `SECOND (3)` is written like a precision of the leading field.
        Some(DateTimeField::Second | DateTimeField::Seconds) => {
            interval.fractional_seconds_precision.or(interval.leading_precision)
        }
        _ => interval.fractional_seconds_precision,
    };
    Ok(Qualifier { fields, precision: seconds.map(digits) })
}

fn field_of(field: &DateTimeField) -> Option<Field> {
    Some(match field {
        DateTimeField::Year | DateTimeField::Years => Field::Year,
        DateTimeField::Month | DateTimeField::Months => Field::Month,
        DateTimeField::Day | DateTimeField::Days => Field::Day,
        DateTimeField::Hour | DateTimeField::Hours => Field::Hour,
        DateTimeField::Minute | DateTimeField::Minutes => Field::Minute,
        DateTimeField::Second | DateTimeField::Seconds => Field::Second,
        _ => return None,
    })
}

fn fields_of(fields: &IntervalFields) -> (Field, Field) {
    use IntervalFields as F;
    match fields {
        F::Year => (Field::Year, Field::Year),
        F::Month => (Field::Month, Field::Month),
        F::Day => (Field::Day, Field::Day),
        F::Hour => (Field::Hour, Field::Hour),
        F::Minute => (Field::Minute, Field::Minute),
        F::Second => (Field::Second, Field::Second),
        F::YearToMonth => (Field::Year, Field::Month),
        F::DayToHour => (Field::Day, Field::Hour),
        F::DayToMinute => (Field::Day, Field::Minute),
        F::DayToSecond => (Field::Day, Field::Second),
        F::HourToMinute => (Field::Hour, Field::Minute),
        F::HourToSecond => (Field::Hour, Field::Second),
        F::MinuteToSecond => (Field::Minute, Field::Second),
    }
}
