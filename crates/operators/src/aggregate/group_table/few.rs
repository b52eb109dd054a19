//! Rows of a few groups, found by comparing keys.
//!
//! Law: as [`GroupTable::touch`], if it finds all rows; else nothing is changed. Cost: see
//! [`anabranch_batch::few`]; no hash is made.

use anabranch_batch::few;
use arrow::array::ArrayRef;

use super::{GroupTable, Touched};

/// Fewer rows are not worth fetching the keys of a few groups.
const FEW_GROUPS_ROWS_MIN: usize = 512;

impl GroupTable {
    /// The slots of so many rows, if there are few groups, and all rows are of them: found by
    /// comparing keys, without a hash.
    pub(crate) fn touch_few(&self, key_columns: &[ArrayRef], rows: usize) -> Option<Touched> {
        if !self.has_few() || rows < FEW_GROUPS_ROWS_MIN {
            return None;
        }
        let (slots, known) = self.groups();
        let which = few::which_of_few(key_columns, rows, &known)?;
        let mut touched = Touched { of_row: Vec::with_capacity(rows), ..Touched::default() };
        let mut index_of_known = [u32::MAX; few::KNOWN_MAX];
        for (row, known) in (0u32..).zip(which) {
            let index = &mut index_of_known[usize::from(known)];
            if *index == u32::MAX {
                *index = touched.slot.len() as u32;
                touched.slot.push(slots[usize::from(known)]);
                touched.first_row.push(row);
            }
            touched.of_row.push(*index);
        }
        Some(touched)
    }

    /// Whether [`touch_few`](GroupTable::touch_few) may find rows.
    pub(crate) fn has_few(&self) -> bool {
        !self.exact && (1..=few::KNOWN_MAX).contains(&self.table.len())
    }
}
