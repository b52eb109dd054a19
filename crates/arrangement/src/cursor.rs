//! Walking one key's values in order, over all runs: the base of min, max and top-k.
//!
//! Law: values come in the layout's order, each once; the updates of a value, over all runs, are
//! summed by time. Values whose updates cancel are skipped.
//!
//! Cost: `new` O(chunks), `seek` two or three cache lines a run, `seek_from` O(log values) more,
//! `next_value` O(runs) comparisons of words plus the updates of the value. Columns are compared
//! only where words tie and do not say it all. A walk that stops early costs only what it walked.
//! Keys sought in order are located a block at a time, in all runs at once, so that the processor
//! waits for their cache lines together.

use std::cmp::Ordering;
use std::collections::HashMap;
use std::hint::black_box;
use std::ops::Range;
use std::sync::Arc;

use anabranch_batch::order::Comparator;
use anabranch_batch::{Diff, Time};
use arrow::array::ArrayRef;

use crate::chunk::Chunk;
use crate::hashes::Ascending;
use crate::keys::Keys;
use crate::layout::{ASCENDING, Layout, ValueOrder};
use crate::locate::{BLOCK_KEYS, HashSearch, Hit};
use crate::run::Run;

/// Walks values of one key after another. Legal order of calls: `seek`, then `next_value` as often
/// as wanted, `seek` again.
#[derive(Debug)]
pub struct ValueCursor {
    layout: Layout,
    runs: Vec<Arc<Run>>,
    /// All chunks of all runs.
    chunks: Vec<Arc<Chunk>>,
    /// One per part of a run that holds the key: the next row.
    heads: Vec<CursorHead>,
    /// Where the keys of a block are.
    located: Located,
    /// Updates at or after this time are not seen.
    before: Time,
    /// Value comparators of pairs of chunks.
    comparators: HashMap<(u32, u32), Comparator>,
}

/// Where a block of keys is, in all parts of all runs.
#[derive(Default, Debug)]
struct Located {
    /// Number and hash of each key of the block. (A number alone would not do: keys may be others
    /// at the next call.)
    keys: Range<usize>,
    hashes: Vec<u64>,
    /// The heads of key `i` of the block are `heads[starts[i] .. starts[i + 1]]`, in order of runs;
    /// their words are not read yet.
    starts: Vec<usize>,
    heads: Vec<CursorHead>,
    /// What one part holds of the block, and the number of the key of each of `heads` before they
    /// are sorted.
    hits: Vec<Hit>,
    found: Vec<(u32, CursorHead)>,
}

/// The next row of a part.
#[derive(Clone, Copy, Debug)]
struct CursorHead {
    /// Index in the cursor's `chunks`.
    chunk: u32,
    row: u32,
    /// The end of the part in the cursor's `chunks`.
    chunk_end: u32,
    /// The hash of the key.
    hash: u64,
    /// The value word of the row.
    word: u64,
}

/// Comparators kept; more are made again when needed.
const COMPARATORS_MAX: usize = 1 << 12;

impl ValueCursor {
    /// A cursor over `runs`, which are laid out as `layout` says.
    ///
    /// # Panics
    /// If the layout does not sort values.
    pub fn new(layout: &Layout, runs: &[Arc<Run>]) -> ValueCursor {
        assert!(matches!(layout.values, ValueOrder::Sorted(_)), "walking values in order needs values in order");
        ValueCursor {
            layout: layout.clone(),
            runs: runs.to_vec(),
            chunks: runs.iter().flat_map(|run| run.chunks().iter().cloned()).collect(),
            heads: Vec::new(),
            located: Located::default(),
            before: Time::MIN,
            comparators: HashMap::new(),
        }
    }

    /// Moves to the first value of key number `key`, looking at updates with times before `before`.
    pub fn seek(&mut self, keys: &Keys, key: usize, before: Time) {
        self.before = before;
        self.heads.clear();
        if self.comparators.len() > COMPARATORS_MAX {
            self.comparators.clear();
        }
        if !self.located.has(keys, key) {
            self.located.locate(&self.runs, &self.chunks, keys, key);
        }
        for &head in self.located.of(key) {
            self.heads.extend(find_key(&self.layout, &self.chunks, head, keys, key));
        }
    }

    /// Moves to the first value of key number `key` whose word, an order-preserving prefix of its
    /// sort columns, is at least `word`.
    pub fn seek_from(&mut self, keys: &Keys, key: usize, before: Time, word: u64) {
        self.seek(keys, key, before);
        let mut at = 0;
        while at < self.heads.len() {
            match find_word(&self.layout, &self.chunks, self.heads[at], word) {
                Some(head) => {
                    self.heads[at] = head;
                    at += 1;
                }
                None => _ = self.heads.remove(at),
            }
        }
    }

