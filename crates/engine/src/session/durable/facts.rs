//! Facts: small values that are recorded beside rows, and their forms on disk.
//!
//! Law: a fact is written by one function of the engine and read by one; a value that cannot be
//! read is an error that names the fact. Texts are used where a person may look, since a fact is
//! small and rare.

use std::collections::HashMap;

use anabranch_batch::{Batch, Diffs, Times, types, wire};
use arrow::array::new_empty_array;
use arrow::datatypes::{Field, Schema};

/// How far the watermark of a table or source is: the greatest time, and the rows left out as late.
pub(crate) const WATERMARK: &str = "watermark";
/// Where a source stands; see `Stand`.
pub(crate) const SOURCE: &str = "source";
/// The columns of a source, which its statement may leave to the files that it reads.
pub(crate) const COLUMNS: &str = "columns";
/// The statement that makes an object, where it was altered since it was made.
pub(crate) const DEFINITION: &str = "definition";
/// The next numbers of the columns of a table that number rows.
pub(crate) const COUNTERS: &str = "counters";
/// The setting of that name, in microseconds; a fact of the database.
pub(crate) const RETAIN_HISTORY: &str = "retain_history";

/// The columns of a relation: names, NOT NULL and limits, then an empty batch, whose form tells the
/// types.
pub(crate) fn columns_value(schema: &Schema) -> Vec<u8> {
    let mut bytes = Vec::new();
    put_number(&mut bytes, schema.fields().len());
    for field in schema.fields() {
        put_text(&mut bytes, field.name());
        bytes.push(u8::from(field.is_nullable()));
        let mut metadata: Vec<(&String, &String)> = field.metadata().iter().collect();
        metadata.sort();
        put_number(&mut bytes, metadata.len());
        for (name, value) in metadata {
            put_text(&mut bytes, name);
            put_text(&mut bytes, value);
        }
    }
    let columns = schema.fields().iter().map(|field| new_empty_array(&types::narrowed_type(field.data_type())));
    let columns: Vec<_> = columns.collect();
    let batch = Batch::with_len(columns.into(), 0, Times::Constant(0), Diffs::Constant(1));
    wire::write(&batch, &mut bytes).expect("memory takes what is written");
    bytes
}

/// The columns of [`columns_value`]; `None` when the value is malformed.
pub(super) fn read_columns(bytes: &[u8]) -> Option<Schema> {
    let mut rest = bytes;
    let n_fields = take_number(&mut rest)?;
    let mut fields = Vec::new();
    for _ in 0..n_fields {
        let name = take_text(&mut rest)?;
        let (nullable, after) = rest.split_first()?;
        rest = after;
        let mut metadata = HashMap::new();
        for _ in 0..take_number(&mut rest)? {
            metadata.insert(take_text(&mut rest)?, take_text(&mut rest)?);
        }
        fields.push((name, *nullable != 0, metadata));
    }
    let types = wire::read(rest).ok()?;
    if types.columns().len() != fields.len() {
        return None;
    }
    let field = |((name, nullable, metadata), column): ((String, bool, _), &arrow::array::ArrayRef)| {
        Field::new(name, types::widened_type(column.data_type()), nullable).with_metadata(metadata)
    };
    Some(Schema::new(fields.into_iter().zip(types.columns().iter()).map(field).collect::<Vec<_>>()))
}

fn put_number(bytes: &mut Vec<u8>, number: usize) {
    bytes.extend((number as u32).to_le_bytes());
}

fn put_text(bytes: &mut Vec<u8>, text: &str) {
    put_number(bytes, text.len());
    bytes.extend(text.as_bytes());
}

fn take_number(rest: &mut &[u8]) -> Option<usize> {
    let (number, after) = rest.split_first_chunk::<4>()?;
    *rest = after;
    Some(u32::from_le_bytes(*number) as usize)
}

fn take_text(rest: &mut &[u8]) -> Option<String> {
    let length = take_number(rest)?;
    let (text, after) = rest.split_at_checked(length)?;
    *rest = after;
    String::from_utf8(text.to_vec()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use anabranch_batch::TextLimit;
    use arrow::datatypes::{DataType, IntervalUnit, TimeUnit};
    use std::sync::Arc;

    #[test]
    fn columns_come_back() {
        let schema = Schema::new(vec![
            Field::new("a", DataType::Int64, false),
            TextLimit::Varchar(3).declare(Field::new("ä \" b", DataType::Utf8View, true)),
            Field::new("c", DataType::Decimal128(12, 2), true),
            Field::new("d", DataType::Decimal128(38, 9), true),
            Field::new("e", DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into())), true),
            Field::new("f", DataType::List(Arc::new(Field::new_list_field(DataType::Int32, true))), true),
            Field::new("g", DataType::Interval(IntervalUnit::MonthDayNano), true),
            Field::new("h", DataType::LargeBinary, true),
            Field::new("i", DataType::UInt16, true),
        ]);
        let value = columns_value(&schema);
        assert_eq!(read_columns(&value), Some(schema));
        for length in 0..value.len() {
            assert_eq!(read_columns(&value[..length]), None, "cut at {length}");
        }
    }
}
