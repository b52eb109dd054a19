//! Functions of our own.

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, Datum};
use arrow::compute::cast;
use arrow::compute::kernels::numeric;
use arrow::datatypes::{ArrowPrimitiveType, DataType, Field, FieldRef, Float32Type, Float64Type, Int64Type};
use arrow::error::ArrowError;
use datafusion_common::{Result as DfResult, exec_err};
use datafusion_expr::{
    ColumnarValue, Expr, Operator, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};

use super::call_names::call_name;
use crate::resolve::documents::is_kind_of_text;

/// The name of [`OneRow`].
pub(crate) const ONE_ROW: &str = "one_row";

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
        ONE_ROW
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, arg_types: &[DataType]) -> DfResult<DataType> {
        Ok(arg_types[0].clone())
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs) -> DfResult<FieldRef> {
        let of = &args.arg_fields[0];
        let field = Field::new(self.name(), of.data_type().clone(), true);
        Ok(Arc::new(if is_kind_of_text(of) { field.with_metadata(of.metadata().clone()) } else { field }))
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

/// What is computed of two floats.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum FloatVerb {
    Add,
    Subtract,
    Multiply,
    Divide,
}

impl FloatVerb {
    /// The verb of an operator.
    pub(crate) fn of(op: Operator) -> Option<FloatVerb> {
        match op {
            Operator::Plus => Some(FloatVerb::Add),
            Operator::Minus => Some(FloatVerb::Subtract),
            Operator::Multiply => Some(FloatVerb::Multiply),
            Operator::Divide => Some(FloatVerb::Divide),
            _ => None,
        }
    }

    fn kernel(self, left: &dyn Datum, right: &dyn Datum) -> Result<ArrayRef, ArrowError> {
        match self {
            FloatVerb::Add => numeric::add(left, right),
            FloatVerb::Subtract => numeric::sub(left, right),
            FloatVerb::Multiply => numeric::mul(left, right),
            FloatVerb::Divide => numeric::div(left, right),
        }
    }

    /// Looks at a result that is not finite, or zero.
    fn check(self, left: f64, right: f64, result: f64) -> DfResult<()> {
        let is_finite = left.is_finite() && right.is_finite();
        match self {
            FloatVerb::Divide if right == 0.0 && !left.is_nan() => exec_err!("division by zero"),
            _ if result.is_infinite() && !left.is_infinite() && !right.is_infinite() => exec_err!("{OVERFLOW}"),
            FloatVerb::Multiply if result == 0.0 && left != 0.0 && right != 0.0 => exec_err!("{UNDERFLOW}"),
            FloatVerb::Divide if result == 0.0 && left != 0.0 && is_finite => exec_err!("{UNDERFLOW}"),
            _ => Ok(()),
        }
    }
}

/// PostgreSQL's words for a float that is too large.
pub(crate) const OVERFLOW: &str = "value out of range: overflow";

/// PostgreSQL's words for a float that is too small to be told from zero.
pub(crate) const UNDERFLOW: &str = "value out of range: underflow";

/// `float_add(a, b)`, `float_subtract`, `float_multiply` and `float_divide`: an error where the
/// result lies beyond the type, or the divisor is zero, as SQL has it. IEEE's infinity is no
/// answer. A NaN is the one that PostgreSQL has, without a sign.
///
/// Cost: Arrow's kernel and a second look at the results.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(crate) struct FloatArithmetic {
    verb: FloatVerb,
    is_single: bool,
    signature: Signature,
}

impl FloatArithmetic {
    pub(crate) fn udf(verb: FloatVerb, is_single: bool) -> Arc<ScalarUDF> {
        let of = if is_single { DataType::Float32 } else { DataType::Float64 };
        let signature = Signature::exact(vec![of.clone(), of], Volatility::Immutable);
        Arc::new(ScalarUDF::from(Self { verb, is_single, signature }))
    }

