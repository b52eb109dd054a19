//! Set operations: DISTINCT, EXCEPT, INTERSECT and their ALL forms, as functions of multiplicities.
//!
//! ```text
//! except all:   left   (a) +3 at 1            right   (a) +1 at 2
//!               out    (a) +3 at 1, (a) -1 at 2
//! ```
//!
//! Law: at every time a row that is `l` times in the left input and `r` times in the right one is
//! [`Operation::apply`]`(l, r)` times in the output; negative multiplicities count as none. NULL
//! equals NULL.
//!
//! State: two counts a row, and the row itself unless its hash is exact; given back when both are
//! zero, or when no change of the row will come. Cost: one table probe an update.

use std::collections::VecDeque;

use anabranch_batch::{Batch, Diff, Diffs, ShardNumber, Time, Times};
use arrow::array::BooleanArray;
use arrow::datatypes::DataType;

use crate::aggregate::freeing::{Leisure, leaving};
use crate::aggregate::group_table::GroupTable;
use crate::aggregate::portions::portions;
use crate::aggregate::segments::Segments;
use anabranch_flow::paced::TURN_ROWS;
use anabranch_flow::pending::Pending;
use anabranch_flow::tactic::{Output, Passed, Timed};

/// What becomes of a row's multiplicities.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Operation {
    /// Each row of the left input once; there is no right one.
    Distinct,
    /// Left less right.
    ExceptAll,
    /// The lesser of both.
    IntersectAll,
    /// Each row of left that right lacks, once.
    Except,
    /// Each row that both have, once.
    Intersect,
}

impl Operation {
    /// The multiplicity of a row that is `left` and `right` times in the inputs.
    #[inline]
    pub fn apply(self, left: Diff, right: Diff) -> Diff {
        let (left, right) = (left.max(0), right.max(0));
        match self {
            Operation::Distinct => left.min(1),
            Operation::ExceptAll => (left - right).max(0),
            Operation::IntersectAll => left.min(right),
            Operation::Except => Diff::from(left > 0 && right == 0),
            Operation::Intersect => Diff::from(left > 0 && right > 0),
        }
    }
}

/// The tactic. See the module's page.
#[derive(Debug)]
pub struct SetOperation {
    operation: Operation,
    n_columns: usize,
    /// What waits of the left and the right input.
    pending: [Pending; 2],
    /// Complete rows that are still to be counted, keyed, and how many of each portion are of the
    /// left input.
    complete: VecDeque<(Vec<Batch>, usize)>,
    rows: GroupTable,
    /// Left and right multiplicity of each slot.
    counts: Vec<[Diff; 2]>,
    leisure: Leisure,
}

impl SetOperation {
    /// An operation over nothing, for rows of these types (both inputs').
    pub fn new(operation: Operation, types: Vec<DataType>) -> SetOperation {
        let (pending, rows) = (Default::default(), GroupTable::new(&types));
        let complete = VecDeque::new();
        SetOperation {
            operation,
            n_columns: types.len(),
            pending,
            complete,
            rows,
            counts: Vec::new(),
            leisure: Leisure::default(),
        }
    }

    /// Says that rows are, as a rule, those of this worker.
    pub fn on_shard(mut self, shard: ShardNumber) -> SetOperation {
        self.rows = self.rows.on_shard(shard);
        self
    }

    /// Distinct rows in memory.
    pub fn n_rows(&self) -> usize {
        self.rows.len()
    }

    /// Takes what has become complete: in portions, or where both inputs have some, whose rows are
    /// told apart by their place, in one piece.
    fn complete_before(&mut self, upto: Time) {
        let [left, right] = [0, 1].map(|input| self.pending[input].take_ready(upto));
        let key: Vec<usize> = (0..self.n_columns).collect();
        let rows_of = |parts: &[Batch]| parts.iter().map(Batch::len).sum::<usize>();
        if rows_of(&right) == 0 {
            let portions = portions(left, &key, self.rows.len()).into_iter();
            let portions = portions.map(|parts| (rows_of(&parts), parts)).filter(|(n_rows, _)| *n_rows > 0);
            return self.complete.extend(portions.map(|(n_left, parts)| (parts, n_left)));
        }
        let n_left = rows_of(&left);
        let both = left.into_iter().chain(right).map(|batch| batch.with_key(&key)).collect();
        self.complete.push_back((both, n_left));
    }

