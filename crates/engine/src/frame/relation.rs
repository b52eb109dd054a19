//! Relations of a session as inputs of frames: each row is an event.
//!
//! ```text
//!     by a column    a row begins at the time that its column says; the watermark says how far time is
//!     by commits     a row is in force from the commit that brings it to the one that takes it
//! ```
//!
//! Law: the events of a relation are a function of its commits alone. A row without a time is no
//! event. Cost: by a column, a pass over the rows that come; by commits, the state of
//! [`OfChanges`](anabranch_plan::temporal::Verb::OfChanges).

use anabranch_batch::{Batch, Diffs, END, Time, Times, Until, numeric};
use anabranch_operators::temporal::ticks::{Event, FIRST, event};
use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, Int64Array, UInt64Array};
use arrow::compute::{cast, is_not_null, take};
use arrow::datatypes::{DataType, Field, Int64Type, Schema, SchemaRef, TimeUnit};

use super::events::Events;
use super::query::Frame;
use crate::error::Error;

/// What the times of a relation's rows are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Timing {
    /// Values of the input's time column.
    Column,
    /// Times of commits.
    Commits,
}

impl Events {
    /// Rows of a relation with these columns.
    ///
    /// # Errors
    /// `Invalid` for columns that frames do not have.
    pub(crate) fn of_relation(relation: &str, schema: &SchemaRef, timing: Timing) -> Result<Events, Error> {
        if let Some(field) = schema.fields().iter().find(|field| *field.data_type() == numeric::TYPE) {
            return Err(Error::invalid(format!(
                "column \"{}\" of \"{relation}\" is numeric without a scale, which frames do not have",
                field.name()
            ))
            .with_hint("Declare the column as numeric(p, s), or as double precision."));
        }
        let mut events = Events::input(relation, schema.clone());
        events.relation = Some(timing);
        Ok(events)
    }

    /// What the times of rows are, if they are those of a relation of the session.
    pub(crate) fn timing(&self) -> Option<Timing> {
        self.relation
    }

    /// The type of the column that times come from, or of commits' times.
    fn time_type(&self) -> DataType {
        match (self.relation, &self.time) {
            (Some(Timing::Commits), _) => DataType::Timestamp(TimeUnit::Microsecond, None),
            (_, Some(time)) => self.schema.field_with_name(time).map_or(DataType::Int64, |at| at.data_type().clone()),
            _ => DataType::Int64,
        }
    }

    /// Rows of the relation as events, or as changes by commits.
    ///
    /// # Errors
    /// `Data` for rows whose times lie outside of time or that end before they begin.
    pub(crate) fn of_rows(&self, rows: Batch) -> Result<Batch, Error> {
        let rows = rows.compact().without_key();
        match &self.time {
            Some(time) if self.relation == Some(Timing::Column) => self.by_column(expanded(rows), time),
            _ => Ok(rows),
        }
    }

    fn by_column(&self, rows: Batch, time: &str) -> Result<Batch, Error> {
        let ticks = |rows: &Batch, name: &str| {
            let at = self.schema.index_of(name).map_err(|_| self.no_column(name))?;
            cast(rows.column(at), &DataType::Int64)
                .map_err(|error| Error::data(format!("column \"{name}\" of \"{}\" holds no times: {error}", self.name)))
        };
        let starts = ticks(&rows, time)?;
        let timed = is_not_null(&starts).unwrap_or_else(|_| BooleanArray::from(vec![true; starts.len()]));
        let rows = if starts.null_count() == 0 { rows } else { rows.filter(&timed).compact() };
        let starts = ticks(&rows, time)?;
        let starts = starts.as_primitive::<Int64Type>().values().clone();
        let until = match &self.end {
            None => self.default_until(),
            Some(end) => {
                let ends = ticks(&rows, end)?;
                Until::Column(ends.as_primitive::<Int64Type>().iter().map(|end| end.unwrap_or(END)).collect())
            }
        };
        let is_outside = |start: &&Time| **start < FIRST || **start == END;
        if let Some(start) = starts.iter().find(is_outside) {
            return Err(Error::data(format!("a row of \"{}\" at {start} lies outside of time", self.name)));
        }
        if let Until::Column(ends) = &until
            && let Some((start, end)) = starts.iter().zip(ends.iter()).find(|(start, end)| start >= end)
        {
            return Err(Error::data(format!("a row of \"{}\" begins at {start} and ends at {end}", self.name)));
        }
        Ok(rows.with_diffs(Diffs::Constant(1)).with_times(Times::Column(starts)).with_until(until))
    }
}

