//! Lifetimes computed from rows: a column holds each event's new start, duration or end.
//!
//! ```text
//!     duration x, from starts:     in   (x: 2) [3, 9)    (x: 0) [4, 5)    (x: 1) [7, ∞)    (x: 1) ends at 9 (began at 7)
//!                                  out  (x: 2) [3, 5)                     (x: 1) [7, 8)
//! ```
//!
//! Law: with [`LifetimeEnds::Dropped`] the new duration is a function of what is known when an
//! event begins: end edges are left out, and a duration that is not positive removes the event.
//! With [`LifetimeEnds::Kept`] intervals are changed so, start edges stay open, and an end edge
//! ends its event at the new end that its own row says; an event that would so end before its end
//! edge came is a row error, because that end is in the past, and so is one that would not end
//! after its start, which is out already. A new start may lie `back` ticks before the old one, by
//! which the frontier is held back. A new start further back, or NULL, is a row error: results lie
//! at no time that is past. NULL counts as "never ends" for a duration. State: none. Source: Trill
//! `AlterEventDuration(function)`, `AlterEventLifetime`.

use anabranch_batch::{Batch, END, Time, Times, Until};
use arrow::array::{Array, AsArray};
use arrow::datatypes::Int64Type;

use anabranch_spec::lifetime::LifetimeEnds;

use super::ticks::{Event, FIRST, add, event};
use crate::stateless::filter_project::error_rows;
use anabranch_flow::tactic::Output;

/// Which columns hold what.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Lifetime {
    /// Column of new starts, 64-bit; `None` keeps the start.
    pub start: Option<usize>,
    /// Column of durations, 64-bit; NULL for ever. `None` keeps the duration.
    pub duration: Option<usize>,
    /// What becomes of end edges.
    pub ends: LifetimeEnds,
    /// How many ticks a new start may lie before the old one.
    pub back: i64,
    /// Columns that go on; the others were computed for this verb.
    pub n_columns: usize,
}

impl Lifetime {
    /// Gives events their new lifetimes.
    pub fn apply(&self, batch: Batch, out: &mut Output) {
        let (mut rows, mut times, mut untils) = (Vec::new(), Vec::new(), Vec::new());
        for row in 0..batch.len() {
            let Some((time, until)) = self.alter(&batch, row, out) else { continue };
            rows.push(row as u32);
            times.push(time);
            untils.push(until);
        }
        let kept: Vec<usize> = (0..self.n_columns).collect();
        let batch = if rows.len() == batch.len() { batch } else { batch.take(&rows) };
        let batch = batch.with_times(Times::Column(times.into()).simplify()).with_until(Until::Column(untils.into()));
        out.give_rows(batch.project(&kept));
    }

    /// The new time and other time of a row; `None` when it is gone.
    fn alter(&self, batch: &Batch, row: usize, out: &mut Output) -> Option<(Time, Time)> {
        let (start, end) = match event(batch, row) {
            Event::Start { start, end } => (start, end),
            Event::End { .. } if self.ends == LifetimeEnds::Dropped => return None,
            Event::End { start, end } => {
                // (Of an event whose start is in error, the error was given with the start.)
                let new_start = self.start_of(batch, row, start).filter(|new_start| self.reaches(start, *new_start))?;
                if !(FIRST..END).contains(&new_start) {
                    return None;
                }
                let new_end = self.end_of(batch, row, start, end, new_start);
                let fault = match new_end {
                    _ if !self.reaches(end, new_end) => "in the past",
                    // (The start edge is out already: an event that is nothing cannot be taken
                    // back.)
                    _ if new_end <= new_start => "not after its start",
                    END => return None,
                    _ => return Some((new_end, new_start)),
                };
                let message = format!("an event that ends at {end} was given an end {fault}, {new_end}");
                out.give_errors(error_rows(&batch.slice(row, 1), &message));
                return None;
            }
            Event::Nothing => return None,
        };
        let Some(new_start) = self.start_of(batch, row, start).filter(|new_start| self.reaches(start, *new_start))
        else {
            let message = match self.start_of(batch, row, start) {
                Some(new_start) => format!("an event that begins at {start} was given an earlier start, {new_start}"),
                None => format!("an event that begins at {start} was given no start, but NULL"),
            };
            out.give_errors(error_rows(&batch.slice(row, 1), &message));
            return None;
        };
        if !(FIRST..END).contains(&new_start) {
            return None;
        }
        if end == END && self.ends == LifetimeEnds::Kept {
            return Some((new_start, END));
        }
        let new_end = self.end_of(batch, row, start, end, new_start);
        (new_end > new_start).then_some((new_start, new_end))
    }

    /// Whether the frontier is held back far enough that something at `time` may move to `moved`.
    fn reaches(&self, time: Time, moved: Time) -> bool {
        moved >= time.saturating_sub(self.back)
    }

    /// The new start; `None` if that is NULL.
    fn start_of(&self, batch: &Batch, row: usize, start: Time) -> Option<Time> {
        let Some(column) = self.start else { return Some(start) };
        let starts = batch.column(column).as_primitive::<Int64Type>();
        starts.is_valid(row).then(|| starts.value(row))
    }

    fn end_of(&self, batch: &Batch, row: usize, start: Time, end: Time, new_start: Time) -> Time {
        match self.duration {
            Some(column) => {
                let durations = batch.column(column).as_primitive::<Int64Type>();
                if durations.is_null(row) { END } else { add(new_start, durations.value(row)) }
            }
            None if end == END => END,
            None => add(new_start, end.saturating_sub(start)),
        }
    }
}
