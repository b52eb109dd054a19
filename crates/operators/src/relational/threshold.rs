//! Rows against a changing scalar: those whose value is above (below) it.
//!
//! ```text
//! value > s:   rows   (a, 3) +1, (b, 7) +1 at 1                                    s   5 at 1    2 at 4    6 at 9
//!              out    (b, 7) +1 at 1    (a, 3) +1 at 4    (a, 3) -1 at 9
//! ```
//!
//! Law: at every time the output is each row as often as there are scalars that it passes. (SQL's
//! scalar subqueries yield one; nothing here rests on it.) NULL passes nothing, and nothing passes
//! NULL.
//!
//! State: the rows, but those that a scalar which does not go back has let out for good; in runs
//! sorted by value that are merged in geometric levels, and the scalars. A row's retraction is one
//! more row until a merge cancels the two. Cost: a row is compared once; a change of the scalar
//! costs two binary searches a run, and the rows between the old scalar and the new one. Many times
//! in one batch are walked in order, in one pass. Rows that may leave a run do so once they are
//! half of it.
//!
//! Source: *TPC-H on differential dataflow* (McSherry 2017), on queries 11, 15 and 22: what a
//! comparison with an aggregate of everything should cost.

use std::collections::BTreeMap;

use anabranch_batch::consolidate::consolidate;
use anabranch_batch::{Batch, Columns, Diff, Diffs, Time, Times, gather};
use arrow::array::{ArrayRef, AsArray, PrimitiveArray};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Decimal64Type, Decimal128Type, Int64Type};

use anabranch_flow::pending::Pending;
use anabranch_flow::tactic::{Output, Passed, Timed};

/// How a value must compare with the scalar.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Comparison {
    /// `value > scalar`.
    Greater,
    /// `value >= scalar`.
    GreaterOrEqual,
    /// `value < scalar`.
    Less,
    /// `value <= scalar`.
    LessOrEqual,
}

/// The tactic. Rows of input 0 have their value in column 0 and are put out without it; rows of
/// input 1 have the scalar in column 0.
#[derive(Debug)]
pub struct Threshold {
    comparison: Comparison,
    pending: [Pending; 2],
    /// Where values pass from, and how many scalars say so; ascending.
    scalars: BTreeMap<i128, Diff>,
    /// Rows seen so far, greatest run first.
    runs: Vec<Run>,
}

/// Whether values of this type can be compared so: numbers without NaN, dates and times.
pub fn is_comparable(data_type: &DataType) -> bool {
    use DataType::{Date32, Date64, Decimal64, Decimal128, Int8, Int16, Int32, Int64, Time64, Timestamp};
    matches!(data_type, Int8 | Int16 | Int32 | Int64 | Decimal64(..) | Decimal128(..))
        || matches!(data_type, Date32 | Date64 | Time64(_) | Timestamp(..))
}

impl Threshold {
    /// No rows and no scalar.
    pub fn new(comparison: Comparison) -> Threshold {
        let pending = [Pending::default(), Pending::default()];
        Threshold { comparison, pending, scalars: BTreeMap::new(), runs: Vec::new() }
    }

    /// Values such that a row passes when its value is at least the scalar's; `None` for NULL.
    fn values(&self, column: &ArrayRef, is_scalar: bool) -> Vec<Option<i128>> {
        use Comparison::{Greater, GreaterOrEqual, Less};
        let place = |value: i128| {
            let turned = if matches!(self.comparison, Greater | GreaterOrEqual) { value } else { !value };
            let beyond = is_scalar && matches!(self.comparison, Greater | Less);
            if beyond { turned.saturating_add(1) } else { turned }
        };
        if let Some(decimals) = column.as_primitive_opt::<Decimal128Type>() {
            return decimals.iter().map(|value| value.map(place)).collect();
        }
        if let Some(decimals) = column.as_primitive_opt::<Decimal64Type>() {
            return decimals.iter().map(|value| value.map(|value| place(i128::from(value)))).collect();
        }
        let whole = cast(column, &DataType::Int64).expect("the planner compares numbers, dates and times");
        let whole: &PrimitiveArray<Int64Type> = whole.as_primitive();
        whole.iter().map(|value| value.map(|value| place(i128::from(value)))).collect()
    }

