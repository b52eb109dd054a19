//! Aggregates: one row a group, kept current.
//!
//! ```text
//! sum(x) by k:   in    (k: a, x: 5) +1 at 1    (a, 7) +1 at 2              (a, 5) -1, (a, 7) -1 at 3
//!                out   (a, 5) +1 at 1          (a, 5) -1, (a, 12) +1 at 2  (a, 12) -1 at 3
//! ```
//!
//! Law: at every time the output is, for each group of the input with positive multiplicity, its
//! key and the results of the calls over its rows, as PostgreSQL defines them; without keys it is
//! one row always. NULL keys form a group. A result that does not exist (out of range) makes the
//! row an error, retracted when the result exists again.
//!
//! As [`Aggregate::snapshots`] it puts out events instead of changes (Trill 3.3, snapshot windows):
//! time is cut wherever a row of the group starts or ends, and each piece in which the group is
//! alive is one event, equal neighbours not merged. Without keys there is a row only while there
//! are rows.
//!
//! State: a dense slot a group ([`crate::aggregate::group_table`]) and per call an accumulator a
//! slot: sums and counts, never the rows, except for ordered calls, which keep their arguments in
//! order. All state is a linear function of the input, so the order of updates within a time does
//! not matter, and a group whose multiplicity and accumulators are zero is given back. So is a
//! group of which no change will come (`freeing`).
//!
//! Cost: one pass over a batch for the slots, one per call, column by column; then work by touched
//! group and time. Nothing is sorted when all rows have one time; nor where all calls are sums and
//! rows come in order of time, in which changes are put out then (decision 0018).
//!
//! Reading order: [`AggregateSpec`]; `state` and `output` (what calls have in common); `count`,
//! `sum` (on `fixed` and `narrow`), `float` (on [`FloatSum`] and `limbs`), `variance`, `boolean`,
//! `bits`; `distinct`; `extreme`; `ordered` (and `percentiles`); [`custom`] (and `custom_call`):
//! aggregates of the user's own; `calls`, which puts them together; `freeing`; `recalled`, all rows
//! told again; [`Combiner`], rows of a group made fewer before they move.

mod bits;
mod boolean;
mod calls;
mod combine;
mod complete;
mod count;
pub mod custom;
mod custom_call;
mod distinct;
mod extreme;
mod fixed;
mod float;
mod float_sum;
pub(crate) mod freeing;
pub mod group_table;
mod lanes;
mod limbs;
mod narrow;
mod number_sum;
mod ordered;
mod output;
mod percentiles;
pub(crate) mod portions;
mod recalled;
pub(crate) mod segments;
mod spec;
mod state;
mod sum;
mod turn;
mod variance;

pub use combine::Combiner;
pub use float_sum::FloatSum;
pub use percentiles::ranked_type;
pub use spec::{AggregateSpec, Unsupported};

use std::cell::RefCell;
use std::collections::VecDeque;

use anabranch_arrangement::{Floor, Keys};
use anabranch_batch::order::Nulls;
use anabranch_batch::{Batch, Diff, Diffs, ShardNumber, Time, Times, Until, gather, hash};
use arrow::array::{ArrayRef, new_empty_array};
use arrow::datatypes::DataType;

use crate::aggregate::group_table::{GroupTable, Touched};
use crate::aggregate::segments::Segments;
use anabranch_flow::paced::TURN_ROWS;
use anabranch_flow::pending::Pending;
use anabranch_flow::tactic::{Output, Passed, Timed};
use calls::CallState;
use complete::Complete;
use freeing::Leisure;
use output::{GroupOutcome, assemble, assemble_pieces};
use turn::AggregateTurn;

/// The tactic. See the module's page.
pub struct Aggregate {
    /// Input columns that are used: keys first.
    columns: Vec<usize>,
    /// Types of `columns`.
    types: Vec<DataType>,
    n_keys: usize,
    rows: Rows,
    pending: Pending,
    /// Complete rows that are still to be merged.
    complete: VecDeque<Complete>,
    groups: GroupTable,
    /// Sum of diffs of each slot.
    multiplicities: Vec<Diff>,
    /// Start of each slot's present piece, when events are put out.
    pieces: Option<Vec<Time>>,
    calls: Vec<CallState>,
    /// How many rows of a time, in all and for each group, are taken in before it is complete.
    folded: Option<(usize, usize)>,
    leisure: Leisure,
}

