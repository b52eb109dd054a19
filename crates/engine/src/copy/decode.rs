//! Bytes to rows.
//!
//! Law: the rows do not depend on how the bytes are cut. State: the bytes of the row that is not
//! complete yet, and one block of rows. Cost: one pass over the bytes, and one copy of each value.

use anabranch_sql::input::convert;
use arrow::array::{Array, ArrayRef, AsArray, RecordBatch, StringViewBuilder};
use arrow::datatypes::{Field, Schema};
use std::sync::Arc;

use super::binary;
use super::line_ends::{LineEnds, StrayEnd};
use super::options::{CopyFormat, CopyKind, Header, RowPolicy};
use super::values::{LineValue, csv_values, text_values};
use crate::error::Error;

/// Rows of a block, at most, but for the last bytes.
const BLOCK_ROWS: usize = 4096;

/// Bytes of a row, at most: a client that sends no end of a row is stopped.
const ROW_BYTES_MAX: usize = 1 << 30;

/// The hint where a first line cannot be read that looks like a header.
const HEADER_HINT: &str = "If the first line names the columns, pass over it: WITH (FORMAT csv, HEADER).";

/// Reads rows of a table.
pub(crate) struct Decoder {
    /// The table, and the file where there are several: told in the places of errors.
    table: String,
    fields: Vec<Field>,
    format: CopyFormat,
    /// What was not read yet.
    bytes: Vec<u8>,
    line_ends: LineEnds,
    /// The line that the next row begins at, from 1; in the binary format its number.
    line: u64,
    /// Whether the first line, or the signature, was read.
    has_begun: bool,
    has_ended: bool,
    columns: Vec<StringViewBuilder>,
    lines: Vec<u64>,
    first_line: FirstLine,
    left_out: LeftOut,
}

/// What the first line of csv is, where the statement says of no header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FirstLine {
    Row,
    /// A row that may be meant as a header.
    LikeHeader,
    /// A row whose values are the names of the columns.
    Names,
}

/// Rows that could not be read, and were left out.
#[derive(Clone, Debug, Default)]
struct LeftOut {
    n_rows: u64,
    /// What was wrong with the first.
    first: Option<String>,
}

/// Rows as they were written.
pub(crate) struct Block {
    columns: Vec<ArrayRef>,
    lines: Vec<u64>,
}

impl Decoder {
    pub fn new(table: &str, fields: &[Field], format: CopyFormat) -> Decoder {
        Decoder {
            table: table.to_owned(),
            fields: fields.to_vec(),
            columns: fields.iter().map(|_| StringViewBuilder::new()).collect(),
            format,
            bytes: vec![],
            line_ends: LineEnds::default(),
            line: 1,
            has_begun: false,
            has_ended: false,
            lines: vec![],
            first_line: FirstLine::Row,
            left_out: LeftOut::default(),
        }
    }

    /// The same reader, at the begin of another file.
    pub fn anew(&self, place: &str) -> Decoder {
        Decoder { left_out: self.left_out.clone(), ..Decoder::new(place, &self.fields, self.format.clone()) }
    }

    /// What else is worth knowing of the rows that were read.
    pub fn note(&self) -> Option<String> {
        match (&self.left_out, self.first_line) {
            (LeftOut { n_rows, first: Some(first) }, _) => {
                Some(format!("{n_rows} rows were skipped; the first: {first}"))
            }
            (_, FirstLine::Names) => Some(
                "The first line, which names the columns, was copied as a row: WITH (FORMAT csv, HEADER) passes over it."
                    .to_owned(),
            ),
            _ => None,
        }
    }

    /// Takes bytes; gives the blocks that are full.
    ///
    /// # Errors
    /// `Data` for what is no row, with its line.
    pub fn push(&mut self, bytes: &[u8]) -> Result<Vec<Block>, Error> {
        let mut blocks = Vec::new();
        if self.has_ended {
            return Ok(blocks);
        }
        self.bytes.extend_from_slice(bytes);
        let all = std::mem::take(&mut self.bytes);
        let mut from = 0;
        while !self.has_ended {
            let read = match self.format.kind {
                CopyKind::Binary => self.read_tuple(&all[from..])?,
                _ => self.read_line(&all[from..])?,
            };
            let Some(read) = read else { break };
            from += read;
            if self.lines.len() >= BLOCK_ROWS {
                blocks.push(self.block());
            }
        }
        // (A row of many pieces is not copied once a piece.)
        self.bytes = match from {
            0 => all,
            _ => all[from..].to_vec(),
        };
        if self.bytes.len() > ROW_BYTES_MAX {
            return Err(self.bad("a row is longer than 1 GB", None).with_sqlstate("54000"));
        }
        Ok(blocks)
    }

