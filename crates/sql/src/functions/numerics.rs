//! `numeric` without a scale, computed: [`anabranch_batch::numeric`] as functions of the planner.
//!
//! DataFusion knows no arithmetic on such columns (of [`TYPE`]), so each operator and function on
//! them is a function of ours. Which type a result has:
//!
//! - quotients are plain `numeric`, with PostgreSQL's digits;
//! - sums, differences and products of decimals are decimals where their type has room for all
//!   digits, or for so many before the point (`WHOLE_DIGITS_MIN`) that values do not reach; else
//!   they are plain;
//! - what is computed with a plain `numeric` is plain, but for floats beside it, which make floats.
//!
//! Cost: a number is decoded, computed and encoded a row; up to 38 digits nothing is allocated for
//! it.

use std::sync::Arc;

use anabranch_batch::numeric::{self, Number, Reader, TYPE};
use arrow::array::{Array, ArrayRef, AsArray, Decimal128Array};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Int64Type};
use arrow::datatypes::{Field, FieldRef};
use datafusion_common::tree_node::Transformed;
use datafusion_common::{DFSchema, DataFusionError, Result as DfResult, exec_err, plan_err};
use datafusion_expr::simplify::{ExprSimplifyResult, SimplifyContext};
use datafusion_expr::type_coercion::functions::fields_with_udf;
use datafusion_expr::{
    BinaryExpr, ColumnarValue, Expr, ExprSchemable, Operator, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF,
    ScalarUDFImpl, Signature, Volatility,
};

use crate::functions::checked::check_function;
use crate::passes::expr::numbers::OF_DOUBLES;
use crate::resolve::common_types::{float_of_numbers, plain_of_numbers};
use crate::resolve::documents::form_of;
use crate::resolve::type_names::{is_number, is_text, sql_name};

/// Digits before the point for which a decimal that may need more digits than there are keeps its
/// type.
const WHOLE_DIGITS_MIN: i16 = 20;

/// Digits of the widest decimal.
const DIGITS_MAX: i16 = 38;

/// What is computed of two numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Verb {
    Add,
    Subtract,
    Multiply,
    Divide,
    Remainder,
    Negate,
}

/// An operator on numbers.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Arithmetic {
    verb: Verb,
    signature: Signature,
}

impl Arithmetic {
    fn call(verb: Verb, args: Vec<Expr>) -> Expr {
        let signature = Signature::any(args.len(), Volatility::Immutable);
        Arc::new(ScalarUDF::from(Self { verb, signature })).call(args)
    }
}

