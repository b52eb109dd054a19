//! `age(a, b)`: the time from b to a in years, months, days and the rest, as PostgreSQL counts it.
//!
//! The fields of the two are subtracted one by one; a field that comes out negative borrows from
//! the next greater one, days from the length of the earlier moment's month. Cost: one pass, a few
//! divisions a row.

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, IntervalMonthDayNanoArray};
use arrow::compute::try_binary;
use arrow::datatypes::{DataType, IntervalMonthDayNano, IntervalUnit, TimestampMicrosecondType};
use arrow::error::ArrowError;
use datafusion_common::Result as DfResult;
use datafusion_expr::{ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility};

use crate::error::{ErrorKind, SqlError};
use crate::resolve::type_names::{is_text, sql_name};
use crate::time::moments::{End, micros_column};
use crate::type_words::NO_FUNCTION;

const MICROS_A_DAY: i64 = 86_400_000_000;

#[derive(Debug, PartialEq, Eq, Hash)]
pub(crate) struct Age {
    signature: Signature,
}

impl Age {
    pub(crate) fn udf() -> Arc<ScalarUDF> {
        Arc::new(ScalarUDF::from(Self { signature: Signature::any(2, Volatility::Immutable) }))
    }
}

impl ScalarUDFImpl for Age {
    fn name(&self) -> &str {
        "age"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, arg_types: &[DataType]) -> DfResult<DataType> {
        let is_moment = |is: &DataType| is.is_null() || is_text(is) || is.is_temporal() && !is_time_of_day(is);
        if !arg_types.iter().all(is_moment) {
            let types: Vec<String> = arg_types.iter().map(sql_name).collect();
            let message = format!("function age({}) does not exist", types.join(", "));
            return Err(SqlError::new(ErrorKind::Type, message).with_hint(NO_FUNCTION).into());
        }
        Ok(DataType::Interval(IntervalUnit::MonthDayNano))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> DfResult<ColumnarValue> {
        let micros = |arg: &ColumnarValue| -> DfResult<ArrayRef> {
            Ok(Arc::new(micros_column(&arg.to_array(args.number_rows)?)?))
        };
        let (later, earlier) = (micros(&args.args[0])?, micros(&args.args[1])?);
        let later = later.as_primitive::<TimestampMicrosecondType>();
        let earlier = earlier.as_primitive::<TimestampMicrosecondType>();
        let of_two = |later: i64, earlier: i64| match (End::of_micros(later), End::of_micros(earlier)) {
            (None, None) => Ok(age(later, earlier)),
            _ => Err(ArrowError::ComputeError("timestamp out of range".into())),
        };
        let ages: IntervalMonthDayNanoArray = try_binary(later, earlier, of_two)?;
        Ok(ColumnarValue::Array(Arc::new(ages) as ArrayRef))
    }
}

fn is_time_of_day(is: &DataType) -> bool {
    matches!(is, DataType::Time32(_) | DataType::Time64(_) | DataType::Interval(_) | DataType::Duration(_))
}

fn age(a: i64, b: i64) -> IntervalMonthDayNano {
    if a < b {
        let age = age(b, a);
        return IntervalMonthDayNano::new(-age.months, -age.days, -age.nanoseconds);
    }
    let ((year, month, day, micros), (from_year, from_month, from_day, from_micros)) = (fields(a), fields(b));
    let mut micros = micros - from_micros;
    let mut days = day - from_day;
    let mut months = (year - from_year) * 12 + month - from_month;
    if micros < 0 {
        micros += MICROS_A_DAY;
        days -= 1;
    }
    if days < 0 {
        days += days_of_month(from_year, from_month);
        months -= 1;
    }
    IntervalMonthDayNano::new(months as i32, days as i32, micros * 1000)
}

/// Year, month, day, and microseconds of the day. The calendar is counted from March, in cycles of
/// 400 years.
fn fields(micros: i64) -> (i64, i64, i64, i64) {
    let days = micros.div_euclid(MICROS_A_DAY) + 719_468;
    let era = days.div_euclid(146_097);
    let day_of_era = days.rem_euclid(146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    (year, month, day, micros.rem_euclid(MICROS_A_DAY))
}

fn days_of_month(year: i64, month: i64) -> i64 {
    match month {
        2 if year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY: i64 = MICROS_A_DAY;

    #[test]
    fn fields_follow_the_calendar() {
        assert_eq!(fields(0), (1970, 1, 1, 0));
        assert_eq!(fields(-1), (1969, 12, 31, DAY - 1));
        assert_eq!(fields(11_016 * DAY), (2000, 2, 29, 0));
    }

    #[test]
    fn negative_fields_borrow() {
        // 2024-03-01 from 2023-01-15: a year, a month and 17 days, of January's 31.
        assert_eq!(age(19_783 * DAY, 19_372 * DAY), IntervalMonthDayNano::new(13, 17, 0));
        assert_eq!(age(19_372 * DAY, 19_783 * DAY), IntervalMonthDayNano::new(-13, -17, 0));
        assert_eq!(age(DAY, 1), IntervalMonthDayNano::new(0, 0, (DAY - 1) * 1000));
    }
}
