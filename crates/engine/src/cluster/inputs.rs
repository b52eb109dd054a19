//! What workers are given: rows, events and promises of times.
//!
//! Law: every worker gets every batch, with the piece of it that is its own, and every promise, in
//! one order. Rows and promises of commits may wait for a flush, behind which they are one turn.

use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use anabranch_batch::{Batch, Time};
use anabranch_flow::relay::RelayedBatch;

use super::deferred::HELD_ROWS_MAX;
use super::worker::Command;
use super::{ArrangementId, Cluster, CollectionId, DataflowId};

/// Rows above which a pushed batch is split among workers.
const SPLIT_ROWS: usize = 4096;
/// What a batch counts for at least while it waits to be taken in.
const BATCH_BYTES_MIN: usize = 1 << 10;

impl Cluster {
    /// Makes an input without rows, complete before `upper`.
    pub fn create_input(&mut self, input: CollectionId, upper: Time) {
        self.tell(|| Command::CreateInput { input, upper });
    }

    /// From now on an input has a time of its own, which [`advance_events`](Self::advance_events)
    /// advances.
    pub(crate) fn give_own_time(&mut self, input: CollectionId) {
        self.tell(|| Command::GiveOwnTime { input });
    }

    /// Forgets an input. Dataflows that read it hear no more.
    pub fn drop_input(&mut self, input: CollectionId) {
        self.tell(|| Command::DropInput { input });
    }

    /// Gives rows, with times at or after the input's frontier, to the workers in turn.
    pub fn push(&mut self, input: CollectionId, batch: Batch) {
        let batch = batch.flatten();
        match self.defers && batch.len() <= HELD_ROWS_MAX {
            true => self.deferred.hold(input, batch),
            false => self.push_events(input, batch),
        }
    }

    /// Gives events to the workers in turn, lifetimes and end edges as they are.
    pub fn push_events(&mut self, input: CollectionId, batch: Batch) {
        let batch = batch.compact();
        if batch.is_empty() {
            return;
        }
        let parts = if batch.len() > SPLIT_ROWS { self.n_workers } else { 1 };
        let bound = |part: usize| batch.len() * part / parts;
        let first = self.next_worker;
        self.next_worker = (first + parts) % self.n_workers;
        let part = |worker: usize| (worker + self.n_workers - first) % self.n_workers;
        let own =
            |worker: usize| if part(worker) < parts { bound(part(worker))..bound(part(worker) + 1) } else { 0..0 };
        let pieces = (0..self.n_workers).map(own).collect();
        self.push_pieces(input, &batch, pieces);
    }

    /// Gives events to one worker, so that operators see them in order of arrival.
    pub fn push_events_in_order(&mut self, input: CollectionId, batch: Batch) {
        let batch = batch.compact();
        if !batch.is_empty() {
            let own = |worker: usize| if worker == 0 { 0..batch.len() } else { 0..0 };
            let pieces = (0..self.n_workers).map(own).collect();
            self.push_pieces(input, &batch, pieces);
        }
    }

    /// Gives a batch to all workers, of which each has a piece.
    fn push_pieces(&mut self, input: CollectionId, batch: &Batch, pieces: Vec<Range<usize>>) {
        // (A batch of few rows takes more than its rows do.)
        let load = self.accounts.load(batch.size_bytes().max(BATCH_BYTES_MIN));
        for (worker, arrival) in RelayedBatch::of_workers(batch, pieces).enumerate() {
            let push = Command::Push { input, arrival, load: Arc::clone(&load) };
            match self.defers {
                // (No worker can do much with rows of a time that is not complete.)
                true => self.put_one(worker, push),
                false => self.tell_one(worker, push),
            }
        }
    }

    /// Bytes of rows that were pushed and that some dataflow has not taken in.
    pub(crate) fn backlog_bytes(&self) -> usize {
        self.accounts.backlog_bytes()
    }

    /// Makes an input of events, with a time of its own, which begins before all times.
    pub fn create_events(&mut self, input: CollectionId) {
        self.tell(|| Command::CreateEvents { input });
    }

    /// Promises, for one input of events, that no event with a time before `upper` will be pushed.
    pub fn advance_events(&mut self, input: CollectionId, upper: Time) {
        self.tell(|| Command::AdvanceEvents { input, upper });
    }

    /// Says that the watermark of an input has a value from a time on: rows at later times are
    /// judged by it.
    pub fn mark(&mut self, input: CollectionId, time: Time, value: i64) {
        self.tell(|| Command::Mark { input, time, value });
    }

    /// Promises, for every input without a time of its own, that no update with a time before
    /// `upper` will be pushed.
    pub fn advance(&mut self, upper: Time) {
        self.tell(|| Command::Advance { upper });
    }

    /// Promises as [`advance`](Self::advance) that the commit at `time` is whole, the first after
    /// the one at `before`. The promise may wait for a [`flush`](Self::flush).
    pub(crate) fn advance_past(&mut self, before: Time, time: Time) {
        match self.defers {
            true => self.deferred.promise(before, time),
            false => self.advance(time + 1),
        }
    }

    /// From now on rows and promises may wait for a [`flush`](Self::flush), which the caller makes
    /// before it sleeps: commits that come close to each other are one turn of the workers.
    pub(crate) fn defer(&mut self) {
        self.defers = true;
    }

    /// How many commits wait for a flush.
    pub(crate) fn deferred_commits(&self) -> usize {
        self.deferred.commits()
    }

    /// The commit before those that wait for a flush, if some do.
    pub(crate) fn deferred_after(&self) -> Option<Time> {
        self.deferred.before()
    }

    /// How long commits may wait for more, since workers have rows that they have not taken in;
    /// `None` if nothing waits, or not any longer.
    pub(crate) fn patience(&self) -> Option<Duration> {
        if self.backlog_bytes() > 0 { self.deferred.patience() } else { None }
    }

    /// Gives the workers what waits. Every other command comes after it.
    pub(crate) fn flush(&mut self) {
        let (rows, upper) = self.deferred.take();
        rows.into_iter().for_each(|(input, batch)| self.push_events(input, batch));
        if let Some(upper) = upper {
            (0..self.n_workers).for_each(|worker| self.tell_one(worker, Command::Advance { upper }));
        }
    }

    /// Gives the workers what waits as one time, wherever no reader tells the commits apart.
    /// `since` is up to when arrangements are let go, `horizons` are as in
    /// [`set_horizons`](Self::set_horizons), after the commit before those that wait.
    pub(crate) fn flush_as_one(&mut self, since: &[(ArrangementId, Time)], horizons: Vec<(DataflowId, Time)>) {
        let Some(after) = self.deferred.before() else { return self.flush() };
        let horizons: Arc<[(DataflowId, Time)]> = horizons.into();
        let forget = |&(arrangement, since): &(_, _)| Command::AllowCompaction { arrangement, since };
        // (Before the rows: a worker that is awake takes these in as soon as they come.)
        for worker in 0..self.n_workers {
            since.iter().for_each(|since| self.put_one(worker, forget(since)));
            self.put_one(worker, Command::SetHorizons { after, horizons: Arc::clone(&horizons) });
        }
        self.flush();
    }
}
