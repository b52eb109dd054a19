//! A chunk: a bounded piece of a sorted run, as columns.
//!
//! Law: rows are sorted by the layout's total order (see `layout`), no two rows are equal in all of
//! key, value and time, no diff is zero. A constant time or diff stores no column. A chunk never
//! changes; views of its tail share its memory.
//!
//! A chunk is *packed* if its key is one column of integers, which follow from their hashes: then
//! hashes lie in few bits (`packed`), and the key column is made when it is asked for. That is done
//! in spare time, for runs which stay.

use std::ops::Range;
use std::sync::Arc;

use anabranch_batch::{Batch, Columns, Diffs, FlatBatch, Time, Times, gather, hash};
use arrow::array::{Array, ArrayRef, new_empty_array};
use arrow::buffer::ScalarBuffer;

use crate::hashes::{Ascending, Hashes};
use crate::layout::{Layout, pick_columns};
use crate::packed::Packed;

/// Rows that a chunk aims for: large enough that per-chunk work vanishes, small enough that what a
/// merge touches at a time stays in the second-level cache, and that a pause for one chunk is a
/// fraction of a millisecond.
pub(crate) const CHUNK_ROWS: usize = 1 << 13;

/// Smaller chunks are not packed: nothing is won.
const PACKED_ROWS_MIN: usize = 32;

/// A bounded piece of a run: sorted, consolidated updates.
#[derive(Debug)]
pub struct Chunk {
    /// All columns of the collection, in their original order; an empty one for a key that is
    /// packed.
    columns: Columns,
    /// The key column, if it is packed.
    packed_key: Option<usize>,
    /// The hash of each row's key, ascending.
    key_hashes: Hashes,
    /// The value word of each row; `None` where it is as cheap to compute again.
    value_words: Option<ScalarBuffer<u64>>,
    /// The time of each row.
    times: Times,
    /// The multiplicity of each row; never zero.
    diffs: Diffs,
    /// What is known about the rows.
    facts: ChunkFacts,
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

/// Where one `u64` says all about the columns it stands for, also against rows of other chunks of
/// which the same is known.
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
pub(crate) struct ChunkFacts {
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
        let packed_key = layout.invertible_key().filter(|_| matches!(hashes, Hashes::Packed(_)));
        assert!(
            (0..).zip(&*columns).all(|(at, column)| column.len() == hashes.len() || packed_key == Some(at)),
            "a chunk's columns have one entry per row"
        );
        assert!(words.as_ref().is_none_or(|words| words.len() == hashes.len()), "a chunk has one value word per row");
        assert_eq!(words.is_none(), layout.are_words_cheap(exact), "value words are kept where they cost something");
        let mut chunk = Chunk {
            facts: ChunkFacts {
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
            packed_key,
        };
        chunk.facts.size_bytes = chunk.measure_bytes();
        chunk
    }

    /// All columns of the collection, in their original order. O(columns), and O(rows) for a key
    /// that is packed.
    pub fn columns(&self) -> Columns {
        match self.packed_key {
            None => self.columns.clone(),
            Some(_) => (0..self.columns.len()).map(|column| self.column(column)).collect(),
        }
    }

    /// How many columns the collection has.
    pub fn n_columns(&self) -> usize {
        self.columns.len()
    }

    /// A column of the collection. O(1), or O(rows) for a key that is packed.
    pub fn column(&self, column: usize) -> ArrayRef {
        match self.packed_key {
            Some(key) if key == column => hash::unhash(self.columns[key].data_type(), &self.key_hashes.all()),
            _ => ArrayRef::clone(&self.columns[column]),
        }
    }

    /// Some columns of the collection.
    pub(crate) fn pick_columns(&self, columns: &[usize]) -> Columns {
        columns.iter().map(|&column| self.column(column)).collect()
    }

    /// All columns that are there: an empty one for a key that is packed.
    pub(crate) fn stored_columns(&self) -> &Columns {
        &self.columns
    }

