//! Where events come from: named inputs, and the forms in which rows are pushed into them.
//!
//! An input has a schema. Rows come as Arrow record batches, with a column that says when (and
//! perhaps one that says until when); as event objects; or as batches of the engine. Time is in
//! ticks: of a timestamp column its own unit, of an integer column itself.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use anabranch_batch::{Batch, Columns, Diffs, END, Time, Times, Until, numeric, types};
use anabranch_plan::temporal::Verb;
use anabranch_sql::input::convert;
use anabranch_sql::output::is_plain_numeric;
use arrow::array::{Array, ArrayRef, AsArray, RecordBatch};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Field, Int64Type};
use datafusion_common::ScalarValue;

use super::events::Events;
use super::expression::{END as END_NAME, START};
use super::query::{Frame, schema_of, temporal};
use super::relation::Timing;
use crate::error::Error;

impl Events {
    /// The query that yields the input's events as they are.
    pub fn frame(self) -> Frame {
        let checked = self.check().and_then(|()| self.check_arrival());
        let columns: Vec<(String, DataType)> =
            self.schema.fields().iter().map(|field| (field.name().clone(), planned_of(field))).collect();
        let known = checked.and_then(|()| Ok((schema_of(&columns)?, self.properties()?)));
        match known {
            Ok((schema, declared)) => {
                let mut plan = temporal(Verb::Events { input: self.name.clone(), declared }, vec![], schema.clone());
                if self.relation == Some(Timing::Commits) {
                    plan = temporal(Verb::OfChanges, vec![plan], schema);
                }
                Frame::new(plan, BTreeMap::from([(self.name.clone(), self)]), vec![])
            }
            Err(error) => Frame::failed(error),
        }
    }

    fn check(&self) -> Result<(), Error> {
        for column in self.time.iter().chain(&self.end) {
            let field = self.schema.field_with_name(column).map_err(|_| self.no_column(column))?;
            if !matches!(field.data_type(), DataType::Timestamp(..)) && !field.data_type().is_integer() {
                return Err(Error::invalid(format!(
                    "column \"{column}\" of input \"{}\" holds no times: it is of type {}",
                    self.name,
                    field.data_type()
                ))
                .with_hint("Times are timestamps or integers."));
            }
        }
        let is_integer = |column: &Option<String>| {
            let field = column.as_ref().and_then(|column| self.schema.field_with_name(column).ok());
            field.map(|field| field.data_type().is_integer())
        };
        if let (Some(time), Some(end)) = (is_integer(&self.time), is_integer(&self.end))
            && time != end
        {
            return Err(Error::invalid(format!(
                "of the time and the end of input \"{}\" one is a timestamp, the other an integer",
                self.name
            )));
        }
        if let Some(field) = self.schema.fields().iter().find(|field| field.name().starts_with('@')) {
            return Err(Error::invalid(format!("column name \"{}\" begins with @", field.name()))
                .with_detail(format!("{START} and {END_NAME} are the bounds of a row's lifetime.")));
        }
        Ok(())
    }

    pub(super) fn types(&self) -> Vec<DataType> {
        self.schema.fields().iter().map(|field| planned_of(field)).collect()
    }

    /// Columns in the form that the engine keeps, checked against the schema.
    pub(super) fn columns(&self, columns: &[ArrayRef]) -> Result<Columns, Error> {
        let types = self.types();
        if columns.len() != types.len() {
            return Err(Error::invalid(format!(
                "input \"{}\" has {} columns, but the rows have {}",
                self.name,
                types.len(),
                columns.len()
            )));
        }
        let fitted = columns.iter().zip(types).zip(self.schema.fields()).map(|((column, data_type), field)| {
            let misfit = |error: &dyn std::fmt::Display| {
                let text = format!("column \"{}\" of input \"{}\" does not fit: {error}", field.name(), self.name);
                Error::invalid(text)
            };
            if *column.data_type() == types::narrowed_type(&data_type) {
                return Ok(column.clone());
            }
            let column = match *column.data_type() == data_type {
                true => column.clone(),
                false if data_type == numeric::TYPE => {
                    convert(column, &numeric::TYPE).map_err(|error| misfit(&error))?
                }
                false => cast(column, &data_type).map_err(|error| misfit(&error))?,
            };
            types::narrowed(&column).map_err(|error| misfit(&error.detail()))
        });
        fitted.collect::<Result<Vec<_>, _>>().map(Columns::from)
    }

