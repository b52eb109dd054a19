//! Where changes leave a dataflow: collected per interval of complete times, for the caller that
//! subscribed.
//!
//! Law: what a capture has given out up to its `upper` is exactly the consolidated change of the
//! collection below `upper`, in order of time. Equal rows meet on one worker first, so that what
//! cancels is not seen.
//!
//! State: rows that wait for the frontier, and what was not yet fetched.

use std::cell::RefCell;
use std::rc::Rc;

use anabranch_batch::consolidate::consolidate_in_time_order;
use anabranch_batch::{Batch, Time};

use crate::chain::Chain;
use crate::pending::Pending;

/// What a capture has collected and no caller has fetched.
#[derive(Debug)]
pub struct Captured {
    /// Changes of rows, each batch in order of time, batches in order of time.
    pub rows: Vec<Batch>,
    /// Changes of row errors, likewise.
    pub errors: Vec<Batch>,
    /// Complete before this time.
    pub upper: Time,
}

impl Captured {
    /// Whether there is nothing to fetch.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty() && self.errors.is_empty()
    }
}

/// Shared between the dataflow and the worker.
pub type CaptureRef = Rc<RefCell<Captured>>;

/// Collects the changes of a chain's rows, of `n_columns` columns.
pub fn capture(chain: Chain<'_>, n_columns: usize) -> CaptureRef {
    let captured = Rc::new(RefCell::new(Captured { rows: vec![], errors: vec![], upper: Time::MIN }));
    let target = Rc::clone(&captured);
    let mut rows = Pending::default();
    let mut errors = Pending::default();
    chain.by_key((0..n_columns).collect()).into_end("Capture".to_owned(), None, move |turn, _| {
        turn.out.rows.into_iter().for_each(|batch| rows.push(batch));
        turn.out.errors.into_iter().for_each(|batch| errors.push(batch));
        let mut target = target.borrow_mut();
        if turn.upto > target.upper {
            take_before(&mut rows, turn.upto, &mut target.rows);
            take_before(&mut errors, turn.upto, &mut target.errors);
            target.upper = turn.upto;
        }
    });
    captured
}

/// Appends the consolidated updates before `upper`, in order of time. Batches that have no time in
/// common are not made one.
fn take_before(waiting: &mut Pending, upper: Time, out: &mut Vec<Batch>) {
    let ready = waiting.take_ready(upper);
    let ready = match ready.is_sorted_by(|a, b| a.times().max() < b.times().min()) {
        true => ready,
        false => Batch::concat(&ready).into_iter().collect(),
    };
    let consolidated = ready.into_iter().map(|batch| consolidate_in_time_order(batch.without_key()));
    out.extend(consolidated.filter(|batch| !batch.is_empty()));
}
