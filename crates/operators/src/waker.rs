//! What wakes an operator.
//!
//! Law: after [`Waker::wake`] the operator has a turn that begins later. However often it is woken before that turn, the runtime is told once: it sorts all it is
//! told in every round.
//!
//! Cost: a flag.

use std::cell::Cell;
use std::rc::Rc;

use timely::scheduling::Activator;

/// Wakes one operator. Clones wake the same.
#[derive(Clone)]
pub(crate) struct Waker(Rc<Inner>);

struct Inner {
    activator: Activator,
    /// Whether the runtime has been told since the last turn began.
    is_told: Cell<bool>,
}

impl Waker {
    pub fn new(activator: Activator) -> Waker {
        Waker(Rc::new(Inner { activator, is_told: Cell::new(false) }))
    }

    /// Lets the operator have a turn.
    pub fn wake(&self) {
        if !self.0.is_told.replace(true) {
            self.0.activator.activate();
        }
    }

    /// The operator's turn begins: whoever wakes it from now on means the next one.
    pub fn begin_turn(&self) {
        self.0.is_told.set(false);
    }
}
