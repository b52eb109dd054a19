//! The pairs of looked-up rows with the rows of an index, in portions.

use std::collections::VecDeque;

use anabranch_arrangement::Footprint;
use anabranch_batch::{Batch, Diff, Diffs};

use super::key_index::{KeyIndex, Met};

/// Pairs of one portion, at most.
const PAIRS_MAX: usize = 1 << 16;

/// Batches that are looked up in an index, and how far that is.
#[derive(Debug)]
pub(in crate::relational) struct LookUps {
    pub index: KeyIndex,
    /// Key columns of what is looked up.
    key: Vec<usize>,
    waiting: VecDeque<Batch>,
    crossing: Option<Crossing>,
}

/// A batch that is looked up, and how far its pairs are made.
#[derive(Debug)]
struct Crossing {
    batch: Batch,
    met: Met,
    /// Number among what met,
    next: usize,
    /// and among the rows of its key.
    next_row: usize,
}

/// Some pairs: rows of a batch, and rows of the index.
#[derive(Debug, Default)]
pub(in crate::relational) struct Pairs {
    pub rows: Vec<u32>,
    pub indexed: Vec<u32>,
}

/// A batch, and one of its rows for each pair.
pub(in crate::relational) type Side<'a> = (&'a Batch, &'a [u32]);

/// The diff of each pair.
pub(in crate::relational) fn products([one, other]: [Side<'_>; 2]) -> Diffs {
    if let (Diffs::Constant(one), Diffs::Constant(other)) = (one.0.diffs(), other.0.diffs()) {
        return Diffs::Constant(one * other);
    }
    let products = one.1.iter().zip(other.1);
    let products = products.map(|(&a, &b)| one.0.diffs().get(a as usize) * other.0.diffs().get(b as usize));
    Diffs::Column(products.collect::<Vec<Diff>>().into()).simplify()
}

impl LookUps {
    pub fn new(index: KeyIndex, key: &[usize], batches: Vec<Batch>) -> LookUps {
        LookUps { index, key: key.to_vec(), waiting: batches.into(), crossing: None }
    }

    /// Whether all is looked up.
    pub fn is_over(&self) -> bool {
        self.waiting.is_empty() && self.crossing.is_none()
    }

    /// What the next batches meet, of some `rows` rows.
    pub fn meet_some(&mut self, rows: usize, mut take: impl FnMut(&KeyIndex, Batch, Met)) {
        let mut n_rows = 0;
        while n_rows < rows
            && let Some(batch) = self.waiting.pop_front()
        {
            n_rows += batch.len();
            let batch = batch.with_key(&self.key);
            let met = self.index.meet(&batch, &self.key);
            take(&self.index, batch, met);
        }
    }

    /// The next pairs, of some `rows` rows and pairs, in portions. A batch is told to be done with
    /// the last portion of its pairs, which may be empty.
    pub fn pair_some(&mut self, rows: usize, mut take: impl FnMut(&KeyIndex, &Batch, &Pairs, bool)) {
        let mut n_rows = 0;
        while n_rows < rows {
            let Some(mut crossing) = self.crossing.take().or_else(|| self.next_crossing(&mut n_rows)) else { return };
            let pairs = crossing.pairs(&self.index);
            n_rows += pairs.rows.len();
            let is_done = crossing.next == crossing.met.rows.len();
            take(&self.index, &crossing.batch, &pairs, is_done);
            self.crossing = (!is_done).then_some(crossing);
        }
    }

    fn next_crossing(&mut self, n_rows: &mut usize) -> Option<Crossing> {
        let batch = self.waiting.pop_front()?.with_key(&self.key);
        *n_rows += batch.len();
        let met = self.index.meet(&batch, &self.key);
        Some(Crossing { batch, met, next: 0, next_row: 0 })
    }

    pub fn size_bytes(&self) -> usize {
        let crossing = self.crossing.iter().map(|crossing| &crossing.batch);
        Footprint::bytes_of(self.waiting.iter().chain(crossing)) + self.index.size_bytes()
    }
}

impl Crossing {
    fn pairs(&mut self, index: &KeyIndex) -> Pairs {
        let mut pairs = Pairs::default();
        while self.next < self.met.rows.len() && pairs.rows.len() < PAIRS_MAX {
            let rows = &index.rows_of(self.met.keys[self.next])[self.next_row..];
            let taken = &rows[..rows.len().min(PAIRS_MAX - pairs.rows.len())];
            pairs.indexed.extend_from_slice(taken);
            pairs.rows.extend(std::iter::repeat_n(self.met.rows[self.next], taken.len()));
            match taken.len() == rows.len() {
                true => (self.next, self.next_row) = (self.next + 1, 0),
                false => self.next_row += taken.len(),
            }
        }
        pairs
    }
}
