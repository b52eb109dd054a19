//! A run: the sorted updates of an interval of time, as a list of chunks.
//!
//! Law: all updates lie in `[lower, upper)`, except that times before `since` may have been
//! advanced to `since`. A run is sorted and consolidated, with one exception: a run that is *still
//! being merged* is several sorted parts, of which the first holds what is already merged (see
//! [`crate::Spine`]). Readers that look keys up never notice; readers that walk [`Run::chunks`]
//! from end to end see the parts one after the other.
//!
//! The history of an arrangement whose runs are listened to is a run that is *unsorted*, until a
//! reader asks for its chunks: [`Run::batches`] has its rows as they came.
//!
//! Cost: making one is O(chunks), or O(batches) if it is unsorted. Fences (first and last hash of
//! each chunk) find a chunk without touching it.

use std::sync::{Arc, OnceLock};

use anabranch_batch::{Batch, Diffs, FlatBatch, Time};

use crate::chunk::Chunk;
use crate::footprint::Footprint;
use crate::hashes::Hashes;
use crate::layout::Layout;
use crate::unsorted::Unsorted;

/// The immutable, sorted updates of an interval of time.
#[derive(Debug)]
pub struct Run {
    layout: Arc<Layout>,
    lower: Time,
    upper: Time,
    since: Time,
    /// Chunks are packed where that pays.
    is_packed: bool,
    /// The rows as they came, if the run was not sorted when it was made, and what is known of
    /// them.
    unsorted: Option<(Unsorted, Facts)>,
    sorted: OnceLock<SortedRows>,
}

/// What a run is once it is sorted.
#[derive(Debug)]
struct SortedRows {
    /// Chunks of all parts, in order; none is empty.
    chunks: Vec<Arc<Chunk>>,
    /// Sorted parts: one, or several while being merged, or none when there are no rows.
    parts: Vec<SortedPart>,
    facts: Facts,
}

/// What is known of the rows of a run.
#[derive(Debug)]
struct Facts {
    rows: usize,
    size_bytes: usize,
    /// Updates that take rows back.
    retractions: usize,
    /// The earliest and the latest time of an update.
    time_min: Time,
    time_max: Time,
}

/// A sorted list of chunks, with what is needed to search it.
#[derive(Debug)]
pub(crate) struct SortedPart {
    /// Index of the first chunk in the run's list.
    pub start: usize,
    /// The first key hash of each chunk.
    pub firsts: Vec<u64>,
    /// The last key hash of each chunk.
    pub lasts: Vec<u64>,
    /// The key hashes of each chunk (shared with the chunk).
    pub hashes: Vec<Hashes>,
    /// Rows in each chunk and those before it: a portion of a long run costs no look at all chunks.
    pub ends: Vec<usize>,
    /// Rows in all chunks.
    pub rows: usize,
}

impl Run {
    /// A run of one sorted list of chunks.
    pub(crate) fn new(layout: Arc<Layout>, lower: Time, upper: Time, since: Time, chunks: Vec<Arc<Chunk>>) -> Run {
        Run::from_parts(layout, lower, upper, since, vec![chunks])
    }

    /// A run of several sorted lists of chunks.
    pub(crate) fn from_parts(
        layout: Arc<Layout>,
        lower: Time,
        upper: Time,
        since: Time,
        lists: Vec<Vec<Arc<Chunk>>>,
    ) -> Run {
        assert!(lower <= upper, "a run covers an interval");
        let sorted = OnceLock::from(SortedRows::new(lists));
        Run { layout, lower, upper, since, is_packed: false, unsorted: None, sorted }
    }

    /// A run of rows that are sorted when chunks are asked for, or piece by piece
    /// ([`Run::sort_some`]). Until then it has as many rows as came, also those that cancel.
    pub(crate) fn unsorted(layout: Arc<Layout>, lower: Time, upper: Time, since: Time, batches: Vec<Batch>) -> Run {
        assert!(lower <= upper, "a run covers an interval");
        let facts = Facts::of_batches(&batches, since);
        let unsorted = Some((Unsorted::new(Arc::clone(&layout), since, batches), facts));
        Run { layout, lower, upper, since, is_packed: false, unsorted, sorted: OnceLock::new() }
    }

