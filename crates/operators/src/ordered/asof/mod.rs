//! As-of join: each left row with the one right row of its key whose time is nearest, before it,
//! after it, or on either side.
//!
//! ```text
//! backward:  left   (A, 5) @1 +1               (A, 5, A, 3) @1 +1
//!            right  (A, 3) @1 +1
//!            right  (A, 4) @2 +1               (A, 5, A, 3) @2 -1, (A, 5, A, 4) @2 +1
//!            right  (A, 4) @3 -1               (A, 5, A, 4) @3 -1, (A, 5, A, 3) @3 +1
//! ```
//!
//! Law: at every time, a left row is joined with the right row that has an equal key and, among
//! those on the asked side and within the tolerance, the nearest time; of several such rows with
//! the first by their remaining columns (ascending, NULLs last), once, whatever its multiplicity.
//! Rows with a NULL in time, or in a key whose NULLs do not match, have no match. A left row
//! without a match is left out, or kept with NULLs.
//!
//! Method: both sides are kept by key, in order of time. A left row looks its match up. A right row
//! that comes or goes concerns the left rows from it to the next right row that stays: they are
//! walked until one is met whose matches lie beyond the change. *Forward* is *backward* with time
//! turned round. *Nearest* looks on both sides and begins its walk at the right row before. The
//! sweep carries the match at each time from one left row to the next, so it passes a right row
//! once, however many left rows follow.
//!
//! State: all rows of both sides that may match (of the right side twice for *nearest*); freed as
//! rows are retracted. Where watermarks bound the times of both sides, left rows below both leave,
//! and of the right rows of a key below both all but the last (`aged`).
//! Cost: O(log rows) for a left row; for a right row that, and as much for each left row whose
//! match it changes. Source: the as-of joins of kdb+, pandas and DuckDB; keeping them current under
//! changes of both sides is ours.

mod aged;
mod emission;
mod search;
mod spec;
mod sweep;

use anabranch_arrangement::{Floor, Keys, Layout, ValueOrder};
use anabranch_batch::order::Direction;
use anabranch_batch::order::Nulls;
use anabranch_batch::{Batch, Columns, Time, gather};
use anabranch_spec::asof::Strategy;
use arrow::array::{Array, ArrayRef, BooleanArray};
use arrow::datatypes::DataType;

use crate::ordered::instants::Instants;
use crate::ordered::trace::OrderedTrace;
use aged::Aged;
use anabranch_flow::pending::Pending;
use anabranch_flow::tactic::{Output, Passed, Timed};
use emission::Emission;
use search::Search;
pub use spec::AsofSpec;

/// The tactic. See the module's page.
pub struct Asof {
    spec: AsofSpec,
    pending: [Pending; 2],
    left: OrderedTrace,
    /// Right rows, the nearest of those behind a left row first.
    behind: OrderedTrace,
    /// Right rows, the nearest of those ahead of a left row first; for [`Strategy::Nearest`].
    ahead: Option<OrderedTrace>,
    /// Right rows that leave.
    aged: Aged,
}

/// Changes of one side that can match.
struct Changes {
    /// Keyed.
    batch: Batch,
    instants: Instants,
}

/// What the changes of an interval touch.
struct Touched {
    keys: Keys,
    /// Keys and times, ascending.
    times: Vec<(u32, Time)>,
    /// Keys and instants of left rows that change, ascending.
    left: Vec<(u32, i64)>,
    /// The same of right rows.
    right: Vec<(u32, i64)>,
}

impl Asof {
    /// The join of nothing with nothing.
    ///
    /// # Panics
    /// If keys differ in number, or times in type.
    pub fn new(spec: AsofSpec) -> Asof {
        assert_eq!(spec.join.left_key.len(), spec.join.right_key.len(), "keys have as many columns on both sides");
        let time_type = |types: &[DataType], time: usize| types[time].clone();
        let (left, right) =
            (time_type(&spec.left_types, spec.join.left_time), time_type(&spec.right_types, spec.join.right_time));
        assert_eq!(left, right, "times are of one type on both sides");
        let is_key =
            spec.join.left_key.contains(&spec.join.left_time) || spec.join.right_key.contains(&spec.join.right_time);
        assert!(!is_key, "times are no keys");
        let trace = |key: &[usize], time: usize, types: &[DataType], direction: Direction| {
            let values = ValueOrder::Sorted(vec![(time, direction)]);
            OrderedTrace::new(Layout { key: key.to_vec(), values, types: types.to_vec() }, spec.effort)
        };
        let right = |direction| trace(&spec.join.right_key, spec.join.right_time, &spec.right_types, direction);
        Asof {
            pending: [Pending::default(), Pending::default()],
            left: trace(&spec.join.left_key, spec.join.left_time, &spec.left_types, spec.onward()),
            behind: right(spec.backward()),
            ahead: (spec.join.strategy == Strategy::Nearest).then(|| right(spec.onward())),
            aged: Aged::default(),
            spec,
        }
    }

