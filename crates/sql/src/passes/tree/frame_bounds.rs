//! `ROWS BETWEEN 1 + 1 PRECEDING AND ..`: offsets of frames that are computed of whole numbers.

use datafusion_expr::sqlparser::ast::{
    BinaryOperator, Expr, Function, UnaryOperator, Value, WindowFrame, WindowFrameBound, WindowSpec, WindowType,
};

/// Writes the number in the place of its computation.
pub(super) fn fold(expr: &mut Expr) {
    let Expr::Function(Function { over: Some(WindowType::WindowSpec(window)), .. }) = expr else { return };
    let WindowSpec { window_frame: Some(WindowFrame { start_bound, end_bound, .. }), .. } = window else { return };
    for bound in std::iter::once(start_bound).chain(end_bound.as_mut()) {
        if let WindowFrameBound::Preceding(Some(offset)) | WindowFrameBound::Following(Some(offset)) = bound
            && !matches!(offset.as_ref(), Expr::Value(_))
            && let Some(number) = computed(offset)
        {
            **offset = Expr::value(Value::Number(number.to_string(), false));
        }
    }
}

/// The whole number that an expression is; `None` where it is none, or negative.
fn computed(expr: &Expr) -> Option<u64> {
    fn number(expr: &Expr) -> Option<i64> {
        match expr {
            Expr::Nested(inner) => number(inner),
            Expr::Value(value) => match &value.value {
                Value::Number(digits, false) => digits.parse().ok(),
                _ => None,
            },
            Expr::UnaryOp { op: UnaryOperator::Minus, expr } => number(expr)?.checked_neg(),
            Expr::BinaryOp { left, op, right } => {
                let (left, right) = (number(left)?, number(right)?);
                match op {
                    BinaryOperator::Plus => left.checked_add(right),
                    BinaryOperator::Minus => left.checked_sub(right),
                    BinaryOperator::Multiply => left.checked_mul(right),
                    BinaryOperator::Divide => left.checked_div(right),
                    _ => None,
                }
            }
            _ => None,
        }
    }
    u64::try_from(number(expr)?).ok()
}
