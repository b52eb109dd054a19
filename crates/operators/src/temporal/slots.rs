//! Keys as slots, for verbs with one or two inputs; a key keeps its slot while something under it is in force.

use anabranch_batch::{Batch, END, Time, Until, hash};
use arrow::array::{Array, ArrayRef};
use arrow::buffer::NullBuffer;
use arrow::datatypes::DataType;

use crate::group_table::GroupTable;

/// The slots of keys.
#[derive(Debug)]
pub(crate) struct Slots {
    table: GroupTable,
    /// Hash of the key of each slot in use.
    hashes: Vec<Option<u64>>,
}

impl Slots {
    /// No keys yet, of these types.
    pub(crate) fn new(key_types: &[DataType]) -> Slots {
        Slots { table: GroupTable::new(key_types), hashes: Vec::new() }
    }

    /// The slot of each row's key.
    pub(crate) fn of(&mut self, batch: &Batch, key: &[usize]) -> Vec<u32> {
        if key.is_empty() && self.hashes.len() == 1 {
            return vec![0; batch.len()];
        }
        let columns: Vec<ArrayRef> = key.iter().map(|&column| batch.column(column).clone()).collect();
        let computed;
        let hashes: &[u64] = match batch.key() {
            Some(known) if *known.columns == *key => &known.hashes,
            _ => {
                computed = hash::hash_columns(&columns, batch.len());
                &computed
            }
        };
        let touched = self.table.touch(&columns, hashes);
        self.hashes.resize(self.table.n_slots(), None);
        for (&slot, &row) in touched.slot.iter().zip(&touched.first_row) {
            self.hashes[slot as usize] = Some(hashes[row as usize]);
        }
        touched.of_row.iter().map(|&index| touched.slot[index as usize]).collect()
    }

    /// Gives back the slots that `is_free`.
    pub(crate) fn release_where(&mut self, is_free: impl Fn(u32) -> bool) {
        for slot in 0..self.hashes.len() as u32 {
            if let Some(hash) = self.hashes[slot as usize].filter(|_| is_free(slot)) {
                self.table.release(slot, hash);
                self.hashes[slot as usize] = None;
            }
        }
    }

    /// Keys with a slot.
    pub(crate) fn len(&self) -> usize {
        self.table.len()
    }

    /// One more than the greatest slot.
    pub(crate) fn n_slots(&self) -> usize {
        self.table.n_slots()
    }

    pub(crate) fn size_bytes(&self) -> usize {
        self.table.size_bytes() + self.hashes.capacity() * size_of::<Option<u64>>()
    }
}

/// Rows of which a key column is NULL (unset bits).
pub(crate) fn null_keys(batch: &Batch, key: &[usize]) -> Option<NullBuffer> {
    let nulls = key.iter().map(|&column| batch.column(column).logical_nulls());
    nulls.fold(None, |all, nulls| NullBuffer::union(all.as_ref(), nulls.as_ref()))
}

/// Hashes of whole rows, when some are edges; otherwise nobody needs them.
pub(crate) fn edge_hashes(batch: &Batch, times: &[Time], untils: &[Time]) -> Vec<u64> {
    let is_edge = |(&time, &until): (&Time, &Time)| until == END || until < time;
    match batch.until() {
        Until::Duration(ticks) if *ticks > 0 && batch.times().max() < END - ticks => vec![],
        _ if !times.iter().zip(untils).any(is_edge) => vec![],
        _ => hash::hash_columns(batch.columns(), batch.len()),
    }
}
