//! JSON: objects with a member a column, in column order.
//!
//! Numbers keep all their digits, decimals too; NaN and the infinities are texts, because JSON has
//! no numbers for them. Lists are arrays, structs are objects, everything else is text as
//! PostgreSQL prints it.

use std::io::{self, Write};

use arrow::{
    array::{ArrayRef, AsArray, RecordBatch},
    datatypes::{DataType, Float32Type, Float64Type},
};
use serde_json::Value;

use anabranch_sql::output::{is_null, is_plain_numeric, printer};

/// One array for a whole answer.
pub(super) fn write_array(out: &mut dyn Write, batches: &[RecordBatch]) -> io::Result<()> {
    let mut first = true;
    out.write_all(b"[")?;
    for batch in batches {
        each_object(batch, |object| {
            out.write_all(if first { b"" } else { b",\n " })?;
            first = false;
            out.write_all(object.as_bytes())
        })?;
    }
    out.write_all(b"]\n")
}

/// One object a line.
pub(super) fn write_lines(out: &mut dyn Write, batch: &RecordBatch) -> io::Result<()> {
    each_object(batch, |object| writeln!(out, "{object}"))
}

fn each_object(batch: &RecordBatch, mut write: impl FnMut(&str) -> io::Result<()>) -> io::Result<()> {
    let schema = batch.schema();
    let names: Vec<String> = schema.fields().iter().map(|field| text(field.name())).collect();
    let columns = batch.columns().iter().zip(schema.fields());
    let printers: Vec<Printer<'_>> = columns
        .map(|(column, field)| if is_plain_numeric(field) { number_printer(column) } else { json_printer(column) })
        .collect();
    let mut object = String::new();
    for row in 0..batch.num_rows() {
        object.clear();
        object.push('{');
        for (i, (name, print)) in names.iter().zip(&printers).enumerate() {
            if i > 0 {
                object.push(',');
            }
            object.push_str(name);
            object.push(':');
            print(row, &mut object);
        }
        object.push('}');
        write(&object)?;
    }
    Ok(())
}

fn text(value: &str) -> String {
    Value::from(value).to_string()
}

/// Appends a row's value, NULL included.
type Printer<'a> = Box<dyn Fn(usize, &mut String) + 'a>;

/// Texts of numbers as these numbers.
fn number_printer(array: &ArrayRef) -> Printer<'_> {
    let texts = array.as_string_view();
    let is_special = move |row: usize| texts.value(row).ends_with(|c: char| c.is_alphabetic());
    let value = unless(printer(array), is_special);
    Box::new(move |row, out| if is_null(array, row) { out.push_str("null") } else { value(row, out) })
}

fn json_printer(array: &ArrayRef) -> Printer<'_> {
    let value: Printer<'_> = match array.data_type() {
        DataType::Float32 => {
            let values = array.as_primitive::<Float32Type>();
            unless(printer(array), move |row| !values.value(row).is_finite())
        }
        DataType::Float64 => {
            let values = array.as_primitive::<Float64Type>();
            unless(printer(array), move |row| !values.value(row).is_finite())
        }
        DataType::Boolean => printer(array),
        number if number.is_numeric() => printer(array),
        DataType::List(_) => {
            let values = array.as_list::<i32>();
            Box::new(move |row, out| list(&values.value(row), out))
        }
        DataType::LargeList(_) => {
            let values = array.as_list::<i64>();
            Box::new(move |row, out| list(&values.value(row), out))
        }
        DataType::Struct(fields) => {
            let names: Vec<String> = fields.iter().map(|field| text(field.name())).collect();
            let members: Vec<Printer<'_>> = array.as_struct().columns().iter().map(json_printer).collect();
            Box::new(move |row, out| {
                out.push('{');
                for (i, (name, member)) in names.iter().zip(&members).enumerate() {
                    if i > 0 {
                        out.push(',');
                    }
                    out.push_str(name);
                    out.push(':');
                    member(row, out);
                }
                out.push('}');
            })
        }
        _ => unless(printer(array), |_| true),
    };
    Box::new(move |row, out| if is_null(array, row) { out.push_str("null") } else { value(row, out) })
}

/// As `print`, but as a JSON text where `quoted` says so.
fn unless<'a>(print: anabranch_sql::output::Printer<'a>, quoted: impl Fn(usize) -> bool + 'a) -> Printer<'a> {
    Box::new(move |row, out| {
        if quoted(row) {
            let mut plain = String::new();
            print(row, &mut plain);
            out.push_str(&text(&plain));
        } else {
            print(row, out);
        }
    })
}

fn list(values: &ArrayRef, out: &mut String) {
    let print = json_printer(values);
    out.push('[');
    for row in 0..values.len() {
        if row > 0 {
            out.push(',');
        }
        print(row, out);
    }
    out.push(']');
}
