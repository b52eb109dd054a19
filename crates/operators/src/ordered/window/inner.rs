//! Partitions in leaves, and the changes that they take in time by time.
//!
//! Law: the rows in the leaves of a partition are those that the trace shows. A change that leaves
//! cannot take in takes them away: all rows of the partition are looked at from that time on.

use anabranch_arrangement::Floor;
use anabranch_batch::{Batch, Time};

use super::leaf_partition::{LeafPartition, Outcome, are_local};
use super::row_order::RowOrder;
use super::spec::WindowSpec;
use super::splice::splices;
use super::tail::{Kind, kind_of};
use crate::ordered::by_partition::ByPartition;

/// Rows of a partition that has leaves, at least.
pub(super) const LEAF_PARTITION_ROWS_MIN: usize = 1024;

/// Where more than one row in so many changes, all rows are looked at as quickly.
const CHANGED_PARTS_MIN: usize = 8;

/// See the module.
pub(super) struct Inner {
    /// Rows of a partition that has leaves, at least; `None` if a change concerns all its rows.
    rows_min: Option<usize>,
    partitions: ByPartition<LeafPartition>,
    order: RowOrder,
    /// Changes of one time are one change: each concerns all rows behind it.
    is_one: bool,
}

/// What came of the changes of a partition.
pub(super) struct Taken {
    pub outcomes: Vec<(Time, Outcome)>,
    /// Changes from this time on are still to be looked at.
    pub left_from: Option<Time>,
}

impl Inner {
    pub(super) fn new(spec: &WindowSpec, order: RowOrder, rows_min: usize) -> Inner {
        Inner {
            rows_min: are_local(&spec.window.calls).then_some(rows_min),
            partitions: ByPartition::new(spec.window.partition.clone()),
            order,
            is_one: spec.window.calls.iter().any(|call| matches!(kind_of(call), Kind::Running(_))),
        }
    }

    /// Whether a partition of so many rows may have leaves.
    pub(super) fn may_be_of(&self, n_rows: usize) -> bool {
        self.rows_min.is_some_and(|min| n_rows >= min)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.partitions.is_empty()
    }

    /// Keeps the leaves of a partition that has none.
    pub(super) fn keep(&mut self, hash: u64, partition: LeafPartition) {
        self.partitions.put(hash, partition);
    }

    /// Takes in changes of a partition, which are `rows` of the batch, if it has leaves.
    pub(super) fn take_in(&mut self, spec: &WindowSpec, batch: &Batch, rows: &[u32]) -> Option<Taken> {
        let hash = batch.key()?.hashes[rows[0] as usize];
        let mut partition = self.partitions.take(hash, batch.columns(), rows[0])?;
        let time = |row: &u32| batch.times().get(*row as usize);
        let mut rows = rows.to_vec();
        rows.sort_by_key(time);
        let mut taken = Taken { outcomes: vec![], left_from: None };
        for rows in rows.chunk_by(|a, b| time(a) == time(b)) {
            let at = time(&rows[0]);
            match self.at_once(spec, &mut partition, batch, rows) {
                Some(outcomes) => taken.outcomes.extend(outcomes.into_iter().map(|outcome| (at, outcome))),
                None => {
                    taken.left_from = Some(at);
                    return Some(taken);
                }
            }
        }
        if self.may_be_of(partition.leaves.n_rows()) {
            self.partitions.put(hash, partition);
        }
        Some(taken)
    }

    /// The changes of one time.
    fn at_once(
        &self,
        spec: &WindowSpec,
        partition: &mut LeafPartition,
        batch: &Batch,
        rows: &[u32],
    ) -> Option<Vec<Outcome>> {
        let n_rows = partition.leaves.n_rows();
        if n_rows == 0 || rows.len() > CHANGED_PARTS_MIN && rows.len() > n_rows / CHANGED_PARTS_MIN {
            return None;
        }
        let splices = splices(&partition.leaves, &self.order, batch, rows, self.is_one)?;
        splices.iter().map(|splice| partition.splice(spec, splice)).collect()
    }

    /// Drops all leaves.
    pub(super) fn forget(&mut self) {
        self.partitions.forget();
    }

    pub(super) fn set_floor(&mut self, floor: Floor) {
        self.partitions.set_floor(floor);
    }

    pub(super) fn size_bytes(&self) -> usize {
        self.partitions.size_bytes()
    }

    /// The number of partitions with leaves, whose bytes are as they are told.
    #[cfg(test)]
    pub(super) fn checked_len(&self) -> usize {
        self.partitions.checked_len()
    }
}
