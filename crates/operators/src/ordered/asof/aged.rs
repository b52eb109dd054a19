//! Right rows that no left row will look up any more.
//!
//! Law: no left row below the floor of both times is looked up again, and no right row comes below
//! that floor. Of the right rows of a key below the floor, those of the last instant can still be
//! nearest; each earlier one lies behind a row that is nearer. Backward joins only.
//!
//! Cost: a look through all right rows, when as many have come as half of them: O(1) a row.

use std::ops::ControlFlow;

use anabranch_arrangement::{Keys, ticks};
use anabranch_batch::order::Nulls;
use anabranch_batch::{Batch, Columns, Diff, Diffs, Times, gather};
use arrow::array::{ArrayRef, Int64Array};

use super::spec::AsofSpec;
use crate::ordered::trace::{OrderedTrace, Place, only_used};

/// How many right rows there are, and when to look through them.
#[derive(Debug, Default)]
pub(super) struct Aged {
    /// Rows that came since the last look.
    n_new: usize,
    /// Rows that the last look left there.
    n_kept: usize,
    /// Rows that leave, as retractions that the trace has not taken in.
    leaving: Option<Batch>,
}

impl Aged {
    /// Takes note of right rows that come.
    pub fn note(&mut self, n_rows: usize) {
        self.n_new += n_rows;
    }

    /// The right rows that come with those that leave.
    pub fn with_leaving(&mut self, right: Option<Batch>, spec: &AsofSpec) -> Option<Batch> {
        let Some(leaving) = self.leaving.take() else { return right };
        let all: Vec<Batch> = right.into_iter().chain([leaving]).collect();
        Batch::concat(&all).map(|batch| batch.with_key(&spec.join.right_key))
    }

    /// Finds the rows that leave, if it is time to look.
    pub fn look(&mut self, right: &OrderedTrace, spec: &AsofSpec, below: i64) {
        if self.leaving.is_some() || self.n_new == 0 || 2 * self.n_new < self.n_kept {
            return;
        }
        let keys = keys_of(right, spec);
        let mut walk = right.walk();
        let times: Vec<Int64Array> = walk.column(spec.join.right_time).iter().map(ticks).collect();
        let tick = |(chunk, row): Place| times[chunk as usize].value(row as usize);
        let (mut places, mut diffs): (Vec<Place>, Vec<Diff>) = (vec![], vec![]);
        for key in 0..keys.len() {
            let mut last = None;
            // (The latest rows come first.)
            walk.group(&keys, key, &[right.upto() - 1], |place, counts| {
                let at = tick(place);
                if at < below && *last.get_or_insert(at) > at {
                    places.push(place);
                    diffs.push(-counts[0]);
                }
                ControlFlow::Continue(())
            });
        }
        (self.n_new, self.n_kept) = (0, (self.n_kept + self.n_new).saturating_sub(places.len()));
        if places.is_empty() {
            return;
        }
        let sources = walk.sources();
        let (sources, places) = only_used(&sources, places);
        let columns = gather::interleave(&sources, &places);
        // (The time is the first that the trace has not taken in. No row asks for one before.)
        let times = Times::Constant(right.upto());
        self.leaving = Some(Batch::with_len(columns, places.len(), times, Diffs::Column(diffs.into())));
    }

    pub fn size_bytes(&self) -> usize {
        self.leaving.as_ref().map_or(0, Batch::size_bytes)
    }
}

/// The keys of all right rows.
fn keys_of(right: &OrderedTrace, spec: &AsofSpec) -> Keys {
    let walk = right.walk();
    let rows = walk.sources();
    let keyed = |columns: &&[ArrayRef]| spec.join.right_key.iter().map(|column| columns[*column].clone()).collect();
    let chunks: Vec<Vec<ArrayRef>> = rows.iter().map(keyed).collect();
    let chunks: Vec<&[ArrayRef]> = chunks.iter().map(|columns| &**columns).collect();
    let columns: Columns = if chunks.is_empty() { Columns::default() } else { gather::concat(&chunks) };
    let n_rows = rows.iter().map(|columns| columns[spec.join.right_time].len()).sum();
    let all: Vec<usize> = (0..columns.len()).collect();
    let batch = Batch::with_len(columns.clone(), n_rows, Times::Constant(0), Diffs::Constant(1)).with_key(&all);
    let hashes = batch.key().map(|key| key.hashes.to_vec()).unwrap_or_default();
    Keys::from_columns(&columns, &hashes, Nulls::Equal).0
}
