//! A run: the sorted updates of an interval of time, as a list of chunks.
//!
//! Law: all updates lie in `[lower, upper)`, except that times before `since` may have been
//! advanced to `since`. A run is sorted and consolidated, with one exception: a run that is *still
//! being merged* is several sorted parts, of which the first holds what is already merged (see
//! [`crate::Spine`]). Readers that look keys up never notice; readers that walk [`Run::chunks`]
//! from end to end see the parts one after the other.
//!
//! Cost: making one is O(chunks). Fences (first and last hash of each chunk) find a chunk without
//! touching it.

use std::sync::Arc;

use anabranch_batch::Time;

use crate::chunk::Chunk;
use crate::hashes::Hashes;
use crate::layout::Layout;

/// The immutable, sorted updates of an interval of time.
#[derive(Debug)]
pub struct Run {
    layout: Arc<Layout>,
    lower: Time,
    upper: Time,
    since: Time,
    /// Chunks of all parts, in order; none is empty.
    chunks: Vec<Arc<Chunk>>,
    /// Sorted parts: one, or several while being merged, or none when there are no rows.
    parts: Vec<SortedPart>,
    rows: usize,
    size_bytes: usize,
    /// Updates that take rows back.
    retractions: usize,
    /// Chunks are packed where that pays.
    is_packed: bool,
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
        let mut run = Run {
            layout,
            lower,
            upper,
            since,
            chunks: Vec::new(),
            parts: Vec::new(),
            rows: 0,
            size_bytes: 0,
            retractions: 0,
            is_packed: false,
            time_min: Time::MAX,
            time_max: Time::MIN,
        };
        for list in lists.into_iter().filter(|list| !list.is_empty()) {
            let part = SortedPart::new(run.chunks.len(), &list);
            run.rows += part.rows;
            for chunk in &list {
                run.size_bytes += chunk.size_bytes();
                run.retractions += chunk.facts().retractions;
                run.time_min = run.time_min.min(chunk.facts().time_min);
                run.time_max = run.time_max.max(chunk.facts().time_max);
            }
            run.parts.push(part);
            run.chunks.extend(list);
        }
        run
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
        self.is_empty() || time <= self.time_min
    }

    /// Whether all updates have times before this one.
    pub fn is_before(&self, time: Time) -> bool {
        self.is_empty() || self.time_max < time
    }

    /// Updates that take rows back. (Of views of chunks, an estimate.)
    pub(crate) fn retractions(&self) -> usize {
        self.retractions
    }

    /// The earliest time of an update; [`anabranch_batch::END`] when there is none.
    pub(crate) fn time_min(&self) -> Time {
        self.time_min
    }

    /// The latest time of an update; `Time::MIN` when there is none.
    pub(crate) fn time_max(&self) -> Time {
        self.time_max
    }

    /// Number of rows in all chunks.
    pub fn len(&self) -> usize {
        self.rows
    }

    /// Whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.rows == 0
    }

    /// Bytes of memory that the chunks own.
    pub fn size_bytes(&self) -> usize {
        self.size_bytes
    }

    /// All chunks, in order; none is empty.
    pub fn chunks(&self) -> &[Arc<Chunk>] {
        &self.chunks
    }

    pub(crate) fn parts(&self) -> &[SortedPart] {
        &self.parts
    }

    /// Whether it has several parts, which are still to be merged.
    pub fn is_in_parts(&self) -> bool {
        self.parts.len() > 1
    }

    /// The chunks of each part.
    pub(crate) fn chunks_by_part(&self) -> impl Iterator<Item = &[Arc<Chunk>]> {
        self.parts.iter().map(|part| &self.chunks[part.start..part.start + part.hashes.len()])
    }

    /// The parts as runs of the same interval, each of which is sorted. O(chunks), if there are
    /// several.
    pub fn sorted_parts(self: &Arc<Run>) -> Vec<Arc<Run>> {
        if self.parts.len() <= 1 {
            return vec![Arc::clone(self)];
        }
        let run = |chunks: &[Arc<Chunk>]| {
            Arc::new(Run::new(Arc::clone(&self.layout), self.lower, self.upper, self.since, chunks.to_vec()))
        };
        self.chunks_by_part().map(run).collect()
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
        SortedPart { start, rows: hashes.iter().map(|hashes| hashes.len()).sum(), firsts, lasts, hashes }
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
