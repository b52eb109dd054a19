//! Rows whose times are complete, and how they are cut.
//!
//! Law: a portion holds rows of whole groups or of whole times, in order, or a part of a sum that
//! may come in any pieces. So what the portions put out together is what all rows at once would.
//!
//! Cost: one pass over the rows; a portion is what stays in the cache while it is worked on.

use anabranch_arrangement::MergeEffort;
use anabranch_batch::{Batch, Time};
use anabranch_flow::account::midway;
use anabranch_flow::pending::cut_in_time;
use anabranch_flow::tactic::Output;

use super::calls::CallState;
use super::portions::{is_one_large_time, portions};
use super::{Aggregate, Rows};

/// Rows of many times that are worked on together: what they put out, twice as many rows of
/// results, is passed on while it is in the cache.
const PORTION_ROWS: usize = 1 << 12;

/// So many rows of a time that is not complete are taken in before it is, if they are
const FOLDED_ROWS_MIN: usize = 1 << 16;
/// so many for each group there is: what they put out is then little beside them.
const FOLDED_PER_GROUP: usize = 8;

/// Fewer rows are not worth a look at the memory before their keys are made.
const HELD_ROWS_MIN: usize = 1 << 20;

/// A portion of the complete rows.
pub(super) struct Complete {
    /// Not empty. Keyed by the groups' keys, unless there are few groups.
    pub parts: Vec<Batch>,
    /// A time after the last.
    pub upto: Time,
    /// With the first portion: all rows up to that time, which some calls take in one piece.
    pub whole: Option<Batch>,
    /// Portions behind this one that have about as many rows, and groups of their own.
    pub behind: usize,
}

/// How many rows of a time are taken in before it is complete, in all and for each group. (What is
/// eager does at once what can be done.)
pub(super) fn folded(effort: MergeEffort) -> (usize, usize) {
    match effort {
        MergeEffort::EAGER => (1, 0),
        _ => (FOLDED_ROWS_MIN, FOLDED_PER_GROUP),
    }
}

impl Aggregate {
    /// Takes in the rows of a time that is not complete, where they are many.
    pub(super) fn fold_at(&mut self, time: Time, out: &mut Output) {
        let Some((rows_min, per_group)) = self.folded else { return };
        if self.rows == Rows::Elsewhere || !self.complete.is_empty() {
            return;
        }
        let n_rows = self.pending.rows_at(time);
        if n_rows >= rows_min.max(per_group * self.groups.len()) {
            self.hold_keys(n_rows);
            let key: Vec<usize> = (0..self.n_keys).collect();
            let has_few = self.has_few_groups();
            let parts = self.pending.take_at(time).into_iter();
            let parts = parts.map(|batch| if has_few { batch } else { batch.with_key(&key) }).collect();
            self.step(Complete { parts, upto: time.saturating_add(1), whole: None, behind: 0 }, out);
        }
    }

    /// The keys of so many rows are about to be made: `memory_limit` looks before, where they are
    /// many.
    fn hold_keys(&self, n_rows: usize) {
        if n_rows >= HELD_ROWS_MIN {
            midway::holds(self.pending.size_bytes() + n_rows * size_of::<u64>());
        }
    }

    /// Takes what has become complete, in portions.
    pub(super) fn complete_before(&mut self, upto: Time) {
        self.hold_keys(self.pending.n_rows());
        let ready = self.pending.take_ready(upto);
        let key: Vec<usize> = (0..self.n_keys).collect();
        // (Ordered calls take the values of a time in one piece.)
        let has_few = self.has_few_groups();
        let is_in_portions = self.rows == Rows::Grouped && !has_few && !self.calls.iter().any(CallState::is_ordered);
        let takes_rows = self.calls.iter().any(CallState::takes_rows);
        if is_in_portions && !takes_rows && is_one_large_time(&ready) {
            let portions = portions(ready, &key, self.groups.len());
            let behind = (0..portions.len()).rev();
            let portions = portions.into_iter().zip(behind);
            return self.complete.extend(portions.map(|(parts, behind)| Complete { parts, upto, whole: None, behind }));
        }
        if has_few && is_one_large_time(&ready) {
            // (Sums may come in any pieces.)
            let pieces = ready.iter().flat_map(|batch| {
                let starts = (0..batch.len()).step_by(FOLDED_ROWS_MIN);
                starts.map(|start| batch.slice(start, FOLDED_ROWS_MIN.min(batch.len() - start)))
            });
            return self.complete.extend(pieces.map(|piece| Complete {
                parts: vec![piece],
                upto,
                whole: None,
                behind: 0,
            }));
        }
        let mut complete = cut_in_time(&ready, upto, PORTION_ROWS);
        if complete.is_empty() {
            complete.extend(self.first_row_due(upto).map(|_| (self.no_rows(), upto)));
        }
        for (batch, upto) in complete {
            let batch = if has_few { batch } else { batch.with_key(&key) };
            let portions = match is_in_portions {
                true => portions(vec![batch.clone()], &key, self.groups.len()),
                false => vec![vec![batch.clone()]],
            };
            let mut whole = Some(batch);
            let portions = portions.into_iter();
            self.complete.extend(portions.map(|parts| Complete { parts, upto, whole: whole.take(), behind: 0 }));
        }
    }
}
