//! Events moved in time as they are.
//!
//! ```text
//!     shift 5:   in    a [3, 7)     b [4, ∞)     b ends at 9 (began at 4)
//!                out   a [8, 12)    b [9, ∞)     b ends at 14 (began at 9)
//! ```
//!
//! Law: start and end move by the same ticks; an event that would begin at or after the end of time
//! is gone, one that would begin before the beginning begins there. State: none. A shift back holds
//! the frontier back. Source: Trill `ShiftEventLifetime`.

use anabranch_batch::{Batch, END, Until};

use super::ticks::{add, map_times, starts_only};
use anabranch_flow::tactic::Output;

/// Moves events by `ticks`.
pub fn apply(batch: Batch, ticks: i64, out: &mut Output) {
    let times = map_times(batch.times(), |time| add(time, ticks));
    let until = match batch.until() {
        Until::Column(untils) => Until::Column(untils.iter().map(|&until| add(until, ticks)).collect()),
        constant => constant.clone(),
    };
    let beyond = ticks > 0 && times.max() == END;
    let batch = batch.with_times(times).with_until(until);
    if !beyond {
        return out.give_rows(batch);
    }
    let legal: Vec<u32> = (0..batch.len() as u32).filter(|&row| batch.times().get(row as usize) < END).collect();
    out.give_rows(starts_only(batch.take(&legal)));
}
