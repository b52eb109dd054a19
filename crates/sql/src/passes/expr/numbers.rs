//! Where DataFusion computes numbers otherwise than PostgreSQL and types decide. The reasons stand
//! in the table of `expr`.

use anabranch_batch::numeric::TYPE;
use arrow::datatypes::{DataType, TimeUnit};
use datafusion_common::tree_node::Transformed;
use datafusion_common::{DFSchema, Result as DfResult, ScalarValue, plan_err};
use datafusion_expr::{BinaryExpr, Cast, Expr, ExprSchemable, Operator, cast};

use crate::functions::checked::{FloatArithmetic, FloatVerb};
use crate::functions::conversions::{ByteaIn, Rint, RoundTo};
use crate::functions::extract::{DatePart, Extract, PartForm, has_parts};
use crate::resolve::type_names::{DECIMAL_DIGITS_MAX, is_text};

/// `1e2` as 100.
pub(super) fn without_negative_scale(expr: Expr) -> Transformed<Expr> {
    let whole = match &expr {
        Expr::Literal(ScalarValue::Decimal128(Some(digits), precision, scale @ ..0), metadata) => {
            let zeros = scale.unsigned_abs();
            let whole = 10i128.checked_pow(u32::from(zeros)).and_then(|unit| digits.checked_mul(unit));
            let whole = whole.filter(|_| precision.saturating_add(zeros) <= DECIMAL_DIGITS_MAX);
            whole.map(|n| Expr::Literal(ScalarValue::Decimal128(Some(n), precision + zeros, 0), metadata.clone()))
        }
        _ => None,
    };
    whole.map_or_else(|| Transformed::no(expr), Transformed::yes)
}

pub(super) fn round_before_integer(expr: Expr, schema: &DFSchema) -> DfResult<Transformed<Expr>> {
    let Expr::Cast(cast) = expr else {
        return Ok(Transformed::no(expr));
    };
    let fraction = cast.field.data_type().is_integer()
        && cast.expr.get_type(schema).is_ok_and(|is| is.is_floating() || is.is_decimal());
    if !fraction {
        return Ok(Transformed::no(Expr::Cast(cast)));
    }
    let is_float = cast.expr.get_type(schema)?.is_floating();
    let rounded = match is_float {
        true => Rint::udf().call(vec![datafusion_expr::cast(*cast.expr, DataType::Float64)]),
        false => datafusion_functions::math::expr_fn::round(vec![*cast.expr]),
    };
    Ok(Transformed::yes(Expr::Cast(Cast { expr: Box::new(rounded), field: cast.field })))
}

/// Functions of numbers that PostgreSQL has for `double precision` only.
pub(crate) const OF_DOUBLES: [&str; 31] = [
    "acos", "acosh", "asin", "asinh", "atan", "atan2", "atanh", "cbrt", "ceil", "cos", "cosh", "cot", "degrees", "exp",
    "floor", "ln", "log", "log10", "log2", "pow", "power", "radians", "round", "signum", "sin", "sinh", "sqrt", "tan",
    "tanh", "trunc", "isnan",
];

/// A `real` as argument of a function of `double precision`.
pub(super) fn widen_single(expr: Expr, schema: &DFSchema) -> DfResult<Transformed<Expr>> {
    let mut call = match expr {
        Expr::ScalarFunction(call) if OF_DOUBLES.contains(&call.func.name()) => call,
        other => return Ok(Transformed::no(other)),
    };
    let mut is_changed = false;
    for arg in &mut call.args {
        if arg.get_type(schema).is_ok_and(|is| is == DataType::Float32) {
            *arg = cast(std::mem::take(arg), DataType::Float64);
            is_changed = true;
        }
    }
    let call = Expr::ScalarFunction(call);
    Ok(if is_changed { Transformed::yes(call) } else { Transformed::no(call) })
}

/// `round` of a single float.
pub(super) fn round_to_even(expr: Expr, schema: &DFSchema) -> DfResult<Transformed<Expr>> {
    match &expr {
        Expr::ScalarFunction(call) if call.func.name() == "round" && call.args.len() == 1 => {
            if call.args[0].get_type(schema)? != DataType::Float64 {
                return Ok(Transformed::no(expr));
            }
            Ok(Transformed::yes(Rint::udf().call(call.args.clone())))
        }
        _ => Ok(Transformed::no(expr)),
    }
}

pub(super) fn digit_for_carry(expr: Expr, schema: &DFSchema) -> DfResult<Transformed<Expr>> {
    let Expr::ScalarFunction(call) = &expr else {
        return Ok(Transformed::no(expr));
    };
    if !matches!(call.func.name(), "ceil" | "floor" | "round") {
        return Ok(Transformed::no(expr));
    }
    match call.args.first().map(|argument| argument.get_type(schema)) {
        Some(Ok(DataType::Decimal128(precision, scale))) if precision < 38 => {
            let mut args = call.args.clone();
            args[0] = cast(args[0].clone(), DataType::Decimal128(precision + 1, scale));
            Ok(Transformed::yes(call.func.call(args)))
        }
        _ => Ok(Transformed::no(expr)),
    }
}

