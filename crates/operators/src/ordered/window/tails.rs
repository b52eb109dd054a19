//! The ends of partitions, and which changes are rows behind them.
//!
//! Law: a tail is there for a partition only if its rows are those that the trace shows. A change
//! that is no row behind the others takes the partition's tail away.
//!
//! Only partitions of many rows have tails: all rows of others are looked at as quickly.

use std::cmp::Ordering;

use anabranch_arrangement::Floor;
use anabranch_batch::{Batch, gather};
use arrow::array::ArrayRef;

use super::row_order::RowOrder;
use super::spec::WindowSpec;
use super::tail::{Followers, Tail, counts_peers, reaches_back_only};
use crate::ordered::by_partition::ByPartition;

/// Rows of a partition that has a tail, at least.
pub(super) const TAIL_ROWS_MIN: usize = 512;

/// See the module.
pub(super) struct Tails {
    /// Rows of a partition that has a tail, at least; `None` if no call's frames reach back only.
    rows_min: Option<usize>,
    tails: ByPartition<Tail>,
    order: RowOrder,
    /// Rows that are peers of the last one do not come behind it.
    counts_peers: bool,
}

impl Tails {
    pub(super) fn new(spec: &WindowSpec, order: RowOrder, rows_min: usize) -> Tails {
        Tails {
            rows_min: reaches_back_only(&spec.window).then_some(rows_min),
            tails: ByPartition::new(spec.window.partition.clone()),
            order,
            counts_peers: counts_peers(&spec.window.calls),
        }
    }

    /// Whether a partition of so many rows may have one.
    pub(super) fn may_be_of(&self, n_rows: usize) -> bool {
        self.rows_min.is_some_and(|min| n_rows >= min)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.tails.is_empty()
    }

    /// Takes in the rows of a partition, which are `rows` of the batch, if they come behind its
    /// others: these rows in order, and their results. Takes the partition's tail away if not.
    pub(super) fn follow(
        &mut self,
        spec: &WindowSpec,
        batch: &Batch,
        mut rows: Vec<u32>,
    ) -> Option<(Vec<u32>, Followers)> {
        let hash = batch.key()?.hashes[rows[0] as usize];
        let mut tail = self.tails.take(hash, batch.columns(), rows[0])?;
        if rows.iter().any(|row| batch.diffs().get(*row as usize) <= 0) {
            return None;
        }
        rows = self.in_order(batch, rows);
        if !self.come_behind(&tail, batch, &rows) {
            return None;
        }
        let followers = tail.follow(spec, &gather::take(batch.columns(), &rows));
        self.tails.put(hash, tail);
        Some((rows, followers))
    }

    /// Keeps the tail of a partition that has none.
    pub(super) fn keep(&mut self, hash: u64, tail: Tail) {
        self.tails.put(hash, tail);
    }

    /// Drops the tails of partitions below a floor.
    pub(super) fn set_floor(&mut self, below: Floor) {
        self.tails.set_floor(below);
    }

    pub(super) fn size_bytes(&self) -> usize {
        self.tails.size_bytes()
    }

    /// The number of tails, whose bytes are as they are told.
    #[cfg(test)]
    pub(super) fn checked_len(&self) -> usize {
        self.tails.checked_len()
    }

    /// Rows by time, then in the window's order, each as often as it comes.
    fn in_order(&self, batch: &Batch, mut rows: Vec<u32>) -> Vec<u32> {
        if rows.len() > 1 {
            let order = self.order.between(batch.columns(), batch.columns());
            rows.sort_by(|a, b| {
                let (a, b) = (*a as usize, *b as usize);
                batch.times().get(a).cmp(&batch.times().get(b)).then_with(|| order.compare(a, b))
            });
        }
        let times = |row: u32| std::iter::repeat_n(row, batch.diffs().get(row as usize) as usize);
        rows.into_iter().flat_map(times).collect()
    }

    /// Whether rows come in the window's order behind the last of the tail, those of each time
    /// behind those of earlier times.
    fn come_behind(&self, tail: &Tail, batch: &Batch, rows: &[u32]) -> bool {
        let is_behind = |order: Ordering| order == Ordering::Less || (order == Ordering::Equal && !self.counts_peers);
        let between = |left: &[ArrayRef], right: &[ArrayRef]| match self.counts_peers {
            true => self.order.between_peers(left, right),
            false => self.order.between(left, right),
        };
        let last = gather::take(tail.rows(), &[tail.rows()[0].len() as u32 - 1]);
        let (behind_last, among) = (between(&last, batch.columns()), between(batch.columns(), batch.columns()));
        let follows = |pair: &[u32]| {
            let (before, row) = (pair[0] as usize, pair[1] as usize);
            // (Rows of one time are in order; peers among them come together.)
            batch.times().get(before) == batch.times().get(row) || is_behind(among.compare(before, row))
        };
        is_behind(behind_last.compare(0, rows[0] as usize)) && rows.windows(2).all(follows)
    }
}
