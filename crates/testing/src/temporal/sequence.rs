//! What an input let through, compared with what a case expects.

use anabranch_batch::{Batch, END};
use anabranch_engine::frame;
use anabranch_engine::frame::arrival::Item;
use arrow::array::ArrayRef;
use arrow::datatypes::DataType;
use datafusion_common::ScalarValue;
use serde_json::{Value, json};

use super::check::canonical;
use super::shape::{Shape, payload};

/// Compares rows and punctuations in their order.
pub(super) fn compare(
    expected: &Value,
    arrived: Vec<Item>,
    shape: &Shape<DataType>,
    partitioned: bool,
) -> Result<(), String> {
    let expected: Vec<String> = expected.as_array().ok_or("a sequence is a list")?.iter().map(canonical).collect();
    let mut actual = Vec::new();
    for item in arrived {
        match item {
            Item::Rows(batch) => {
                for row in 0..batch.len() {
                    actual.push(canonical(&event(&batch, row, shape, partitioned)?));
                }
            }
            Item::Punctuation(key, time) => {
                let mut punctuation = json!({"k": "punct", "t": time});
                if partitioned {
                    punctuation["p"] = single(&key, 0)?;
                }
                actual.push(canonical(&punctuation));
            }
            Item::LowWatermark(time) => actual.push(canonical(&json!({"k": "lwm", "t": time}))),
        }
    }
    differ(&actual, &expected)
}

/// Compares what a query put out: rows in order, and among them at least the expected punctuations.
/// (The frontier also follows rows, so there are more of them.)
pub(super) fn compare_output(
    expected: &Value,
    output: Vec<frame::Item>,
    shape: &Shape<DataType>,
    partitioned: bool,
) -> Result<(), String> {
    let expected: Vec<String> = expected.as_array().ok_or("a sequence is a list")?.iter().map(canonical).collect();
    let mut actual = Vec::new();
    for item in output {
        match item {
            frame::Item::Rows(batch) => {
                for row in 0..batch.len() {
                    actual.push(canonical(&event(&batch, row, shape, partitioned)?));
                }
            }
            frame::Item::Frontier(time) => {
                let punctuation = canonical(&json!({"k": "punct", "t": time}));
                if expected.get(actual.len()) == Some(&punctuation) {
                    actual.push(punctuation);
                }
            }
            frame::Item::Errors(_) => return Err("a row of the output is in error".into()),
        }
    }
    differ(&actual, &expected)
}

fn differ(actual: &[String], expected: &[String]) -> Result<(), String> {
    if actual == expected {
        return Ok(());
    }
    let at = actual.iter().zip(expected).take_while(|(actual, expected)| actual == expected).count();
    Err(format!(
        "the sequence differs at {at}: got {}, expected {}",
        actual.get(at).map_or("nothing", String::as_str),
        expected.get(at).map_or("nothing", String::as_str)
    ))
}

fn event(batch: &Batch, row: usize, shape: &Shape<DataType>, partitioned: bool) -> Result<Value, String> {
    let time = batch.times().get(row);
    let until = batch.until().get(row, time);
    let mut values = batch.columns().iter().map(|column| value(column, row)).collect::<Result<Vec<_>, _>>()?;
    let partition = partitioned.then(|| values.pop()).flatten();
    let v = payload(shape, &mut values.into_iter());
    let mut event = match until {
        END => json!({"k": "start", "s": time, "v": v}),
        _ if until < time => json!({"k": "end", "e": time, "s": until, "v": v}),
        _ => json!({"k": "interval", "s": time, "e": until, "v": v}),
    };
    if let Some(partition) = partition {
        event["p"] = payload(&Shape::Leaf(()), &mut [partition].into_iter());
    }
    Ok(event)
}

fn single(columns: &[ArrayRef], row: usize) -> Result<Value, String> {
    let column = columns.first().ok_or("a partition has a column")?;
    Ok(payload(&Shape::Leaf(()), &mut [value(column, row)?].into_iter()))
}

fn value(column: &ArrayRef, row: usize) -> Result<ScalarValue, String> {
    ScalarValue::try_from_array(column, row).map_err(|error| error.to_string())
}