impl Frame {
    /// The columns of a relation that holds all events: when each begins and ends, then the
    /// frame's.
    ///
    /// # Errors
    /// The first error of building the frame; `Invalid` when a column is called start or end.
    pub(crate) fn schema_with_lifetimes(&self) -> Result<SchemaRef, Error> {
        let (schema, state) = (self.schema()?, self.state()?);
        if let Some(field) = schema.fields().iter().find(|field| ["start", "end"].contains(&field.name().as_str())) {
            return Err(Error::invalid(format!("a column is named \"{}\", as the times of events are", field.name()))
                .with_hint("Give it another name with .alias(..)."));
        }
        let times = state.inputs.values().next().map_or(DataType::Int64, Events::time_type);
        let times = if matches!(times, DataType::Timestamp(..)) { times } else { DataType::Int64 };
        let bounds = [Field::new("start", times.clone(), false), Field::new("end", times, true)];
        let bounds = bounds.into_iter().map(Into::into);
        Ok(Schema::new(bounds.chain(schema.fields().iter().cloned()).collect::<Vec<_>>()).into())
    }
}

/// Changes of the relation that holds all events, by events that came out: an event that begins
/// without an end has the end NULL, until its end is known. `times` is the type of start and end.
///
/// # Errors
/// `Internal` when ticks are no times.
pub(super) fn with_lifetimes(batch: &Batch, times: &DataType) -> Result<Batch, Error> {
    let (mut rows, mut diffs) = (Vec::new(), Vec::new());
    let (mut starts, mut ends): (Vec<Time>, Vec<Option<Time>>) = (Vec::new(), Vec::new());
    let mut change = |row: usize, start: Time, end: Time, diff: i64| {
        rows.push(row as u32);
        starts.push(start);
        ends.push(Some(end).filter(|end| *end != END));
        diffs.push(diff);
    };
    for row in 0..batch.len() {
        let diff = batch.diffs().get(row);
        match event(batch, row) {
            Event::Start { start, end } => change(row, start, end, diff),
            Event::End { start, end } => {
                change(row, start, END, -diff);
                change(row, start, end, diff);
            }
            Event::Nothing => {}
        }
    }
    let of_type = |ticks: Int64Array| {
        cast(&ticks, times).map_err(|error| Error::internal(format!("ticks are no times of type {times}: {error}")))
    };
    let bounds: [ArrayRef; 2] = [of_type(starts.into())?, of_type(ends.into())?];
    let taken = batch.take(&rows);
    let columns: Vec<ArrayRef> = bounds.into_iter().chain(taken.columns().iter().cloned()).collect();
    Ok(Batch::with_len(columns.into(), rows.len(), Times::Constant(0), Diffs::Column(diffs.into())))
}

/// Each row as often as it was added.
fn expanded(rows: Batch) -> Batch {
    if matches!(rows.diffs(), Diffs::Constant(1)) {
        return rows;
    }
    let often = |row: usize| std::iter::repeat_n(row as u64, usize::try_from(rows.diffs().get(row)).unwrap_or(0));
    let places: UInt64Array = (0..rows.len()).flat_map(often).collect::<Vec<u64>>().into();
    let columns: Vec<_> = rows
        .columns()
        .iter()
        .map(|column| take(column, &places, None).expect("the places are those of rows"))
        .collect();
    Batch::with_len(columns.into(), places.len(), Times::Constant(0), Diffs::Constant(1))
}
