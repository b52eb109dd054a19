//! What each operator of a dataflow has done: rows put out, time taken, up to which time, rows and
//! bytes held, and what of its rows has gone to other workers.
//!
//! Law: a turn's time belongs to the operators of its chain, each from where the one before it has
//! ended. Row errors and the run time's own work are counted for no operator. Counts are kept until
//! the dataflow is dropped.
//!
//! Cost: see `counting`, which takes them.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicI64, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use anabranch_batch::{END, Time};

/// An operator's counts on one worker. The session reads them without asking the worker.
#[derive(Debug)]
pub struct OperatorCounter {
    worker: usize,
    rows: AtomicU64,
    batches: AtomicU64,
    nanos: AtomicU64,
    /// All before is put out.
    upto: AtomicI64,
    /// One more than the rows held; 0 if they are not told.
    held: AtomicUsize,
    bytes: AtomicUsize,
}

/// What has left one worker for others, of the rows of one operator.
#[derive(Debug, Default)]
pub struct MoveCounter {
    worker: usize,
    rows: AtomicU64,
    bytes: AtomicU64,
}

/// What an operator holds on one worker, apart from arrangements.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct HeldState {
    /// Rows or groups, if it tells.
    pub rows: Option<usize>,
    /// Bytes, roughly.
    pub bytes: usize,
}

/// Rows that have gone from one worker to another, and their bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MovedCounts {
    /// Updates, each once a movement.
    pub rows: u64,
    /// Bytes of their columns, times and diffs, roughly.
    pub bytes: u64,
}

/// What an operator has done on one worker.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ShardWork {
    /// None of what is not counted, such as the rows of a relation as they come.
    pub counts: Option<OperatorCounts>,
    /// What has left the worker.
    pub moved: MovedCounts,
}

/// An operator's counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OperatorCounts {
    /// Updates put out, and
    pub rows: u64,
    /// the batches that they were in.
    pub batches: u64,
    /// Time taken, in nanoseconds.
    pub nanos: u64,
    /// All before this time is put out; the least time where the operator does not tell.
    pub upto: Time,
    /// Rows held, or groups, apart from arrangements, if the operator tells.
    pub held: Option<usize>,
    /// Bytes held, apart from arrangements.
    pub bytes: usize,
}

/// The counters of a dataflow, by number of the operator.
#[derive(Debug, Default)]
pub(super) struct Operators(Mutex<Counters>);

#[derive(Debug, Default)]
struct Counters {
    operators: Vec<(usize, Arc<OperatorCounter>)>,
    moves: Vec<(usize, Arc<MoveCounter>)>,
}

impl Default for OperatorCounts {
    /// Those of no worker.
    fn default() -> OperatorCounts {
        OperatorCounts { rows: 0, batches: 0, nanos: 0, upto: END, held: None, bytes: 0 }
    }
}

impl OperatorCounts {
    /// Of the same operator on another worker.
    fn add(&mut self, other: OperatorCounts) {
        self.rows += other.rows;
        self.batches += other.batches;
        self.nanos += other.nanos;
        self.upto = self.upto.min(other.upto);
        self.held = self.held.into_iter().chain(other.held).reduce(|one, other| one + other);
        self.bytes += other.bytes;
    }
}

impl OperatorCounter {
    fn new(worker: usize) -> OperatorCounter {
        OperatorCounter {
            worker,
            rows: AtomicU64::new(0),
            batches: AtomicU64::new(0),
            nanos: AtomicU64::new(0),
            upto: AtomicI64::new(Time::MIN),
            held: AtomicUsize::new(0),
            bytes: AtomicUsize::new(0),
        }
    }

    pub(crate) fn add(&self, rows: usize, batches: usize, nanos: u64) {
        self.rows.fetch_add(rows as u64, Ordering::Relaxed);
        self.batches.fetch_add(batches as u64, Ordering::Relaxed);
        self.nanos.fetch_add(nanos, Ordering::Relaxed);
    }

    /// All before this time is put out.
    pub(crate) fn reaches(&self, upto: Time) {
        self.upto.store(upto, Ordering::Relaxed);
    }

    /// As of now.
    fn counts(&self) -> OperatorCounts {
        OperatorCounts {
            rows: self.rows.load(Ordering::Relaxed),
            batches: self.batches.load(Ordering::Relaxed),
            nanos: self.nanos.load(Ordering::Relaxed),
            upto: self.upto.load(Ordering::Relaxed),
            held: self.held.load(Ordering::Relaxed).checked_sub(1),
            bytes: self.bytes.load(Ordering::Relaxed),
        }
    }