    /// The type of the time column, if that is a timestamp: ticks are of its unit.
    fn unit(&self) -> Option<&DataType> {
        let field = self.schema.field_with_name(self.time.as_ref()?).ok()?;
        matches!(field.data_type(), DataType::Timestamp(..)).then(|| field.data_type())
    }

    /// The ticks of a column, in the unit of the time column.
    fn ticks(&self, rows: &RecordBatch, column: &str) -> Result<ArrayRef, Error> {
        let missing = || Error::invalid(format!("the rows pushed into \"{}\" have no column \"{column}\"", self.name));
        let values = rows.column_by_name(column).ok_or_else(missing)?;
        let in_ticks = |values: &ArrayRef| match self.unit() {
            Some(unit) => cast(&cast(values, unit)?, &DataType::Int64),
            None => cast(values, &DataType::Int64),
        };
        in_ticks(values).map_err(|error| {
            Error::data(format!("column \"{column}\" of input \"{}\" holds no times: {error}", self.name))
        })
    }
}

/// The type that values of a field have in plans: texts may be said to be plain numerics.
fn planned_of(field: &Field) -> DataType {
    if is_plain_numeric(field) { numeric::TYPE } else { planned(field.data_type()) }
}

/// The type that values of a type have in plans.
pub(super) fn planned(data_type: &DataType) -> DataType {
    // (Bytes of frames are bytes: `LargeBinary` is plain `numeric` in SQL.)
    if *data_type == numeric::TYPE {
        return DataType::BinaryView;
    }
    types::to_planned(&arrow::array::new_empty_array(data_type))
        .map_or_else(|_| data_type.clone(), |column| column.data_type().clone())
}

/// Rows that can be pushed into an input.
pub trait IntoEvents {
    /// The rows as a batch of events.
    ///
    /// # Errors
    /// `Invalid` when columns do not fit the input's, `Data` when a row has no time or a lifetime
    /// that ends before it begins.
    fn into_events(self, input: &Events) -> Result<Batch, Error>;
}

impl IntoEvents for Batch {
    fn into_events(self, input: &Events) -> Result<Batch, Error> {
        let types = input.types().into_iter().map(|data_type| types::narrowed_type(&data_type));
        let fits = self.columns().iter().map(|column| column.data_type().clone()).eq(types);
        if fits || self.is_empty() {
            return Ok(self);
        }
        let columns = input.columns(self.columns())?;
        Ok(self.with_columns(columns))
    }
}

impl IntoEvents for RecordBatch {
    fn into_events(self, input: &Events) -> Result<Batch, Error> {
        let Some(time) = &input.time else {
            return Err(Error::invalid(format!("input \"{}\" does not say which column is the time", input.name))
                .with_hint("Describe it with .time_column(..), or push event objects."));
        };
        let starts = input.ticks(&self, time)?;
        if starts.null_count() > 0 {
            return Err(Error::data(format!("column \"{time}\" of input \"{}\" holds a NULL for a time", input.name)));
        }
        let times = Times::Column(starts.as_primitive::<Int64Type>().values().clone());
        let until = match &input.end {
            None => input.default_until(),
            Some(end) => {
                let ends = input.ticks(&self, end)?;
                let ends = ends.as_primitive::<Int64Type>();
                Until::Column(ends.iter().map(|end| end.unwrap_or(END)).collect())
            }
        };
        let columns = input.columns(self.columns())?;
        let batch = Batch::with_len(columns, self.num_rows(), times, Diffs::Constant(1)).with_until(until);
        check_lifetimes(&batch, input)?;
        Ok(batch)
    }
}