/// Which groups have a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Rows {
    /// Those with positive multiplicity.
    Grouped,
    /// The single group of a global aggregate, from this time on; `is_out` once the row was put
    /// out.
    Global { from: Time, is_out: bool },
    /// The single group, while it has positive multiplicity.
    Single,
    /// The single group belongs to another worker.
    Elsewhere,
}

impl Aggregate {
    /// An aggregate over nothing. Without keys, `global` is the time from which on there is a row,
    /// for the worker that owns the single group (to which all rows must go), and `None` for the
    /// others. With keys it is ignored.
    ///
    /// # Panics
    /// If [`AggregateSpec::check`] refuses `spec`.
    pub fn new(spec: AggregateSpec, global: Option<Time>) -> Aggregate {
        let calls = calls::states(&spec).expect("calls are checked before a query is built");
        let columns = calls::columns(&spec);
        let types: Vec<DataType> = columns.iter().map(|&column| spec.input_types[column].clone()).collect();
        let n_keys = spec.keys.len();
        let rows = match global {
            _ if n_keys > 0 => Rows::Grouped,
            Some(from) => Rows::Global { from, is_out: false },
            None => Rows::Elsewhere,
        };
        Aggregate {
            folded: calls.iter().all(CallState::is_sum).then(|| complete::folded(spec.effort)),
            leisure: Leisure::new(spec.effort),
            calls,
            groups: GroupTable::new(&types[..n_keys]),
            pending: Pending::default(),
            complete: VecDeque::new(),
            multiplicities: Vec::new(),
            pieces: None,
            columns,
            types,
            n_keys,
            rows,
        }
    }

    /// A snapshot aggregate over nothing: puts out an event for each piece of time between changes
    /// of a group.
    ///
    /// # Panics
    /// If [`AggregateSpec::check`] refuses `spec`.
    pub fn snapshots(spec: AggregateSpec) -> Aggregate {
        let mut aggregate = Aggregate::new(spec, None);
        aggregate.folded = None;
        if aggregate.n_keys == 0 {
            aggregate.rows = Rows::Single;
        }
        aggregate.pieces = Some(Vec::new());
        aggregate
    }

    /// Of no keys: the one group is that of the rows that come to this worker, and there while some
    /// are. What takes a row back has to come to the worker that has the row.
    pub fn of_part(self) -> Aggregate {
        let rows = if self.n_keys == 0 { Rows::Single } else { self.rows };
        Aggregate { rows, ..self }
    }

    /// Says that keys are, as a rule, those of this worker.
    pub fn on_shard(mut self, shard: ShardNumber) -> Aggregate {
        self.groups = self.groups.on_shard(shard);
        self
    }

    /// Groups in memory.
    pub fn n_groups(&self) -> usize {
        self.groups.len()
    }

    /// Whether nothing is asked but sums, of which the changes are put out.
    fn has_sums_only(&self) -> bool {
        self.pieces.is_none() && self.calls.iter().all(CallState::is_sum)
    }

    /// Whether rows may be found without hashes.
    fn has_few_groups(&self) -> bool {
        self.rows == Rows::Grouped && self.has_sums_only() && self.groups.has_few()
    }

    fn no_rows(&self) -> Batch {
        let columns: Vec<ArrayRef> = self.types.iter().map(new_empty_array).collect();
        Batch::with_len(columns.into(), 0, Times::Constant(0), Diffs::Constant(1))
    }

    /// The time of the row over nothing, if it is due.
    fn first_row_due(&self, upto: Time) -> Option<Time> {
        match self.rows {
            Rows::Global { from, is_out: false } if from < upto => Some(from),
            _ => None,
        }
    }

