//! Functions of numbers where an argument is a plain numeric.

use std::sync::Arc;

use anabranch_batch::numeric::{self, Number, Reader, TYPE};
use arrow::array::{Array, ArrayRef, AsArray};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Field, FieldRef, Int64Type};
use datafusion_common::{Result as DfResult, exec_err, plan_err};
use datafusion_expr::simplify::{ExprSimplifyResult, SimplifyContext};
use datafusion_expr::{
    ColumnarValue, Expr, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};

use super::numerics::{as_floats, coerced, exact_digits, fault, plain_field, readers};
use crate::functions::checked::check_function;
use crate::passes::expr::numbers::OF_DOUBLES;
use crate::resolve::type_names::sql_name;

/// Whether a call is computed here.
pub(super) fn is_ours(name: &str, arg_types: &[DataType]) -> bool {
    let is_exact = |is: &DataType| *is == TYPE || is.is_null() || exact_digits(is).is_some();
    let of_exact = OF_EXACT.contains(&name);
    let asks = |is: &DataType| *is == TYPE || (of_exact && is.is_decimal());
    OF_PLAIN.contains(&name) && arg_types.iter().all(is_exact) && arg_types.iter().any(asks)
}

/// A function of numbers, which DataFusion has for its types only.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(crate) struct OfNumbers {
    inner: Arc<ScalarUDF>,
    signature: Signature,
}

/// Functions that are ours where an argument is plain.
pub(super) const OF_PLAIN: [&str; 12] =
    ["abs", "ceil", "floor", "round", "trunc", "signum", "sqrt", "exp", "ln", "log", "log10", "power"];

/// Functions whose result is plain where an argument is exact but no whole number.
const OF_EXACT: [&str; 7] = ["sqrt", "exp", "ln", "log", "log10", "power", "signum"];

impl OfNumbers {
    /// The function with plain numerics, or as it is.
    pub(crate) fn around(function: Arc<ScalarUDF>) -> Arc<ScalarUDF> {
        match OF_PLAIN.contains(&function.name()) || OF_DOUBLES.contains(&function.name()) {
            true => Arc::new(ScalarUDF::from(Self {
                inner: function,
                signature: Signature::user_defined(Volatility::Immutable),
            })),
            false => function,
        }
    }

    /// Whether a call is computed here.
    fn is_ours(&self, arg_types: &[DataType]) -> bool {
        is_ours(self.inner.name(), arg_types)
    }

    fn compute(&self, args: &ScalarFunctionArgs) -> DfResult<ArrayRef> {
        let (readers, rows) = (readers(args)?, args.number_rows);
        let computed = match (self.inner.name(), readers.as_slice()) {
            ("abs", [value]) => numeric::map(value, rows, |n| Ok(n.abs())),
            ("ceil", [value]) => numeric::map(value, rows, Number::ceiling),
            ("floor", [value]) => numeric::map(value, rows, Number::floor),
            ("round", [value]) => numeric::map(value, rows, |n| n.rounded(0)),
            ("trunc", [value]) => numeric::map(value, rows, |n| n.cut(0)),
            ("signum", [value]) => {
                numeric::map(value, rows, |n| Ok(n.sign().map_or(Number::NaN, |sign| Number::new(i128::from(sign), 0))))
            }
            ("sqrt", [value]) => numeric::map(value, rows, Number::square_root),
            ("exp", [value]) => numeric::map(value, rows, Number::exponential),
            ("ln", [value]) => numeric::map(value, rows, Number::logarithm),
            ("log" | "log10", [value]) => numeric::map(value, rows, |n| n.logarithm_to(&Number::new(10, 0))),
            ("log", [base, value]) => numeric::map_pairs(base, value, rows, |base, n| n.logarithm_to(base)),
            ("power", [base, exponent]) => numeric::map_pairs(base, exponent, rows, Number::power),
            ("round", [value, _]) => return places(args, value, Number::rounded),
            ("trunc", [value, _]) => return places(args, value, Number::cut),
            (name, _) => return exec_err!("{name}() takes other arguments"),
        };
        computed.map_err(fault)
    }
}

