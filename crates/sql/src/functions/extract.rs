//! `extract(part FROM moment)`, of type `numeric` as in PostgreSQL, so that `extract(hour FROM t) /
//! 7` has a fraction.
//!
//! Seconds, milliseconds, microseconds and the seconds since the epoch have as many digits as a
//! microsecond has; the other parts are whole. An interval's years are 365.25 days in its epoch,
//! its months 30; its other parts are those that it is written with. Cost: one pass; a few
//! divisions a row for parts of dates.

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, Decimal128Array, PrimitiveArray};
use arrow::compute::cast;
use arrow::datatypes::{
    DataType, Decimal128Type, Int32Type, Int64Type, IntervalMonthDayNano, IntervalMonthDayNanoType, IntervalUnit,
    TimeUnit,
};
use datafusion_common::{Result as DfResult, ScalarValue, plan_err};
use datafusion_expr::{ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility};

use crate::resolve::type_names::sql_name;
use crate::time::calendar::{civil, day_of_year, iso_week, julian, weekday};

const MICROS_A_MINUTE: i64 = 60_000_000;
const MICROS_AN_HOUR: i64 = 3_600_000_000;
const MICROS_A_DAY: i128 = 86_400_000_000;
/// Of 365.25 days.
const MICROS_A_YEAR: i128 = 31_557_600_000_000;

/// What is extracted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Part {
    Millennium,
    Century,
    Decade,
    Year,
    Quarter,
    Month,
    Day,
    Hour,
    Minute,
    IsoYear,
    Week,
    DayOfWeek,
    IsoDayOfWeek,
    DayOfYear,
    Julian,
    Seconds,
    Milliseconds,
    Microseconds,
    Epoch,
}

impl Part {
    /// The part of that name.
    pub(crate) fn named(name: &str) -> Option<Part> {
        match name.trim_matches('\'').to_lowercase().as_str() {
            "second" | "seconds" | "sec" | "secs" | "s" => Some(Part::Seconds),
            "millisecond" | "milliseconds" | "msec" | "msecs" | "ms" => Some(Part::Milliseconds),
            "microsecond" | "microseconds" | "usec" | "usecs" | "us" => Some(Part::Microseconds),
            "epoch" => Some(Part::Epoch),
            "millennium" | "millennia" | "mil" | "mils" => Some(Part::Millennium),
            "century" | "centuries" | "cent" | "c" => Some(Part::Century),
            "decade" | "decades" | "dec" | "decs" => Some(Part::Decade),
            "year" | "years" | "yr" | "yrs" | "y" => Some(Part::Year),
            "quarter" | "qtr" => Some(Part::Quarter),
            "month" | "months" | "mon" | "mons" => Some(Part::Month),
            "day" | "days" | "d" => Some(Part::Day),
            "hour" | "hours" | "hr" | "hrs" | "h" => Some(Part::Hour),
            "minute" | "minutes" | "min" | "mins" | "m" => Some(Part::Minute),
            "isoyear" => Some(Part::IsoYear),
            "week" | "weeks" | "w" => Some(Part::Week),
            "dow" => Some(Part::DayOfWeek),
            "isodow" => Some(Part::IsoDayOfWeek),
            "doy" => Some(Part::DayOfYear),
            "julian" | "j" | "jd" => Some(Part::Julian),
            _ => None,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Part::Seconds => "extract_second",
            Part::Milliseconds => "extract_milliseconds",
            Part::Microseconds => "extract_microseconds",
            Part::Epoch => "extract_epoch",
            Part::Millennium => "extract_millennium",
            Part::Century => "extract_century",
            Part::Decade => "extract_decade",
            Part::Year => "extract_year",
            Part::Quarter => "extract_quarter",
            Part::Month => "extract_month",
            Part::Day => "extract_day",
            Part::Hour => "extract_hour",
            Part::Minute => "extract_minute",
            Part::IsoYear => "extract_isoyear",
            Part::Week => "extract_week",
            Part::DayOfWeek => "extract_dow",
            Part::IsoDayOfWeek => "extract_isodow",
            Part::DayOfYear => "extract_doy",
            Part::Julian => "extract_julian",
        }
    }

