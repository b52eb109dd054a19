//! Rows to bytes.

use anabranch_sql::output::{is_null, is_plain_numeric, printer};
use anabranch_sql::pg_types::PgType;
use arrow::array::{ArrayRef, AsArray, RecordBatch};
use arrow::datatypes::{DataType, SchemaRef};

use super::binary;
use super::options::{CopyFormat, CopyKind, Header};
use crate::binary::write::{Writer, value, writer};
use crate::error::Error;

/// Bytes of a COPY .. TO. What stands before a row (the signature of the binary format) belongs to
/// it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CopyData {
    /// All of them.
    pub bytes: Vec<u8>,
    /// Where each row ends.
    pub row_ends: Vec<usize>,
}

/// Writes rows.
#[derive(Debug)]
pub(crate) struct Encoder {
    format: CopyFormat,
    schema: SchemaRef,
    has_begun: bool,
    /// Rows written.
    pub n_rows: u64,
}

impl Encoder {
    pub fn new(schema: SchemaRef, format: CopyFormat) -> Encoder {
        Encoder { format, schema, has_begun: false, n_rows: 0 }
    }

    /// Appends the rows.
    ///
    /// # Errors
    /// `Invalid` for a type that has no binary format here.
    pub fn write(&mut self, batch: &RecordBatch, data: &mut CopyData) -> Result<(), Error> {
        self.begin(data);
        let columns: Vec<Column<'_>> =
            (0..batch.num_columns()).map(|at| self.column(batch.column(at), at)).collect::<Result<_, _>>()?;
        for row in 0..batch.num_rows() {
            match self.format.kind {
                CopyKind::Binary => {
                    data.bytes.extend_from_slice(&(columns.len() as i16).to_be_bytes());
                    columns.iter().try_for_each(|column| column.binary(row, &mut data.bytes))?;
                }
                _ => {
                    for (at, column) in columns.iter().enumerate() {
                        if at > 0 {
                            data.bytes.push(self.format.delimiter);
                        }
                        self.value(column, at, row, &mut data.bytes);
                    }
                    data.bytes.push(b'\n');
                }
            }
            data.row_ends.push(data.bytes.len());
        }
        self.n_rows += batch.num_rows() as u64;
        Ok(())
    }

    /// Appends what ends the copy.
    pub fn finish(&mut self, data: &mut CopyData) {
        self.begin(data);
        if self.format.kind == CopyKind::Binary {
            data.bytes.extend_from_slice(&(-1i16).to_be_bytes());
            data.row_ends.push(data.bytes.len());
        }
    }

    fn begin(&mut self, data: &mut CopyData) {
        if std::mem::replace(&mut self.has_begun, true) {
            return;
        }
        if self.format.kind == CopyKind::Binary {
            data.bytes.extend_from_slice(binary::SIGNATURE);
            data.bytes.extend_from_slice(&[0; 8]);
        } else if self.format.header == Header::Yes {
            for (at, field) in self.schema.fields().iter().enumerate() {
                if at > 0 {
                    data.bytes.push(self.format.delimiter);
                }
                match self.format.kind {
                    CopyKind::Csv => self.quoted(field.name(), false, &mut data.bytes),
                    _ => self.escaped(field.name(), &mut data.bytes),
                }
            }
            data.bytes.push(b'\n');
            data.row_ends.push(data.bytes.len());
        }
    }

    fn column<'a>(&self, array: &'a ArrayRef, at: usize) -> Result<Column<'a>, Error> {
        let writer = match self.format.kind {
            CopyKind::Binary => {
                let field = self.schema.field(at);
                Some(writer(array, PgType::of(field).oid, is_plain_numeric(field))?)
            }
            _ => None,
        };
        Ok(Column { array, printer: printer(array), writer })
    }

    fn value(&self, column: &Column<'_>, at: usize, row: usize, out: &mut Vec<u8>) {
        if is_null(column.array, row) {
            return out.extend_from_slice(self.format.null.as_bytes());
        }
        let mut text = String::new();
        match column.array.data_type() {
            DataType::Boolean => text.push(if column.array.as_boolean().value(row) { 't' } else { 'f' }),
            _ => (column.printer)(row, &mut text),
        }
        match self.format.kind {
            CopyKind::Csv => self.quoted(&text, self.format.force_quote.get(at).copied().unwrap_or(false), out),
            _ => self.escaped(&text, out),
        }
    }

    /// A value of text: what has a meaning there is escaped.
    fn escaped(&self, text: &str, out: &mut Vec<u8>) {
        for byte in text.bytes() {
            let letter = match byte {
                8 => b'b',
                12 => b'f',
                b'\n' => b'n',
                b'\r' => b'r',
                b'\t' => b't',
                11 => b'v',
                b'\\' => b'\\',
                other if other == self.format.delimiter => other,
                other => {
                    out.push(other);
                    continue;
                }
            };
            out.extend_from_slice(&[b'\\', letter]);
        }
    }

    /// A value of csv: in quotes where it must be.
    fn quoted(&self, text: &str, is_forced: bool, out: &mut Vec<u8>) {
        let CopyFormat { delimiter, quote, escape, .. } = self.format;
        let has_meaning = |byte: u8| byte == delimiter || byte == quote || byte == b'\n' || byte == b'\r';
        let is_alone = self.schema.fields().len() == 1;
        let needs =
            is_forced || text == self.format.null || text.bytes().any(has_meaning) || (is_alone && text == "\\.");
        if !needs {
            return out.extend_from_slice(text.as_bytes());
        }
        out.push(quote);
        for byte in text.bytes() {
            if byte == quote || byte == escape {
                out.push(escape);
            }
            out.push(byte);
        }
        out.push(quote);
    }
}

struct Column<'a> {
    array: &'a ArrayRef,
    printer: anabranch_sql::output::Printer<'a>,
    writer: Option<Writer<'a>>,
}

impl Column<'_> {
    /// The length of the value, then the value; -1 for NULL.
    fn binary(&self, row: usize, out: &mut Vec<u8>) -> Result<(), Error> {
        self.writer.as_ref().map_or(Ok(()), |writer| value(self.array, writer, row, out))
    }
}
