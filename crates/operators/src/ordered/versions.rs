//! Groups as they are at each time of a turn, and the changes between results that hold for as
//! long.
//!
//! Law: for each touched group, versions follow each other without gaps from just before the turn's
//! first change on. A result of a version is added when the version comes and removed when the next
//! one comes; results that stay cancel out.

use anabranch_arrangement::Keys;
use anabranch_batch::consolidate::consolidate;
use anabranch_batch::order::Nulls;
use anabranch_batch::{Batch, Diff, Diffs, Time, Times, gather};
use arrow::array::ArrayRef;

use super::trace::{OrderedTrace, Place, only_used};

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

/// Changes of groups.
pub(super) struct Touched {
    /// Keyed by the groups.
    pub batch: Batch,
    pub keys: Keys,
    /// The group of each row.
    pub of_row: Vec<u32>,
}

impl Touched {
    /// The groups of a batch, by these columns.
    pub(super) fn new(batch: Batch, key: &[usize]) -> Touched {
        let batch = batch.with_key(key);
        let hashes = &batch.key().expect("the batch is keyed").hashes;
        let columns: Vec<ArrayRef> = key.iter().map(|&column| batch.column(column).clone()).collect();
        let (keys, of_row) = Keys::from_columns(&columns, hashes, Nulls::Equal);
        Touched { batch, keys, of_row }
    }
}

/// Groups during a turn.
pub(super) struct Versions {
    pub versions: Vec<Version>,
    /// For each version its group, and a time at which it holds.
    pub groups: Vec<(usize, Time)>,
    /// Of all rows of all versions, the columns that are read.
    pub columns: Vec<ArrayRef>,
    /// Groups that had rows, have others now, and lack none.
    pub changed: Vec<Changed>,
}

/// A group that has changed.
pub(super) struct Changed {
    /// The number of its present version.
    pub version: usize,
    pub group: usize,
    /// Whether rows came behind its last and nothing else happened.
    pub has_grown: bool,
}

/// The rows of a group whose words are in a range.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stretch {
    pub group: usize,
    /// The first word; 0 for all from the beginning.
    pub from: u64,
    /// The first word behind, if there is one.
    pub until: Option<u64>,
}

/// The versions of groups at the times asked for, of which a group that is not asked for has none.
pub(super) fn versions(trace: &OrderedTrace, keys: &Keys, times: &[Vec<Time>], read: &[usize]) -> Versions {
    let groups = times.iter().enumerate().filter(|(_, times)| !times.is_empty());
    let whole = groups.map(|(group, times)| (Stretch { group, from: 0, until: None }, &**times));
    versions_of(trace, keys, whole, read)
}

/// The versions of stretches of groups at the times asked for.
pub(super) fn versions_of<'a>(
    trace: &OrderedTrace,
    keys: &Keys,
    stretches: impl Iterator<Item = (Stretch, &'a [Time])>,
    read: &[usize],
) -> Versions {
    let mut changed = Vec::new();
    let mut walk = trace.walk();
    let (mut versions, mut groups, mut places) = (Vec::new(), Vec::new(), Vec::new());
    let (mut values, mut counts): (Vec<Place>, Vec<Diff>) = (Vec::new(), Vec::new());
    for (Stretch { group: key, from, until }, times) in stretches {
        values.clear();
        counts.clear();
        walk.seek(keys, key, from);
        while let Some((place, at)) = walk.next(times) {
            counts.extend_from_slice(at);
            if until.is_some_and(|until| walk.word(place) >= until) {
                counts.truncate(values.len() * times.len());
                break;
            }
            values.push(place);
        }
        let (n, n_before) = (times.len(), versions.len());
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
                groups.push((key, times[at]));
            }
            at = next.unwrap_or(n);
        }
        let is_present = |version: &Version| version.added.is_some() && version.removed.is_none();
        // (What comes and goes at one time leaves a group without a version of this turn.)
        let had_rows = counts.chunks_exact(n).any(|counts| counts[0] > 0);
        if had_rows && versions[n_before..].last().is_some_and(is_present) && !walk.lacks_rows() {
            changed.push(Changed { version: versions.len() - 1, group: key, has_grown: has_grown(&counts, n) });
        }
    }
    let columns: Vec<Vec<ArrayRef>> =
        walk.sources().iter().map(|source| read.iter().map(|column| source[*column].clone()).collect()).collect();
    let sources: Vec<&[ArrayRef]> = columns.iter().map(|columns| &**columns).collect();
    let (sources, places) = only_used(&sources, places);
    Versions { versions, groups, columns: gather::interleave(&sources, &places).to_vec(), changed }
}

/// Whether a group had rows, and what changed is that rows came behind them: `counts` are the
/// multiplicities of each value at `n` times.
fn has_grown(counts: &[Diff], n: usize) -> bool {
    let Some(last) = counts.chunks_exact(n).rposition(|counts| counts[0] > 0) else { return false };
    let mut before = counts.chunks_exact(n).take(last + 1);
    let is_last_more = before.next_back().is_some_and(<[Diff]>::is_sorted);
    is_last_more
        && before.all(|counts| counts.iter().all(|count| *count == counts[0]))
        && counts.chunks_exact(n).skip(last + 1).all(<[Diff]>::is_sorted)
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
