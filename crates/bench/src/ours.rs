//! Our side of a comparison, at the level of operators: one worker on the caller's thread, inputs
//! that are pushed into.

use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;

use anabranch_arrangement::{Layout, MergeEffort, Reader, ValueOrder};
use anabranch_batch::{Batch, Time};
use anabranch_flow::Scope;
use anabranch_flow::chain::Chain;
use anabranch_flow::import::{Content, StreamImport, import, no_horizon};
use anabranch_flow::relay::Relay;
use anabranch_flow::runs::Arranged;
use anabranch_flow::worker::Worker;
use arrow::datatypes::DataType;
use timely::dataflow::operators::probe::{Handle, Probe};

/// Loaded rows have later times than this.
pub const BEFORE: Time = -1;

/// Measures with one worker, on this thread.
pub fn directly<R>(measure: impl FnOnce(&mut Worker) -> R) -> R {
    measure(&mut Worker::on_this_thread())
}

/// A collection that rows are pushed into.
pub struct Input {
    relay: Relay,
    n_columns: usize,
}

impl Input {
    pub fn new(n_columns: usize) -> Input {
        Input { relay: Relay::new(0), n_columns }
    }

    pub fn open<'s>(&mut self, scope: Scope<'s>, as_of: Time) -> Chain<'s> {
        let rows = StreamImport {
            name: "input".to_owned(),
            as_of,
            history: None,
            live: Some(self.relay.subscribe()),
            horizon: no_horizon(),
            columns: (0..self.n_columns).collect(),
            content: Content::Rows,
            dealing: None,
        };
        import(scope, vec![rows])
    }

    /// Pushes a batch and declares all times before `upper` complete.
    pub fn push(&mut self, batch: &Batch, upper: Time) {
        self.relay.push(batch);
        self.relay.advance(upper);
    }

    pub fn advance(&mut self, upper: Time) {
        self.relay.advance(upper);
    }
}

/// Keys and values, by key.
pub fn arrange_by_key(rows: Chain<'_>) -> Arranged<'_> {
    let layout = Layout { key: vec![0], values: ValueOrder::Hash, types: vec![DataType::UInt64; 2] };
    rows.arrange("rows", Arc::new(layout), MergeEffort::default())
}

/// Steps until an arrangement is complete before `upper`, and gives up the times before.
pub fn settle(worker: &mut Worker, reader: &mut Reader, upper: Time) {
    while reader.upper() < upper {
        worker.step();
    }
    reader.set_since(upper - 1);
}

/// Counts rows as they come, and tells how far they have got.
pub fn count_rows(rows: Chain<'_>) -> (Handle<Time>, Rc<Cell<usize>>) {
    let count = Rc::new(Cell::new(0));
    let counter = Rc::clone(&count);
    let counted = rows.then("Count", move |batch, _| counter.set(counter.get() + batch.len()));
    (counted.into_stream().into_timely().probe().0, count)
}
