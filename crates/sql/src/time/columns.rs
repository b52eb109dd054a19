//! Columns of dates, times and intervals, read from columns of text.

use std::sync::Arc;

use arrow::array::timezone::Tz;
use arrow::array::{
    ArrayRef, AsArray, Date32Array, IntervalMonthDayNanoArray, StringViewArray, Time64MicrosecondArray,
    TimestampMicrosecondArray,
};
use arrow::compute::cast;
use arrow::datatypes::{DataType, IntervalMonthDayNano, IntervalUnit, TimeUnit};
use arrow::error::ArrowError;

use super::calendar::MICROS_A_SECOND;
use super::datetime_input::{Moment, Problem, WantedType, Zone, hours_of, micros_without_zone, read, time_of_day};
use super::interval::{Interval, Qualifier};
use super::interval_input::read_interval;
use crate::functions::at_time_zone::instant_of;
use crate::resolve::type_names::sql_name;

const NANOS_A_MICRO: i64 = 1000;
pub(super) const INTERVAL: DataType = DataType::Interval(IntervalUnit::MonthDayNano);

pub(super) fn texts_of(column: &ArrayRef) -> Result<StringViewArray, ArrowError> {
    Ok(cast(column, &DataType::Utf8View)?.as_string_view().clone())
}

/// The interval as Arrow keeps it; `None` beyond some 292 years of hours.
pub(crate) fn to_arrow(interval: Interval) -> Option<IntervalMonthDayNano> {
    let nanos = interval.micros.checked_mul(NANOS_A_MICRO)?;
    Some(IntervalMonthDayNano::new(interval.months, interval.days, nanos))
}

pub(crate) fn of_arrow(interval: IntervalMonthDayNano) -> Interval {
    Interval { months: interval.months, days: interval.days, micros: interval.nanoseconds / NANOS_A_MICRO }
}

/// Whether texts are read as this type here.
pub(crate) fn is_read(to: &DataType) -> bool {
    matches!(
        to,
        DataType::Date32
            | DataType::Time64(TimeUnit::Microsecond)
            | DataType::Timestamp(TimeUnit::Microsecond, _)
            | DataType::Interval(IntervalUnit::MonthDayNano)
    )
}

/// Texts as values of a type that [`is_read`].
///
/// # Errors
/// The first text that is no value, in PostgreSQL's words.
pub(crate) fn read_texts(texts: &StringViewArray, to: &DataType) -> Result<ArrayRef, String> {
    Ok(match to {
        DataType::Interval(_) => {
            let read = |text: &str| {
                let interval = read_interval(text, Qualifier::default())?;
                to_arrow(interval).ok_or_else(|| format!("interval field value out of range: \"{text}\""))
            };
            Arc::new(each(texts, read)?.into_iter().collect::<IntervalMonthDayNanoArray>())
        }
        DataType::Date32 => {
            let values = moments(texts, to, |moment| {
                if let Some(end) = moment.end {
                    return Ok(end.days());
                }
                i32::try_from(moment.days.ok_or(Problem::Syntax)?).map_err(|_| Problem::OutOfRange)
            })?;
            Arc::new(values.into_iter().collect::<Date32Array>())
        }
        DataType::Time64(_) => {
            Arc::new(moments(texts, to, time_of_day)?.into_iter().collect::<Time64MicrosecondArray>())
        }
        DataType::Timestamp(_, None) => {
            Arc::new(moments(texts, to, micros_without_zone)?.into_iter().collect::<TimestampMicrosecondArray>())
        }
        _ => {
            let values = moments(texts, to, instant)?;
            Arc::new(values.into_iter().collect::<TimestampMicrosecondArray>().with_data_type(to.clone()))
        }
    })
}

fn each<T>(texts: &StringViewArray, read: impl Fn(&str) -> Result<T, String>) -> Result<Vec<Option<T>>, String> {
    texts.iter().map(|text| text.map(&read).transpose()).collect()
}

