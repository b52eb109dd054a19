//! Random expressions of a wanted type over a plan's rows.
//!
//! Types are exact, as after SQL's coercion, because what is generated here is not coerced again.
//! What may fail (division, text as a number) fails on some rows only; whole numbers rarely
//! overflow.

use anabranch_plan::Plan;
use arrow::datatypes::DataType;
use datafusion_common::ScalarValue;
use datafusion_expr::expr::{BinaryExpr, Case};
use datafusion_expr::{Cast, Expr, Operator};

use super::values::{Pool, present};
use crate::build::{col, type_of, types};
use crate::rng::Rng;

/// Whether an expression may fail on a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fallible {
    /// Now and then.
    Sometimes,
    /// On no row, overflow aside.
    Never,
}

/// A predicate over the rows of a plan.
pub fn predicate(rng: &mut Rng, plan: &Plan, fallible: Fallible) -> Expr {
    predicate_nested(rng, plan, fallible, 2)
}

fn predicate_nested(rng: &mut Rng, plan: &Plan, fallible: Fallible, depth: usize) -> Expr {
    if depth > 0 && rng.chance(25) {
        let left = predicate_nested(rng, plan, fallible, depth - 1);
        let right = predicate_nested(rng, plan, fallible, depth - 1);
        return match rng.below(3) {
            0 => left.and(right),
            1 => left.or(right),
            _ => Expr::Not(Box::new(left)),
        };
    }
    let column = rng.below(types(plan).len());
    let operand = col(plan, column);
    match rng.below(10) {
        0 => operand.is_null(),
        1 => operand.is_not_null(),
        2 if fallible == Fallible::Sometimes => quotient(rng, plan).map_or(lit(true), |e| e.gt_eq(lit(0_i64))),
        3..=4 => compare_columns(rng, plan, column),
        _ => compare_literal(rng, plan, column),
    }
}

/// A computation over the rows of a plan, of any type.
pub fn computation(rng: &mut Rng, plan: &Plan, fallible: Fallible) -> Expr {
    let column = rng.below(types(plan).len());
    let operand = col(plan, column);
    match rng.below(12) {
        0 if fallible == Fallible::Sometimes => quotient(rng, plan).unwrap_or(operand),
        1 if fallible == Fallible::Sometimes => number_from_text(rng, plan).unwrap_or(operand),
        2 | 3 => arithmetic(rng, plan, column).unwrap_or(operand),
        4 => when(rng, plan, column),
        5 => present_or_else(rng, plan, column),
        6 => predicate(rng, plan, Fallible::Never),
        7 => text_of(operand, plan),
        _ => operand,
    }
}

fn compare_literal(rng: &mut Rng, plan: &Plan, column: usize) -> Expr {
    let operand = col(plan, column);
    let data_type = type_of(&operand, plan);
    if !is_comparable(&data_type) {
        return operand.is_not_null();
    }
    binary(operand, comparison(rng), lit(present(rng, &data_type, Pool::Small)))
}

fn compare_columns(rng: &mut Rng, plan: &Plan, column: usize) -> Expr {
    let types = types(plan);
    let same: Vec<usize> = (0..types.len()).filter(|&other| types[other] == types[column]).collect();
    if !is_comparable(&types[column]) {
        return col(plan, column).is_not_null();
    }
    binary(col(plan, column), comparison(rng), col(plan, *rng.pick(&same)))
}

fn comparison(rng: &mut Rng) -> Operator {
    use Operator::{Eq, Gt, GtEq, IsDistinctFrom, IsNotDistinctFrom, Lt, LtEq, NotEq};
    *rng.pick(&[Eq, NotEq, Lt, LtEq, Gt, GtEq, IsDistinctFrom, IsNotDistinctFrom])
}

fn is_comparable(data_type: &DataType) -> bool {
    super::values::column_types().contains(data_type) || matches!(data_type, DataType::Decimal128(_, _))
}

/// One whole number divided by another, which is zero on some rows.
fn quotient(rng: &mut Rng, plan: &Plan) -> Option<Expr> {
    let (a, b) = (column_of(rng, plan, &DataType::Int64)?, column_of(rng, plan, &DataType::Int64)?);
    Some(binary(a, *rng.pick(&[Operator::Divide, Operator::Modulo]), b))
}

/// A text as a number, which some are not.
fn number_from_text(rng: &mut Rng, plan: &Plan) -> Option<Expr> {
    Some(cast(column_of(rng, plan, &DataType::Utf8View)?, DataType::Int64))
}

fn arithmetic(rng: &mut Rng, plan: &Plan, column: usize) -> Option<Expr> {
    let operand = col(plan, column);
    let data_type = type_of(&operand, plan);
    let grows_too_wide = matches!(data_type, DataType::Decimal128(precision, _) if precision > 24);
    let is_number = matches!(data_type, DataType::Int64 | DataType::Int32 | DataType::Float64)
        || matches!(data_type, DataType::Decimal128(_, _));
    if !is_number || grows_too_wide {
        return None;
    }
    let other = match rng.below(2) {
        0 => column_of(rng, plan, &data_type)?,
        _ => lit(present(rng, &data_type, Pool::Small)),
    };
    Some(binary(operand, *rng.pick(&[Operator::Plus, Operator::Minus]), other))
}

fn when(rng: &mut Rng, plan: &Plan, column: usize) -> Expr {
    let types = types(plan);
    let same: Vec<usize> = (0..types.len()).filter(|&other| types[other] == types[column]).collect();
    let (then, otherwise) = (col(plan, column), col(plan, *rng.pick(&same)));
    let condition = predicate(rng, plan, Fallible::Never);
    case(condition, then, rng.chance(70).then_some(otherwise))
}

/// `coalesce(column, literal)`.
fn present_or_else(rng: &mut Rng, plan: &Plan, column: usize) -> Expr {
    let operand = col(plan, column);
    let data_type = type_of(&operand, plan);
    if !is_comparable(&data_type) {
        return operand;
    }
    let otherwise = lit(present(rng, &data_type, Pool::Small));
    case(operand.clone().is_not_null(), operand, Some(otherwise))
}

fn text_of(operand: Expr, plan: &Plan) -> Expr {
    match type_of(&operand, plan) {
        DataType::Int64 | DataType::Int32 | DataType::Boolean => cast(operand, DataType::Utf8View),
        _ => operand,
    }
}

fn column_of(rng: &mut Rng, plan: &Plan, data_type: &DataType) -> Option<Expr> {
    let types = types(plan);
    let fitting: Vec<usize> = (0..types.len()).filter(|&column| types[column] == *data_type).collect();
    (!fitting.is_empty()).then(|| col(plan, *rng.pick(&fitting)))
}

fn binary(left: Expr, operator: Operator, right: Expr) -> Expr {
    Expr::BinaryExpr(BinaryExpr::new(Box::new(left), operator, Box::new(right)))
}

fn case(condition: Expr, then: Expr, otherwise: Option<Expr>) -> Expr {
    Expr::Case(Case::new(None, vec![(Box::new(condition), Box::new(then))], otherwise.map(Box::new)))
}

/// A cast of an expression.
pub fn cast(expr: Expr, data_type: DataType) -> Expr {
    Expr::Cast(Cast::new(Box::new(expr), data_type))
}

/// A literal.
pub fn lit(value: impl Into<ScalarValue>) -> Expr {
    Expr::Literal(value.into(), None)
}
