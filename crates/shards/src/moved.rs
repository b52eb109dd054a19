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
    /// Bytes of rows that left their shard.
    pub bytes: u64,
}

impl AddAssign for Moved {
    fn add_assign(&mut self, other: Moved) {
        self.rows_hashed += other.rows_hashed;
        self.rows_kept += other.rows_kept;
        self.rows_near += other.rows_near;
        self.rows_far += other.rows_far;
        self.bytes += other.bytes;
    }
}
