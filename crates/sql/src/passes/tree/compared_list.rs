//! `x op ANY ('{1,2}')`, `x op ANY (ARRAY[1, 2])` and `ALL`: the elements of the array are compared
//! one by one, so that they may have other types than `x`.

use datafusion_expr::sqlparser::ast::{Array, BinaryOperator, Expr, Value, ValueWithSpan};

use crate::error::{ErrorKind, Result, SqlError};
use crate::functions::input::read_list;
use crate::stack::balanced;

/// Rewrites `x op ANY ('{1,2}')` to `x op '1' OR x op '2'`, and ALL to AND; equality to IN.
pub(super) fn rewrite(expr: &mut Expr) -> Result<()> {
    let (left, op, right, is_any) = match expr {
        Expr::AnyOp { left, compare_op, right, .. } => (left, compare_op, right, true),
        Expr::AllOp { left, compare_op, right } => (left, compare_op, right, false),
        _ => return Ok(()),
    };
    let Some(elements) = elements(right)? else { return Ok(()) };
    let is_in = matches!((&op, is_any), (BinaryOperator::Eq, true) | (BinaryOperator::NotEq, false));
    let test = if is_in && !elements.is_empty() {
        Expr::InList { expr: left.clone(), list: elements, negated: !is_any }
    } else {
        let both = if is_any { BinaryOperator::Or } else { BinaryOperator::And };
        let compare = |element| Expr::BinaryOp { left: left.clone(), op: op.clone(), right: Box::new(element) };
        let tests: Vec<Expr> = elements.into_iter().map(compare).collect();
        let join = |left, right| {
            let (left, right) = (Box::new(left), Box::new(right));
            Expr::Nested(Box::new(Expr::BinaryOp { left, op: both.clone(), right }))
        };
        balanced(&tests, &join).unwrap_or(Expr::value(Value::Boolean(!is_any)))
    };
    *expr = Expr::Nested(Box::new(test));
    Ok(())
}

/// The elements of an array that is written out; `None` of others.
fn elements(array: &Expr) -> Result<Option<Vec<Expr>>> {
    match array {
        Expr::Nested(inner) => elements(inner),
        Expr::Array(Array { elem, .. }) if !elem.iter().any(|element| matches!(element, Expr::Array(_))) => {
            Ok(Some(elem.clone()))
        }
        Expr::Value(ValueWithSpan { value: Value::SingleQuotedString(text), .. }) => {
            let mut elements = Vec::new();
            if read_list(text, &mut elements).is_none() {
                return Err(SqlError::new(ErrorKind::Type, format!("malformed array literal: \"{text}\"")));
            }
            let value = |element: Option<String>| Expr::value(element.map_or(Value::Null, Value::SingleQuotedString));
            Ok(Some(elements.into_iter().map(value).collect()))
        }
        _ => Ok(None),
    }
}
