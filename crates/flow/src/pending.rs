//! Batches that wait for their times to be complete.
//!
//! Law: every row pushed comes out of [`Pending::take_before`] (or [`Pending::take_ready`]) exactly
//! once, at the first call whose bound is after its time, unless [`Pending::take_at`] took it
//! before. Cost: `push` looks at the times once; rows are copied only when a batch out of order
//! straddles the bound, or several are made one.

use anabranch_arrangement::Footprint;
use anabranch_batch::{Batch, Time, Times};

/// Batches in order of arrival, each with the range of its times.
#[derive(Debug, Default)]
pub struct Pending {
    waiting: Vec<Waiting>,
}

/// One batch with the least and the greatest of its times.
#[derive(Debug)]
struct Waiting {
    batch: Batch,
    from: Time,
    to: Time,
}

impl Waiting {
    fn is_at(&self, time: Time) -> bool {
        self.from == time && self.to == time
    }
}

impl Pending {
    /// Keeps the updates of `batch` until their times are complete. Lifetimes are written out,
    /// absent rows left out.
    pub fn push(&mut self, batch: Batch) {
        self.keep(batch.flatten());
    }

    /// Keeps `batch` as it is until its times are complete.
    pub fn keep(&mut self, batch: Batch) {
        if !batch.is_empty() {
            let (from, to) = batch.times().range();
            self.waiting.push(Waiting { batch, from, to });
        }
    }

    /// All rows with a time before `upto` as one batch, `None` if there are none. The others stay.
    pub fn take_before(&mut self, upto: Time) -> Option<Batch> {
        Batch::concat(&self.take_ready(upto))
    }

    /// All rows with a time before `upto`, in the batches they came in and in order of arrival. The
    /// others stay.
    pub fn take_ready(&mut self, upto: Time) -> Vec<Batch> {
        let mut ready = Vec::new();
        if self.pending_from().is_none_or(|from| from >= upto) {
            return ready;
        }
        for waiting in std::mem::take(&mut self.waiting) {
            if waiting.to < upto {
                ready.push(waiting.batch);
            } else if waiting.from >= upto {
                self.waiting.push(waiting);
            } else {
                let (before, after) = split_at(&waiting.batch, upto);
                ready.push(before);
                self.keep(after);
            }
        }
        ready
    }

    /// How many rows wait.
    pub fn n_rows(&self) -> usize {
        self.waiting.iter().map(|waiting| waiting.batch.len()).sum()
    }

    /// How many rows wait in batches of this time alone.
    pub fn rows_at(&self, time: Time) -> usize {
        self.waiting.iter().filter(|waiting| waiting.is_at(time)).map(|waiting| waiting.batch.len()).sum()
    }

    /// The batches of this time alone. The others stay.
    pub fn take_at(&mut self, time: Time) -> Vec<Batch> {
        self.waiting.extract_if(.., |waiting| waiting.is_at(time)).map(|waiting| waiting.batch).collect()
    }

    /// The least time that waits.
    pub fn pending_from(&self) -> Option<Time> {
        self.waiting.iter().map(|waiting| waiting.from).min()
    }

    /// Bytes of the batches that wait; what they share counts once.
    pub fn size_bytes(&self) -> usize {
        Footprint::bytes_of(self.waiting.iter().map(|waiting| &waiting.batch))
    }
}

/// The rows before `upto`, and the others.
pub fn split_at(batch: &Batch, upto: Time) -> (Batch, Batch) {
    let cut = match batch.times() {
        Times::Constant(time) => Some(if *time < upto { batch.len() } else { 0 }),
        Times::Column(times) if times.is_sorted() => Some(times.partition_point(|&time| time < upto)),
        Times::Column(_) if batch.times().max() < upto => Some(batch.len()),
        Times::Column(_) if batch.times().min() >= upto => Some(0),
        Times::Column(_) => None,
    };
    match cut {
        Some(cut) if cut == batch.len() => (batch.clone(), batch.slice(0, 0)),
        Some(0) => (batch.slice(0, 0), batch.clone()),
        Some(cut) => {
            let parts = (batch.slice(0, cut), batch.slice(cut, batch.len() - cut));
            (with_simple_times(parts.0), with_simple_times(parts.1))
        }
        None => {
            let rows = 0..batch.len() as u32;
            let (before, after): (Vec<u32>, Vec<u32>) = rows.partition(|&row| batch.times().get(row as usize) < upto);
            (with_simple_times(batch.take(&before)), with_simple_times(batch.take(&after)))
        }
    }
}

fn with_simple_times(batch: Batch) -> Batch {
    let times: Times = batch.times().clone().simplify();
    batch.with_times(times)
}

/// What [`Pending::take_ready`] gave, cut between times into portions of about so many rows, in
/// order of time, each with a time that is after its last and not after the first of the next.
/// Updates that are not in order come in one piece.
pub fn cut_in_time(ready: &[Batch], upto: Time, rows: usize) -> Vec<(Batch, Time)> {
    let Some(batch) = Batch::concat(ready) else { return vec![] };
    let times = match batch.times() {
        Times::Column(times) if batch.len() > rows && times.is_sorted() => times.clone(),
        _ => return vec![(batch, upto)],
    };
    let mut portions = Vec::with_capacity(batch.len() / rows + 1);
    let mut start = 0;
    while start < times.len() {
        let last = times[(start + rows).min(times.len()) - 1];
        let end = start + times[start..].partition_point(|&time| time <= last);
        let until = times.get(end).copied().unwrap_or(upto);
        portions.push((with_simple_times(batch.slice(start, end - start)), until));
        start = end;
    }
    portions
}

#[cfg(test)]
mod tests {
    use super::*;
    use anabranch_batch::Diffs;
    use arrow::array::Int64Array;
    use std::sync::Arc;

    fn batch(rows: &[(i64, Time)]) -> Batch {
        let values: Int64Array = rows.iter().map(|&(value, _)| value).collect::<Vec<_>>().into();
        let times = Times::Column(rows.iter().map(|&(_, time)| time).collect());
        Batch::new(vec![Arc::new(values)], times, Diffs::Constant(1))
    }

    #[test]
    fn portions_are_cut_between_times() {
        let mut pending = Pending::default();
        pending.push(batch(&[(1, 5), (2, 5), (3, 6), (4, 6), (5, 6), (6, 7), (7, 9), (8, 12)]));
        let portions = cut_in_time(&pending.take_ready(12), 12, 2);
        let cut: Vec<(usize, Time)> = portions.iter().map(|(batch, until)| (batch.len(), *until)).collect();
        assert_eq!(cut, [(2, 6), (3, 7), (2, 12)]);
        assert_eq!(pending.pending_from(), Some(12));
        pending.push(batch(&[(1, 14), (2, 13), (3, 13)]));
        assert_eq!(cut_in_time(&pending.take_ready(20), 20, 2).len(), 1);
    }

    #[test]
    fn updates_come_out_once_when_their_time_is_complete() {
        let mut pending = Pending::default();
        pending.push(batch(&[(1, 5), (2, 1), (3, 9)]));
        pending.push(batch(&[(4, 2)]));
        assert_eq!(pending.pending_from(), Some(1));
        assert!(pending.take_before(1).is_none());
        assert_eq!(pending.take_before(6).map(|batch| batch.len()), Some(3));
        assert_eq!(pending.pending_from(), Some(9));
        assert_eq!(pending.take_before(10).map(|batch| batch.len()), Some(1));
        assert_eq!((pending.pending_from(), pending.size_bytes()), (None, 0));
    }
}
