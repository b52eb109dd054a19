//! Sessions of rows: each row with the first and the last time of its session.
//!
//! ```text
//!     gap 5:  (k, 1) @1 +1    (k, 1, 1, 4) @1 +1
//!             (k, 4) @1 +1    (k, 4, 1, 4) @1 +1
//!             (k, 9) @2 +1    (k, 1, 1, 4) @2 -1, (k, 4, 1, 4) @2 -1,
//!                             (k, 1, 1, 9) @2 +1, (k, 4, 1, 9) @2 +1, (k, 9, 1, 9) @2 +1
//! ```
//!
//! Law: at every time, the rows of a partition are put in order of their times. A session is a run
//! of them in which no row is further than the gap from the one before, as long as there is one.
//! Each row comes out with the first and the last time of its session. A row without a time is left
//! out.
//!
//! Method: the sessions of each partition are known ([`known`]), so a row that comes finds the ones
//! that it joins by two look-ups. Rows are kept by partition, in order of time: those of a session
//! whose bounds change are walked and put out anew. A row that goes is no end of its session as
//! long as its neighbours are no further apart than the gap; else the rows of the session are
//! walked.
//!
//! State: all rows and sessions; where a watermark bounds the time, those of sessions that may
//! still change ([`freeing`]). Cost: O(log n) for a row that changes, and as much for each row of
//! which a bound changes. Source: session windows as in Flink; keeping them current under rows that
//! go is ours.
//!
//! Reading order: [`known`], [`turn`], [`emission`], [`freeing`].

mod emission;
mod freeing;
mod known;
mod turn;

use anabranch_arrangement::{Layout, MergeEffort, ValueOrder};
use anabranch_batch::order::Direction;
use anabranch_batch::{Batch, Time};
use anabranch_flow::pending::Pending;
use anabranch_flow::tactic::{Output, Passed, Timed};
use anabranch_spec::session::SessionWindows;
use arrow::array::{Array, BooleanArray};
use arrow::datatypes::DataType;

use crate::ordered::trace::OrderedTrace;
use crate::ordered::versions::Touched;
use freeing::Freeing;
use known::KnownSessions;

/// The order of the rows of a partition.
const ONWARD: Direction = Direction { descending: false, nulls_first: false };

/// What sessions are made of, of rows of which types.
#[derive(Clone, Debug)]
pub struct SessionSpec {
    /// What sessions are made of.
    pub windows: SessionWindows,
    /// Types of the input's columns.
    pub input_types: Vec<DataType>,
    /// How eagerly the state is merged.
    pub effort: MergeEffort,
}

/// The tactic. See the module's page.
pub struct Sessions {
    spec: SessionSpec,
    pending: Pending,
    /// Rows by partition, in order of time.
    trace: OrderedTrace,
    known: KnownSessions,
    freeing: Freeing,
}

impl Sessions {
    /// No sessions yet.
    ///
    /// # Panics
    /// If the time is a column of the partition.
    pub fn new(spec: SessionSpec) -> Sessions {
        let SessionWindows { partition, time, .. } = &spec.windows;
        assert!(!partition.contains(time), "the time of sessions is no part of the partition");
        let values = ValueOrder::Sorted(vec![(*time, ONWARD)]);
        let layout = Layout { key: partition.clone(), values, types: spec.input_types.clone() };
        let key_types: Vec<DataType> = partition.iter().map(|column| spec.input_types[*column].clone()).collect();
        Sessions {
            trace: OrderedTrace::new(layout, spec.effort),
            known: KnownSessions::new(&key_types),
            pending: Pending::default(),
            freeing: Freeing::default(),
            spec,
        }
    }
}

impl Timed for Sessions {
    fn push(&mut self, _input: usize, batch: Batch) {
        self.pending.push(batch);
    }

    fn advance(&mut self, upto: Time, out: &mut Output) {
        let batch = self.pending.take_before(upto).map(|batch| with_times(batch, self.spec.windows.time));
        let Some(batch) = batch.filter(|batch| !batch.is_empty()) else { return };
        self.freeing.note(batch.len());
        let touched = Touched::new(batch, &self.spec.windows.partition);
        let rows = self.freeing.with_leaving(touched.batch.clone(), &self.spec.windows.partition);
        self.trace.absorb(rows, upto);
        turn::turn(&self.spec, &self.trace, &mut self.known, &touched, out);
    }

    fn free(&mut self, passed: &[Passed]) {
        for passed in passed.iter().filter(|passed| passed.column == self.spec.windows.time) {
            self.freeing.look(&mut self.trace, &mut self.known, &self.spec.windows, passed.below);
        }
    }

    fn idle(&mut self) {
        self.trace.idle();
    }

    fn pending_from(&self) -> Option<Time> {
        self.pending.pending_from()
    }

    fn state_rows(&self) -> Option<usize> {
        Some(self.trace.n_rows())
    }

    fn size_bytes(&self) -> usize {
        self.pending.size_bytes() + self.trace.size_bytes() + self.known.size_bytes() + self.freeing.size_bytes()
    }
}

/// The rows that have a time.
fn with_times(batch: Batch, time: usize) -> Batch {
    let Some(nulls) = batch.column(time).logical_nulls().filter(|nulls| nulls.null_count() > 0) else { return batch };
    batch.filter(&BooleanArray::new(nulls.into_inner(), None))
}

#[cfg(test)]
mod tests;
