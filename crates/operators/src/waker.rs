//! What wakes an operator.
//!
//! Law: after [`Waker::wake`] the operator has a turn that begins later. However often it is woken before that turn, the runtime is told once.
//!
//! Who listens to what the operator arranges is woken with it. In a round the runtime goes through the dataflows that are to have a turn in the order in which they were made, which is the
//! order of what they read: so each finds what those before it have just made, and a commit goes through all of them in one round, where each would take a
//! round of its own if it were woken by the one before it.
//!
//! Cost: a flag, and the first time a walk over the listeners.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use anabranch_arrangement::Audience;
use timely::scheduling::Activator;

/// Wakes one operator. Clones wake the same.
#[derive(Clone)]
pub(crate) struct Waker(Rc<Inner>);

struct Inner {
    activator: Activator,
    /// Whether the runtime has been told since the last turn began.
    is_told: Cell<bool>,
    /// Of what the operator arranges.
    audiences: RefCell<Vec<Audience>>,
}

impl Waker {
    pub fn new(activator: Activator) -> Waker {
        Waker(Rc::new(Inner { activator, is_told: Cell::new(false), audiences: RefCell::default() }))
    }

    /// From now on those are woken too.
    pub fn add(&self, audience: Audience) {
        self.0.audiences.borrow_mut().push(audience);
    }

    /// Lets the operator have a turn, and those after it that will hear of it.
    pub fn wake(&self) {
        if !self.0.is_told.replace(true) {
            self.0.activator.activate();
            self.0.audiences.borrow().iter().for_each(Audience::wake);
        }
    }

    /// Lets the operator go on with what it has.
    pub fn go_on(&self) {
        if !self.0.is_told.replace(true) {
            self.0.activator.activate();
        }
    }

    /// The operator's turn begins: whoever wakes it from now on means the next one.
    pub fn begin_turn(&self) {
        self.0.is_told.set(false);
    }
}