    pub(crate) fn holds(&self, held: HeldState) {
        self.held.store(held.rows.map_or(0, |rows| rows + 1), Ordering::Relaxed);
        self.bytes.store(held.bytes, Ordering::Relaxed);
    }
}

impl MoveCounter {
    pub(crate) fn add(&self, rows: usize, bytes: usize) {
        self.rows.fetch_add(rows as u64, Ordering::Relaxed);
        self.bytes.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    /// The worker that rows leave.
    pub(crate) fn worker(&self) -> usize {
        self.worker
    }
}

impl ShardWork {
    /// Of several workers together.
    pub fn of_all<'a>(works: impl IntoIterator<Item = &'a ShardWork>) -> ShardWork {
        let mut all = ShardWork::default();
        for work in works {
            if let Some(counts) = work.counts {
                all.counts.get_or_insert_default().add(counts);
            }
            all.moved.rows += work.moved.rows;
            all.moved.bytes += work.moved.bytes;
        }
        all
    }
}

impl Operators {
    /// A counter for an operator of the dataflow on a worker.
    pub fn count(&self, operator: usize, worker: usize) -> Arc<OperatorCounter> {
        let counter = Arc::new(OperatorCounter::new(worker));
        self.counters().operators.push((operator, Arc::clone(&counter)));
        counter
    }

    /// A counter for what leaves a worker, of the rows of an operator.
    pub fn count_moves(&self, operator: usize, worker: usize) -> Arc<MoveCounter> {
        let counter = Arc::new(MoveCounter { worker, ..MoveCounter::default() });
        self.counters().moves.push((operator, Arc::clone(&counter)));
        counter
    }

    /// The counts of the dataflow's operators, of all workers together.
    pub fn counts(&self) -> BTreeMap<usize, OperatorCounts> {
        self.counts_by(|operator, _| operator)
    }

    /// What each operator has done on each worker: by operator, then by worker.
    pub fn work_of_shards(&self) -> BTreeMap<usize, BTreeMap<usize, ShardWork>> {
        let mut work: BTreeMap<usize, BTreeMap<usize, ShardWork>> = BTreeMap::new();
        for ((operator, worker), counts) in self.counts_by(|operator, worker| (operator, worker)) {
            work.entry(operator).or_default().entry(worker).or_default().counts = Some(counts);
        }
        for (operator, counter) in &self.counters().moves {
            let moved = &mut work.entry(*operator).or_default().entry(counter.worker).or_default().moved;
            moved.rows += counter.rows.load(Ordering::Relaxed);
            moved.bytes += counter.bytes.load(Ordering::Relaxed);
        }
        work
    }

    fn counts_by<K: Ord>(&self, key: impl Fn(usize, usize) -> K) -> BTreeMap<K, OperatorCounts> {
        let mut counts: BTreeMap<K, OperatorCounts> = BTreeMap::new();
        for (operator, counter) in &self.counters().operators {
            counts.entry(key(*operator, counter.worker)).or_default().add(counter.counts());
        }
        counts
    }

    /// (Counters are whole whatever a thread that panicked was about to add.)
    fn counters(&self) -> MutexGuard<'_, Counters> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_of_workers_are_summed_by_operator() {
        let operators = Operators::default();
        let (first, other, second) = (operators.count(1, 0), operators.count(4, 0), operators.count(1, 1));
        first.add(10, 2, 100);
        second.add(5, 1, 50);
        other.add(1, 1, 1);
        first.reaches(9);
        second.reaches(7);
        first.holds(HeldState { rows: Some(3), bytes: 7 });
        second.holds(HeldState { rows: Some(2), bytes: 8 });
        first.holds(HeldState { rows: Some(0), bytes: 6 });
        let counts = operators.counts();
        assert_eq!(counts[&1], OperatorCounts { rows: 15, batches: 3, nanos: 150, upto: 7, held: Some(2), bytes: 14 });
        assert_eq!(counts[&4], OperatorCounts { rows: 1, batches: 1, nanos: 1, upto: Time::MIN, held: None, bytes: 0 });
        operators.count_moves(4, 1).add(3, 24);
        operators.count_moves(4, 1).add(1, 8);
        let apart = operators.work_of_shards();
        let second = OperatorCounts { rows: 5, batches: 1, nanos: 50, upto: 7, held: Some(2), bytes: 8 };
        assert_eq!(apart[&1][&1], ShardWork { counts: Some(second), moved: MovedCounts::default() });
        assert_eq!(apart[&4][&1], ShardWork { counts: None, moved: MovedCounts { rows: 4, bytes: 32 } });
        assert_eq!(apart[&4].len(), 2);
        for (operator, works) in &apart {
            assert_eq!(ShardWork::of_all(works.values()).counts, counts.get(operator).copied());
        }
    }
}