    /// The left rows that may have a match; others are put out at once, or dropped.
    fn left_changes(&self, batch: Batch, out: &mut Output) -> Option<Changes> {
        let spec = &self.spec;
        let (able, unable) = split_nulls(batch, spec.null_columns(&spec.join.left_key), spec.join.left_time);
        if spec.join.outer {
            out.give_rows(emission::padded(unable, &spec.right_types));
        }
        Changes::new(able, &spec.join.left_key, spec.join.left_time)
    }

    fn right_changes(&self, batch: Batch) -> Option<Changes> {
        let spec = &self.spec;
        let (able, _) = split_nulls(batch, spec.null_columns(&spec.join.right_key), spec.join.right_time);
        Changes::new(able, &spec.join.right_key, spec.join.right_time)
    }
}

impl Timed for Asof {
    fn push(&mut self, input: usize, batch: Batch) {
        self.pending[input].push(batch);
    }

    fn advance(&mut self, upto: Time, out: &mut Output) {
        let left = self.pending[0].take_before(upto);
        let right = self.pending[1].take_before(upto);
        if left.is_none() && right.is_none() {
            return;
        }
        let left = left.and_then(|batch| self.left_changes(batch, out));
        let right = right.and_then(|batch| self.right_changes(batch));
        let Some(touched) = Touched::of(&self.spec, left.as_ref(), right.as_ref()) else { return };
        let [left, right] = [left, right].map(|changes| changes.map(|changes| changes.batch));
        self.aged.note(right.as_ref());
        if self.spec.join.strategy == Strategy::Forward {
            self.aged.note(left.as_ref());
        }
        if let Some(left) = self.aged.with_leaving_left(left, &self.spec) {
            self.left.absorb(left, upto);
        }
        if let Some(right) = self.aged.with_leaving_right(right, &self.spec) {
            self.ahead.iter_mut().for_each(|ahead| ahead.absorb(right.clone(), upto));
            self.behind.absorb(right, upto);
        }
        let ahead = self.ahead.as_ref().map(OrderedTrace::walk);
        let mut search = Search::new(&self.spec, self.left.walk(), self.behind.walk(), ahead);
        let mut emission = Emission::default();
        let (mut times, mut left_from, mut right_from) = (vec![], 0, 0);
        for of_key in touched.times.chunk_by(|a, b| a.0 == b.0) {
            let key = of_key[0].0;
            times.clear();
            times.push(of_key[0].1.saturating_sub(1));
            times.extend(of_key.iter().map(|(_, time)| *time));
            let left = slice_of(&touched.left, &mut left_from, key);
            let right = slice_of(&touched.right, &mut right_from, key);
            search.walk_key(&touched.keys, key as usize, &times, left, right, &mut emission);
        }
        let (left, behind, ahead) = search.sources();
        emission.finish(&left, &behind, &ahead, &self.spec, out);
    }

    /// Left rows leave that no change of either side will concern, and right rows that no left row
    /// will look up.
    fn free(&mut self, passed: &[Passed]) {
        let of_input = |input| passed.iter().find(|passed| passed.input == input);
        let floor = |passed: &Passed| Floor { column: passed.column, below: passed.below };
        let is_forward = self.spec.join.strategy == Strategy::Forward;
        match (is_forward, self.spec.join.tolerance) {
            (true, Some(_)) => {
                of_input(0).into_iter().for_each(|left| self.left.set_floor(floor(left)));
                of_input(1).into_iter().for_each(|right| self.behind.set_floor(floor(right)));
            }
            _ => {
                assert!(self.spec.join.strategy != Strategy::Nearest, "rows on both sides are looked up");
                if !is_forward && let Some(left) = of_input(0) {
                    self.left.set_floor(floor(left));
                }
                if let Some(right) = of_input(1) {
                    self.aged.look(&self.left, &self.behind, &self.spec, right.below);
                }
            }
        }
    }

    fn idle(&mut self) {
        self.left.idle();
        self.behind.idle();
        self.ahead.iter_mut().for_each(OrderedTrace::idle);
    }

