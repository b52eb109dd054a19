//! Where changes leave a dataflow: collected per interval of complete times, for whoever subscribed.
//!
//! Law: what a capture has given out up to its `upper` is exactly the consolidated change of the collection below `upper`, in order
//! of time. Equal rows meet on one worker first, so that what cancels is not seen.
//!
//! State: rows that wait for the frontier, and what was not yet fetched.

use std::cell::RefCell;
use std::rc::Rc;

use anabranch_batch::consolidate::consolidate;
use anabranch_batch::{Batch, Time, Times};
use arrow::array::BooleanArray;
use timely::dataflow::operators::generic::operator::Operator;

use crate::Stream;
use crate::drive::frontier_of;
use crate::exchange::by_key;
use crate::parcel::Parcel;

/// What a capture has collected and nobody has fetched.
#[derive(Debug)]
pub struct Captured {
    /// Changes of rows, each batch in order of time, batches in order of time.
    pub rows: Vec<Batch>,
    /// Changes of row errors, likewise.
    pub errors: Vec<Batch>,
    /// Complete before this time.
    pub upper: Time,
}

/// Shared between the dataflow and the worker.
pub type CaptureRef = Rc<RefCell<Captured>>;

/// Collects the changes of a stream of `n_columns` columns.
pub fn capture(stream: Stream<'_>, n_columns: usize) -> CaptureRef {
    let captured = Rc::new(RefCell::new(Captured { rows: vec![], errors: vec![], upper: Time::MIN }));
    let target = Rc::clone(&captured);
    let mut rows = Waiting::default();
    let mut errors = Waiting::default();
    stream.sink(by_key((0..n_columns).collect()), "Capture", move |(input, frontier)| {
        input.for_each(|_capability, parcel| match std::mem::take(parcel) {
            Parcel::Empty => {}
            Parcel::Rows(batch) => rows.0.push(batch.flatten()),
            Parcel::Errors(batch) => errors.0.push(batch.flatten()),
        });
        let mut target = target.borrow_mut();
        let upper = frontier_of(frontier);
        if upper > target.upper {
            target.rows.extend(rows.take_before(upper));
            target.errors.extend(errors.take_before(upper));
            target.upper = upper;
        }
    });
    captured
}

/// Batches that wait for their times to be complete.
#[derive(Default)]
struct Waiting(Vec<Batch>);

impl Waiting {
    /// The consolidated updates before `upper`, in order of time.
    fn take_before(&mut self, upper: Time) -> Option<Batch> {
        let all = Batch::concat(&std::mem::take(&mut self.0))?.without_key();
        let (ready, rest) = split_at_time(all, upper);
        if !rest.is_empty() {
            self.0.push(rest);
        }
        let ready = in_time_order(consolidate(ready));
        (!ready.is_empty()).then_some(ready)
    }
}

/// The updates before `upper`, and the others.
pub(crate) fn split_at_time(batch: Batch, upper: Time) -> (Batch, Batch) {
    let times = batch.times().clone();
    if batch.is_empty() || times.max() < upper {
        let rest = batch.slice(0, 0);
        return (batch, rest);
    }
    if times.min() >= upper {
        return (batch.slice(0, 0), batch);
    }
    let before: BooleanArray = (0..batch.len()).map(|i| Some(times.get(i) < upper)).collect();
    let after: BooleanArray = (0..batch.len()).map(|i| Some(times.get(i) >= upper)).collect();
    (batch.filter(&before), batch.filter(&after))
}

fn in_time_order(batch: Batch) -> Batch {
    let Times::Column(times) = batch.times() else {
        return batch;
    };
    let mut rows: Vec<u32> = (0..batch.len() as u32).collect();
    rows.sort_by_key(|row| times[*row as usize]);
    batch.take(&rows)
}
