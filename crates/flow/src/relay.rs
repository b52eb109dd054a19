//! Where rows enter: an input of a worker, heard by every dataflow that reads it.
//!
//! Law: every subscriber gets every update whose time was not complete when it subscribed: those
//! that were pushed before with times to come (the ends of lifetimes), then every batch pushed
//! afterwards, and the frontier that follows them, in order. Cost: a pointer a batch and
//! subscriber. What is complete is not kept for subscribers to come (that is what arrangements are
//! for); a batch with times to come is kept until its last time is complete. A subscriber that was
//! dropped is forgotten at the next push.
//!
//! Of several workers each gets the whole batch, and is told which rows are its own as long as
//! rows are dealt out in pieces. A subscriber may deal them out otherwise ([`crate::import`]).
//!
//! Source: DESIGN 6 (library mode: the caller's push does
//! the work).

use std::cell::RefCell;
use std::ops::Range;
use std::rc::{Rc, Weak};
use std::sync::Arc;

use anabranch_batch::{Batch, Time};

use crate::account::Load;
use crate::dealt::{DealtRows, WantedRows};
use crate::pending::split_at;
use crate::waker::Waker;

/// A batch that all workers get.
#[derive(Clone, Debug)]
pub struct RelayedBatch {
    /// All of its rows.
    pub batch: Batch,
    /// Those that are this worker's where they are dealt out in pieces.
    pub own: Range<usize>,
    /// Its rows by the hashes of keys, as far as a worker has asked for them; all workers have one.
    dealt: Arc<DealtRows>,
}

impl RelayedBatch {
    /// A batch for all workers, each of which has a piece.
    pub fn of_workers(batch: &Batch, pieces: Vec<Range<usize>>) -> impl Iterator<Item = RelayedBatch> {
        let dealt = Arc::new(DealtRows::of_workers(pieces.len()));
        pieces.into_iter().map(move |own| RelayedBatch { batch: batch.clone(), own, dealt: Arc::clone(&dealt) })
    }

    /// A batch that this worker alone gets.
    pub fn whole(batch: Batch) -> RelayedBatch {
        let own = 0..batch.len();
        RelayedBatch { batch, own, dealt: Arc::new(DealtRows::of_workers(1)) }
    }

    /// The rows that a shard has by the hash of some columns: see [`DealtRows::take`].
    pub(crate) fn dealt(&self, wanted: &WantedRows<'_>) -> Option<Batch> {
        self.dealt.take(&self.batch, wanted)
    }

    /// This worker's piece.
    pub fn piece(self) -> Batch {
        match self.own.len() == self.batch.len() {
            true => self.batch,
            false => self.batch.slice(self.own.start, self.own.len()),
        }
    }

    /// The same, of which no rows have been dealt out.
    fn afresh(self) -> RelayedBatch {
        RelayedBatch { dealt: Arc::new(DealtRows::of_workers(self.dealt.workers())), ..self }
    }

    /// The rows with times from `upper` on.
    fn from(&self, upper: Time) -> RelayedBatch {
        if self.batch.times().min() >= upper {
            return self.clone();
        }
        let Range { start, end } = self.own;
        let from = |start: usize, len: usize| split_at(&self.batch.slice(start, len), upper).1;
        let (before, own, behind) = (from(0, start), from(start, end - start), from(end, self.batch.len() - end));
        let range = before.len()..before.len() + own.len();
        let batch = Batch::concat(&[before, own, behind]).unwrap_or_default();
        // (These are other rows.)
        RelayedBatch { batch, own: range, ..self.clone() }.afresh()
    }
}

/// The writing end, owned by the worker.
pub struct Relay {
    upper: Time,
    /// Batches with times that are not complete, each with its last time, in order of arrival.
    open: Vec<(RelayedBatch, Time)>,
    subscribers: Vec<Weak<RefCell<Queue>>>,
}

/// A reading end, owned by a dataflow's source operator.
pub struct Subscriber(Rc<RefCell<Queue>>);

struct Queue {
    batches: Vec<RelayedBatch>,
    upper: Time,
    /// What the batches are counted by.
    loads: Vec<Arc<Load>>,
    wake: Option<Waker>,
}

impl Relay {
    /// An input without rows, complete before `upper`.
    pub fn new(upper: Time) -> Relay {
        Relay { upper, open: Vec::new(), subscribers: Vec::new() }
    }

    /// No update with an earlier time will be pushed.
    pub fn upper(&self) -> Time {
        self.upper
    }

