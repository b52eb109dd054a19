//! Rows of an answer as messages.

use anabranch_engine::Error;
use anabranch_sql::output::{Printer, is_null, is_plain_numeric, printer};
use arrow::array::{Array, ArrayRef, AsArray, RecordBatch};
use arrow::datatypes::{DataType, Schema};

use super::binary;
use super::reply::message;
use anabranch_sql::pg_types::PgType;

/// Writes one value, not NULL, behind what is there.
pub(crate) type Writer<'a> = Box<dyn Fn(usize, &mut Vec<u8>) -> Result<(), Error> + 'a>;

/// The format of the n-th column: 0 is text, 1 is binary.
pub(crate) fn format_of(formats: &[i16], n: usize) -> i16 {
    match formats {
        [] => 0,
        [one] => *one,
        each => each.get(n).copied().unwrap_or(0),
    }
}

/// Writes rows of one batch.
pub(crate) struct RowWriter<'a> {
    columns: Vec<(&'a ArrayRef, Writer<'a>)>,
}

impl<'a> RowWriter<'a> {
    /// # Errors
    /// `Invalid` for a binary format of a type that has none.
    pub(crate) fn new(schema: &Schema, batch: &'a RecordBatch, formats: &[i16]) -> Result<RowWriter<'a>, Error> {
        let mut columns = Vec::with_capacity(batch.num_columns());
        for (n, (column, field)) in batch.columns().iter().zip(schema.fields()).enumerate() {
            let writer = match format_of(formats, n) {
                0 => text_writer(column),
                _ => binary::writer(column, PgType::of(field).oid, is_plain_numeric(field))?,
            };
            columns.push((column, writer));
        }
        Ok(RowWriter { columns })
    }

    /// Appends a DataRow.
    ///
    /// # Errors
    /// `Data` for a value that the binary format cannot hold; nothing is appended then.
    pub(crate) fn write(&self, row: usize, out: &mut Vec<u8>) -> Result<(), Error> {
        let start = out.len();
        let mut result = Ok(());
        message(out, b'D', |out| {
            out.extend_from_slice(&(self.columns.len() as u16).to_be_bytes());
            for (column, writer) in &self.columns {
                result = value(column, writer, row, out);
                if result.is_err() {
                    return;
                }
            }
        });
        if result.is_err() {
            out.truncate(start);
        }
        result
    }
}

/// Appends a value's length and its bytes; NULL has the length -1.
pub(crate) fn value(column: &ArrayRef, writer: &Writer<'_>, row: usize, out: &mut Vec<u8>) -> Result<(), Error> {
    if is_null(column, row) {
        out.extend_from_slice(&(-1i32).to_be_bytes());
        return Ok(());
    }
    let start = out.len();
    out.extend_from_slice(&[0; 4]);
    writer(row, out)?;
    let length = i32::try_from(out.len() - start - 4).map_err(|_| Error::data("a value is longer than 2 GiB"))?;
    out[start..start + 4].copy_from_slice(&length.to_be_bytes());
    Ok(())
}

/// Writes values of a column as text.
pub(crate) fn text_writer(column: &ArrayRef) -> Writer<'_> {
    match column.data_type() {
        DataType::Boolean => {
            let values = column.as_boolean();
            Box::new(move |row, out| {
                out.push(if values.value(row) { b't' } else { b'f' });
                Ok(())
            })
        }
        DataType::Utf8View => {
            let values = column.as_string_view();
            Box::new(move |row, out| {
                out.extend_from_slice(values.value(row).as_bytes());
                Ok(())
            })
        }
        _ => printed(printer(column)),
    }
}

fn printed(print: Printer<'_>) -> Writer<'_> {
    Box::new(move |row, out| {
        let mut text = String::new();
        print(row, &mut text);
        out.extend_from_slice(text.as_bytes());
        Ok(())
    })
}