    /// The next value that has updates: where one of its rows lies (index in
    /// [`ValueCursor::chunks`], row); its updates, summed by time and ascending, replace the
    /// contents of `history`. `None` after the last value.
    pub fn next_value(&mut self, history: &mut Vec<(Time, Diff)>) -> Option<(u32, u32)> {
        loop {
            history.clear();
            let first = *self.least_head()?;
            let mut at = 0;
            while at < self.heads.len() {
                if self.take_updates(&first, at, history) {
                    at += 1;
                } else {
                    self.heads.remove(at);
                }
            }
            sum_by_time(history);
            if !history.is_empty() {
                return Some((first.chunk, first.row));
            }
        }
    }

    /// The word of a row: an order-preserving prefix of its sort columns.
    pub fn word(&self, (chunk, row): (u32, u32)) -> u64 {
        self.chunks[chunk as usize].stored_words().expect("sorted values store their words")[row as usize]
    }

    /// The chunks that positions refer to.
    pub fn chunks(&self) -> &[Arc<Chunk>] {
        &self.chunks
    }

    /// For each chunk that places refer to, all its columns. (Chunks in order of values are not
    /// packed.)
    pub fn sources(&self) -> Vec<&[ArrayRef]> {
        self.chunks.iter().map(|chunk| &**chunk.stored_columns()).collect()
    }

    fn least_head(&mut self) -> Option<&CursorHead> {
        let mut least = 0;
        for at in 1..self.heads.len() {
            if self.compare(self.heads[at], self.heads[least]).is_lt() {
                least = at;
            }
        }
        self.heads.get(least)
    }

    /// Moves head `at` over the rows with the value of `first`, and appends their updates. Returns
    /// whether rows of the key remain.
    fn take_updates(&mut self, first: &CursorHead, at: usize, history: &mut Vec<(Time, Diff)>) -> bool {
        let mut head = self.heads[at];
        let is_first = (head.chunk, head.row) == (first.chunk, first.row);
        let mut is_equal = is_first || self.compare(head, *first).is_eq();
        while is_equal {
            let chunk = &self.chunks[head.chunk as usize];
            let time = chunk.times().get(head.row as usize);
            if time < self.before {
                history.push((time, chunk.diffs().get(head.row as usize)));
            }
            let Some(next) = next_row(&self.layout, &self.chunks, head) else { return false };
            is_equal = self.compare(next, *first).is_eq();
            head = next;
        }
        self.heads[at] = head;
        true
    }

    /// Compares the values of two rows.
    fn compare(&mut self, left: CursorHead, right: CursorHead) -> Ordering {
        let by_word = left.word.cmp(&right.word);
        let (a, b) = (&self.chunks[left.chunk as usize], &self.chunks[right.chunk as usize]);
        if by_word.is_ne() || a.facts().exact.and(b.facts().exact).value {
            return by_word;
        }
        let layout = &self.layout;
        let comparator = self
            .comparators
            .entry((left.chunk, right.chunk))
            .or_insert_with(|| layout.value_comparator(&a.columns(), &b.columns()));
        comparator.compare(left.row as usize, right.row as usize)
    }
}

impl Located {
    fn has(&self, keys: &Keys, key: usize) -> bool {
        self.keys.contains(&key) && self.hashes[key - self.keys.start] == keys.hashes()[key]
    }

    /// First rows with the hash of `key`, one a part that has it.
    fn of(&self, key: usize) -> &[CursorHead] {
        let key = key - self.keys.start;
        &self.heads[self.starts[key]..self.starts[key + 1]]
    }

    /// Locates the block of keys that starts at `key`.
    fn locate(&mut self, runs: &[Arc<Run>], chunks: &[Arc<Chunk>], keys: &Keys, key: usize) {
        self.keys = key..keys.len().min(key + BLOCK_KEYS);
        self.hashes.clear();
        self.hashes.extend_from_slice(&keys.hashes()[self.keys.clone()]);
        let mut searches = searches(runs, keys.len());
        searches.iter_mut().for_each(|(_, _, search)| search.start(&self.hashes));
        searches.iter_mut().for_each(|(_, _, search)| search.refine(&self.hashes));
        self.found.clear();
        for (start, chunk_end, search) in &mut searches {
            self.hits.clear();
            search.finish(&self.hashes, &mut self.hits);
            self.found.extend(self.hits.iter().map(|hit| {
                let hash = self.hashes[hit.key as usize];
                (hit.key, CursorHead { chunk: *start + hit.chunk, row: hit.row, chunk_end: *chunk_end, hash, word: 0 })
            }));
        }
        // Fetches what the walk reads first.
        black_box(self.found.iter().fold(0, |sum, (_, head)| sum ^ read_word(chunks, *head)));
        self.sort_found();
    }

    /// Sorts what was found by key; rows of one key stay in order of runs (a counting sort).
    fn sort_found(&mut self) {
        self.starts.clear();
        self.starts.resize(self.hashes.len() + 1, 0);
        self.found.iter().for_each(|&(key, _)| self.starts[key as usize + 1] += 1);
        for key in 0..self.hashes.len() {
            self.starts[key + 1] += self.starts[key];
        }
        let Some(&(_, first)) = self.found.first() else { return self.heads.clear() };
        self.heads.clear();
        self.heads.resize(self.found.len(), first);
        for &(key, head) in self.found.iter().rev() {
            // (Counting down from the end of each key; the ends become starts.)
            self.starts[key as usize + 1] -= 1;
            self.heads[self.starts[key as usize + 1]] = head;
        }
        self.starts.remove(0);
        self.starts.push(self.found.len());
    }
}

