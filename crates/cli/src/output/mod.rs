//! Answers as text: tables for people, CSV, JSON and Markdown for programs and pages.
//!
//! Law: within a format a value always looks the same, whatever the width of its neighbours; numbers lose no digits. An
//! answer's batches are written one after the other without being joined, so output of any length needs the memory of one
//! batch (tables look at all values first, for the widths).

mod csv;
mod json;
mod markdown;
mod table;

use std::io::{self, Write};

use anabranch_engine::Rows;
use arrow::{array::RecordBatch, datatypes::Schema};
use clap::ValueEnum;

/// How answers are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// Aligned columns, as psql draws them
    #[default]
    Table,
    /// A header line, then one line a row (RFC 4180); NULL is empty, the empty text is ""
    Csv,
    /// One array of objects an answer
    Json,
    /// One object a line
    Jsonl,
    /// A Markdown table
    Markdown,
}

impl Format {
    /// The name users type.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Format::Table => "table",
            Format::Csv => "csv",
            Format::Json => "json",
            Format::Jsonl => "jsonl",
            Format::Markdown => "markdown",
        }
    }
}

/// Writes an answer. At most `rows_max` rows of a table are shown, with a note about the others.
pub(crate) fn write_rows(out: &mut dyn Write, format: Format, rows: &Rows, rows_max: usize) -> io::Result<()> {
    match format {
        Format::Table => table::write(out, rows, rows_max),
        Format::Csv => {
            csv::write_header(out, &rows.schema)?;
            rows.batches.iter().try_for_each(|batch| csv::write_batch(out, batch))
        }
        Format::Json => json::write_array(out, &rows.batches),
        Format::Jsonl => rows.batches.iter().try_for_each(|batch| json::write_lines(out, batch)),
        Format::Markdown => markdown::write(out, rows),
    }
}

/// Writes changes as they come: the header once, then each batch.
pub(crate) struct Stream {
    format: Format,
    /// Widths of a table's columns; they only grow.
    widths: Vec<usize>,
    started: bool,
}

impl Stream {
    pub(crate) fn new(format: Format) -> Stream {
        Stream { format, widths: Vec::new(), started: false }
    }

    /// The names of the columns, before the first change.
    pub(crate) fn start(&mut self, out: &mut dyn Write, schema: &Schema) -> io::Result<()> {
        match self.format {
            Format::Csv => csv::write_header(out, schema),
            _ => Ok(()),
        }
    }

    pub(crate) fn write(&mut self, out: &mut dyn Write, batch: &RecordBatch) -> io::Result<()> {
        let first = !std::mem::replace(&mut self.started, true);
        match self.format {
            Format::Table => table::write_part(out, batch, &mut self.widths, first),
            Format::Csv => csv::write_batch(out, batch),
            // An array would never close: lines it is.
            Format::Json | Format::Jsonl => json::write_lines(out, batch),
            Format::Markdown => markdown::write_part(out, batch, first),
        }
    }
}
