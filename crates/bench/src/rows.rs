//! Generated rows: the same numbers for both sides, in the form each likes best.

use std::sync::Arc;

use anabranch_batch::{Batch, Diffs, Time, Times};
use arrow::array::{ArrayRef, UInt64Array};

/// An update of the peer: data, time, diff.
pub type PeerRow<D, R = isize> = (D, u64, R);

/// Which times the rows of a batch have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum TimesOf {
    /// One time a batch.
    Batch,
    /// Every row its own.
    Row,
}

/// Random numbers below `bound`, from one seed: the finaliser of splitmix64.
pub struct Numbers {
    state: u64,
    bound: u64,
}

impl Numbers {
    pub fn new(seed: u64, bound: u64) -> Numbers {
        Numbers { state: seed.wrapping_mul(0x9e37_79b9_7f4a_7c15), bound }
    }

    /// A number that differs after each draw.
    pub fn serial(&self) -> u64 {
        self.state
    }
}

impl Iterator for Numbers {
    type Item = u64;

    fn next(&mut self) -> Option<u64> {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.state ^ (self.state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        let mixed = mixed ^ (mixed >> 31);
        Some(((u128::from(mixed) * u128::from(self.bound)) >> 64) as u64)
    }
}

/// Random pairs of a key and a value.
pub struct Pairs {
    pub keys: Numbers,
    pub values: Numbers,
}

impl Pairs {
    pub fn new(key_bound: u64, value_bound: u64) -> Pairs {
        Pairs { keys: Numbers::new(1, key_bound), values: Numbers::new(2, value_bound) }
    }

    pub fn take_rows(&mut self, rows: usize) -> Vec<(u64, u64)> {
        self.keys.by_ref().zip(self.values.by_ref()).take(rows).collect()
    }
}

/// The batch of one round, as we take it: columns of keys and values.
pub fn batch(rows: &[(u64, u64)], start: Time, times: TimesOf) -> Batch {
    let column = |cell: fn(&(u64, u64)) -> u64| Arc::new(UInt64Array::from_iter_values(rows.iter().map(cell)));
    let columns: Vec<ArrayRef> = vec![column(|row| row.0), column(|row| row.1)];
    let times = match times {
        TimesOf::Batch => Times::Constant(start),
        TimesOf::Row => Times::Column((start..start + rows.len() as Time).collect()),
    };
    Batch::new(columns, times, Diffs::Constant(1))
}

/// The batch of one round, as the peer takes it.
pub fn peer_rows<D, R>(
    rows: &[(u64, u64)],
    start: u64,
    times: TimesOf,
    update: impl Fn(u64, u64) -> (D, R),
) -> Vec<PeerRow<D, R>> {
    let time = |row: usize| if times == TimesOf::Row { start + row as u64 } else { start };
    let row = |(row, &(key, value)): (usize, &(u64, u64))| {
        let (data, diff) = update(key, value);
        (data, time(row), diff)
    };
    rows.iter().enumerate().map(row).collect()
}

/// How much time a round takes up: later rounds start after it.
pub fn ticks(rows: usize, times: TimesOf) -> u64 {
    if times == TimesOf::Row { rows as u64 } else { 1 }
}

/// How many rounds are generated before the clock goes on: their rows fit the caches no worse than
/// one batch of 100,000.
pub fn rounds_ahead(batch_rows: usize) -> usize {
    (100_000 / batch_rows).max(1)
}
