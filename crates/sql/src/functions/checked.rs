//! Functions of our own.

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, Float64Array, IntervalMonthDayNanoArray};
use arrow::compute::try_binary;
use arrow::datatypes::{
    DataType, Float64Type, Int64Type, IntervalMonthDayNano, IntervalMonthDayNanoType, IntervalUnit,
};
use arrow::error::ArrowError;
use datafusion_common::{Result as DfResult, exec_err};
use datafusion_expr::{
    ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, TypeSignature, Volatility,
};

/// `one_row(value, count)`: the value, or an error where the count is above one. What a scalar subquery promises.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(crate) struct OneRow {
    signature: Signature,
}

impl OneRow {
    pub(crate) fn udf() -> Arc<ScalarUDF> {
        Arc::new(ScalarUDF::from(Self { signature: Signature::any(2, Volatility::Immutable) }))
    }
}

impl ScalarUDFImpl for OneRow {
    fn name(&self) -> &str {
        "one_row"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, arg_types: &[DataType]) -> DfResult<DataType> {
        Ok(arg_types[0].clone())
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> DfResult<ColumnarValue> {
        let counts = args.args[1].to_array(args.number_rows)?;
        let counts = counts.as_primitive::<Int64Type>();
        if counts.iter().flatten().any(|n| n > 1) {
            return exec_err!("more than one row returned by a subquery used as an expression");
        }
        Ok(args.args[0].clone())
    }
}

/// `interval_times(interval, factor)`: `interval * factor` of PostgreSQL. Months and days that do not come out whole
/// spill into days (30 a month) and hours.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(crate) struct IntervalTimes {
    signature: Signature,
}

impl IntervalTimes {
    pub(crate) fn udf() -> Arc<ScalarUDF> {
        let interval = DataType::Interval(IntervalUnit::MonthDayNano);
        Arc::new(ScalarUDF::from(Self {
            signature: Signature::new(TypeSignature::Exact(vec![interval, DataType::Float64]), Volatility::Immutable),
        }))
    }
}

impl ScalarUDFImpl for IntervalTimes {
    fn name(&self) -> &str {
        "interval_times"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _arg_types: &[DataType]) -> DfResult<DataType> {
        Ok(DataType::Interval(IntervalUnit::MonthDayNano))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> DfResult<ColumnarValue> {
        let intervals = args.args[0].to_array(args.number_rows)?;
        let factors = args.args[1].to_array(args.number_rows)?;
        let intervals = intervals.as_primitive::<IntervalMonthDayNanoType>();
        let factors = factors.as_primitive::<Float64Type>();
        let products: IntervalMonthDayNanoArray =
            intervals.iter().zip(factors).map(|(interval, factor)| Some(times(interval?, factor?))).collect();
        Ok(ColumnarValue::Array(Arc::new(products) as ArrayRef))
    }
}

fn times(interval: IntervalMonthDayNano, factor: f64) -> IntervalMonthDayNano {
    const DAYS_A_MONTH: f64 = 30.0;
    const NANOS_A_DAY: f64 = 86_400e9;
    let months = f64::from(interval.months) * factor;
    let days = f64::from(interval.days) * factor + months.fract() * DAYS_A_MONTH;
    // Microseconds are the grain of time: what is finer is noise of the binary fractions.
    let nanos = interval.nanoseconds as f64 * factor + days.fract() * NANOS_A_DAY;
    IntervalMonthDayNano::new(months.trunc() as i32, days.trunc() as i32, (nanos / 1e3).round() as i64 * 1000)
}

/// `float_divide(a, b)`: the quotient, or an error where `b` is zero, as SQL has it. IEEE's infinity is no answer.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(crate) struct FloatDivide {
    signature: Signature,
}

impl FloatDivide {
    pub(crate) fn udf() -> Arc<ScalarUDF> {
        Arc::new(ScalarUDF::from(Self {
            signature: Signature::exact(vec![DataType::Float64, DataType::Float64], Volatility::Immutable),
        }))
    }
}

impl ScalarUDFImpl for FloatDivide {
    fn name(&self) -> &str {
        "float_divide"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _arg_types: &[DataType]) -> DfResult<DataType> {
        Ok(DataType::Float64)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> DfResult<ColumnarValue> {
        let dividends = args.args[0].to_array(args.number_rows)?;
        let divisors = args.args[1].to_array(args.number_rows)?;
        let dividends = dividends.as_primitive::<Float64Type>();
        let divisors = divisors.as_primitive::<Float64Type>();
        let quotients: Float64Array = try_binary(dividends, divisors, |a, b| match b {
            0.0 => Err(ArrowError::DivideByZero),
            _ => Ok(a / b),
        })?;
        Ok(ColumnarValue::Array(Arc::new(quotients) as ArrayRef))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fractions_of_months_are_days_and_of_days_are_hours() {
        let product = times(IntervalMonthDayNano::new(1, 1, 0), 1.5);
        assert_eq!(product, IntervalMonthDayNano::new(1, 16, 43_200_000_000_000));
        assert_eq!(times(IntervalMonthDayNano::new(0, 0, 3_600_000_000_000), 3.0).nanoseconds, 10_800_000_000_000);
    }
}
