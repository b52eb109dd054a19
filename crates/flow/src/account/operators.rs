//! What each operator of a dataflow has done: rows put out, time taken, rows and bytes held.
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
    /// One more than the rows held; 0 if they are not told.
    held: AtomicUsize,
    bytes: AtomicUsize,
}

/// What an operator holds on one worker, apart from arrangements.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct HeldState {
    /// Rows or groups, if it tells.
    pub rows: Option<usize>,
    /// Bytes, roughly.
    pub bytes: usize,
}

/// An operator's counts, of all workers together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OperatorCounts {
    /// Updates put out.
    pub rows: u64,
    /// Time taken, in nanoseconds.
    pub nanos: u64,
    /// Rows held, or groups, apart from arrangements, if the operator tells.
    pub held: Option<usize>,
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

    pub(crate) fn holds(&self, held: HeldState) {
        self.held.store(held.rows.map_or(0, |rows| rows + 1), Ordering::Relaxed);
        self.bytes.store(held.bytes, Ordering::Relaxed);
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
            if let Some(rows) = counter.held.load(Ordering::Relaxed).checked_sub(1) {
                of.held = Some(of.held.unwrap_or(0) + rows);
            }
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
        first.holds(HeldState { rows: Some(3), bytes: 7 });
        second.holds(HeldState { rows: Some(2), bytes: 8 });
        first.holds(HeldState { rows: Some(0), bytes: 6 });
        let counts = operators.counts();
        assert_eq!(counts[&1], OperatorCounts { rows: 15, nanos: 150, held: Some(2), bytes: 14 });
        assert_eq!(counts[&4], OperatorCounts { rows: 1, nanos: 1, held: None, bytes: 0 });
    }
}
