//! `x op ANY ('{1,2}')`, `x op ANY (ARRAY[1, 2])` and `ALL`: the elements of the array are compared
//! one by one, so that they may have other types than `x`.

use datafusion_expr::sqlparser::ast::{
    Array, BinaryOperator, CastKind, DataType, Expr, UnaryOperator, Value, ValueWithSpan,
};

use crate::error::{ErrorKind, Result, SqlError};
use crate::functions::input::read_list;
use crate::functions::like_lists::name_of;
use crate::stack::balanced;
use crate::syntax::relation_calls::call;

/// Rewrites `x op ANY ('{1,2}')` to `x op '1' OR x op '2'`, and ALL to AND; equality to IN.
pub(super) fn rewrite(expr: &mut Expr) -> Result<()> {
    if let Expr::Like { any: true, negated: false, expr: value, pattern, .. }
    | Expr::ILike { any: true, negated: false, expr: value, pattern, .. } = expr
        && let Some(patterns) = elements(pattern)?
    {
        let value = value.clone();
        let is_like = matches!(expr, Expr::Like { .. });
        *expr = any_like(&value, patterns, is_like);
        return Ok(());
    }
    let (left, op, right, is_any) = match expr {
        Expr::AnyOp { left, compare_op, right, .. } => (left, compare_op, right, true),
        Expr::AllOp { left, compare_op, right } => (left, compare_op, right, false),
        _ => return Ok(()),
    };
    let Some(elements) = elements(right)?.map(|elements| typed(right, elements)) else {
        if let Some(other) = of_list(left, op, right, is_any) {
            *expr = other;
        }
        return Ok(());
    };
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

/// The elements of `ARRAY['a', 'b']`, which are texts, whatever they stand beside.
fn typed(array: &Expr, elements: Vec<Expr>) -> Vec<Expr> {
    let is_text =
        |element: &Expr| matches!(element, Expr::Value(value) if matches!(value.value, Value::SingleQuotedString(_)));
    let are_texts = elements.iter().any(is_text) && elements.iter().all(|element| is_text(element) || is_null(element));
    if !are_texts || !is_written(array) {
        return elements;
    }
    let as_text = |element: Expr| match is_text(&element) {
        true => Expr::Cast {
            kind: CastKind::Cast,
            expr: Box::new(element),
            data_type: DataType::Text,
            array: false,
            format: None,
        },
        false => element,
    };
    elements.into_iter().map(as_text).collect()
}

/// Whether an array is a list of values without a type.
fn is_written(array: &Expr) -> bool {
    match array {
        Expr::Nested(inner) => is_written(inner),
        Expr::Array(_) => true,
        _ => false,
    }
}

/// The test by a list that is not written out, where DataFusion has none: `x LIKE ANY (list)`, and
/// `x <> ALL (list)`, which is `NOT (x = ANY (list))`.
fn of_list(left: &Expr, op: &BinaryOperator, right: &Expr, is_any: bool) -> Option<Expr> {
    let is_literal = matches!(left, Expr::Value(_) | Expr::Tuple(_)) || matches!(right, Expr::Subquery(_));
    // (Ours takes numbers of different types.)
    let equals_any = || call("array_has", vec![right.clone(), left.clone()]);
    match (op, is_any) {
        (BinaryOperator::Eq, true) if !is_literal => return Some(equals_any()),
        (BinaryOperator::NotEq, false) if !is_literal => {
            return Some(Expr::UnaryOp { op: UnaryOperator::Not, expr: Box::new(equals_any()) });
        }
        _ => {}
    }
    let name = name_of(&op.to_string(), is_any)?;
    Some(call(name, vec![left.clone(), right.clone()]))
}

/// `x LIKE ANY (ARRAY['a%', 'b%'])` is `x LIKE 'a%' OR x LIKE 'b%'`.
fn any_like(value: &Expr, patterns: Vec<Expr>, is_like: bool) -> Expr {
    let one = |pattern: Expr| {
        let (any, negated, expr, pattern) = (false, false, Box::new(value.clone()), Box::new(pattern));
        match is_like {
            true => Expr::Like { negated, any, expr, pattern, escape_char: None },
            false => Expr::ILike { negated, any, expr, pattern, escape_char: None },
        }
    };
    let tests: Vec<Expr> = patterns.into_iter().map(one).collect();
    let join = |left, right| {
        let (left, op, right) = (Box::new(left), BinaryOperator::Or, Box::new(right));
        Expr::Nested(Box::new(Expr::BinaryOp { left, op, right }))
    };
    Expr::Nested(Box::new(balanced(&tests, &join).unwrap_or(Expr::value(Value::Boolean(false)))))
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
        Expr::Cast { expr, data_type: DataType::Array(_), .. } => match expr.as_ref() {
            Expr::Array(_) | Expr::Value(_) if !is_null(expr) => elements(expr),
            _ => Ok(None),
        },
        _ => Ok(None),
    }
}

fn is_null(expr: &Expr) -> bool {
    matches!(expr, Expr::Value(ValueWithSpan { value: Value::Null, .. }))
}
