//! Keys that were found by hash, held against the stored ones.
//!
//! Law: what is given back has equal slots for equal keys alone. Cost: each key column is read once
//! where no hash collides; a row whose hash does is compared with all stored keys of that hash.

use anabranch_batch::equal;
use anabranch_batch::hash::spread;
use arrow::array::ArrayRef;

use super::{GroupEntry, GroupTable, New, Touched};

impl GroupTable {
    /// Checks that what was found by hash has the right key, and finds the right slot where it has
    /// not.
    pub(super) fn verify(&mut self, columns: &[ArrayRef], hashes: &[u64], touched: Touched, mut new: New) -> Touched {
        let mut failed = self.rows_unlike_first(columns, &touched);
        failed.extend(self.rows_unlike_stored(columns, &touched, &new));
        if failed.is_empty() {
            self.keys.append(&new.slots, columns, &new.rows);
            return touched;
        }
        failed.sort_unstable();
        failed.dedup();
        self.keys.append(&new.slots, columns, &new.rows);
        let mut slot_of_row: Vec<u32> = touched.of_row.iter().map(|&index| touched.slot[index as usize]).collect();
        for row in failed {
            new = New::default();
            slot_of_row[row as usize] = self.find_or_insert_exactly(columns, row, hashes[row as usize], &mut new);
            self.keys.append(&new.slots, columns, &new.rows);
        }
        Touched::of_slots(&slot_of_row)
    }

    /// Rows whose key differs from that of the first row with the same slot.
    fn rows_unlike_first(&self, columns: &[ArrayRef], touched: &Touched) -> Vec<u32> {
        if equal::surely_like_first(columns, &touched.of_row, &touched.first_row) {
            return Vec::new();
        }
        let first_of = |row: usize| touched.first_row[touched.of_row[row] as usize];
        let others = (0..touched.of_row.len() as u32).filter(|&row| first_of(row as usize) != row);
        let (rows, firsts): (Vec<u32>, Vec<u32>) = others.map(|row| (row, first_of(row as usize))).unzip();
        if rows.is_empty() {
            return rows;
        }
        let equal = equal_rows(columns, &rows, &firsts);
        rows.into_iter().zip(equal).filter(|&(_, equal)| !equal).map(|(row, _)| row).collect()
    }

    /// All rows of those slots whose first row's key differs from the stored one.
    fn rows_unlike_stored(&self, columns: &[ArrayRef], touched: &Touched, new: &New) -> Vec<u32> {
        // Slots and new slots are both in order of their first row.
        let mut news = new.rows.iter().peekable();
        let mut is_old = |row: u32| news.next_if(|&&other| other == row).is_none();
        let old: Vec<usize> = (0..touched.slot.len()).filter(|&index| is_old(touched.first_row[index])).collect();
        if old.is_empty() {
            return Vec::new();
        }
        let slots: Vec<u32> = old.iter().map(|&index| touched.slot[index]).collect();
        let firsts: Vec<u32> = old.iter().map(|&index| touched.first_row[index]).collect();
        let equal = self.keys.equal(&slots, columns, &firsts);
        if equal.iter().all(|&equal| equal) {
            return Vec::new();
        }
        let mut wrong = vec![false; touched.slot.len()];
        old.iter().zip(equal).for_each(|(&index, equal)| wrong[index] = !equal);
        (0..touched.of_row.len() as u32).filter(|&row| wrong[touched.of_row[row as usize] as usize]).collect()
    }

    /// The slot of one row, comparing its key with every stored key of the same hash.
    fn find_or_insert_exactly(&mut self, columns: &[ArrayRef], row: u32, hash: u64, new: &mut New) -> u32 {
        let candidates: Vec<u32> =
            self.table.iter_hash(spread(hash)).filter(|entry| entry.hash == hash).map(|entry| entry.slot).collect();
        let equal = self.keys.equal(&candidates, columns, &vec![row; candidates.len()]);
        if let Some(index) = equal.iter().position(|&equal| equal) {
            return candidates[index];
        }
        let slot = self.next_slot();
        self.table.insert_unique(spread(hash), GroupEntry { hash, slot, index: u32::MAX }, |entry| spread(entry.hash));
        new.push(slot, row);
        slot
    }
}

fn equal_rows(columns: &[ArrayRef], left: &[u32], right: &[u32]) -> Vec<bool> {
    equal::rows_equal(columns, left, columns, right)
}