impl ScalarUDFImpl for Arithmetic {
    fn name(&self) -> &str {
        match self.verb {
            Verb::Add => "numeric_add",
            Verb::Subtract => "numeric_subtract",
            Verb::Multiply => "numeric_multiply",
            Verb::Divide => "numeric_divide",
            Verb::Remainder => "numeric_remainder",
            Verb::Negate => "numeric_negate",
        }
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _arg_types: &[DataType]) -> DfResult<DataType> {
        Ok(TYPE)
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs) -> DfResult<FieldRef> {
        Ok(plain_field(self.name(), &args))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> DfResult<ColumnarValue> {
        let readers = readers(&args)?;
        let rows = args.number_rows;
        let computed = match (self.verb, readers.as_slice()) {
            (Verb::Negate, [value]) => numeric::map(value, rows, |value| Ok(value.negated())),
            (verb, [left, right]) => {
                let of = match verb {
                    Verb::Add => Number::plus,
                    Verb::Subtract => Number::minus,
                    Verb::Multiply => Number::times,
                    Verb::Divide => Number::divided,
                    Verb::Remainder | Verb::Negate => Number::remainder,
                };
                numeric::map_pairs(left, right, rows, of)
            }
            _ => return exec_err!("{} takes two numbers", self.name()),
        };
        computed.map(ColumnarValue::Array).map_err(fault)
    }
}

fn fault(fault: numeric::Fault) -> DataFusionError {
    DataFusionError::Execution(fault.to_string())
}

fn plain_field(name: &str, args: &ReturnFieldArgs) -> FieldRef {
    let is_nullable = args.arg_fields.iter().any(|field| field.is_nullable());
    Arc::new(Field::new(name, TYPE, is_nullable))
}

/// The arguments, to be read by row.
fn readers(args: &ScalarFunctionArgs) -> DfResult<Vec<Reader>> {
    let reader = |arg: &ColumnarValue| {
        let column = arg.to_array(args.number_rows)?;
        match Reader::new(&column) {
            Some(reader) => Ok(reader),
            None => exec_err!("values of type {} are no numbers", sql_name(column.data_type())),
        }
    };
    args.args.iter().map(reader).collect()
}

/// Digits of an exact number, and how many of them are after the point.
fn exact_digits(data_type: &DataType) -> Option<(i16, i16)> {
    match data_type {
        DataType::Decimal128(precision, scale) => Some((i16::from(*precision), i16::from(*scale))),
        DataType::Int8 => Some((3, 0)),
        DataType::Int16 => Some((5, 0)),
        DataType::Int32 => Some((10, 0)),
        integer if integer.is_integer() => Some((20, 0)),
        _ => None,
    }
}

/// The verb of an operator whose result is plain `numeric`.
fn plain_verb(op: Operator, left: &DataType, right: &DataType) -> Option<Verb> {
    let verb = match op {
        Operator::Plus => Verb::Add,
        Operator::Minus => Verb::Subtract,
        Operator::Multiply => Verb::Multiply,
        Operator::Divide => Verb::Divide,
        Operator::Modulo => Verb::Remainder,
        _ => return None,
    };
    if *left == TYPE || *right == TYPE {
        let is_exact = |is: &DataType| *is == TYPE || is.is_null() || exact_digits(is).is_some();
        return (is_exact(left) && is_exact(right)).then_some(verb);
    }
    if !left.is_decimal() && !right.is_decimal() {
        return None;
    }
    let ((p, s), (q, t)) = (exact_digits(left)?, exact_digits(right)?);
    let has_room = |digits: i16, scale: i16| digits <= DIGITS_MAX || DIGITS_MAX - scale >= WHOLE_DIGITS_MIN;
    let is_typed = match verb {
        Verb::Divide => false,
        Verb::Multiply => has_room(p + q, s + t),
        Verb::Add | Verb::Subtract => has_room((p - s).max(q - t) + 1 + s.max(t), s.max(t)),
        Verb::Remainder | Verb::Negate => true,
    };
    (!is_typed).then_some(verb)
}

/// `left op right` of plain numerics, or of decimals whose result is one.
pub(crate) fn plain_operation(op: Operator, left: &Expr, right: &Expr, types: (&DataType, &DataType)) -> Option<Expr> {
    let verb = plain_verb(op, types.0, types.1)?;
    Some(Arithmetic::call(verb, vec![left.clone(), right.clone()]))
}

/// `left || right` of which one is a plain numeric: its text.
pub(crate) fn joined_text(left: &Expr, right: &Expr, types: (&DataType, &DataType)) -> Option<Expr> {
    let is_joined = (*types.0 == TYPE && is_text(types.1)) || (is_text(types.0) && *types.1 == TYPE);
    let text = |value: &Expr, is: &DataType| match *is == TYPE {
        true => datafusion_expr::cast(value.clone(), DataType::Utf8View),
        false => value.clone(),
    };
    is_joined.then(|| {
        let (left, right) = (text(left, types.0), text(right, types.1));
        Expr::BinaryExpr(BinaryExpr::new(Box::new(left), Operator::StringConcat, Box::new(right)))
    })
}

/// Two numbers that are compared, of which one is plain: both plain, or both floats if the other is
/// a float.
pub(crate) fn plain_comparison(left: &Expr, right: &Expr, types: (&DataType, &DataType)) -> Option<(Expr, Expr)> {
    let pair = [types.0.clone(), types.1.clone()];
    if types.0 == types.1 || !pair.contains(&TYPE) {
        return None;
    }
    let common = plain_of_numbers(&pair).or_else(|| float_of_numbers(&pair).map(|_| DataType::Float64))?;
    let as_common = |value: &Expr, is: &DataType| match *is == common {
        true => value.clone(),
        false => datafusion_expr::cast(value.clone(), common.clone()),
    };
    Some((as_common(left, types.0), as_common(right, types.1)))
}

/// Operators on plain numerics in a resolved plan.
pub(crate) fn compute_plain(expr: Expr, schema: &DFSchema) -> DfResult<Transformed<Expr>> {
    match &expr {
        Expr::BinaryExpr(BinaryExpr { left, op: Operator::StringConcat, right }) => {
            let (Ok(l), Ok(r)) = (left.get_type(schema), right.get_type(schema)) else {
                return Ok(Transformed::no(expr));
            };
            let planned = joined_text(left, right, (&l, &r));
            Ok(planned.map_or_else(|| Transformed::no(expr), Transformed::yes))
        }
        Expr::BinaryExpr(BinaryExpr { left, op, right }) => {
            let (Ok(l), Ok(r)) = (left.get_type(schema), right.get_type(schema)) else {
                return Ok(Transformed::no(expr));
            };
            let planned = plain_operation(*op, left, right, (&l, &r));
            Ok(planned.map_or_else(|| Transformed::no(expr), Transformed::yes))
        }
        Expr::ScalarFunction(call) if call.func.name() == NEGATIVE => {
            let value = call.args[0].clone();
            match value.get_type(schema)? {
                TYPE => Ok(Transformed::yes(Arithmetic::call(Verb::Negate, vec![value]))),
                _ => Ok(Transformed::yes(Expr::Negative(Box::new(value)))),
            }
        }
        Expr::Negative(inner) if inner.get_type(schema)? == TYPE => {
            Ok(Transformed::yes(Arithmetic::call(Verb::Negate, vec![inner.as_ref().clone()])))
        }
        _ => Ok(Transformed::no(expr)),
    }
}

/// The name of a negation on its way to the resolved plan.
pub(crate) const NEGATIVE: &str = "__negative";

/// `__negative(x)`: what `-x` is until types are known; DataFusion refuses it of plain numerics.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(crate) struct Negative {
    signature: Signature,
}

