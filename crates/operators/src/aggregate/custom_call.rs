//! A user's aggregate among the calls of a snapshot aggregate.
//!
//! Law: its results are those of [`UserAggregate`](super::custom::UserAggregate) over the rows of
//! the group in force that pass the filter, NULLs included. An invertible one is given the rows
//! that come and those that go. Any other one keeps its rows in order, and sees all of a group's
//! anew at each of its changes.

use std::ops::ControlFlow;

use anabranch_arrangement::{Floor, Keys, Layout, MergeEffort, ValueOrder};
use anabranch_batch::order::Direction;
use anabranch_batch::{Batch, Diffs, gather, types};
use arrow::array::ArrayRef;
use arrow::datatypes::DataType;

use super::custom::{CustomAggregate, States};
use super::ordered::Queries;
use super::output::GroupOutcome;
use super::turn::AggregateTurn;
use crate::ordered::trace::OrderedTrace;

/// State of the call.
pub(crate) struct CustomCall {
    function: CustomAggregate,
    /// Its arguments, among the used columns.
    arguments: Vec<usize>,
    n_keys: usize,
    states: Box<dyn States>,
    /// The rows in force, keys and arguments, if they cannot be taken out of a state.
    kept: Option<OrderedTrace>,
}

impl CustomCall {
    /// Over nothing. `types` are those of the used columns.
    pub(crate) fn new(
        function: &CustomAggregate,
        arguments: Vec<usize>,
        types: &[DataType],
        n_keys: usize,
        output_type: &DataType,
        effort: MergeEffort,
    ) -> CustomCall {
        let kept = (!function.is_invertible()).then(|| {
            let columns = (0..n_keys).chain(arguments.iter().copied());
            let types: Vec<DataType> = columns.map(|column| types[column].clone()).collect();
            let ascending = Direction { descending: false, nulls_first: false };
            let values = ValueOrder::Sorted((n_keys..types.len()).map(|column| (column, ascending)).collect());
            OrderedTrace::new(Layout { key: (0..n_keys).collect(), values, types }, effort)
        });
        CustomCall { function: function.clone(), arguments, n_keys, states: function.states(output_type), kept }
    }

    /// Whether it needs the keys of the touched groups.
    pub(crate) fn is_ordered(&self) -> bool {
        self.kept.is_some()
    }

    /// Takes a turn's rows, those of `seen` if some are left out; returns pairs of results.
    pub(crate) fn step(
        &mut self,
        turn: &AggregateTurn,
        seen: Option<Vec<u32>>,
        outcome: &mut GroupOutcome,
    ) -> ArrayRef {
        match self.kept.is_some() {
            true => self.step_kept(turn, seen),
            false => self.step_inverted(turn, seen),
        }
        let results = self.states.results(2 * turn.segments.len());
        results.errors.into_iter().for_each(|(entry, message)| outcome.fail(entry, message));
        outcome.mark_pairs(&results.values);
        results.values
    }

    fn step_inverted(&mut self, turn: &AggregateTurn, seen: Option<Vec<u32>>) {
        let columns: Vec<ArrayRef> =
            self.arguments.iter().map(|&column| types::widened(turn.batch.column(column))).collect();
        let emptied = turn.multiplicities_before.iter().zip(turn.multiplicities);
        let emptied: Vec<bool> = emptied.map(|(before, delta)| before + delta == 0).collect();
        self.states.resize(turn.n_slots);
        let segments = turn.segments;
        let none = self.function.rows(&[], 0, &columns);
        if let (Diffs::Constant(1), None) = (turn.batch.diffs(), &seen) {
            let added = self.function.rows(&segments.of_row, 0, &columns);
            return self.states.step(&added, &none, &segments.slot, &emptied);
        }
        let seen = seen.unwrap_or_else(|| (0..turn.batch.len() as u32).collect());
        let side = |sign: i64| {
            let times = |row: u32| (sign * turn.batch.diffs().get(row as usize)).max(0) as usize;
            let rows: Vec<u32> = seen.iter().flat_map(|&row| std::iter::repeat_n(row, times(row))).collect();
            let states: Vec<u32> = rows.iter().map(|&row| segments.of_row[row as usize]).collect();
            (states, gather::take(&columns, &rows))
        };
        let ((added, added_columns), (removed, removed_columns)) = (side(1), side(-1));
        let added = self.function.rows(&added, 0, &added_columns);
        let removed = self.function.rows(&removed, 0, &removed_columns);
        self.states.step(&added, &removed, &segments.slot, &emptied);
    }

    /// All rows in force before and after each segment, from the kept ones.
    fn step_kept(&mut self, turn: &AggregateTurn, seen: Option<Vec<u32>>) {
        let kept = self.kept.as_mut().expect("the caller has seen it");
        let columns: Vec<usize> = (0..self.n_keys).chain(self.arguments.iter().copied()).collect();
        let rows: Batch = turn.batch.project(&columns);
        kept.absorb(seen.map_or(rows.clone(), |seen| rows.take(&seen)), turn.upto);
        let (keys, key_of_group): &(Keys, Vec<u32>) = turn.keys.expect("keys are made when there is an ordered call");
        let queries = Queries::new(turn.segments, key_of_group);
        let mut walk = kept.walk();
        let mut places = Vec::new();
        let mut piece_of_row = Vec::new();
        for (key, range) in &queries.groups {
            walk.group(keys, *key, &queries.times[range.clone()], |place, counts| {
                for (query, &count) in range.clone().zip(counts).filter(|(_, count)| **count > 0) {
                    places.extend(std::iter::repeat_n(place, count as usize));
                    piece_of_row.extend(std::iter::repeat_n(query as u32, count as usize));
                }
                ControlFlow::Continue(())
            });
        }
        let columns = (self.n_keys..columns.len()).map(|column| {
            let chunks = walk.column(column);
            let chunks: Vec<&[ArrayRef]> = chunks.iter().map(std::slice::from_ref).collect();
            match places.is_empty() {
                true => types::widened(&turn.batch.column(self.arguments[column - self.n_keys]).slice(0, 0)),
                false => types::widened(&gather::interleave(&chunks, &places)[0]),
            }
        });
        let columns: Vec<ArrayRef> = columns.collect();
        // (The state of each query, once for each of the pairs that it answers.)
        let rows = self.function.rows(&piece_of_row, 0, &columns);
        self.states.pieces_of(&rows, queries.times.len(), &queries.of_pairs);
    }

    /// Spare time.
    pub(crate) fn idle(&mut self) {
        if let Some(kept) = &mut self.kept {
            kept.idle();
        }
    }

    /// Makes the state of some slots that of nothing.
    pub(crate) fn clear(&mut self, slots: &[u32]) {
        if self.kept.is_none() {
            self.states.reset(slots);
        }
    }

    /// Lets go of rows of groups with a key below a floor.
    pub(crate) fn set_floor(&mut self, floor: Floor) {
        if let Some(kept) = &mut self.kept {
            kept.set_floor(floor);
        }
    }

    /// Slot `i` is from now on what slot `old_of_new[i]` was.
    pub(crate) fn renumber(&mut self, old_of_new: &[u32]) {
        if self.kept.is_none() {
            self.states.renumber(old_of_new);
        }
    }

    pub(crate) fn size_bytes(&self) -> usize {
        self.states.size_bytes() + self.kept.as_ref().map_or(0, OrderedTrace::size_bytes)
    }
}
