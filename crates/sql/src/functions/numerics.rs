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
//! A long chain of operators is one call, since the planner asks each level of an expression for
//! its type and name, and gets them from all levels below.
//!
//! Cost: a number is decoded, computed and encoded a row; up to 38 digits nothing is allocated for
//! it.

use std::sync::Arc;

use anabranch_batch::numeric::{self, Number, Reader, TYPE};
use arrow::array::Array;
use arrow::datatypes::{DataType, Field, FieldRef};
use datafusion_common::tree_node::Transformed;
use datafusion_common::{DFSchema, DataFusionError, Result as DfResult, exec_err, plan_err};
use datafusion_expr::type_coercion::functions::fields_with_udf;
use datafusion_expr::{
    BinaryExpr, ColumnarValue, Expr, ExprSchemable, Operator, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF,
    ScalarUDFImpl, Signature, Volatility,
};

use super::call_names::call_name;
use crate::resolve::common_types::{float_of_numbers, plain_of_lists, plain_of_numbers};
use crate::resolve::type_names::{is_number, is_text, sql_name};

/// Digits before the point for which a decimal that may need more digits than there are keeps its
/// type.
const WHOLE_DIGITS_MIN: i16 = 20;

/// Digits of the widest decimal.
pub(super) const DIGITS_MAX: i16 = 38;

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

impl Verb {
    fn of_pairs(self) -> fn(&Number, &Number) -> numeric::Outcome {
        match self {
            Verb::Add => Number::plus,
            Verb::Subtract => Number::minus,
            Verb::Multiply => Number::times,
            Verb::Divide => Number::divided,
            Verb::Remainder | Verb::Negate => Number::remainder,
        }
    }
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

    fn schema_name(&self, args: &[Expr]) -> DfResult<String> {
        call_name(self.name(), args)
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
            (verb, [left, right]) => numeric::map_pairs(left, right, rows, verb.of_pairs()),
            _ => return exec_err!("{} takes two numbers", self.name()),
        };
        computed.map(ColumnarValue::Array).map_err(fault)
    }
}

/// Operators in each other that are calls in each other; of more, all are one call.
const LEVELS_MAX: usize = 32;

/// `x op y op z ..`, computed from the left.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Chain {
    verbs: Vec<Verb>,
    signature: Signature,
}

impl Chain {
    /// The chain that a value is, and its numbers.
    fn of(value: &Expr) -> Option<(Vec<Verb>, Vec<Expr>)> {
        let Expr::ScalarFunction(call) = value else { return None };
        if let Some(chain) = call.func.inner().downcast_ref::<Chain>() {
            return Some((chain.verbs.clone(), call.args.clone()));
        }
        let (mut verbs, mut args, mut rest) = (vec![], vec![], value);
        while let Some((verb, left, right)) = pair_of(rest) {
            verbs.push(verb);
            args.push(right.clone());
            rest = left;
        }
        if verbs.len() < LEVELS_MAX {
            return None;
        }
        args.push(rest.clone());
        verbs.reverse();
        args.reverse();
        Some((verbs, args))
    }

    /// The value of a verb behind a chain.
    fn longer((mut verbs, mut args): (Vec<Verb>, Vec<Expr>), verb: Verb, right: &Expr) -> Expr {
        verbs.push(verb);
        args.push(right.clone());
        let signature = Signature::any(args.len(), Volatility::Immutable);
        Arc::new(ScalarUDF::from(Chain { verbs, signature })).call(args)
    }
}

/// An operator between two numbers, and these.
fn pair_of(value: &Expr) -> Option<(Verb, &Expr, &Expr)> {
    let Expr::ScalarFunction(call) = value else { return None };
    let arithmetic = call.func.inner().downcast_ref::<Arithmetic>()?;
    match call.args.as_slice() {
        [left, right] => Some((arithmetic.verb, left, right)),
        _ => None,
    }
}

impl ScalarUDFImpl for Chain {
    fn name(&self) -> &str {
        "numeric_chain"
    }

    fn schema_name(&self, args: &[Expr]) -> DfResult<String> {
        // (Verbs tell chains of the same numbers apart.)
        let verbs: String = self.verbs.iter().map(|verb| char::from(b'a' + *verb as u8)).collect();
        call_name(&format!("{}_{verbs}", self.name()), args)
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
        let mut readers = readers(&args)?.into_iter();
        let Some(mut computed) = readers.next() else { return exec_err!("a chain has numbers") };
        let mut column = None;
        for (verb, right) in self.verbs.iter().zip(readers) {
            let next = numeric::map_pairs(&computed, &right, args.number_rows, verb.of_pairs()).map_err(fault)?;
            match Reader::new(&next) {
                Some(reader) => computed = reader,
                None => return exec_err!("what is computed of numbers is a number"),
            }
            column = Some(next);
        }
        match column {
            Some(column) => Ok(ColumnarValue::Array(column)),
            None => exec_err!("a chain has operators"),
        }
    }
}

pub(super) fn fault(fault: numeric::Fault) -> DataFusionError {
    DataFusionError::Execution(fault.to_string())
}

pub(super) fn plain_field(name: &str, args: &ReturnFieldArgs) -> FieldRef {
    let is_nullable = args.arg_fields.iter().any(|field| field.is_nullable());
    Arc::new(Field::new(name, TYPE, is_nullable))
}

/// The arguments, to be read by row.
pub(super) fn readers(args: &ScalarFunctionArgs) -> DfResult<Vec<Reader>> {
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
pub(super) fn exact_digits(data_type: &DataType) -> Option<(i16, i16)> {
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
    if let Some(chain) = Chain::of(left) {
        return Some(Chain::longer(chain, verb, right));
    }
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
/// a float. Two arrays of numerics, of which one has plain elements: both have plain ones.
pub(crate) fn plain_comparison(left: &Expr, right: &Expr, types: (&DataType, &DataType)) -> Option<(Expr, Expr)> {
    let pair = [types.0.clone(), types.1.clone()];
    if types.0 == types.1 {
        return None;
    }
    let common = match pair.contains(&TYPE) {
        true => plain_of_numbers(&pair).or_else(|| float_of_numbers(&pair).map(|_| DataType::Float64))?,
        false => plain_of_lists(&pair)?,
    };
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

    fn schema_name(&self, args: &[Expr]) -> DfResult<String> {
        call_name(self.name(), args)
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

/// Plain `numeric`, if it is the type of all; a literal in quotes is read as what stands beside it,
/// later.
pub(crate) fn plain_among(arg_types: &[DataType]) -> Option<DataType> {
    let firm = |is: &DataType| if is_text(is) { DataType::Null } else { is.clone() };
    plain_of_numbers(&arg_types.iter().map(firm).collect::<Vec<_>>())
}

/// The types with plain numerics as floats.
pub(super) fn as_floats(arg_types: &[DataType]) -> Vec<DataType> {
    arg_types.iter().map(|is| if *is == TYPE { DataType::Float64 } else { is.clone() }).collect()
}

/// The types that a function takes these as. Plain numerics stay: they are made floats in the
/// resolved plan.
pub(super) fn coerced(function: &ScalarUDF, arg_types: &[DataType]) -> DfResult<Vec<DataType>> {
    let fields: Vec<FieldRef> =
        as_floats(arg_types).into_iter().map(|is| Arc::new(Field::new("", is, true)) as FieldRef).collect();
    let fields = fields_with_udf(&fields, function)?;
    let types = fields.iter().zip(arg_types);
    Ok(types.map(|(field, is)| if *is == TYPE { TYPE } else { field.data_type().clone() }).collect())
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
