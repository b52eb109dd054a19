//! The builder: unsorted batches in, sorted runs out.
//!
//! Law: what was pushed is, at any moment, in a sealed run or still held, never both. A run holds exactly the updates with times before
//! its `upper` that no earlier run held.
//!
//! Cost: `push` is O(rows) (hashing, unless the batch is keyed already); `seal` is O(held rows) to split by time, then one
//! scatter and small sorts by two words, and one copy of each cell. Columns are compared only where words tie.

use std::rc::Rc;

use anabranch_batch::{Batch, END, Time, Times, equal};
use arrow::array::{ArrayRef, BooleanArray};

use crate::chunk::{Chunk, Exact};
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
    let entries = hashes.iter().zip(&words).enumerate().map(|(row, (&hash, &word))| Entry { hash, word, row: row as u32 });
    let mut entries = sort_entries(entries.collect());
    let key_unique = sort_ties(layout, &batch, exact, &mut entries);
    let source = Source { columns, times: batch.times().clone(), diffs: batch.diffs().clone(), exact };
    copy_sorted(layout, source, &entries, key_unique)
}

/// Puts rows whose words tie in order. Returns whether equal hashes meant equal keys.
fn sort_ties(layout: &Layout, batch: &Batch, exact: Exact, entries: &mut [Entry]) -> bool {
    let same_hash = |a: &Entry, b: &Entry| a.hash == b.hash;
    let same_words = |a: &Entry, b: &Entry| a.hash == b.hash && a.word == b.word;
    let columns = batch.columns();
    let key_unique = exact.key || {
        let unequal = find_unequal(&pick_columns(columns, &layout.key), entries, same_hash);
        sort_unequal(layout, batch, entries, same_hash, &unequal)
    };
    if !exact.value {
        let unequal = find_unequal(&pick_columns(columns, &layout.value_columns()), entries, same_words);
        sort_unequal(layout, batch, entries, same_words, &unequal);
    }
    if matches!(batch.times(), Times::Column(_)) {
        sort_equal_by_time(layout, batch, exact, entries);
    }
    key_unique
}

/// Entries that tie with the entry before them and yet differ from it in `columns`.
fn find_unequal(columns: &[ArrayRef], entries: &[Entry], ties: impl Fn(&Entry, &Entry) -> bool) -> Vec<usize> {
    let tied: Vec<usize> = (1..entries.len()).filter(|&i| ties(&entries[i - 1], &entries[i])).collect();
    let left: Vec<u32> = tied.iter().map(|&i| entries[i - 1].row).collect();
    let right: Vec<u32> = tied.iter().map(|&i| entries[i].row).collect();
    let equal = equal::rows_equal(columns, &left, columns, &right);
    tied.into_iter().zip(equal).filter(|&(_, equal)| !equal).map(|(i, _)| i).collect()
}

/// Sorts, on the columns, every group of tied entries that holds an unequal one. Returns whether there was none.
fn sort_unequal(layout: &Layout, batch: &Batch, entries: &mut [Entry], ties: impl Fn(&Entry, &Entry) -> bool, unequal: &[usize]) -> bool {
    let columns = batch.columns();
    let mut sorted_to = 0;
    for &at in unequal {
        if at < sorted_to {
            continue;
        }
        let start = at - entries[..at].iter().rev().take_while(|entry| ties(entry, &entries[at])).count();
        sorted_to = at + entries[at..].iter().take_while(|entry| ties(&entries[at], entry)).count();
        let key = layout.key_comparator(columns, columns);
        let value = layout.value_comparator(columns, columns);
        entries[start..sorted_to].sort_unstable_by(|a, b| {
            let (i, j) = (a.row as usize, b.row as usize);
            let by_key = key.compare(i, j);
            by_key.then_with(|| a.word.cmp(&b.word)).then_with(|| value.compare(i, j))
        });
    }
    unequal.is_empty()
}

/// Sorts rows of equal key and value by time.
fn sort_equal_by_time(layout: &Layout, batch: &Batch, exact: Exact, entries: &mut [Entry]) {
    let times = batch.times();
    let all = exact == Exact { key: true, value: true };
    let columns = batch.columns();
    let mut start = 0;
    let mut same: Option<_> = None;
    while start < entries.len() {
        let head = entries[start];
        let ties = entries[start + 1..].iter().take_while(|entry| entry.hash == head.hash && entry.word == head.word).count();
        if ties == 0 {
            start += 1;
            continue;
        }
        let mut end = start + 1 + ties;
        if !all {
            let (key, value) = same.get_or_insert_with(|| (layout.key_comparator(columns, columns), layout.value_comparator(columns, columns)));
            let is_same = |entry: &&Entry| {
                let (i, j) = (head.row as usize, entry.row as usize);
                key.compare(i, j).is_eq() && value.compare(i, j).is_eq()
            };
            end = start + 1 + entries[start + 1..end].iter().take_while(is_same).count();
        }
        entries[start..end].sort_unstable_by_key(|entry| times.get(entry.row as usize));
        start = end;
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
