//! DISTINCT calls: which argument values come into being in a group, and which cease to be.
//!
//! Law: what goes on to the call is, at every time, each value that a group has (with positive
//! multiplicity) once. State: one count for each (group, value), given back when it is zero.
//!
//! ```text
//! in    (g, 5) +1 at 1    (g, 5) +1 at 2    (g, 5) -2 at 3
//! out   (g, 5) +1 at 1                      (g, 5) -1 at 3
//! ```

use anabranch_batch::{Diff, Diffs, Times, hash};
use arrow::array::ArrayRef;
use arrow::datatypes::DataType;

use crate::aggregate::freeing::leaving;
use crate::aggregate::group_table::GroupTable;
use crate::aggregate::segments::Segments;

/// Counts of distinct (group, value) pairs.
pub(crate) struct Distinct {
    table: GroupTable,
    counts: Vec<Diff>,
}

impl Distinct {
    /// For rows of these types: the group's key, then the value.
    pub(crate) fn new(types: &[DataType]) -> Distinct {
        Distinct { table: GroupTable::new(types), counts: Vec::new() }
    }

    /// Takes rows (key columns, then the value column); returns those that make a pair be or cease
    /// to be, with +1 or -1.
    pub(crate) fn step(&mut self, columns: &[ArrayRef], times: &Times, diffs: &Diffs) -> (Vec<u32>, Vec<Diff>) {
        let len = columns.last().map_or(0, |column| column.len());
        let hashes = hash::hash_columns(columns, len);
        let segments = Segments::new(self.table.touch(columns, &hashes), times);
        let mut deltas = vec![0; segments.len()];
        segments.of_row.iter().enumerate().for_each(|(row, &segment)| deltas[segment as usize] += diffs.get(row));

        self.counts.resize(self.table.n_slots(), 0);
        let (mut rows, mut changes) = (Vec::new(), Vec::new());
        for (segment, (&slot, delta)) in segments.slot.iter().zip(deltas).enumerate() {
            let count = &mut self.counts[slot as usize];
            let before = *count > 0;
            *count += delta;
            let change = Diff::from(*count > 0) - Diff::from(before);
            if change != 0 {
                rows.push(segments.first_row[segment]);
                changes.push(change);
            }
        }
        self.release(&segments, &hashes);
        (rows, changes)
    }

    /// Lets go of the values of groups with a key that has passed.
    pub(crate) fn free(&mut self, passed: &[(usize, i64)]) {
        for (slot, hash) in leaving(&self.table, passed) {
            self.counts[slot as usize] = 0;
            self.table.release(slot, hash);
        }
        self.shrink();
    }

    pub(crate) fn size_bytes(&self) -> usize {
        self.table.size_bytes() + self.counts.capacity() * size_of::<Diff>()
    }

    fn release(&mut self, segments: &Segments, hashes: &[u64]) {
        for range in segments.by_slot() {
            let slot = segments.slot[range.start];
            if self.counts[slot as usize] == 0 {
                self.table.release(slot, hashes[segments.first_row[range.start] as usize]);
            }
        }
        self.shrink();
    }

    fn shrink(&mut self) {
        if let Some(old_of_new) = self.table.shrink() {
            self.counts = old_of_new.iter().map(|&old| self.counts[old as usize]).collect();
        }
    }
}
