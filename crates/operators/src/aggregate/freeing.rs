//! Groups that leave: those of which no change will come.
//!
//! Law: a group is freed once a key of its is below a limit that all changes to come are at or
//! above. What was put out of it stays.
//!
//! Groups are looked through when as many rows have come as half of them, so that a row pays for
//! two of them, and at most half as many groups again are kept as need be.

use anabranch_arrangement::{MergeEffort, ticks};
use anabranch_batch::{gather, hash};
use anabranch_flow::tactic::Passed;
use arrow::array::{Array, Int64Array};

use super::group_table::GroupTable;

/// When groups are looked through.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Leisure {
    /// Rows that have come since the last time.
    n_rows: usize,
    is_eager: bool,
}

impl Leisure {
    pub fn new(effort: MergeEffort) -> Leisure {
        Leisure { n_rows: 0, is_eager: effort == MergeEffort::EAGER }
    }

    pub fn note(&mut self, n_rows: usize) {
        self.n_rows += n_rows;
    }

    /// Whether so many groups are to be looked through now.
    pub fn is_due(&mut self, n_groups: usize) -> bool {
        let is_due = n_groups > 0 && (self.is_eager || self.n_rows >= n_groups / 2);
        if is_due {
            self.n_rows = 0;
        }
        is_due
    }
}

/// The slots of groups that leave, and their hashes. `passed` are positions among the key columns,
/// and limits.
pub(crate) fn leaving(groups: &GroupTable, passed: &[(usize, i64)]) -> Vec<(u32, u64)> {
    let (slots, keys) = groups.groups();
    let limits: Vec<(Int64Array, i64)> = passed.iter().map(|&(key, below)| (ticks(&keys[key]), below)).collect();
    let leaves = |row: usize| limits.iter().any(|(ticks, below)| ticks.is_valid(row) && ticks.value(row) < *below);
    let rows: Vec<u32> = (0..slots.len()).filter(|&row| leaves(row)).map(|row| row as u32).collect();
    let hashes = hash::hash_columns(&gather::take(&keys, &rows), rows.len());
    rows.iter().map(|&row| slots[row as usize]).zip(hashes).collect()
}

/// What has passed, by the places of columns among `keys`.
pub(crate) fn by_key(passed: &[Passed], keys: &[usize]) -> Vec<(usize, i64)> {
    let place = |passed: &Passed| Some((keys.iter().position(|key| *key == passed.column)?, passed.below));
    passed.iter().filter_map(place).collect()
}