    /// The bytes have ended: gives the last rows.
    ///
    /// # Errors
    /// As [`push`](Self::push); `Data` when the bytes end within a row.
    pub fn finish(&mut self) -> Result<Option<Block>, Error> {
        let rest = std::mem::take(&mut self.bytes);
        if !self.has_ended && !rest.is_empty() {
            if self.format.kind == CopyKind::Binary {
                return Err(self.bad("unexpected EOF in COPY data", None));
            }
            if self.line_ends.is_quoted() {
                let error = self.bad("unterminated CSV quoted field", Some(&rest));
                self.leave_out(error)?;
                return Ok((!self.lines.is_empty()).then(|| self.block()));
            }
            let last = self.line_ends.last(&rest, &self.format).map_err(|stray| self.stray(stray))?;
            self.take_line(&rest[..last.length])?;
        }
        Ok((!self.lines.is_empty()).then(|| self.block()))
    }

    fn block(&mut self) -> Block {
        let columns = self.columns.iter_mut().map(|column| Arc::new(column.finish()) as ArrayRef).collect();
        Block { columns, lines: std::mem::take(&mut self.lines) }
    }

    /// Reads one line, if there is a whole one; tells how many bytes that is.
    fn read_line(&mut self, bytes: &[u8]) -> Result<Option<usize>, Error> {
        let found = self.line_ends.next(bytes, &self.format).map_err(|stray| self.stray(stray))?;
        let Some(line) = found else { return Ok(None) };
        self.take_line(&bytes[..line.length])?;
        Ok(Some(line.with_end))
    }

    fn stray(&self, end: StrayEnd) -> Error {
        self.bad(end.message, None).with_hint(end.hint)
    }

    fn take_line(&mut self, line: &[u8]) -> Result<(), Error> {
        let n_lines = self.line_ends.n_lines(line);
        if line == b"\\." {
            self.has_ended = true;
            return Ok(());
        }
        let values = match self.format.kind {
            CopyKind::Csv => csv_values(line, &self.format, self.fields.len()),
            _ => text_values(line, &self.format, self.fields.len()),
        };
        if !self.has_begun {
            self.has_begun = true;
            if self.format.header != Header::No {
                self.check_header(&values)?;
                self.line += n_lines;
                return Ok(());
            }
            if self.format.kind == CopyKind::Csv {
                self.first_line = first_line(&values, &self.fields);
            }
        }
        match self.add_row(line, &values) {
            Ok(()) => self.lines.push(self.line),
            Err(error) => self.leave_out(error)?,
        }
        self.line += n_lines;
        Ok(())
    }

