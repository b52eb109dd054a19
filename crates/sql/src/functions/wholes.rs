//! Whole numbers as PostgreSQL computes with them: what leaves its type is an error, and bits shift
//! within the type of their number.
//!
//! - `a + b`, `a - b` and `a * b` without columns: DataFusion folds constants wrapping round,
//!   wherever they come from.
//! - `a << b` and `a >> b` have the type of `a`; DataFusion would make both operands `bigint`, and
//!   refuse or clear what is shifted too far.
//! - `date + days` and `date - days` within the dates that PostgreSQL has; DataFusion would wrap
//!   round.

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, Date32Array, PrimitiveArray};
use arrow::compute::kernels::numeric::{add, mul, sub};
use arrow::compute::{cast, try_binary};
use arrow::datatypes::{ArrowPrimitiveType, DataType, Date32Type, Int16Type, Int32Type, Int64Type};
use arrow::error::ArrowError;
use datafusion_common::tree_node::{Transformed, TreeNode};
use datafusion_common::{DFSchema, Result as DfResult, ScalarValue, exec_err};
use datafusion_expr::expr_rewriter::NamePreserver;
use datafusion_expr::logical_plan::LogicalPlan;
use datafusion_expr::simplify::SimplifyContext;
use datafusion_expr::sqlparser::ast::BinaryOperator;
use datafusion_expr::utils::merge_schema;
use datafusion_expr::{
    BinaryExpr, ColumnarValue, Expr, ExprSchemable, Operator, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
    Volatility, bitwise_and, bitwise_or,
};
use datafusion_optimizer::simplify_expressions::ExprSimplifier;

use crate::resolve::type_names::sql_name;
use crate::time::moments::{End, date_moved};

/// What is done with two whole numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Verb {
    Add,
    Subtract,
    Multiply,
    ShiftLeft,
    ShiftRight,
    /// A date and a number of days.
    DateAdd,
    DateSubtract,
    /// The days between two dates.
    DateDifference,
}

/// A function of two whole numbers, of the type of the first.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Whole {
    verb: Verb,
    signature: Signature,
}

impl Whole {
    fn call(verb: Verb, left: Expr, right: Expr) -> Expr {
        let signature = Signature::any(2, Volatility::Immutable);
        Arc::new(ScalarUDF::from(Self { verb, signature })).call(vec![left, right])
    }
}