    /// Whether a value of this type has the part, as PostgreSQL has it.
    fn is_of(self, data_type: &DataType) -> bool {
        use Part::{Day, DayOfWeek, DayOfYear, Epoch, Hour, IsoDayOfWeek, IsoYear, Julian, Microseconds};
        use Part::{Milliseconds, Minute, Seconds, Week};
        let is_of_clock = matches!(self, Hour | Minute | Seconds | Milliseconds | Microseconds);
        match data_type {
            DataType::Date32 => !is_of_clock,
            DataType::Time64(_) => is_of_clock || self == Epoch,
            DataType::Interval(_) => {
                !matches!(self, Week | DayOfWeek | IsoDayOfWeek | DayOfYear | IsoYear | Julian) || self == Day
            }
            _ => has_parts(data_type),
        }
    }

    /// Precision and scale. With these, the digits of each part are a number of microseconds.
    fn digits(self) -> (u8, i8) {
        match self {
            Part::Seconds => (8, 6),
            Part::Milliseconds => (8, 3),
            Part::Microseconds => (8, 0),
            Part::Epoch => (28, 6),
            Part::Julian => (18, 6),
            _ => (10, 0),
        }
    }

    /// The same, of a value of this type.
    fn digits_of(self, data_type: &DataType) -> (u8, i8) {
        match (self, data_type) {
            (Part::Julian, DataType::Date32) => (10, 0),
            _ => self.digits(),
        }
    }

    /// Of a moment or a time of day, in microseconds.
    fn of_moment(self, micros: i64) -> i128 {
        match self {
            Part::Epoch => i128::from(micros),
            Part::Seconds | Part::Milliseconds | Part::Microseconds => i128::from(micros.rem_euclid(MICROS_A_MINUTE)),
            Part::Hour => i128::from(micros.rem_euclid(MICROS_A_DAY as i64) / MICROS_AN_HOUR),
            Part::Minute => i128::from(micros.rem_euclid(MICROS_AN_HOUR) / MICROS_A_MINUTE),
            // (Of a microsecond of a day, rounded.)
            Part::Julian => {
                let (day, rest) = (micros.div_euclid(MICROS_A_DAY as i64), micros.rem_euclid(MICROS_A_DAY as i64));
                i128::from(julian(day)) * 1_000_000 + (i128::from(rest) * 1_000_000 + MICROS_A_DAY / 2) / MICROS_A_DAY
            }
            _ => i128::from(self.of_day(micros.div_euclid(MICROS_A_DAY as i64))),
        }
    }

    /// Of a day since the epoch.
    fn of_day(self, day: i64) -> i64 {
        // (There is no year 0: what the calendar counts as 0 is 1 BC.)
        let shown = |year: i64| if year > 0 { year } else { year - 1 };
        let spans = |years: i64| {
            let year = shown(civil(day).year);
            if year > 0 { (year + years - 1) / years } else { -((years - 1 - year) / years) }
        };
        match self {
            Part::Millennium => spans(1000),
            Part::Century => spans(100),
            Part::Decade => civil(day).year.div_euclid(10),
            Part::Year => shown(civil(day).year),
            Part::Quarter => (civil(day).month - 1) / 3 + 1,
            Part::Month => civil(day).month,
            Part::IsoYear => shown(iso_week(day).0),
            Part::Week => iso_week(day).1,
            Part::DayOfWeek => weekday(day) % 7,
            Part::IsoDayOfWeek => (weekday(day) + 6) % 7 + 1,
            Part::DayOfYear => day_of_year(day),
            _ => civil(day).day,
        }
    }

    fn of_interval(self, interval: IntervalMonthDayNano) -> i128 {
        let micros = interval.nanoseconds / 1000;
        let (years, months) = (i128::from(interval.months / 12), i128::from(interval.months % 12));
        match self {
            Part::Epoch => {
                let days = 30 * months + i128::from(interval.days);
                years * MICROS_A_YEAR + days * MICROS_A_DAY + i128::from(micros)
            }
            Part::Seconds | Part::Milliseconds | Part::Microseconds => i128::from(micros % MICROS_A_MINUTE),
            Part::Hour => i128::from(micros / MICROS_AN_HOUR),
            Part::Minute => i128::from(micros % MICROS_AN_HOUR / MICROS_A_MINUTE),
            Part::Day => i128::from(interval.days),
            Part::Month => months,
            Part::Quarter => months / 3 + 1,
            Part::Decade => years / 10,
            Part::Century => years / 100,
            Part::Millennium => years / 1000,
            _ => years,
        }
    }
}

