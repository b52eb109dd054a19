//! How a session is set up.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anabranch_arrangement::MergeEffort;
use anabranch_store::{Durability, Snapshots};

use crate::clock::{Clock, WallClock};
use crate::sharing::Sharing;

/// How a session is set up.
#[derive(Clone)]
pub struct Options {
    /// Worker threads; 0 runs everything inside the caller's calls.
    pub workers: usize,
    /// How hard arrangements work at merging.
    pub merge_effort: MergeEffort,
    /// Where commit times come from.
    pub clock: Arc<dyn Clock>,
    /// Rows read from one source in one turn, at most.
    pub batch_rows_max: usize,
    /// Bytes of rows that COPY holds in memory before it sets further ones aside in a file.
    pub copy_bytes_max: usize,
    /// Where such files go.
    pub temporary_folder: PathBuf,
    /// Bytes that arrangements, operators, results and buffers may hold together; `None`, as at
    /// first, sets no limit, and programs that run for long take
    /// [`memory_for_state`](super::machine_memory::memory_for_state). `SET memory_limit` changes
    /// it.
    pub memory_limit: Option<usize>,
    /// Whether queries share the arrangements of indexes and of their common parts;
    /// [`Sharing::Full`] unless for comparison.
    pub sharing: Sharing,
    /// How long what has changed can still be read with AS OF.
    pub retain_history: Duration,
    /// When a commit of a database in a folder counts as done, unless `SET durability` says
    /// otherwise.
    pub durability: Durability,
    /// Where snapshots of a database in a folder go: beside its log, unless a place is named.
    pub snapshots: Snapshots,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            workers: 0,
            merge_effort: MergeEffort::default(),
            clock: Arc::new(WallClock),
            batch_rows_max: 65_536,
            copy_bytes_max: 64 << 20,
            temporary_folder: std::env::temp_dir(),
            memory_limit: None,
            sharing: Sharing::Full,
            retain_history: Duration::ZERO,
            durability: Durability::Full,
            snapshots: Snapshots::default(),
        }
    }
}
