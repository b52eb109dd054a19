//! The time of a table or source, as its rows tell it.
//!
//! Law: the watermark is the greatest time of any row so far, less a delay. A row before the
//! watermark of the rows before it is late; late rows are left out and counted. Rows of a source
//! come one after another, so what is left out does not depend on how they are cut into batches;
//! rows of one statement come at once, and none makes another late. A row without a time is never
//! late; a row at `infinity` is not late either, and one at `-infinity` is late once there is a
//! watermark; neither moves it. The watermark is also a row of a relation of its own, which the
//! session writes with the commit that moves it: what windows that are over are compared with.

use std::sync::Arc;

use anabranch_batch::{Batch, Diff, Diffs, Times};
use anabranch_sql::span::Span;
use anabranch_sql::sql_name;
use arrow::array::{Array, ArrayRef, AsArray, BooleanArray};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Field, Int64Type, Schema, SchemaRef, TimeUnit};

use crate::error::Error;

/// The relation that holds the time of the last commit, for conditions on `now()`.
pub(crate) const CLOCK: &str = "watermark of now()";

/// Before the name of a system relation: the input that subscriptions over it read.
pub(crate) const FOLLOWED: &str = "rows of ";

/// The column of [`CLOCK`].
pub(crate) fn clock_schema() -> SchemaRef {
    let data_type = DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into()));
    Arc::new(Schema::new(vec![Field::new("watermark", data_type, false)]))
}

/// Where time stands.
#[derive(Clone, Debug)]
pub(crate) struct Watermark {
    /// What was said.
    pub declared: anabranch_sql::statement::Watermark,
    /// Position of the column of times.
    pub column: usize,
    /// In units of the column.
    delay: i64,
    /// The greatest time so far.
    high: Option<i64>,
    /// The watermark that its relation holds.
    shown: Option<i64>,
    /// Rows left out.
    pub late: u64,
    /// The greatest time and the rows left out as they were recorded last.
    recorded: (Option<i64>, u64),
}

/// How the rows of a batch came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Arrival {
    /// One after another.
    InOrder,
    /// Together.
    AtOnce,
}

impl Watermark {
    /// Before all rows.
    ///
    /// # Errors
    /// `Invalid` when the column holds no times, or the delay is of another kind.
    pub fn new(declared: &anabranch_sql::statement::Watermark, schema: &SchemaRef) -> Result<Watermark, Error> {
        let name = &declared.column;
        let column = schema.index_of(name).map_err(|_| {
            let message = format!("column \"{name}\" named in the watermark does not exist");
            Error::invalid(message).with_sqlstate("42703")
        })?;
        let data_type = schema.field(column).data_type();
        let nanos_a_unit = match data_type {
            DataType::Timestamp(TimeUnit::Second, _) => Some(1_000_000_000),
            DataType::Timestamp(TimeUnit::Millisecond, _) => Some(1_000_000),
            DataType::Timestamp(TimeUnit::Microsecond, _) => Some(1_000),
            DataType::Timestamp(TimeUnit::Nanosecond, _) => Some(1),
            _ => None,
        };
        let delay = match (nanos_a_unit, &declared.delay) {
            (_, Span::Ticks(0)) if nanos_a_unit.is_some() || data_type.is_integer() => 0,
            (Some(unit), Span::Interval(nanos)) => nanos / unit,
            (None, Span::Ticks(ticks)) if data_type.is_integer() => *ticks,
            _ => {
                return Err(Error::invalid(format!("column \"{name}\" has no watermark like that"))
                    .with_detail(format!("It is of type {}, and the delay is {}.", sql_name(data_type), declared.delay))
                    .with_hint(
                        "Watermarks are for timestamps with an interval as delay, or for integers with a number.",
                    ));
            }
        };
        Ok(Watermark {
            declared: declared.clone(),
            column,
            delay,
            high: None,
            shown: None,
            late: 0,
            recorded: (None, 0),
        })
    }

