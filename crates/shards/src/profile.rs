//! What each step has done in each shard, and what waits there.
//!
//! Law: a shard counts for itself, and counting changes nothing that comes out. Counts of one
//! process are those of now; counts of the others are those of when they were last at rest.
//! Cost: a look at the thread's clock for each batch or promise that a step takes.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use anabranch_batch::{END, Time};
use anabranch_engine::{Error, Rows};
use arrow::array::{ArrayRef, Float64Array, Int64Array, RecordBatch, StringArray};
use arrow::datatypes::{Field, Schema, SchemaRef};

use crate::moved::Moved;
use crate::run::ShardRun;

/// What one step has done in one shard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StepCounts {
    /// Rows that it took.
    pub rows_in: u64,
    /// Batches that it took.
    pub batches_in: u64,
    /// Rows that it gave, once however many steps read them.
    pub rows_out: u64,
    /// Batches that it gave.
    pub batches_out: u64,
    /// CPU time of its work, in nanoseconds.
    pub cpu_nanos: u64,
    /// What it hashed and moved.
    pub moved: Moved,
    /// No row of it in this shard lies before this time.
    pub frontier: Time,
}

impl StepCounts {
    /// Of a step that has done nothing.
    pub const NONE: StepCounts = StepCounts {
        rows_in: 0,
        batches_in: 0,
        rows_out: 0,
        batches_out: 0,
        cpu_nanos: 0,
        moved: Moved { rows_hashed: 0, rows_kept: 0, rows_near: 0, rows_far: 0, bytes: 0 },
        frontier: Time::MIN,
    };
}

/// One step in one shard.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StepProfile {
    /// The shard.
    pub shard: usize,
    /// The step, in order of the program.
    pub step: usize,
    /// What it does.
    pub action: String,
    /// What it has done.
    pub counts: StepCounts,
    /// Messages that wait at the shard, for any step; 0 for shards of other processes.
    pub queued: usize,
    /// By how much the furthest source is ahead of it, in ticks; none where it has no frontier yet,
    /// or has come to its end.
    pub lag: Option<u64>,
}

/// The counts of a shard.
pub(crate) struct ShardCounts {
    steps: Mutex<Vec<StepCounts>>,
    queued: AtomicUsize,
}

impl ShardCounts {
    /// Of a program of so many steps.
    pub fn new(steps: usize) -> ShardCounts {
        ShardCounts { steps: Mutex::new(vec![StepCounts::NONE; steps]), queued: AtomicUsize::new(0) }
    }

    /// Changes the counts of a step.
    pub fn count(&self, step: usize, change: impl FnOnce(&mut StepCounts)) {
        if let Some(step) = self.lock().get_mut(step) {
            change(step);
        }
    }

    /// All of them.
    pub fn steps(&self) -> Vec<StepCounts> {
        self.lock().clone()
    }

    /// Counts of another process take the place of these.
    pub fn replace(&self, steps: Vec<StepCounts>) {
        *self.lock() = steps;
    }

    /// A message begins to wait.
    pub fn queue(&self) {
        self.queued.fetch_add(1, Ordering::Relaxed);
    }

    /// A message is taken.
    pub fn unqueue(&self) {
        self.queued.fetch_sub(1, Ordering::Relaxed);
    }

    fn lock(&self) -> MutexGuard<'_, Vec<StepCounts>> {
        // (A count that was half done when its thread panicked is a count all the same.)
        self.steps.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ShardRun {
    /// What each step has done in each shard so far: by shard, then in order of the program.
    pub fn profile(&self) -> Vec<StepProfile> {
        let actions = self.actions();
        let furthest = self.furthest_source();
        let of_shard = |(shard, counts): (usize, &ShardCounts)| -> Vec<StepProfile> {
            let queued = counts.queued.load(Ordering::Relaxed);
            let profile = |(step, counts): (usize, StepCounts)| {
                let is_between = counts.frontier > Time::MIN && counts.frontier < END;
                let lag = furthest.filter(|_| is_between).map(|first| first.saturating_sub(counts.frontier).max(0));
                let action = actions.get(step).copied().unwrap_or_default().to_owned();
                StepProfile { shard, step, action, counts, queued, lag: lag.map(i64::unsigned_abs) }
            };
            counts.steps().into_iter().enumerate().map(profile).collect()
        };
        self.counts().iter().enumerate().flat_map(of_shard).collect()
    }

    /// The [profile](ShardRun::profile) as rows: `shard`, `step`, `action`, rows and batches, rows
    /// `hashed`, `kept`, moved `near` and `far`, `bytes`, `cpu_ms`, `queued`, `frontier`, `lag`.
    ///
    /// # Errors
    /// `Internal` when they cannot be made, which is a bug.
    pub fn profile_rows(&self) -> Result<Rows, Error> {
        let profile = self.profile();
        let numbers = |of: &dyn Fn(&StepProfile) -> Option<u64>| -> ArrayRef {
            let number = |step| of(step).map(|number| i64::try_from(number).unwrap_or(i64::MAX));
            Arc::new(profile.iter().map(number).collect::<Int64Array>())
        };
        let counted = |of: fn(&StepCounts) -> u64| numbers(&|step| Some(of(&step.counts)));
        let actions: StringArray = profile.iter().map(|step| Some(step.action.as_str())).collect();
        let millis: Float64Array = profile.iter().map(|step| Some(step.counts.cpu_nanos as f64 / 1e6)).collect();
        let has_frontier = |time: Time| time > Time::MIN && time < END;
        let frontiers = profile.iter().map(|step| Some(step.counts.frontier).filter(|time| has_frontier(*time)));
        let columns: Vec<(&str, ArrayRef)> = vec![
            ("shard", numbers(&|step| Some(step.shard as u64))),
            ("step", numbers(&|step| Some(step.step as u64))),
            ("action", Arc::new(actions)),
            ("rows_in", counted(|counts| counts.rows_in)),
            ("batches_in", counted(|counts| counts.batches_in)),
            ("rows_out", counted(|counts| counts.rows_out)),
            ("batches_out", counted(|counts| counts.batches_out)),
            ("hashed", counted(|counts| counts.moved.rows_hashed)),
            ("kept", counted(|counts| counts.moved.rows_kept)),
            ("near", counted(|counts| counts.moved.rows_near)),
            ("far", counted(|counts| counts.moved.rows_far)),
            ("bytes", counted(|counts| counts.moved.bytes)),
            ("cpu_ms", Arc::new(millis)),
            ("queued", numbers(&|step| Some(step.queued as u64))),
            ("frontier", Arc::new(frontiers.collect::<Int64Array>())),
            ("lag", numbers(&|step| step.lag)),
        ];
        let field = |(name, column): &(&str, ArrayRef)| Field::new(*name, column.data_type().clone(), true);
        let schema: SchemaRef = Arc::new(Schema::new(columns.iter().map(field).collect::<Vec<_>>()));
        let columns = columns.into_iter().map(|(_, column)| column).collect();
        let batch = RecordBatch::try_new(schema.clone(), columns);
        Ok(Rows::new(schema, vec![batch.map_err(|error| Error::internal(error.to_string()))?]))
    }
}