    fn segments(&mut self, batch: &Batch, found: Option<Touched>, due: Option<Time>) -> Segments {
        let keys = &batch.columns()[..self.n_keys];
        if self.rows == Rows::Grouped {
            let touched = found.unwrap_or_else(|| self.groups.touch(keys, hashes_of(batch)));
            return match self.has_sums_only() {
                true => Segments::in_time_order(touched, batch.times(), batch.present()),
                false => Segments::new(touched, batch.times()),
            };
        }
        let touched = match batch.len() {
            0 => Touched::default(),
            len => Touched { of_row: vec![0; len], slot: vec![0], first_row: vec![0] },
        };
        let mut segments = Segments::in_time_order(touched, batch.times(), batch.present());
        if let Some(time) = due {
            segments.insert_time(time);
        }
        segments
    }

    /// Adds `deltas` to the groups' multiplicities; returns those before each segment.
    fn add_multiplicities(&mut self, segments: &Segments, deltas: &[Diff]) -> Vec<Diff> {
        let n_slots = if self.rows == Rows::Grouped { self.groups.n_slots() } else { 1 };
        if self.multiplicities.len() < n_slots {
            self.multiplicities.resize(n_slots, 0);
        }
        let mut before = Vec::with_capacity(deltas.len());
        for (&slot, delta) in segments.slot.iter().zip(deltas) {
            let multiplicity = &mut self.multiplicities[slot as usize];
            before.push(*multiplicity);
            *multiplicity += delta;
        }
        before
    }

    /// Whether the group has a row, before and after each segment.
    fn alive(&self, segments: &Segments, before: &[Diff], deltas: &[Diff]) -> Vec<[bool; 2]> {
        match self.rows {
            Rows::Grouped | Rows::Single => {
                before.iter().zip(deltas).map(|(&before, delta)| [before > 0, before + delta > 0]).collect()
            }
            Rows::Global { from, is_out } => {
                let times = (0..segments.len()).map(|segment| segments.times.get(segment));
                times.map(|time| [is_out || time > from, time >= from]).collect()
            }
            Rows::Elsewhere => vec![[false, false]; segments.len()],
        }
    }

    /// The keys of the touched groups, and the number of each group's key.
    fn touched_keys(&self, batch: &Batch, hashes: &[u64], segments: &Segments) -> (Keys, Vec<u32>) {
        if self.n_keys == 0 {
            let groups = segments.by_slot().count();
            return Keys::from_columns(&[], &hash::hash_columns(&[], groups), Nulls::Equal);
        }
        let first_rows: Vec<u32> = segments.by_slot().map(|range| segments.first_row[range.start]).collect();
        let columns = gather::take(&batch.columns()[..self.n_keys], &first_rows);
        let hashes: Vec<u64> = first_rows.iter().map(|&row| hashes[row as usize]).collect();
        Keys::from_columns(&columns, &hashes, Nulls::Equal)
    }

    /// Merges complete rows, and puts out what changes.
    fn merge(&mut self, batch: Batch, due: Option<Time>, upto: Time, out: &mut Output) {
        let found = match self.has_few_groups() {
            true => self.groups.touch_few(&batch.columns()[..self.n_keys], batch.len()),
            false => None,
        };
        let batch = match &found {
            Some(_) => batch,
            None => batch.with_key(&(0..self.n_keys).collect::<Vec<usize>>()),
        };
        let batch = &batch;
        self.leisure.note(batch.len());
        let segments = self.segments(batch, found, due);
        let multiplicities = sum_diffs(&segments, batch.diffs());
        let multiplicities_before = self.add_multiplicities(&segments, &multiplicities);
        let alive = self.alive(&segments, &multiplicities_before, &multiplicities);
        let is_ordered = self.calls.iter().any(CallState::is_ordered);
        let keys = is_ordered.then(|| self.touched_keys(batch, hashes_of(batch), &segments));
        let n_slots = self.multiplicities.len();
        let turn = AggregateTurn {
            batch,
            segments: &segments,
            multiplicities: &multiplicities,
            multiplicities_before: &multiplicities_before,
            keys: keys.as_ref(),
            hashes: batch.key().map_or(&[], |key| &key.hashes),
            n_slots,
            upto,
            deltas: RefCell::default(),
        };

        let mut outcome = GroupOutcome::new(segments.len());
        let results = self.calls.iter_mut().map(|call| call.step(&turn, &mut outcome)).collect();
        let keys = &batch.columns()[..self.n_keys];
        match &mut self.pieces {
            Some(pieces) => {
                pieces.resize(n_slots, 0);
                assemble_pieces(keys, results, &segments, &alive, pieces, &outcome, out);
            }
            None => assemble(keys, results, &segments, &alive, &outcome, out),
        }
        self.release(&segments, batch);
    }

