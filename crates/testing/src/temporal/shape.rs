//! Payloads as columns: a column for each leaf.

use arrow::datatypes::DataType;
use datafusion_common::ScalarValue;
use datafusion_expr::{Expr, when};
use serde_json::Value;

/// A payload made of expressions.
#[derive(Clone, Debug)]
pub(super) enum Shape<T> {
    /// A value.
    Leaf(T),
    /// An object.
    Object(Vec<(String, Shape<T>)>),
    /// A list.
    List(Vec<Shape<T>>),
}

impl<T> Shape<T> {
    /// The leaves with their places as names.
    pub(super) fn leaves(&self) -> Vec<(String, &T)> {
        let mut leaves = Vec::new();
        self.collect("val", &mut leaves);
        leaves
    }

    fn collect<'a>(&'a self, place: &str, leaves: &mut Vec<(String, &'a T)>) {
        match self {
            Shape::Leaf(leaf) => leaves.push((place.to_owned(), leaf)),
            Shape::Object(fields) => {
                fields.iter().for_each(|(name, field)| field.collect(&format!("{place}.{name}"), leaves));
            }
            Shape::List(elements) => {
                elements.iter().enumerate().for_each(|(at, element)| element.collect(&format!("{place}.{at}"), leaves));
            }
        }
    }

    /// The same form with other leaves, told their names.
    pub(super) fn map<U>(&self, change: &mut impl FnMut(&str, &T) -> U) -> Shape<U> {
        self.map_at("val", change)
    }

    fn map_at<U>(&self, place: &str, change: &mut impl FnMut(&str, &T) -> U) -> Shape<U> {
        match self {
            Shape::Leaf(leaf) => Shape::Leaf(change(place, leaf)),
            Shape::Object(fields) => {
                let fields = fields.iter().map(|(name, field)| {
                    let field = field.map_at(&format!("{place}.{name}"), change);
                    (name.clone(), field)
                });
                Shape::Object(fields.collect())
            }
            Shape::List(elements) => {
                let elements = elements.iter().enumerate();
                Shape::List(elements.map(|(at, element)| element.map_at(&format!("{place}.{at}"), change)).collect())
            }
        }
    }
}

impl Shape<Expr> {
    pub(super) fn scalar(&self) -> Result<Expr, String> {
        match self {
            Shape::Leaf(expr) => Ok(expr.clone()),
            _ => Err("a single value was expected, not an object or a list".into()),
        }
    }
}

impl Shape<Expr> {
    /// `other` where the condition is true, leaf by leaf.
    pub(super) fn choose(&self, condition: &Expr, other: Option<&Shape<Expr>>) -> Result<Shape<Expr>, String> {
        let Some(other) = other else { return Ok(self.clone()) };
        let others: Vec<Expr> = other.leaves().into_iter().map(|(_, expr)| expr.clone()).collect();
        if others.len() != self.leaves().len() {
            return Err("an outer result has the form of the result".into());
        }
        let mut others = others.into_iter();
        let mut failed = None;
        let chosen = self.map(&mut |_, expr| {
            let other = others.next().unwrap_or_else(|| expr.clone());
            when(condition.clone(), other).otherwise(expr.clone()).unwrap_or_else(|error| {
                failed = Some(error.to_string());
                expr.clone()
            })
        });
        failed.map_or(Ok(chosen), Err)
    }
}

/// The types of the leaves of some payloads. What is nowhere more than null has the form of the other payloads' (`like`), or is a number.
pub(super) fn shape_of(payloads: &[&Value], like: &[&Value]) -> Shape<DataType> {
    let parts = |of: &dyn Fn(&Value) -> Value| -> Shape<DataType> {
        let of_all = |payloads: &[&Value]| payloads.iter().map(|payload| of(payload)).collect::<Vec<Value>>();
        let (parts, others) = (of_all(payloads), of_all(like));
        shape_of(&parts.iter().collect::<Vec<_>>(), &others.iter().collect::<Vec<_>>())
    };
    let known =
        |payloads: &[&Value]| payloads.iter().find(|payload| !payload.is_null()).map(|payload| (*payload).clone());
    let is_float = |payloads: &[&Value]| payloads.iter().any(|payload| payload.is_f64());
    match known(payloads).or_else(|| known(like)) {
        Some(Value::Object(fields)) => {
            Shape::Object(fields.keys().map(|name| (name.clone(), parts(&|payload| payload[name].clone()))).collect())
        }
        Some(Value::Array(elements)) => {
            Shape::List((0..elements.len()).map(|at| parts(&|payload| payload[at].clone())).collect())
        }
        Some(Value::String(_)) => Shape::Leaf(DataType::Utf8View),
        Some(Value::Bool(_)) => Shape::Leaf(DataType::Boolean),
        Some(Value::Number(_)) if is_float(payloads) || (known(payloads).is_none() && is_float(like)) => {
            Shape::Leaf(DataType::Float64)
        }
        Some(Value::Number(_) | Value::Null) | None => Shape::Leaf(DataType::Int64),
    }
}

/// The values of a payload, one a leaf.
pub(super) fn values_of(payload: &Value, shape: &Shape<DataType>) -> Vec<ScalarValue> {
    match shape {
        Shape::Object(fields) => fields.iter().flat_map(|(name, field)| values_of(&payload[name], field)).collect(),
        Shape::List(elements) => {
            elements.iter().enumerate().flat_map(|(at, element)| values_of(&payload[at], element)).collect()
        }
        Shape::Leaf(DataType::Int64) => vec![ScalarValue::Int64(payload.as_i64())],
        Shape::Leaf(DataType::Float64) => vec![ScalarValue::Float64(payload.as_f64())],
        Shape::Leaf(DataType::Boolean) => vec![ScalarValue::Boolean(payload.as_bool())],
        Shape::Leaf(_) => vec![ScalarValue::Utf8View(payload.as_str().map(str::to_owned))],
    }
}

/// A payload from the values of its leaves, in order.
pub(super) fn payload<T>(shape: &Shape<T>, values: &mut impl Iterator<Item = ScalarValue>) -> Value {
    match shape {
        Shape::Leaf(_) => values.next().map_or(Value::Null, |value| json(&value)),
        Shape::Object(fields) => {
            Value::Object(fields.iter().map(|(name, field)| (name.clone(), payload(field, values))).collect())
        }
        Shape::List(elements) => Value::Array(elements.iter().map(|element| payload(element, values)).collect()),
    }
}

/// A value as JSON.
fn json(value: &ScalarValue) -> Value {
    match value {
        _ if value.is_null() => Value::Null,
        ScalarValue::Int64(Some(value)) => Value::from(*value),
        ScalarValue::Float64(Some(value)) => Value::from(*value),
        ScalarValue::Boolean(Some(value)) => Value::from(*value),
        other => Value::from(other.to_string()),
    }
}
