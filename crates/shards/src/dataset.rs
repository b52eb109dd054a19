//! A result that is kept: rows in their shards, and where they lie.

use std::fmt;
use std::path::PathBuf;

use anabranch_batch::{Batch, END};
use anabranch_engine::Error;
use arrow::datatypes::SchemaRef;

use crate::layout::Layout;
use crate::placement::Placement;
use crate::program::Shards;
use crate::run::RunOutcome;
use crate::safety::SafetyState;
use crate::stored;
use crate::stream::Streamed;

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
    /// A stream for each shard.
    Files {
        /// Where they are.
        folder: PathBuf,
        /// Events in all of them.
        events: usize,
    },
}

impl Dataset {
    /// The result of a program that has run to its end.
    pub(crate) fn of(name: &str, program: &Shards, result: RunOutcome) -> Result<Dataset, Error> {
        let step = program.step()?;
        let known = program.known()?;
        if let SafetyState::Partial(_) | SafetyState::Wrong(_) = known.state {
            program.check()?;
        }
        if result.frontiers.iter().any(|frontier| *frontier < END) {
            return Err(Error::invalid(format!("the result \"{name}\" is not complete"))
                .with_hint("End all sources with finish(), and keep what all calls of drain() returned."));
        }
        // (Hashes of keys are not part of rows; a movement computes those that it needs.)
        let shards = result.shards.into_iter().map(|batches| batches.into_iter().map(Batch::without_key).collect());
        Ok(Dataset {
            name: name.to_owned(),
            schema: result.schema,
            key: step.key.clone(),
            layout: step.layout,
            placement: known.placement,
            rows: DatasetRows::Memory(shards.collect()),
        })
    }

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
        let folder = match &self.rows {
            DatasetRows::Memory(shards) => {
                let mut rows = shards.iter().enumerate();
                return rows.try_for_each(|(shard, rows)| rows.iter().try_for_each(|rows| give(shard, rows.clone())));
            }
            DatasetRows::Files { folder, .. } => folder,
        };
        for shard in 0..self.layout.shards() {
            let mut stream = stored::open(folder, shard)?;
            while let Streamed::Rows(batch) = stream.next()? {
                give(shard, batch)?;
            }
        }
        Ok(())
    }
}

impl fmt::Debug for Dataset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (events, shards) = (self.events(), self.layout.shards());
        write!(f, "Dataset(\"{}\", {events} events in {shards} shards, {})", self.name, self.placement)
    }
}
