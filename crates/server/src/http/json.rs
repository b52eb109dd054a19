//! Rows as JSON.
//!
//! Law: no value is lost. Of columns with one name the second is `name_1`, the next `name_2`.

use std::collections::BTreeSet;

use anabranch_sql::column_type_name;
use anabranch_sql::output::{is_null, printer};
use arrow::array::{Array, ArrayRef, AsArray, RecordBatch};
use arrow::datatypes::{DataType, Float32Type, Float64Type, Int16Type, Int32Type, Int64Type, Schema, UInt32Type};
use serde_json::{Map, Value, json};

/// Names and types.
pub(super) fn columns(schema: &Schema) -> Value {
    let named = schema.fields().iter().zip(keys(schema));
    named.map(|(field, key)| json!({ "name": key, "type": column_type_name(field) })).collect()
}

/// The names under which rows have their values: no two are equal.
fn keys(schema: &Schema) -> Vec<String> {
    let names: BTreeSet<&str> = schema.fields().iter().map(|field| field.name().as_str()).collect();
    let mut keys: Vec<String> = Vec::with_capacity(schema.fields().len());
    let mut taken = BTreeSet::new();
    for field in schema.fields() {
        let name = field.name();
        let further = (1..).map(|n| format!("{name}_{n}")).filter(|other| !names.contains(other.as_str()));
        let key = std::iter::once(name.clone()).chain(further).find(|key| !taken.contains(key));
        let key = key.expect("numbers do not end");
        taken.insert(key.clone());
        keys.push(key);
    }
    keys
}

/// An object for each row, under the names of its columns.
pub(super) fn rows(schema: &Schema, batches: &[RecordBatch]) -> Value {
    let keys = keys(schema);
    let mut all = Vec::new();
    for batch in batches {
        for row in 0..batch.num_rows() {
            let values = batch.columns().iter().zip(&keys);
            let object: Map<String, Value> = values.map(|(column, key)| (key.clone(), value(column, row))).collect();
            all.push(Value::Object(object));
        }
    }
    Value::Array(all)
}

/// Whole numbers, floats and booleans as such, lists as lists; all others as PostgreSQL's text.
fn value(column: &ArrayRef, row: usize) -> Value {
    if is_null(column, row) {
        return Value::Null;
    }
    match column.data_type() {
        DataType::Boolean => column.as_boolean().value(row).into(),
        DataType::Int16 => column.as_primitive::<Int16Type>().value(row).into(),
        DataType::Int32 => column.as_primitive::<Int32Type>().value(row).into(),
        DataType::Int64 => column.as_primitive::<Int64Type>().value(row).into(),
        DataType::UInt32 => column.as_primitive::<UInt32Type>().value(row).into(),
        DataType::Float32 if column.as_primitive::<Float32Type>().value(row).is_finite() => {
            f64::from(column.as_primitive::<Float32Type>().value(row)).into()
        }
        DataType::Float64 if column.as_primitive::<Float64Type>().value(row).is_finite() => {
            column.as_primitive::<Float64Type>().value(row).into()
        }
        DataType::List(_) => {
            let elements = column.as_list::<i32>().value(row);
            (0..elements.len()).map(|row| value(&elements, row)).collect()
        }
        _ => {
            let mut text = String::new();
            printer(column)(row, &mut text);
            text.into()
        }
    }
}

#[cfg(test)]
mod tests {
    use arrow::datatypes::Field;

    use super::*;

    #[test]
    fn columns_of_one_name_keep_their_values() {
        let field = |name: &str| Field::new(name, DataType::Int64, true);
        let schema = Schema::new(["time", "diff", "a_1", "a", "a", "time", "a"].map(field).to_vec());
        assert_eq!(keys(&schema), ["time", "diff", "a_1", "a", "a_2", "time_1", "a_3"]);
    }
}
