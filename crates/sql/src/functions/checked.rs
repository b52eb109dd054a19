//! Functions of our own.

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, Float64Array};
use arrow::compute::try_binary;
use arrow::datatypes::{DataType, Float64Type, Int64Type};
use arrow::error::ArrowError;
use datafusion_common::{Result as DfResult, exec_err};
use datafusion_expr::{ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility};

/// `one_row(value, count)`: the value, or an error where the count is above one. What a scalar
/// subquery promises.
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

/// `float_divide(a, b)`: the quotient, or an error where `b` is zero, as SQL has it. IEEE's
/// infinity is no answer.
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
