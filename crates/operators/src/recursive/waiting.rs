//! Rows of a stream that wait for their epoch.
//!
//! Law: each row is given to the first epoch at or behind its time, once. Cost: rows whose times
//! are complete are put in the order of time once, however many epochs they are of. (Events of one
//! push have as many times as there are events.)

use std::collections::BTreeMap;

use anabranch_arrangement::Footprint;
use anabranch_batch::order::sort_by_time;
use anabranch_batch::{Batch, Time, Times};
use anabranch_flow::pending::Pending;

#[derive(Default)]
pub(super) struct WaitingRows {
    /// Rows as they came.
    pending: Pending,
    /// Rows whose times are complete, by their times.
    complete: BTreeMap<Time, Vec<Batch>>,
}

impl WaitingRows {
    pub fn push(&mut self, batch: Batch) {
        self.pending.push(batch);
    }

    /// No row with a time before `upto` comes any more.
    pub fn complete(&mut self, upto: Time) {
        for batch in self.pending.take_ready(upto) {
            match batch.times() {
                Times::Constant(time) => self.complete.entry(*time).or_default().push(batch),
                Times::Column(times) => {
                    let batch = if times.is_sorted() { batch.clone() } else { batch.take(&sort_by_time(times)) };
                    self.cut(&batch);
                }
            }
        }
    }

    /// Keeps rows in the order of time.
    fn cut(&mut self, batch: &Batch) {
        let Times::Column(times) = batch.times() else { return };
        let mut begin = 0;
        for rows in times.chunk_by(|one, next| one == next) {
            let part = batch.slice(begin, rows.len()).with_times(Times::Constant(rows[0]));
            self.complete.entry(rows[0]).or_default().push(part);
            begin += rows.len();
        }
    }

    /// Takes the rows up to a time, all of which are complete.
    pub fn take(&mut self, epoch: Time) -> Vec<Batch> {
        let mut taken = Vec::new();
        while let Some(first) = self.complete.first_entry()
            && *first.key() <= epoch
        {
            taken.append(&mut first.remove());
        }
        taken
    }

    /// The least time that waits.
    pub fn from(&self) -> Option<Time> {
        let complete = self.complete.first_key_value().map(|(time, _)| *time);
        complete.into_iter().chain(self.pending.pending_from()).min()
    }

    pub fn size_bytes(&self) -> usize {
        self.pending.size_bytes() + Footprint::bytes_of(self.complete.values().flatten())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use anabranch_batch::Diffs;
    use arrow::array::{AsArray, Int64Array};
    use arrow::datatypes::Int64Type;
    use std::sync::Arc;

    fn batch(rows: &[(i64, Time)]) -> Batch {
        let values: Int64Array = rows.iter().map(|&(value, _)| value).collect::<Vec<_>>().into();
        let times = Times::Column(rows.iter().map(|&(_, time)| time).collect());
        Batch::new(vec![Arc::new(values)], times, Diffs::Constant(1))
    }

    fn values(batches: &[Batch]) -> Vec<i64> {
        batches.iter().flat_map(|batch| batch.column(0).as_primitive::<Int64Type>().values().to_vec()).collect()
    }

    #[test]
    fn each_row_comes_once_in_its_epoch() {
        let mut waiting = WaitingRows::default();
        waiting.push(batch(&[(1, 7), (2, 5), (3, 7), (4, 9), (5, 12)]));
        waiting.push(batch(&[(6, 5), (7, 6)]));
        assert_eq!(waiting.from(), Some(5));
        waiting.complete(10);
        assert_eq!((waiting.from(), values(&waiting.take(5))), (Some(5), vec![2, 6]));
        // (An epoch may stand for several times.)
        assert_eq!(values(&waiting.take(8)), [7, 1, 3]);
        assert_eq!(waiting.from(), Some(9));
        waiting.push(batch(&[(8, 11)]));
        waiting.complete(20);
        assert_eq!(values(&waiting.take(9)), [4]);
        assert_eq!(values(&waiting.take(12)), [8, 5]);
        assert_eq!((waiting.from(), waiting.size_bytes()), (None, 0));
    }
}