/// PostgreSQL regards no more places than these.
const PLACES_MAX: i64 = 2000;

/// `round` and `trunc` to places.
fn places(args: &ScalarFunctionArgs, value: &Reader, of: fn(&Number, i64) -> numeric::Outcome) -> DfResult<ArrayRef> {
    let places = cast(&args.args[1].to_array(args.number_rows)?, &DataType::Int64)?;
    let places = places.as_primitive::<Int64Type>();
    let mut builder = numeric::Builder::with_capacity(args.number_rows);
    for row in 0..args.number_rows {
        let result = match value.value(row).filter(|_| places.is_valid(row)) {
            Some(number) => {
                let places = places.value(row).clamp(-PLACES_MAX, PLACES_MAX);
                Some(of(&number, places).map_err(fault)?)
            }
            None => None,
        };
        builder.append(result.as_ref());
    }
    Ok(builder.finish())
}

impl ScalarUDFImpl for OfNumbers {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn aliases(&self) -> &[String] {
        self.inner.aliases()
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, arg_types: &[DataType]) -> DfResult<DataType> {
        if self.is_ours(arg_types) { Ok(TYPE) } else { self.inner.return_type(&as_floats(arg_types)) }
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs) -> DfResult<FieldRef> {
        let types: Vec<DataType> = args.arg_fields.iter().map(|field| field.data_type().clone()).collect();
        if self.is_ours(&types) {
            return Ok(plain_field(self.name(), &args));
        }
        let floats = args.arg_fields.iter().zip(as_floats(&types));
        let floats: Vec<FieldRef> =
            floats.map(|(field, is)| Arc::new(Field::clone(field).with_data_type(is)) as FieldRef).collect();
        let args = ReturnFieldArgs { arg_fields: &floats, scalar_arguments: args.scalar_arguments };
        self.inner.return_field_from_args(args)
    }

    fn coerce_types(&self, arg_types: &[DataType]) -> DfResult<Vec<DataType>> {
        if self.is_ours(arg_types) {
            let counts = match (self.inner.name(), arg_types.len()) {
                ("log" | "power", 2) => 2,
                ("round" | "trunc" | "log", 1) => 1,
                ("round" | "trunc", 2) if !arg_types[1].is_integer() && !arg_types[1].is_null() => 0,
                ("round" | "trunc", 2) => 2,
                ("power", _) => 2,
                _ => 1,
            };
            if counts != arg_types.len() {
                let types: Vec<String> = arg_types.iter().map(sql_name).collect();
                return plan_err!("function {}({}) does not exist", self.name(), types.join(", "));
            }
            return Ok(arg_types.to_vec());
        }
        // A number beside a float is one.
        coerced(&self.inner, arg_types)
    }

    fn simplify(&self, args: Vec<Expr>, info: &SimplifyContext) -> DfResult<ExprSimplifyResult> {
        let types = args.iter().map(|arg| info.get_data_type(arg)).collect::<DfResult<Vec<_>>>()?;
        if self.is_ours(&types) {
            return Ok(ExprSimplifyResult::Original(args));
        }
        self.inner.simplify(args, info)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> DfResult<ColumnarValue> {
        let types: Vec<DataType> = args.args.iter().map(ColumnarValue::data_type).collect();
        if self.is_ours(&types) {
            return self.compute(&args).map(ColumnarValue::Array);
        }
        let (rows, given) = (args.number_rows, args.args.clone());
        let computed = self.inner.invoke_with_args(args)?.to_array(rows)?;
        let given = given.iter().map(|arg| arg.to_array(rows)).collect::<DfResult<Vec<_>>>()?;
        check_function(self.inner.name(), &given, &computed)?;
        Ok(ColumnarValue::Array(computed))
    }
}
