//! Merging the rows of one hash, of which there are too many to be sorted in one piece.
//!
//! Law: rows come in the layout's order; those that equal the row before in all but the diff are summed. Where the hash is of one key, the rows of some
//! thousand neighbouring words are a block, sorted by radix as those of some hashes are. Where it is of several, or a word has rows beyond the chunks at hand,
//! rows are taken one by one. Cost: that of `ordering`; one by one a comparison of words for each run and row, of columns where words tie.
//! It can be stopped after every block, or row.

use std::cmp::Ordering;
use std::collections::HashMap;
use std::sync::Arc;

use anabranch_batch::Time;
use anabranch_batch::order::Comparator;
use arrow::buffer::ScalarBuffer;

use crate::merge::{Side, bound_before};
use crate::ordering::Block;
use crate::pending::{Pending, Single};
use crate::{Chunk, Layout};

/// The hash that is being merged row by row.
#[derive(Debug)]
pub(crate) struct Knot {
    hash: u64,
    /// The row taken last, while rows that equal it may come.
    last: Option<Row>,
    /// Value words and comparators, by numbers of sources.
    words: HashMap<u32, ScalarBuffer<u64>>,
    comparators: HashMap<(u32, u32), (Comparator, Comparator)>,
}

/// A row that may be taken next.
#[derive(Clone, Debug)]
struct Row {
    chunk: Arc<Chunk>,
    source: u32,
    row: usize,
    word: u64,
    /// Its time, advanced.
    time: Time,
}

/// Rows that are taken one by one before it is looked again whether they can be taken in a block.
const SINGLES: usize = 64;

/// The rows of the hash in the chunk that a side is in.
struct Stretch {
    side: usize,
    source: u32,
    words: ScalarBuffer<u64>,
    row: usize,
    end: usize,
}

impl Stretch {
    /// Rows whose words are before `bound`.
    fn rows_before(&self, bound: Option<u64>) -> usize {
        let words = &self.words[self.row..self.end];
        bound.map_or(words.len(), |bound| words.partition_point(|&word| word < bound))
    }
}

impl Knot {
    pub fn new(hash: u64) -> Knot {
        Knot { hash, last: None, words: HashMap::new(), comparators: HashMap::new() }
    }

    pub fn hash(&self) -> u64 {
        self.hash
    }

    /// Whether rows may come that equal the last one taken.
    pub fn is_open(&self) -> bool {
        self.last.is_some()
    }

    /// Takes about `rows` rows of the hash; fewer when they are all, or when `pending` is full and can be made into chunks. Returns how many.
    pub fn take(
        &mut self,
        layout: &Layout,
        since: Time,
        sides: &mut [Side],
        pending: &mut Pending,
        rows: usize,
    ) -> usize {
        let block = self.take_block(layout, sides, pending, rows);
        if block > 0 {
            return block;
        }
        let rows = rows.min(SINGLES);
        for taken in 0..rows {
            let Some((side, next)) = self.least(layout, since, sides, pending) else { return taken };
            let (by_key, by_row) = self.last.take().map_or((Ordering::Equal, Ordering::Less), |last| {
                let by_key = self.compare_keys(layout, &last, &next);
                (by_key, by_key.then_with(|| self.compare_values(layout, &last, &next)))
            });
            if by_row.is_ne() && pending.is_full() {
                return taken;
            }
            let row = Single {
                pick: (next.source, next.row as u32),
                hash: self.hash,
                word: next.word,
                time: next.time,
                diff: next.chunk.diffs().get(next.row),
            };
            let is_unique = next.chunk.facts().key_unique && by_key.is_eq();
            pending.take_single(row, by_row.is_eq(), is_unique);
            sides[side].row += 1;
            self.last = Some(next);
        }
        rows
    }

