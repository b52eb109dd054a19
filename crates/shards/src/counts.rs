//! Counts that a shard keeps of its work.
//!
//! Law: a shard counts for itself, and counting changes nothing that comes out. Cost: a look at the
//! thread's clock for each batch or promise that a step takes.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use anabranch_batch::Time;

use crate::moved::Moved;

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
        moved: Moved { rows_hashed: 0, rows_kept: 0, rows_near: 0, rows_far: 0, bytes: 0, bytes_kept: 0, bytes_far: 0 },
        frontier: Time::MIN,
    };
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

    /// Messages that wait.
    pub fn queued(&self) -> usize {
        self.queued.load(Ordering::Relaxed)
    }

    fn lock(&self) -> MutexGuard<'_, Vec<StepCounts>> {
        // (A count that was half done when its thread panicked is a count all the same.)
        self.steps.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
