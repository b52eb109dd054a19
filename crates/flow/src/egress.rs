//! Where events leave a dataflow: as they are, in order of sync-time, between the frontiers that
//! pass them.
//!
//! Law: what comes out before [`Item::Frontier`] `t` holds all events before `t`; events at one
//! time keep their order of arrival. Nothing is merged, cancelled or copied: batches that are in
//! order pass as they came. Unlike [`crate::sink`], which gives the consolidated changes of a
//! collection.
//!
//! State: batches that wait for the frontier.

use std::cell::RefCell;
use std::rc::Rc;

use anabranch_batch::{Batch, END, Time, Times};

use crate::chain::Chain;
use crate::pending::split_at;

/// What leaves.
#[derive(Clone, Debug)]
pub enum Item {
    /// Events, in order of their times.
    Rows(Batch),
    /// Row errors: batches of one text column.
    Errors(Batch),
    /// Nothing before this time will follow.
    Frontier(Time),
}

/// What an egress has let out and no caller has fetched.
#[derive(Debug)]
pub struct Egress {
    /// In order.
    pub items: Vec<Item>,
    /// The last frontier.
    pub upper: Time,
}

/// Shared between the dataflow and the worker.
pub type EgressRef = Rc<RefCell<Egress>>;

/// Collects the events at the end of a chain.
pub fn egress(chain: Chain<'_>) -> EgressRef {
    let shared = Rc::new(RefCell::new(Egress { items: Vec::new(), upper: Time::MIN }));
    let target = Rc::clone(&shared);
    let mut waiting: Vec<Batch> = Vec::new();
    chain.into_end("Egress".to_owned(), None, move |turn, _| {
        let mut target = target.borrow_mut();
        waiting.extend(turn.out.rows);
        target.items.extend(turn.out.errors.into_iter().map(Item::Errors));
        if turn.upto > target.upper {
            release(&mut waiting, turn.upto, &mut target.items);
            target.upper = turn.upto;
            target.items.push(Item::Frontier(turn.upto));
        }
    });
    shared
}

/// Moves the events up to and including `upto` out of `waiting`.
pub fn release(waiting: &mut Vec<Batch>, upto: Time, items: &mut Vec<Item>) {
    let bound = upto.saturating_add(1);
    let mut ready: Vec<Batch> = Vec::new();
    for batch in std::mem::take(waiting) {
        if upto == END {
            ready.push(batch);
            continue;
        }
        let (before, after) = split_at(&batch, bound);
        ready.push(before);
        if !after.is_empty() {
            waiting.push(after);
        }
    }
    if is_in_order(&ready) {
        items.extend(ready.into_iter().filter(|batch| !batch.is_empty()).map(Item::Rows));
    } else if let Some(batch) = Batch::concat(&ready) {
        items.push(Item::Rows(batch.in_time_order()));
    }
}

fn is_in_order(batches: &[Batch]) -> bool {
    let mut last = Time::MIN;
    batches.iter().all(|batch| {
        let is_sorted = match batch.times() {
            Times::Constant(_) => true,
            Times::Column(times) => times.is_sorted(),
        };
        let follows = batch.is_empty() || batch.times().get(0) >= last;
        last = if batch.is_empty() { last } else { batch.times().get(batch.len() - 1) };
        is_sorted && follows
    })
}
