//! The builder: unsorted batches in, sorted runs out.
//!
//! Law: what was pushed is, at any moment, in a sealed run or still held, never both. A run holds exactly the updates with times before
//! its `upper` that no earlier run held.
//!
//! Cost: `push` is O(rows) (hashing, unless the batch is keyed already); `seal` is O(held rows) to split by time, then one
//! scatter and small sorts by two words, and one copy of each cell. Columns are compared only where words tie.

use std::cmp::Ordering;
use std::rc::Rc;

use anabranch_batch::order::Comparator;
use anabranch_batch::{Batch, Diffs, END, Time, Times, equal, gather};
use arrow::array::{ArrayRef, BooleanArray};

use crate::chunk::{CHUNK_ROWS, Chunk, ChunkRows, Exact};
use crate::hashes::Hashes;
use crate::layout::pick_columns;
use crate::pending::{Pending, Source};
use crate::sort::{Entry, sort_entries};
use crate::{Layout, Run};

/// Unsorted batches in, a sorted run out.
#[derive(Debug)]
pub struct Builder {
    layout: Rc<Layout>,
    /// Keyed by the layout's key, without absent rows or lifetimes, not empty; each with its earliest time.
    held: Vec<(Time, Batch)>,
    rows: usize,
}

impl Builder {
    /// A builder that holds nothing.
    pub fn new(layout: Rc<Layout>) -> Builder {
        Builder { layout, held: Vec::new(), rows: 0 }
    }

    /// Takes a batch of rows. Lifetimes are written out as two updates.
    ///
    /// # Panics
    /// If the batch does not have the layout's columns.
    pub fn push(&mut self, batch: Batch) {
        assert_eq!(batch.columns().len(), self.layout.types.len(), "a batch has the columns of its arrangement");
        let batch = batch.with_key(&self.layout.key).flatten();
        if !batch.is_empty() {
            self.rows += batch.len();
            self.held.push((batch.times().min(), batch));
        }
    }

    /// Updates held.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Bytes of the batches held.
    pub fn size_bytes(&self) -> usize {
        self.held.iter().map(|(_, batch)| batch.size_bytes()).sum()
    }

    /// The earliest time among the updates held.
    pub fn min_time(&self) -> Option<Time> {
        self.held.iter().map(|&(time, _)| time).min()
    }

    /// Makes the held updates with times before `upper` a run `[lower, upper)`; holds the rest. The run may be empty.
    ///
    /// # Panics
    /// If an update held is earlier than `lower`.
    pub fn seal(&mut self, lower: Time, upper: Time) -> Run {
        assert!(self.min_time().is_none_or(|time| lower <= time), "no update is earlier than the last sealed upper");
        let due = self.take_before(upper);
        let chunks = match Batch::concat(&due) {
            None => Vec::new(),
            Some(batch) => {
                drop(due);
                sort_batch(&self.layout, batch)
            }
        };
        Run::new(Rc::clone(&self.layout), lower, upper, Time::MIN, chunks)
    }

    fn take_before(&mut self, upper: Time) -> Vec<Batch> {
        let mut due = Vec::new();
        for (min, batch) in std::mem::take(&mut self.held) {
            if upper == END || batch.times().max() < upper {
                due.push(batch);
            } else if upper <= min {
                self.held.push((min, batch));
            } else {
                let is_due: BooleanArray = (0..batch.len()).map(|row| Some(batch.times().get(row) < upper)).collect();
                let is_early = arrow::compute::not(&is_due).expect("negation has no cause to fail");
                let rest = batch.filter(&is_early);
                due.push(batch.filter(&is_due));
                self.held.push((rest.times().min(), rest));
            }
        }
        self.rows = self.held.iter().map(|(_, batch)| batch.len()).sum();
        due
    }
}

/// Sorts and consolidates a keyed batch.
fn sort_batch(layout: &Rc<Layout>, batch: Batch) -> Vec<Rc<Chunk>> {
    let columns = batch.columns().clone();
    let (words, value_exact) = layout.value_words(&columns, batch.len());
    let exact = Exact { key: layout.is_key_exact(&columns), value: value_exact };
    let hashes = &batch.key().expect("the builder keys what it holds").hashes;
    let mut entries = sort_entries(hashes, |row| words[row as usize]);
    let has_ties = entries.windows(2).any(|pair| same_words(&pair[0], &pair[1]));
    let key_unique = sort_ties(layout, &batch, exact, &mut entries, has_ties);
    let source = Source { columns, times: batch.times().clone(), diffs: batch.diffs().clone(), exact };
    if has_ties || has_zeros(batch.diffs()) {
        return copy_sorted(layout, source, &entries, key_unique);
    }
    let chunks = entries.chunks(CHUNK_ROWS);
    chunks.map(|entries| Rc::new(copy_distinct(layout, &source, entries, key_unique))).collect()
}

fn has_zeros(diffs: &Diffs) -> bool {
    match diffs {
        Diffs::Constant(diff) => *diff == 0,
        Diffs::Column(diffs) => diffs.contains(&0),
    }
}