    /// Changes of the scalar: time, where values pass from, diff; by time.
    fn scalar_changes(&self, batch: Option<Batch>) -> Vec<(Time, i128, Diff)> {
        let Some(batch) = batch else { return Vec::new() };
        let values = self.values(batch.column(0), true);
        let updates = values.into_iter().enumerate();
        let mut changes: Vec<(Time, i128, Diff)> =
            updates.filter_map(|(row, value)| Some((batch.times().get(row), value?, batch.diffs().get(row)))).collect();
        changes.sort_unstable();
        changes
    }

    /// The batch's rows that have a value, by time.
    fn arrivals(&self, batch: &Batch) -> Vec<Arrival> {
        let values = self.values(batch.column(0), false);
        let mut arrivals: Vec<Arrival> = values
            .into_iter()
            .enumerate()
            .filter_map(|(row, value)| {
                let (time, diff) = (batch.times().get(row), batch.diffs().get(row));
                Some(Arrival { time, value: value?, row: row as u32, diff })
            })
            .collect();
        if !arrivals.is_sorted_by_key(|arrival| arrival.time) {
            arrivals.sort_by_key(|arrival| arrival.time);
        }
        arrivals
    }

    /// Moves the scalars; returns the ranges of values that pass more or less often than before,
    /// with the difference.
    fn moved(&mut self, changes: &[(Time, i128, Diff)]) -> Vec<(i128, Option<i128>, Diff)> {
        for (_, from, diff) in changes {
            let count = self.scalars.entry(*from).or_default();
            *count += diff;
            if *count == 0 {
                self.scalars.remove(from);
            }
        }
        let mut ranges = Vec::new();
        let mut sum = 0;
        for (n, (_, from, diff)) in changes.iter().enumerate() {
            sum += diff;
            let to = changes.get(n + 1).map(|(_, next, _)| *next);
            if sum != 0 && to != Some(*from) {
                ranges.push((*from, to, sum));
            }
        }
        ranges
    }

    /// How many scalars a value passes.
    fn passes(&self, value: i128) -> Diff {
        self.scalars.range(..=value).map(|(_, count)| count).sum()
    }

    /// Keeps the rows of a batch, in order of their values.
    fn remember(&mut self, batch: &Batch, mut arrivals: Vec<Arrival>) {
        arrivals.sort_unstable_by_key(|arrival| arrival.value);
        let rows: Vec<u32> = arrivals.iter().map(|arrival| arrival.row).collect();
        let values = arrivals.iter().map(|arrival| arrival.value).collect();
        self.runs.push(Run { values, rows: batch.take(&rows).with_times(Times::Constant(0)) });
        while let [.., before, last] = &self.runs[..]
            && before.values.len() < 2 * last.values.len()
        {
            let (last, before) = (self.runs.pop(), self.runs.pop());
            let merged = self.merged(before.into_iter().chain(last));
            self.runs.extend(merged);
        }
    }

    /// The rows of a run that are not below, or do not pass; `None` if it is not yet worth a copy
    /// of them.
    fn staying(&self, run: &Run, below: i64) -> Option<Vec<u32>> {
        let (n_rows, below) = (run.values.len(), i128::from(below));
        let is_passed = matches!(self.comparison, Comparison::Less | Comparison::LessOrEqual);
        let stay = match is_passed {
            // (A rising scalar lets greater values go: those below pass never again.)
            false => run.values.partition_point(|place| *place < below)..n_rows,
            // (What passes stands behind the least scalar, if none is there less than no times.)
            true if self.scalars.values().all(|count| *count > 0) => {
                let n_above = run.values.partition_point(|place| !*place >= below);
                let least = self.scalars.first_key_value();
                let n_kept_out = least.map_or(n_rows, |(least, _)| run.values.partition_point(|place| place < least));
                0..n_above.max(n_kept_out)
            }
            true => 0..n_rows,
        };
        (stay.len() <= n_rows / 2).then(|| (stay.start as u32..stay.end as u32).collect())
    }

    fn merged(&self, runs: impl Iterator<Item = Run>) -> Option<Run> {
        let rows: Vec<Batch> = runs.map(|run| run.rows).collect();
        let rows = consolidate(Batch::concat(&rows)?);
        let values = self.values(rows.column(0), false);
        let mut order: Vec<(i128, u32)> = values.into_iter().flatten().zip(0..).collect();
        order.sort_unstable();
        let places: Vec<u32> = order.iter().map(|(_, row)| *row).collect();
        let values: Vec<i128> = order.into_iter().map(|(value, _)| value).collect();
        (!values.is_empty()).then(|| Run { values, rows: rows.take(&places) })
    }
}

