//! Counts of rows and bytes that a step moved.

use std::ops::AddAssign;

/// Rows and bytes that one step has moved, by how far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Moved {
    /// Rows whose key hash was computed for the step.
    pub rows_hashed: u64,
    /// Rows that stayed in their shard.
    pub rows_kept: u64,
    /// Rows to other threads of their process.
    pub rows_near: u64,
    /// Rows to other processes.
    pub rows_far: u64,
    /// Bytes of rows that left their shard, near and far, in the wire form. A window counts its
    /// part of its batch's.
    pub bytes: u64,
    /// Bytes of rows that stayed in their shard, in the wire form; none are written.
    pub bytes_kept: u64,
    /// Bytes of rows to other processes; part of `bytes`.
    pub bytes_far: u64,
}

impl Moved {
    /// Bytes of rows to other threads of their process.
    pub fn bytes_near(&self) -> u64 {
        self.bytes.saturating_sub(self.bytes_far)
    }

    /// Rows and their bytes, sent this far.
    pub(crate) fn count(&mut self, distance: Distance, rows: u64, bytes: u64) {
        match distance {
            Distance::Kept => {
                self.rows_kept += rows;
                self.bytes_kept += bytes;
            }
            Distance::Near => {
                self.rows_near += rows;
                self.bytes += bytes;
            }
            Distance::Far => {
                self.rows_far += rows;
                self.bytes += bytes;
                self.bytes_far += bytes;
            }
        }
    }
}

/// How far rows went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Distance {
    /// Nowhere: they stayed in their shard.
    Kept,
    /// To another thread of their process.
    Near,
    /// To another process.
    Far,
}

impl AddAssign for Moved {
    fn add_assign(&mut self, other: Moved) {
        self.rows_hashed += other.rows_hashed;
        self.rows_kept += other.rows_kept;
        self.rows_near += other.rows_near;
        self.rows_far += other.rows_far;
        self.bytes += other.bytes;
        self.bytes_kept += other.bytes_kept;
        self.bytes_far += other.bytes_far;
    }
}
