//! Tactics that tell what they have put out, for arrangements that need not keep it.
//!
//! Law: what is told is the sum of all that was put out up to the end of the last call, complete or
//! not.
//!
//! The tactic is at work in an operator, and is asked by readers of the arrangement behind it:
//! on the same worker, and never while it works.

use std::cell::RefCell;
use std::fmt;
use std::rc::Rc;

use anabranch_arrangement::Origin;
use anabranch_batch::{Batch, Time};

use crate::tactic::{Output, Timed};

/// A tactic of two owners.
#[derive(Clone)]
pub(crate) struct Recalling(Rc<RefCell<Box<dyn Timed>>>);

impl Recalling {
    /// Of a tactic that [recalls](Timed::recalls).
    pub fn new(tactic: Box<dyn Timed>) -> Recalling {
        assert!(tactic.recalls(), "only some tactics can tell what they have put out");
        Recalling(Rc::new(RefCell::new(tactic)))
    }
}

impl Origin for Recalling {
    fn n_rows_max(&self) -> usize {
        self.0.borrow().n_recalled()
    }

    fn recall(&self) -> Vec<Batch> {
        self.0.borrow_mut().recall()
    }
}

impl fmt::Debug for Recalling {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Recalling").finish_non_exhaustive()
    }
}

impl Timed for Recalling {
    fn push(&mut self, input: usize, batch: Batch) {
        self.0.borrow_mut().push(input, batch);
    }

    fn takes_absent(&self) -> bool {
        self.0.borrow().takes_absent()
    }

    fn advance(&mut self, upto: Time, out: &mut Output) {
        self.0.borrow_mut().advance(upto, out);
    }

    fn idle(&mut self) {
        self.0.borrow_mut().idle();
    }

    fn fold(&mut self, time: Time, out: &mut Output) {
        self.0.borrow_mut().fold(time, out);
    }

    fn has_more(&self) -> bool {
        self.0.borrow().has_more()
    }

    fn pending_from(&self) -> Option<Time> {
        self.0.borrow().pending_from()
    }

    fn state_rows(&self) -> Option<usize> {
        self.0.borrow().state_rows()
    }

    fn size_bytes(&self) -> usize {
        self.0.borrow().size_bytes()
    }
}