    fn add_row(&mut self, line: &[u8], values: &[LineValue<'_>]) -> Result<(), Error> {
        if let Some(missing) = self.fields.get(values.len()) {
            return Err(self.bad(&format!("missing data for column \"{}\"", missing.name()), Some(line)));
        }
        if values.len() > self.fields.len() {
            return Err(self.bad("extra data after last expected column", Some(line)));
        }
        // A row is added whole or not at all: columns have no values of a row that is left out.
        if self.format.on_error == RowPolicy::Skip {
            values.iter().flatten().try_for_each(|value| self.text_of(value).map(|_| ()))?;
        }
        values.iter().enumerate().try_for_each(|(at, value)| self.add(at, value.as_deref()))
    }

    /// Counts a row that cannot be read, unless the COPY ends with it.
    fn leave_out(&mut self, error: Error) -> Result<(), Error> {
        if self.format.on_error == RowPolicy::Stop {
            return Err(self.with_header_hint(error));
        }
        self.left_out.n_rows += 1;
        self.left_out.first.get_or_insert_with(|| match error.context() {
            Some(place) => format!("{place}: {}", error.message),
            None => error.message.clone(),
        });
        Ok(())
    }

    fn with_header_hint(&self, error: Error) -> Error {
        match self.first_line != FirstLine::Row && self.line == 1 {
            true => error.with_hint(HEADER_HINT),
            false => error,
        }
    }

    /// The rows of a block with values of the columns' types, and the block without those that were
    /// left out.
    ///
    /// # Errors
    /// As [`Block::typed`], unless rows that cannot be read are left out.
    pub fn typed(&mut self, block: Block) -> Result<(Block, RecordBatch), Error> {
        match block.typed(&self.table, &self.fields) {
            Ok(batch) => Ok((block, batch)),
            Err(error) if self.format.on_error == RowPolicy::Stop => {
                let is_first =
                    block.lines.first() == Some(&1) && block.misfit_of(&self.table, &self.fields, 0).is_some();
                Err(match is_first && self.first_line != FirstLine::Row {
                    true => error.with_hint(HEADER_HINT),
                    false => error,
                })
            }
            Err(_) => {
                let mut kept: Vec<u32> = Vec::new();
                for row in 0..block.lines.len() {
                    match block.misfit_of(&self.table, &self.fields, row) {
                        Some(error) => self.leave_out(error)?,
                        None => kept.push(row as u32),
                    }
                }
                let block = Block {
                    columns: anabranch_batch::gather::take(&block.columns, &kept).to_vec(),
                    lines: kept.iter().map(|row| block.lines[*row as usize]).collect(),
                };
                let batch = block.typed(&self.table, &self.fields)?;
                Ok((block, batch))
            }
        }
    }

    fn add(&mut self, at: usize, value: Option<&[u8]>) -> Result<(), Error> {
        let Some(value) = value else {
            self.columns[at].append_null();
            return Ok(());
        };
        let text = self.text_of(value)?;
        self.columns[at].append_value(text);
        Ok(())
    }

    fn text_of<'v>(&self, value: &'v [u8]) -> Result<&'v str, Error> {
        match std::str::from_utf8(value) {
            Ok(text) if !value.contains(&0) => Ok(text),
            problem => {
                let byte = problem.err().and_then(|error| value.get(error.valid_up_to()).copied()).unwrap_or(0);
                let message = format!("invalid byte sequence for encoding \"UTF8\": 0x{byte:02x}");
                Err(self.bad(&message, None).with_sqlstate("22021"))
            }
        }
    }

    fn check_header(&self, values: &[LineValue<'_>]) -> Result<(), Error> {
        if self.format.header != Header::Match {
            return Ok(());
        }
        if values.len() != self.fields.len() {
            let message =
                format!("wrong number of fields in header line: got {}, expected {}", values.len(), self.fields.len());
            return Err(self.bad(&message, None));
        }
        for (at, (value, field)) in values.iter().zip(&self.fields).enumerate() {
            let got = value.as_deref().map(String::from_utf8_lossy).unwrap_or_default();
            if got != field.name().as_str() {
                let message = format!(
                    "column name mismatch in header line field {}: got \"{got}\", expected \"{}\"",
                    at + 1,
                    field.name()
                );
                return Err(self.bad(&message, None));
            }
        }
        Ok(())
    }

    /// Reads one tuple of the binary format, if there is a whole one; tells how many bytes that is.
    fn read_tuple(&mut self, bytes: &[u8]) -> Result<Option<usize>, Error> {
        if !self.has_begun {
            let Some(head) = bytes.get(..19) else { return Ok(None) };
            if &head[..11] != binary::SIGNATURE {
                return Err(self.bad("COPY file signature not recognized", None));
            }
            let extension = u32::from_be_bytes([head[15], head[16], head[17], head[18]]) as usize;
            if bytes.len() < 19 + extension {
                return Ok(None);
            }
            self.has_begun = true;
            return Ok(Some(19 + extension));
        }
        let Some(count) = bytes.get(..2) else { return Ok(None) };
        let count = i16::from_be_bytes([count[0], count[1]]);
        if count == -1 {
            self.has_ended = true;
            return Ok(Some(2));
        }
        if usize::try_from(count) != Ok(self.fields.len()) {
            let message = format!("row field count is {count}, expected {}", self.fields.len());
            return Err(self.bad(&message, None));
        }
        let mut at = 2;
        let mut values: Vec<Option<&[u8]>> = Vec::with_capacity(self.fields.len());
        for _ in 0..count {
            let Some(length) = bytes.get(at..at + 4) else { return Ok(None) };
            let length = i32::from_be_bytes([length[0], length[1], length[2], length[3]]);
            at += 4;
            if length == -1 {
                values.push(None);
                continue;
            }
            let length = usize::try_from(length).map_err(|_| self.bad("invalid field size", None))?;
            let Some(value) = bytes.get(at..at + length) else { return Ok(None) };
            values.push(Some(value));
            at += length;
        }
        for (column, value) in values.into_iter().enumerate() {
            let text = match value {
                Some(value) => Some(binary::text_of(value, &self.fields[column]).ok_or_else(|| {
                    let place =
                        format!("COPY {}, line {}, column {}", self.table, self.line, self.fields[column].name());
                    Error::data("incorrect binary data format").with_sqlstate("22P03").with_context(place)
                })?),
                None => None,
            };
            self.add(column, text.as_deref())?;
        }
        self.lines.push(self.line);
        self.line += 1;
        Ok(Some(at))
    }

    fn bad(&self, message: &str, line: Option<&[u8]>) -> Error {
        let place = format!("COPY {}, line {}", self.table, self.line);
        let place = match line {
            Some(line) => format!("{place}: \"{}\"", String::from_utf8_lossy(line)),
            None => place,
        };
        Error::data(message).with_sqlstate("22P04").with_context(place)
    }
}

