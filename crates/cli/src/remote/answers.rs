//! Rows of a server as the printers take them.
//!
//! Law: an answer looks as it does from a session of this process. Values come as text. Whole and
//! floating numbers, booleans and lists of them are read; other numbers stay texts that are told to
//! be numbers; all else is shown as its text.

use std::sync::Arc;

use anabranch_engine::{Error, Rows};
use anabranch_sql::input;
use anabranch_sql::pg_types::{data_type, oid};
use arrow::array::{Array, ArrayRef, AsArray, RecordBatch, StringViewBuilder};
use arrow::datatypes::{DataType, Field, Int64Type, Schema, SchemaRef};
use fallible_iterator::FallibleIterator;
use postgres_protocol::message::backend::{DataRowBody, RowDescriptionBody};

use crate::output::text_field;

/// Rows that have come and were not given on.
pub(super) struct Answer {
    pub schema: SchemaRef,
    /// What the texts of each column are read as.
    read_as: Vec<DataType>,
    columns: Vec<StringViewBuilder>,
    n_rows: usize,
    batches: Vec<RecordBatch>,
    pub notices: Vec<String>,
}

/// Rows of one batch.
const BATCH_ROWS: usize = 1 << 13;

/// A change of a subscription, or how far it has come.
pub(super) enum Told {
    Changes(RecordBatch),
    Complete(i64),
}

impl Answer {
    pub(super) fn new(description: &RowDescriptionBody) -> Result<Answer, Error> {
        let (mut fields, mut read_as) = (vec![], vec![]);
        let mut told = description.fields();
        while let Some(field) = told.next().map_err(|error| malformed(&error.to_string()))? {
            let of = field.type_oid();
            let read = read_type(of);
            fields.push(match read {
                DataType::Utf8View => text_field(field.name(), of == oid::NUMERIC),
                _ => Field::new(field.name(), read.clone(), true),
            });
            read_as.push(read);
        }
        let columns = read_as.iter().map(|_| StringViewBuilder::new()).collect();
        Ok(Answer {
            schema: Arc::new(Schema::new(fields)),
            read_as,
            columns,
            n_rows: 0,
            batches: vec![],
            notices: vec![],
        })
    }

    pub(super) fn push(&mut self, row: &DataRowBody) -> Result<(), Error> {
        let mut ranges = row.ranges();
        for column in &mut self.columns {
            let range = ranges.next().map_err(|error| malformed(&error.to_string()))?.flatten();
            let bytes = range.map(|range| &row.buffer()[range]);
            let text = bytes.map(std::str::from_utf8).transpose().map_err(|error| malformed(&error.to_string()))?;
            column.append_option(text);
        }
        self.n_rows += 1;
        if self.n_rows >= BATCH_ROWS { self.close_batch() } else { Ok(()) }
    }

    fn close_batch(&mut self) -> Result<(), Error> {
        if self.n_rows == 0 {
            return Ok(());
        }
        let columns: Result<Vec<ArrayRef>, Error> = self
            .columns
            .iter_mut()
            .zip(&self.read_as)
            .map(|(column, of)| {
                let texts: ArrayRef = Arc::new(column.finish());
                match of {
                    DataType::Utf8View => Ok(texts),
                    of => input::convert(&texts, of).map_err(|problem| malformed(&problem)),
                }
            })
            .collect();
        self.n_rows = 0;
        self.batches.push(RecordBatch::try_new(Arc::clone(&self.schema), columns?)?);
        Ok(())
    }

    /// All rows that have come.
    pub(super) fn rows(mut self) -> Result<Rows, Error> {
        self.close_batch()?;
        Ok(Rows::received(self.schema, self.batches, self.notices))
    }

    /// Where progress stands among the columns of changes.
    fn progress_column(&self) -> Option<usize> {
        self.schema.fields().get(1).filter(|field| field.name() == "progressed").map(|_| 1)
    }

    /// The columns of changes as a subscription of this process has them: without that of progress.
    pub(super) fn changes_schema(&self) -> SchemaRef {
        let Some(progress) = self.progress_column() else { return Arc::clone(&self.schema) };
        let fields = self.schema.fields().iter().enumerate().filter(|(at, _)| *at != progress);
        Arc::new(Schema::new(fields.map(|(_, field)| Arc::clone(field)).collect::<Vec<_>>()))
    }

    /// What has come of a subscription, in order.
    pub(super) fn take_told(&mut self) -> Result<Vec<Told>, Error> {
        self.close_batch()?;
        let batches = std::mem::take(&mut self.batches);
        let Some(progress) = self.progress_column() else {
            return Ok(batches.into_iter().map(Told::Changes).collect());
        };
        let mut told = vec![];
        for batch in &batches {
            tell_apart(batch, progress, &self.changes_schema(), &mut told)?;
        }
        Ok(told)
    }
}

/// Rows that tell progress, and the changes between them.
fn tell_apart(batch: &RecordBatch, progress: usize, schema: &SchemaRef, told: &mut Vec<Told>) -> Result<(), Error> {
    let is_progress = batch.column(progress).as_boolean().clone();
    let times = batch.column(0).as_primitive::<Int64Type>();
    let mut from = 0;
    for row in 0..=batch.num_rows() {
        let tells = row < batch.num_rows() && is_progress.is_valid(row) && is_progress.value(row);
        if (tells || row == batch.num_rows()) && from < row {
            let mut columns = batch.slice(from, row - from).columns().to_vec();
            columns.remove(progress);
            told.push(Told::Changes(RecordBatch::try_new(Arc::clone(schema), columns)?));
        }
        if tells {
            told.push(Told::Complete(times.value(row)));
        }
        if tells {
            from = row + 1;
        }
    }
    Ok(())
}

/// What texts of a type are read as; those that are kept are texts.
fn read_type(of: u32) -> DataType {
    let is_read =
        |of: &DataType| of.is_integer() || matches!(of, DataType::Boolean | DataType::Float32 | DataType::Float64);
    match data_type(of) {
        Some(DataType::List(element)) if is_read(element.data_type()) || *element.data_type() == DataType::Utf8View => {
            DataType::List(element)
        }
        Some(read) if is_read(&read) => read,
        _ => DataType::Utf8View,
    }
}

fn malformed(problem: &str) -> Error {
    Error::unavailable(format!("the server's answer cannot be read: {problem}"))
}
