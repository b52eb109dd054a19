//! What waits until the engine's turn ends: rows of small commits, and the promise that they are
//! whole. While workers have not taken in the rows of a turn before, commits of the next turns wait
//! as well, for a millisecond at most: what workers do for a batch is then done once for more rows.
//!
//! Law: rows are given before the promise of a time later than theirs, and both before any other
//! command. The rows of one input are given as one batch, each at the time of its commit.
//!
//! Cost: an operator's turn for a batch, not for a row of one.

use std::time::{Duration, Instant};

use anabranch_batch::{Batch, Time};

use super::CollectionId;

/// Rows of a batch that waits, at most: of longer ones a copy costs more than a batch of their own.
pub(super) const HELD_ROWS_MAX: usize = 64;

/// How long commits wait at most for workers that have not taken in those before.
const WAIT_MAX: Duration = Duration::from_millis(1);
/// How many of them.
const WAITING_COMMITS_MAX: usize = 256;

/// What waits.
#[derive(Default)]
pub(super) struct Deferred {
    /// Batches by input, in the order in which the inputs came.
    rows: Vec<(CollectionId, Vec<Batch>)>,
    promise: Option<Promise>,
}

/// That some commits are whole.
struct Promise {
    /// Time of the commit before the first of them.
    before: Time,
    /// Time of the last of them.
    last: Time,
    n_commits: usize,
    since: Instant,
}

impl Deferred {
    /// Rows wait.
    pub fn hold(&mut self, input: CollectionId, batch: Batch) {
        let batch = batch.compact();
        if batch.is_empty() {
            return;
        }
        // (A table whose columns were altered has others behind them.)
        let is_like = |batches: &[Batch]| batches.last().is_some_and(|last| has_types_of(last, &batch));
        match self.rows.iter_mut().find(|(of, batches)| *of == input && is_like(batches)) {
            Some((_, batches)) => batches.push(batch),
            None => self.rows.push((input, vec![batch])),
        }
    }

    /// One more commit, the first after the one at `before`, is whole.
    pub fn promise(&mut self, before: Time, time: Time) {
        let promise =
            self.promise.get_or_insert_with(|| Promise { before, last: time, n_commits: 0, since: Instant::now() });
        promise.last = time;
        promise.n_commits += 1;
    }

    /// How many commits wait.
    pub fn commits(&self) -> usize {
        self.promise.as_ref().map_or(0, |promise| promise.n_commits)
    }

    /// How long those that wait may wait for more.
    pub fn patience(&self) -> Option<Duration> {
        let promise = self.promise.as_ref().filter(|promise| promise.n_commits < WAITING_COMMITS_MAX)?;
        WAIT_MAX.checked_sub(promise.since.elapsed()).filter(|left| !left.is_zero())
    }

    /// Time of the commit before those that wait, if some wait.
    pub fn before(&self) -> Option<Time> {
        self.promise.as_ref().map(|promise| promise.before)
    }

    /// The rows that have waited, and the frontier that is promised behind them.
    pub fn take(&mut self) -> (Vec<(CollectionId, Batch)>, Option<Time>) {
        let rows = std::mem::take(&mut self.rows).into_iter();
        let rows = rows.filter_map(|(input, batches)| Some((input, Batch::concat(&batches)?))).collect();
        (rows, self.promise.take().map(|promise| promise.last + 1))
    }
}

fn has_types_of(one: &Batch, other: &Batch) -> bool {
    let n_columns = one.columns().len();
    n_columns == other.columns().len()
        && (0..n_columns).all(|at| one.columns()[at].data_type() == other.columns()[at].data_type())
}
