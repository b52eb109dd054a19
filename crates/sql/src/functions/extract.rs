//! `extract(part FROM moment)`, of type `numeric` as in PostgreSQL, so that `extract(hour FROM t) /
//! 7` has a fraction.
//!
//! Seconds, milliseconds, microseconds and the seconds since the epoch have as many digits as a
//! microsecond has; the other parts are whole. An interval's years are 365.25 days in its epoch,
//! its months 30; its other parts are those that it is written with. Cost: one pass; a few
//! divisions a row for parts of dates.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, Decimal128Array, Float64Array, PrimitiveArray, new_null_array};
use arrow::compute::cast;
use arrow::datatypes::{
    DataType, Decimal128Type, Int64Type, IntervalMonthDayNano, IntervalMonthDayNanoType, IntervalUnit, TimeUnit,
};
use datafusion_common::{Result as DfResult, ScalarValue, exec_err, plan_err};
use datafusion_expr::{ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility};

use crate::resolve::type_names::sql_name;
use crate::time::calendar::{civil, day_of_year, iso_week, julian, weekday};
use crate::time::moments::{End, micros_column};

const MICROS_A_MINUTE: i64 = 60_000_000;
const MICROS_AN_HOUR: i64 = 3_600_000_000;
const MICROS_A_DAY: i128 = 86_400_000_000;
/// Of 365.25 days.
const MICROS_A_YEAR: i128 = 31_557_600_000_000;

/// What is extracted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum DatePart {
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
    /// Of the offset from Greenwich, which is that of UTC.
    TimeZone,
    TimeZoneHour,
    TimeZoneMinute,
}

impl DatePart {
    /// The part of that name.
    pub(crate) fn named(name: &str) -> Option<DatePart> {
        match name.trim_matches('\'').to_lowercase().as_str() {
            "second" | "seconds" | "sec" | "secs" | "s" => Some(DatePart::Seconds),
            "millisecond" | "milliseconds" | "mseconds" | "msec" | "msecs" | "ms" => Some(DatePart::Milliseconds),
            "microsecond" | "microseconds" | "useconds" | "microsecon" | "usec" | "usecs" | "us" => {
                Some(DatePart::Microseconds)
            }
            "epoch" => Some(DatePart::Epoch),
            "timezone" => Some(DatePart::TimeZone),
            "timezone_hour" | "timezone_h" => Some(DatePart::TimeZoneHour),
            "timezone_minute" | "timezone_m" => Some(DatePart::TimeZoneMinute),
            "millennium" | "millennia" | "mil" | "mils" => Some(DatePart::Millennium),
            "century" | "centuries" | "cent" | "c" => Some(DatePart::Century),
            "decade" | "decades" | "dec" | "decs" => Some(DatePart::Decade),
            "year" | "years" | "yr" | "yrs" | "y" => Some(DatePart::Year),
            "quarter" | "qtr" => Some(DatePart::Quarter),
            "month" | "months" | "mon" | "mons" => Some(DatePart::Month),
            "day" | "days" | "d" => Some(DatePart::Day),
            "hour" | "hours" | "hr" | "hrs" | "h" => Some(DatePart::Hour),
            "minute" | "minutes" | "min" | "mins" | "m" => Some(DatePart::Minute),
            "isoyear" => Some(DatePart::IsoYear),
            "week" | "weeks" | "w" => Some(DatePart::Week),
            "dow" => Some(DatePart::DayOfWeek),
            "isodow" => Some(DatePart::IsoDayOfWeek),
            "doy" => Some(DatePart::DayOfYear),
            "julian" | "j" | "jd" => Some(DatePart::Julian),
            _ => None,
        }
    }

