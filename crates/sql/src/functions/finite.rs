//! `isfinite(x)`: whether a date or timestamp is neither `infinity` nor `-infinity`. Intervals are
//! finite.

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, BooleanArray, new_null_array};
use arrow::compute::is_not_null;
use arrow::datatypes::{DataType, Date32Type};
use datafusion_common::{Result as DfResult, plan_err};
use datafusion_expr::{ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility};

use crate::resolve::type_names::sql_name;
use crate::time::moments::{End, micros_column};

#[derive(Debug, PartialEq, Eq, Hash)]
pub(crate) struct IsFinite {
    signature: Signature,
}

impl IsFinite {
    pub(crate) fn udf() -> Arc<ScalarUDF> {
        Arc::new(ScalarUDF::from(Self { signature: Signature::any(1, Volatility::Immutable) }))
    }
}

impl ScalarUDFImpl for IsFinite {
    fn name(&self) -> &str {
        "isfinite"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, arg_types: &[DataType]) -> DfResult<DataType> {
        match &arg_types[0] {
            DataType::Date32 | DataType::Timestamp(..) | DataType::Interval(_) | DataType::Null => {
                Ok(DataType::Boolean)
            }
            other => plan_err!("function isfinite({}) does not exist", sql_name(other)),
        }
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> DfResult<ColumnarValue> {
        let values = args.args[0].to_array(args.number_rows)?;
        let finite: ArrayRef = match values.data_type() {
            DataType::Null => new_null_array(&DataType::Boolean, values.len()),
            DataType::Date32 => {
                let days = values.as_primitive::<Date32Type>();
                Arc::new(days.iter().map(|days| Some(End::of_days(days?).is_none())).collect::<BooleanArray>())
            }
            DataType::Interval(_) => {
                let is_there = is_not_null(&values)?;
                Arc::new(is_there.iter().map(|is| is.filter(|is| *is)).collect::<BooleanArray>())
            }
            _ => {
                let micros = micros_column(&values)?;
                Arc::new(micros.iter().map(|micros| Some(End::of_micros(micros?).is_none())).collect::<BooleanArray>())
            }
        };
        Ok(ColumnarValue::Array(finite))
    }
}