impl Timed for Threshold {
    fn push(&mut self, input: usize, batch: Batch) {
        self.pending[input].push(batch);
    }

    fn advance(&mut self, upto: Time, out: &mut Output) {
        let batch = self.pending[0].take_before(upto);
        let changes = self.pending[1].take_before(upto);
        let changes = self.scalar_changes(changes);
        let arrivals = batch.as_ref().map(|batch| self.arrivals(batch)).unwrap_or_default();
        let mut changed = Changes::new(self.runs.len());
        // Rows of this batch that have come already, by value.
        let mut arrived: BTreeMap<(i128, u32), Diff> = BTreeMap::new();
        let mut next = 0;
        for change in changes.chunk_by(|left, right| left.0 == right.0) {
            let time = change[0].0;
            let upto_here = next + arrivals[next..].partition_point(|arrival| arrival.time < time);
            for arrival in &arrivals[next..upto_here] {
                changed.arrive(arrival, self.passes(arrival.value));
                arrived.insert((arrival.value, arrival.row), arrival.diff);
            }
            next = upto_here;
            for (from, to, diff) in self.moved(change) {
                self.runs.iter().enumerate().for_each(|(n, run)| changed.pass(n, run, from, to, time, diff));
                let in_range = match to {
                    Some(to) => arrived.range((from, 0)..(to, 0)),
                    None => arrived.range((from, 0)..),
                };
                for ((_, row), of_row) in in_range {
                    changed.push(changed.batch, *row, time, of_row * diff);
                }
            }
        }
        for arrival in &arrivals[next..] {
            changed.arrive(arrival, self.passes(arrival.value));
        }
        out.give_rows(changed.finish(&self.runs, batch.as_ref()));
        if let Some(batch) = batch.filter(|_| !arrivals.is_empty()) {
            self.remember(&batch, arrivals);
        }
    }

    /// Scalars do not go back where anything passes: rows that are out stay out. Neither do those
    /// that greater values are compared with: rows below are gone.
    fn free(&mut self, passed: &[Passed]) {
        for passed in passed.iter().filter(|passed| passed.input == 0) {
            let runs = std::mem::take(&mut self.runs);
            let out_of = |run: Run| match self.staying(&run, passed.below) {
                None => Some(run),
                Some(stay) if stay.is_empty() => None,
                Some(stay) => Some(Run {
                    values: stay.iter().map(|&row| run.values[row as usize]).collect(),
                    rows: run.rows.take(&stay),
                }),
            };
            let runs = runs.into_iter().filter_map(out_of).collect();
            self.runs = runs;
        }
    }

    /// Rows behind a scalar that rises pass nothing; their retractions do not either.
    fn takes_passed(&self) -> bool {
        matches!(self.comparison, Comparison::Greater | Comparison::GreaterOrEqual)
    }

    fn pending_from(&self) -> Option<Time> {
        self.pending.iter().filter_map(Pending::pending_from).min()
    }

    fn state_rows(&self) -> Option<usize> {
        Some(self.runs.iter().map(|run| run.rows.len()).sum())
    }

    fn size_bytes(&self) -> usize {
        let runs = self.runs.iter().map(|run| run.rows.size_bytes() + 16 * run.values.len());
        runs.sum::<usize>() + self.pending.iter().map(Pending::size_bytes).sum::<usize>()
    }
}

/// A row of the batch.
#[derive(Clone, Copy, Debug)]
struct Arrival {
    time: Time,
    value: i128,
    row: u32,
    diff: Diff,
}

/// Rows sorted by value.
#[derive(Debug)]
struct Run {
    values: Vec<i128>,
    rows: Batch,
}

/// Output rows under construction.
struct Changes {
    /// Source of the batch's own rows; runs are the sources before.
    batch: u32,
    places: Vec<(u32, u32)>,
    times: Vec<Time>,
    diffs: Vec<Diff>,
}

impl Changes {
    fn new(n_runs: usize) -> Changes {
        Changes { batch: n_runs as u32, places: Vec::new(), times: Vec::new(), diffs: Vec::new() }
    }

