//! The flat normal form of a batch: every row is present and none has a lifetime.
//!
//! Law: a [`FlatBatch`] is a batch whose row `i` means the one update (row, `times.get(i)`,
//! `diffs.get(i)`), and nothing else. Only [`FlatBatch::from`] and methods that keep the form make
//! one, so a consumer that takes a `FlatBatch` need not look for absent rows or lifetimes. The
//! other forms are the *event batch* (rows with lifetimes) and the *loose* batch (absent rows,
//! too): both are a plain [`Batch`].
//!
//! Cost: making one of a batch that is flat moves pointers; see [`Batch::flatten`] for others.

use std::ops::Deref;

use arrow::array::BooleanArray;

use crate::batch::Batch;
use crate::control::{Diffs, Time, Times, Until};

/// A batch in flat normal form. Reads as the [`Batch`] that it is.
#[derive(Clone, Default, Debug)]
pub struct FlatBatch(Batch);

impl From<Batch> for FlatBatch {
    /// Leaves out absent rows, and writes lifetimes out as two updates ([`Batch::flatten`]).
    fn from(batch: Batch) -> FlatBatch {
        let batch = batch.flatten();
        debug_assert!(batch.present().is_none() && matches!(batch.until(), Until::Forever));
        FlatBatch(batch)
    }
}

impl From<FlatBatch> for Batch {
    fn from(batch: FlatBatch) -> Batch {
        batch.0
    }
}

impl Deref for FlatBatch {
    type Target = Batch;

    fn deref(&self) -> &Batch {
        &self.0
    }
}

impl FlatBatch {
    /// The same batch, as a batch of any form.
    pub fn into_batch(self) -> Batch {
        self.0
    }

    /// As [`Batch::with_key`].
    ///
    /// # Panics
    /// If there is no such column.
    pub fn with_key(self, columns: &[usize]) -> FlatBatch {
        FlatBatch(self.0.with_key(columns))
    }

    /// As [`Batch::with_times`].
    ///
    /// # Panics
    /// If `times` is a column of another length.
    pub fn with_times(self, times: Times) -> FlatBatch {
        FlatBatch(self.0.with_times(times))
    }

    /// As [`Batch::with_diffs`].
    ///
    /// # Panics
    /// If `diffs` is a column of another length.
    pub fn with_diffs(self, diffs: Diffs) -> FlatBatch {
        FlatBatch(self.0.with_diffs(diffs))
    }

    /// As [`Batch::take`].
    ///
    /// # Panics
    /// If a row is out of bounds.
    pub fn take(&self, rows: &[u32]) -> FlatBatch {
        FlatBatch(self.0.take(rows))
    }

    /// As [`Batch::filter`].
    ///
    /// # Panics
    /// If `keep` does not have one entry per row.
    pub fn filter(&self, keep: &BooleanArray) -> FlatBatch {
        FlatBatch(self.0.filter(keep))
    }

    /// As [`Batch::after`].
    pub fn after(&self, time: Time) -> FlatBatch {
        FlatBatch(self.0.after(time))
    }

    /// As [`Batch::negate`].
    pub fn negate(self) -> FlatBatch {
        FlatBatch(self.0.negate())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Rng, meaning, random_batch};

    #[test]
    fn a_flat_batch_means_what_its_batch_means_and_stays_flat() {
        let mut rng = Rng::from_env(61);
        for _ in 0..200 {
            let batch = random_batch(&mut rng);
            let flat = FlatBatch::from(batch.clone());
            assert_eq!(meaning(&flat), meaning(&batch));
            let rows: Vec<u32> = (0..flat.len() as u32).rev().step_by(2).collect();
            let keep: BooleanArray = (0..flat.len()).map(|row| Some(row % 3 > 0)).collect();
            let all = [flat.take(&rows), flat.filter(&keep), flat.after(1), flat.clone().negate()];
            for batch in all.into_iter().chain([flat.with_times(Times::Constant(3))]) {
                assert!(batch.present().is_none() && matches!(batch.until(), Until::Forever));
            }
        }
    }
}