    /// The same run, of which it is known that chunks are packed where that pays.
    pub(crate) fn packed(self) -> Run {
        Run { is_packed: true, ..self }
    }

    /// Whether packing chunks would perhaps give back memory.
    pub(crate) fn is_loose(&self) -> bool {
        !self.is_packed && self.layout.can_be_packed()
    }

    /// The same updates as a run of another interval, for a trace whose times are not those of its
    /// intervals (such as rounds of a loop). O(chunks).
    pub fn in_interval(&self, lower: Time, upper: Time) -> Run {
        let parts = self.chunks_by_part().map(<[_]>::to_vec).collect();
        Run::from_parts(Arc::clone(&self.layout), lower, upper, self.since, parts)
    }

    /// The layout of the rows.
    pub fn layout(&self) -> &Arc<Layout> {
        &self.layout
    }

    /// The start of the interval.
    pub fn lower(&self) -> Time {
        self.lower
    }

    /// The end of the interval; updates lie before it.
    pub fn upper(&self) -> Time {
        self.upper
    }

    /// Times before this one may have been advanced to it.
    pub fn since(&self) -> Time {
        self.since
    }

    /// Whether no update has a time before this one.
    pub fn is_from(&self, time: Time) -> bool {
        self.is_empty() || time <= self.time_min()
    }

    /// Whether all updates have times before this one.
    pub fn is_before(&self, time: Time) -> bool {
        self.is_empty() || self.time_max() < time
    }

    /// Updates that take rows back. (Of views of chunks, an estimate.)
    pub(crate) fn retractions(&self) -> usize {
        self.facts().retractions
    }

    /// The earliest time of an update; [`anabranch_batch::END`] when there is none.
    pub(crate) fn time_min(&self) -> Time {
        self.facts().time_min
    }

    /// The latest time of an update; `Time::MIN` when there is none.
    pub(crate) fn time_max(&self) -> Time {
        self.facts().time_max
    }

    /// Number of rows in all chunks.
    pub fn len(&self) -> usize {
        self.facts().rows
    }

    /// Whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes of memory that the chunks own.
    pub fn size_bytes(&self) -> usize {
        self.facts().size_bytes
    }

    fn facts(&self) -> &Facts {
        match (self.sorted.get(), &self.unsorted) {
            (None, Some((_, facts))) => facts,
            _ => &self.sorted_rows().facts,
        }
    }

    /// Whether it is sorted. What asks for chunks sorts it.
    pub fn is_sorted(&self) -> bool {
        self.sorted.get().is_some()
    }

    /// Sorts pieces of the rows, if the run is not sorted, until `fuel` rows are used up. Returns
    /// whether it is sorted.
    pub(crate) fn sort_some(&self, fuel: &mut isize) -> bool {
        if let (None, Some((unsorted, _))) = (self.sorted.get(), &self.unsorted) {
            while *fuel > 0 {
                let Some(rows) = unsorted.sort_one() else {
                    self.sorted_rows();
                    return true;
                };
                *fuel -= rows as isize;
            }
        }
        self.is_sorted()
    }

    /// The rows of a sorted run; those of another are sorted first. (No thread sets them while it
    /// holds the lock of what is unsorted: two threads do not wait for each other.)
    fn sorted_rows(&self) -> &SortedRows {
        self.sorted.get_or_init(|| {
            let lists = self.unsorted.as_ref().map(|(unsorted, _)| unsorted.take_chunks());
            SortedRows::new(lists.unwrap_or_default())
        })
    }

    /// The rows in batches: of a run that is not sorted as they came.
    pub fn batches(&self) -> Vec<FlatBatch> {
        let unsorted = self.unsorted.as_ref().filter(|_| !self.is_sorted());
        match unsorted.and_then(|(unsorted, _)| unsorted.batches()) {
            Some(batches) => batches.into_iter().map(FlatBatch::from).collect(),
            None => self.chunks().iter().map(|chunk| chunk.to_batch()).collect(),
        }
    }

    /// All chunks, in order; none is empty.
    pub fn chunks(&self) -> &[Arc<Chunk>] {
        &self.sorted_rows().chunks
    }

    pub(crate) fn parts(&self) -> &[SortedPart] {
        &self.sorted_rows().parts
    }

