//! Merging the rows of one hash that has too many rows to be sorted in one piece.
//!
//! Law: rows come in the layout's order. Rows that equal the row before in all but the diff are
//! summed. Where the hash is of one key, the rows of some thousand neighbouring value words are a
//! block, sorted by radix like the rows of several hashes. Where several keys share the hash, or a
//! word has rows beyond the current chunks, rows are taken one by one.
//!
//! Cost: that of `ordering` for blocks. Row by row: a comparison of words for each run and row, and
//! of columns where words tie. The merge can stop after every block, or row.

use std::cmp::Ordering;
use std::collections::HashMap;
use std::sync::Arc;

use anabranch_batch::Time;
use anabranch_batch::order::Comparator;
use arrow::buffer::ScalarBuffer;

use crate::chunk::Chunk;
use crate::layout::Layout;
use crate::merge::{MergeInput, bound_before};
use crate::ordering::HashBlock;
use crate::pending_rows::{PendingRows, SingleRow};

/// The hash that is being merged row by row.
#[derive(Debug)]
pub(crate) struct OneHashMerge {
    hash: u64,
    /// The row taken last, while rows that equal it may come.
    last: Option<NextRow>,
    /// Value words and comparators, by numbers of sources.
    words: HashMap<u32, ScalarBuffer<u64>>,
    comparators: HashMap<(u32, u32), (Comparator, Comparator)>,
}

/// A row that may be taken next.
#[derive(Clone, Debug)]
struct NextRow {
    chunk: Arc<Chunk>,
    source: u32,
    row: usize,
    word: u64,
    /// Its time, advanced.
    time: Time,
}

/// Rows that are taken one by one before it is looked again whether they can be taken in a block.
const SINGLES: usize = 64;

/// The rows of the hash in the chunk that a input is in.
struct HashRange {
    input: usize,
    source: u32,
    words: ScalarBuffer<u64>,
    row: usize,
    end: usize,
}

impl HashRange {
    /// Rows whose words are before `bound`.
    fn rows_before(&self, bound: Option<u64>) -> usize {
        let words = &self.words[self.row..self.end];
        bound.map_or(words.len(), |bound| words.partition_point(|&word| word < bound))
    }
}

impl OneHashMerge {
    pub fn new(hash: u64) -> OneHashMerge {
        OneHashMerge { hash, last: None, words: HashMap::new(), comparators: HashMap::new() }
    }

    pub fn hash(&self) -> u64 {
        self.hash
    }

    /// Whether rows may come that equal the last one taken.
    pub fn is_open(&self) -> bool {
        self.last.is_some()
    }

    /// Takes about `rows` rows of the hash; fewer when they are all, or when `pending` is full and
    /// can be made into chunks. Returns how many.
    pub fn take(
        &mut self,
        layout: &Layout,
        since: Time,
        inputs: &mut [MergeInput],
        pending: &mut PendingRows,
        rows: usize,
    ) -> usize {
        let block = self.take_block(layout, inputs, pending, rows);
        if block > 0 {
            return block;
        }
        let rows = rows.min(SINGLES);
        for taken in 0..rows {
            let Some((input, next)) = self.least(layout, since, inputs, pending) else { return taken };
            let (by_key, by_row) = self.last.take().map_or((Ordering::Equal, Ordering::Less), |last| {
                let by_key = self.compare_keys(layout, &last, &next);
                (by_key, by_key.then_with(|| self.compare_values(layout, &last, &next)))
            });
            if by_row.is_ne() && pending.is_full() {
                return taken;
            }
            let row = SingleRow {
                pick: (next.source, next.row as u32),
                hash: self.hash,
                word: next.word,
                time: next.time,
                diff: next.chunk.diffs().get(next.row),
            };
            let is_unique = next.chunk.facts().key_unique && by_key.is_eq();
            pending.take_single(row, by_row.is_eq(), is_unique);
            inputs[input].row += 1;
            self.last = Some(next);
        }
        rows
    }