    /// Gives back the groups of which nothing is left.
    fn release(&mut self, segments: &Segments, batch: &Batch) {
        if self.rows != Rows::Grouped {
            return;
        }
        let is_empty = |slot: u32| self.multiplicities[slot as usize] == 0;
        let touched = segments.slot.iter().zip(&segments.first_row).map(|(&slot, &row)| (slot, row));
        let empty = touched.chain(segments.vacant.iter().copied()).filter(|(slot, _)| is_empty(*slot));
        let mut empty: Vec<(u32, u32)> = empty.collect();
        if empty.is_empty() {
            return;
        }
        empty.sort_unstable();
        empty.dedup_by_key(|(slot, _)| *slot);
        let (mut zero, rows): (Vec<u32>, Vec<u32>) = empty.into_iter().unzip();
        let hashes = match batch.key() {
            Some(key) => rows.iter().map(|&row| key.hashes[row as usize]).collect(),
            None => hash::hash_columns(&gather::take(&batch.columns()[..self.n_keys], &rows), rows.len()),
        };
        let hash_of: Vec<(u32, u64)> = zero.iter().copied().zip(hashes).collect();
        self.calls.iter().for_each(|call| call.retain_zero(&mut zero));
        let mut zero = zero.into_iter().peekable();
        for (slot, hash) in hash_of {
            if zero.next_if_eq(&slot).is_some() {
                self.groups.release(slot, hash);
            }
        }
        self.shrink();
    }

    /// Lets go of groups that have passed.
    fn free_groups(&mut self, passed: &[Passed]) {
        let passed = freeing::by_key(passed, &self.columns[..self.n_keys]);
        let Some(&(column, below)) = passed.first().filter(|_| self.rows == Rows::Grouped) else { return };
        self.calls.iter_mut().for_each(|call| call.set_floor(Floor { column, below }));
        if !self.leisure.is_due(self.groups.len()) {
            return;
        }
        self.calls.iter_mut().for_each(|call| call.free_distinct(&passed));
        let leaving = freeing::leaving(&self.groups, &passed);
        let slots: Vec<u32> = leaving.iter().map(|(slot, _)| *slot).collect();
        self.calls.iter_mut().for_each(|call| call.clear(&slots));
        for (slot, hash) in leaving {
            if let Some(multiplicity) = self.multiplicities.get_mut(slot as usize) {
                *multiplicity = Diff::default();
            }
            self.groups.release(slot, hash);
        }
        self.shrink();
    }

    /// Gives memory back when most slots are free.
    fn shrink(&mut self) {
        if let Some(old_of_new) = self.groups.shrink() {
            self.multiplicities = old_of_new.iter().map(|&old| self.multiplicities[old as usize]).collect();
            if let Some(pieces) = &mut self.pieces {
                *pieces = old_of_new.iter().map(|&old| pieces[old as usize]).collect();
            }
            self.calls.iter_mut().for_each(|call| call.renumber(&old_of_new));
        }
    }
}

impl Timed for Aggregate {
    fn push(&mut self, input: usize, batch: Batch) {
        assert_eq!(input, 0, "an aggregate has one input");
        assert!(
            self.rows != Rows::Elsewhere || batch.is_empty(),
            "rows of a global aggregate go to the owner of its group"
        );
        let batch = batch.project(&self.columns);
        match self.takes_absent() && matches!(batch.until(), Until::Forever) {
            true => self.pending.keep(batch),
            false => self.pending.push(batch),
        }
    }

