//! Conversions that PostgreSQL makes differently: text to bytes, numbers to rounder ones,
//! timestamps to intervals.

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BinaryViewBuilder, Float64Array, IntervalMonthDayNanoArray};
use arrow::compute::{cast, try_binary};
use arrow::datatypes::{DataType, Float64Type, IntervalMonthDayNano, IntervalUnit, TimeUnit, TimestampMicrosecondType};
use arrow::error::ArrowError;
use datafusion_common::{Result as DfResult, exec_err};
use datafusion_expr::{ColumnarValue, Expr, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility};

use crate::functions::bytes_in::read as read_bytes;
use crate::time::moments::End;

/// What makes a column another type.
type Convert = fn(&ArrayRef, &DataType) -> DfResult<ArrayRef>;

/// A cast that is ours, as a function of one argument.
#[derive(Debug)]
pub(crate) struct Conversion {
    /// Says which one it is, with the type.
    name: String,
    to: DataType,
    convert: Convert,
    signature: Signature,
}

impl Conversion {
    /// The conversion of a value.
    pub(crate) fn call(name: impl Into<String>, value: Expr, to: &DataType, convert: Convert) -> Expr {
        let signature = Signature::any(1, Volatility::Immutable);
        let conversion = Self { name: name.into(), to: to.clone(), convert, signature };
        Arc::new(ScalarUDF::from(conversion)).call(vec![value])
    }
}

impl PartialEq for Conversion {
    fn eq(&self, other: &Self) -> bool {
        (&self.name, &self.to) == (&other.name, &other.to)
    }
}

impl Eq for Conversion {}

impl Hash for Conversion {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (&self.name, &self.to).hash(state);
    }
}

impl ScalarUDFImpl for Conversion {
    fn name(&self) -> &str {
        &self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _arg_types: &[DataType]) -> DfResult<DataType> {
        Ok(self.to.clone())
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> DfResult<ColumnarValue> {
        let values = args.args[0].to_array(args.number_rows)?;
        Ok(ColumnarValue::Array((self.convert)(&values, &self.to)?))
    }
}

/// `bytea_in(text)`: bytes written in either of PostgreSQL's forms.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(crate) struct ByteaIn {
    signature: Signature,
}

impl ByteaIn {
    pub(crate) fn udf() -> Arc<ScalarUDF> {
        Arc::new(ScalarUDF::from(Self { signature: Signature::any(1, Volatility::Immutable) }))
    }
}

impl ScalarUDFImpl for ByteaIn {
    fn name(&self) -> &str {
        "bytea_in"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _arg_types: &[DataType]) -> DfResult<DataType> {
        Ok(DataType::BinaryView)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> DfResult<ColumnarValue> {
        let texts = cast(&args.args[0].to_array(args.number_rows)?, &DataType::Utf8View)?;
        let texts = texts.as_string_view();
        let mut bytes = BinaryViewBuilder::with_capacity(texts.len());
        for text in texts {
            match text {
                None => bytes.append_null(),
                Some(text) => match read_bytes(text) {
                    Ok(value) => bytes.append_value(value),
                    Err(problem) => return exec_err!("{problem}"),
                },
            }
        }
        Ok(ColumnarValue::Array(Arc::new(bytes.finish()) as ArrayRef))
    }
}

/// `rint(float)`: the nearest whole number, of two equally near ones the even.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(crate) struct Rint {
    signature: Signature,
}

impl Rint {
    pub(crate) fn udf() -> Arc<ScalarUDF> {
        let signature = Signature::exact(vec![DataType::Float64], Volatility::Immutable);
        Arc::new(ScalarUDF::from(Self { signature }))
    }
}

impl ScalarUDFImpl for Rint {
    fn name(&self) -> &str {
        "rint"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _arg_types: &[DataType]) -> DfResult<DataType> {
        Ok(DataType::Float64)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> DfResult<ColumnarValue> {
        let values = cast(&args.args[0].to_array(args.number_rows)?, &DataType::Float64)?;
        let rounded: Float64Array = values.as_primitive::<Float64Type>().unary(f64::round_ties_even);
        Ok(ColumnarValue::Array(Arc::new(rounded) as ArrayRef))
    }
}

/// `round(numeric, places)`, of a type that is settled when it is planned. DataFusion's has another
/// one when the places turn out to be a constant, which is after what it is compared with has been
/// given its type.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(crate) struct RoundTo {
    to: DataType,
    signature: Signature,
}

impl RoundTo {
    pub(crate) fn udf(to: DataType) -> Arc<ScalarUDF> {
        Arc::new(ScalarUDF::from(Self { to, signature: Signature::any(2, Volatility::Immutable) }))
    }
}

impl ScalarUDFImpl for RoundTo {
    fn name(&self) -> &str {
        "round"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _arg_types: &[DataType]) -> DfResult<DataType> {
        Ok(self.to.clone())
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> DfResult<ColumnarValue> {
        datafusion_functions::math::round().invoke_with_args(args)
    }
}

/// `timestamp_difference(a, b)`: the interval between, in days of 24 hours and the rest.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(crate) struct TimestampDifference {
    signature: Signature,
}

impl TimestampDifference {
    pub(crate) fn udf() -> Arc<ScalarUDF> {
        Arc::new(ScalarUDF::from(Self { signature: Signature::any(2, Volatility::Immutable) }))
    }
}

impl ScalarUDFImpl for TimestampDifference {
    fn name(&self) -> &str {
        "timestamp_difference"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _arg_types: &[DataType]) -> DfResult<DataType> {
        Ok(DataType::Interval(IntervalUnit::MonthDayNano))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> DfResult<ColumnarValue> {
        let micros = |argument: &ColumnarValue| -> DfResult<ArrayRef> {
            let timestamps = argument.to_array(args.number_rows)?;
            let zone = match timestamps.data_type() {
                DataType::Timestamp(_, zone) => zone.clone(),
                _ => None,
            };
            Ok(cast(&timestamps, &DataType::Timestamp(TimeUnit::Microsecond, zone))?)
        };
        let (left, right) = (micros(&args.args[0])?, micros(&args.args[1])?);
        let left = left.as_primitive::<TimestampMicrosecondType>();
        let right = right.as_primitive::<TimestampMicrosecondType>();
        let between = |left: i64, right: i64| match (End::of_micros(left), End::of_micros(right)) {
            (None, None) => left.checked_sub(right).map(in_days).ok_or("interval out of range"),
            _ => Err("cannot subtract infinite timestamps"),
        };
        let between =
            |left, right| between(left, right).map_err(|problem| ArrowError::ComputeError(problem.to_owned()));
        let differences: IntervalMonthDayNanoArray = try_binary(left, right, between)?;
        Ok(ColumnarValue::Array(Arc::new(differences) as ArrayRef))
    }
}

fn in_days(micros: i64) -> IntervalMonthDayNano {
    const MICROS_A_DAY: i64 = 86_400_000_000;
    let nanos = (micros % MICROS_A_DAY) * 1000;
    IntervalMonthDayNano::new(0, (micros / MICROS_A_DAY) as i32, nanos)
}