    fn compute<T: ArrowPrimitiveType>(&self, args: &ScalarFunctionArgs, nan: T::Native) -> DfResult<ArrayRef>
    where
        T::Native: Into<f64>,
    {
        let left = cast(&args.args[0].to_array(args.number_rows)?, &T::DATA_TYPE)?;
        let right = cast(&args.args[1].to_array(args.number_rows)?, &T::DATA_TYPE)?;
        let result = self.verb.kernel(&left, &right)?;
        let values = result.as_primitive::<T>();
        let is_plain = |value: T::Native| {
            let value: f64 = value.into();
            value.is_finite() && value != 0.0
        };
        if values.values().iter().all(|value| is_plain(*value)) {
            return Ok(result);
        }
        let (l, r) = (left.as_primitive::<T>(), right.as_primitive::<T>());
        let mut has_nan = false;
        for (row, value) in values.iter().enumerate() {
            let Some(value) = value.filter(|value| !is_plain(*value)) else { continue };
            let value: f64 = value.into();
            self.verb.check(l.value(row).into(), r.value(row).into(), value)?;
            has_nan |= value.is_nan();
        }
        if !has_nan {
            return Ok(result);
        }
        let one_nan = |value: T::Native| if Into::<f64>::into(value).is_nan() { nan } else { value };
        Ok(Arc::new(values.unary::<_, T>(one_nan)))
    }
}

impl ScalarUDFImpl for FloatArithmetic {
    fn name(&self) -> &str {
        match self.verb {
            FloatVerb::Add => "float_add",
            FloatVerb::Subtract => "float_subtract",
            FloatVerb::Multiply => "float_multiply",
            FloatVerb::Divide => "float_divide",
        }
    }

    fn schema_name(&self, args: &[Expr]) -> DfResult<String> {
        call_name(self.name(), args)
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _arg_types: &[DataType]) -> DfResult<DataType> {
        Ok(if self.is_single { DataType::Float32 } else { DataType::Float64 })
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> DfResult<ColumnarValue> {
        let computed = match self.is_single {
            true => self.compute::<Float32Type>(&args, f32::NAN),
            false => self.compute::<Float64Type>(&args, f64::NAN),
        };
        computed.map(ColumnarValue::Array)
    }
}

/// Fails where PostgreSQL's function of floats does, and DataFusion's answers infinity, zero or
/// NaN.
pub(crate) fn check_function(name: &str, args: &[ArrayRef], result: &ArrayRef) -> DfResult<()> {
    let (Some(results), Some(first)) = (result.as_primitive_opt::<Float64Type>(), args.first()) else { return Ok(()) };
    let is_watched =
        matches!(name, "ln" | "log" | "log10" | "log2" | "exp" | "power" | "cosh" | "sinh" | "asin" | "acos");
    let is_finite = |value: &Option<f64>| value.is_none_or(|value| value.is_finite() && value != 0.0);
    if !is_watched || results.iter().all(|value| is_finite(&value)) {
        return Ok(());
    }
    let last = args.last().unwrap_or(first);
    let (first, last) = (cast(first, &DataType::Float64)?, cast(last, &DataType::Float64)?);
    let (first, last) = (first.as_primitive::<Float64Type>(), last.as_primitive::<Float64Type>());
    for (row, value) in results.iter().enumerate() {
        let Some(result) = value.filter(|value| !value.is_finite() || *value == 0.0) else { continue };
        check_result(name, first.value(row), last.value(row), result)?;
    }
    Ok(())
}

fn check_result(name: &str, first: f64, last: f64, result: f64) -> DfResult<()> {
    let is_overflow = result.is_infinite() && first.is_finite() && last.is_finite();
    match name {
        "ln" | "log" | "log10" | "log2" if last == 0.0 => exec_err!("cannot take logarithm of zero"),
        "ln" | "log" | "log10" | "log2" if last < 0.0 => exec_err!("cannot take logarithm of a negative number"),
        "asin" | "acos" if result.is_nan() && !first.is_nan() => exec_err!("input is out of range"),
        "power" if first == 0.0 && last < 0.0 => exec_err!("zero raised to a negative power is undefined"),
        "power" if result.is_nan() && first < 0.0 && !last.is_nan() => {
            exec_err!("a negative number raised to a non-integer power yields a complex result")
        }
        "power" if result == 0.0 && first != 0.0 && first.is_finite() && last.is_finite() => exec_err!("{UNDERFLOW}"),
        "exp" if result == 0.0 && first.is_finite() => exec_err!("{UNDERFLOW}"),
        "exp" | "power" | "cosh" | "sinh" if is_overflow => exec_err!("{OVERFLOW}"),
        _ => Ok(()),
    }
}