    /// Takes the rows of the next words, about `rows` of them, if all rows of these words are at hand. Returns how many.
    fn take_block(&mut self, layout: &Layout, sides: &mut [Side], pending: &mut Pending, rows: usize) -> usize {
        let Some((stretches, horizon)) = self.stretches(layout, sides, pending) else { return 0 };
        let Some(first) = stretches.iter().map(|stretch| stretch.words[stretch.row]).min() else { return 0 };
        if self.last.as_ref().is_some_and(|last| last.word >= first) {
            return 0;
        }
        let counts = |bound| stretches.iter().map(|stretch| stretch.rows_before(bound)).collect();
        let at = |stretch: usize, ahead| {
            let stretch = &stretches[stretch];
            Some(stretch.words[stretch.row + ahead])
        };
        let bound = bound_before(horizon, first, rows, counts, at);
        let mut block = Block::default();
        let mut n_ranges = 0;
        for stretch in &stretches {
            let taken = stretch.row..stretch.row + stretch.rows_before(bound);
            n_ranges += usize::from(!taken.is_empty());
            block.words.extend_from_slice(&stretch.words[taken.clone()]);
            block.picks.extend(taken.clone().map(|row| (stretch.source, row as u32)));
            sides[stretch.side].row = taken.end;
        }
        if n_ranges > 0 {
            block.hashes.resize(block.words.len(), self.hash);
            pending.close_single();
            self.last = None;
            pending.take(&block, n_ranges == 1);
        }
        block.words.len()
    }

    /// The rows of the hash in the chunks at hand, and the least word of which there are more behind them. `None` if equal hashes may be of different keys,
    /// which come before words.
    fn stretches(
        &mut self,
        layout: &Layout,
        sides: &mut [Side],
        pending: &mut Pending,
    ) -> Option<(Vec<Stretch>, Option<u64>)> {
        let mut stretches = Vec::with_capacity(sides.len());
        let mut horizon: Option<u64> = None;
        for (number, side) in sides.iter_mut().enumerate() {
            if side.next_hash() != Some(self.hash) {
                continue;
            }
            let source = side.source(pending);
            let chunk = side.current()?;
            if !chunk.facts().exact.key {
                return None;
            }
            let end =
                self.hash.checked_add(1).map_or(chunk.len(), |next| chunk.hashes().view().gallop_up(side.row, next));
            let words = self.words.entry(source).or_insert_with(|| chunk.value_words(layout)).clone();
            stretches.push(Stretch { side: number, source, words, row: side.row, end });
            let behind = side.behind().filter(|behind| end == chunk.len() && behind.hashes().at(0) == self.hash);
            if let Some(behind) = behind {
                let mut word = Vec::new();
                behind.append_words(layout, &mut word, 0..1);
                horizon = Some(horizon.map_or(word[0], |least| least.min(word[0])));
            }
        }
        Some((stretches, horizon))
    }

    /// The least of the next rows, and which side it is of.
    fn least(
        &mut self,
        layout: &Layout,
        since: Time,
        sides: &mut [Side],
        pending: &mut Pending,
    ) -> Option<(usize, Row)> {
        let mut least: Option<(usize, Row)> = None;
        for (number, side) in sides.iter_mut().enumerate() {
            if side.next_hash() != Some(self.hash) {
                continue;
            }
            let source = side.source(pending);
            let Some(chunk) = side.current() else { continue };
            let words = self.words.entry(source).or_insert_with(|| chunk.value_words(layout));
            let time = chunk.times().get(side.row).max(since);
            let row = Row { chunk: Arc::clone(chunk), source, row: side.row, word: words[side.row], time };
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

    fn compare_keys(&mut self, layout: &Layout, a: &Row, b: &Row) -> Ordering {
        let is_one = a.source == b.source && a.chunk.facts().key_unique;
        if is_one || a.chunk.facts().exact.and(b.chunk.facts().exact).key {
            return Ordering::Equal;
        }
        self.comparators(layout, a, b).0.compare(a.row, b.row)
    }

    /// By word, value and time.
    fn compare_values(&mut self, layout: &Layout, a: &Row, b: &Row) -> Ordering {
        let mut order = a.word.cmp(&b.word);
        if order.is_eq() && !a.chunk.facts().exact.and(b.chunk.facts().exact).value {
            order = self.comparators(layout, a, b).1.compare(a.row, b.row);
        }
        order.then_with(|| a.time.cmp(&b.time))
    }

    fn comparators(&mut self, layout: &Layout, a: &Row, b: &Row) -> &(Comparator, Comparator) {
        self.comparators.entry((a.source, b.source)).or_insert_with(|| {
            let (a, b) = (a.chunk.columns(), b.chunk.columns());
            (layout.key_comparator(&a, &b), layout.value_comparator(&a, &b))
        })
    }
}