impl Negative {
    pub(crate) fn udf() -> Arc<ScalarUDF> {
        Arc::new(ScalarUDF::from(Self { signature: Signature::any(1, Volatility::Immutable) }))
    }
}

impl ScalarUDFImpl for Negative {
    fn name(&self) -> &str {
        NEGATIVE
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, arg_types: &[DataType]) -> DfResult<DataType> {
        let is = &arg_types[0];
        let is_signed = is.is_signed_integer() || is.is_floating() || is.is_decimal() || *is == TYPE || is.is_null();
        match is_signed || matches!(is, DataType::Interval(_) | DataType::Duration(_)) {
            true => Ok(is.clone()),
            false => plan_err!("operator does not exist: - {}", sql_name(is)),
        }
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> DfResult<ColumnarValue> {
        // (An expression that no plan has resolved: a default, a bound.)
        let value = args.args[0].to_array(args.number_rows)?;
        if *value.data_type() == TYPE {
            let reader = readers(&args)?;
            return numeric::map(&reader[0], args.number_rows, |n| Ok(n.negated()))
                .map(ColumnarValue::Array)
                .map_err(fault);
        }
        Ok(ColumnarValue::Array(arrow::compute::kernels::numeric::neg(&value)?))
    }
}

/// Functions that choose among values, of which plain numerics make plain ones.
const CHOOSING: [&str; 3] = ["greatest", "least", "nullif"];

/// A function that chooses among values.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(crate) struct Choosing {
    inner: Arc<ScalarUDF>,
    signature: Signature,
}

impl Choosing {
    /// The function with plain numerics, or as it is.
    pub(crate) fn around(function: Arc<ScalarUDF>) -> Arc<ScalarUDF> {
        match CHOOSING.contains(&function.name()) || function.name() == MAKE_ARRAY {
            true => Arc::new(ScalarUDF::from(Self {
                inner: function,
                signature: Signature::user_defined(Volatility::Immutable),
            })),
            false => function,
        }
    }
}

