//! Payloads as columns: a column for each leaf.

use std::collections::BTreeSet;

use arrow::array::Array;
use arrow::datatypes::{DataType, Field};
use datafusion_common::ScalarValue;
use datafusion_common::scalar::ScalarStructBuilder;
use datafusion_expr::{Expr, lit, when};
use datafusion_functions::core::expr_fn::{get_field, named_struct};
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
    /// A list that differs in length from row to row: one value, and the fields of its elements (""
    /// for an element itself).
    Elements(T, Box<Shape<String>>),
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
            Shape::Leaf(leaf) | Shape::Elements(leaf, _) => leaves.push((place.to_owned(), leaf)),
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
            Shape::Elements(leaf, fields) => Shape::Elements(change(place, leaf), fields.clone()),
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

impl Shape<String> {
    /// The parts of a packed element.
    pub(super) fn parts_of(&self, element: &Expr) -> Shape<Expr> {
        self.map(&mut |_, name| match name.as_str() {
            "" => element.clone(),
            name => get_field(element.clone(), name),
        })
    }
}

impl Shape<Expr> {
    /// An element packed into one value.
    pub(super) fn packed(&self) -> Expr {
        match self {
            Shape::Leaf(expr) => expr.clone(),
            form => {
                let leaves = form.leaves().into_iter();
                named_struct(leaves.flat_map(|(name, expr)| [lit(name), expr.clone()]).collect())
            }
        }
    }

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

/// The types of the leaves of some payloads. What is nowhere more than null has the form of the
/// other payloads' (`like`), or is a number.
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
        Some(Value::Array(_)) if lengths(payloads, like) > 1 => {
            let elements = payloads.iter().chain(like).filter_map(|payload| payload.as_array()).flatten();
            let element = shape_of(&elements.collect::<Vec<_>>(), &[]);
            Shape::Elements(DataType::new_list(element.packed_type(), true), Box::new(element.fields()))
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

/// How many lengths the lists among payloads have.
fn lengths(payloads: &[&Value], like: &[&Value]) -> usize {
    let lists = payloads.iter().chain(like).filter_map(|payload| payload.as_array());
    lists.map(Vec::len).collect::<BTreeSet<_>>().len()
}

impl<T> Shape<T> {
    /// The fields of an element that is packed into one value.
    pub(super) fn fields(&self) -> Shape<String> {
        match self {
            Shape::Leaf(_) => Shape::Leaf(String::new()),
            form => form.map(&mut |name, _| name.to_owned()),
        }
    }
}

impl Shape<DataType> {
    /// The type of an element that is packed into one value.
    fn packed_type(&self) -> DataType {
        match self {
            Shape::Leaf(data_type) | Shape::Elements(data_type, _) => data_type.clone(),
            form => {
                let leaves = form.leaves().into_iter();
                DataType::Struct(leaves.map(|(name, leaf)| Field::new(name, leaf.clone(), true)).collect())
            }
        }
    }
}

/// The values of a payload, one a leaf.
pub(super) fn values_of(payload: &Value, shape: &Shape<DataType>) -> Vec<ScalarValue> {
    match shape {
        Shape::Object(fields) => fields.iter().flat_map(|(name, field)| values_of(&payload[name], field)).collect(),
        Shape::List(elements) => {
            elements.iter().enumerate().flat_map(|(at, element)| values_of(&payload[at], element)).collect()
        }
        Shape::Elements(DataType::List(of), fields) => vec![list_of(payload, of.data_type(), fields)],
        Shape::Leaf(DataType::Int64) => vec![ScalarValue::Int64(payload.as_i64())],
        Shape::Leaf(DataType::Float64) => vec![ScalarValue::Float64(payload.as_f64())],
        Shape::Leaf(DataType::Boolean) => vec![ScalarValue::Boolean(payload.as_bool())],
        Shape::Leaf(_) | Shape::Elements(..) => vec![ScalarValue::Utf8View(payload.as_str().map(str::to_owned))],
    }
}

/// A list of packed elements.
fn list_of(payload: &Value, of: &DataType, fields: &Shape<String>) -> ScalarValue {
    let Some(elements) = payload.as_array() else {
        return ScalarValue::new_null_list(of.clone(), true, 1);
    };
    let packed = |element: &Value| match of {
        DataType::Struct(columns) => {
            let mut types = columns.iter().map(|column| column.data_type().clone());
            let typed = fields.map(&mut |_, _| types.next().unwrap_or(DataType::Null));
            let values = columns.iter().cloned().zip(values_of(element, &typed));
            let builder =
                values.fold(ScalarStructBuilder::new(), |builder, (column, value)| builder.with_scalar(column, value));
            builder.build().unwrap_or(ScalarValue::Null)
        }
        of => values_of(element, &Shape::Leaf(of.clone())).remove(0),
    };
    let values: Vec<ScalarValue> = elements.iter().map(packed).collect();
    ScalarValue::List(ScalarValue::new_list(&values, of, true))
}

/// A payload from the values of its leaves, in order.
pub(super) fn payload<T>(shape: &Shape<T>, values: &mut impl Iterator<Item = ScalarValue>) -> Value {
    match shape {
        Shape::Leaf(_) => values.next().map_or(Value::Null, |value| json(&value)),
        Shape::Object(fields) => {
            Value::Object(fields.iter().map(|(name, field)| (name.clone(), payload(field, values))).collect())
        }
        Shape::List(elements) => Value::Array(elements.iter().map(|element| payload(element, values)).collect()),
        Shape::Elements(_, fields) => values.next().map_or(Value::Null, |value| elements_json(&value, fields)),
    }
}

/// A list of packed elements as JSON.
fn elements_json(value: &ScalarValue, fields: &Shape<String>) -> Value {
    let ScalarValue::List(list) = value else { return Value::Null };
    if list.is_null(0) {
        return Value::Null;
    }
    let elements = list.value(0);
    let element = |at: usize| ScalarValue::try_from_array(&elements, at).unwrap_or(ScalarValue::Null);
    Value::Array((0..elements.len()).map(|at| element_json(&element(at), fields)).collect())
}

fn element_json(element: &ScalarValue, fields: &Shape<String>) -> Value {
    let field = |name: &String| match element {
        ScalarValue::Struct(parts) => {
            let part = parts.column_by_name(name).map(|part| ScalarValue::try_from_array(part, 0));
            part.and_then(Result::ok).unwrap_or(ScalarValue::Null)
        }
        whole => whole.clone(),
    };
    match fields {
        Shape::Leaf(name) => json(&field(name)),
        Shape::Elements(name, inner) => elements_json(&field(name), inner),
        Shape::Object(parts) => {
            Value::Object(parts.iter().map(|(name, part)| (name.clone(), element_json(element, part))).collect())
        }
        Shape::List(parts) => Value::Array(parts.iter().map(|part| element_json(element, part)).collect()),
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
