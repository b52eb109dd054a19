//! Groups as they are at each time of a turn, and the changes between results that hold for as
//! long.
//!
//! Law: for each touched group, versions follow each other without gaps from just before the turn's
//! first change on. A result of a version is added when the version comes and removed when the next
//! one comes; results that stay cancel out.

use std::ops::ControlFlow;

use anabranch_arrangement::Keys;
use anabranch_batch::consolidate::consolidate;
use anabranch_batch::order::Nulls;
use anabranch_batch::{Batch, Diff, Diffs, Time, Times, gather};
use arrow::array::ArrayRef;

use super::trace::{OrderedTrace, Place, only_used, touched_times};

/// The rows of a group during an interval.
pub(super) struct Version {
    /// Where they lie among all rows.
    pub(super) from: usize,
    pub(super) to: usize,
    /// When they came to be so; `None` if they were before.
    pub(super) added: Option<Time>,
    /// When they became others; `None` if they have not.
    pub(super) removed: Option<Time>,
}

/// Takes what came before `upto` into the trace, grouped by `key`. Returns the versions of the
/// groups that it touches, and of all their rows the columns `read`.
pub(super) fn absorb(
    trace: &mut OrderedTrace,
    batch: Batch,
    key: &[usize],
    read: &[usize],
    upto: Time,
) -> (Vec<Version>, Vec<ArrayRef>) {
    let batch = batch.with_key(key);
    let hashes = &batch.key().expect("the batch is keyed").hashes;
    let columns: Vec<ArrayRef> = key.iter().map(|&column| batch.column(column).clone()).collect();
    let (keys, of_row) = Keys::from_columns(&columns, hashes, Nulls::Equal);
    let times = touched_times(&of_row, batch.times());
    trace.absorb(batch, upto);
    versions(trace, &keys, &times, read)
}

fn versions(trace: &OrderedTrace, keys: &Keys, times: &[Vec<Time>], read: &[usize]) -> (Vec<Version>, Vec<ArrayRef>) {
    let mut walk = trace.walk();
    let (mut versions, mut places) = (Vec::new(), Vec::new());
    let (mut values, mut counts): (Vec<Place>, Vec<Diff>) = (Vec::new(), Vec::new());
    for (key, times) in times.iter().enumerate() {
        values.clear();
        counts.clear();
        walk.group(keys, key, times, |place, at| {
            values.push(place);
            counts.extend_from_slice(at);
            ControlFlow::Continue(())
        });
        let n = times.len();
        let is_same = |a: usize, b: usize| counts.chunks_exact(n).all(|counts| counts[a] == counts[b]);
        let mut at = 0;
        while at < n {
            let next = (at + 1..n).find(|next| !is_same(at, *next));
            let (added, removed) = ((at > 0).then(|| times[at]), next.map(|next| times[next]));
            if added.is_some() || removed.is_some() {
                let from = places.len();
                for (place, counts) in values.iter().zip(counts.chunks_exact(n)) {
                    places.extend(std::iter::repeat_n(*place, counts[at] as usize));
                }
                versions.push(Version { from, to: places.len(), added, removed });
            }
            at = next.unwrap_or(n);
        }
    }
    let columns: Vec<Vec<ArrayRef>> =
        walk.sources().iter().map(|source| read.iter().map(|column| source[*column].clone()).collect()).collect();
    let sources: Vec<&[ArrayRef]> = columns.iter().map(|columns| &**columns).collect();
    let (sources, places) = only_used(&sources, places);
    (versions, gather::interleave(&sources, &places).to_vec())
}

/// Output rows under construction.
#[derive(Default)]
pub(super) struct Updates {
    rows: Vec<u32>,
    times: Vec<Time>,
    diffs: Vec<Diff>,
}

impl Updates {
    /// A row of results is there as long as a version.
    pub(super) fn enter(&mut self, row: u32, version: &Version) {
        for (time, diff) in [(version.added, 1), (version.removed, -1)] {
            let Some(time) = time else { continue };
            self.rows.push(row);
            self.times.push(time);
            self.diffs.push(diff);
        }
    }

    /// The changes of the results.
    pub(super) fn finish(self, columns: &[ArrayRef]) -> Batch {
        let (times, diffs) = (Times::Column(self.times.into()).simplify(), Diffs::Column(self.diffs.into()).simplify());
        consolidate(Batch::with_len(gather::take(columns, &self.rows), self.rows.len(), times, diffs))
    }
}
