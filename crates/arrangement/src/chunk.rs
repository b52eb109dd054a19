//! A chunk: a bounded piece of a sorted run, as columns.
//!
//! Law: rows are sorted by the layout's total order (see `layout`), no two rows are equal in all of key, value and time, no diff
//! is zero. A constant time or diff stores no column. A chunk never changes; views of its tail share its memory.

use std::ops::Range;
use std::rc::Rc;

use anabranch_batch::{Batch, Columns, Diffs, Time, Times, gather};
use arrow::array::{Array, ArrayRef};
use arrow::buffer::ScalarBuffer;

use crate::Layout;
use crate::hashes::{Ascending, Hashes};
use crate::layout::pick_columns;

/// Rows that a chunk aims for: large enough that per-chunk work vanishes, small enough that what a merge touches at a time stays in
/// the second-level cache, and that a pause for one chunk is a fraction of a millisecond.
pub(crate) const CHUNK_ROWS: usize = 1 << 13;

/// A bounded piece of a run: sorted, consolidated updates.
#[derive(Debug)]
pub struct Chunk {
    /// All columns of the collection, in their original order.
    columns: Columns,
    /// The hash of each row's key, ascending.
    key_hashes: Hashes,
    /// The value word of each row; `None` where it is as cheap to compute again.
    value_words: Option<ScalarBuffer<u64>>,
    /// The time of each row.
    times: Times,
    /// The multiplicity of each row; never zero.
    diffs: Diffs,
    /// What is known about the rows.
    facts: Facts,
}

/// What a chunk is made of; the fields are those of [`Chunk`].
pub(crate) struct ChunkRows {
    pub columns: Columns,
    pub hashes: Hashes,
    /// One a row, unless [`Layout::are_words_cheap`].
    pub words: Option<Vec<u64>>,
    pub times: Times,
    pub diffs: Diffs,
    pub exact: Exact,
    pub key_unique: bool,
}

/// Where one `u64` says all about the columns it stands for, also against rows of other chunks of which the same is known.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Exact {
    /// Equal key hashes mean equal keys.
    pub key: bool,
    /// Equal value words mean equal values.
    pub value: bool,
}

impl Exact {
    /// What still holds when rows of both kinds meet.
    pub fn and(self, other: Exact) -> Exact {
        Exact { key: self.key && other.key, value: self.value && other.value }
    }
}

/// What is known about the rows of a chunk; each fact saves comparisons of columns.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Facts {
    /// Where hashes and words spare the columns.
    pub exact: Exact,
    /// Within this chunk, equal hashes mean equal keys.
    pub key_unique: bool,
    /// The earliest time.
    pub time_min: Time,
    /// The latest time.
    pub time_max: Time,
    /// Memory this chunk owns.
    pub size_bytes: usize,
    /// Updates that take rows back.
    pub retractions: usize,
}

impl Chunk {
    /// A chunk of sorted, consolidated rows.
    ///
    /// # Panics
    /// If lengths differ.
    pub(crate) fn new(layout: &Layout, rows: ChunkRows) -> Chunk {
        let ChunkRows { columns, hashes, words, times, diffs, exact, key_unique } = rows;
        assert!(columns.iter().all(|column| column.len() == hashes.len()), "a chunk's columns have one entry per row");
        assert!(words.as_ref().is_none_or(|words| words.len() == hashes.len()), "a chunk has one value word per row");
        assert_eq!(words.is_none(), layout.are_words_cheap(exact), "value words are kept where they cost something");
        let mut chunk = Chunk {
            facts: Facts {
                exact,
                key_unique,
                time_min: times.min(),
                time_max: times.max(),
                size_bytes: 0,
                retractions: match &diffs {
                    Diffs::Constant(diff) if *diff < 0 => hashes.len(),
                    Diffs::Constant(_) => 0,
                    Diffs::Column(diffs) => diffs.iter().filter(|diff| **diff < 0).count(),
                },
            },
            key_hashes: hashes,
            value_words: words.map(ScalarBuffer::from),
            times,
            diffs,
            columns,
        };
        chunk.facts.size_bytes = chunk.measure_bytes();
        chunk
    }

    /// All columns of the collection, in their original order.
    pub fn columns(&self) -> &[ArrayRef] {
        &self.columns
    }

    /// The hash of each row's key, ascending. O(rows), unless they are kept.
    pub fn key_hashes(&self) -> ScalarBuffer<u64> {
        self.key_hashes.all()
    }

    /// The time of each row.
    pub fn times(&self) -> &Times {
        &self.times
    }

    /// The multiplicity of each row; never zero.
    pub fn diffs(&self) -> &Diffs {
        &self.diffs
    }

    /// Number of rows.
    pub fn len(&self) -> usize {
        self.key_hashes.len()
    }

    /// Whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes of memory that this chunk owns. A view of a chunk's tail counts its rows only.
    pub fn size_bytes(&self) -> usize {
        self.facts.size_bytes
    }

    /// The rows as a batch, sharing memory.
    pub(crate) fn to_batch(&self) -> Batch {
        Batch::with_len(self.columns.clone(), self.len(), self.times.clone(), self.diffs.clone())
    }

