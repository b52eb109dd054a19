//! Rows that go to all branches, handed on without a copy.
//!
//! A branch is a column. Rows that all go to a branch share their other columns with every other
//! branch, and their column `branch` is a piece of one *constant column* for each branch, which a
//! shard makes once. So a batch that goes to all branches costs pointers for each branch, not rows.
//!
//! Law: the rows are those that copying would give. Cost: a batch for each branch of
//! [`ROWS_MIN`] rows or more; fewer rows are copied, since batches have costs of their own. Between
//! shards of a process the rows cross once for each shard, with the list of its branches.

use std::collections::BTreeMap;
use std::sync::Arc;

use anabranch_batch::Batch;
use arrow::array::{ArrayRef, Int64Array};

/// Fewest rows that are handed on to all branches: so many cost as much to copy as a query costs a
/// batch (113 µs by 28 ns, see [`LocalCosts`](super::local::LocalCosts::MEASURED)).
pub const ROWS_MIN: usize = 4096;

/// Rows of a batch that is handed on, at most: a batch costs each branch some two microseconds.
pub const ROWS_MAX: usize = 16 * ROWS_MIN;

/// Rows of all constant columns that a shard keeps, at most: 32 MiB.
const KEPT_MAX: usize = 1 << 22;

/// The constant columns of a shard.
#[derive(Debug, Default)]
pub struct ConstantColumns {
    /// By their number.
    kept: BTreeMap<i64, ArrayRef>,
    /// Rows of all of them.
    rows: usize,
}

impl ConstantColumns {
    /// So many times the same number.
    pub fn of(&mut self, number: i64, rows: usize) -> ArrayRef {
        let made = |rows: usize| -> ArrayRef { Arc::new(Int64Array::from_value(number, rows)) };
        let kept = self.kept.get(&number).map_or(0, |column| column.len());
        if kept < rows {
            let wanted = rows.next_power_of_two();
            if self.rows - kept + wanted > KEPT_MAX {
                return made(rows);
            }
            self.rows += wanted - kept;
            self.kept.insert(number, made(wanted));
        }
        self.kept[&number].slice(0, rows)
    }

    /// The rows in each of these branches, whose numbers are the column at `place`.
    pub fn in_branches<'a>(
        &'a mut self,
        rows: &'a Batch,
        place: usize,
        branches: &'a [i64],
    ) -> impl Iterator<Item = Batch> + 'a {
        branches.iter().map(move |branch| {
            let mut columns = rows.columns().to_vec();
            columns[place] = self.of(*branch, rows.len());
            rows.clone().with_columns(columns.into())
        })
    }
}

/// A batch as pieces that are handed on: about equal, of [`ROWS_MAX`] rows at most.
pub fn pieces(rows: &Batch) -> impl Iterator<Item = Batch> + '_ {
    let length = rows.len().div_ceil(rows.len().div_ceil(ROWS_MAX).max(1)).max(1);
    (0..rows.len()).step_by(length).map(move |start| rows.slice(start, length.min(rows.len() - start)))
}

#[cfg(test)]
mod tests {
    use anabranch_batch::{Diffs, Times};
    use arrow::array::{Array, AsArray};
    use arrow::datatypes::Int64Type;

    use super::*;

    fn batch(rows: usize) -> Batch {
        let column = |_| -> ArrayRef { Arc::new((0..rows as i64).collect::<Int64Array>()) };
        Batch::with_len((0..2).map(column).collect(), rows, Times::Constant(0), Diffs::Constant(1))
    }

    #[test]
    fn branches_share_the_columns_of_their_rows() {
        let (rows, mut columns) = (batch(5000), ConstantColumns::default());
        let address = |column: &ArrayRef| column.to_data().buffers()[0].as_ptr();
        let branches: Vec<Batch> = columns.in_branches(&rows, 1, &[3, 7]).collect();
        for (branch, number) in branches.iter().zip([3, 7]) {
            assert_eq!(address(branch.column(0)), address(rows.column(0)));
            assert!(branch.column(1).as_primitive::<Int64Type>().values().iter().all(|value| *value == number));
        }
        let again: Vec<Batch> = columns.in_branches(&rows.slice(0, 4100), 1, &[7]).collect();
        assert_eq!(address(again[0].column(1)), address(branches[1].column(1)), "one column for each branch");
    }

    #[test]
    fn pieces_are_neither_short_nor_long() {
        for rows in [ROWS_MIN, ROWS_MAX, ROWS_MAX + 1, 5 * ROWS_MAX - 1, 100_000] {
            let lengths: Vec<usize> = pieces(&batch(rows)).map(|piece| piece.len()).collect();
            assert_eq!(lengths.iter().sum::<usize>(), rows);
            assert!(lengths.iter().all(|length| (ROWS_MIN - 8..=ROWS_MAX).contains(length)), "{lengths:?}");
        }
    }
}