impl ScalarUDFImpl for Whole {
    fn name(&self) -> &str {
        match self.verb {
            Verb::Add => "checked_add",
            Verb::Subtract => "checked_subtract",
            Verb::Multiply => "checked_multiply",
            Verb::ShiftLeft => "shift_left",
            Verb::ShiftRight => "shift_right",
            Verb::DateAdd => "date_add_days",
            Verb::DateSubtract => "date_subtract_days",
            Verb::DateDifference => "date_subtract",
        }
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, arg_types: &[DataType]) -> DfResult<DataType> {
        Ok(if self.verb == Verb::DateDifference { DataType::Int32 } else { arg_types[0].clone() })
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> DfResult<ColumnarValue> {
        let (left, right) = (args.args[0].to_array(args.number_rows)?, args.args[1].to_array(args.number_rows)?);
        let result = match self.verb {
            Verb::Add => checked(add(&left, &right), left.data_type()),
            Verb::Subtract => checked(sub(&left, &right), left.data_type()),
            Verb::Multiply => checked(mul(&left, &right), left.data_type()),
            Verb::ShiftLeft | Verb::ShiftRight => shift(self.verb, &left, &right),
            Verb::DateAdd => move_dates(&left, &right, i64::checked_add),
            Verb::DateSubtract => move_dates(&left, &right, i64::checked_sub),
            Verb::DateDifference => days_between(&left, &right),
        };
        result.map(ColumnarValue::Array)
    }
}

fn checked(result: Result<ArrayRef, ArrowError>, is: &DataType) -> DfResult<ArrayRef> {
    match result {
        Err(ArrowError::ArithmeticOverflow(_)) => exec_err!("{} out of range", sql_name(is)),
        result => Ok(result?),
    }
}

/// The processor's shifts: by as many bits as remain of the count modulo those of the number, which
/// has 32 at least.
fn shift(verb: Verb, values: &ArrayRef, counts: &ArrayRef) -> DfResult<ArrayRef> {
    let counts = cast(counts, &DataType::Int64)?;
    let is_left = verb == Verb::ShiftLeft;
    let narrow = |value: i32, count: i64| match is_left {
        true => value.wrapping_shl(count as u32),
        false => value.wrapping_shr(count as u32),
    };
    let wide = |value: i64, count: i64| match is_left {
        true => value.wrapping_shl(count as u32),
        false => value.wrapping_shr(count as u32),
    };
    match values.data_type() {
        DataType::Int16 => shifted::<Int16Type>(values, &counts, |value, count| narrow(value.into(), count) as i16),
        DataType::Int32 => shifted::<Int32Type>(values, &counts, narrow),
        DataType::Int64 => shifted::<Int64Type>(values, &counts, wide),
        other => exec_err!("values of type {} have no bits to shift", sql_name(other)),
    }
}

fn shifted<T: ArrowPrimitiveType>(
    values: &ArrayRef,
    counts: &ArrayRef,
    shift: impl Fn(T::Native, i64) -> T::Native,
) -> DfResult<ArrayRef> {
    let counts = counts.as_primitive::<Int64Type>();
    let shifted: PrimitiveArray<T> = arrow::compute::binary(values.as_primitive::<T>(), counts, shift)?;
    Ok(Arc::new(shifted))
}

fn move_dates(dates: &ArrayRef, days: &ArrayRef, moved: impl Fn(i64, i64) -> Option<i64>) -> DfResult<ArrayRef> {
    let (dates, days) = (cast(dates, &DataType::Int32)?, cast(days, &DataType::Int64)?);
    let move_one = |date: i32, days: i64| {
        let date = date_moved(date, moved(date.into(), days));
        date.ok_or_else(|| ArrowError::ComputeError("date out of range".into()))
    };
    let moved: Date32Array = try_binary(dates.as_primitive::<Int32Type>(), days.as_primitive::<Int64Type>(), move_one)?;
    Ok(Arc::new(moved))
}

fn days_between(later: &ArrayRef, earlier: &ArrayRef) -> DfResult<ArrayRef> {
    let (later, earlier) = (cast(later, &DataType::Date32)?, cast(earlier, &DataType::Date32)?);
    let between = |later: i32, earlier: i32| match (End::of_days(later), End::of_days(earlier)) {
        (None, None) => {
            later.checked_sub(earlier).ok_or_else(|| ArrowError::ComputeError("integer out of range".into()))
        }
        _ => Err(ArrowError::ComputeError("cannot subtract infinite dates".into())),
    };
    let days: PrimitiveArray<Int32Type> =
        try_binary(later.as_primitive::<Date32Type>(), earlier.as_primitive::<Date32Type>(), between)?;
    Ok(Arc::new(days))
}

/// `date - date`.
pub(crate) fn date_minus_date(later: &Expr, earlier: &Expr) -> Expr {
    Whole::call(Verb::DateDifference, later.clone(), earlier.clone())
}

/// `date + days`.
pub(crate) fn date_plus_days(date: &Expr, days: &Expr) -> Expr {
    Whole::call(Verb::DateAdd, date.clone(), days.clone())
}

/// `date - days`.
pub(crate) fn date_minus_days(date: &Expr, days: &Expr) -> Expr {
    Whole::call(Verb::DateSubtract, date.clone(), days.clone())
}

/// `a << b` and `a >> b` of whole numbers.
pub(crate) fn shift_bits(op: &BinaryOperator, left: &Expr, right: &Expr, schema: &DFSchema) -> Option<Expr> {
    let verb = match op {
        BinaryOperator::PGBitwiseShiftLeft => Verb::ShiftLeft,
        BinaryOperator::PGBitwiseShiftRight => Verb::ShiftRight,
        _ => return None,
    };
    let is_whole = |e: &Expr| e.get_type(schema).is_ok_and(|is| is.is_signed_integer());
    (is_whole(left) && is_whole(right)).then(|| Whole::call(verb, of_literal_type(left), right.clone()))
}

/// `a # b` where one side stands in the other: DataFusion takes `a # a` for 0, also where `a` is
/// NULL.
pub(crate) fn exclusive_or(op: &BinaryOperator, left: &Expr, right: &Expr) -> Option<Expr> {
    let stands_in = |part: &Expr, whole: &Expr| whole.exists(|inner| Ok(inner == part)).unwrap_or(false);
    let is_folded = *op == BinaryOperator::PGBitwiseXor && (stands_in(left, right) || stands_in(right, left));
    is_folded.then(|| {
        let (either, both) = (bitwise_or(left.clone(), right.clone()), bitwise_and(left.clone(), right.clone()));
        Expr::BinaryExpr(BinaryExpr::new(Box::new(either), Operator::Minus, Box::new(both)))
    })
}

/// A literal of whole numbers has PostgreSQL's type: `integer` where it fits.
fn of_literal_type(value: &Expr) -> Expr {
    let as_integer = |n: i64| i32::try_from(n).ok().map(|n| Expr::Literal(ScalarValue::Int32(Some(n)), None));
    let integer = match value {
        Expr::Literal(ScalarValue::Int64(Some(n)), _) => as_integer(*n),
        Expr::Negative(inner) => match inner.as_ref() {
            Expr::Literal(ScalarValue::Int64(Some(n)), _) => n.checked_neg().and_then(as_integer),
            _ => None,
        },
        _ => None,
    };
    integer.unwrap_or_else(|| value.clone())
}

/// Sums, differences and products without columns, where they are about to be folded.
pub(crate) fn check_folding(plan: LogicalPlan) -> DfResult<LogicalPlan> {
    let schema = match &plan {
        LogicalPlan::TableScan(_) | LogicalPlan::Extension(_) => return Ok(plan),
        other => merge_schema(&other.inputs()),
    };
    let names = NamePreserver::new(&plan);
    let schema = Arc::new(schema);
    let simplifier = ExprSimplifier::new(SimplifyContext::builder().with_schema(Arc::clone(&schema)).build());
    let checked = plan.map_expressions(|expr| {
        let name = names.save(&expr);
        Ok(expr.transform_up(|e| checked_sum(e, &schema, &simplifier))?.update_data(|e| name.restore(e)))
    })?;
    Ok(checked.data)
}

fn checked_sum(expr: Expr, schema: &DFSchema, simplifier: &ExprSimplifier) -> DfResult<Transformed<Expr>> {
    let Expr::BinaryExpr(BinaryExpr { left, op, right }) = expr else { return Ok(Transformed::no(expr)) };
    if !matches!(op, Operator::Plus | Operator::Minus | Operator::Multiply) {
        return Ok(Transformed::no(Expr::BinaryExpr(BinaryExpr { left, op, right })));
    }
    let (left, right) = (without_columns(*left, simplifier)?, without_columns(*right, simplifier)?);
    Ok(checked_operands(Expr::BinaryExpr(BinaryExpr { left: left.into(), op, right: right.into() }), schema))
}

/// An operand that loses its columns when it is simplified (`coalesce(1, k)`) has none here: the
/// rule would fold the sum around it in the same run, after this check. Operands of operands were
/// checked before, so the simplifier folds nothing that can wrap round. Sums keep their columns,
/// and need no look: a chain of sums costs its length.
fn without_columns(operand: Expr, simplifier: &ExprSimplifier) -> DfResult<Expr> {
    let is_sum = matches!(&operand, Expr::BinaryExpr(b) if matches!(b.op, Operator::Plus | Operator::Minus));
    let is_plain = is_sum || matches!(operand, Expr::Column(_) | Expr::Literal(..));
    if is_plain || !operand.any_column_refs() || operand.contains_outer() || operand.is_volatile() {
        return Ok(operand);
    }
    let simplified = simplifier.simplify(operand.clone())?;
    Ok(if simplified.any_column_refs() { operand } else { simplified })
}

fn checked_operands(expr: Expr, schema: &DFSchema) -> Transformed<Expr> {
    let Expr::BinaryExpr(BinaryExpr { left, op, right }) = &expr else { return Transformed::no(expr) };
    let verb = match op {
        Operator::Plus => Verb::Add,
        Operator::Minus => Verb::Subtract,
        Operator::Multiply => Verb::Multiply,
        _ => return Transformed::no(expr),
    };
    let (Ok(l), Ok(r)) = (left.get_type(schema), right.get_type(schema)) else { return Transformed::no(expr) };
    if l != r || !l.is_signed_integer() || expr.any_column_refs() || expr.contains_outer() || expr.is_volatile() {
        return Transformed::no(expr);
    }
    // Folded at once: a call around a call has a name as long as both, and planning asks for names
    // often.
    let folded = of_literals(verb, left, right);
    Transformed::yes(folded.unwrap_or_else(|| Whole::call(verb, left.as_ref().clone(), right.as_ref().clone())))
}

/// The result for two literals of one type; `None` where the result is outside of it.
fn of_literals(verb: Verb, left: &Expr, right: &Expr) -> Option<Expr> {
    use ScalarValue::{Int16, Int32, Int64};
    let (Expr::Literal(left, _), Expr::Literal(right, _)) = (left, right) else { return None };
    let (l, r) = match (left, right) {
        (Int16(Some(l)), Int16(Some(r))) => (i64::from(*l), i64::from(*r)),
        (Int32(Some(l)), Int32(Some(r))) => (i64::from(*l), i64::from(*r)),
        (Int64(Some(l)), Int64(Some(r))) => (*l, *r),
        _ => return None,
    };
    let result = match verb {
        Verb::Add => l.checked_add(r),
        Verb::Subtract => l.checked_sub(r),
        Verb::Multiply => l.checked_mul(r),
        _ => None,
    }?;
    let result = match left {
        Int16(_) => Int16(Some(i16::try_from(result).ok()?)),
        Int32(_) => Int32(Some(i32::try_from(result).ok()?)),
        _ => Int64(Some(result)),
    };
    Some(Expr::Literal(result, None))
}

#[cfg(test)]
mod tests {
    use datafusion_expr::lit;

    use super::*;

    #[test]
    fn literals_are_folded_within_their_type() {
        assert_eq!(of_literals(Verb::Add, &lit(1_i32), &lit(2_i32)), Some(lit(3_i32)));
        assert_eq!(of_literals(Verb::Multiply, &lit(-4_i64), &lit(5_i64)), Some(lit(-20_i64)));
        assert_eq!(of_literals(Verb::Subtract, &lit(i16::MIN), &lit(1_i16)), None);
        assert_eq!(of_literals(Verb::Add, &lit(i32::MAX), &lit(1_i32)), None);
        assert_eq!(of_literals(Verb::Add, &lit(i64::MAX), &lit(1_i64)), None);
        assert_eq!(of_literals(Verb::Add, &lit(1_i32), &lit(1_i64)), None);
    }
}