    /// [Pushes](Relay::push) a batch that is counted until all subscribers have taken it in.
    ///
    /// # Panics
    /// As [`push`](Relay::push).
    pub fn push_counted(&mut self, arrival: RelayedBatch, load: &Arc<Load>) {
        self.push_arrival(arrival);
        self.each(|queue| queue.loads.push(Arc::clone(load)));
    }

    /// Gives a flat batch to all subscribers.
    ///
    /// # Panics
    /// When a time lies before [`upper`](Relay::upper).
    pub fn push(&mut self, batch: &Batch) {
        self.push_arrival(RelayedBatch::whole(batch.clone()));
    }

    fn push_arrival(&mut self, arrival: RelayedBatch) {
        if arrival.batch.is_empty() {
            return;
        }
        let (first, last) = arrival.batch.times().range();
        assert!(first >= self.upper, "pushed a time that was declared complete");
        self.each(|queue| queue.batches.push(arrival.clone()));
        // (What was found of it is for those who read it now.)
        self.open.push((arrival.afresh(), last));
    }

    /// Promises that no update with a time before `upper` will be pushed.
    pub fn advance(&mut self, upper: Time) {
        assert!(upper >= self.upper, "frontiers do not go back");
        self.upper = upper;
        self.open.retain(|(_, last)| *last >= upper);
        self.each(|queue| queue.upper = upper);
    }

    /// A new reading end: all updates with times from [`upper`](Relay::upper) on, those that are
    /// there already included.
    pub fn subscribe(&mut self) -> Subscriber {
        let open = self.open.iter().map(|(arrival, _)| arrival.from(self.upper));
        let queue = Queue {
            batches: open.filter(|arrival| !arrival.batch.is_empty()).collect(),
            upper: self.upper,
            loads: vec![],
            wake: None,
        };
        let queue = Rc::new(RefCell::new(queue));
        self.subscribers.push(Rc::downgrade(&queue));
        Subscriber(queue)
    }

    fn each(&mut self, mut tell: impl FnMut(&mut Queue)) {
        self.subscribers.retain(|subscriber| {
            let Some(queue) = subscriber.upgrade() else {
                return false;
            };
            let mut queue = queue.borrow_mut();
            tell(&mut queue);
            if let Some(wake) = &queue.wake {
                wake.wake();
            }
            true
        });
    }
}

impl Subscriber {
    /// Has the operator woken whenever something arrives.
    pub(crate) fn wake_with(&self, waker: Waker) {
        self.0.borrow_mut().wake = Some(waker);
    }

    /// The batches that arrived since the last call, and the frontier behind them.
    pub fn drain(&mut self) -> (Vec<RelayedBatch>, Time) {
        let mut queue = self.0.borrow_mut();
        queue.loads.clear();
        (std::mem::take(&mut queue.batches), queue.upper)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use anabranch_batch::{Diffs, Times};
    use arrow::array::Int64Array;

    fn batch(times: &[Time]) -> Batch {
        let values = Int64Array::from(times.to_vec());
        Batch::new(vec![Arc::new(values)], Times::Column(times.to_vec().into()), Diffs::Constant(1))
    }

    fn times(arrivals: &[RelayedBatch]) -> Vec<Time> {
        let batches = arrivals.iter().map(|arrival| &arrival.batch);
        batches.flat_map(|batch| (0..batch.len()).map(|row| batch.times().get(row))).collect()
    }

    #[test]
    fn a_late_subscriber_is_told_which_rows_are_its_own() {
        let mut relay = Relay::new(0);
        relay.push_arrival(RelayedBatch { own: 2..5, ..RelayedBatch::whole(batch(&[1, 8, 2, 9, 7, 3, 6])) });
        relay.advance(5);
        let (mut arrivals, _) = relay.subscribe().drain();
        assert_eq!((times(&arrivals), arrivals[0].own.clone()), (vec![8, 9, 7, 6], 1..3));
        let own = arrivals.remove(0).piece();
        assert_eq!((own.times().get(0), own.times().get(1), own.len()), (9, 7, 2));
    }

    /// A dataflow that was installed between the start and the end of a lifetime once never heard
    /// of the end.
    #[test]
    fn a_late_subscriber_hears_of_times_to_come() {
        let mut relay = Relay::new(0);
        relay.push(&batch(&[1, 8]));
        relay.push(&batch(&[2]));
        relay.advance(5);
        relay.push(&batch(&[6]));
        assert_eq!(times(&relay.subscribe().drain().0), [8, 6]);
        relay.advance(7);
        assert_eq!(times(&relay.subscribe().drain().0), [8]);
        relay.advance(9);
        let (batches, upper) = relay.subscribe().drain();
        assert_eq!((relay.open.len(), batches.len(), upper), (0, 0, 9));
    }
}
