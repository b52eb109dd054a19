//! `extract(part FROM moment)` for the parts that have fractions: seconds, milliseconds,
//! microseconds, and the seconds since the epoch.
//!
//! PostgreSQL's are numerics with as many digits as a microsecond has; DataFusion would cut them
//! off. An interval's years are 365.25 days, its months 30. The other parts are whole, and
//! DataFusion's. Cost: one pass, a division a row.

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, Decimal128Array, PrimitiveArray};
use arrow::compute::cast;
use arrow::datatypes::{
    DataType, Decimal128Type, Int64Type, IntervalMonthDayNano, IntervalMonthDayNanoType, IntervalUnit, TimeUnit,
};
use datafusion_common::{Result as DfResult, ScalarValue, plan_err};
use datafusion_expr::{ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility};

use crate::resolve::type_names::sql_name;

const MICROS_A_MINUTE: i64 = 60_000_000;
const MICROS_A_DAY: i128 = 86_400_000_000;
/// Of 365.25 days.
const MICROS_A_YEAR: i128 = 31_557_600_000_000;

/// A part with a fraction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Part {
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
            _ => None,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Part::Seconds => "extract_second",
            Part::Milliseconds => "extract_milliseconds",
            Part::Microseconds => "extract_microseconds",
            Part::Epoch => "extract_epoch",
        }
    }

    /// Precision and scale. With these, the digits of each part are a number of microseconds.
    fn digits(self) -> (u8, i8) {
        match self {
            Part::Seconds => (8, 6),
            Part::Milliseconds => (8, 3),
            Part::Microseconds => (8, 0),
            Part::Epoch => (28, 6),
        }
    }

    /// Of a moment or a time of day, in microseconds.
    fn of_moment(self, micros: i64) -> i128 {
        match self {
            Part::Epoch => i128::from(micros),
            _ => i128::from(micros.rem_euclid(MICROS_A_MINUTE)),
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
            _ => i128::from(micros % MICROS_A_MINUTE),
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
        if !has_parts(&arg_types[0]) {
            return plan_err!("function extract of {} does not exist", sql_name(&arg_types[0]));
        }
        let (precision, scale) = self.part.digits();
        Ok(DataType::Decimal128(precision, scale))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> DfResult<ColumnarValue> {
        let (precision, scale) = self.part.digits();
        let values = args.args[0].to_array(args.number_rows)?;
        let parts: Decimal128Array = match values.data_type() {
            DataType::Null => return Ok(ColumnarValue::Scalar(ScalarValue::Decimal128(None, precision, scale))),
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
}