    fn name(self, form: PartForm) -> &'static str {
        match form {
            PartForm::Numeric => self.extract_name(),
            PartForm::Float => self.date_part_name(),
        }
    }

    fn date_part_name(self) -> &'static str {
        match self {
            DatePart::Seconds => "date_part_second",
            DatePart::Milliseconds => "date_part_milliseconds",
            DatePart::Microseconds => "date_part_microseconds",
            DatePart::Epoch => "date_part_epoch",
            DatePart::TimeZone => "date_part_timezone",
            DatePart::TimeZoneHour => "date_part_timezone_hour",
            DatePart::TimeZoneMinute => "date_part_timezone_minute",
            DatePart::Millennium => "date_part_millennium",
            DatePart::Century => "date_part_century",
            DatePart::Decade => "date_part_decade",
            DatePart::Year => "date_part_year",
            DatePart::Quarter => "date_part_quarter",
            DatePart::Month => "date_part_month",
            DatePart::Day => "date_part_day",
            DatePart::Hour => "date_part_hour",
            DatePart::Minute => "date_part_minute",
            DatePart::IsoYear => "date_part_isoyear",
            DatePart::Week => "date_part_week",
            DatePart::DayOfWeek => "date_part_dow",
            DatePart::IsoDayOfWeek => "date_part_isodow",
            DatePart::DayOfYear => "date_part_doy",
            DatePart::Julian => "date_part_julian",
        }
    }

    fn extract_name(self) -> &'static str {
        match self {
            DatePart::Seconds => "extract_second",
            DatePart::Milliseconds => "extract_milliseconds",
            DatePart::Microseconds => "extract_microseconds",
            DatePart::Epoch => "extract_epoch",
            DatePart::TimeZone => "extract_timezone",
            DatePart::TimeZoneHour => "extract_timezone_hour",
            DatePart::TimeZoneMinute => "extract_timezone_minute",
            DatePart::Millennium => "extract_millennium",
            DatePart::Century => "extract_century",
            DatePart::Decade => "extract_decade",
            DatePart::Year => "extract_year",
            DatePart::Quarter => "extract_quarter",
            DatePart::Month => "extract_month",
            DatePart::Day => "extract_day",
            DatePart::Hour => "extract_hour",
            DatePart::Minute => "extract_minute",
            DatePart::IsoYear => "extract_isoyear",
            DatePart::Week => "extract_week",
            DatePart::DayOfWeek => "extract_dow",
            DatePart::IsoDayOfWeek => "extract_isodow",
            DatePart::DayOfYear => "extract_doy",
            DatePart::Julian => "extract_julian",
        }
    }

    /// Whether a value of this type has the part, as PostgreSQL has it.
    fn is_of(self, data_type: &DataType) -> bool {
        use DatePart::{Day, DayOfWeek, DayOfYear, Epoch, Hour, IsoDayOfWeek, IsoYear, Julian, Microseconds};
        use DatePart::{Milliseconds, Minute, Seconds, Week};
        let is_of_clock = matches!(self, Hour | Minute | Seconds | Milliseconds | Microseconds);
        if matches!(self, DatePart::TimeZone | DatePart::TimeZoneHour | DatePart::TimeZoneMinute) {
            return matches!(data_type, DataType::Timestamp(_, Some(_)));
        }
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
            DatePart::Seconds => (8, 6),
            DatePart::Milliseconds => (8, 3),
            DatePart::Microseconds => (8, 0),
            DatePart::Epoch => (28, 6),
            DatePart::Julian => (18, 6),
            _ => (10, 0),
        }
    }

    /// The same, of a value of this type.
    fn digits_of(self, data_type: &DataType) -> (u8, i8) {
        match (self, data_type) {
            (DatePart::Julian, DataType::Date32) => (10, 0),
            (DatePart::Epoch, DataType::Date32) => (14, 0),
            _ => self.digits(),
        }
    }

    /// Of a moment or a time of day, in microseconds.
    fn of_moment(self, micros: i64) -> i128 {
        match self {
            DatePart::Epoch => i128::from(micros),
            DatePart::TimeZone | DatePart::TimeZoneHour | DatePart::TimeZoneMinute => 0,
            DatePart::Seconds | DatePart::Milliseconds | DatePart::Microseconds => {
                i128::from(micros.rem_euclid(MICROS_A_MINUTE))
            }
            DatePart::Hour => i128::from(micros.rem_euclid(MICROS_A_DAY as i64) / MICROS_AN_HOUR),
            DatePart::Minute => i128::from(micros.rem_euclid(MICROS_AN_HOUR) / MICROS_A_MINUTE),
            // (Of a microsecond of a day, rounded.)
            DatePart::Julian => {
                let (day, rest) = (micros.div_euclid(MICROS_A_DAY as i64), micros.rem_euclid(MICROS_A_DAY as i64));
                i128::from(julian(day)) * 1_000_000 + (i128::from(rest) * 1_000_000 + MICROS_A_DAY / 2) / MICROS_A_DAY
            }
            _ => i128::from(self.of_day(micros.div_euclid(MICROS_A_DAY as i64))),
        }
    }

    /// Of a time of day, which ends with 24:00.
    fn of_time(self, micros: i64) -> i128 {
        match self {
            DatePart::Hour => i128::from(micros / MICROS_AN_HOUR),
            part => part.of_moment(micros),
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
            DatePart::Millennium => spans(1000),
            DatePart::Century => spans(100),
            DatePart::Decade => civil(day).year.div_euclid(10),
            DatePart::Year => shown(civil(day).year),
            DatePart::Quarter => (civil(day).month - 1) / 3 + 1,
            DatePart::Month => civil(day).month,
            DatePart::IsoYear => shown(iso_week(day).0),
            DatePart::Week => iso_week(day).1,
            DatePart::DayOfWeek => weekday(day) % 7,
            DatePart::IsoDayOfWeek => (weekday(day) + 6) % 7 + 1,
            DatePart::DayOfYear => day_of_year(day),
            _ => civil(day).day,
        }
    }

    /// Whether it rises with time without an end: of `infinity` it is infinite, the other parts are
    /// NULL.
    fn is_endless(self) -> bool {
        use DatePart::{Century, Decade, Epoch, IsoYear, Julian, Millennium, Year};
        matches!(self, Century | Decade | Epoch | IsoYear | Julian | Millennium | Year)
    }

    fn of_interval(self, interval: IntervalMonthDayNano) -> i128 {
        let micros = interval.nanoseconds / 1000;
        let (years, months) = (i128::from(interval.months / 12), i128::from(interval.months % 12));
        match self {
            DatePart::Epoch => {
                let days = 30 * months + i128::from(interval.days);
                years * MICROS_A_YEAR + days * MICROS_A_DAY + i128::from(micros)
            }
            DatePart::Seconds | DatePart::Milliseconds | DatePart::Microseconds => i128::from(micros % MICROS_A_MINUTE),
            DatePart::Hour => i128::from(micros / MICROS_AN_HOUR),
            DatePart::Minute => i128::from(micros % MICROS_AN_HOUR / MICROS_A_MINUTE),
            DatePart::Day => i128::from(interval.days),
            DatePart::Month => months,
            DatePart::Quarter => months / 3 + 1,
            DatePart::Decade => years / 10,
            DatePart::Century => years / 100,
            DatePart::Millennium => years / 1000,
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

/// The type of a part.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum PartForm {
    /// `extract`: a decimal, which has no infinity.
    Numeric,
    /// `date_part`: double precision.
    Float,
}

/// `extract_second(moment)` and so on.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(crate) struct Extract {
    part: DatePart,
    form: PartForm,
    signature: Signature,
}

