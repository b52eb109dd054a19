//! Cells as `psql` prints them, which is how they stand in the files.
//!
//! Four departures, shared with `tools/slt_expect.py`: numerics lose trailing zeros after the point
//! (the scale of a computed numeric is not part of its value), zero has no sign, `char(n)` has no
//! spaces at its end, and an empty text is `(empty)`.

use anabranch_batch::TextLimit;
use anabranch_sql::output::{is_null, is_plain_numeric, printer};
use arrow::array::{ArrayRef, AsArray, RecordBatch};
use arrow::datatypes::{DataType, SchemaRef};
use sqllogictest::DefaultColumnType;

/// The sqllogictest letters of a result's columns.
pub fn types_of(schema: &SchemaRef) -> Vec<DefaultColumnType> {
    schema
        .fields()
        .iter()
        .map(|field| match field.data_type() {
            kind if kind.is_integer() => DefaultColumnType::Integer,
            kind if kind.is_numeric() || is_plain_numeric(field) => DefaultColumnType::FloatingPoint,
            _ => DefaultColumnType::Text,
        })
        .collect()
}

/// All rows of a result, cell by cell.
pub fn rows_of(batches: &[RecordBatch]) -> Vec<Vec<String>> {
    batches.iter().flat_map(|batch| (0..batch.num_rows()).map(|row| row_of(batch, row))).collect()
}

fn row_of(batch: &RecordBatch, row: usize) -> Vec<String> {
    let schema = batch.schema();
    let cells = batch.columns().iter().zip(schema.fields()).map(|(column, field)| match TextLimit::of(field) {
        Some(TextLimit::Char(_)) => cell(column, row).trim_end().to_string(),
        _ if is_plain_numeric(field) => without_zeros(&cell(column, row)),
        _ => cell(column, row),
    });
    cells.map(|text| if text.is_empty() { "(empty)".to_string() } else { text }).collect()
}

/// One cell as text.
fn cell(column: &ArrayRef, row: usize) -> String {
    if is_null(column, row) {
        return "NULL".to_string();
    }
    let mut text = String::new();
    printer(column)(row, &mut text);
    match column.data_type() {
        DataType::Boolean => if column.as_boolean().value(row) { "t" } else { "f" }.to_string(),
        DataType::Decimal128(..) | DataType::Decimal256(..) => without_zeros(&text),
        kind if kind.is_floating() && text == "-0" => "0".to_string(),
        _ => text,
    }
}

/// Without trailing zeros after a point, and without the point if nothing is left.
fn without_zeros(text: &str) -> String {
    let short = if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { text };
    if short == "-0" { "0".to_string() } else { short.to_string() }
}

#[test]
fn cells_read_as_psql_prints_them() {
    use std::sync::Arc;

    use arrow::array::{
        Array, BinaryViewArray, BooleanArray, Date32Array, Decimal128Array, Float32Array, Float64Array,
        IntervalMonthDayNanoArray, ListArray, Time64MicrosecondArray, TimestampMicrosecondArray,
    };
    use arrow::datatypes::{Int32Type, IntervalMonthDayNano};

    let check = |column: ArrayRef, expected: &[&str]| {
        let cells: Vec<String> = (0..column.len()).map(|row| cell(&column, row)).collect();
        assert_eq!(cells, expected, "{}", column.data_type());
    };
    check(Arc::new(BooleanArray::from(vec![Some(true), Some(false), None])), &["t", "f", "NULL"]);
    check(
        Arc::new(Float64Array::from(vec![
            0.1,
            -0.0,
            1e20,
            1.5e-7,
            0.0001,
            123456789.5,
            f64::NAN,
            f64::NEG_INFINITY,
            1e14,
            1e15,
        ])),
        &["0.1", "0", "1e+20", "1.5e-07", "0.0001", "123456789.5", "NaN", "-Infinity", "100000000000000", "1e+15"],
    );
    check(Arc::new(Float32Array::from(vec![0.1, 1e10, 1.5])), &["0.1", "1e+10", "1.5"]);
    let decimals = Decimal128Array::from(vec![150, -1, 0, 100_000]).with_precision_and_scale(10, 2).expect("fits");
    check(Arc::new(decimals), &["1.5", "-0.01", "0", "1000"]);
    check(Arc::new(BinaryViewArray::from(vec![&[0u8, 255][..], &[]])), &["\\x00ff", "\\x"]);
    check(Arc::new(Date32Array::from(vec![15_706, -1])), &["2013-01-01", "1969-12-31"]);
    let times = vec![-500_000, 1_357_017_300_000_000];
    check(Arc::new(TimestampMicrosecondArray::from(times.clone())), &["1969-12-31 23:59:59.5", "2013-01-01 05:15:00"]);
    let zoned = TimestampMicrosecondArray::from(times).with_timezone("UTC");
    check(Arc::new(zoned), &["1969-12-31 23:59:59.5+00", "2013-01-01 05:15:00+00"]);
    check(Arc::new(Time64MicrosecondArray::from(vec![0, 86_399_999_999])), &["00:00:00", "23:59:59.999999"]);
    let span = |months, days, micros: i64| IntervalMonthDayNano::new(months, days, micros * 1000);
    check(
        Arc::new(IntervalMonthDayNanoArray::from(vec![
            span(14, 3, 14_706_700_000),
            span(0, 0, 0),
            span(0, 0, -300_000_000),
            span(-1, 1, 0),
        ])),
        &["1 year 2 mons 3 days 04:05:06.7", "00:00:00", "-00:05:00", "-1 mons +1 day"],
    );
    let lists = ListArray::from_iter_primitive::<Int32Type, _, _>(vec![Some(vec![Some(1), None])]);
    check(Arc::new(lists), &["{1,NULL}"]);
}