    /// The rows that are not late. All have diffs of +1.
    pub fn admit(&mut self, batch: Batch, arrival: Arrival) -> Result<Batch, Error> {
        let times = cast(batch.column(self.column), &DataType::Int64)
            .map_err(|error| Error::internal(format!("times are integers: {error}")))?;
        let times = times.as_primitive::<Int64Type>();
        let before = self.current();
        // (The ends of time are no times that have come: they move nothing.)
        let is_moment = matches!(batch.column(self.column).data_type(), DataType::Timestamp(..));
        let is_endless = |time: i64| is_moment && (time == i64::MAX || time == i64::MIN);
        // (Mostly no row is late, which the least and the greatest time tell.)
        if let (Arrival::AtOnce, 0, Some((least, greatest))) = (arrival, times.null_count(), range(times.values()))
            && before.is_none_or(|before| least >= before)
            && !is_endless(least)
            && !is_endless(greatest)
        {
            self.high = self.high.max(Some(greatest));
            return Ok(batch);
        }
        let mut keep = Vec::with_capacity(times.len());
        for row in 0..times.len() {
            let is_timely = times.is_null(row) || {
                let time = times.value(row);
                let current = if arrival == Arrival::AtOnce { before } else { self.current() };
                let is_timely = current.is_none_or(|current| time >= current);
                if !is_endless(time) {
                    self.high = self.high.max(Some(time));
                }
                is_timely
            };
            keep.push(is_timely);
        }
        let n_late = keep.iter().filter(|keep| !**keep).count();
        self.late += n_late as u64;
        Ok(if n_late == 0 { batch } else { batch.filter(&BooleanArray::from(keep)) })
    }

    /// The name of the relation that holds the watermark of a table or source.
    pub fn relation_of(name: &str) -> String {
        format!("watermark of {name}")
    }

    /// The table or source whose watermark a relation holds.
    pub fn relation_held(name: &str) -> Option<&str> {
        name.strip_prefix("watermark of ")
    }

    /// Position of the time.
    pub fn column(&self) -> usize {
        self.column
    }

    /// The watermark that changes of the relation end with.
    pub fn value_after(changes: &Batch) -> Option<i64> {
        let values = cast(changes.column(0), &DataType::Int64).ok()?;
        let values = values.as_primitive::<Int64Type>();
        (0..changes.len()).find(|row| changes.diffs().get(*row) > 0).map(|row| values.value(row))
    }

    /// The columns of that relation: it has one row, or none before all rows.
    pub fn relation_schema(&self, schema: &SchemaRef) -> SchemaRef {
        let data_type = schema.field(self.column).data_type().clone();
        Arc::new(Schema::new(vec![Field::new("watermark", data_type, false)]))
    }

    /// What the relation's rows become, if the watermark has moved since the last call.
    pub fn changes(&mut self, schema: &SchemaRef) -> Option<Batch> {
        let current = self.current();
        if current == self.shown {
            return None;
        }
        let before = std::mem::replace(&mut self.shown, current);
        let updates: Vec<(i64, Diff)> =
            before.map(|value| (value, -1)).into_iter().chain(current.map(|value| (value, 1))).collect();
        let values = arrow::array::Int64Array::from_iter_values(updates.iter().map(|(value, _)| *value));
        let values = cast(&values, schema.field(self.column).data_type()).expect("times are integers");
        let diffs = Diffs::Column(updates.into_iter().map(|(_, diff)| diff).collect());
        Some(Batch::new(vec![values], Times::Constant(0), diffs))
    }

    /// Takes back the move that `changes` told last.
    pub fn unmark(&mut self, changes: &Batch) {
        let values = cast(changes.column(0), &DataType::Int64).expect("times are integers");
        let values = values.as_primitive::<Int64Type>();
        self.shown = (0..changes.len()).find(|row| changes.diffs().get(*row) < 0).map(|row| values.value(row));
    }

    /// The greatest time and the number of rows left out as they are kept, if they have changed
    /// since they were recorded.
    pub fn unrecorded(&self) -> Option<Vec<u8>> {
        let high = self.high.map_or("-".to_string(), |high| high.to_string());
        (self.recorded != (self.high, self.late)).then(|| format!("{high} {}", self.late).into_bytes())
    }

    /// Takes note that [`unrecorded`](Self::unrecorded) was recorded.
    pub fn note_recorded(&mut self) {
        self.recorded = (self.high, self.late);
    }

    /// Goes on where a watermark stood that was recorded; `None` when the record cannot be read.
    pub fn restore(&mut self, recorded: &[u8]) -> Option<()> {
        let (high, late) = std::str::from_utf8(recorded).ok()?.split_once(' ')?;
        self.high = if high == "-" { None } else { Some(high.parse().ok()?) };
        self.late = late.parse().ok()?;
        self.note_recorded();
        Some(())
    }

    /// The watermark as a value of its column, if there has been a row.
    pub fn value(&self, schema: &SchemaRef) -> Option<ArrayRef> {
        let value = arrow::array::Int64Array::from(vec![self.current()?]);
        cast(&value, schema.field(self.column).data_type()).ok()
    }

    /// The watermark, if there has been a row.
    pub fn current(&self) -> Option<i64> {
        self.high.map(|high| high.saturating_sub(self.delay))
    }
}

/// The least and the greatest of some times.
fn range(times: &[i64]) -> Option<(i64, i64)> {
    let first = *times.first()?;
    Some(times.iter().fold((first, first), |(least, greatest), &time| (least.min(time), greatest.max(time))))
}
