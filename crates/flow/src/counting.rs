//! Counts of an operator in a line: taken behind the links that it consists of.
//!
//! Law: counts of rows and time are exact after each turn; bytes lag behind. Cost: two readings of
//! the clock a turn at most, and a measurement of bytes, which may visit all groups, for at most a
//! thirty-second part of the operator's own time.

use std::sync::Arc;

use anabranch_batch::{Batch, END, Time};

use crate::account::{HeldState, OperatorCounter};
use crate::worker::WorkerContext;

/// Rows after which bytes are measured, however many there were before.
const MEASURED_ROWS_MAX: usize = 1 << 16;
/// Turns after which bytes are measured: what is let go comes without rows.
const MEASURED_TURNS_MAX: usize = 256;

/// How many times as long as a measurement of bytes the operator has worked before the next one.
const WORK_PER_MEASUREMENT: u64 = 32;

/// The place in a line behind an operator.
pub(crate) struct Counting {
    counter: Arc<OperatorCounter>,
    /// Whether more of the operator follows: what is put out here is not its own.
    is_part: bool,
    /// Whether it has a turn whenever the frontier moves.
    is_timed: bool,
    worker: WorkerContext,
    /// Rows that have come, and that had come when bytes were measured last.
    came: usize,
    measured: usize,
    /// Turns since then, and nanoseconds of the operator's work in them.
    turns: usize,
    work_nanos: u64,
    /// Nanoseconds that the last measurement took.
    measurement_nanos: u64,
}

impl Counting {
    pub fn new(worker: &WorkerContext, index: usize, operator: usize) -> Counting {
        let counter = worker.account().count_operator(operator, index);
        Counting {
            counter,
            is_part: false,
            is_timed: false,
            worker: worker.clone(),
            came: 0,
            measured: 0,
            turns: 0,
            work_nanos: 0,
            measurement_nanos: 0,
        }
    }

    /// Behind a part of the operator. The part that follows tells how far it is.
    pub fn of_part(self) -> Counting {
        self.counter.reaches(END);
        Counting { is_part: true, ..self }
    }

    /// The operator has a turn whenever the frontier moves, so it can tell how far it is.
    pub fn tell_time(&mut self) {
        self.is_timed = true;
    }

    /// The operator has put out these rows, of `came` rows that came to it, and all before `upto`.
    pub fn take(&mut self, out: &[Batch], came: usize, upto: Time, held: impl FnOnce() -> HeldState) {
        let rows = out.iter().map(Batch::len).sum();
        let nanos = self.lap_nanos();
        match self.is_part {
            true => self.counter.add(0, 0, nanos),
            false => {
                self.counter.add(rows, out.iter().filter(|batch| !batch.is_empty()).count(), nanos);
                if self.is_timed {
                    self.counter.reaches(upto);
                }
            }
        }
        self.work_nanos += nanos;
        self.came += came.max(rows);
        self.turns += 1;
        let since = self.came - self.measured;
        let is_much = since > 0 && (since * 8 >= self.came || since >= MEASURED_ROWS_MAX);
        let is_paid_for = self.work_nanos >= self.measurement_nanos.saturating_mul(WORK_PER_MEASUREMENT);
        if (is_much || self.turns >= MEASURED_TURNS_MAX) && is_paid_for {
            self.counter.holds(held());
            (self.measured, self.turns, self.work_nanos) = (self.came, 0, 0);
            self.measurement_nanos = self.lap_nanos();
        }
    }

    /// Nanoseconds since the last reading of the worker's clock.
    fn lap_nanos(&self) -> u64 {
        u64::try_from(self.worker.clock().lap().as_nanos()).unwrap_or(u64::MAX)
    }
}
