//! Expressions of cases, as expressions over columns.

use std::collections::BTreeMap;

use anabranch_engine::frame::{end, floor_div, lit, start};
use datafusion_common::ScalarValue;
use datafusion_expr::{Expr, when};
use datafusion_functions_nested::expr_fn::array_element;
use serde_json::Value;

use super::shape::Shape;

/// What the words of an expression stand for: `val`, `key`, `left`, `right`, `agg i`, `reg`.
pub(super) type Words = BTreeMap<String, Shape<Expr>>;

/// An expression of a case.
pub(super) fn expression(json: &Value, words: &Words) -> Result<Shape<Expr>, String> {
    match json {
        Value::Array(parts) => call(parts, words),
        literal => Ok(Shape::Leaf(constant(literal)?)),
    }
}

/// An expression of a single value.
pub(super) fn scalar(json: &Value, words: &Words) -> Result<Expr, String> {
    expression(json, words)?.scalar()
}

fn constant(json: &Value) -> Result<Expr, String> {
    Ok(match json {
        Value::Null => lit(ScalarValue::Null),
        Value::Bool(value) => lit(*value),
        Value::String(text) => lit(ScalarValue::Utf8View(Some(text.clone()))),
        Value::Number(number) => match number.as_i64() {
            Some(integer) => lit(integer),
            None => lit(number.as_f64().ok_or("a number that is no double")?),
        },
        other => return Err(format!("no expression: {other}")),
    })
}

fn call(parts: &[Value], words: &Words) -> Result<Shape<Expr>, String> {
    let (head, args) = parts.split_first().ok_or("an empty expression")?;
    let head = head.as_str().ok_or_else(|| format!("no operator: {head}"))?;
    let arg = |at: usize| expression(args.get(at).ok_or_else(|| format!("{head} needs more arguments"))?, words);
    let value = |at: usize| arg(at)?.scalar();
    let word = |name: &str| words.get(name).cloned().ok_or_else(|| format!("{name} stands for nothing here"));
    Ok(match (head, args) {
        ("val" | "key" | "reg", []) => word(head)?,
        ("left" | "right", []) => word(head)?,
        ("left" | "right", [inner]) => {
            let mut words = words.clone();
            words.insert("val".into(), word(head)?);
            return expression(inner, &words);
        }
        ("agg", [at]) => word(&format!("agg {at}"))?,
        ("f", [name]) => field(word("val")?, name)?,
        ("at", [at, _]) => element(arg(1)?, at.as_u64().ok_or("an index")? as usize)?,
        ("vs", []) => Shape::Leaf(start()),
        ("ve", []) => Shape::Leaf(end()),
        ("null", []) => Shape::Leaf(lit(ScalarValue::Null)),
        ("obj", [Value::Object(fields)]) => {
            let fields = fields.iter().map(|(name, field)| Ok((name.clone(), expression(field, words)?)));
            Shape::Object(fields.collect::<Result<_, String>>()?)
        }
        ("list", elements) => {
            Shape::List(elements.iter().map(|element| expression(element, words)).collect::<Result<_, String>>()?)
        }
        ("concat", parts) => {
            let parts = parts.iter().map(|part| scalar(part, words)).collect::<Result<Vec<_>, _>>()?;
            Shape::Leaf(datafusion_functions::expr_fn::concat(parts))
        }
        ("prefix", [_, _]) => Shape::Leaf(datafusion_functions::expr_fn::left(value(0)?, value(1)?)),
        ("if", [_, _, _]) => {
            let chosen = when(value(0)?, value(1)?).otherwise(value(2)?);
            Shape::Leaf(chosen.map_err(|error| error.to_string())?)
        }
        ("isnull", [_]) => Shape::Leaf(arg(0)?.leaves().first().ok_or("nothing")?.1.clone().is_null()),
        ("not", [_]) => Shape::Leaf(!value(0)?),
        (_, [_, _]) => Shape::Leaf(binary(head, value(0)?, value(1)?)?),
        _ => return Err(format!("unknown expression {head} of {} arguments", args.len())),
    })
}

fn binary(operator: &str, left: Expr, right: Expr) -> Result<Expr, String> {
    Ok(match operator {
        "+" => left + right,
        "-" => left - right,
        "*" => left * right,
        "/" => left / right,
        "%" => left % right,
        "//" => floor_div(left, right),
        "==" => left.eq(right),
        "!=" => left.not_eq(right),
        "<" => left.lt(right),
        "<=" => left.lt_eq(right),
        ">" => left.gt(right),
        ">=" => left.gt_eq(right),
        "and" => left.and(right),
        "or" => left.or(right),
        _ => return Err(format!("unknown operator {operator}")),
    })
}

fn field(value: Shape<Expr>, name: &Value) -> Result<Shape<Expr>, String> {
    let name = name.as_str().ok_or("a field's name")?;
    match value {
        Shape::Object(fields) => {
            let field = fields.into_iter().find(|(other, _)| other == name);
            field.map(|(_, field)| field).ok_or_else(|| format!("the payload has no field {name}"))
        }
        _ => Err(format!("the payload is no object with a field {name}")),
    }
}

fn element(value: Shape<Expr>, at: usize) -> Result<Shape<Expr>, String> {
    match value {
        Shape::List(mut elements) if at < elements.len() => Ok(elements.swap_remove(at)),
        // (An element of a null register is null.)
        Shape::Leaf(Expr::Literal(ScalarValue::Null, _)) => Ok(Shape::Leaf(lit(ScalarValue::Null))),
        Shape::Elements(list, fields) => Ok(fields.parts_of(&array_element(list, lit(at as i64 + 1)))),
        _ => Err(format!("the payload has no element {at}")),
    }
}
