//! Looks at a dataflow's account in the middle of a turn.
//!
//! Law: a turn whose dataflow has failed or was given up ends at its next look, and what it had
//! made is gone: the dataflow has no further turn. A look never ends a turn of another dataflow.
//!
//! An operator that makes much in one turn says so while it does ([`holds`], [`makes`]): then
//! `memory_limit` ends it before the memory is there. Cost: of a batch that is put out, one
//! addition; of so many rows, two loads.

use std::cell::{Cell, RefCell};
use std::panic::resume_unwind;
use std::rc::Rc;
use std::time::{Duration, Instant};

use super::Account;
use super::memory::{MemoryPart, Share};

/// Rows that are put out between two looks.
const LOOK_ROWS: usize = 1 << 16;

/// Bytes that are made between two looks.
const LOOK_BYTES: usize = 1 << 20;

/// What unwinds out of a turn that ends midway.
struct Ends;

/// The turn that runs on this thread.
struct Running {
    account: Account,
    /// Rows that were put out since the last look.
    rows: usize,
    /// Bytes that an operator holds, as it said last, and
    holds: usize,
    /// that were made in this turn, and those of them that no look has counted.
    made: usize,
    uncounted: usize,
    /// What the turn holds beside what was measured before it.
    held: Option<Share>,
    /// Where it is told how long the turn has taken, and since when.
    timed: Vec<(Instant, Rc<Cell<Option<Duration>>>)>,
}

impl Running {
    fn count(&mut self) {
        self.made += std::mem::take(&mut self.uncounted);
        let bytes = self.holds + self.made;
        self.held.get_or_insert_with(|| Share::none(self.account.clone(), MemoryPart::State)).set(bytes);
    }
}

thread_local! {
    static RUNNING: RefCell<Option<Running>> = const { RefCell::new(None) };
}

/// Until this is dropped, looks are at the account of this turn.
pub(super) struct Begun(Option<Running>);

impl Begun {
    pub fn new(account: &Account) -> Begun {
        let running = Running {
            account: account.clone(),
            rows: 0,
            holds: 0,
            made: 0,
            uncounted: 0,
            held: None,
            timed: Vec::new(),
        };
        Begun(RUNNING.replace(Some(running)))
    }
}

impl Drop for Begun {
    fn drop(&mut self) {
        // (A turn within a turn gives way to the outer one.)
        let over = RUNNING.replace(self.0.take());
        for (began, took) in over.into_iter().flat_map(|running| running.timed) {
            took.set(Some(began.elapsed()));
        }
    }
}

/// When the turn that runs is over, `took` is how long it took from here on.
pub(crate) fn time(took: &Rc<Cell<Option<Duration>>>) {
    RUNNING.with_borrow_mut(|running| {
        if let Some(running) = running {
            running.timed.push((Instant::now(), Rc::clone(took)));
        }
    });
}

/// So many rows are put out. May not return.
#[inline]
pub(crate) fn puts_out(rows: usize) {
    let is_due = RUNNING.with_borrow_mut(|running| {
        let Some(running) = running else { return false };
        running.rows += rows;
        running.rows >= LOOK_ROWS
    });
    if is_due {
        look();
    }
}

/// From now on, and until it ends, the turn that runs holds so many bytes beside what is measured
/// between turns. May not return.
pub fn holds(bytes: usize) {
    RUNNING.with_borrow_mut(|running| {
        let Some(running) = running else { return };
        running.holds = bytes;
        running.count();
    });
    look();
}

/// The turn that runs has made so many bytes more, which are there until it ends. May not return.
pub fn makes(bytes: usize) {
    let is_due = RUNNING.with_borrow_mut(|running| {
        let Some(running) = running else { return false };
        running.uncounted += bytes;
        let is_due = running.uncounted >= LOOK_BYTES;
        if is_due {
            running.count();
        }
        is_due
    });
    if is_due {
        look();
    }
}

/// Ends the turn if its dataflow has no further one. May not return.
pub fn look() {
    let ends = RUNNING.with_borrow_mut(|running| {
        let Some(running) = running else { return false };
        running.rows = 0;
        running.account.has_ended()
    });
    if ends {
        // (Not a panic: nothing is wrong, and nothing is printed.)
        resume_unwind(Box::new(Ends));
    }
}
