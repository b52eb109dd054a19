//! Guesses: how much of a collection a filter leaves, and whether an expression can fail.

use arrow::datatypes::DataType;
use datafusion_common::DFSchema;
use datafusion_common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion_expr::{Expr, ExprSchemable, Operator};

use crate::ir::{JoinKind, Node, Plan};

/// What is left of the rows of a plan's relations, by guess: 1 is all.
pub(super) fn selectivity(plan: &Plan) -> f64 {
    match &plan.node {
        Node::Scan { .. } | Node::Variable { .. } | Node::Recursive(_) => 1.0,
        Node::Constant { .. } => 1e-4,
        Node::Stage { input, filter, .. } => selectivity(input) * filter.iter().map(share).product::<f64>(),
        Node::Unnest { input, .. } | Node::Distinct { input } => selectivity(input),
        Node::Window { input, .. } | Node::Session { input, .. } => selectivity(input),
        Node::Aggregate { keys, .. } if keys.is_empty() => 1e-4,
        Node::Aggregate { input, .. } | Node::Recognize { input, .. } => selectivity(input),
        Node::TopK { input, top } => selectivity(input) * if top.limit.is_some() { 0.1 } else { 1.0 },
        Node::Union { inputs } | Node::Temporal { inputs, .. } => {
            inputs.iter().map(|input| selectivity(input)).fold(0.0, f64::max)
        }
        Node::SetOperation { left, .. } | Node::Asof { left, .. } => selectivity(left),
        Node::Join { left, right, kind, .. } => match kind {
            JoinKind::Inner => selectivity(left) * selectivity(right),
            JoinKind::LeftSemi => selectivity(left) * selectivity(right).max(0.05),
            JoinKind::Right => selectivity(right),
            JoinKind::Full => selectivity(left).max(selectivity(right)),
            JoinKind::Left | JoinKind::LeftAnti | JoinKind::LeftAntiNullAware | JoinKind::LeftMark => selectivity(left),
        },
    }
}

/// The share of rows on which a condition holds.
fn share(condition: &Expr) -> f64 {
    match condition {
        Expr::BinaryExpr(binary) => match binary.op {
            Operator::And => share(&binary.left) * share(&binary.right),
            Operator::Or => (share(&binary.left) + share(&binary.right)).min(0.9),
            Operator::Eq if is_literal(&binary.left) || is_literal(&binary.right) => 0.05,
            Operator::Eq => 0.1,
            Operator::NotEq => 0.9,
            Operator::Lt | Operator::LtEq | Operator::Gt | Operator::GtEq
                if is_literal(&binary.left) || is_literal(&binary.right) =>
            {
                0.35
            }
            _ => 0.5,
        },
        Expr::InList(list) => negated(list.negated, (0.05 * list.list.len() as f64).min(0.5)),
        Expr::Like(like) => negated(like.negated, 0.1),
        Expr::Between(between) => negated(between.negated, 0.12),
        Expr::IsNull(_) => 0.1,
        Expr::IsNotNull(_) => 0.9,
        Expr::Not(inner) => 1.0 - share(inner),
        _ => 0.5,
    }
}

fn negated(is: bool, share: f64) -> f64 {
    if is { 1.0 - share } else { share }
}

fn is_literal(expr: &Expr) -> bool {
    matches!(expr, Expr::Literal(..))
}

/// The function that SQL plans for a cast to `numeric` without a scale.
pub const TO_NUMERIC: &str = "to_numeric";

/// Whether an expression has a value on every row: no arithmetic, no functions, and only casts that
/// hold every value.
pub fn cannot_fail(expr: &Expr, schema: &DFSchema) -> bool {
    let mut safe = true;
    let walked = expr.apply(|e| {
        safe &= match e {
            Expr::Column(_)
            | Expr::Literal(..)
            | Expr::Not(_)
            | Expr::IsNull(_)
            | Expr::IsNotNull(_)
            | Expr::IsTrue(_)
            | Expr::IsFalse(_)
            | Expr::IsNotTrue(_)
            | Expr::IsNotFalse(_)
            | Expr::Between(_)
            | Expr::Like(_)
            | Expr::InList(_) => true,
            // Numeric without a scale holds every whole number and decimal. Texts may be no
            // numbers.
            Expr::ScalarFunction(call) if call.func.name() == TO_NUMERIC => {
                call.args.iter().all(|arg| arg.get_type(schema).is_ok_and(|from| is_exact(&from)))
            }
            Expr::Cast(cast) => cast.expr.get_type(schema).is_ok_and(|from| widens(&from, cast.field.data_type())),
            Expr::BinaryExpr(binary) => {
                use Operator::{And, Eq, Gt, GtEq, IsDistinctFrom, IsNotDistinctFrom, Lt, LtEq, NotEq, Or};
                let op = binary.op;
                matches!(op, And | Or | Eq | NotEq | Lt | LtEq | Gt | GtEq | IsDistinctFrom | IsNotDistinctFrom)
            }
            _ => false,
        };
        Ok(TreeNodeRecursion::Continue)
    });
    walked.is_ok() && safe
}

/// Whether a type is of whole numbers or decimals.
fn is_exact(of: &DataType) -> bool {
    of.is_integer() || matches!(of, DataType::Decimal128(..))
}

/// Whether every value of one type is one of the other.
fn widens(from: &DataType, to: &DataType) -> bool {
    use DataType::{Decimal128, Int16, Int32, Int64};
    match (from, to) {
        (Decimal128(p, s), Decimal128(q, t)) => {
            t >= s && i16::from(*q) - i16::from(*t) >= i16::from(*p) - i16::from(*s)
        }
        (Int16, Decimal128(q, t)) => i16::from(*q) - i16::from(*t) >= 5,
        (Int32, Decimal128(q, t)) => i16::from(*q) - i16::from(*t) >= 10,
        (Int64, Decimal128(q, t)) => i16::from(*q) - i16::from(*t) >= 19,
        (Int16, Int32 | Int64) | (Int32, Int64) => true,
        _ => from == to,
    }
}
