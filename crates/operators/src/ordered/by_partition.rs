//! What is kept for some partitions.

use std::collections::HashMap;

use anabranch_arrangement::{Floor, ticks};
use anabranch_batch::{Columns, equal};
use arrow::array::ArrayRef;

/// What is kept for a partition.
pub(super) trait Kept {
    /// Columns whose first row is one of the partition's.
    fn sample(&self) -> &Columns;
    fn size_bytes(&self) -> usize;
}

/// By partition, with the bytes of all: they are asked for after each turn.
pub(super) struct ByPartition<T> {
    by_hash: HashMap<u64, Vec<T>>,
    bytes: usize,
    key: Vec<usize>,
}

impl<T: Kept> ByPartition<T> {
    /// None yet; partitions differ by these columns.
    pub(super) fn new(key: Vec<usize>) -> ByPartition<T> {
        ByPartition { by_hash: HashMap::new(), bytes: 0, key }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.by_hash.is_empty()
    }

    pub(super) fn size_bytes(&self) -> usize {
        self.bytes
    }

    /// Keeps what belongs to a partition for which nothing is kept.
    pub(super) fn put(&mut self, hash: u64, kept: T) {
        self.bytes += kept.size_bytes();
        self.by_hash.entry(hash).or_default().push(kept);
    }

    /// Takes away what is kept for the partition of a row, until it is put back.
    pub(super) fn take(&mut self, hash: u64, columns: &[ArrayRef], row: u32) -> Option<T> {
        let key = |columns: &[ArrayRef]| -> Columns { self.key.iter().map(|&at| columns[at].clone()).collect() };
        let wanted = key(columns);
        let all = self.by_hash.get_mut(&hash)?;
        let is_same = |kept: &T| equal::rows_equal(&key(kept.sample()), &[0], &wanted, &[row]).iter().all(|is| *is);
        let kept = all.swap_remove(all.iter().position(is_same)?);
        self.bytes -= kept.size_bytes();
        if all.is_empty() {
            self.by_hash.remove(&hash);
        }
        Some(kept)
    }

    /// Forgets all partitions.
    pub(super) fn forget(&mut self) {
        (self.by_hash, self.bytes) = (HashMap::new(), 0);
    }

    /// Forgets partitions below a floor; all of them if their rows are cut.
    pub(super) fn set_floor(&mut self, floor: Floor) {
        if !self.key.contains(&floor.column) {
            return self.forget();
        }
        self.by_hash.retain(|_, all| {
            all.retain(|kept| {
                let value = ticks(&kept.sample()[floor.column].slice(0, 1));
                value.iter().next().flatten().is_none_or(|value| value >= floor.below)
            });
            !all.is_empty()
        });
        self.bytes = self.counted_bytes();
    }

    /// The bytes of all, one by one.
    fn counted_bytes(&self) -> usize {
        self.by_hash.values().flatten().map(T::size_bytes).sum()
    }

    /// For how many partitions something is kept; bytes are as they are told.
    #[cfg(test)]
    pub(super) fn checked_len(&self) -> usize {
        assert_eq!(self.bytes, self.counted_bytes());
        self.by_hash.values().map(Vec::len).sum()
    }
}
