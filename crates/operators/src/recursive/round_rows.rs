//! Rows that a loop gathers round by round.
//!
//! Law: all rows that were appended, in whatever order. Rounds of a few rows are joined to batches
//! of many: a batch takes some thousand bytes beside its rows, and a loop may have millions of
//! rounds. Cost: each row is copied a few times at most.

use anabranch_batch::Batch;

/// Batches that are joined together.
const JOINED: usize = 64;
/// Batches with more rows are left alone.
const FEW_ROWS: usize = 1 << 10;

/// See the module.
#[derive(Default)]
pub(super) struct RoundRows {
    batches: Vec<Batch>,
    /// Batches of few rows, by how often they were joined.
    small: Vec<Vec<Batch>>,
    /// Bytes of `batches`.
    bytes: usize,
}

impl RoundRows {
    /// Takes what a round has.
    pub fn append(&mut self, rows: &mut Vec<Batch>) {
        rows.drain(..).for_each(|batch| self.push(batch));
    }

    fn push(&mut self, mut batch: Batch) {
        let mut level = 0;
        while batch.len() <= FEW_ROWS {
            if self.small.len() <= level {
                self.small.push(Vec::new());
            }
            self.small[level].push(batch);
            if self.small[level].len() < JOINED {
                return;
            }
            let Some(joined) = Batch::concat(&std::mem::take(&mut self.small[level])) else { return };
            (batch, level) = (joined, level + 1);
        }
        self.bytes += batch.size_bytes();
        self.batches.push(batch);
    }

    /// Bytes of the rows, but of the newest.
    pub fn size_bytes(&self) -> usize {
        self.bytes
    }

    pub fn into_batches(self) -> Vec<Batch> {
        self.batches.into_iter().chain(self.small.into_iter().flatten()).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use anabranch_batch::{Diffs, Times};
    use arrow::array::{ArrayRef, AsArray, Int64Array};
    use arrow::datatypes::Int64Type;

    use super::*;

    #[test]
    fn rows_of_rounds_are_all_there_in_few_batches() {
        let mut rows = RoundRows::default();
        let (mut next, mut expected) = (0, Vec::new());
        for round in 0..20_000_i64 {
            let n_rows = if round % 5_000 == 4_999 { 3_000 } else { 1 + round % 2 };
            let values: Vec<i64> = (next..next + n_rows).collect();
            next += n_rows;
            let column: ArrayRef = Arc::new(Int64Array::from(values.clone()));
            expected.extend(values);
            rows.append(&mut vec![Batch::new(vec![column], Times::Constant(round), Diffs::Constant(1))]);
        }
        assert!(rows.size_bytes() > 8 * 40_000, "{} bytes", rows.size_bytes());
        let batches = rows.into_batches();
        assert!(batches.len() < 200, "{} batches", batches.len());
        let values = batches.iter().flat_map(|batch| batch.column(0).as_primitive::<Int64Type>().values().to_vec());
        let mut values: Vec<i64> = values.collect();
        values.sort_unstable();
        assert_eq!(values, expected);
    }
}
