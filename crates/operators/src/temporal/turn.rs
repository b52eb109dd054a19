//! The rows of a turn of one side of a verb with two inputs, and the order in which both sides'
//! rows are taken.
//!
//! Law: rows are in order of time, and at one time ends come before starts. A [`Step`] is a run of
//! starts of one side before which nothing of the other is left, or one end edge; so a loop over a
//! run need not look at the other side's times. Batches are walked as they came; only with end
//! edges among them are they put together and sorted.

use std::ops::Range;

use anabranch_batch::{Batch, END, Time, Until, hash};
use arrow::array::Array;
use arrow::buffer::{NullBuffer, ScalarBuffer};

use super::in_force::InForce;
use super::slots::Slots;

/// The rows of a turn.
#[derive(Debug)]
pub(crate) struct Turn {
    /// The rows, in order of time across batches; all have times before the turn's end.
    pub(crate) batches: Vec<Batch>,
    pub(crate) times: ScalarBuffer<i64>,
    /// End edges: their rows, which rise, and the times at which what they end began.
    ends: Vec<(usize, Time)>,
    /// Hashes of whole rows, when there are edges.
    hashes: Vec<u64>,
    /// The next row, and the next of the end edges.
    at: usize,
    next_end: usize,
}

/// What is to be done next on a side.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum TurnStep {
    /// These rows start.
    Starts(Range<usize>),
    /// The event that began at `start` with a row as this ends.
    End { row: usize, start: Time },
}

impl Turn {
    /// The rows of `batches`, which are in order of time across batches; appends when each ends
    /// (the least time for those that end something) to `ends` and the slots of their keys to
    /// `key_slots`.
    pub(crate) fn new(
        batches: Vec<Batch>,
        key: &[usize],
        slots: &mut Slots,
        (ends, key_slots): (&mut Vec<Time>, &mut Vec<u32>),
    ) -> Turn {
        let batches = if batches.iter().any(has_ends) { ends_first(&batches) } else { batches };
        let mut turn = Turn { times: times(&batches), batches, ends: vec![], hashes: vec![], at: 0, next_end: 0 };
        let first = ends.len();
        for batch in &turn.batches {
            slots.append_of(batch, key, key_slots);
            append_untils(batch, ends);
        }
        turn.take_end_edges(&mut ends[first..]);
        if !turn.ends.is_empty() || ends[first..].contains(&END) {
            turn.hashes = turn.batches.iter().flat_map(|b| hash::hash_columns(b.columns(), b.len())).collect();
        }
        turn
    }

    /// The hash of a row; known when there are edges.
    pub(crate) fn hash(&self, row: usize) -> u64 {
        self.hashes[row]
    }

    /// Makes the start edges among `rows`, which have ids from `first` on, findable.
    pub(crate) fn open_edges(&self, in_force: &mut InForce, rows: Range<usize>, first: u32) {
        if self.hashes.is_empty() {
            return;
        }
        for row in rows {
            let id = first + row as u32;
            if in_force.ends[id as usize] == END {
                in_force.open(id, self.times[row], self.hashes[row]);
            }
        }
    }

    /// Notes the end edges, which are in force at no time.
    fn take_end_edges(&mut self, untils: &mut [Time]) {
        if !self.batches.iter().any(may_have_ends) {
            return;
        }
        for (row, (until, &time)) in untils.iter_mut().zip(self.times.iter()).enumerate() {
            if *until < time {
                self.ends.push((row, std::mem::replace(until, Time::MIN)));
            }
        }
    }

    /// The time of the next row, and whether it is a start.
    fn peek(&self) -> Option<(Time, bool)> {
        let is_end = self.ends.get(self.next_end).is_some_and(|(row, _)| *row == self.at);
        self.times.get(self.at).map(|&time| (time, !is_end))
    }

    /// The next end edge if it is the next row, else the starts before `bound`, at least one.
    fn step(&mut self, bound: Time) -> TurnStep {
        let next_end = self.ends.get(self.next_end).copied();
        if let Some((row, start)) = next_end.filter(|(row, _)| *row == self.at) {
            self.at += 1;
            self.next_end += 1;
            return TurnStep::End { row, start };
        }
        let from = self.at;
        let limit = next_end.map_or(self.times.len(), |(row, _)| row);
        self.at = from + n_before(&self.times[from..limit], bound);
        debug_assert!(self.at > from, "a side steps when its next row is next");
        TurnStep::Starts(from..self.at)
    }
}

/// The next step of two turns, and whose it is: in order of time, ends before starts, the first
/// side first.
pub(crate) fn next_step(turns: &mut [Turn; 2]) -> Option<(usize, TurnStep)> {
    let [first, second] = turns;
    match (first.peek(), second.peek()) {
        (None, None) => None,
        (Some(_), None) => Some((0, first.step(END))),
        (None, Some(_)) => Some((1, second.step(END))),
        (Some(ours), Some(other)) if ours <= other => {
            let (time, is_start) = other;
            Some((0, first.step(if is_start { time + 1 } else { time })))
        }
        (Some((bound, _)), Some(_)) => Some((1, second.step(bound))),
    }
}

