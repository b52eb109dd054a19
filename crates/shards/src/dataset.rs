//! A result that is kept: rows in their shards, and where they lie.

use std::fmt;

use anabranch_batch::Batch;
use anabranch_engine::Error;
use arrow::datatypes::SchemaRef;

use crate::layout::Layout;
use crate::placement::Placement;

/// The result of a program, in its shards.
pub struct Dataset {
    /// Its name.
    pub name: String,
    /// Columns of its rows.
    pub schema: SchemaRef,
    /// Names of the key's columns; empty for none.
    pub key: Vec<String>,
    /// Its shards.
    pub layout: Layout,
    /// Where its rows lie.
    pub placement: Placement,
    /// Its rows.
    pub(crate) rows: DatasetRows,
}

/// Where the rows of a dataset are.
pub(crate) enum DatasetRows {
    /// Events of each shard, in order of time.
    Memory(Vec<Vec<Batch>>),
    /// In a file for each shard.
    Files {
        /// Reads a shard.
        read: ReadShard,
        /// Events in all of them.
        events: usize,
    },
}

/// Gives the rows of a shard, in order.
pub(crate) type ReadShard =
    Box<dyn Fn(usize, &mut dyn FnMut(Batch) -> Result<(), Error>) -> Result<(), Error> + Send + Sync>;

impl Dataset {
    /// Events in all shards: starts and ends count by themselves where they came by themselves.
    pub fn events(&self) -> usize {
        match &self.rows {
            DatasetRows::Memory(shards) => shards.iter().flatten().map(Batch::len).sum(),
            DatasetRows::Files { events, .. } => *events,
        }
    }

    /// Bytes of its rows in memory.
    pub fn size_bytes(&self) -> usize {
        let of_batch =
            |batch: &Batch| batch.columns().iter().map(|column| column.get_array_memory_size()).sum::<usize>();
        match &self.rows {
            DatasetRows::Memory(shards) => shards.iter().flatten().map(of_batch).sum(),
            DatasetRows::Files { .. } => 0,
        }
    }

    /// Gives the rows of each shard, in order.
    pub(crate) fn each(&self, give: &mut dyn FnMut(usize, Batch) -> Result<(), Error>) -> Result<(), Error> {
        match &self.rows {
            DatasetRows::Memory(shards) => {
                let mut rows = shards.iter().enumerate();
                rows.try_for_each(|(shard, rows)| rows.iter().try_for_each(|rows| give(shard, rows.clone())))
            }
            DatasetRows::Files { read, .. } => {
                (0..self.layout.shards()).try_for_each(|shard| read(shard, &mut |rows| give(shard, rows)))
            }
        }
    }
}

impl fmt::Debug for Dataset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (events, shards) = (self.events(), self.layout.shards());
        write!(f, "Dataset(\"{}\", {events} events in {shards} shards, {})", self.name, self.placement)
    }
}
