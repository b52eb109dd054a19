//! The ends of partitions, and which changes are rows behind them.
//!
//! Law: a tail is there for a partition only if its rows are those that the trace shows. A change
//! that is no row behind the others takes the partition's tail away.
//!
//! Only partitions of many rows have tails: all rows of others are looked at as quickly.

use std::cmp::Ordering;
use std::collections::HashMap;

use anabranch_arrangement::{Floor, Layout, ticks};
use anabranch_batch::order::{Comparator, Direction};
use anabranch_batch::{Batch, Columns, equal, gather};
use anabranch_spec::order::SortKey;
use arrow::array::ArrayRef;

use super::spec::WindowSpec;
use super::tail::{Followers, Tail, counts_peers, reaches_back_only};

/// Rows of a partition that has a tail, at least.
pub(super) const TAIL_ROWS_MIN: usize = 512;

/// See the module.
pub(super) struct Tails {
    /// Rows of a partition that has a tail, at least; `None` if no call's frames reach back only.
    rows_min: Option<usize>,
    by_hash: HashMap<u64, Vec<Tail>>,
    /// Bytes of all tails: asked for after each turn.
    bytes: usize,
    /// The order of a partition's rows: columns and directions.
    order: (Vec<usize>, Vec<Direction>),
    /// How many of these are the window's own: the others break ties.
    n_asked: usize,
    /// Rows that are peers of the last one do not come behind it.
    counts_peers: bool,
    key: Vec<usize>,
}

impl Tails {
    pub(super) fn new(spec: &WindowSpec, layout: &Layout, rows_min: usize) -> Tails {
        let columns = layout.value_columns();
        let asked: Vec<&SortKey> = spec.window.order.iter().collect();
        let direction = |column: &usize| asked.iter().find(|key| key.column == *column).map(|key| key.direction());
        let directions: Vec<Option<Direction>> = columns.iter().map(direction).collect();
        Tails {
            rows_min: reaches_back_only(&spec.window.calls).then_some(rows_min),
            by_hash: HashMap::new(),
            bytes: 0,
            n_asked: directions.iter().flatten().count(),
            order: (columns, directions.into_iter().map(|of| of.unwrap_or(Direction::ASCENDING)).collect()),
            counts_peers: counts_peers(&spec.window.calls),
            key: spec.window.partition.clone(),
        }
    }

    /// Whether a partition of so many rows may have one.
    pub(super) fn may_be_of(&self, n_rows: usize) -> bool {
        self.rows_min.is_some_and(|min| n_rows >= min)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.by_hash.is_empty()
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
        let at = self.find(hash, batch.columns(), rows[0])?;
        let mut fits = rows.iter().all(|row| batch.diffs().get(*row as usize) > 0);
        if fits {
            rows = self.in_order(batch, rows);
            let last = &self.by_hash[&hash][at];
            fits = self.come_behind(last, batch, &rows);
        }
        if !fits {
            self.drop_tail(hash, at);
            return None;
        }
        let tail = self.by_hash.get_mut(&hash)?.get_mut(at)?;
        self.bytes -= tail.size_bytes();
        let followers = tail.follow(spec, &gather::take(batch.columns(), &rows));
        self.bytes += tail.size_bytes();
        Some((rows, followers))
    }

    /// Keeps the tail of a partition that has none.
    pub(super) fn keep(&mut self, hash: u64, tail: Tail) {
        self.bytes += tail.size_bytes();
        self.by_hash.entry(hash).or_default().push(tail);
    }

    /// Drops the tails of partitions below a floor.
    pub(super) fn set_floor(&mut self, below: Floor) {
        if !self.key.contains(&below.column) {
            (self.by_hash, self.bytes) = (HashMap::new(), 0);
            return;
        }
        self.by_hash.retain(|_, tails| {
            tails.retain(|tail| {
                let value = ticks(&tail.rows()[below.column].slice(0, 1));
                value.iter().next().flatten().is_none_or(|value| value >= below.below)
            });
            !tails.is_empty()
        });
        self.bytes = self.counted_bytes();
    }

    pub(super) fn size_bytes(&self) -> usize {
        self.bytes
    }

    /// The bytes of all tails, one by one.
    fn counted_bytes(&self) -> usize {
        self.by_hash.values().flatten().map(Tail::size_bytes).sum()
    }

    /// The number of tails, whose bytes are as they are told.
    #[cfg(test)]
    pub(super) fn checked_len(&self) -> usize {
        assert_eq!(self.bytes, self.counted_bytes());
        self.by_hash.values().map(Vec::len).sum()
    }

    fn drop_tail(&mut self, hash: u64, at: usize) {
        let Some(tails) = self.by_hash.get_mut(&hash) else { return };
        self.bytes -= tails.swap_remove(at).size_bytes();
        if tails.is_empty() {
            self.by_hash.remove(&hash);
        }
    }

    fn find(&self, hash: u64, columns: &[ArrayRef], row: u32) -> Option<usize> {
        let key = |columns: &[ArrayRef]| -> Columns { self.key.iter().map(|&at| columns[at].clone()).collect() };
        let wanted = key(columns);
        self.by_hash
            .get(&hash)?
            .iter()
            .position(|tail| equal::rows_equal(&key(tail.rows()), &[0], &wanted, &[row]).iter().all(|is| *is))
    }

    /// Rows by time, then in the window's order, each as often as it comes.
    fn in_order(&self, batch: &Batch, mut rows: Vec<u32>) -> Vec<u32> {
        if rows.len() > 1 {
            let columns = self.ordering(batch.columns());
            let order = Comparator::new(&columns, &columns, &self.order.1);
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
        let columns = self.ordering(batch.columns());
        let is_behind = |order: Ordering| order == Ordering::Less || (order == Ordering::Equal && !self.counts_peers);
        // (Peers are rows that the window's own keys do not tell apart.)
        let n_compared = if self.counts_peers { self.n_asked } else { columns.len() };
        let directions = &self.order.1[..n_compared];
        let last = gather::take(&self.ordering(tail.rows()), &[tail.rows()[0].len() as u32 - 1]);
        let behind_last = Comparator::new(&last[..n_compared], &columns[..n_compared], directions);
        let among = Comparator::new(&columns[..n_compared], &columns[..n_compared], directions);
        let follows = |pair: &[u32]| {
            let (before, row) = (pair[0] as usize, pair[1] as usize);
            // (Rows of one time are in order; peers among them come together.)
            batch.times().get(before) == batch.times().get(row) || is_behind(among.compare(before, row))
        };
        is_behind(behind_last.compare(0, rows[0] as usize)) && rows.windows(2).all(follows)
    }

    fn ordering(&self, columns: &[ArrayRef]) -> Vec<ArrayRef> {
        self.order.0.iter().map(|&at| columns[at].clone()).collect()
    }
}
