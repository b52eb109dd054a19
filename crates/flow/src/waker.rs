//! What wakes an operator.
//!
//! Law: after [`Waker::wake`] the operator has a turn that begins later. However often it is woken
//! before that turn, the runtime is told once.
//!
//! Who listens to what the operator arranges is woken with it. In a round the runtime goes through
//! the dataflows that are to have a turn in the order in which they were made, which is the order
//! of what they read: so each finds what those before it have just made, and a commit goes through
//! all of them in one round, where each would take a round of its own if it were woken by the one
//! before it.
//!
//! (Tasks need not be woken ahead: one that is woken in a round has its turn in it, if it comes
//! later.)
//!
//! Cost: a flag, and the first time a walk over the listeners.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::Duration;

use anabranch_arrangement::Audience;
use timely::scheduling::Activator;

use crate::tasks::TaskWaker;

/// Wakes one operator. Clones wake the same.
#[derive(Clone)]
pub struct Waker(Rc<Inner>);

struct Inner {
    operator: Operator,
    /// Whether the runtime has been told since the last turn began.
    is_scheduled: Cell<bool>,
    /// Of what the operator arranges.
    audiences: RefCell<Vec<Audience>>,
}

/// Who schedules the operator.
enum Operator {
    Runtime(Activator),
    Task(TaskWaker),
}

impl Waker {
    /// Of an operator of timely.
    pub(crate) fn of_operator(activator: Activator) -> Waker {
        let operator = Operator::Runtime(activator);
        Waker(Rc::new(Inner { operator, is_scheduled: Cell::new(false), audiences: RefCell::default() }))
    }

    /// Of a task, which is awake as soon as it has been made.
    pub(crate) fn of_task(task: TaskWaker) -> Waker {
        let operator = Operator::Task(task);
        Waker(Rc::new(Inner { operator, is_scheduled: Cell::new(true), audiences: RefCell::default() }))
    }

    /// From now on those are woken too.
    pub(crate) fn add(&self, audience: Audience) {
        self.0.audiences.borrow_mut().push(audience);
    }

    /// Lets the operator have a turn, and those after it that will hear of it.
    pub(crate) fn wake(&self) {
        if !self.0.is_scheduled.replace(true) {
            self.schedule();
            if matches!(self.0.operator, Operator::Runtime(_)) {
                self.0.audiences.borrow().iter().for_each(Audience::wake);
            }
        }
    }

    /// Lets the operator go on with what it has.
    pub(crate) fn go_on(&self) {
        if !self.0.is_scheduled.replace(true) {
            self.schedule();
        }
    }

    fn schedule(&self) {
        match &self.0.operator {
            Operator::Runtime(activator) => activator.activate(),
            Operator::Task(task) => task.wake(),
        }
    }

    /// Lets the operator go on after a while.
    pub(crate) fn go_on_after(&self, delay: Duration) {
        match &self.0.operator {
            Operator::Runtime(activator) => activator.activate_after(delay),
            Operator::Task(task) => task.wake_after(delay),
        }
    }

    /// The operator's turn begins: a task that wakes the operator from now on means the next one.
    pub(crate) fn begin_turn(&self) {
        self.0.is_scheduled.set(false);
    }
}