impl Block {
    /// The rows with values of the columns' types.
    ///
    /// # Errors
    /// `Data` for the first value that does not fit, with its line and column.
    pub fn typed(&self, table: &str, fields: &[Field]) -> Result<RecordBatch, Error> {
        let columns: Result<Vec<ArrayRef>, String> =
            self.columns.iter().zip(fields).map(|(column, field)| convert(column, field.data_type())).collect();
        let columns = columns.map_err(|problem| self.misfit(table, fields, problem))?;
        let fields: Vec<Field> = fields
            .iter()
            .zip(&columns)
            .map(|(field, column)| field.clone().with_data_type(column.data_type().clone()).with_nullable(true))
            .collect();
        Ok(RecordBatch::try_new(Arc::new(Schema::new(fields)), columns)?)
    }

    /// The first value that does not fit.
    fn misfit(&self, table: &str, fields: &[Field], problem: String) -> Error {
        let first = (0..self.lines.len()).find_map(|row| self.misfit_of(table, fields, row));
        first.unwrap_or_else(|| Error::data(problem).with_context(format!("COPY {table}")))
    }

    /// The error of the first value of a row that does not fit.
    fn misfit_of(&self, table: &str, fields: &[Field], row: usize) -> Option<Error> {
        self.columns.iter().zip(fields).find_map(|(column, field)| {
            let problem = convert(&column.slice(row, 1), field.data_type()).err()?;
            let value = column.as_string_view().value(row);
            let place = format!("COPY {table}, line {}, column {}: \"{value}\"", self.lines[row], field.name());
            Some(Error::data(problem).with_context(place))
        })
    }

    /// The line of each row.
    pub fn lines(&self) -> &[u64] {
        &self.lines
    }

    /// The place of a row.
    pub fn place(&self, table: &str, row: usize) -> String {
        format!("COPY {table}, line {}", self.lines.get(row).copied().unwrap_or_default())
    }
}

/// What the values of a first line may be meant as. A name begins with a letter.
fn first_line(values: &[LineValue<'_>], fields: &[Field]) -> FirstLine {
    let is_name = |value: &LineValue<'_>| {
        value.as_deref().and_then(|value| value.first()).is_some_and(|byte| byte.is_ascii_alphabetic() || *byte == b'_')
    };
    let is_named = |(value, field): (&LineValue<'_>, &Field)| {
        value.as_deref().is_some_and(|value| value.eq_ignore_ascii_case(field.name().as_bytes()))
    };
    if values.len() == fields.len() && values.iter().zip(fields).all(is_named) {
        return FirstLine::Names;
    }
    match values.iter().all(is_name) {
        true => FirstLine::LikeHeader,
        false => FirstLine::Row,
    }
}
