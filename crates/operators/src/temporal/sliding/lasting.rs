//! Events of a known duration, and those that lie too near the ends of time to have it.
//!
//! Law: windows and durations stop at the ends of 64-bit time, so an event there may be shorter or
//! longer than the plan says. Such an event is a row error; all others are as the plan says.

use anabranch_batch::{Batch, END, Time, Until};

use crate::stateless::filter_project::error_rows;

/// The events that last `duration`, and the errors of the others.
pub(super) fn split(batch: Batch, duration: Time) -> (Batch, Vec<Batch>) {
    let is_known = match batch.until() {
        Until::Duration(ticks) => *ticks == duration,
        Until::Forever => duration == END,
        Until::Column(_) => false,
    };
    let lasts = |row: usize| {
        let time = batch.times().get(row);
        let end = if duration == END { END } else { time.saturating_add(duration) };
        batch.until().get(row, time) == end
    };
    if is_known || (0..batch.len()).all(lasts) {
        return (batch, vec![]);
    }
    let (right, wrong): (Vec<u32>, Vec<u32>) = (0..batch.len() as u32).partition(|&row| lasts(row as usize));
    let error = |row: u32| {
        let (row, time) = (row as usize, batch.times().get(row as usize));
        let message = format!("an event at {time} lies too near the ends of time to last {duration} ticks");
        error_rows(&batch.slice(row, 1), &message)
    };
    let errors = wrong.into_iter().map(error).collect();
    (batch.take(&right), errors)
}
