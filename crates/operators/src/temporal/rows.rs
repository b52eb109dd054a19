//! Rows that verbs remember: by number ([`RowStore`]), or by their contents ([`RowSet`]).
//!
//! Law of [`RowSet`]: two rows get the same number exactly when they are equal, as long as the
//! number is held; a number is held while more holds than releases have been counted on it. So an
//! end edge finds its start edge by two integers: number of the row, time of the start. Cost: a
//! hash of all columns and one probe a row; each distinct row held is stored once.

use anabranch_batch::hash;
use arrow::array::ArrayRef;
use arrow::datatypes::DataType;

use crate::aggregate::group_table::GroupTable;
use crate::aggregate::group_table::keys::KeyStore;

/// Rows by number; numbers are reused.
#[derive(Debug, Default)]
pub struct RowStore {
    rows: KeyStore,
    free: Vec<u32>,
    n_ids: u32,
}

impl RowStore {
    /// Remembers rows `rows` of `columns`; returns their numbers.
    pub fn add(&mut self, columns: &[ArrayRef], rows: &[u32]) -> Vec<u32> {
        let ids: Vec<u32> = rows.iter().map(|_| self.next_id()).collect();
        self.rows.append(&ids, columns, rows);
        ids
    }

    /// Forgets a row.
    pub fn release(&mut self, id: u32) {
        self.rows.release(id);
        self.free.push(id);
    }

    /// The columns that rows lie in.
    pub fn sources(&self) -> Vec<&[ArrayRef]> {
        self.rows.sources()
    }

    /// Where a row lies: which of the sources, and where in it.
    pub fn place(&self, id: u32) -> (u32, u32) {
        self.rows.place(id)
    }

    /// Bytes of rows and numbers.
    pub fn size_bytes(&self) -> usize {
        self.rows.size_bytes() + self.free.capacity() * size_of::<u32>()
    }

    fn next_id(&mut self) -> u32 {
        self.free.pop().unwrap_or_else(|| {
            self.n_ids += 1;
            self.n_ids - 1
        })
    }
}

/// Distinct rows, numbered.
#[derive(Debug)]
pub struct RowSet {
    table: GroupTable,
    /// By the table's slot: the number of the row in `store`.
    store: RowStore,
    id_of_slot: Vec<u32>,
    /// By number: holds, the table's slot, and the row's hash.
    held: Vec<Held>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Held {
    holds: u32,
    slot: u32,
    hash: u64,
}

impl RowSet {
    /// No rows yet, with columns of these types.
    pub fn new(types: &[DataType]) -> RowSet {
        RowSet { table: GroupTable::new(types), store: RowStore::default(), id_of_slot: Vec::new(), held: Vec::new() }
    }

    /// The numbers of `n_rows` rows, each held once more.
    pub fn hold(&mut self, columns: &[ArrayRef], n_rows: usize) -> Vec<u32> {
        let hashes = hash::hash_columns(columns, n_rows);
        let touched = self.table.touch(columns, &hashes);
        self.id_of_slot.resize(self.table.n_slots(), u32::MAX);
        let new: Vec<usize> = (0..touched.slot.len())
            .filter(|&index| self.id_of_slot[touched.slot[index] as usize] == u32::MAX)
            .collect();
        let rows: Vec<u32> = new.iter().map(|&index| touched.first_row[index]).collect();
        for (&index, id) in new.iter().zip(self.store.add(columns, &rows)) {
            let (slot, row) = (touched.slot[index], touched.first_row[index]);
            self.id_of_slot[slot as usize] = id;
            if self.held.len() <= id as usize {
                self.held.resize(id as usize + 1, Held::default());
            }
            self.held[id as usize] = Held { holds: 0, slot, hash: hashes[row as usize] };
        }
        let id_of_index: Vec<u32> = touched.slot.iter().map(|&slot| self.id_of_slot[slot as usize]).collect();
        touched
            .of_row
            .iter()
            .map(|&index| {
                let id = id_of_index[index as usize];
                self.held[id as usize].holds += 1;
                id
            })
            .collect()
    }

    /// Holds a row that is held already once more.
    pub fn hold_again(&mut self, id: u32) {
        self.held[id as usize].holds += 1;
    }

    /// Takes one hold back; forgets the row with the last.
    pub fn release(&mut self, id: u32) {
        let held = &mut self.held[id as usize];
        held.holds = held.holds.checked_sub(1).expect("a row that is released is held");
        if held.holds == 0 {
            let Held { slot, hash, .. } = *held;
            self.id_of_slot[slot as usize] = u32::MAX;
            self.table.release(slot, hash);
            self.store.release(id);
        }
    }

    /// Where the rows lie, by number.
    pub fn store(&self) -> &RowStore {
        &self.store
    }

    /// Distinct rows held.
    pub fn len(&self) -> usize {
        self.table.len()
    }

    /// Whether no row is held.
    pub fn is_empty(&self) -> bool {
        self.table.is_empty()
    }

    /// Bytes of rows and numbers.
    pub fn size_bytes(&self) -> usize {
        let numbers = self.id_of_slot.capacity() * size_of::<u32>() + self.held.capacity() * size_of::<Held>();
        self.table.size_bytes() + self.store.size_bytes() + numbers
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::array::{Int64Array, StringViewArray};
    use std::sync::Arc;

    #[test]
    fn equal_rows_share_a_number_while_held() {
        let columns: Vec<ArrayRef> = vec![
            Arc::new(Int64Array::from(vec![1, 2, 1, 1])),
            Arc::new(StringViewArray::from(vec![Some("a"), None, Some("a"), Some("b")])),
        ];
        let mut set = RowSet::new(&[DataType::Int64, DataType::Utf8View]);
        let ids = set.hold(&columns, 4);
        assert_eq!((ids[0], set.len()), (ids[2], 3));
        set.release(ids[0]);
        assert_eq!(set.len(), 3, "held twice");
        set.release(ids[2]);
        assert_eq!(set.len(), 2);
        let again = set.hold(&columns, 4);
        assert_eq!((again[1], again[3], set.len()), (ids[1], ids[3], 3));
    }
}
