//! Keys as slots, for verbs with one or two inputs; a key keeps its slot while something under it
//! is in force.

use anabranch_batch::{Batch, hash};
use arrow::array::ArrayRef;
use arrow::datatypes::DataType;

use crate::aggregate::group_table::GroupTable;

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

    /// Appends the slot of each row's key to `into`.
    pub(crate) fn append_of(&mut self, batch: &Batch, key: &[usize], into: &mut Vec<u32>) {
        if key.is_empty() && self.hashes.len() == 1 && self.hashes[0].is_some() {
            into.resize(into.len() + batch.len(), 0);
            return;
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
        into.extend(touched.of_row.iter().map(|&index| touched.slot[index as usize]));
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