/// One event.
#[derive(Clone, Debug, PartialEq)]
pub struct Event {
    time: Time,
    until: Time,
    what: What,
    row: Vec<ScalarValue>,
}

/// What an event was said to be: its times must agree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum What {
    Row,
    EndEdge,
}

impl Event {
    /// A row from `start` on, until an end edge says otherwise.
    pub fn start(start: Time, row: impl IntoIterator<Item = ScalarValue>) -> Event {
        Event::new(start, END, What::Row, row)
    }

    /// The end, at `end`, of the row that began at `start`.
    pub fn end(end: Time, start: Time, row: impl IntoIterator<Item = ScalarValue>) -> Event {
        Event::new(end, start, What::EndEdge, row)
    }

    /// A row in force in `[start, end)`.
    pub fn interval(start: Time, end: Time, row: impl IntoIterator<Item = ScalarValue>) -> Event {
        Event::new(start, end, What::Row, row)
    }

    /// A row in force for one tick.
    pub fn point(time: Time, row: impl IntoIterator<Item = ScalarValue>) -> Event {
        Event::new(time, time.saturating_add(1), What::Row, row)
    }

    fn new(time: Time, until: Time, what: What, row: impl IntoIterator<Item = ScalarValue>) -> Event {
        Event { time, until, what, row: row.into_iter().collect() }
    }

    /// An error if the event ends before it begins.
    fn check(&self, input: &Events) -> Result<(), Error> {
        let (start, end) = match self.what {
            What::Row => (self.time, self.until),
            What::EndEdge => (self.until, self.time),
        };
        match (self.what, start.cmp(&end)) {
            (_, Ordering::Less) | (What::Row, Ordering::Equal) => Ok(()),
            _ => Err(backward_row(input, start, end)),
        }
    }
}

impl IntoEvents for Vec<Event> {
    fn into_events(self, input: &Events) -> Result<Batch, Error> {
        let types = input.types();
        if let Some(event) = self.iter().find(|event| event.row.len() != types.len()) {
            return Err(Error::invalid(format!(
                "input \"{}\" has {} columns, but the event at {} has {}",
                input.name,
                types.len(),
                event.time,
                event.row.len()
            )));
        }
        self.iter().try_for_each(|event| event.check(input))?;
        let column = |(at, data_type): (usize, &DataType)| {
            let wrong = |error: &dyn std::fmt::Display| {
                let name = input.schema.field(at).name();
                Error::invalid(format!("column \"{name}\" of input \"{}\" does not fit: {error}", input.name))
            };
            let values = self.iter().map(|event| event.row[at].cast_to(data_type));
            let values = values.collect::<Result<Vec<_>, _>>().map_err(|error| wrong(&error.strip_backtrace()))?;
            let column = match values.is_empty() {
                true => arrow::array::new_empty_array(data_type),
                false => ScalarValue::iter_to_array(values).map_err(|error| wrong(&error.strip_backtrace()))?,
            };
            types::narrowed(&column).map_err(|error| wrong(&error.detail()))
        };
        let columns = types.iter().enumerate().map(column).collect::<Result<Vec<ArrayRef>, Error>>()?;
        let times = Times::Column(self.iter().map(|event| event.time).collect());
        let until = Until::Column(self.iter().map(|event| event.until).collect());
        let columns = Columns::from(columns);
        Ok(Batch::with_len(columns, self.len(), times, Diffs::Constant(1)).with_until(until))
    }
}

/// Rows of a table do not end before they begin.
fn check_lifetimes(batch: &Batch, input: &Events) -> Result<(), Error> {
    let backward = (0..batch.len()).find(|&row| {
        let time = batch.times().get(row);
        batch.until().get(row, time) < time
    });
    match backward {
        None => Ok(()),
        Some(row) => {
            let time = batch.times().get(row);
            let until = batch.until().get(row, time);
            Err(backward_row(input, time, until).with_hint("Push end edges as event objects."))
        }
    }
}

fn backward_row(input: &Events, start: Time, end: Time) -> Error {
    Error::data(format!("a row of input \"{}\" begins at {start} and ends at {end}", input.name))
}