impl Choosing {
    /// The type that literals beside others will have. (Of arrays none is chosen: NULL within them
    /// has another order here.)
    fn of_literals(&self, arg_types: &[DataType]) -> Option<DataType> {
        let is_listed = self.name() == MAKE_ARRAY;
        one_beside_text(arg_types).filter(|is| is_listed || !matches!(is, DataType::List(_)))
    }
}

impl ScalarUDFImpl for Choosing {
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
        match plain_among(arg_types).or_else(|| self.of_literals(arg_types)) {
            Some(common) if self.name() == MAKE_ARRAY => self.inner.return_type(&vec![common; arg_types.len()]),
            Some(common) => Ok(common),
            None => self.inner.return_type(&as_floats(arg_types)),
        }
    }

    /// (An array of documents is told as such, and so is a document that is not another.)
    fn return_field_from_args(&self, args: ReturnFieldArgs) -> DfResult<FieldRef> {
        let types: Vec<DataType> = args.arg_fields.iter().map(|field| field.data_type().clone()).collect();
        let field = Field::new(self.name(), self.return_type(&types)?, true);
        let form = args.arg_fields.iter().find_map(|field| form_of(field));
        Ok(Arc::new(match (form, self.name()) {
            (Some(form), MAKE_ARRAY) => form.mark_list(field),
            (Some(form), "nullif") => form.mark(field),
            _ => field,
        }))
    }

    fn coerce_types(&self, arg_types: &[DataType]) -> DfResult<Vec<DataType>> {
        match plain_among(arg_types).or_else(|| self.of_literals(arg_types)) {
            // (The planner has no cast to plain numerics: `settle_arguments` makes it; literals are
            // read by `common_type`.)
            Some(_) => Ok(arg_types.to_vec()),
            None => coerced(&self.inner, arg_types),
        }
    }

    fn simplify(&self, args: Vec<Expr>, info: &SimplifyContext) -> DfResult<ExprSimplifyResult> {
        self.inner.simplify(args, info)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> DfResult<ColumnarValue> {
        self.inner.invoke_with_args(args)
    }

    fn conditional_arguments<'a>(&self, args: &'a [Expr]) -> Option<(Vec<&'a Expr>, Vec<&'a Expr>)> {
        self.inner.conditional_arguments(args)
    }

    fn short_circuits(&self) -> bool {
        self.inner.short_circuits()
    }
}

/// Plain `numeric`, if it is the type of all; a literal in quotes is read as what stands beside it,
/// later.
pub(crate) fn plain_among(arg_types: &[DataType]) -> Option<DataType> {
    let firm = |is: &DataType| if is_text(is) { DataType::Null } else { is.clone() };
    plain_of_numbers(&arg_types.iter().map(firm).collect::<Vec<_>>())
}

const MAKE_ARRAY: &str = "make_array";
const ARRAY_HAS: &str = "array_has";

/// The type of intervals, times, arrays or bytes, which literals beside them will have.
fn one_beside_text(arg_types: &[DataType]) -> Option<DataType> {
    let firm: Vec<&DataType> = arg_types.iter().filter(|is| !is_text(is) && !is.is_null()).collect();
    let (first, rest) = firm.split_first()?;
    let is_read = first.is_temporal() || matches!(first, DataType::List(_) | DataType::Binary | DataType::BinaryView);
    (is_read && arg_types.iter().any(is_text) && rest.iter().all(|is| is == first)).then(|| (*first).clone())
}

/// The types with plain numerics as floats.
fn as_floats(arg_types: &[DataType]) -> Vec<DataType> {
    arg_types.iter().map(|is| if *is == TYPE { DataType::Float64 } else { is.clone() }).collect()
}

