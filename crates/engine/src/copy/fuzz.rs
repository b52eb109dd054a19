//! Random rows of COPY, and rows that coverage leads to (`cargo bolero test`, `make fuzz`): reading
//! never panics, what is read does not depend on how the bytes are cut, and rows are written and
//! read again as they are.

use std::sync::Arc;

use anabranch_sql::output::{shown_column, shown_schema};
use anabranch_sql::statement::CopyOptions;
use arrow::array::RecordBatch;
use arrow::datatypes::{DataType, Field, IntervalUnit, Schema, TimeUnit};

use super::decode::{Block, Decoder};
use super::encode::{CopyData, Encoder};
use super::options::{CopyFormat, Way};
use crate::error::Error;

/// Columns of all types that tables have.
fn types() -> Vec<DataType> {
    let list = |of: DataType| DataType::List(Field::new_list_field(of, true).into());
    vec![
        DataType::Boolean,
        DataType::Int16,
        DataType::Int32,
        DataType::Int64,
        DataType::Float32,
        DataType::Float64,
        DataType::Utf8View,
        DataType::BinaryView,
        DataType::Date32,
        DataType::Decimal128(10, 2),
        anabranch_batch::numeric::TYPE,
        DataType::Timestamp(TimeUnit::Microsecond, None),
        DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into())),
        DataType::Time64(TimeUnit::Microsecond),
        DataType::Interval(IntervalUnit::MonthDayNano),
        list(DataType::Int32),
        list(DataType::Utf8View),
        list(DataType::Timestamp(TimeUnit::Microsecond, None)),
    ]
}

fn format(name: &str, fields: &[Field], way: Way) -> CopyFormat {
    let options = CopyOptions { plain: vec![("format".to_owned(), name.to_owned())], ..CopyOptions::default() };
    let names: Vec<String> = fields.iter().map(|field| field.name().clone()).collect();
    CopyFormat::new(&options, &names, way).unwrap()
}

/// The rows of these pieces, or what is wrong with them.
fn read(name: &str, fields: &[Field], pieces: &[&[u8]]) -> Result<Vec<RecordBatch>, Error> {
    let mut decoder = Decoder::new("t", fields, format(name, fields, Way::In));
    let mut blocks: Vec<Block> = Vec::new();
    for piece in pieces {
        blocks.extend(decoder.push(piece)?);
    }
    blocks.extend(decoder.finish()?);
    blocks.iter().map(|block| block.typed("t", fields)).collect()
}

fn write(name: &str, fields: &[Field], rows: &[RecordBatch]) -> Result<Vec<u8>, Error> {
    let schema = shown_schema(&Arc::new(Schema::new(fields.to_vec())));
    let mut encoder = Encoder::new(Arc::clone(&schema), format(name, fields, Way::Out));
    let mut data = CopyData::default();
    for rows in rows {
        let columns = rows.columns().iter().map(shown_column).collect();
        encoder.write(&RecordBatch::try_new(Arc::clone(&schema), columns)?, &mut data)?;
    }
    encoder.finish(&mut data);
    Ok(data.bytes)
}

fn check(name: &str, bytes: &[u8]) {
    let types = types();
    let Some(([columns, of, cut], rest)) = bytes.split_first_chunk::<3>() else { return };
    let field = |at: usize| Field::new(format!("c{at}"), types[(usize::from(*of) + at) % types.len()].clone(), true);
    let fields: Vec<Field> = (0..1 + usize::from(*columns) % 3).map(field).collect();
    let rest = match name {
        // (With the signature in front, so that rows are reached.)
        "binary" => [&super::binary::SIGNATURE[..], &[0; 8], rest].concat(),
        _ => rest.to_vec(),
    };
    let (first, second) = rest.split_at(usize::from(*cut).min(rest.len()));
    let whole = read(name, &fields, &[&rest]);
    let cut = read(name, &fields, &[first, second]);
    match (whole, cut) {
        (Ok(whole), Ok(cut)) => {
            assert_eq!(whole, cut);
            let Ok(written) = write(name, &fields, &whole) else { return };
            let again = read(name, &fields, &[&written]).unwrap();
            assert_eq!(write(name, &fields, &again).unwrap(), written, "{whole:?}");
        }
        (Err(whole), Err(cut)) => assert_eq!((whole.message, whole.detail), (cut.message, cut.detail)),
        (whole, cut) => panic!("{whole:?}, but in pieces {cut:?}"),
    }
}

#[test]
fn only_one_negative_length_means_null() {
    let fields = [Field::new("a", DataType::Int32, true)];
    let row = |length: i32| [&super::binary::SIGNATURE[..], &[0; 8], &[0, 1], &length.to_be_bytes()].concat();
    assert_eq!(read("binary", &fields, &[&row(-1)]).unwrap()[0].num_rows(), 1);
    let error = read("binary", &fields, &[&row(-2)]).unwrap_err();
    assert_eq!((error.sqlstate(), error.message.as_str()), ("22P04", "invalid field size"));
}

#[test]
fn any_bytes_may_be_rows_of_the_binary_format() {
    bolero::check!().for_each(|bytes: &[u8]| check("binary", bytes));
}

#[test]
fn any_bytes_may_be_rows_of_text() {
    bolero::check!().for_each(|bytes: &[u8]| check("text", bytes));
}

#[test]
fn any_bytes_may_be_rows_of_csv() {
    bolero::check!().for_each(|bytes: &[u8]| check("csv", bytes));
}
