//! State that leaves: limits below which no change will come, and tactics that are told of them.
//!
//! Law: a [`Limit`] as of a time holds for all updates at that time and later. A tactic frees by a
//! limit once all updates before that time are put out: the updates of a commit are judged by the
//! limits before it.
//!
//! In debug builds each update is held against the limits that were passed before.

use anabranch_arrangement::{Floor, Reader, ticks};
use anabranch_batch::{Batch, Time};
use arrow::array::Array;

use crate::tactic::{Output, Passed, Timed};

/// A rising bound of a column of an input's changes.
pub struct Limit {
    /// Number of the input.
    pub input: usize,
    /// Position in the input's rows.
    pub column: usize,
    /// The bound of all updates at or after a time.
    pub at: Box<dyn Fn(Time) -> Option<i64>>,
}

impl Limit {
    /// Gives up the rows of a side of a join that are below the limit of updates at or after a
    /// time.
    pub fn raise(&self, reader: &mut Reader, upto: Time) {
        if let Some(below) = (self.at)(upto) {
            reader.set_floor(Floor { column: self.column, below });
        }
    }

    fn passed(&self, upto: Time) -> Option<Passed> {
        Some(Passed { input: self.input, column: self.column, below: (self.at)(upto)? })
    }
}

/// A tactic that is told what has passed.
pub struct Limited {
    tactic: Box<dyn Timed>,
    limits: Vec<Limit>,
    /// What the tactic was told last.
    passed: Vec<Passed>,
}

impl Limited {
    /// The tactic itself where there is no limit.
    pub fn tactic(tactic: Box<dyn Timed>, limits: Vec<Limit>) -> Box<dyn Timed> {
        match limits.is_empty() {
            true => tactic,
            false => Box::new(Limited { tactic, limits, passed: Vec::new() }),
        }
    }

    fn assert_timely(&self, input: usize, batch: &Batch) {
        for passed in self.passed.iter().filter(|passed| passed.input == input) {
            let values = ticks(batch.column(passed.column));
            let is_late =
                |row: usize| values.is_valid(row) && values.value(row) < passed.below && batch.diffs().get(row) != 0;
            let present = batch.present();
            let late = (0..batch.len()).find(|row| present.is_none_or(|present| present.value(*row)) && is_late(*row));
            assert!(late.is_none(), "row {late:?} of a batch is below what has passed: {passed:?}");
        }
    }
}

impl Timed for Limited {
    fn push(&mut self, input: usize, batch: Batch) {
        if cfg!(debug_assertions) && !self.tactic.takes_passed() {
            self.assert_timely(input, &batch);
        }
        self.tactic.push(input, batch);
    }

    fn takes_absent(&self) -> bool {
        self.tactic.takes_absent()
    }

    fn advance(&mut self, upto: Time, out: &mut Output) {
        self.tactic.advance(upto, out);
    }

    fn completed(&mut self, upto: Time) {
        let passed: Vec<Passed> = self.limits.iter().filter_map(|limit| limit.passed(upto)).collect();
        if passed != self.passed {
            self.tactic.free(&passed);
            self.passed = passed;
        }
    }

    fn idle(&mut self) {
        self.tactic.idle();
    }

    fn fold(&mut self, time: Time, out: &mut Output) {
        self.tactic.fold(time, out);
    }

    fn has_more(&self) -> bool {
        self.tactic.has_more()
    }

    fn pending_from(&self) -> Option<Time> {
        self.tactic.pending_from()
    }

    // (What was freed cannot be recalled, so nothing is.)

    fn state_rows(&self) -> Option<usize> {
        self.tactic.state_rows()
    }

    fn size_bytes(&self) -> usize {
        self.tactic.size_bytes()
    }
}