/// The types that a function takes these as. Plain numerics stay: they are made floats in the
/// resolved plan.
fn coerced(function: &ScalarUDF, arg_types: &[DataType]) -> DfResult<Vec<DataType>> {
    let fields: Vec<FieldRef> =
        as_floats(arg_types).into_iter().map(|is| Arc::new(Field::new("", is, true)) as FieldRef).collect();
    let fields = fields_with_udf(&fields, function)?;
    let types = fields.iter().zip(arg_types);
    Ok(types.map(|(field, is)| if *is == TYPE { TYPE } else { field.data_type().clone() }).collect())
}

/// Plain numerics among the arguments of a function, as the function takes them.
pub(crate) fn settle_arguments(expr: Expr, schema: &DFSchema) -> DfResult<Transformed<Expr>> {
    match expr {
        Expr::ScalarFunction(mut call) => {
            let types = call.args.iter().map(|arg| arg.get_type(schema)).collect::<DfResult<Vec<_>>>()?;
            if let (true, Some(DataType::List(of))) = (call.func.name().starts_with("array_"), types.first())
                && *of.data_type() == TYPE
            {
                // An element beside a list of plain numerics is one.
                let mut is_changed = false;
                for (arg, is) in call.args.iter_mut().zip(&types).skip(1) {
                    if is.is_decimal() || is.is_integer() && call.func.name() == ARRAY_HAS {
                        *arg = datafusion_expr::cast(std::mem::take(arg), TYPE);
                        is_changed = true;
                    }
                }
                let call = Expr::ScalarFunction(call);
                return Ok(if is_changed { Transformed::yes(call) } else { Transformed::no(call) });
            }
            if !types.contains(&TYPE) {
                return Ok(Transformed::no(Expr::ScalarFunction(call)));
            }
            let name = call.func.name();
            let wanted = if CHOOSING.contains(&name) || name == "coalesce" || name == MAKE_ARRAY {
                plain_among(&types).or_else(|| float_of_numbers(&types))
            } else if is_ours(name, &types) {
                None
            } else if OF_PLAIN.contains(&name) || OF_DOUBLES.contains(&name) {
                Some(DataType::Float64)
            } else if matches!(name, "concat" | "concat_ws") {
                Some(DataType::Utf8View)
            } else {
                check_arguments(&call.func, &types)?;
                None
            };
            let Some(wanted) = wanted else { return Ok(Transformed::no(Expr::ScalarFunction(call))) };
            let is_plain = wanted == TYPE;
            for (arg, is) in call.args.iter_mut().zip(&types) {
                let is_cast = if is_plain { is_number(is) && *is != TYPE } else { *is == TYPE };
                if is_cast {
                    *arg = datafusion_expr::cast(std::mem::take(arg), wanted.clone());
                }
            }
            Ok(Transformed::yes(Expr::ScalarFunction(call)))
        }
        Expr::AggregateFunction(mut call) if OF_FLOATS.contains(&call.func.name()) => {
            let is_changed = as_float_arguments(&mut call.params.args, schema);
            let call = Expr::AggregateFunction(call);
            Ok(if is_changed { Transformed::yes(call) } else { Transformed::no(call) })
        }
        Expr::WindowFunction(mut call) if OF_FLOATS.contains(&call.fun.name()) => {
            let is_changed = as_float_arguments(&mut call.params.args, schema);
            let call = Expr::WindowFunction(call);
            Ok(if is_changed { Transformed::yes(call) } else { Transformed::no(call) })
        }
        other => Ok(Transformed::no(other)),
    }
}

/// Aggregates that are computed of floats.
pub(crate) const OF_FLOATS: [&str; 5] = ["stddev", "stddev_pop", "var", "var_pop", "median"];

fn as_float_arguments(args: &mut [Expr], schema: &DFSchema) -> bool {
    let mut is_changed = false;
    for arg in args {
        if arg.get_type(schema).is_ok_and(|is| is == TYPE) {
            *arg = datafusion_expr::cast(std::mem::take(arg), DataType::Float64);
            is_changed = true;
        }
    }
    is_changed
}

