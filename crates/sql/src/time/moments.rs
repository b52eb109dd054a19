//! Dates and timestamps as whole numbers, of which the greatest and the least stand for `infinity`
//! and `-infinity`, as in PostgreSQL; and what is computed of columns of them.
//!
//! Law: what is infinite stays infinite in every cast and sum; what is finite stays within the
//! range of its type, or is an error. Sums are PostgreSQL's: months first (the day is cut to the
//! month's last), then days, then the rest. Cost: one pass; months cost a few divisions a row.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, PrimitiveArray};
use arrow::compute::try_binary;
use arrow::datatypes::{
    DataType, Date32Type, IntervalMonthDayNano, IntervalMonthDayNanoType, IntervalUnit, Time64MicrosecondType,
    TimeUnit, TimestampMicrosecondType,
};
use arrow::error::ArrowError;

use super::calendar::{Civil, MICROS_A_DAY, civil, days_of, days_of_month, micros_of};
use super::interval::Interval;

const TIMESTAMP_OUT_OF_RANGE: &str = "timestamp out of range";
/// The first date of PostgreSQL, 4714-11-24 BC, and the day after its last, 5874897-12-31.
const DATES: std::ops::Range<i64> = -2_440_588..2_145_042_906;

/// Which end of time a value is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    Infinity,
    NegativeInfinity,
}

impl End {
    /// The end that a timestamp is.
    pub(crate) fn of_micros(micros: i64) -> Option<End> {
        match micros {
            i64::MAX => Some(End::Infinity),
            i64::MIN => Some(End::NegativeInfinity),
            _ => None,
        }
    }

    /// The end that a date is.
    pub(crate) fn of_days(days: i32) -> Option<End> {
        match days {
            i32::MAX => Some(End::Infinity),
            i32::MIN => Some(End::NegativeInfinity),
            _ => None,
        }
    }

    /// The end that a text names, whatever the case of its letters.
    pub(crate) fn named(text: &str) -> Option<End> {
        let text = text.trim();
        let (is_negative, word) = match text.strip_prefix('-') {
            Some(word) => (true, word.trim_start()),
            None => (false, text),
        };
        match (word.eq_ignore_ascii_case("infinity"), is_negative) {
            (true, false) => Some(End::Infinity),
            (true, true) => Some(End::NegativeInfinity),
            (false, _) => None,
        }
    }

    pub(crate) fn micros(self) -> i64 {
        if self == End::Infinity { i64::MAX } else { i64::MIN }
    }

    pub(crate) fn days(self) -> i32 {
        if self == End::Infinity { i32::MAX } else { i32::MIN }
    }

    pub(crate) fn float(self) -> f64 {
        if self == End::Infinity { f64::INFINITY } else { f64::NEG_INFINITY }
    }

    pub(crate) fn text(self) -> &'static str {
        if self == End::Infinity { "infinity" } else { "-infinity" }
    }
}

/// The date of a timestamp.
pub(crate) fn date_of(micros: i64) -> i32 {
    match End::of_micros(micros) {
        Some(end) => end.days(),
        // (A timestamp has some 107 million days.)
        None => micros.div_euclid(MICROS_A_DAY) as i32,
    }
}

/// The midnight of a date; `None` out of range.
pub(crate) fn midnight_of(days: i32) -> Option<i64> {
    match End::of_days(days) {
        Some(end) => Some(end.micros()),
        None => micros_of(i64::from(days), 0),
    }
}

/// A date moved by days; `None` out of range.
pub(crate) fn date_moved(date: i32, days: Option<i64>) -> Option<i32> {
    match End::of_days(date) {
        Some(_) => Some(date),
        None => days.filter(|days| DATES.contains(days)).and_then(|days| i32::try_from(days).ok()),
    }
}

/// Columns of moments, in microseconds since the epoch; dates are their midnights.
///
/// # Errors
/// A date beyond all timestamps.
pub(crate) fn micros_column(column: &ArrayRef) -> Result<PrimitiveArray<TimestampMicrosecondType>, ArrowError> {
    let moments = match column.data_type() {
        DataType::Date32 => cast_moments(column, &DataType::Timestamp(TimeUnit::Microsecond, None)),
        _ => None,
    };
    let moments = match moments {
        Some(moments) => moments?,
        None if matches!(column.data_type(), DataType::Timestamp(TimeUnit::Microsecond, _)) => column.clone(),
        None => arrow::compute::cast(column, &DataType::Timestamp(TimeUnit::Microsecond, None))?,
    };
    let moments = moments.as_primitive::<TimestampMicrosecondType>().clone();
    Ok(moments.with_data_type(DataType::Timestamp(TimeUnit::Microsecond, None)))
}

/// Whether [`cast_moments`] makes values of the second type of values of the first.
pub fn casts_moments(from: &DataType, to: &DataType) -> bool {
    use DataType::{Date32, Time64, Timestamp};
    const UNIT: TimeUnit = TimeUnit::Microsecond;
    let is_utc = |zone: &Option<Arc<str>>| matches!(zone.as_deref(), None | Some("UTC" | "+00:00"));
    if let (Timestamp(UNIT, from), Timestamp(UNIT, to)) = (from, to) {
        return is_utc(from) && is_utc(to);
    }
    matches!(
        (from, to),
        (Date32, Timestamp(UNIT, _)) | (Timestamp(UNIT, _), Date32) | (Timestamp(UNIT, _), Time64(UNIT))
    )
}