/// A search in each part: index of its first chunk among all chunks, of the chunk after its last,
/// and the search.
fn searches(runs: &[Arc<Run>], n_keys: usize) -> Vec<(u32, u32, HashSearch<'_>)> {
    let mut offset = 0;
    let mut searches = Vec::new();
    for run in runs {
        for part in run.parts() {
            let start = offset + part.start as u32;
            let search = HashSearch::new(part, part.rows / n_keys.max(1));
            searches.push((start, start + part.hashes.len() as u32, search));
        }
        offset += run.chunks().len() as u32;
    }
    searches
}

/// The first row with the key, starting at the first row with its hash.
fn find_key(layout: &Layout, chunks: &[Arc<Chunk>], head: CursorHead, keys: &Keys, key: usize) -> Option<CursorHead> {
    let mut head = with_word(chunks, head);
    loop {
        let chunk = &chunks[head.chunk as usize];
        if keys.is_exact() && chunk.facts().exact.key {
            return Some(head);
        }
        let columns = chunk.pick_columns(&layout.key);
        let comparator = Comparator::new(keys.columns(), &columns, &vec![ASCENDING; layout.key.len()]);
        let same_hash = chunk.hashes().view().count_equal(head.row as usize, head.hash) as u32;
        let found = (head.row..head.row + same_hash).find(|&row| comparator.compare(key, row as usize).is_eq());
        if let Some(row) = found {
            return Some(with_word(chunks, CursorHead { row, ..head }));
        }
        head.row += same_hash - 1;
        head = next_with_hash(chunks, head)?;
    }
}

/// The first row of the head's key, from the head on, whose word is at least `word`.
fn find_word(layout: &Layout, chunks: &[Arc<Chunk>], mut head: CursorHead, word: u64) -> Option<CursorHead> {
    while head.word < word {
        let chunk = &chunks[head.chunk as usize];
        // Where a hash is one key, its words ascend.
        if chunk.facts().exact.key || chunk.facts().key_unique {
            let hashes = chunk.hashes().view();
            let words = chunk.stored_words().expect("sorted values store their words");
            let is_before = |row: usize| hashes.at(row) == head.hash && words[row] < word;
            head.row = last_of(head.row as usize, chunk.len(), is_before) as u32;
        }
        head = next_row(layout, chunks, head)?;
    }
    Some(head)
}

/// The last row that `holds`, galloping: `start` does, and those that do come before those that do
/// not.
fn last_of(start: usize, end: usize, holds: impl Fn(usize) -> bool) -> usize {
    let (mut last, mut step) = (start, 1);
    while last + step < end && holds(last + step) {
        last += step;
        step *= 2;
    }
    while step > 0 {
        if last + step < end && holds(last + step) {
            last += step;
        }
        step /= 2;
    }
    last
}

/// The row after, if it has the same key.
fn next_row(layout: &Layout, chunks: &[Arc<Chunk>], head: CursorHead) -> Option<CursorHead> {
    let next = next_with_hash(chunks, head)?;
    let (a, b) = (&chunks[head.chunk as usize], &chunks[next.chunk as usize]);
    let is_known = a.facts().exact.and(b.facts().exact).key || (head.chunk == next.chunk && a.facts().key_unique);
    let is_same = is_known
        || layout.key_comparator(&a.columns(), &b.columns()).compare(head.row as usize, next.row as usize).is_eq();
    is_same.then_some(next)
}

/// The row after, if its key has the same hash.
fn next_with_hash(chunks: &[Arc<Chunk>], head: CursorHead) -> Option<CursorHead> {
    let mut next = CursorHead { row: head.row + 1, ..head };
    if next.row as usize == chunks[head.chunk as usize].len() {
        next = CursorHead { row: 0, chunk: head.chunk + 1, ..head };
    }
    let has_hash =
        next.chunk < next.chunk_end && chunks[next.chunk as usize].hashes().at(next.row as usize) == head.hash;
    has_hash.then(|| with_word(chunks, next))
}

fn with_word(chunks: &[Arc<Chunk>], head: CursorHead) -> CursorHead {
    CursorHead { word: read_word(chunks, head), ..head }
}

fn read_word(chunks: &[Arc<Chunk>], head: CursorHead) -> u64 {
    chunks[head.chunk as usize].stored_words().expect("sorted values store their words")[head.row as usize]
}

fn sum_by_time(history: &mut Vec<(Time, Diff)>) {
    history.sort_unstable_by_key(|&(time, _)| time);
    history.dedup_by(|later, earlier| {
        let is_same = later.0 == earlier.0;
        if is_same {
            earlier.1 += later.1;
        }
        is_same
    });
    history.retain(|&(_, diff)| diff != 0);
}
