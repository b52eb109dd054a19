//! Rows of an answer as messages.

use anabranch_engine::Error;
use anabranch_engine::binary::write::{Writer, text_writer, value, writer};
use anabranch_sql::output::is_plain_numeric;
use anabranch_sql::pg_types::PgType;
use arrow::array::{ArrayRef, RecordBatch};
use arrow::datatypes::Schema;

use super::reply::message;

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
                _ => writer(column, PgType::of(field).oid, is_plain_numeric(field))?,
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
