//! How many runs a spine may have: what look-ups and insertions ask of it.
//!
//! Law: only how many runs are merged at once follows from it, never what they accumulate to. Cost:
//! two additions an insertion or look-up.

use std::cell::Cell;

/// Least number of neighbours that insertions merge, where keys are looked up as often as rows come
/// in.
const DUE_RUNS_MIN: usize = 4;
/// Least number of neighbours that insertions merge, where keys are looked up seldom.
const DUE_RUNS_SELDOM: usize = 8;
/// With fewer rows in all, memory is no reason to merge.
const SHRUNK_ROWS_MIN: usize = 1 << 12;
/// Runs merged at once, at most.
pub(crate) const MERGED_RUNS_MAX: usize = 16;

/// What was asked of a spine lately, beside what came in.
#[derive(Debug, Default)]
pub(crate) struct Demand {
    /// Keys looked up, and rows inserted; the last few insertions count most.
    lookups: Cell<usize>,
    inserted: usize,
    /// The last merge left much less than it was given.
    shrinks: bool,
}

impl Demand {
    /// Keys were looked up, in every run.
    pub fn look_up(&self, keys: usize) {
        self.lookups.set(self.lookups.get() + keys);
    }

    /// Rows came in.
    pub fn insert(&mut self, rows: usize) {
        let fade = |count: usize| count - count / 8;
        self.inserted = fade(self.inserted) + rows;
        self.lookups.set(fade(self.lookups.get()));
    }

    /// A merge has made so many rows of so many.
    pub fn merged(&mut self, from: usize, to: usize) {
        self.shrinks = to < from / 4 * 3;
    }

    /// Runs of about the same size that are worth merging. Where `c` is the cost of a look-up in a
    /// run, half that of a row merged, and there are `l` look-ups for each row, that is the `n`
    /// with the least `(2 + l (n - 1) / 2) / ln n`. But where merging gives back memory worth it,
    /// of a spine of so many rows, it is worth more.
    pub fn due_runs(&self, rows: usize) -> usize {
        let lookups = self.lookups.get();
        match self.inserted {
            _ if self.shrinks && rows > SHRUNK_ROWS_MIN => DUE_RUNS_MIN,
            inserted if lookups < inserted / 8 => MERGED_RUNS_MAX,
            inserted if lookups < inserted / 2 => DUE_RUNS_SELDOM,
            _ => DUE_RUNS_MIN,
        }
    }
}
