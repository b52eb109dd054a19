//! Events of a collection's changes: a row that comes begins, a row that goes ends.
//!
//! ```text
//!     in    @1 +1 a    @2 +1 a    @4 -1 a    @4 +1 b    @4 -1 b
//!     out   [1, ..) a  [2, ..) a  ends [1, 4) a
//! ```
//!
//! Law: at each time the events in force of a row are as many as the collection has of the row.
//! What comes and goes at one time is neither; of several events of a row the one that began first
//! ends. Relies on a collection without negative contents.
//!
//! State: each row in force, and when its events began. It is freed when the row goes.

use std::collections::{BTreeMap, VecDeque};

use anabranch_batch::{Batch, Diff, END, Time};
use anabranch_flow::pending::Pending;
use anabranch_flow::tactic::{Output, Timed};
use arrow::datatypes::DataType;

use super::events::EventOutput;
use super::rows::RowSet;
use super::ticks::FIRST;

/// The tactic. See the module's page.
#[derive(Debug)]
pub struct OfChanges {
    waiting: Pending,
    rows: RowSet,
    /// By row: when its events in force began, the first one first.
    begun: Vec<VecDeque<Time>>,
}

impl OfChanges {
    /// Changes of rows of these types.
    pub fn new(types: &[DataType]) -> OfChanges {
        OfChanges { waiting: Pending::default(), rows: RowSet::new(types), begun: Vec::new() }
    }

    /// Puts out what the rows' changes of one time come to. Each row that is held for an event is
    /// held once for it.
    fn settle(&mut self, time: Time, changes: &BTreeMap<u32, Diff>, emit: &mut EventOutput, released: &mut Vec<u32>) {
        for (&id, &diff) in changes {
            if self.begun.len() <= id as usize {
                self.begun.resize(id as usize + 1, VecDeque::new());
            }
            let begun = &mut self.begun[id as usize];
            for _ in 0..diff.max(0) {
                emit.stored(id, time, END);
                begun.push_back(time);
                self.rows.hold_again(id);
            }
            for _ in 0..diff.min(0).unsigned_abs() {
                let start = begun.pop_front().expect("a collection has a row that goes");
                emit.stored(id, time, start);
                released.push(id);
            }
        }
    }
}

impl Timed for OfChanges {
    fn push(&mut self, _input: usize, batch: Batch) {
        self.waiting.push(batch);
    }

    fn advance(&mut self, upto: Time, out: &mut Output) {
        // (Contents from the beginning of time begin at the least time that an event can have, with
        // the changes of that time.)
        if upto <= FIRST {
            return;
        }
        let Some(ready) = self.waiting.take_before(upto) else { return };
        let ready = ready.in_time_order();
        // (A row is held while it is looked at, then once for each of its events.)
        let mut released = self.rows.hold(ready.columns(), ready.len());
        let ids = released.clone();
        let mut emit = EventOutput::default();
        let mut changes: BTreeMap<u32, Diff> = BTreeMap::new();
        for (row, &id) in ids.iter().enumerate() {
            let time = ready.times().get(row).max(FIRST);
            *changes.entry(id).or_default() += ready.diffs().get(row);
            if row + 1 == ids.len() || ready.times().get(row + 1).max(FIRST) != time {
                self.settle(time, &changes, &mut emit, &mut released);
                changes.clear();
            }
        }
        out.give_rows(emit.finish(ready.columns(), self.rows.store()));
        released.into_iter().for_each(|id| self.rows.release(id));
    }

    fn pending_from(&self) -> Option<Time> {
        self.waiting.pending_from()
    }

    fn size_bytes(&self) -> usize {
        let begun: usize = self.begun.iter().map(|times| times.capacity() * size_of::<Time>()).sum();
        self.waiting.size_bytes() + self.rows.size_bytes() + begun
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::temporal::testing::*;
    use anabranch_batch::{Diffs, Times, Until};

    #[test]
    fn rows_begin_when_they_come_and_end_when_they_go() {
        let input = [(1, 4, 1), (2, 3, 2), (6, END, 2)];
        check(|| OfChanges::new(&types()), &input, &input);
    }

    #[test]
    fn the_event_that_began_first_ends_first() {
        check(|| OfChanges::new(&types()), &[(1, 5, 1), (2, 3, 1)], &[(1, 3, 1), (2, 5, 1)]);
    }

    #[test]
    fn what_comes_and_goes_at_one_time_goes_on() {
        check(|| OfChanges::new(&types()), &[(1, 2, 1), (2, 3, 1), (3, 4, 2)], &[(1, 3, 1), (3, 4, 2)]);
    }

    #[test]
    fn the_beginning_of_time_is_the_first_time_of_an_event() {
        let mut tactic = OfChanges::new(&types());
        let change = |time, diff| {
            let batch = events(&[(1, END, 1)]).with_until(Until::Forever);
            batch.with_times(Times::Constant(time)).with_diffs(Diffs::Constant(diff))
        };
        let mut out = Output::default();
        tactic.push(0, change(Time::MIN, 1));
        tactic.advance(FIRST, &mut out);
        tactic.push(0, change(FIRST, -1));
        tactic.advance(0, &mut out);
        assert!(out.is_empty());
        assert_eq!(tactic.rows.len(), 0);
    }

    #[test]
    fn rows_that_go_are_not_kept() {
        let mut tactic = OfChanges::new(&types());
        tactic.push(0, events(&[(1, 2, 1), (1, 3, 2), (2, 9, 3)]));
        tactic.advance(5, &mut Output::default());
        assert_eq!(tactic.rows.len(), 1);
    }
}
