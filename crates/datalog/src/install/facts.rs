//! Facts as batches, and rows as values.

use std::sync::Arc;

use anabranch_engine::{Error, Rows};
use arrow::array::{Array, ArrayRef, AsArray, Float64Array, Int64Array, RecordBatch, StringViewArray};
use arrow::datatypes::{DataType, Field, Float64Type, Int64Type, Schema};

use crate::core::Relation;
use crate::value::Value;

/// Facts as a batch of the relation's columns.
pub(crate) fn batch(relation: &Relation, facts: &[Vec<Value>]) -> Result<RecordBatch, Error> {
    let mut columns: Vec<ArrayRef> = vec![];
    let mut fields = vec![];
    if let Some(fact) = facts.iter().find(|fact| fact.len() != relation.columns.len()) {
        let (wanted, given) = (relation.columns.len(), fact.len());
        return Err(Error::invalid(format!("relation {} has {wanted} attributes, not {given}", relation.name)));
    }
    for (idx, column) in relation.columns.iter().enumerate() {
        let values = || facts.iter().map(|fact| &fact[idx]);
        let array: Option<ArrayRef> = match column.base.data_type() {
            DataType::Int64 => values().map(number).collect::<Option<Int64Array>>().map(|array| Arc::new(array) as _),
            DataType::Float64 => {
                values().map(float).collect::<Option<Float64Array>>().map(|array| Arc::new(array) as _)
            }
            _ => values().map(text).collect::<Option<StringViewArray>>().map(|array| Arc::new(array) as _),
        };
        columns.push(array.ok_or_else(|| {
            Error::invalid(format!("a value for attribute {} of {} has another type", column.name, relation.name))
        })?);
        fields.push(Field::new(&column.name, column.base.data_type(), false));
    }
    RecordBatch::try_new(Arc::new(Schema::new(fields)), columns).map_err(Error::from)
}

fn number(value: &Value) -> Option<Option<i64>> {
    match value {
        Value::Number(number) => Some(Some(*number)),
        _ => None,
    }
}

fn float(value: &Value) -> Option<Option<f64>> {
    match value {
        Value::Float(number) => Some(Some(*number)),
        _ => None,
    }
}

fn text(value: &Value) -> Option<Option<&str>> {
    match value {
        Value::Text(text) => Some(Some(text)),
        _ => None,
    }
}

/// The rows of an answer, each once, in order.
pub(crate) fn sorted(rows: Rows) -> Result<Vec<Vec<Value>>, Error> {
    let mut out = Vec::with_capacity(rows.num_rows());
    for batch in &rows.batches {
        for row in 0..batch.num_rows() {
            out.push(batch.columns().iter().map(|column| value(column, row)).collect());
        }
    }
    out.sort_by(|one: &Vec<Value>, other| {
        one.iter().zip(other).map(|(a, b)| order(a, b)).find(|o| o.is_ne()).unwrap_or(std::cmp::Ordering::Equal)
    });
    out.dedup();
    Ok(out)
}

fn value(column: &ArrayRef, row: usize) -> Value {
    match column.data_type() {
        DataType::Int64 => Value::Number(column.as_primitive::<Int64Type>().value(row)),
        DataType::Float64 => Value::Float(column.as_primitive::<Float64Type>().value(row)),
        _ => Value::Text(column.as_string_view().value(row).to_owned()),
    }
}

fn order(one: &Value, other: &Value) -> std::cmp::Ordering {
    match (one, other) {
        (Value::Number(one), Value::Number(other)) => one.cmp(other),
        (Value::Float(one), Value::Float(other)) => one.total_cmp(other),
        (Value::Text(one), Value::Text(other)) => one.cmp(other),
        _ => std::cmp::Ordering::Equal,
    }
}
