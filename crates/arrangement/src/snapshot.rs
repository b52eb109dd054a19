//! The contents of an arrangement at one time, whole or in portions.
//!
//! Law: the batches, together, are the collection at `at`: each row once, with its multiplicity; of
//! a snapshot that is *loose* a row may be in several updates, of which none takes another back.
//! One *within* ranges of key hashes has the rows with these hashes. Cost: one pass of merging for
//! up to sixteen runs; a single run is only copied, or not even that, nor are the runs of a loose
//! one that only add rows.
//!
//! A [`Snapshot`] is cut by ranges of key hashes, so that a reader of a large arrangement can let
//! others work in between. What it reads is immutable: it may be resumed whenever, whatever happens
//! to the arrangement. One key is never cut.

use std::sync::Arc;

use anabranch_batch::{Batch, Diffs, Time, Times};

use crate::chunk::Chunk;
use crate::demand::MERGED_RUNS_MAX;
use crate::layout::Layout;
use crate::merge::RunMerge;
use crate::run::{Run, SortedPart};

/// Whole contents, consolidated over runs, as of time `at`: sorted batches whose times are all
/// `at`.
///
/// The caller holds a `since` at or before `at`.
pub fn snapshot(layout: &Layout, runs: &[Arc<Run>], at: Time) -> Vec<Batch> {
    Snapshot::new(layout, runs.to_vec(), at).next_portion(usize::MAX).unwrap_or_default()
}

/// The contents as of a time, portion by portion in the order of key hashes.
#[derive(Debug)]
pub struct Snapshot {
    layout: Arc<Layout>,
    runs: Vec<Arc<Run>>,
    at: Time,
    /// The key hash at which the next portion starts; `None` at the end.
    from: Option<u64>,
    /// Ranges of key hashes, the next one last; empty where all rows are wanted. The last is read
    /// when `from` is in it.
    ranges: Vec<HashRange>,
    /// No update of any run takes another back, and the reader sums updates anyway.
    as_is: bool,
}

/// The first and the last of some key hashes.
type HashRange = (u64, u64);

impl Snapshot {
    /// Starts to read the contents of `runs` at time `at`.
    ///
    /// The caller holds a `since` at or before `at` now, and need not hold it any longer.
    pub fn new(layout: &Layout, runs: Vec<Arc<Run>>, at: Time) -> Snapshot {
        Snapshot { layout: Arc::new(layout.clone()), runs, at, from: Some(0), ranges: Vec::new(), as_is: false }
    }

    /// Starts to read the contents whose key hashes are in one of these ranges (first and last).
    /// Cost: as for all rows, but for those in the ranges, and a search in each run for each range.
    pub fn within(layout: &Layout, runs: Vec<Arc<Run>>, at: Time, mut ranges: Vec<HashRange>) -> Snapshot {
        ranges.sort_unstable();
        // (Ranges that touch are one: no row comes twice.)
        ranges.dedup_by(|next, last| {
            let touch = next.0 <= last.1.saturating_add(1);
            last.1 = if touch { last.1.max(next.1) } else { last.1 };
            touch
        });
        ranges.reverse();
        let from = ranges.last().map(|(first, _)| *first);
        Snapshot { from, ranges, ..Snapshot::new(layout, runs, at) }
    }

    /// The same for readers that sum updates anyway: a row may come in several.
    pub fn loose(layout: &Layout, runs: Vec<Arc<Run>>, at: Time) -> Snapshot {
        let adds = |chunk: &Arc<Chunk>| matches!(chunk.diffs(), Diffs::Constant(diff) if *diff > 0);
        let as_is = runs.iter().flat_map(|run| run.chunks()).all(adds);
        Snapshot { as_is, ..Snapshot::new(layout, runs, at) }
    }

    /// The next portion, of about `rows` updates: sorted batches whose times are all `at`, or none
    /// if all cancels. `None` at the end.
    pub fn next_portion(&mut self, rows: usize) -> Option<Vec<Batch>> {
        let mut portion = self.next_of_range(rows)?;
        let mut n_rows: usize = portion.iter().map(Batch::len).sum();
        // (Of many small ranges.)
        while n_rows < rows && !self.ranges.is_empty() {
            let Some(more) = self.next_of_range(rows - n_rows) else { break };
            n_rows += more.iter().map(Batch::len).sum::<usize>();
            portion.extend(more);
        }
        Some(portion)
    }

