//! What is on its way between shards, what went wrong there, and what has moved.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use anabranch_engine::Error;

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

/// Messages under way, and the first error. The only thing that threads of a run share.
#[derive(Default)]
pub struct Traffic {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    under_way: usize,
    error: Option<Error>,
    moved: Vec<Moved>,
}

impl Traffic {
    /// A message was sent.
    pub fn begin(&self) {
        self.lock().under_way += 1;
    }

    /// A message was dealt with, and all that follows from it was sent.
    pub fn end(&self) {
        self.lock().under_way -= 1;
        self.changed.notify_all();
    }

    /// A shard has failed; the first reason counts.
    pub fn fail(&self, error: Error) {
        self.lock().error.get_or_insert(error);
        self.changed.notify_all();
    }

    /// Waits until at most so many messages are under way.
    ///
    /// # Errors
    /// That of a shard that failed.
    pub fn wait(&self, messages_max: usize) -> Result<(), Error> {
        let mut state = self.lock();
        while state.error.is_none() && state.under_way > messages_max {
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        state.error.clone().map_or(Ok(()), Err)
    }

    /// Counts what a step moved.
    pub fn count(&self, step: usize, add: impl FnOnce(&mut Moved)) {
        let mut state = self.lock();
        if state.moved.len() <= step {
            state.moved.resize(step + 1, Moved::default());
        }
        add(&mut state.moved[step]);
    }

    /// What each step moved, as far as it was counted.
    pub fn moved(&self) -> Vec<Moved> {
        self.lock().moved.clone()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