impl Extract {
    pub(crate) fn udf(part: DatePart, form: PartForm) -> Arc<ScalarUDF> {
        Arc::new(ScalarUDF::from(Self { part, form, signature: Signature::any(1, Volatility::Immutable) }))
    }

    /// The parts of moments and times of day, in microseconds, as whole numbers of the digits.
    fn of_moments(&self, micros: &PrimitiveArray<Int64Type>, may_end: bool) -> DfResult<Decimal128Array> {
        let part = self.part;
        let is_end = |micros: i64| may_end && End::of_micros(micros).is_some();
        if !may_end {
            return Ok(micros.unary::<_, Decimal128Type>(|micros| part.of_time(micros)));
        }
        if !micros.values().iter().any(|micros| is_end(*micros)) {
            return Ok(micros.unary::<_, Decimal128Type>(|micros| part.of_moment(micros)));
        }
        if part.is_endless() && micros.iter().flatten().any(is_end) {
            let unit = part.extract_name().trim_start_matches("extract_");
            return exec_err!(
                "extract({unit}) of infinity is not supported: write date_part('{unit}', ..), which is double precision and gives Infinity"
            );
        }
        Ok(micros.unary_opt::<_, Decimal128Type>(|micros| (!is_end(micros)).then(|| part.of_moment(micros))))
    }