    /// The next portion of the range that is read.
    fn next_of_range(&mut self, rows: usize) -> Option<Vec<Batch>> {
        let from = self.from?;
        let range = self.ranges.last().copied();
        let end = range.and_then(|(_, last)| last.checked_add(1));
        let to = self.end_of_portion(from, end, rows);
        let mut queue: Vec<Arc<Run>> = Vec::new();
        for run in &self.runs {
            for part in run.parts() {
                let inside = between(run, part, from, to);
                let chunks = inside.filter_map(|chunk| chunk.until(&self.layout, self.at)).collect();
                queue.push(Arc::new(Run::new(Arc::clone(&self.layout), self.at, self.at, Time::MIN, chunks)));
            }
        }
        self.from = to;
        if range.is_some() && to == end {
            self.ranges.pop();
            self.from = self.ranges.last().map(|(first, _)| *first);
        }
        if self.from.is_none() {
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

    /// The hash before which a portion of about `rows` rows ends that starts at `from`: `end` if
    /// there are not many more before that.
    fn end_of_portion(&self, from: u64, end: Option<u64>, rows: usize) -> Option<u64> {
        let mut parts: Vec<RowsAhead> =
            self.runs.iter().flat_map(|run| run.parts()).map(|part| RowsAhead::new(part, from, end)).collect();
        let mut to = end;
        loop {
            // (Parts may lie anywhere: beside each other, where keys came in order.)
            let total: usize = parts.iter().map(|ahead| ahead.rows).sum();
            let Some(largest) = parts.iter().max_by_key(|ahead| ahead.rows) else { return to };
            if total <= rows.saturating_add(rows / 2) {
                return to;
            }
            let wanted = (largest.rows as u128 * rows as u128 / total as u128) as usize;
            let closer = Some(largest.hash_at(wanted.min(largest.rows - 1)).max(from.checked_add(1)?));
            if closer == to {
                return to;
            }
            to = closer;
            parts.iter_mut().for_each(|ahead| ahead.end_before(to));
        }
    }
}

/// The rows of a part from a hash on.
struct RowsAhead<'a> {
    part: &'a SortedPart,
    /// The first chunk, and the first row of it.
    chunk: usize,
    row: usize,
    /// How many rows there are.
    rows: usize,
}

impl RowsAhead<'_> {
    fn new(part: &SortedPart, from: u64, to: Option<u64>) -> RowsAhead<'_> {
        let chunk = part.lasts.partition_point(|last| *last < from);
        let row = part.hashes.get(chunk).map_or(0, |hashes| hashes.view().gallop_up(0, from));
        let mut ahead = RowsAhead { part, chunk, row, rows: 0 };
        match to {
            None => ahead.rows = part.rows - part.rows_before(chunk) - row,
            Some(_) => ahead.end_before(to),
        }
        ahead
    }

    /// Leaves the rows with hashes before `to`.
    fn end_before(&mut self, to: Option<u64>) {
        let Some(to) = to else { return };
        let end = self.part.firsts.partition_point(|first| *first < to).max(self.chunk);
        let whole = self.part.rows_before(end) - self.part.rows_before(self.chunk);
        let (Some(last), true) = (end.checked_sub(1), end > self.chunk) else {
            self.rows = 0;
            return;
        };
        let hashes = &self.part.hashes[last];
        let beyond = if self.part.lasts[last] < to { 0 } else { hashes.len() - hashes.view().gallop_up(0, to) };
        self.rows = whole - beyond - self.row;
    }

    /// The hash of a row, counted from the first.
    fn hash_at(&self, row: usize) -> u64 {
        let row = self.part.rows_before(self.chunk) + self.row + row;
        let chunk = self.part.ends.partition_point(|end| *end <= row);
        self.part.hashes[chunk].at(row - self.part.rows_before(chunk))
    }
}

/// The rows of a part with key hashes from `from` on and before `to`. Only chunks at the edges are
/// looked into.
fn between<'a>(
    run: &'a Run,
    part: &'a SortedPart,
    from: u64,
    to: Option<u64>,
) -> impl Iterator<Item = Arc<Chunk>> + 'a {
    let first = part.lasts.partition_point(|last| *last < from);
    let end = to.map_or(part.firsts.len(), |to| part.firsts.partition_point(|first| *first < to));
    (first..end.max(first)).filter_map(move |number| {
        let chunk = &run.chunks()[part.start + number];
        let hashes = part.hashes[number].view();
        let before = |bound: u64| hashes.gallop_up(0, bound);
        let start = if part.firsts[number] < from { before(from) } else { 0 };
        let end = to.filter(|to| *to <= part.lasts[number]).map_or(chunk.len(), before);
        (start < end).then(|| chunk.slice(start, end - start))
    })
}

/// Merges the smallest, several at once, until one is left.
fn merge_all(mut queue: Vec<Arc<Run>>, at: Time) -> Option<Arc<Run>> {
    queue.sort_by_key(|run| std::cmp::Reverse(run.len()));
    while queue.len() > 1 {
        let smallest = queue.split_off(queue.len().saturating_sub(MERGED_RUNS_MAX));
        queue.push(Arc::new(RunMerge::new(&smallest, at, &Arc::default()).finish()));
    }
    let last = queue.pop()?;
    Some(if is_settled(&last, at) { last } else { Arc::new(RunMerge::new(&[last], at, &Arc::default()).finish()) })
}

/// All times are `at`, so that equal rows are summed already.
fn is_settled(run: &Run, at: Time) -> bool {
    run.chunks().iter().all(|chunk| chunk.facts().time_min == chunk.facts().time_max)
        && run.time_min() == run.time_max()
        && run.since() <= at
}

fn to_batch(chunk: &Chunk, at: Time) -> Batch {
    Batch::with_len(chunk.columns(), chunk.len(), Times::Constant(at), chunk.diffs().clone())
}
