//! Literals in quotes where a condition stands: `WHERE 'true'`, `a AND 't'`, `NOT 'off'`.
//!
//! Law: a literal in quotes is read as a value of the type that its place wants.

use datafusion_expr::sqlparser::ast::{BinaryOperator, CastKind, DataType, Expr, Select, UnaryOperator, Value};

use crate::error::Result;

/// Reads the operands of AND, OR and NOT.
///
/// # Errors
/// None.
pub(super) fn read_operands(expr: &mut Expr) -> Result<()> {
    match expr {
        Expr::BinaryOp { left, op: BinaryOperator::And | BinaryOperator::Or, right } => {
            read(left);
            read(right);
        }
        Expr::UnaryOp { op: UnaryOperator::Not, expr } => read(expr),
        _ => {}
    }
    Ok(())
}

/// Reads the conditions of a SELECT.
///
/// # Errors
/// None.
pub(super) fn read_conditions(select: &mut Select) -> Result<()> {
    [&mut select.selection, &mut select.having].into_iter().flatten().for_each(read);
    Ok(())
}

fn read(condition: &mut Expr) {
    match condition {
        Expr::Nested(inner) => read(inner),
        Expr::Value(literal) if matches!(literal.value, Value::SingleQuotedString(_)) => {
            *condition = Expr::Cast {
                kind: CastKind::Cast,
                expr: Box::new(condition.clone()),
                data_type: DataType::Boolean,
                array: false,
                format: None,
            };
        }
        _ => {}
    }
}