    fn step(&mut self, batch: &Batch, n_left: usize, out: &mut Output) {
        let hashes = &batch.key().expect("complete rows are keyed").hashes;
        self.leisure.note(batch.len());
        let segments = Segments::new(self.rows.touch(batch.columns(), hashes), batch.times());
        let mut deltas = vec![[0, 0]; segments.len()];
        for (row, &segment) in segments.of_row.iter().enumerate() {
            deltas[segment as usize][usize::from(row >= n_left)] += batch.diffs().get(row);
        }
        self.counts.resize(self.counts.len().max(self.rows.n_slots()), [0, 0]);

        let (mut rows, mut times, mut diffs) = (Vec::new(), Vec::new(), Vec::new());
        for (segment, (&slot, [left, right])) in segments.slot.iter().zip(deltas).enumerate() {
            let counts = &mut self.counts[slot as usize];
            let before = self.operation.apply(counts[0], counts[1]);
            *counts = [counts[0] + left, counts[1] + right];
            let change = self.operation.apply(counts[0], counts[1]) - before;
            if change != 0 {
                rows.push(segments.first_row[segment]);
                times.push(segments.times.get(segment));
                diffs.push(change);
            }
        }
        if !rows.is_empty() {
            let (times, diffs) = (Times::Column(times.into()).simplify(), Diffs::Column(diffs.into()).simplify());
            // The hashes move along: the output is keyed by the whole row, as the next operator may
            // like it.
            out.give_rows(batch.take(&rows).with_times(times).with_diffs(diffs));
        }
        self.release(&segments, hashes);
    }

    /// Gives back the rows that neither input has.
    fn release(&mut self, segments: &Segments, hashes: &[u64]) {
        for range in segments.by_slot() {
            let slot = segments.slot[range.start];
            if self.counts[slot as usize] == [0, 0] {
                self.rows.release(slot, hashes[segments.first_row[range.start] as usize]);
            }
        }
        self.shrink();
    }

    fn shrink(&mut self) {
        if let Some(old_of_new) = self.rows.shrink() {
            self.counts = old_of_new.iter().map(|&old| self.counts[old as usize]).collect();
        }
    }
}

impl Timed for SetOperation {
    fn push(&mut self, input: usize, batch: Batch) {
        assert!(input < 2 && (input == 0 || self.operation != Operation::Distinct), "the operation has such an input");
        self.pending[input].push(batch);
    }

    fn advance(&mut self, upto: Time, out: &mut Output) {
        if self.complete.is_empty() {
            self.complete_before(upto);
        }
        let mut n_rows = 0;
        while n_rows < TURN_ROWS
            && let Some((parts, n_left)) = self.complete.pop_front()
        {
            let Some(portion) = Batch::concat(&parts) else { continue };
            n_rows += portion.len();
            let n_known = self.rows.len();
            self.step(&portion, n_left, out);
            // (The portions behind have about as many rows, and others.)
            let expected = self.complete.len() * self.rows.len().saturating_sub(n_known);
            self.rows.reserve(expected);
            self.counts.reserve(expected);
        }
    }

    fn free(&mut self, passed: &[Passed]) {
        let passed: Vec<(usize, i64)> = passed.iter().map(|passed| (passed.column, passed.below)).collect();
        if !self.leisure.is_due(self.rows.len()) {
            return;
        }
        for (slot, hash) in leaving(&self.rows, &passed) {
            if let Some(counts) = self.counts.get_mut(slot as usize) {
                *counts = [0, 0];
            }
            self.rows.release(slot, hash);
        }
        self.shrink();
    }

    fn has_more(&self) -> bool {
        !self.complete.is_empty()
    }

    fn recalls(&self) -> bool {
        true
    }

    fn n_recalled(&self) -> usize {
        self.rows.len()
    }

    fn recall(&mut self) -> Vec<Batch> {
        let (slots, rows) = self.rows.groups();
        let multiplicity = |&slot: &u32| {
            let [left, right] = self.counts[slot as usize];
            self.operation.apply(left, right)
        };
        let diffs: Vec<Diff> = slots.iter().map(multiplicity).collect();
        let are_there: BooleanArray = diffs.iter().map(|&diff| Some(diff != 0)).collect();
        let rows = Batch::with_len(rows, slots.len(), Times::Constant(0), Diffs::Column(diffs.into()));
        vec![rows.filter(&are_there)]
    }

    fn pending_from(&self) -> Option<Time> {
        let complete = self.complete.iter().flat_map(|(parts, _)| parts).map(|part| part.times().min());
        self.pending.iter().filter_map(Pending::pending_from).chain(complete).min()
    }

    fn state_rows(&self) -> Option<usize> {
        Some(self.rows.len())
    }

    fn size_bytes(&self) -> usize {
        let pending: usize = self.pending.iter().map(Pending::size_bytes).sum();
        let complete: usize = self.complete.iter().flat_map(|(parts, _)| parts).map(Batch::size_bytes).sum();
        pending + complete + self.rows.size_bytes() + self.counts.capacity() * size_of::<[Diff; 2]>()
    }
}
