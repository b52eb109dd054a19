//! Rows in order of time.
//!
//! Law: of each shard, rows leave in order of time, each once all rows before it have come; rows of
//! one time leave in any order. Batches whose times lie apart pass without a copy. Source: the
//! merge of Trill's scale-out, which forwards a batch that lies ahead of all others.

use anabranch_batch::{Batch, Time};

/// Rows that wait for those before them.
#[derive(Debug, Default)]
pub(crate) struct InTime {
    waiting: Vec<Batch>,
}

impl InTime {
    pub(crate) fn push(&mut self, batch: Batch) {
        if !batch.is_empty() {
            self.waiting.push(batch);
        }
    }

    /// All rows before `frontier`, in order.
    pub(crate) fn take_before(&mut self, frontier: Time) -> Vec<Batch> {
        let mut ready = Vec::new();
        for batch in std::mem::take(&mut self.waiting) {
            let batch = batch.in_time_order();
            let n_ready = first_from(&batch, frontier);
            if n_ready < batch.len() {
                self.waiting.push(batch.slice(n_ready, batch.len() - n_ready));
            }
            if n_ready > 0 {
                ready.push(batch.slice(0, n_ready));
            }
        }
        ready.sort_by_key(|batch| batch.times().min());
        // Batches that overlap leave as one.
        let mut runs: Vec<(Time, Vec<Batch>)> = Vec::new();
        for batch in ready {
            let (from, to) = batch.times().range();
            match runs.last_mut() {
                Some((end, run)) if from < *end => {
                    *end = (*end).max(to);
                    run.push(batch);
                }
                _ => runs.push((to, vec![batch])),
            }
        }
        runs.into_iter().filter_map(|(_, run)| Batch::concat(&run)).map(Batch::in_time_order).collect()
    }
}

/// The first row of a batch in order of time that is not before `time`.
fn first_from(batch: &Batch, time: Time) -> usize {
    let (mut low, mut high) = (0, batch.len());
    while low < high {
        let middle = low + (high - low) / 2;
        if batch.times().get(middle) < time { low = middle + 1 } else { high = middle }
    }
    low
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use anabranch_batch::{Diffs, Times};
    use arrow::array::{Array, ArrayRef, Int64Array};

    use super::*;

    fn batch(times: &[Time]) -> Batch {
        let column: ArrayRef = Arc::new(times.iter().copied().collect::<Int64Array>());
        Batch::new(vec![column], Times::Column(times.to_vec().into()), Diffs::Constant(1))
    }

    fn times(batches: &[Batch]) -> Vec<Time> {
        batches.iter().flat_map(|batch| (0..batch.len()).map(|row| batch.times().get(row))).collect()
    }

    #[test]
    fn rows_wait_for_those_before_them() {
        let mut rows = InTime::default();
        [&[5, 1, 9][..], &[2, 3], &[7, 7], &[]].into_iter().for_each(|times| rows.push(batch(times)));
        assert_eq!(times(&rows.take_before(6)), [1, 2, 3, 5]);
        rows.push(batch(&[6]));
        assert_eq!(times(&rows.take_before(8)), [6, 7, 7]);
        assert!(rows.take_before(8).is_empty());
        assert_eq!(times(&rows.take_before(Time::MAX)), [9]);
    }

    /// Statement T1: batches with disjoint times pass the merge, and no byte of them is copied.
    #[test]
    fn batches_that_lie_apart_are_not_copied() {
        let mut rows = InTime::default();
        let given = [batch(&[4, 5, 6]), batch(&[1, 2, 3]), batch(&[6, 7])];
        given.iter().for_each(|batch| rows.push(batch.clone()));
        let taken = rows.take_before(100);
        let address = |batch: &Batch| batch.column(0).to_data().buffers()[0].as_ptr();
        let expected: Vec<_> = [1, 0, 2].map(|at: usize| address(&given[at])).into();
        assert_eq!(taken.iter().map(address).collect::<Vec<_>>(), expected);
    }
}
