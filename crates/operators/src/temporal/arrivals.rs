//! Batches that wait for their times to be complete, given on in order of time without copying when they came so.
//!
//! Law: every row pushed comes out of [`Arrivals::take_before`] once, at the first call whose bound is after its time, in order of time; rows of one time
//! in order of arrival. Cost: a look at the times of each batch when it comes; batches in order are cut, others are sorted.

use anabranch_batch::{Batch, Time, Times};

/// Batches in order of arrival.
#[derive(Debug, Default)]
pub(crate) struct Arrivals {
    waiting: Vec<Waiting>,
}

/// A batch in order of time.
#[derive(Debug)]
struct Waiting {
    batch: Batch,
    from: Time,
    to: Time,
}

impl Arrivals {
    /// Keeps a batch until its times are complete.
    pub(crate) fn push(&mut self, batch: Batch) {
        if batch.is_empty() {
            return;
        }
        let batch = in_order(batch);
        let (from, to) = (batch.times().get(0), batch.times().get(batch.len() - 1));
        self.waiting.push(Waiting { batch, from, to });
    }

    /// The rows with times before `upto`, in order of time across batches.
    pub(crate) fn take_before(&mut self, upto: Time) -> Vec<Batch> {
        let mut ready: Vec<Waiting> = Vec::new();
        for waiting in std::mem::take(&mut self.waiting) {
            if waiting.to < upto {
                ready.push(waiting);
            } else if waiting.from >= upto {
                self.waiting.push(waiting);
            } else {
                let cut = match waiting.batch.times() {
                    Times::Column(times) => times.partition_point(|&time| time < upto),
                    Times::Constant(_) => waiting.batch.len(),
                };
                let before = waiting.batch.slice(0, cut);
                let after = waiting.batch.slice(cut, waiting.batch.len() - cut);
                let last = before.times().get(cut - 1);
                self.waiting.push(Waiting { from: after.times().get(0), to: waiting.to, batch: after });
                ready.push(Waiting { batch: before, from: waiting.from, to: last });
            }
        }
        let follows = ready.windows(2).all(|pair| pair[0].to <= pair[1].from);
        let batches: Vec<Batch> = ready.into_iter().map(|waiting| waiting.batch).collect();
        if follows {
            return batches;
        }
        Batch::concat(&batches).map(in_order).into_iter().collect()
    }

    /// The least time that waits.
    pub(crate) fn pending_from(&self) -> Option<Time> {
        self.waiting.iter().map(|waiting| waiting.from).min()
    }

    pub(crate) fn size_bytes(&self) -> usize {
        self.waiting.iter().map(|waiting| waiting.batch.size_bytes()).sum()
    }
}

/// The rows in order of time, rows of one time as they were.
pub(crate) fn in_order(batch: Batch) -> Batch {
    let Times::Column(times) = batch.times() else { return batch };
    if times.is_sorted() {
        return batch;
    }
    let mut rows: Vec<(Time, u32)> = times.iter().copied().zip(0..).collect();
    rows.sort_unstable();
    let rows: Vec<u32> = rows.into_iter().map(|(_, row)| row).collect();
    batch.take(&rows)
}
