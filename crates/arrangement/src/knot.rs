//! Merging the rows of one hash one by one: there are too many of them to be sorted in one piece.
//!
//! Law: rows come in the layout's order; those that equal the row before in all but the diff are summed. Cost: a comparison of words for
//! each run and row; of columns where words tie. It can be stopped after every row.

use std::cmp::Ordering;
use std::collections::HashMap;
use std::rc::Rc;

use anabranch_batch::Time;
use anabranch_batch::order::Comparator;
use arrow::buffer::ScalarBuffer;

use crate::merge::Side;
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
    chunk: Rc<Chunk>,
    source: u32,
    row: usize,
    word: u64,
    /// Its time, advanced.
    time: Time,
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

    /// Takes up to `rows` rows of the hash; fewer when they are all, or when `pending` is full and can be made into chunks. Returns how many.
    pub fn take(
        &mut self,
        layout: &Layout,
        since: Time,
        sides: &mut [Side],
        pending: &mut Pending,
        rows: usize,
    ) -> usize {
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
            let row = Row { chunk: Rc::clone(chunk), source, row: side.row, word: words[side.row], time };
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
            (layout.key_comparator(a, b), layout.value_comparator(a, b))
        })
    }
}