    pub(crate) fn facts(&self) -> &Facts {
        &self.facts
    }

    pub(crate) fn shared_columns(&self) -> &Columns {
        &self.columns
    }

    pub(crate) fn hashes(&self) -> &Hashes {
        &self.key_hashes
    }

    /// The value word of each row. O(1), or O(rows) where they are not stored.
    pub(crate) fn value_words(&self, layout: &Layout) -> ScalarBuffer<u64> {
        match &self.value_words {
            Some(words) => words.clone(),
            None => layout.value_words(&self.columns, self.len()).0.into(),
        }
    }

    /// Appends the value words of some rows.
    pub(crate) fn append_words(&self, layout: &Layout, words: &mut Vec<u64>, rows: Range<usize>) {
        match &self.value_words {
            Some(stored) => words.extend_from_slice(&stored[rows]),
            None => {
                let columns: Vec<ArrayRef> =
                    self.columns.iter().map(|column| column.slice(rows.start, rows.len())).collect();
                words.extend_from_slice(&layout.value_words(&columns, rows.len()).0);
            }
        }
    }

    /// The stored value words.
    pub(crate) fn stored_words(&self) -> Option<&[u64]> {
        self.value_words.as_deref()
    }

    /// The rows from `start` on, sharing memory with this chunk.
    pub(crate) fn tail(self: &Rc<Chunk>, start: usize) -> Rc<Chunk> {
        self.slice(start, self.len() - start)
    }

    /// Some rows, sharing memory with this chunk.
    pub(crate) fn slice(self: &Rc<Chunk>, start: usize, rows: usize) -> Rc<Chunk> {
        if rows == self.len() {
            return Rc::clone(self);
        }
        Rc::new(Chunk {
            columns: self.columns.iter().map(|column| column.slice(start, rows)).collect(),
            key_hashes: self.key_hashes.slice(start, rows),
            value_words: self.value_words.as_ref().map(|words| words.slice(start, rows)),
            times: self.times.slice(start, rows),
            diffs: self.diffs.slice(start, rows),
            facts: Facts {
                size_bytes: self.facts.size_bytes * rows / self.len(),
                retractions: self.facts.retractions * rows / self.len(),
                ..self.facts
            },
        })
    }

    /// The same rows with times before `since` advanced to it, sharing memory. `None` if rows might become equal by that, or if
    /// the times would have to be copied. O(1), or O(rows) where they have times of their own.
    pub(crate) fn advanced(self: &Rc<Chunk>, layout: &Layout, since: Time) -> Option<Rc<Chunk>> {
        match self.times {
            _ if since <= self.facts.time_min => Some(Rc::clone(self)),
            Times::Column(_) if since < self.facts.time_max || self.has_ties(layout) => None,
            Times::Column(_) | Times::Constant(_) => Some(Rc::new(Chunk {
                columns: self.columns.clone(),
                key_hashes: self.key_hashes.clone(),
                value_words: self.value_words.clone(),
                times: Times::Constant(since),
                diffs: self.diffs.clone(),
                facts: Facts { time_min: since, time_max: since, ..self.facts },
            })),
        }
    }

    /// Whether two rows might differ in nothing but their times.
    fn has_ties(&self, layout: &Layout) -> bool {
        let words = self.value_words(layout);
        let hashes = self.key_hashes.view();
        (1..self.len()).any(|row| words[row - 1] == words[row] && hashes.at(row - 1) == hashes.at(row))
    }

    /// The rows with times up to `at`; `None` when there is none.
    pub(crate) fn until(self: &Rc<Chunk>, layout: &Layout, at: Time) -> Option<Rc<Chunk>> {
        if self.facts.time_max <= at {
            return Some(Rc::clone(self));
        }
        let rows: Vec<u32> = (0..self.len()).filter(|&row| self.times.get(row) <= at).map(|row| row as u32).collect();
        if rows.is_empty() {
            return None;
        }
        let columns = gather::take(&self.columns, &rows);
        let hashes: Vec<u64> = rows.iter().map(|&row| self.key_hashes.at(row as usize)).collect();
        let words = self.value_words.as_ref();
        let rows = ChunkRows {
            hashes: Hashes::new(&hashes, &pick_columns(&columns, &layout.key)),
            words: words.map(|words| rows.iter().map(|&row| words[row as usize]).collect()),
            columns,
            times: self.times.take(&rows),
            diffs: self.diffs.take(&rows),
            exact: self.facts.exact,
            key_unique: self.facts.key_unique,
        };
        Some(Rc::new(Chunk::new(layout, rows)))
    }

    fn measure_bytes(&self) -> usize {
        let columns: usize = self.columns.iter().map(|column| column.get_buffer_memory_size()).sum();
        let words = self.value_words.as_ref().map_or(0, |words| 8 * words.len());
        let times = if matches!(self.times, Times::Column(_)) { 8 * self.len() } else { 0 };
        let diffs = if matches!(self.diffs, Diffs::Column(_)) { 8 * self.len() } else { 0 };
        columns + self.key_hashes.size_bytes() + words + times + diffs
    }
}