fn moments<T>(
    texts: &StringViewArray,
    to: &DataType,
    value: impl Fn(&Moment) -> Result<T, Problem>,
) -> Result<Vec<Option<T>>, String> {
    let wanted = if matches!(to, DataType::Time64(_)) { WantedType::Time } else { WantedType::Moment };
    each(texts, |text| {
        read(text, wanted).and_then(|moment| value(&moment)).map_err(|problem| misfit(text, to, problem))
    })
}

/// The instant of a text with its zone, else of UTC.
fn instant(moment: &Moment) -> Result<i64, Problem> {
    let local = micros_without_zone(moment)?;
    if moment.end.is_some() {
        return Ok(local);
    }
    let shifted = match &moment.zone {
        None => Some(local),
        Some(Zone::Offset(seconds)) => local.checked_sub(seconds * MICROS_A_SECOND),
        Some(Zone::Named(name)) => {
            let zone = zone_named(name).ok_or(Problem::Syntax)?;
            instant_of(local, &zone)
        }
    };
    shifted.ok_or(Problem::OutOfRange)
}

/// The zone that a text names where a zone is asked for: an abbreviation, a name, or hours as POSIX
/// counts them, which are west of Greenwich (`+02`, `UTC+2`, `<-02>2`).
pub(crate) fn zone_of(text: &str) -> Option<Tz> {
    let name = text.trim().to_ascii_lowercase();
    let fixed = |minutes: i64| {
        let (sign, minutes) = (if minutes < 0 { '-' } else { '+' }, minutes.abs());
        format!("{sign}{:02}:{:02}", minutes / 60, minutes % 60).parse().ok()
    };
    if let Some(hours) = hours_of(&name) {
        return fixed(hours * 60);
    }
    let is_offset = |text: &str| text.starts_with(['+', '-']) || text.starts_with(|c: char| c.is_ascii_digit());
    let minutes = |text: &str| {
        let (west, digits) = match (text.strip_prefix('-'), text.strip_prefix('+')) {
            (Some(digits), _) => (-1, digits),
            (None, digits) => (1, digits.unwrap_or(text)),
        };
        let mut parts = digits.split(':').map(|part| match part.len() {
            1 | 2 if part.bytes().all(|digit| digit.is_ascii_digit()) => part.parse::<i64>().ok(),
            _ => None,
        });
        let hours = parts.next()??;
        let minutes = parts.next().unwrap_or(Some(0))?;
        (parts.next().is_none() && hours < 24 && minutes < 60).then_some(-west * (hours * 60 + minutes))
    };
    let behind_label = match name.strip_prefix('<').and_then(|rest| rest.split_once('>')) {
        Some((_, offset)) => offset,
        None => name.trim_start_matches(|c: char| c.is_ascii_lowercase()),
    };
    match is_offset(behind_label) {
        true => minutes(behind_label).and_then(fixed).or_else(|| zone_named(&name)),
        false => zone_named(&name),
    }
}

/// A zone by its name in small letters: `america/new_york`.
fn zone_named(name: &str) -> Option<Tz> {
    let capital = |part: &str| {
        let mut chars = part.chars();
        chars.next().map(|first| first.to_ascii_uppercase().to_string() + chars.as_str()).unwrap_or_default()
    };
    let words = |part: &str| part.split('_').map(capital).collect::<Vec<_>>().join("_");
    let titled = name.split('/').map(words).collect::<Vec<_>>().join("/");
    titled.parse().or_else(|_| name.to_ascii_uppercase().parse()).ok()
}

/// What PostgreSQL says of a text that is no value of the type.
fn misfit(text: &str, to: &DataType, problem: Problem) -> String {
    match problem {
        Problem::OutOfRange => format!("date/time field value out of range: \"{text}\""),
        Problem::Refused => format!(
            "\"{text}\" is not supported as a value of type {}: write now(), current_date or a literal ('today'::date) for the present",
            sql_name(to)
        ),
        Problem::Syntax => format!("invalid input syntax for type {}: \"{text}\"", sql_name(to)),
    }
}
