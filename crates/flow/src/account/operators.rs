//! What each operator of a dataflow has done: rows put out, time taken, bytes held.
//!
//! Law: a turn's time belongs to the operators of its chain, each from where the one before it has
//! ended. Row errors and the run time's own work are counted for no operator. Counts are kept until
//! the dataflow is dropped.
//!
//! Cost: see `counting`, which takes them.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// An operator's counts on one worker. The session reads them without asking the worker.
#[derive(Debug, Default)]
pub struct OperatorCounter {
    rows: AtomicU64,
    nanos: AtomicU64,
    bytes: AtomicUsize,
}

/// An operator's counts, of all workers together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OperatorCounts {
    /// Updates put out.
    pub rows: u64,
    /// Time taken, in nanoseconds.
    pub nanos: u64,
    /// Bytes held, apart from arrangements.
    pub bytes: usize,
}

/// The counters of a dataflow, by number of the operator.
#[derive(Debug, Default)]
pub(super) struct Operators(Mutex<Vec<(usize, Arc<OperatorCounter>)>>);

impl OperatorCounter {
    pub(crate) fn add(&self, rows: usize, nanos: u64) {
        self.rows.fetch_add(rows as u64, Ordering::Relaxed);
        self.nanos.fetch_add(nanos, Ordering::Relaxed);
    }

    pub(crate) fn holds(&self, bytes: usize) {
        self.bytes.store(bytes, Ordering::Relaxed);
    }
}

impl Operators {
    /// A counter for an operator of the dataflow on a worker.
    pub fn count(&self, operator: usize) -> Arc<OperatorCounter> {
        let counter = Arc::new(OperatorCounter::default());
        // (Counters are whole whatever a thread that panicked was about to add.)
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.push((operator, Arc::clone(&counter)));
        counter
    }

    /// The counts of the dataflow's operators.
    pub fn counts(&self) -> BTreeMap<usize, OperatorCounts> {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut counts: BTreeMap<usize, OperatorCounts> = BTreeMap::new();
        for (operator, counter) in all.iter() {
            let of = counts.entry(*operator).or_default();
            of.rows += counter.rows.load(Ordering::Relaxed);
            of.nanos += counter.nanos.load(Ordering::Relaxed);
            of.bytes += counter.bytes.load(Ordering::Relaxed);
        }
        counts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_of_workers_are_summed_by_operator() {
        let operators = Operators::default();
        let (first, other, second) = (operators.count(1), operators.count(4), operators.count(1));
        first.add(10, 100);
        second.add(5, 50);
        other.add(1, 1);
        first.holds(7);
        second.holds(8);
        first.holds(6);
        let counts = operators.counts();
        assert_eq!(counts[&1], OperatorCounts { rows: 15, nanos: 150, bytes: 14 });
        assert_eq!(counts[&4], OperatorCounts { rows: 1, nanos: 1, bytes: 0 });
    }
}
