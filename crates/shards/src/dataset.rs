//! A result that is kept: rows in their shards, and where they lie.

use std::fmt;

use anabranch_batch::Batch;
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
    /// Events of each shard, in order of time.
    pub(crate) shards: Vec<Vec<Batch>>,
}

impl Dataset {
    /// Events in all shards: starts and ends count by themselves where they came by themselves.
    pub fn events(&self) -> usize {
        self.shards.iter().flatten().map(Batch::len).sum()
    }

    /// Bytes of its rows.
    pub fn size_bytes(&self) -> usize {
        let of_batch =
            |batch: &Batch| batch.columns().iter().map(|column| column.get_array_memory_size()).sum::<usize>();
        self.shards.iter().flatten().map(of_batch).sum()
    }
}

impl fmt::Debug for Dataset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (events, shards) = (self.events(), self.layout.shards());
        write!(f, "Dataset(\"{}\", {events} events in {shards} shards, {})", self.name, self.placement)
    }
}
