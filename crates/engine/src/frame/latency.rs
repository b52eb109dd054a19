//! How long rows may wait to be batched.
//!
//! Work in batches is cheaper by the row; a row that waits for others is later. An input's
//! [`latency`](Events::latency) says how long a row may wait, by the session's clock. Rows that
//! wait, and promises of time after them, are handed on together: when the first has waited so
//! long, when there are many, when the input ends, or at a [`flush`](Run::flush).
//!
//! Law: what comes out in the end does not depend on it. A promise made while rows wait is not kept
//! from the caller (late rows are refused), only from the workers.

use std::time::Duration;

use anabranch_batch::{Batch, END, Time};

use super::events::Events;
use super::run::FrameRun;
use crate::error::Error;

/// Rows that are handed on however short they have waited.
const HELD_ROWS_MAX: usize = 1 << 16;

/// Batches of at most so many rows are small: many of them are made one of their own.
const SMALL_ROWS_MAX: usize = 64;
/// Small batches that are made one. (As many as stay in the cache that they were written to: made
/// one at the end, each small batch of many would have to be fetched from memory.)
const SMALL_BATCHES_MAX: usize = 256;

/// Rows and a promise that wait to be handed on.
#[derive(Debug)]
pub(crate) struct Held {
    batches: Vec<Batch>,
    /// Small batches that came after these.
    small: Vec<Batch>,
    rows: usize,
    /// When the first of what waits came, micros of the session's clock.
    since: Option<i64>,
    /// The promise that the workers have.
    told: Time,
}

impl Default for Held {
    fn default() -> Held {
        Held { batches: Vec::new(), small: Vec::new(), rows: 0, since: None, told: Time::MIN }
    }
}

impl Held {
    /// The promise that the workers have.
    pub(super) fn told(&self) -> Time {
        self.told
    }

    fn keep(&mut self, batch: Batch) {
        self.rows += batch.len();
        if batch.len() > SMALL_ROWS_MAX {
            self.join_small();
            self.batches.push(batch);
            return;
        }
        self.small.push(batch);
        if self.small.len() >= SMALL_BATCHES_MAX {
            self.join_small();
        }
    }

    fn join_small(&mut self) {
        let joined = if self.small.len() == 1 { self.small.pop() } else { Batch::concat(&self.small) };
        self.small.clear();
        self.batches.extend(joined);
    }

    /// All rows, in the order in which they came.
    fn take(&mut self) -> Vec<Batch> {
        self.join_small();
        self.rows = 0;
        self.since = None;
        std::mem::take(&mut self.batches)
    }

    fn due_at(&self, latency: Duration) -> Option<i64> {
        let latency = i64::try_from(latency.as_micros()).unwrap_or(i64::MAX);
        self.since.map(|since| since.saturating_add(latency))
    }
}

impl Events {
    /// Rows may wait so long to be batched with others; not at all unless said.
    #[must_use]
    pub fn latency(mut self, latency: Duration) -> Events {
        self.latency = latency;
        self
    }
}

impl FrameRun<'_> {
    /// Hands on what has waited long enough. To be called now and then when rows are neither pushed
    /// nor asked for; returns after how long at the latest, if rows wait.
    ///
    /// # Errors
    /// `Internal` when a worker has failed.
    pub fn tick(&mut self) -> Result<Option<Duration>, Error> {
        self.hand_on_due()?;
        let now = self.clock.now_micros();
        let due = self.inputs.values().filter_map(|input| input.held.due_at(input.events.latency)).min();
        Ok(due.map(|due| Duration::from_micros(due.saturating_sub(now).max(0) as u64)))
    }

    /// Keeps rows to be handed on.
    pub(super) fn keep(&mut self, input: &str, batch: Batch) -> Result<(), Error> {
        let now = self.clock.now_micros();
        let held = &mut self.input(input)?.held;
        held.keep(batch);
        held.since.get_or_insert(now);
        Ok(())
    }

    /// Keeps the input's promise to be handed on.
    pub(super) fn promise(&mut self, input: &str, time: Time) -> Result<(), Error> {
        let now = self.clock.now_micros();
        let place = self.input(input)?;
        place.frontier = time;
        place.held.since.get_or_insert(now);
        Ok(())
    }

    /// Hands on what is due, and waits for what follows from it.
    pub(super) fn hand_on_due(&mut self) -> Result<(), Error> {
        let now = self.clock.now_micros();
        self.hand_on(|held, latency, frontier| {
            let is_due = held.due_at(latency).is_some_and(|due| due <= now);
            is_due || frontier == END || held.rows >= HELD_ROWS_MAX
        })
    }

    /// Hands on everything.
    pub(super) fn hand_on_all(&mut self) -> Result<(), Error> {
        self.hand_on(|_, _, _| true)
    }

    fn hand_on(&mut self, is_wanted: impl Fn(&Held, Duration, Time) -> bool) -> Result<(), Error> {
        let mut has_moved = false;
        let mut is_any = false;
        for input in self.inputs.values_mut() {
            if input.held.since.is_none() || !is_wanted(&input.held, input.events.latency, input.frontier) {
                continue;
            }
            is_any = true;
            let mut batches = input.held.take();
            let batch = if batches.len() == 1 { batches.pop() } else { Batch::concat(&batches) };
            match (batch, self.goes_by_arrival) {
                (Some(batch), true) => self.cluster.push_events_in_order(input.collection, batch),
                (Some(batch), false) => self.cluster.push_events(input.collection, batch),
                (None, _) => {}
            }
            if input.frontier > input.held.told {
                input.held.told = input.frontier;
                self.cluster.advance_events(input.collection, input.frontier);
                has_moved = true;
            }
        }
        if has_moved {
            return self.settle();
        }
        if is_any {
            self.cluster.step();
        }
        Ok(())
    }
}
