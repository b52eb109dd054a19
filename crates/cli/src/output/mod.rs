//! Answers as text: tables for people, CSV, JSON and Markdown for programs and pages.
//!
//! Law: within a format a value always looks the same, whatever the width of its neighbours;
//! numbers lose no digits. An answer's batches are written one after the other without being
//! joined, so output of any length needs the memory of one batch (tables look at all values first,
//! for the widths).

mod csv;
mod json;
mod markdown;
mod plain;
mod records;
mod table;
mod text;

use std::io::{self, Write};

pub(crate) use text::{shortened, width};

use std::sync::Arc;

use anabranch_batch::numeric;
use anabranch_engine::Rows;
use anabranch_sql::output::{is_null, printers, shown_schema};
use arrow::{
    array::RecordBatch,
    datatypes::{DataType, Field, Schema},
};
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
    /// Values alone, with tabs between them; NULL is empty
    Plain,
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
            Format::Plain => "plain",
        }
    }
}

/// How tables are laid out. Of other formats CSV has names or none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Layout {
    /// Rows shown at most.
    pub rows_max: usize,
    /// Places of a line; `None` leaves lines as wide as they are.
    pub width: Option<usize>,
    /// Whether each row is a block of lines, one a column.
    pub expanded: bool,
    /// Whether rows that are wider than the screen are shown as blocks.
    pub expands_wide: bool,
    /// Whether the names of columns are written, in tables and CSV.
    pub has_names: bool,
    /// How NULL is shown in tables.
    pub null: Arc<str>,
}

/// How NULL is shown, unless told.
const NULL: &str = "NULL";

impl Default for Layout {
    fn default() -> Layout {
        Layout {
            rows_max: usize::MAX,
            width: None,
            expanded: false,
            expands_wide: false,
            has_names: true,
            null: NULL.into(),
        }
    }
}

/// Writes an answer.
pub(crate) fn write_rows(out: &mut dyn Write, format: Format, rows: &Rows, layout: &Layout) -> io::Result<()> {
    match format {
        Format::Table if layout.expanded => records::write(out, rows, layout),
        Format::Table => table::write(out, rows, layout),
        Format::Csv => {
            if layout.has_names {
                csv::write_header(out, &rows.schema)?;
            }
            rows.batches.iter().try_for_each(|batch| csv::write_batch(out, batch))
        }
        Format::Json => json::write_array(out, &rows.batches),
        Format::Jsonl => rows.batches.iter().try_for_each(|batch| json::write_lines(out, batch)),
        Format::Markdown => markdown::write(out, rows),
        Format::Plain => rows.batches.iter().try_for_each(|batch| plain::write_batch(out, batch)),
    }
}

/// A column of texts, which are numbers to the printers if they are told to be.
pub(crate) fn text_field(name: &str, is_number: bool) -> Field {
    let of = if is_number { numeric::TYPE } else { DataType::Utf8View };
    let schema = shown_schema(&Arc::new(Schema::new(vec![Field::new(name, of, true)])));
    schema.field(0).clone()
}

/// The cells of an answer as text; `None` is NULL.
pub(crate) fn texts(rows: &Rows) -> Vec<Vec<Option<String>>> {
    let mut texts = vec![];
    for batch in &rows.batches {
        let printers = printers(batch.columns());
        for row in 0..batch.num_rows() {
            let cells = printers.iter().map(|(column, print)| {
                (!is_null(column, row)).then(|| {
                    let mut text = String::new();
                    print(row, &mut text);
                    text
                })
            });
            texts.push(cells.collect());
        }
    }
    texts
}

/// The lines of a table without its count, and how many columns they show.
pub(crate) fn table_lines(rows: &Rows, layout: &Layout) -> (Vec<String>, usize) {
    let mut text = Vec::new();
    let columns = table::write_body(&mut text, rows, layout).expect("writing to memory cannot fail");
    (String::from_utf8_lossy(&text).lines().map(str::to_string).collect(), columns)
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
            Format::Plain => plain::write_batch(out, batch),
        }
    }
}
