//! Counts of an operator in a line: taken behind the links that it consists of.

use std::sync::Arc;

use anabranch_batch::Batch;

use crate::account::OperatorCounter;
use crate::worker::WorkerContext;

/// Rows after which bytes are measured, however many there were before.
const MEASURED_ROWS_MAX: usize = 1 << 16;
/// Turns after which bytes are measured: what is let go comes without rows.
const MEASURED_TURNS_MAX: usize = 256;

/// The place in a line behind an operator.
pub(crate) struct Counting {
    counter: Arc<OperatorCounter>,
    worker: WorkerContext,
    /// Rows that have come, and that had come when bytes were measured last.
    came: usize,
    measured: usize,
    /// Turns since then.
    turns: usize,
}

impl Counting {
    pub fn new(worker: &WorkerContext, operator: usize) -> Counting {
        let counter = worker.account().count_operator(operator);
        Counting { counter, worker: worker.clone(), came: 0, measured: 0, turns: 0 }
    }

    /// The operator has put out these rows, of `came` rows that came to it.
    pub fn take(&mut self, out: &[Batch], came: usize, size_bytes: impl FnOnce() -> usize) {
        let rows = out.iter().map(Batch::len).sum();
        self.counter.add(rows, self.worker.clock().lap().as_nanos() as u64);
        self.came += came.max(rows);
        self.turns += 1;
        let since = self.came - self.measured;
        let is_much = since > 0 && (since * 8 >= self.came || since >= MEASURED_ROWS_MAX);
        if is_much || self.turns >= MEASURED_TURNS_MAX {
            self.counter.holds(size_bytes());
            (self.measured, self.turns) = (self.came, 0);
        }
    }
}