/// How many of `times`, which do not fall, are before `bound`: in time logarithmic in the answer.
fn n_before(times: &[Time], bound: Time) -> usize {
    let mut reach = 1;
    while reach < times.len() && times[reach - 1] < bound {
        reach *= 2;
    }
    let reach = reach.min(times.len());
    times[..reach].partition_point(|&time| time < bound)
}

/// Rows of which a key column is NULL (unset bits).
pub(crate) fn null_keys(batch: &Batch, key: &[usize]) -> Option<NullBuffer> {
    let nulls = key.iter().map(|&column| batch.column(column).logical_nulls());
    nulls.fold(None, |all, nulls| NullBuffer::union(all.as_ref(), nulls.as_ref()))
}

/// The batch without rows of which a key column is NULL, and those rows.
pub(crate) fn split_null_keys(batch: Batch, key: &[usize]) -> (Batch, Option<Batch>) {
    let Some(nulls) = null_keys(&batch, key).filter(|nulls| nulls.null_count() > 0) else { return (batch, None) };
    let (known, null): (Vec<u32>, Vec<u32>) = (0..batch.len() as u32).partition(|&row| nulls.is_valid(row as usize));
    (batch.take(&known), Some(batch.take(&null)))
}

/// Whether a look at each row is needed to know that there are no end edges.
fn may_have_ends(batch: &Batch) -> bool {
    matches!(batch.until(), Until::Column(_))
}

fn has_ends(batch: &Batch) -> bool {
    let Until::Column(untils) = batch.until() else { return false };
    (0..batch.len()).any(|row| untils[row] < batch.times().get(row))
}

/// One batch in order of time, at one time ends before starts.
fn ends_first(batches: &[Batch]) -> Vec<Batch> {
    let Some(batch) = Batch::concat(batches) else { return vec![] };
    let place = |row: &u32| {
        let time = batch.times().get(*row as usize);
        (time, batch.until().get(*row as usize, time) > time)
    };
    let mut order: Vec<u32> = (0..batch.len() as u32).collect();
    order.sort_by_key(place);
    vec![batch.take(&order)]
}

fn times(batches: &[Batch]) -> ScalarBuffer<i64> {
    if let [only] = batches {
        return only.times().to_column(only.len());
    }
    let mut times = Vec::with_capacity(batches.iter().map(Batch::len).sum());
    batches.iter().for_each(|batch| times.extend_from_slice(&batch.times().to_column(batch.len())));
    times.into()
}

fn append_untils(batch: &Batch, into: &mut Vec<Time>) {
    match batch.until() {
        Until::Forever => into.resize(into.len() + batch.len(), END),
        Until::Duration(ticks) => {
            into.extend(batch.times().to_column(batch.len()).iter().map(|time| time.saturating_add(*ticks)));
        }
        Until::Column(untils) => into.extend_from_slice(untils),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::temporal::testing::{events, types};
    use anabranch_batch::{Diffs, Times};
    use arrow::array::{ArrayRef, Int64Array};
    use std::sync::Arc;

    fn turn(rows: &[(Time, Time, i64)]) -> Turn {
        let into = (&mut Vec::new(), &mut Vec::new());
        Turn::new(vec![events(rows)], &[0], &mut Slots::new(&types()), into)
    }

    #[test]
    fn ends_come_before_starts_and_the_first_side_before_the_second() {
        let left = turn(&[(1, END, 1), (2, 9, 1), (3, 9, 2), (3, 1, 1), (4, 9, 1)]);
        let right = turn(&[(2, END, 1), (3, 5, 1), (3, 2, 1), (7, 8, 1), (8, 9, 1)]);
        let mut turns = [left, right];
        let steps: Vec<(usize, TurnStep)> = std::iter::from_fn(|| next_step(&mut turns)).collect();
        let expected = [
            (0, TurnStep::Starts(0..2)),
            (1, TurnStep::Starts(0..1)),
            (0, TurnStep::End { row: 2, start: 1 }),
            (1, TurnStep::End { row: 1, start: 2 }),
            (0, TurnStep::Starts(3..4)),
            (1, TurnStep::Starts(2..3)),
            (0, TurnStep::Starts(4..5)),
            (1, TurnStep::Starts(3..5)),
        ];
        assert_eq!(steps, expected);
    }

    #[test]
    fn rows_with_a_null_in_the_key_are_told_apart() {
        let keys: ArrayRef = Arc::new(Int64Array::from(vec![Some(1), None, Some(3)]));
        let values: ArrayRef = Arc::new(Int64Array::from(vec![None, Some(2), Some(3)]));
        let batch = Batch::new(vec![keys, values], Times::Constant(1), Diffs::Constant(1));
        let lengths = |key: &[usize]| {
            let (known, null) = split_null_keys(batch.clone(), key);
            (known.len(), null.map(|null| null.len()))
        };
        assert_eq!([lengths(&[]), lengths(&[0]), lengths(&[0, 1])], [(3, None), (2, Some(1)), (1, Some(2))]);
    }

    #[test]
    fn starts_before_a_bound_are_counted() {
        let times = [1, 1, 2, 2, 2, 5, 9, 9];
        for bound in 0..11 {
            let expected = times.iter().filter(|&&time| time < bound).count();
            assert_eq!(n_before(&times, bound), expected, "before {bound}");
        }
    }
}
