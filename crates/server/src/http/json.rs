//! Rows as JSON.

use anabranch_sql::column_type_name;
use anabranch_sql::output::{is_null, printer};
use arrow::array::{Array, ArrayRef, AsArray, RecordBatch};
use arrow::datatypes::{DataType, Float32Type, Float64Type, Int16Type, Int32Type, Int64Type, Schema, UInt32Type};
use serde_json::{Map, Value, json};

/// Names and types.
pub(super) fn columns(schema: &Schema) -> Value {
    schema.fields().iter().map(|field| json!({ "name": field.name(), "type": column_type_name(field) })).collect()
}

/// An object for each row, under the names of its columns.
pub(super) fn rows(schema: &Schema, batches: &[RecordBatch]) -> Value {
    let mut all = Vec::new();
    for batch in batches {
        for row in 0..batch.num_rows() {
            let values = batch.columns().iter().zip(schema.fields());
            let object: Map<String, Value> =
                values.map(|(column, field)| (field.name().clone(), value(column, row))).collect();
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