    fn pending_from(&self) -> Option<Time> {
        self.pending.iter().filter_map(Pending::pending_from).min()
    }

    fn state_rows(&self) -> Option<usize> {
        let traces = [&self.left, &self.behind].into_iter().chain(&self.ahead);
        Some(traces.map(OrderedTrace::n_rows).sum())
    }

    fn size_bytes(&self) -> usize {
        let traces = [&self.left, &self.behind].into_iter().chain(&self.ahead);
        traces.map(OrderedTrace::size_bytes).sum::<usize>()
            + self.aged.size_bytes()
            + self.pending.iter().map(Pending::size_bytes).sum::<usize>()
    }
}

impl Changes {
    /// `None` without rows.
    fn new(batch: Batch, key: &[usize], time: usize) -> Option<Changes> {
        if batch.is_empty() {
            return None;
        }
        let instants = Instants::of(batch.column(time));
        Some(Changes { batch: batch.with_key(key), instants })
    }
}

impl Touched {
    /// `None` without changes.
    fn of(spec: &AsofSpec, left: Option<&Changes>, right: Option<&Changes>) -> Option<Touched> {
        let sides = [(left, &spec.join.left_key), (right, &spec.join.right_key)];
        let sides: Vec<(&Changes, &Vec<usize>)> =
            sides.into_iter().filter_map(|(changes, key)| Some((changes?, key))).collect();
        if sides.is_empty() {
            return None;
        }
        let key_of = |(changes, key): &(&Changes, &Vec<usize>)| -> Columns {
            key.iter().map(|column| changes.batch.column(*column).clone()).collect()
        };
        let columns: Vec<Columns> = sides.iter().map(key_of).collect();
        let columns: Vec<&[ArrayRef]> = columns.iter().map(|columns| &**columns).collect();
        let columns = if columns.len() == 1 { columns[0].to_vec() } else { gather::concat(&columns).to_vec() };
        let hashes_of =
            |(changes, _): &(&Changes, &Vec<usize>)| changes.batch.key().expect("changes are keyed").hashes.to_vec();
        let hashes: Vec<u64> = sides.iter().flat_map(hashes_of).collect();
        let (keys, of_row) = Keys::from_columns(&columns, &hashes, Nulls::Equal);

        let (left_keys, right_keys) = of_row.split_at(left.map_or(0, |left| left.batch.len()));
        let mut touched = Touched { keys, times: vec![], left: vec![], right: vec![] };
        touched.left = touched.enter(spec, left, left_keys);
        touched.right = touched.enter(spec, right, right_keys);
        touched.times.sort_unstable();
        touched.times.dedup();
        Some(touched)
    }

    /// Notes the times of changes; returns their keys and instants, in order.
    fn enter(&mut self, spec: &AsofSpec, changes: Option<&Changes>, keys: &[u32]) -> Vec<(u32, i64)> {
        let Some(changes) = changes else { return vec![] };
        let times = changes.batch.times();
        self.times.extend(keys.iter().enumerate().map(|(row, key)| (*key, times.get(row))));
        let instants = &changes.instants;
        let mut entries: Vec<(u32, i64)> =
            keys.iter().enumerate().map(|(row, key)| (*key, spec.turned(instants.at(row)))).collect();
        entries.sort_unstable();
        entries.dedup();
        entries
    }
}

/// The entries of a key; `from` is moved behind them.
fn slice_of<'a>(entries: &'a [(u32, i64)], from: &mut usize, key: u32) -> &'a [(u32, i64)] {
    let start = *from;
    while entries.get(*from).is_some_and(|(of, _)| *of == key) {
        *from += 1;
    }
    &entries[start..*from]
}

/// The rows without a NULL in key and time, and the others.
fn split_nulls(batch: Batch, key: &[usize], time: usize) -> (Batch, Batch) {
    let columns = key.iter().chain([&time]).map(|column| batch.column(*column));
    let nulls: Vec<_> =
        columns.filter_map(|column| column.logical_nulls()).filter(|nulls| nulls.null_count() > 0).collect();
    if nulls.is_empty() {
        let none = batch.slice(0, 0);
        return (batch, none);
    }
    let is_able = (0..batch.len()).map(|row| Some(nulls.iter().all(|nulls| nulls.is_valid(row))));
    let is_able: BooleanArray = is_able.collect();
    let is_unable = arrow::compute::not(&is_able).expect("negation has no cause to fail");
    (batch.filter(&is_able), batch.filter(&is_unable))
}

#[cfg(test)]
mod tests;