    /// The same as floats, infinite where that is.
    fn floats(&self, values: &ArrayRef) -> DfResult<ArrayRef> {
        let (part, scale) = (self.part, 10f64.powi(i32::from(self.part.digits().1)));
        let float = |digits: i128| digits as f64 / scale;
        let parts: Float64Array = match values.data_type() {
            DataType::Null => return Ok(new_null_array(&DataType::Float64, values.len())),
            DataType::Interval(_) => {
                let intervals = values.as_primitive::<IntervalMonthDayNanoType>();
                intervals.unary(|interval| float(part.of_interval(interval)))
            }
            DataType::Time64(_) => micros(values)?.unary(|micros| float(part.of_time(micros))),
            _ => micros(values)?.unary_opt(|micros| match End::of_micros(micros) {
                Some(end) => part.is_endless().then(|| end.float()),
                None => Some(float(part.of_moment(micros))),
            }),
        };
        Ok(Arc::new(parts))
    }
}

impl ScalarUDFImpl for Extract {
    fn name(&self) -> &str {
        self.part.name(self.form)
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
            let unit = self.part.extract_name().trim_start_matches("extract_");
            return plan_err!("unit \"{unit}\" not supported for type {}", sql_name(is));
        }
        let (precision, scale) = self.part.digits_of(is);
        Ok(match self.form {
            PartForm::Numeric => DataType::Decimal128(precision, scale),
            PartForm::Float => DataType::Float64,
        })
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> DfResult<ColumnarValue> {
        let values = args.args[0].to_array(args.number_rows)?;
        if self.form == PartForm::Float {
            return Ok(ColumnarValue::Array(self.floats(&values)?));
        }
        let (precision, scale) = self.part.digits_of(values.data_type());
        let parts: Decimal128Array = match values.data_type() {
            DataType::Null => return Ok(ColumnarValue::Scalar(ScalarValue::Decimal128(None, precision, scale))),
            DataType::Date32 if matches!(self.part, DatePart::Julian | DatePart::Epoch) => {
                let micros = micros(&values)?;
                let in_millionths = self.of_moments(&micros, true)?;
                in_millionths.unary(|moment| moment / 1_000_000)
            }
            DataType::Interval(_) => {
                let intervals = values.as_primitive::<IntervalMonthDayNanoType>();
                intervals.unary::<_, Decimal128Type>(|interval| self.part.of_interval(interval))
            }
            is => self.of_moments(&micros(&values)?, !matches!(is, DataType::Time64(_)))?,
        };
        Ok(ColumnarValue::Array(Arc::new(parts.with_precision_and_scale(precision, scale)?) as ArrayRef))
    }
}

/// Moments in microseconds since the epoch, times of day in microseconds since midnight.
fn micros(values: &ArrayRef) -> DfResult<PrimitiveArray<Int64Type>> {
    let unit = TimeUnit::Microsecond;
    if matches!(values.data_type(), DataType::Date32) {
        return Ok(micros_column(values)?.reinterpret_cast());
    }
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
        assert_eq!(DatePart::Seconds.of_moment(-1), 59_999_999);
        assert_eq!(DatePart::Seconds.of_interval(IntervalMonthDayNano::new(0, 0, -65_678_000_000)), -5_678_000);
        assert_eq!(DatePart::Epoch.of_interval(IntervalMonthDayNano::new(12, 0, 0)), 31_557_600_000_000);
        assert_eq!(DatePart::Epoch.of_interval(IntervalMonthDayNano::new(-1, 1, 0)), -29 * MICROS_A_DAY);
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
            let parts = [DatePart::Year, DatePart::Century, DatePart::Decade, DatePart::Millennium]
                .map(|part| part.of_day(day(year)));
            assert_eq!(parts, [shown, century, decade, millennium], "{year}");
        }
        assert_eq!(DatePart::IsoDayOfWeek.of_day(3), 7, "1970-01-04 was a Sunday");
        assert_eq!(DatePart::DayOfWeek.of_day(3), 0);
    }
}