/// Dates as timestamps, timestamps as dates, with and without a zone, and as times of day, which
/// what is infinite has not: it is NULL. `None` for other casts. Zones are UTC.
pub fn cast_moments(column: &ArrayRef, to: &DataType) -> Option<Result<ArrayRef, ArrowError>> {
    if !casts_moments(column.data_type(), to) {
        return None;
    }
    Some(match (column.data_type(), to) {
        (DataType::Date32, _) => {
            let midnight = |days| midnight_of(days).ok_or_else(|| out_of_range("date out of range for timestamp"));
            let moments = column.as_primitive::<Date32Type>().try_unary::<_, TimestampMicrosecondType, _>(midnight);
            moments.map(|moments| Arc::new(moments.with_data_type(to.clone())) as ArrayRef)
        }
        (_, DataType::Timestamp(..)) => {
            let moments = column.as_primitive::<TimestampMicrosecondType>().clone();
            Ok(Arc::new(moments.with_data_type(to.clone())))
        }
        (_, DataType::Date32) => {
            let moments = column.as_primitive::<TimestampMicrosecondType>();
            Ok(Arc::new(moments.unary::<_, Date32Type>(date_of)))
        }
        _ => {
            let moments = column.as_primitive::<TimestampMicrosecondType>();
            let clock = |micros: i64| End::of_micros(micros).is_none().then(|| micros.rem_euclid(MICROS_A_DAY));
            Ok(Arc::new(moments.unary_opt::<_, Time64MicrosecondType>(clock)))
        }
    })
}

fn out_of_range(problem: &str) -> ArrowError {
    ArrowError::ComputeError(problem.to_owned())
}

/// Which way an interval moves a moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MomentShift {
    /// Added to it.
    Later,
    /// Taken from it.
    Earlier,
}

/// A moment moved by an interval; `None` out of range.
pub(crate) fn moved(micros: i64, by: Interval, way: MomentShift) -> Option<i64> {
    if End::of_micros(micros).is_some() {
        return Some(micros);
    }
    let sign = if way == MomentShift::Later { 1 } else { -1 };
    let (mut days, time) = (micros.div_euclid(MICROS_A_DAY), micros.rem_euclid(MICROS_A_DAY));
    if by.months != 0 {
        let Civil { year, month, day } = civil(days);
        let months = year * 12 + month - 1 + sign * i64::from(by.months);
        let (year, month) = (months.div_euclid(12), months.rem_euclid(12) + 1);
        days = days_of(Civil { year, month, day: day.min(days_of_month(year, month)) });
        micros_of(days, time)?;
    }
    let days = days + sign * i64::from(by.days);
    let moment = micros_of(days, time)?.checked_add(by.micros.checked_mul(sign)?)?;
    micros_of(0, moment)
}

/// Whether [`move_moments`] moves values of the first type by values of the second.
pub fn moves_moments(moments: &DataType, intervals: &DataType) -> bool {
    matches!(moments, DataType::Date32 | DataType::Timestamp(TimeUnit::Microsecond, _))
        && *intervals == DataType::Interval(IntervalUnit::MonthDayNano)
}

/// Moments moved by intervals, of the type of the moments.
///
/// # Errors
/// A moment that leaves the range of its type.
pub fn move_moments(moments: &ArrayRef, intervals: &ArrayRef, way: MomentShift) -> Result<ArrayRef, ArrowError> {
    let times = micros_column(moments)?;
    let by = intervals.as_primitive::<IntervalMonthDayNanoType>();
    let interval =
        |by: IntervalMonthDayNano| Interval { months: by.months, days: by.days, micros: by.nanoseconds / 1000 };
    let move_one = |micros, by| moved(micros, interval(by), way).ok_or_else(|| out_of_range(TIMESTAMP_OUT_OF_RANGE));
    let moved: PrimitiveArray<TimestampMicrosecondType> = try_binary(&times, by, move_one)?;
    Ok(match moments.data_type() {
        DataType::Date32 => Arc::new(moved.unary::<_, Date32Type>(date_of)),
        data_type => Arc::new(moved.with_data_type(data_type.clone())),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_infinite_stays_so() {
        let day = Interval { months: 1, days: 2, micros: 3 };
        for end in [End::Infinity, End::NegativeInfinity] {
            assert_eq!(moved(end.micros(), day, MomentShift::Earlier), Some(end.micros()));
            assert_eq!(midnight_of(end.days()), Some(end.micros()));
            assert_eq!(date_of(end.micros()), end.days());
            assert_eq!(End::named(&format!(" {} ", end.text().to_uppercase())), Some(end));
        }
        assert_eq!(End::named("+infinity"), None);
    }

    #[test]
    fn months_end_with_their_last_day() {
        let day = |year, month, day| days_of(Civil { year, month, day }) * MICROS_A_DAY;
        let month = |months| Interval { months, ..Interval::default() };
        assert_eq!(moved(day(2024, 1, 31), month(1), MomentShift::Later), Some(day(2024, 2, 29)));
        assert_eq!(moved(day(2024, 3, 31), month(13), MomentShift::Earlier), Some(day(2023, 2, 28)));
        assert_eq!(moved(day(294_246, 12, 31), month(1), MomentShift::Later), None);
    }
}
