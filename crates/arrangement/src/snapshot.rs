//! The contents of an arrangement at one time, whole or in portions.
//!
//! Law: the batches, together, are the collection at `at`: each row once, with its multiplicity; of a snapshot that is *loose* a row may be in several updates,
//! of which none takes another back.
//! Cost: one pass of merging for up to sixteen runs; a single run is only copied, or not even that, nor are the runs of a loose one that only add rows.
//!
//! A [`Snapshot`] is cut by ranges of key hashes, so that whoever reads a large arrangement can let others work in between. What it reads
//! is immutable: it may be resumed whenever, whatever happens to the arrangement. One key is never cut.

use std::rc::Rc;

use anabranch_batch::{Batch, Diffs, Time, Times};

use crate::hashes::gallop_up;
use crate::merge::Merge;
use crate::run::Part;
use crate::spine::MERGED_RUNS_MAX;
use crate::{Chunk, Layout, Run};

/// Whole contents, consolidated over runs, as of time `at`: sorted batches whose times are all `at`.
///
/// The caller holds a `since` at or before `at`.
pub fn snapshot(layout: &Layout, runs: &[Rc<Run>], at: Time) -> Vec<Batch> {
    Snapshot::new(layout, runs.to_vec(), at).next_portion(usize::MAX).unwrap_or_default()
}

/// The contents as of a time, portion by portion in the order of key hashes.
#[derive(Debug)]
pub struct Snapshot {
    layout: Rc<Layout>,
    runs: Vec<Rc<Run>>,
    at: Time,
    /// The key hash at which the next portion starts; `None` at the end.
    from: Option<u64>,
    /// No update of any run takes another back, and the reader sums updates anyway.
    as_is: bool,
}

impl Snapshot {
    /// Starts to read the contents of `runs` at time `at`.
    ///
    /// The caller holds a `since` at or before `at` now, and need not hold it any longer.
    pub fn new(layout: &Layout, runs: Vec<Rc<Run>>, at: Time) -> Snapshot {
        Snapshot { layout: Rc::new(layout.clone()), runs, at, from: Some(0), as_is: false }
    }

    /// The same for whoever sums updates anyway: a row may come in several.
    pub fn loose(layout: &Layout, runs: Vec<Rc<Run>>, at: Time) -> Snapshot {
        let adds = |chunk: &Rc<Chunk>| matches!(chunk.diffs(), Diffs::Constant(diff) if *diff > 0);
        let as_is = runs.iter().flat_map(|run| run.chunks()).all(adds);
        Snapshot { as_is, ..Snapshot::new(layout, runs, at) }
    }

    /// The next portion, of about `rows` updates: sorted batches whose times are all `at`, or none if all cancels. `None` at the end.
    pub fn next_portion(&mut self, rows: usize) -> Option<Vec<Batch>> {
        let from = self.from?;
        let to = self.end_of_portion(from, rows);
        let mut queue: Vec<Rc<Run>> = Vec::new();
        for run in &self.runs {
            for part in run.parts() {
                let inside = between(run, part, from, to);
                let chunks = inside.filter_map(|chunk| chunk.until(&self.layout, self.at)).collect();
                queue.push(Rc::new(Run::new(Rc::clone(&self.layout), self.at, self.at, Time::MIN, chunks)));
            }
        }
        self.from = to;
        if to.is_none() {
            self.runs.clear();
        }
        if self.as_is {
            let chunks = queue.iter().flat_map(|run| run.chunks());
            return Some(chunks.map(|chunk| to_batch(chunk, self.at)).collect());
        }
        let Some(run) = merge_all(queue, self.at) else { return Some(Vec::new()) };
        Some(run.chunks().iter().map(|chunk| to_batch(chunk, self.at)).collect())
    }

    /// Whether all has been read.
    pub fn is_done(&self) -> bool {
        self.from.is_none()
    }

    /// The hash before which a portion that starts at `from` ends: where a chunk of the largest part begins, since that is cheap to find.
    fn end_of_portion(&self, from: u64, rows: usize) -> Option<u64> {
        let parts = self.runs.iter().flat_map(|run| run.parts());
        let total: usize = parts.clone().map(|part| part.rows).sum();
        let largest = parts.max_by_key(|part| part.rows)?;
        if total <= rows {
            return None;
        }
        let wanted = (rows as f64 * largest.rows as f64 / total as f64) as usize;
        let first = largest.lasts.partition_point(|last| *last < from);
        let mut taken = 0;
        for chunk in first..largest.hashes.len() {
            if taken >= wanted && largest.firsts[chunk] > from {
                return Some(largest.firsts[chunk]);
            }
            taken += largest.hashes[chunk].len();
        }
        None
    }
}

/// The rows of a part with key hashes from `from` on and before `to`. Only chunks at the edges are looked into.
fn between<'a>(run: &'a Run, part: &'a Part, from: u64, to: Option<u64>) -> impl Iterator<Item = Rc<Chunk>> + 'a {
    let first = part.lasts.partition_point(|last| *last < from);
    let end = to.map_or(part.firsts.len(), |to| part.firsts.partition_point(|first| *first < to));
    (first..end.max(first)).filter_map(move |number| {
        let chunk = &run.chunks()[part.start + number];
        let hashes = part.hashes[number].view();
        let before = |bound: u64| gallop_up(hashes, 0, bound);
        let start = if part.firsts[number] < from { before(from) } else { 0 };
        let end = to.filter(|to| *to <= part.lasts[number]).map_or(chunk.len(), before);
        (start < end).then(|| chunk.slice(start, end - start))
    })
}

/// Merges the smallest, several at once, until one is left.
fn merge_all(mut queue: Vec<Rc<Run>>, at: Time) -> Option<Rc<Run>> {
    queue.sort_by_key(|run| std::cmp::Reverse(run.len()));
    while queue.len() > 1 {
        let smallest = queue.split_off(queue.len().saturating_sub(MERGED_RUNS_MAX));
        queue.push(Rc::new(Merge::new(&smallest, at).finish()));
    }
    let last = queue.pop()?;
    Some(if is_settled(&last, at) { last } else { Rc::new(Merge::new(&[last], at).finish()) })
}

/// All times are `at`, so that equal rows are summed already.
fn is_settled(run: &Run, at: Time) -> bool {
    run.chunks().iter().all(|chunk| chunk.facts().time_min == chunk.facts().time_max)
        && run.time_min() == run.time_max()
        && run.since() <= at
}

fn to_batch(chunk: &Chunk, at: Time) -> Batch {
    Batch::with_len(chunk.shared_columns().clone(), chunk.len(), Times::Constant(at), chunk.diffs().clone())
}