/// `ceil`, `floor` and `trunc` of a decimal, which is left with the places that it is cut to.
pub(super) fn drop_places(expr: Expr, schema: &DFSchema) -> DfResult<Transformed<Expr>> {
    let Expr::ScalarFunction(call) = &expr else { return Ok(Transformed::no(expr)) };
    let places = match (call.func.name(), call.args.as_slice()) {
        ("ceil" | "floor" | "trunc", [_]) => 0,
        ("trunc", [_, Expr::Literal(places, _)]) => match places.cast_to(&DataType::Int64) {
            Ok(ScalarValue::Int64(Some(places))) => places.max(0),
            _ => return Ok(Transformed::no(expr)),
        },
        _ => return Ok(Transformed::no(expr)),
    };
    match (expr.get_type(schema)?, i8::try_from(places)) {
        (DataType::Decimal128(precision, scale), Ok(places)) if (0..scale).contains(&places) => {
            let whole = precision.saturating_sub(scale.unsigned_abs()).max(1);
            let to = DataType::Decimal128(whole + places.unsigned_abs(), places);
            Ok(Transformed::yes(cast(expr, to)))
        }
        _ => Ok(Transformed::no(expr)),
    }
}

/// `round` of a numeric to some places.
pub(super) fn settle_rounding(expr: Expr, schema: &DFSchema) -> DfResult<Transformed<Expr>> {
    let Expr::ScalarFunction(call) = &expr else {
        return Ok(Transformed::no(expr));
    };
    let [value, places] = call.args.as_slice() else {
        return Ok(Transformed::no(expr));
    };
    if call.func.name() != "round" || !value.get_type(schema)?.is_decimal() {
        return Ok(Transformed::no(expr));
    }
    let places = cast(places.clone(), DataType::Int32);
    Ok(Transformed::yes(RoundTo::udf(expr.get_type(schema)?).call(vec![value.clone(), places])))
}

/// `date_part('hour', moment)`, which is a float.
pub(super) fn part_with_fraction(expr: Expr, schema: &DFSchema) -> DfResult<Transformed<Expr>> {
    let Expr::ScalarFunction(call) = &expr else {
        return Ok(Transformed::no(expr));
    };
    let (true, [Expr::Literal(name, _), moment]) = (call.func.name() == "date_part", call.args.as_slice()) else {
        return Ok(Transformed::no(expr));
    };
    match name.try_as_str().flatten().and_then(DatePart::named) {
        Some(part) if has_parts(&moment.get_type(schema)?) => {
            let is_date = moment.get_type(schema)? == DataType::Date32;
            let moment = match is_date {
                true => cast(moment.clone(), DataType::Timestamp(TimeUnit::Microsecond, None)),
                false => moment.clone(),
            };
            Ok(Transformed::yes(Extract::udf(part, PartForm::Float).call(vec![moment])))
        }
        _ => Ok(Transformed::no(expr)),
    }
}

fn is_bytes(data_type: &DataType) -> bool {
    matches!(data_type, DataType::Binary | DataType::BinaryView)
}

/// Refuses remainders of floats, and conditions that are not boolean.
pub(super) fn check_types(expr: &Expr, schema: &DFSchema) -> DfResult<()> {
    match expr {
        Expr::BinaryExpr(BinaryExpr { left, op: op @ Operator::Modulo, right }) => {
            let (Ok(l), Ok(r)) = (left.get_type(schema), right.get_type(schema)) else { return Ok(()) };
            if l.is_floating() || r.is_floating() {
                let (l, r) = (crate::resolve::type_names::sql_name(&l), crate::resolve::type_names::sql_name(&r));
                return plan_err!("operator does not exist: {l} {op} {r}");
            }
        }
        Expr::Cast(cast) if cast.field.data_type().is_floating() => {
            if let Ok(is @ (DataType::Timestamp(..) | DataType::Interval(_))) = cast.expr.get_type(schema) {
                let (is, to) = (
                    crate::resolve::type_names::sql_name(&is),
                    crate::resolve::type_names::sql_name(cast.field.data_type()),
                );
                return plan_err!("cannot cast type {is} to {to}");
            }
        }
        Expr::Like(like) if like.expr.get_type(schema).is_ok_and(|is| is == TYPE) => {
            return plan_err!("operator does not exist: numeric ~~ text");
        }
        Expr::Case(case) if case.expr.is_none() => {
            for (condition, _) in &case.when_then_expr {
                let Ok(is) = condition.get_type(schema) else { continue };
                if !matches!(is, DataType::Boolean | DataType::Null) {
                    return plan_err!(
                        "argument of CASE/WHEN must be boolean, not {}",
                        crate::resolve::type_names::sql_name(&is)
                    );
                }
            }
        }
        _ => {}
    }
    Ok(())
}