    /// Whether it has several parts, which are still to be merged.
    pub fn is_in_parts(&self) -> bool {
        self.parts().len() > 1
    }

    /// The chunks of each part.
    pub(crate) fn chunks_by_part(&self) -> impl Iterator<Item = &[Arc<Chunk>]> {
        self.parts().iter().map(|part| &self.chunks()[part.start..part.start + part.hashes.len()])
    }

    /// The parts as runs of the same interval, each of which is sorted. O(chunks), if there are
    /// several.
    pub fn sorted_parts(self: &Arc<Run>) -> Vec<Arc<Run>> {
        if self.parts().len() <= 1 {
            return vec![Arc::clone(self)];
        }
        let run = |chunks: &[Arc<Chunk>]| {
            Arc::new(Run::new(Arc::clone(&self.layout), self.lower, self.upper, self.since, chunks.to_vec()))
        };
        self.chunks_by_part().map(run).collect()
    }
}

impl SortedRows {
    fn new(lists: Vec<Vec<Arc<Chunk>>>) -> SortedRows {
        let mut facts = Facts::default();
        let (mut chunks, mut parts) = (Vec::new(), Vec::new());
        for list in lists.into_iter().filter(|list| !list.is_empty()) {
            let part = SortedPart::new(chunks.len(), &list);
            facts.rows += part.rows;
            for chunk in &list {
                facts.size_bytes += chunk.size_bytes();
                facts.retractions += chunk.facts().retractions;
                facts.time_min = facts.time_min.min(chunk.facts().time_min);
                facts.time_max = facts.time_max.max(chunk.facts().time_max);
            }
            parts.push(part);
            chunks.extend(list);
        }
        SortedRows { chunks, parts, facts }
    }
}

impl Default for Facts {
    /// Of no rows.
    fn default() -> Facts {
        Facts { rows: 0, size_bytes: 0, retractions: 0, time_min: Time::MAX, time_max: Time::MIN }
    }
}

impl Facts {
    /// Of rows whose times before `since` are advanced to it.
    fn of_batches(batches: &[Batch], since: Time) -> Facts {
        let mut facts = Facts { size_bytes: Footprint::bytes_of(batches), ..Facts::default() };
        for batch in batches.iter().filter(|batch| !batch.is_empty()) {
            let (first, last) = batch.times().range();
            facts.rows += batch.len();
            facts.time_min = facts.time_min.min(first.max(since));
            facts.time_max = facts.time_max.max(last.max(since));
            facts.retractions += match batch.diffs() {
                Diffs::Constant(diff) if *diff > 0 => 0,
                Diffs::Constant(_) => batch.len(),
                Diffs::Column(diffs) => diffs.iter().filter(|diff| **diff < 0).count(),
            };
        }
        facts
    }
}

impl SortedPart {
    fn new(start: usize, chunks: &[Arc<Chunk>]) -> SortedPart {
        assert!(chunks.iter().all(|chunk| !chunk.is_empty()), "no chunk of a run is empty");
        let hashes: Vec<Hashes> = chunks.iter().map(|chunk| chunk.hashes().clone()).collect();
        let firsts: Vec<u64> = hashes.iter().map(|hashes| hashes.at(0)).collect();
        let lasts: Vec<u64> = hashes.iter().map(|hashes| hashes.at(hashes.len() - 1)).collect();
        debug_assert!(
            firsts.iter().skip(1).zip(&lasts).all(|(first, last)| last <= first),
            "chunks of a part are in order"
        );
        let mut rows = 0;
        let ends: Vec<usize> = hashes
            .iter()
            .map(|hashes| {
                rows += hashes.len();
                rows
            })
            .collect();
        SortedPart { start, rows, ends, firsts, lasts, hashes }
    }

    /// Rows in the chunks before that one.
    pub(crate) fn rows_before(&self, chunk: usize) -> usize {
        chunk.checked_sub(1).map_or(0, |last| self.ends[last])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_may_be_read_on_another_thread() {
        fn assert_shareable<T: Send + Sync>() {}
        assert_shareable::<Run>();
        assert_shareable::<Chunk>();
        assert_shareable::<Layout>();
    }
}
