//! Whether the last round that a loop may have still changes a variable.
//!
//! Law: the counts of a variable, over all epochs, are what it has after the last round less what
//! it had after the round before. State: the rows of which that is not zero.

use anabranch_batch::{Batch, Diff};
use arrow::datatypes::DataType;

use crate::aggregate::group_table::GroupTable;

/// The changes that the last round makes of one variable.
#[derive(Clone, Default)]
pub(super) struct Overrun {
    /// Made when the first rows come.
    rows: Option<GroupTable>,
    counts: Vec<Diff>,
}

impl Overrun {
    /// Adds what an epoch changes in the last round.
    pub fn add(&mut self, batches: &[Batch]) {
        for batch in batches {
            let types: Vec<DataType> = batch.columns().iter().map(|column| column.data_type().clone()).collect();
            let rows = self.rows.get_or_insert_with(|| GroupTable::new(&types));
            let all: Vec<usize> = (0..types.len()).collect();
            let batch = batch.clone().flatten().with_key(&all);
            let hashes = batch.key().expect("the batch was just keyed").hashes.clone();
            let touched = rows.touch(batch.columns(), &hashes);
            self.counts.resize(self.counts.len().max(rows.n_slots()), 0);
            for (row, &index) in touched.of_row.iter().enumerate() {
                self.counts[touched.slot[index as usize] as usize] += batch.diffs().get(row);
            }
            for (&slot, &row) in touched.slot.iter().zip(&touched.first_row) {
                if self.counts[slot as usize] == 0 {
                    rows.release(slot, hashes[row as usize]);
                }
            }
        }
    }

    /// Whether the round changes anything.
    pub fn is_any(&self) -> bool {
        self.rows.as_ref().is_some_and(|rows| !rows.is_empty())
    }
}
