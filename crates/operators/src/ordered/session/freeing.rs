//! Sessions that no row to come will join, and their rows.
//!
//! Law: no row below a bound of the time comes or goes. A session that has ended further than the
//! gap before it stays as it is. Rows below all sessions that are left leave by a floor of the
//! trace; where an old session goes on for long, those of others leave as retractions.
//!
//! Cost: a look at all partitions, when as many rows have come as half of them; one at all rows,
//! when sessions that are left have less than a quarter of them.

use std::ops::ControlFlow;

use anabranch_arrangement::{Floor, ticks};
use anabranch_batch::{Batch, Diff, Diffs, Times, gather};
use anabranch_spec::session::SessionWindows;
use arrow::array::Int64Array;

use super::known::KnownSessions;
use crate::ordered::trace::{OrderedTrace, Place, only_used};

/// Fewer rows are not looked through.
const LOOK_ROWS_MIN: usize = 1 << 12;

/// When to look, and what leaves.
#[derive(Debug, Default)]
pub(super) struct Freeing {
    /// Rows that came since the last look at partitions.
    n_new: usize,
    /// Rows that the last look at them left.
    n_left: usize,
    /// Rows that leave, as retractions that the trace has not taken in.
    leaving: Option<Batch>,
}

impl Freeing {
    /// Takes note of rows that come.
    pub fn note(&mut self, n_rows: usize) {
        self.n_new += n_rows;
    }

    /// The rows with those that leave.
    pub fn with_leaving(&mut self, rows: Batch, key: &[usize]) -> Batch {
        match self.leaving.take() {
            None => rows,
            Some(leaving) => Batch::concat(&[rows, leaving]).map(|all| all.with_key(key)).unwrap_or_default(),
        }
    }

    /// Lets go of what changes from a bound of the time on will not concern.
    pub fn look(&mut self, trace: &mut OrderedTrace, known: &mut KnownSessions, windows: &SessionWindows, below: i64) {
        if self.n_new == 0 || 2 * self.n_new < known.n_partitions() {
            return;
        }
        self.n_new = 0;
        let ended = i64::try_from(i128::from(below) - i128::from(windows.gap)).unwrap_or(i64::MIN);
        let first = known.forget_before(ended);
        trace.set_floor(Floor { column: windows.time, below: first.map_or(ended, |first| first.min(ended)) });
        let n_rows = trace.n_rows();
        if self.leaving.is_none() && n_rows >= LOOK_ROWS_MIN.max(2 * self.n_left) && n_rows > 4 * known.n_rows() {
            self.leaving = rows_without_session(trace, known, windows, ended);
            self.n_left = n_rows - self.leaving.as_ref().map_or(0, Batch::len);
        }
    }

    pub fn size_bytes(&self) -> usize {
        self.leaving.as_ref().map_or(0, Batch::size_bytes)
    }
}

/// The rows of sessions that have ended before a time, as retractions.
fn rows_without_session(
    trace: &OrderedTrace,
    known: &mut KnownSessions,
    windows: &SessionWindows,
    ended: i64,
) -> Option<Batch> {
    let keys = trace.keys();
    let slots = known.slots(&keys);
    let mut walk = trace.walk();
    let times: Vec<Int64Array> = walk.column(windows.time).iter().map(ticks).collect();
    let (mut places, mut diffs): (Vec<Place>, Vec<Diff>) = (vec![], vec![]);
    for (key, slot) in slots.iter().enumerate() {
        let sessions = known.of(*slot);
        walk.group(&keys, key, &[trace.upto().saturating_sub(1)], |place, counts| {
            let at = times[place.0 as usize].value(place.1 as usize);
            if at >= ended {
                return ControlFlow::Break(());
            }
            if sessions.at_or_before(at).is_none_or(|session| session.last < at) {
                places.push(place);
                diffs.push(-counts[0]);
            }
            ControlFlow::Continue(())
        });
    }
    known.forget_empty(slots);
    if places.is_empty() {
        return None;
    }
    let sources = walk.sources();
    let (sources, places) = only_used(&sources, places);
    let columns = gather::interleave(&sources, &places);
    // (The time is the first that the trace has not taken in. No row asks for one before.)
    Some(Batch::with_len(columns, places.len(), Times::Constant(trace.upto()), Diffs::Column(diffs.into())))
}
