//! Rows that no frame to come reaches.
//!
//! Law: no row with an order value below a bound comes or goes. So the results of a row below it
//! stay, but of those that reach ahead to rows that may come: the last ones below the bound, by the
//! frames' steps ahead. Results to come reach back from there by the frames' steps back, and as far
//! as the values that frames begin from, which are not below the bound either. Rows before that
//! leave.
//!
//! Rows that are left at the beginning of a partition lack rows of their frames: what is computed
//! for them is wrong, the same before and after each change, and so is never put out. What leaves
//! goes at a time before all that are asked for from then on.
//!
//! Cost: a look through all rows, when as many have come as half of them: O(1) a row.

use std::ops::ControlFlow;

use anabranch_arrangement::ticks;
use anabranch_batch::{Batch, Diff, Diffs, Times, gather};
use anabranch_spec::window::FrameReach;
use arrow::array::{Array, Int64Array};

use crate::ordered::trace::{OrderedTrace, Place, only_used};

/// How many rows there are, and which leave.
#[derive(Debug, Default)]
pub(super) struct AgedRows {
    /// Changes that came since the last look.
    n_new: usize,
    /// Rows that the last look left there.
    n_kept: usize,
    /// Rows that leave, as retractions that the trace has not taken in.
    leaving: Option<Batch>,
}

/// A row of a partition below the bound: where it lies, how often it is there, and its value.
type Below = (Place, Diff, i64);

impl AgedRows {
    /// The changes with the rows that leave.
    pub(super) fn with_leaving(&mut self, changes: Batch, partition: &[usize]) -> Batch {
        self.n_new += changes.len();
        let Some(leaving) = self.leaving.take() else { return changes };
        match Batch::concat(&[leaving, changes.clone()]) {
            Some(both) => both.with_key(partition),
            None => changes,
        }
    }

    /// Finds the rows that leave, if it is time to look: those with a value of `column` below
    /// `below` that no frame reaches. Returns whether there are some.
    pub(super) fn look(&mut self, trace: &OrderedTrace, reach: &FrameReach, column: usize, below: i64) -> bool {
        if self.leaving.is_some() || self.n_new == 0 || 2 * self.n_new < self.n_kept {
            return false;
        }
        let keys = trace.keys();
        let mut walk = trace.walk();
        let values: Vec<Int64Array> = walk.column(column).iter().map(ticks).collect();
        let (mut places, mut diffs, mut n_rows) = (Vec::new(), Vec::new(), 0);
        let mut rows: Vec<Below> = Vec::new();
        for key in 0..keys.len() {
            rows.clear();
            walk.group(&keys, key, &[trace.upto().saturating_sub(1)], |place, counts| {
                n_rows += 1;
                let (values, row) = (&values[place.0 as usize], place.1 as usize);
                if values.is_valid(row) && values.value(row) < below {
                    rows.push((place, counts[0], values.value(row)));
                }
                ControlFlow::Continue(())
            });
            let (settled, _) = rows.split_at(n_unreached(&rows, reach));
            places.extend(settled.iter().map(|(place, ..)| *place));
            diffs.extend(settled.iter().map(|(_, count, _)| -count));
        }
        (self.n_new, self.n_kept) = (0, n_rows - places.len());
        if places.is_empty() {
            return false;
        }
        let (sources, places) = (walk.sources(), places);
        let (sources, places) = only_used(&sources, places);
        let columns = gather::interleave(&sources, &places);
        // (What is asked for from now on is as of the last complete time or later.)
        let times = Times::Constant(trace.upto().saturating_sub(1));
        self.leaving = Some(Batch::with_len(columns, places.len(), times, Diffs::Column(diffs.into())));
        true
    }

    pub(super) fn size_bytes(&self) -> usize {
        self.leaving.as_ref().map_or(0, Batch::size_bytes)
    }
}

/// How many of the rows below the bound, in order, are reached by no frame that is still to be
/// computed.
fn n_unreached(rows: &[Below], reach: &FrameReach) -> usize {
    let undecided = before(rows, rows.len(), reach.ahead_rows, reach.ahead_groups);
    // (The first undecided row may have peers before it. A row that comes has none here.)
    let n_own = usize::from(reach.has_groups && undecided < rows.len());
    before(rows, undecided, reach.back_rows, reach.back_groups + n_own)
}

/// The first of so many rows before a place, or of so many groups of peers, whichever is further.
/// (Peers have one value, and groups with different other order columns are more than values.)
fn before(rows: &[Below], place: usize, n_rows: usize, n_groups: usize) -> usize {
    let by_rows = place.saturating_sub(n_rows);
    let mut by_groups = place;
    for _ in 0..n_groups {
        let Some((.., value)) = by_groups.checked_sub(1).map(|last| rows[last]) else { break };
        while by_groups > 0 && rows[by_groups - 1].2 == value {
            by_groups -= 1;
        }
    }
    by_rows.min(by_groups)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_frames_reach_stays() {
        let rows: Vec<Below> = [1, 2, 2, 2, 5, 5, 7].into_iter().map(|value| ((0, value as u32), 1, value)).collect();
        let n_unreached = |back_rows, back_groups, ahead_rows, ahead_groups| {
            let has_groups = back_groups > 0 || ahead_groups > 0;
            let reach = FrameReach { back_rows, back_groups, ahead_rows, ahead_groups, has_groups, from: vec![] };
            n_unreached(&rows, &reach)
        };
        assert_eq!(n_unreached(0, 0, 0, 0), 7);
        assert_eq!((n_unreached(2, 0, 0, 0), n_unreached(9, 0, 0, 0)), (5, 0));
        assert_eq!((n_unreached(0, 2, 0, 0), n_unreached(0, 3, 0, 0), n_unreached(1, 2, 0, 0)), (4, 1, 4));
        // The last three rows may change: what they reach stays as well.
        assert_eq!((n_unreached(1, 0, 3, 0), n_unreached(0, 1, 3, 0), n_unreached(0, 0, 0, 2)), (3, 0, 1));
        // The peers of a row that may change stay, too.
        let of_peers = FrameReach { ahead_rows: 4, has_groups: true, ..FrameReach::default() };
        assert_eq!(super::n_unreached(&rows, &of_peers), 1);
    }
}