/// Refuses a function that would take plain numerics for bytes.
fn check_arguments(function: &ScalarUDF, types: &[DataType]) -> DfResult<()> {
    let fields: Vec<FieldRef> = types.iter().map(|is| Arc::new(Field::new("", is.clone(), true)) as FieldRef).collect();
    let taken = fields_with_udf(&fields, function)?;
    if types.iter().zip(&taken).all(|(is, taken)| *is != TYPE || *taken.data_type() == TYPE) {
        return Ok(());
    }
    let types: Vec<String> = types.iter().map(sql_name).collect();
    plan_err!("function {}({}) does not exist", function.name(), types.join(", "))
}

/// Whether a call is computed here.
fn is_ours(name: &str, arg_types: &[DataType]) -> bool {
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
const OF_PLAIN: [&str; 12] =
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

/// `numeric_floor(x)` and `numeric_ceiling(x)`: the nearest decimal of a scale that is not greater,
/// or not less.
#[derive(Debug, PartialEq, Eq, Hash)]
struct AtScale {
    scale: i8,
    is_floor: bool,
    signature: Signature,
}

/// The greatest decimal of a scale that is not above a plain numeric: what decimals of that scale
/// are compared with instead of it. Beyond what decimals of 38 digits reach it is the greatest or
/// least of them.
pub fn floor_at(value: Expr, scale: i8) -> Expr {
    at_scale(value, scale, true)
}

/// The least decimal of a scale that is not below a plain numeric. See [`floor_at`].
pub fn ceiling_at(value: Expr, scale: i8) -> Expr {
    at_scale(value, scale, false)
}

fn at_scale(value: Expr, scale: i8, is_floor: bool) -> Expr {
    let signature = Signature::any(1, Volatility::Immutable);
    Arc::new(ScalarUDF::from(AtScale { scale, is_floor, signature })).call(vec![value])
}

impl AtScale {
    fn nearest(&self, number: &Number) -> i128 {
        let greatest = 10i128.pow(DIGITS_MAX as u32) - 1;
        let Number::Finite(finite) = number else {
            return if number.sign() == Some(-1) { -greatest } else { greatest };
        };
        let scaled = finite.coefficient.shifted(self.scale as u32);
        let (whole, rest) = scaled.divided(&numeric::Whole::power_of_ten(finite.scale));
        let step = match (rest.is_zero(), rest.is_negative(), self.is_floor) {
            (false, true, true) => numeric::Whole::Small(-1),
            (false, false, false) => numeric::Whole::Small(1),
            _ => numeric::Whole::default(),
        };
        let nearest = whole.plus(&step);
        let end = if nearest.is_negative() { -greatest } else { greatest };
        nearest.to_i128().map_or(end, |value| value.clamp(-greatest, greatest))
    }
}

impl ScalarUDFImpl for AtScale {
    fn name(&self) -> &str {
        if self.is_floor { "numeric_floor" } else { "numeric_ceiling" }
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _arg_types: &[DataType]) -> DfResult<DataType> {
        Ok(DataType::Decimal128(DIGITS_MAX as u8, self.scale))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> DfResult<ColumnarValue> {
        let readers = readers(&args)?;
        let values = (0..args.number_rows).map(|row| readers[0].value(row).map(|number| self.nearest(&number)));
        let values = values.collect::<Decimal128Array>().with_precision_and_scale(DIGITS_MAX as u8, self.scale)?;
        Ok(ColumnarValue::Array(Arc::new(values)))
    }
}

/// Whether a conversion between the types goes through numbers.
pub(crate) fn converts(from: &DataType, to: &DataType) -> bool {
    match (from, to) {
        (DataType::List(from), DataType::List(to)) => converts(from.data_type(), to.data_type()),
        _ => from != to && (*from == TYPE || *to == TYPE),
    }
}

/// Whether there is such a conversion.
pub(crate) fn is_convertible(from: &DataType, to: &DataType) -> bool {
    let other = |is: &DataType| is_number(is) || crate::resolve::type_names::is_text(is) || is.is_null();
    match (from, to) {
        (DataType::List(from), DataType::List(to)) => is_convertible(from.data_type(), to.data_type()),
        _ => other(from) && other(to),
    }
}