pub(super) fn read_bytea(expr: Expr, schema: &DFSchema) -> DfResult<Transformed<Expr>> {
    let Expr::Cast(cast) = &expr else {
        return Ok(Transformed::no(expr));
    };
    if !is_bytes(cast.field.data_type()) || !cast.expr.get_type(schema).is_ok_and(|is| is_text(&is)) {
        return Ok(Transformed::no(expr));
    }
    let read = ByteaIn::udf().call(vec![cast.expr.as_ref().clone()]);
    Ok(Transformed::yes(datafusion_expr::cast(read, cast.field.data_type().clone())))
}

/// Refuses sums, differences, products, quotients and negations of constants that lie outside their
/// type.
pub(super) fn check_constant(expr: &Expr, schema: &DFSchema) -> DfResult<()> {
    if !matches!(expr, Expr::BinaryExpr(_) | Expr::Negative(_)) {
        return Ok(());
    }
    let Some(value) = constant(expr) else { return Ok(()) };
    let data_type = expr.get_type(schema)?;
    let Some((least, greatest)) = range(&data_type) else { return Ok(()) };
    if (least..=greatest).contains(&value) {
        return Ok(());
    }
    plan_err!("{} out of range", crate::resolve::type_names::sql_name(&data_type))
}

fn range(data_type: &DataType) -> Option<(i128, i128)> {
    match data_type {
        DataType::Int16 => Some((i128::from(i16::MIN), i128::from(i16::MAX))),
        DataType::Int32 => Some((i128::from(i32::MIN), i128::from(i32::MAX))),
        DataType::Int64 => Some((i128::from(i64::MIN), i128::from(i64::MAX))),
        _ => None,
    }
}

fn constant(expr: &Expr) -> Option<i128> {
    match expr {
        Expr::Literal(value, _) => match value {
            ScalarValue::Int16(Some(n)) => Some(i128::from(*n)),
            ScalarValue::Int32(Some(n)) => Some(i128::from(*n)),
            ScalarValue::Int64(Some(n)) => Some(i128::from(*n)),
            _ => None,
        },
        Expr::Cast(cast) if range(cast.field.data_type()).is_some() => constant(&cast.expr),
        Expr::Negative(inner) => constant(inner).map(|n| -n),
        Expr::BinaryExpr(BinaryExpr { left, op, right }) => {
            let (left, right) = (constant(left)?, constant(right)?);
            match op {
                Operator::Plus => left.checked_add(right),
                Operator::Minus => left.checked_sub(right),
                Operator::Multiply => left.checked_mul(right),
                Operator::Divide => left.checked_div(right),
                _ => None,
            }
        }
        _ => None,
    }
}

/// `-x` of a whole number as `0 - x`, which overflows with an error.
pub(super) fn checked_negation(expr: Expr, schema: &DFSchema) -> DfResult<Transformed<Expr>> {
    let inner = match &expr {
        Expr::Negative(inner) if !matches!(inner.as_ref(), Expr::Literal(..)) => inner,
        _ => return Ok(Transformed::no(expr)),
    };
    let is = inner.get_type(schema)?;
    if !is.is_integer() {
        return Ok(Transformed::no(expr));
    }
    let zero = Expr::Literal(ScalarValue::new_zero(&is)?, None);
    let difference = BinaryExpr::new(Box::new(zero), Operator::Minus, inner.clone());
    Ok(Transformed::yes(Expr::BinaryExpr(difference)))
}

/// Sums, differences, products and quotients of floats, which fail where PostgreSQL's do.
pub(super) fn checked_floats(expr: Expr, schema: &DFSchema) -> DfResult<Transformed<Expr>> {
    let Expr::BinaryExpr(BinaryExpr { left, op, right }) = &expr else {
        return Ok(Transformed::no(expr));
    };
    let Some(verb) = FloatVerb::of(*op) else { return Ok(Transformed::no(expr)) };
    let (Ok(l), Ok(r)) = (left.get_type(schema), right.get_type(schema)) else {
        return Ok(Transformed::no(expr));
    };
    if !(l.is_floating() || r.is_floating()) || !l.is_numeric() || !r.is_numeric() {
        return Ok(Transformed::no(expr));
    }
    let is_single = l == DataType::Float32 && r == DataType::Float32;
    let computed = FloatArithmetic::udf(verb, is_single).call(vec![left.as_ref().clone(), right.as_ref().clone()]);
    Ok(Transformed::yes(computed))
}