/// Copies rows, in the order of `entries`, no two of which are equal or cancel, into a chunk.
fn copy_distinct(layout: &Layout, source: &Source, entries: &[Entry], key_unique: bool) -> Chunk {
    let rows: Vec<u32> = entries.iter().map(|entry| entry.row).collect();
    let hashes: Vec<u64> = entries.iter().map(|entry| entry.hash).collect();
    let columns = gather::compact_views(gather::take(&source.columns, &rows));
    let keeps_words = !layout.are_words_cheap(source.exact);
    let rows = ChunkRows {
        hashes: Hashes::new(&hashes, &pick_columns(&columns, &layout.key)),
        words: keeps_words.then(|| entries.iter().map(|entry| entry.word).collect()),
        times: source.times.take(&rows).simplify(),
        diffs: source.diffs.take(&rows).simplify(),
        columns,
        exact: source.exact,
        key_unique,
    };
    Chunk::new(layout, rows)
}

/// Puts rows whose words tie in order; `has_ties` if both words of some do. Returns whether equal hashes meant equal keys.
fn sort_ties(layout: &Layout, batch: &Batch, exact: Exact, entries: &mut [Entry], has_ties: bool) -> bool {
    let columns = batch.columns();
    let ties = |exact: bool, of: &[usize], entries: &[Entry], tie: fn(&Entry, &Entry) -> bool| match exact {
        true => Vec::new(),
        false => find_unequal(&pick_columns(columns, of), entries, tie),
    };
    let unequal_keys = ties(exact.key, &layout.key, entries, same_hash);
    let key = (!unequal_keys.is_empty()).then(|| layout.key_comparator(columns, columns));
    let value = (!exact.value).then(|| layout.value_comparator(columns, columns));
    let order = RowOrder { key, value };
    order.sort_groups(entries, same_hash, &unequal_keys);
    if !has_ties {
        return unequal_keys.is_empty();
    }
    let unequal_values = ties(exact.value, &layout.value_columns(), entries, same_words);
    order.sort_groups(entries, same_words, &unequal_values);
    if let Times::Column(times) = batch.times() {
        order.sort_equal_rows_by_time(entries, times);
    }
    unequal_keys.is_empty()
}

fn same_hash(a: &Entry, b: &Entry) -> bool {
    a.hash == b.hash
}

fn same_words(a: &Entry, b: &Entry) -> bool {
    a.hash == b.hash && a.word == b.word
}

/// Entries that tie with the entry before them and yet differ from it in `columns`.
fn find_unequal(columns: &[ArrayRef], entries: &[Entry], tie: fn(&Entry, &Entry) -> bool) -> Vec<usize> {
    let tied: Vec<usize> = (1..entries.len()).filter(|&i| tie(&entries[i - 1], &entries[i])).collect();
    let left: Vec<u32> = tied.iter().map(|&i| entries[i - 1].row).collect();
    let right: Vec<u32> = tied.iter().map(|&i| entries[i].row).collect();
    let equal = equal::rows_equal(columns, &left, columns, &right);
    tied.into_iter().zip(equal).filter(|&(_, equal)| !equal).map(|(i, _)| i).collect()
}

/// The order of rows with equal hashes; `None` where hash or word said it all.
struct RowOrder {
    key: Option<Comparator>,
    value: Option<Comparator>,
}

impl RowOrder {
    fn compare(&self, a: &Entry, b: &Entry) -> Ordering {
        let compare = |columns: &Option<Comparator>| {
            columns.as_ref().map_or(Ordering::Equal, |columns| columns.compare(a.row as usize, b.row as usize))
        };
        compare(&self.key).then(a.word.cmp(&b.word)).then_with(|| compare(&self.value))
    }

    /// Sorts every group of tied entries that holds one of `unequal` (ascending).
    fn sort_groups(&self, entries: &mut [Entry], tie: fn(&Entry, &Entry) -> bool, unequal: &[usize]) {
        let mut sorted_to = 0;
        for &at in unequal {
            if at >= sorted_to {
                let start = at - entries[..at].iter().rev().take_while(|entry| tie(entry, &entries[at])).count();
                sorted_to = at + entries[at..].iter().take_while(|entry| tie(&entries[at], entry)).count();
                entries[start..sorted_to].sort_unstable_by(|a, b| self.compare(a, b));
            }
        }
    }

    /// Sorts rows of equal key and value, which lie side by side, by time.
    fn sort_equal_rows_by_time(&self, entries: &mut [Entry], times: &[Time]) {
        let is_same = |a: &Entry, b: &Entry| same_words(a, b) && self.compare(a, b).is_eq();
        for group in entries.chunk_by_mut(is_same).filter(|group| group.len() > 1) {
            group.sort_unstable_by_key(|entry| times[entry.row as usize]);
        }
    }
}

/// Copies rows, in the order of `entries`, into chunks.
fn copy_sorted(layout: &Rc<Layout>, source: Source, entries: &[Entry], key_unique: bool) -> Vec<Rc<Chunk>> {
    let mut pending = Pending::new(Rc::clone(layout), Time::MIN);
    let number = pending.add_source(source);
    let mut chunks = Vec::new();
    let mut next = 0;
    loop {
        let block = &entries[next..entries.len().min(next + pending.room())];
        for entry in block {
            pending.push((number, entry.row), entry.hash, entry.word);
        }
        next += block.len();
        if next == entries.len() {
            break;
        }
        let settled = pending.settle(key_unique);
        next -= settled.given_back.len();
        chunks.extend(settled.chunk.map(Rc::new));
    }
    chunks.extend(pending.finish(key_unique).map(Rc::new));
    chunks
}
