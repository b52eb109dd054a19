//! Rows that stand in runs are copied as such.
//!
//! Law: rows that are taken by their runs are those that are taken one by one. Cost: a comparison a row to
//! find runs, and a copy of each run, where picking rows one by one costs a load and a store each.

use std::ops::Range;

use arrow::array::{ArrayRef, BooleanBufferBuilder};
use arrow::buffer::NullBuffer;

use crate::cells::nulls;

/// Shorter runs, on average, are as quickly copied row by row.
const RUN_ROWS_MIN: usize = 8;

/// Rows that tell whether there are runs.
const SAMPLED_ROWS: usize = 512;

/// Rows as ranges of rows that follow each other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RowRuns {
    runs: Vec<Range<u32>>,
    n_rows: usize,
}

impl RowRuns {
    /// The rows as runs, unless they are mostly scattered.
    pub fn of(rows: &[u32]) -> Option<RowRuns> {
        let is_scattered = |rows: &[u32]| {
            let breaks = rows.windows(2).map(|pair| u32::from(pair[0].wrapping_add(1) != pair[1]));
            RUN_ROWS_MIN * breaks.sum::<u32>() as usize > rows.len()
        };
        if is_scattered(&rows[..rows.len().min(SAMPLED_ROWS)]) || is_scattered(rows) {
            return None;
        }
        let run = |rows: &[u32]| rows[0]..rows[0] + rows.len() as u32;
        let runs = rows.chunk_by(|a, b| a.wrapping_add(1) == *b).map(run).collect();
        Some(RowRuns { runs, n_rows: rows.len() })
    }

    /// These rows of some values.
    pub fn values<T: Copy>(&self, values: &[T]) -> Vec<T> {
        let mut taken = Vec::with_capacity(self.n_rows);
        self.runs.iter().for_each(|run| taken.extend_from_slice(&values[run.start as usize..run.end as usize]));
        taken
    }

    /// The null bits of these rows of a column, if some are NULL.
    pub(super) fn nulls(&self, column: &ArrayRef) -> Option<NullBuffer> {
        let nulls = nulls(column)?;
        let mut valid = BooleanBufferBuilder::new(self.n_rows);
        for run in &self.runs {
            valid.append_buffer(&nulls.inner().slice(run.start as usize, run.len()));
        }
        Some(NullBuffer::new(valid.finish())).filter(|nulls| nulls.null_count() > 0)
    }

    /// The rows one by one.
    pub(super) fn rows(&self) -> impl Iterator<Item = u32> {
        self.runs.iter().cloned().flatten()
    }

    /// How many there are.
    pub(super) fn n_rows(&self) -> usize {
        self.n_rows
    }
}