/// Whether a value of this type has parts.
pub(crate) fn has_parts(data_type: &DataType) -> bool {
    matches!(
        data_type,
        DataType::Date32
            | DataType::Timestamp(..)
            | DataType::Time64(_)
            | DataType::Interval(IntervalUnit::MonthDayNano)
            | DataType::Null
    )
}

/// `extract_second(moment)` and so on.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(crate) struct Extract {
    part: Part,
    signature: Signature,
}

impl Extract {
    pub(crate) fn udf(part: Part) -> Arc<ScalarUDF> {
        Arc::new(ScalarUDF::from(Self { part, signature: Signature::any(1, Volatility::Immutable) }))
    }
}

impl ScalarUDFImpl for Extract {
    fn name(&self) -> &str {
        self.part.name()
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, arg_types: &[DataType]) -> DfResult<DataType> {
        let is = &arg_types[0];
        if !has_parts(is) {
            return plan_err!("function extract of {} does not exist", sql_name(is));
        }
        if !self.part.is_of(is) {
            let unit = self.part.name().trim_start_matches("extract_");
            return plan_err!("unit \"{unit}\" not supported for type {}", sql_name(is));
        }
        let (precision, scale) = self.part.digits_of(is);
        Ok(DataType::Decimal128(precision, scale))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> DfResult<ColumnarValue> {
        let values = args.args[0].to_array(args.number_rows)?;
        let (precision, scale) = self.part.digits_of(values.data_type());
        let parts: Decimal128Array = match values.data_type() {
            DataType::Null => return Ok(ColumnarValue::Scalar(ScalarValue::Decimal128(None, precision, scale))),
            DataType::Date32 if self.part == Part::Julian => {
                let days = cast(&values, &DataType::Int32)?;
                days.as_primitive::<Int32Type>().unary(|day| i128::from(julian(i64::from(day))))
            }
            DataType::Interval(_) => {
                let intervals = values.as_primitive::<IntervalMonthDayNanoType>();
                intervals.unary::<_, Decimal128Type>(|interval| self.part.of_interval(interval))
            }
            _ => micros(&values)?.unary::<_, Decimal128Type>(|micros| self.part.of_moment(micros)),
        };
        Ok(ColumnarValue::Array(Arc::new(parts.with_precision_and_scale(precision, scale)?) as ArrayRef))
    }
}

/// Moments in microseconds since the epoch, times of day in microseconds since midnight.
fn micros(values: &ArrayRef) -> DfResult<PrimitiveArray<Int64Type>> {
    let unit = TimeUnit::Microsecond;
    let of_micros = match values.data_type() {
        DataType::Timestamp(_, zone) => DataType::Timestamp(unit, zone.clone()),
        DataType::Time64(_) => DataType::Time64(unit),
        _ => DataType::Timestamp(unit, None),
    };
    let numbers = cast(&cast(values, &of_micros)?, &DataType::Int64)?;
    Ok(numbers.as_primitive::<Int64Type>().clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_keep_fractions_and_signs() {
        assert_eq!(Part::Seconds.of_moment(-1), 59_999_999);
        assert_eq!(Part::Seconds.of_interval(IntervalMonthDayNano::new(0, 0, -65_678_000_000)), -5_678_000);
        assert_eq!(Part::Epoch.of_interval(IntervalMonthDayNano::new(12, 0, 0)), 31_557_600_000_000);
        assert_eq!(Part::Epoch.of_interval(IntervalMonthDayNano::new(-1, 1, 0)), -29 * MICROS_A_DAY);
    }

    #[test]
    fn years_before_christ_have_no_zero() {
        let day = |year| crate::time::calendar::days_of(crate::time::calendar::Civil { year, month: 3, day: 15 });
        for (year, shown, century, decade, millennium) in [
            (2024, 2024, 21, 202, 3),
            (2000, 2000, 20, 200, 2),
            (1, 1, 1, 0, 1),
            (0, -1, -1, 0, -1),
            (-43, -44, -1, -5, -1),
        ] {
            let parts = [Part::Year, Part::Century, Part::Decade, Part::Millennium].map(|part| part.of_day(day(year)));
            assert_eq!(parts, [shown, century, decade, millennium], "{year}");
        }
        assert_eq!(Part::IsoDayOfWeek.of_day(3), 7, "1970-01-04 was a Sunday");
        assert_eq!(Part::DayOfWeek.of_day(3), 0);
    }
}
