//! Batches that wait for their times to be complete, given on in order of time without copying when
//! they came so.
//!
//! Law: every row pushed comes out of [`Arrivals::take_before`] once, at the first call whose bound
//! is after its time, in order of time; rows of one time in order of arrival. Cost: a look at the
//! times of each batch when it comes; batches in order are cut, others are sorted.

use anabranch_batch::{Batch, Time};

use anabranch_flow::pending::Pending;

/// Batches in order of arrival, each in order of time.
#[derive(Debug, Default)]
pub(crate) struct Arrivals {
    waiting: Pending,
}

impl Arrivals {
    /// Keeps a batch until its times are complete.
    pub(crate) fn push(&mut self, batch: Batch) {
        self.waiting.keep(batch.in_time_order());
    }

    /// The rows with times before `upto`, in order of time across batches.
    pub(crate) fn take_before(&mut self, upto: Time) -> Vec<Batch> {
        let batches = self.waiting.take_ready(upto);
        let last = |batch: &Batch| batch.times().get(batch.len() - 1);
        if batches.windows(2).all(|pair| last(&pair[0]) <= pair[1].times().get(0)) {
            return batches;
        }
        Batch::concat(&batches).map(Batch::in_time_order).into_iter().collect()
    }

    /// The least time that waits.
    pub(crate) fn pending_from(&self) -> Option<Time> {
        self.waiting.pending_from()
    }

    pub(crate) fn size_bytes(&self) -> usize {
        self.waiting.size_bytes()
    }
}