    fn push(&mut self, source: u32, row: u32, time: Time, diff: Diff) {
        self.places.push((source, row));
        self.times.push(time);
        self.diffs.push(diff);
    }

    fn arrive(&mut self, arrival: &Arrival, passes: Diff) {
        if passes != 0 {
            self.push(self.batch, arrival.row, arrival.time, arrival.diff * passes);
        }
    }

    /// The rows of a run with values in a range, `diff` times.
    fn pass(&mut self, source: usize, run: &Run, from: i128, to: Option<i128>, time: Time, diff: Diff) {
        let start = run.values.partition_point(|value| *value < from);
        let end = to.map_or(run.values.len(), |to| run.values.partition_point(|value| *value < to));
        for row in start..end {
            self.push(source as u32, row as u32, time, run.rows.diffs().get(row) * diff);
        }
    }

    fn finish(self, runs: &[Run], batch: Option<&Batch>) -> Batch {
        let len = self.places.len();
        if len == 0 {
            return Batch::default();
        }
        let all = runs.iter().map(|run| &run.rows).chain(batch);
        let sources: Vec<&[ArrayRef]> = all.map(|rows| &rows.columns()[1..]).collect();
        let columns = match sources.first() {
            Some([]) | None => Columns::from(Vec::new()),
            Some(_) => gather::interleave(&sources, &self.places),
        };
        let (times, diffs) = (Times::Column(self.times.into()).simplify(), Diffs::Column(self.diffs.into()));
        Batch::with_len(columns, len, times, diffs.simplify())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::array::Int64Array;
    use std::sync::Arc;

    type Update = (i64, i64, Time, Diff);

    fn rows(rows: &[Update]) -> Batch {
        let column = |of: &dyn Fn(&Update) -> i64| -> ArrayRef {
            Arc::new(Int64Array::from(rows.iter().map(of).collect::<Vec<_>>()))
        };
        let times = Times::Column(rows.iter().map(|row| row.2).collect());
        let diffs = Diffs::Column(rows.iter().map(|row| row.3).collect());
        Batch::new(vec![column(&|row| row.0), column(&|row| row.1)], times, diffs)
    }

    fn step(threshold: &mut Threshold, upto: Time) -> Vec<(i64, Time, Diff)> {
        let mut out = Output::default();
        threshold.advance(upto, &mut out);
        let mut changes: Vec<_> = out
            .rows
            .iter()
            .flat_map(|batch| {
                let names = batch.column(0).as_primitive::<Int64Type>().clone();
                let updates = (0..batch.len()).map(|n| (names.value(n), batch.times().get(n), batch.diffs().get(n)));
                updates.collect::<Vec<_>>()
            })
            .collect();
        changes.sort_unstable();
        changes
    }

    #[test]
    fn only_rows_between_the_old_scalar_and_the_new_change() {
        let mut threshold = Threshold::new(Comparison::Greater);
        threshold.push(0, rows(&[(3, 30, 1, 1), (7, 70, 1, 1), (5, 50, 1, 2)]));
        threshold.push(1, rows(&[(5, 0, 1, 1), (5, 0, 4, -1), (2, 0, 4, 1), (2, 0, 9, -1), (6, 0, 9, 1)]));
        assert_eq!(step(&mut threshold, 2), [(70, 1, 1)]);
        assert_eq!(step(&mut threshold, 5), [(30, 4, 1), (50, 4, 2)]);
        assert_eq!(step(&mut threshold, 20), [(30, 9, -1), (50, 9, -2)]);
    }

    #[test]
    fn a_batch_of_many_times_is_taken_in_order() {
        let mut threshold = Threshold::new(Comparison::LessOrEqual);
        threshold.push(1, rows(&[(5, 0, 1, 1), (5, 0, 3, -1), (4, 0, 3, 1)]));
        threshold.push(0, rows(&[(5, 50, 2, 1), (4, 40, 4, 1), (5, 51, 5, 1), (5, 50, 6, -1)]));
        assert_eq!(step(&mut threshold, 10), [(40, 4, 1), (50, 2, 1), (50, 3, -1)]);
        threshold.push(0, rows(&[(4, 40, 11, -1)]));
        assert_eq!(step(&mut threshold, 12), [(40, 11, -1)]);
    }
}
