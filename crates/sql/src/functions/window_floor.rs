//! `window_floor(size, time)`: the last multiple of a size at or before a time, counted from the
//! epoch. Where windows begin.
//!
//! Law: exact for every time that has a window; an error where the window would begin before all
//! times. Of `infinity` too it is an
//! error. Dates are the timestamps of their midnights. Times may be whole numbers; then so is the
//! size. Cost: one comparison a row while times lie in the window of the row before, else one
//! remainder.

use std::cell::Cell;
use std::sync::Arc;

use arrow::array::{ArrayRef, ArrowPrimitiveType, AsArray, PrimitiveArray};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Int64Type, TimeUnit, TimestampMicrosecondType};
use arrow::error::ArrowError;
use datafusion_common::{Result as DfResult, ScalarValue, exec_err, plan_err};
use datafusion_expr::{ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility};

use crate::resolve::type_names::sql_name;
use crate::time::moments::{End, cast_moments};

fn is_whole(data_type: &DataType) -> bool {
    matches!(data_type, DataType::Int16 | DataType::Int32 | DataType::Int64)
}

/// The last multiples of a size. Times mostly lie in the window of the time before.
fn floors<T: ArrowPrimitiveType<Native = i64>>(
    times: &PrimitiveArray<T>,
    size: i64,
    out_of_range: &str,
) -> Result<PrimitiveArray<T>, ArrowError> {
    let last: Cell<Option<i64>> = Cell::new(None);
    times.try_unary(|time| {
        let is_within = |start: &i64| time.checked_sub(*start).is_some_and(|since| (0..size).contains(&since));
        if let Some(start) = last.get().filter(is_within) {
            return Ok(start);
        }
        let floor = time.checked_sub(time.rem_euclid(size));
        last.set(floor);
        floor.ok_or_else(|| ArrowError::ComputeError(out_of_range.to_string()))
    })
}

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
            DataType::Int16 | DataType::Int32 | DataType::Int64 if is_whole(&arg_types[0]) => Ok(DataType::Int64),
            other if is_whole(&arg_types[0]) => {
                plan_err!("windows of whole numbers want a column of whole numbers, not of type {}", sql_name(other))
            }
            other => plan_err!(
                "windows of an interval of time want a column of dates or timestamps, not of type {}",
                sql_name(other)
            ),
        }
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> DfResult<ColumnarValue> {
        let size = match &args.args[0] {
            ColumnarValue::Scalar(ScalarValue::IntervalMonthDayNano(Some(size))) => {
                i64::from(size.days) * 86_400_000_000 + size.nanoseconds / 1000
            }
            ColumnarValue::Scalar(ScalarValue::Int64(Some(size))) => *size,
            _ => return exec_err!("the size of a window is a constant interval or a constant whole number"),
        };
        if size <= 0 {
            return exec_err!("the size of a window is at least a microsecond");
        }
        if *args.return_field.data_type() == DataType::Int64 {
            let times = cast(&args.args[1].to_array(args.number_rows)?, &DataType::Int64)?;
            let starts = floors(times.as_primitive::<Int64Type>(), size, "bigint out of range")?;
            return Ok(ColumnarValue::Array(Arc::new(starts)));
        }
        let times = args.args[1].to_array(args.number_rows)?;
        let times = match cast_moments(&times, args.return_field.data_type()) {
            Some(moments) => moments?,
            None => cast(&times, args.return_field.data_type())?,
        };
        let times = times.as_primitive::<TimestampMicrosecondType>();
        if times.iter().flatten().any(|time| End::of_micros(time).is_some()) {
            return exec_err!("infinity lies in no window: leave such rows out, WHERE isfinite(..)");
        }
        let starts = floors(times, size, "timestamp out of range")?;
        Ok(ColumnarValue::Array(Arc::new(starts.with_data_type(args.return_field.data_type().clone())) as ArrayRef))
    }
}
