//! `window_floor(size, time)`: the last multiple of a size at or before a time, counted from the epoch. Where windows begin.
//!
//! Law: exact for every time that has a window; an error where the window would begin before all times. Dates are the timestamps of their
//! midnights. Cost: one remainder a row.

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, TimestampMicrosecondArray};
use arrow::compute::cast;
use arrow::datatypes::{DataType, TimeUnit, TimestampMicrosecondType};
use arrow::error::ArrowError;
use datafusion_common::{Result as DfResult, ScalarValue, exec_err, plan_err};
use datafusion_expr::{ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility};

use crate::resolve::type_names::sql_name;

#[derive(Debug, PartialEq, Eq, Hash)]
pub(crate) struct WindowFloor {
    signature: Signature,
}

impl WindowFloor {
    pub(crate) fn udf() -> Arc<ScalarUDF> {
        Arc::new(ScalarUDF::from(Self { signature: Signature::any(2, Volatility::Immutable) }))
    }
}

impl ScalarUDFImpl for WindowFloor {
    fn name(&self) -> &str {
        "window_floor"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, arg_types: &[DataType]) -> DfResult<DataType> {
        match &arg_types[1] {
            DataType::Timestamp(_, zone) => Ok(DataType::Timestamp(TimeUnit::Microsecond, zone.clone())),
            DataType::Date32 => Ok(DataType::Timestamp(TimeUnit::Microsecond, None)),
            other => plan_err!(
                "windows of an interval of time want a column of dates or timestamps, not of type {}",
                sql_name(other)
            ),
        }
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> DfResult<ColumnarValue> {
        let ColumnarValue::Scalar(ScalarValue::IntervalMonthDayNano(Some(size))) = &args.args[0] else {
            return exec_err!("the size of a window is a constant interval");
        };
        let size = i64::from(size.days) * 86_400_000_000 + size.nanoseconds / 1000;
        if size <= 0 {
            return exec_err!("the size of a window is at least a microsecond");
        }
        let times = cast(&args.args[1].to_array(args.number_rows)?, args.return_field.data_type())?;
        let times = times.as_primitive::<TimestampMicrosecondType>();
        let starts: TimestampMicrosecondArray = times.try_unary(|time| {
            let out_of_range = || ArrowError::ComputeError("timestamp out of range".to_string());
            time.checked_sub(time.rem_euclid(size)).ok_or_else(out_of_range)
        })?;
        Ok(ColumnarValue::Array(Arc::new(starts.with_data_type(args.return_field.data_type().clone())) as ArrayRef))
    }
}