    /// Takes the rows of the next words, about `rows` of them, if all rows of these words are at
    /// hand. Returns how many.
    fn take_block(
        &mut self,
        layout: &Layout,
        inputs: &mut [MergeInput],
        pending: &mut PendingRows,
        rows: usize,
    ) -> usize {
        let Some((ranges, horizon)) = self.ranges(layout, inputs, pending) else { return 0 };
        let Some(first) = ranges.iter().map(|range| range.words[range.row]).min() else { return 0 };
        if self.last.as_ref().is_some_and(|last| last.word >= first) {
            return 0;
        }
        let counts = |bound| ranges.iter().map(|range| range.rows_before(bound)).collect();
        let at = |range: usize, ahead| {
            let range = &ranges[range];
            Some(range.words[range.row + ahead])
        };
        let bound = bound_before(horizon, first, rows, counts, at);
        let mut block = HashBlock::default();
        let mut n_ranges = 0;
        for range in &ranges {
            let taken = range.row..range.row + range.rows_before(bound);
            n_ranges += usize::from(!taken.is_empty());
            block.words.extend_from_slice(&range.words[taken.clone()]);
            block.picks.extend(taken.clone().map(|row| (range.source, row as u32)));
            inputs[range.input].row = taken.end;
        }
        if n_ranges > 0 {
            block.hashes.resize(block.words.len(), self.hash);
            pending.close_single();
            self.last = None;
            pending.take(&block, n_ranges == 1);
        }
        block.words.len()
    }

    /// The rows of the hash in the chunks at hand, and the least word of which there are more
    /// behind them. `None` if equal hashes may be of different keys, which come before words.
    fn ranges(
        &mut self,
        layout: &Layout,
        inputs: &mut [MergeInput],
        pending: &mut PendingRows,
    ) -> Option<(Vec<HashRange>, Option<u64>)> {
        let mut ranges = Vec::with_capacity(inputs.len());
        let mut horizon: Option<u64> = None;
        for (number, input) in inputs.iter_mut().enumerate() {
            if input.next_hash() != Some(self.hash) {
                continue;
            }
            let source = input.source(pending);
            let chunk = input.current()?;
            if !chunk.facts().exact.key {
                return None;
            }
            let end =
                self.hash.checked_add(1).map_or(chunk.len(), |next| chunk.hashes().view().gallop_up(input.row, next));
            let words = self.words.entry(source).or_insert_with(|| chunk.value_words(layout)).clone();
            ranges.push(HashRange { input: number, source, words, row: input.row, end });
            let behind = input.behind().filter(|behind| end == chunk.len() && behind.hashes().at(0) == self.hash);
            if let Some(behind) = behind {
                let mut word = Vec::new();
                behind.append_words(layout, &mut word, 0..1);
                horizon = Some(horizon.map_or(word[0], |least| least.min(word[0])));
            }
        }
        Some((ranges, horizon))
    }

    /// The least of the next rows, and which input it is of.
    fn least(
        &mut self,
        layout: &Layout,
        since: Time,
        inputs: &mut [MergeInput],
        pending: &mut PendingRows,
    ) -> Option<(usize, NextRow)> {
        let mut least: Option<(usize, NextRow)> = None;
        for (number, input) in inputs.iter_mut().enumerate() {
            if input.next_hash() != Some(self.hash) {
                continue;
            }
            let source = input.source(pending);
            let Some(chunk) = input.current() else { continue };
            let words = self.words.entry(source).or_insert_with(|| chunk.value_words(layout));
            let time = chunk.times().get(input.row).max(since);
            let row = NextRow { chunk: Arc::clone(chunk), source, row: input.row, word: words[input.row], time };
            let is_less = least.as_ref().is_none_or(|(_, least)| {
                let by_key = self.compare_keys(layout, &row, least);
                by_key.then_with(|| self.compare_values(layout, &row, least)).is_lt()
            });
            if is_less {
                least = Some((number, row));
            }
        }
        least
    }

    fn compare_keys(&mut self, layout: &Layout, a: &NextRow, b: &NextRow) -> Ordering {
        let is_one = a.source == b.source && a.chunk.facts().key_unique;
        if is_one || a.chunk.facts().exact.and(b.chunk.facts().exact).key {
            return Ordering::Equal;
        }
        self.comparators(layout, a, b).0.compare(a.row, b.row)
    }

    /// By word, value and time.
    fn compare_values(&mut self, layout: &Layout, a: &NextRow, b: &NextRow) -> Ordering {
        let mut order = a.word.cmp(&b.word);
        if order.is_eq() && !a.chunk.facts().exact.and(b.chunk.facts().exact).value {
            order = self.comparators(layout, a, b).1.compare(a.row, b.row);
        }
        order.then_with(|| a.time.cmp(&b.time))
    }

    fn comparators(&mut self, layout: &Layout, a: &NextRow, b: &NextRow) -> &(Comparator, Comparator) {
        self.comparators.entry((a.source, b.source)).or_insert_with(|| {
            let (a, b) = (a.chunk.columns(), b.chunk.columns());
            (layout.key_comparator(&a, &b), layout.value_comparator(&a, &b))
        })
    }
}
