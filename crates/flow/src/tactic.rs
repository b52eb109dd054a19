//! What an operator does, apart from when: tactics are plain objects, batches in, batches out.
//!
//! Law: what a tactic has put out after `advance(t)`, accumulated at any time below `t`, depends
//! only on the accumulated input up to that time, not on how it was cut into batches or in which
//! order it was pushed.
//!
//! A tactic knows no runtime and is tested alone; the run time gives it frontiers and capabilities.

use anabranch_batch::{Batch, Time};

use crate::account::midway;

/// Receives what a tactic puts out.
#[derive(Debug, Default)]
pub struct Output {
    /// Result rows, non-empty batches.
    pub rows: Vec<Batch>,
    /// Row errors: batches of one text column, the message.
    pub errors: Vec<Batch>,
}

impl Output {
    /// Whether nothing was put out.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty() && self.errors.is_empty()
    }

    /// Adds result rows, unless there are none. The turn ends here if its dataflow has ended.
    pub fn give_rows(&mut self, batch: Batch) {
        if !batch.is_empty() {
            midway::puts_out(batch.len());
            self.rows.push(batch);
        }
    }

    /// Adds row errors, unless there are none.
    pub fn give_errors(&mut self, batch: Batch) {
        if !batch.is_empty() {
            self.errors.push(batch);
        }
    }
}

/// Rows of which none will come any more: those of an input with a value of a column below a limit.
/// NULL is not below.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Passed {
    /// Number of the input.
    pub input: usize,
    /// Position in the input's rows, of a type that [has ticks](anabranch_arrangement::has_ticks).
    pub column: usize,
    /// In units of the column.
    pub below: i64,
}

/// A tactic that works on complete times: aggregates, distinct, top-k, set operations.
///
/// Calls come as any number of [`push`](Timed::push), then [`advance`](Timed::advance) until it
/// [has no more](Timed::has_more), and again.
pub trait Timed {
    /// Takes updates of input `input` (0, or 1 for the second of two); their times are at or after
    /// the last `advance`. Batches are flat (all rows present, no lifetimes), but for rows that are
    /// absent where it [takes](Timed::takes_absent) those.
    fn push(&mut self, input: usize, batch: Batch);

    /// Whether some rows of a batch may be absent: that is for those that look at every row anyway,
    /// and need not copy most of them to be rid of a few.
    fn takes_absent(&self) -> bool {
        false
    }

    /// No more updates before `upto` will come: puts out the changes of the result at all times
    /// before it. Updates at or after `upto` stay pending.
    fn advance(&mut self, upto: Time, out: &mut Output);

    /// All before `upto` is put out, by one or several calls of [`advance`](Timed::advance).
    fn completed(&mut self, _upto: Time) {}

    /// No change of rows that one of `passed` describes will come: the tactic may let go of what
    /// only such changes would look at. What it has put out stays.
    fn free(&mut self, _passed: &[Passed]) {}

    /// Whether rows below what has passed may still come: they are nothing to it.
    fn takes_passed(&self) -> bool {
        false
    }

    /// Merges a little of what is kept: called when nothing was complete, and the worker has time
    /// to spare. No answer depends on it.
    fn idle(&mut self) {}

    /// Updates at `time` may still come, but none before it, and all before it is put out: the
    /// tactic may take in what is there of that time, and put out, at that time, what it changes.
    /// What comes later corrects it. So a large history need not be kept until it is complete.
    fn fold(&mut self, _time: Time, _out: &mut Output) {}

    /// Whether the last `advance` put out only a part, so that others have their turn: it is to be
    /// called again before it has done what it says. The time is not looked at then.
    fn has_more(&self) -> bool {
        false
    }

    /// The least time among pending updates.
    fn pending_from(&self) -> Option<Time>;

    /// Whether it can [`recall`](Timed::recall).
    fn recalls(&self) -> bool {
        false
    }

    /// How many rows that would be, at most.
    fn n_recalled(&self) -> usize {
        0
    }

    /// All rows that were put out so far, summed up, at any times: the result as it stands.
    ///
    /// # Panics
    /// If it does not [recall](Timed::recalls).
    fn recall(&mut self) -> Vec<Batch> {
        unreachable!("it does not recall")
    }

    /// Rows of state, or groups: that is for those that count them. Updates that are not merged yet
    /// may count more than once.
    fn state_rows(&self) -> Option<usize> {
        None
    }

    /// Bytes of state, roughly.
    fn size_bytes(&self) -> usize;
}
