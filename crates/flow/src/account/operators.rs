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

/// What one worker has sent to each and taken of all, itself included, of the rows of one operator.
#[derive(Debug)]
pub struct MoveCounter {
    worker: usize,
    sent: Vec<SentCounter>,
    /// Rows.
    taken: AtomicU64,
}

/// Rows and bytes that were sent to one worker.
#[derive(Debug, Default)]
struct SentCounter {
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
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ShardWork {
    /// None of what is not counted, such as the rows of a relation as they come.
    pub counts: Option<OperatorCounts>,
    /// What has left the worker.
    pub moved: MovedCounts,
    /// Its bytes by the worker that they have gone to. Empty if the operator's rows do not move.
    pub bytes_to: Vec<u64>,
    /// Rows that were sent to the worker, and that it has not taken yet.
    pub rows_waiting: u64,
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
    fn new(worker: usize, peers: usize) -> MoveCounter {
        let sent = (0..peers).map(|_| SentCounter::default()).collect();
        MoveCounter { worker, sent, taken: AtomicU64::new(0) }
    }

    /// Rows go to a worker; `bytes` are asked for where it is another one.
    pub(crate) fn send(&self, to: usize, rows: usize, bytes: impl FnOnce() -> usize) {
        self.sent[to].rows.fetch_add(rows as u64, Ordering::Relaxed);
        if to != self.worker {
            self.sent[to].bytes.fetch_add(bytes() as u64, Ordering::Relaxed);
        }
    }

    /// Rows have come.
    pub(crate) fn take(&self, rows: usize) {
        self.taken.fetch_add(rows as u64, Ordering::Release);
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
            all.rows_waiting += work.rows_waiting;
            all.bytes_to.resize(all.bytes_to.len().max(work.bytes_to.len()), 0);
            all.bytes_to.iter_mut().zip(&work.bytes_to).for_each(|(all, bytes)| *all += bytes);
        }
        all
    }

    /// Adds what a counter of the worker has sent, and which of its rows were taken there.
    fn add_moves(&mut self, counter: &MoveCounter) {
        self.bytes_to.resize(counter.sent.len(), 0);
        for (to, sent) in counter.sent.iter().enumerate().filter(|(to, _)| *to != counter.worker) {
            let bytes = sent.bytes.load(Ordering::Relaxed);
            self.moved.rows += sent.rows.load(Ordering::Relaxed);
            self.moved.bytes += bytes;
            self.bytes_to[to] += bytes;
        }
    }
}

impl Operators {
    /// A counter for an operator of the dataflow on a worker.
    pub fn count(&self, operator: usize, worker: usize) -> Arc<OperatorCounter> {
        let counter = Arc::new(OperatorCounter::new(worker));
        self.counters().operators.push((operator, Arc::clone(&counter)));
        counter
    }

    /// A counter for what a worker sends and takes, of the rows of an operator.
    pub fn count_moves(&self, operator: usize, worker: usize, peers: usize) -> Arc<MoveCounter> {
        let counter = Arc::new(MoveCounter::new(worker, peers));
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
        let counters = self.counters();
        // (What was taken is read first: it was sent before.)
        let mut taken: BTreeMap<(usize, usize), u64> = BTreeMap::new();
        for (operator, counter) in &counters.moves {
            *taken.entry((*operator, counter.worker)).or_default() += counter.taken.load(Ordering::Acquire);
        }
        let mut sent: BTreeMap<(usize, usize), u64> = BTreeMap::new();
        for (operator, counter) in &counters.moves {
            work.entry(*operator).or_default().entry(counter.worker).or_default().add_moves(counter);
            for (to, counter) in counter.sent.iter().enumerate() {
                *sent.entry((*operator, to)).or_default() += counter.rows.load(Ordering::Relaxed);
            }
        }
        for ((operator, worker), rows) in sent {
            let taken = taken.get(&(operator, worker)).copied().unwrap_or_default();
            work.entry(operator).or_default().entry(worker).or_default().rows_waiting = rows.saturating_sub(taken);
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
        let apart = operators.work_of_shards();
        let second = OperatorCounts { rows: 5, batches: 1, nanos: 50, upto: 7, held: Some(2), bytes: 8 };
        assert_eq!(apart[&1][&1], ShardWork { counts: Some(second), ..ShardWork::default() });
        assert_eq!(apart[&4].len(), 1);
        for (operator, works) in &apart {
            assert_eq!(ShardWork::of_all(works.values()).counts, counts.get(operator).copied());
        }
    }

    #[test]
    fn what_was_sent_waits_until_it_is_taken() {
        let operators = Operators::default();
        let [first, second, other] = [0, 1, 1].map(|worker| operators.count_moves(4, worker, 2));
        first.send(1, 3, || 24);
        first.send(0, 5, || unreachable!("what stays is not measured"));
        second.send(0, 2, || 16);
        other.send(0, 1, || 8);
        first.take(6);
        second.take(3);
        let works = &operators.work_of_shards()[&4];
        let of = |rows, bytes, bytes_to: [u64; 2], rows_waiting| ShardWork {
            counts: None,
            moved: MovedCounts { rows, bytes },
            bytes_to: bytes_to.to_vec(),
            rows_waiting,
        };
        assert_eq!((&works[&0], &works[&1]), (&of(3, 24, [0, 24], 2), &of(3, 24, [24, 0], 0)));
        assert_eq!(ShardWork::of_all(works.values()), of(6, 48, [24, 24], 2));
        // (What a worker has taken may be told before what was sent.)
        first.take(3);
        assert_eq!(operators.work_of_shards()[&4][&0].rows_waiting, 0);
    }
}