    fn takes_absent(&self) -> bool {
        self.pieces.is_none() && self.calls.iter().all(CallState::takes_absent)
    }

    fn advance(&mut self, upto: Time, out: &mut Output) {
        if self.complete.is_empty() {
            self.complete_before(upto);
        }
        let mut n_rows = 0;
        while n_rows < TURN_ROWS
            && let Some(complete) = self.complete.pop_front()
        {
            n_rows += complete.parts.iter().map(Batch::len).sum::<usize>();
            self.step(complete, out);
        }
    }

    fn free(&mut self, passed: &[Passed]) {
        self.free_groups(passed);
    }

    fn idle(&mut self) {
        self.calls.iter_mut().for_each(CallState::idle);
    }

    fn fold(&mut self, time: Time, out: &mut Output) {
        self.fold_at(time, out);
    }

    fn has_more(&self) -> bool {
        !self.complete.is_empty()
    }

    fn recalls(&self) -> bool {
        self.rows != Rows::Single && self.has_sums_only()
    }

    fn n_recalled(&self) -> usize {
        if self.rows == Rows::Grouped { self.groups.len() } else { 1 }
    }

    fn recall(&mut self) -> Vec<Batch> {
        self.recall_all()
    }

    fn pending_from(&self) -> Option<Time> {
        let first_row = match self.rows {
            Rows::Global { from, is_out: false } => Some(from),
            _ => None,
        };
        let complete = self.complete.iter().flat_map(|complete| &complete.parts).map(|part| part.times().min());
        self.pending.pending_from().into_iter().chain(first_row).chain(complete).min()
    }

    fn state_rows(&self) -> Option<usize> {
        Some(self.groups.len())
    }

    fn size_bytes(&self) -> usize {
        let calls: usize = self.calls.iter().map(CallState::size_bytes).sum();
        let multiplicities = self.multiplicities.capacity() * size_of::<Diff>();
        let complete: usize = self.complete.iter().flat_map(|complete| &complete.parts).map(Batch::size_bytes).sum();
        self.pending.size_bytes() + complete + self.groups.size_bytes() + multiplicities + calls
    }
}

impl Aggregate {
    /// Makes room for so many more groups.
    fn expect(&mut self, groups: usize) {
        if groups > 0 {
            self.groups.reserve(groups);
            self.multiplicities.reserve(groups);
            self.calls.iter_mut().for_each(|call| call.reserve(groups));
        }
    }

    /// Takes a portion of the updates in, and puts out what they change.
    fn step(&mut self, complete: Complete, out: &mut Output) {
        let Complete { parts, upto, whole, behind } = complete;
        let n_groups = self.groups.len();
        let Some(portion) = Batch::concat(&parts) else { return };
        drop(parts);
        let due = self.first_row_due(upto);
        if let Some(whole) = whole {
            self.calls.iter_mut().for_each(|call| call.take_rows(&whole, upto));
        }
        self.merge(portion, due, upto, out);
        self.expect(behind * self.groups.len().saturating_sub(n_groups));
        if let (Some(from), Rows::Global { .. }) = (due, self.rows) {
            self.rows = Rows::Global { from, is_out: true };
        }
    }
}

/// The hashes of the keys of complete rows.
fn hashes_of(batch: &Batch) -> &[u64] {
    &batch.key().expect("rows are keyed, but where there are few groups").hashes
}

/// Sum of diffs of each segment.
fn sum_diffs(segments: &Segments, diffs: &Diffs) -> Vec<Diff> {
    let n_numbers = segments.n_numbers();
    let mut sums = match diffs {
        Diffs::Constant(diff) => lanes::sums(&segments.of_row, n_numbers, |_| *diff),
        Diffs::Column(diffs) => lanes::sums(&segments.of_row, n_numbers, |row| diffs[row]),
    };
    sums.truncate(segments.len());
    sums
}
