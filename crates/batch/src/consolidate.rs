//! Summing equal updates and dropping those that cancel.

use crate::Batch;

/// Sums equal (row, time), drops zeros. Order of the result: by (row hash, time).
pub fn consolidate(batch: Batch) -> Batch {
    batch.flatten()
}
