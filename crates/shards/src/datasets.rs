//! Results that are kept in memory, by name: sources of later programs.
//!
//! Law: a program over a dataset means what it would mean over the program whose result was kept.
//! Rows stay in the shards in which they came out, and what is known of where they lie stays with
//! them, so nothing is computed or moved again. A dataset does not change. Its memory is freed when
//! it was dropped and no program holds it. Source: Quill, 3.4 (`ToMemory`, `searchDataset`,
//! `removeDataset`).

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use anabranch_batch::{Batch, END};
use anabranch_engine::Error;
use anabranch_engine::nearest::nearest;

use crate::dataset::{Dataset, DatasetRows};
use crate::program::Shards;
use crate::run::{RunOutcome, ShardRun};
use crate::safety::SafetyState;

/// Datasets by name, shared by all programs that hold a clone of this.
#[derive(Clone, Debug, Default)]
pub struct Datasets {
    by_name: Arc<Mutex<BTreeMap<String, Arc<Dataset>>>>,
}

impl Datasets {
    /// Keeps the result of a program that has run to its end, under a name that is free.
    ///
    /// # Errors
    /// The first error of building the program; `Invalid` when the name is taken, when a shard has
    /// not come to its end, and for results that are those of one shard in part only.
    pub fn keep(&self, name: &str, program: &Shards, result: RunOutcome) -> Result<(), Error> {
        let dataset = dataset_of(name, program, result)?;
        let mut by_name = self.lock();
        if by_name.contains_key(name) {
            return Err(Error::invalid(format!("there is a dataset \"{name}\" already"))
                .with_hint("Drop it first, or give this one another name."));
        }
        by_name.insert(name.to_owned(), Arc::new(dataset));
        Ok(())
    }

    /// A dataset as the beginning of a program: its rows are where they are.
    ///
    /// # Errors
    /// Those of the program that is built: there is no dataset of this name.
    pub fn read(&self, name: &str) -> Shards {
        let found = self.lock().get(name).cloned();
        match found {
            Some(dataset) => Shards::of_dataset(dataset),
            None => Shards::failed(self.missing(name)),
        }
    }

    /// Forgets a dataset.
    ///
    /// # Errors
    /// `Invalid` when there is none of this name.
    pub fn drop(&self, name: &str) -> Result<(), Error> {
        let dropped = self.lock().remove(name);
        dropped.map(|_| ()).ok_or_else(|| self.missing(name))
    }

    /// All datasets, by name.
    pub fn list(&self) -> Vec<Arc<Dataset>> {
        self.lock().values().cloned().collect()
    }

    fn missing(&self, name: &str) -> Error {
        let error = Error::invalid(format!("there is no dataset \"{name}\""));
        let by_name = self.lock();
        match nearest(name, by_name.keys().map(String::as_str)) {
            Some(near) => error.with_hint(format!("Did you mean \"{near}\"?")),
            None => error.with_hint("Keep the result of a run with ShardRun::to_memory."),
        }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Arc<Dataset>>> {
        // (No change of the map can be seen half done.)
        self.by_name.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ShardRun {
    /// Ends all sources, and keeps the result in memory as a dataset of this name.
    ///
    /// # Errors
    /// As for [`finish`](ShardRun::finish) and [`Datasets::keep`]; `Invalid` when
    /// [`drain`](ShardRun::drain) has taken a part of the result before.
    pub fn to_memory(mut self, program: &Shards, datasets: &Datasets, name: &str) -> Result<(), Error> {
        self.check_untaken(name)?;
        let result = self.finish()?;
        datasets.keep(name, program, result)
    }
}

/// The result of a program that has run to its end.
pub(crate) fn dataset_of(name: &str, program: &Shards, result: RunOutcome) -> Result<Dataset, Error> {
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
