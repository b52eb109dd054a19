//! Rows that an epoch may put out in a round to come.
//!
//! Law: a place stands for its row until [`KeptRows::clear`]. Cost: a copy of the rows kept; a
//! round that puts rows out looks at the blocks of these rows only.

use anabranch_batch::{Batch, Columns, Diff, Diffs, Time, Times, gather};
use arrow::array::ArrayRef;

/// A block, and a row of it.
pub(super) type Place = (u32, u32);

/// See the module's page.
#[derive(Clone, Default)]
pub(super) struct KeptRows {
    blocks: Vec<Columns>,
}

impl KeptRows {
    /// Keeps some rows of a batch as a block, and returns its number: row `i` of it is `rows[i]`.
    pub fn keep(&mut self, columns: &[ArrayRef], rows: &[u32]) -> u32 {
        self.blocks.push(gather::take(columns, rows));
        self.blocks.len() as u32 - 1
    }

    /// The rows at some places.
    pub fn gather(&self, places: &[Place]) -> Columns {
        // (A round of a long chain has few rows, and the epoch a block for each of its rounds.)
        let mut used: Vec<u32> = places.iter().map(|(block, _)| *block).collect();
        used.sort_unstable();
        used.dedup();
        let sources: Vec<&[ArrayRef]> = used.iter().map(|block| &*self.blocks[*block as usize]).collect();
        let number = |block: &u32| used.binary_search(block).expect("the block is used") as u32;
        let picks: Vec<(u32, u32)> = places.iter().map(|(block, row)| (number(block), *row)).collect();
        gather::interleave(&sources, &picks)
    }

    /// The rows at some places as changes of a round; `None` without rows.
    pub fn changes(&self, places: &[Place], diffs: Vec<Diff>, round: Time) -> Option<Batch> {
        let diffs = Diffs::Column(diffs.into()).simplify();
        let columns = || self.gather(places);
        (!places.is_empty()).then(|| Batch::with_len(columns(), places.len(), Times::Constant(round), diffs))
    }

    /// Forgets all rows.
    pub fn clear(&mut self) {
        self.blocks.clear();
    }
}