    /// Whether the key column is packed. Then all keys differ that have different hashes, and none
    /// is NULL.
    pub fn is_packed(&self) -> bool {
        self.packed_key.is_some()
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
    pub(crate) fn to_batch(&self) -> FlatBatch {
        Batch::with_len(self.columns(), self.len(), self.times.clone(), self.diffs.clone()).into()
    }

    pub(crate) fn facts(&self) -> &ChunkFacts {
        &self.facts
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
                let columns = self.slice_columns(rows.start, rows.len());
                words.extend_from_slice(&layout.value_words(&columns, rows.len()).0);
            }
        }
    }

    /// The stored value words.
    pub(crate) fn stored_words(&self) -> Option<&[u64]> {
        self.value_words.as_deref()
    }

    /// The rows from `start` on, sharing memory with this chunk.
    pub(crate) fn tail(self: &Arc<Chunk>, start: usize) -> Arc<Chunk> {
        self.slice(start, self.len() - start)
    }

    /// Some rows, sharing memory with this chunk.
    pub(crate) fn slice(self: &Arc<Chunk>, start: usize, rows: usize) -> Arc<Chunk> {
        if rows == self.len() {
            return Arc::clone(self);
        }
        Arc::new(Chunk {
            columns: self.slice_columns(start, rows),
            packed_key: self.packed_key,
            key_hashes: self.key_hashes.slice(start, rows),
            value_words: self.value_words.as_ref().map(|words| words.slice(start, rows)),
            times: self.times.slice(start, rows),
            diffs: self.diffs.slice(start, rows),
            facts: ChunkFacts {
                size_bytes: self.facts.size_bytes * rows / self.len(),
                retractions: self.facts.retractions * rows / self.len(),
                ..self.facts
            },
        })
    }

