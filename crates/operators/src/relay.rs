//! Where rows enter: an input of a worker, heard by every dataflow that reads it.
//!
//! Law: every subscriber gets every batch pushed after it subscribed, then the frontier that follows it, in order.
//! Cost: a pointer a batch and subscriber; nothing is kept for subscribers to come (that is what arrangements are for).
//! A subscriber that was dropped is forgotten at the next push. Source: DESIGN 6 (library mode: the caller's push does the work).

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::{Rc, Weak};

use anabranch_batch::{Batch, Time};
use timely::scheduling::Activator;

/// The writing end, owned by the worker.
pub struct Relay {
    upper: Time,
    subscribers: Vec<Weak<RefCell<Queue>>>,
}

/// A reading end, owned by a dataflow's source operator.
pub struct Subscriber(Rc<RefCell<Queue>>);

struct Queue {
    batches: VecDeque<Batch>,
    upper: Time,
    wake: Option<Activator>,
}

impl Relay {
    /// An input without rows, complete before `upper`.
    pub fn new(upper: Time) -> Relay {
        Relay { upper, subscribers: Vec::new() }
    }

    /// No update with an earlier time will be pushed.
    pub fn upper(&self) -> Time {
        self.upper
    }

    /// Gives a flat batch to all subscribers.
    ///
    /// # Panics
    /// When a time lies before [`upper`](Relay::upper).
    pub fn push(&mut self, batch: &Batch) {
        if batch.is_empty() {
            return;
        }
        assert!(batch.times().min() >= self.upper, "pushed a time that was declared complete");
        self.each(|queue| queue.batches.push_back(batch.clone()));
    }

    /// Promises that no update with a time before `upper` will be pushed.
    pub fn advance(&mut self, upper: Time) {
        assert!(upper >= self.upper, "frontiers do not go back");
        self.upper = upper;
        self.each(|queue| queue.upper = upper);
    }

    /// A new reading end, from here on.
    pub fn subscribe(&mut self) -> Subscriber {
        let queue = Queue { batches: VecDeque::new(), upper: self.upper, wake: None };
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
                wake.activate();
            }
            true
        });
    }
}

impl Subscriber {
    /// Has the operator woken whenever something arrives.
    pub fn wake_with(&self, activator: Activator) {
        self.0.borrow_mut().wake = Some(activator);
    }

    /// The batches that arrived since the last call, and the frontier behind them.
    pub fn drain(&mut self) -> (Vec<Batch>, Time) {
        let mut queue = self.0.borrow_mut();
        (queue.batches.drain(..).collect(), queue.upper)
    }
}
