//! `CASE WHEN c THEN '5' ELSE i END`: the planner takes the type of the first result for that of
//! all, so the first one is not to be a literal in quotes.

use datafusion_expr::sqlparser::ast::{CaseWhen, Expr, Value};

/// Puts a branch that is never taken in front, with a result that says the type.
pub(super) fn rewrite(expr: &mut Expr) {
    let Expr::Case { operand, conditions, else_result, .. } = expr else { return };
    if !conditions.first().is_some_and(|first| is_text(&first.result)) {
        return;
    }
    let results = conditions.iter().map(|branch| &branch.result).chain(else_result.as_deref());
    let Some(typed) = results.into_iter().find(|result| says_type(result)).cloned() else { return };
    let never = if operand.is_some() { Value::Null } else { Value::Boolean(false) };
    conditions.insert(0, CaseWhen { condition: Expr::value(never), result: typed });
}

fn is_text(result: &Expr) -> bool {
    matches!(result, Expr::Value(value) if matches!(value.value, Value::SingleQuotedString(_)))
}

/// Whether a result has a type, and costs nothing to plan twice.
fn says_type(result: &Expr) -> bool {
    match result {
        Expr::Value(value) => matches!(value.value, Value::Number(..) | Value::Boolean(_)),
        Expr::Identifier(_) | Expr::CompoundIdentifier(_) | Expr::Cast { .. } | Expr::TypedString(_) => true,
        Expr::BinaryOp { left, right, .. } => says_type(left) && says_type(right),
        Expr::Nested(inner) | Expr::UnaryOp { expr: inner, .. } => says_type(inner),
        _ => false,
    }
}