    /// The same rows with times before `since` advanced to it, sharing memory. `None` if rows might
    /// become equal by that, or if the times would have to be copied. O(1), or O(rows) where they
    /// have times of their own.
    pub(crate) fn advanced(self: &Arc<Chunk>, layout: &Layout, since: Time) -> Option<Arc<Chunk>> {
        match self.times {
            _ if since <= self.facts.time_min => Some(Arc::clone(self)),
            Times::Column(_) if since < self.facts.time_max || self.has_ties(layout) => None,
            Times::Column(_) | Times::Constant(_) => Some(Arc::new(Chunk {
                columns: self.columns.clone(),
                packed_key: self.packed_key,
                key_hashes: self.key_hashes.clone(),
                value_words: self.value_words.clone(),
                times: Times::Constant(since),
                diffs: self.diffs.clone(),
                facts: ChunkFacts { time_min: since, time_max: since, ..self.facts },
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
    pub(crate) fn until(self: &Arc<Chunk>, layout: &Layout, at: Time) -> Option<Arc<Chunk>> {
        if self.facts.time_max <= at {
            return Some(Arc::clone(self));
        }
        let rows: Vec<u32> = (0..self.len()).filter(|&row| self.times.get(row) <= at).map(|row| row as u32).collect();
        (!rows.is_empty()).then(|| self.pick(layout, &rows))
    }

    /// Some rows, in their order.
    pub(crate) fn pick(&self, layout: &Layout, rows: &[u32]) -> Arc<Chunk> {
        let columns = gather::compact_views(gather::take(&self.columns(), rows));
        let hashes: Vec<u64> = rows.iter().map(|&row| self.key_hashes.at(row as usize)).collect();
        let words = self.value_words.as_ref();
        let rows = ChunkRows {
            hashes: Hashes::new(&hashes, &pick_columns(&columns, &layout.key)),
            words: words.map(|words| rows.iter().map(|&row| words[row as usize]).collect()),
            columns,
            times: self.times.take(rows),
            diffs: self.diffs.take(rows),
            exact: self.facts.exact,
            key_unique: self.facts.key_unique,
        };
        Arc::new(Chunk::new(layout, rows))
    }

    /// The same rows, packed; `None` if they are already, or if that does not pay. O(rows).
    pub(crate) fn packed(&self, layout: &Layout) -> Option<Arc<Chunk>> {
        if self.is_packed() {
            return None;
        }
        let key = layout.invertible_key()?;
        let key_hashes = pack(layout, self.facts.exact, &self.key_hashes.all())?;
        let mut chunk = Chunk {
            columns: leave_out(&self.columns, key),
            packed_key: Some(key),
            key_hashes,
            value_words: self.value_words.clone(),
            times: self.times.clone(),
            diffs: self.diffs.clone(),
            facts: self.facts,
        };
        chunk.facts.size_bytes = chunk.measure_bytes();
        Some(Arc::new(chunk))
    }

    fn slice_columns(&self, start: usize, rows: usize) -> Columns {
        let slice = |(at, column): (usize, &ArrayRef)| match self.packed_key {
            Some(key) if key == at => ArrayRef::clone(column),
            _ => column.slice(start, rows),
        };
        self.columns.iter().enumerate().map(slice).collect()
    }

    fn measure_bytes(&self) -> usize {
        let columns: usize = self.columns.iter().map(|column| column.get_buffer_memory_size()).sum();
        let words = self.value_words.as_ref().map_or(0, |words| 8 * words.len());
        let times = if matches!(self.times, Times::Column(_)) { 8 * self.len() } else { 0 };
        let diffs = if matches!(self.diffs, Diffs::Column(_)) { 8 * self.len() } else { 0 };
        columns + self.key_hashes.size_bytes() + words + times + diffs
    }
}

/// The hashes of rows of which this is known in few bits, if keys can be made of them; `None` where
/// that cannot be, or does not pay.
pub(crate) fn pack(layout: &Layout, exact: Exact, hashes: &[u64]) -> Option<Hashes> {
    if hashes.len() < PACKED_ROWS_MIN || !exact.key || !layout.can_be_packed() {
        return None;
    }
    Packed::new(hashes).map(Hashes::Packed)
}

/// Columns of a packed chunk.
pub(crate) fn leave_out(columns: &[ArrayRef], key: usize) -> Columns {
    let mut columns = columns.to_vec();
    columns[key] = new_empty_array(columns[key].data_type());
    columns.into()
}

/// For each pick `(chunk, row)`, some columns of that row of that chunk.
///
/// # Panics
/// If there is no chunk for a pick, the chunks are of different layouts, or a row is out of bounds.
pub fn gather_rows(chunks: &[Arc<Chunk>], columns: &[usize], picks: &[(u32, u32)]) -> Columns {
    let is_packed = |column: usize| chunks.iter().any(|chunk| chunk.packed_key == Some(column));
    let stored: Vec<usize> = columns.iter().copied().filter(|&column| !is_packed(column)).collect();
    let sources: Vec<Columns> = chunks.iter().map(|chunk| pick_columns(&chunk.columns, &stored)).collect();
    let sources: Vec<&[ArrayRef]> = sources.iter().map(|columns| &**columns).collect();
    let gathered = gather::interleave(&sources, picks);
    if stored.len() == columns.len() {
        return gathered;
    }
    let mut gathered = gathered.iter().map(ArrayRef::clone);
    let column = |&column: &usize| match is_packed(column) {
        true => Some(gather_key(chunks, column, picks)),
        false => gathered.next(),
    };
    columns.iter().map_while(column).collect()
}

/// The key column of picked rows, of chunks of which some are packed.
fn gather_key(chunks: &[Arc<Chunk>], key: usize, picks: &[(u32, u32)]) -> ArrayRef {
    if chunks.iter().all(|chunk| chunk.facts.exact.key) {
        let hashes: Vec<u64> =
            picks.iter().map(|&(chunk, row)| chunks[chunk as usize].key_hashes.at(row as usize)).collect();
        return hash::unhash(chunks[0].columns[key].data_type(), &hashes);
    }
    let sources: Vec<[ArrayRef; 1]> = chunks.iter().map(|chunk| [chunk.column(key)]).collect();
    let sources: Vec<&[ArrayRef]> = sources.iter().map(|column| &column[..]).collect();
    ArrayRef::clone(&gather::interleave(&sources, picks)[0])
}
