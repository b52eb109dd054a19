//! A tactic on complete times in a line, and how far it has come.
//!
//! Law: nothing is put out before [`Advancing::as_of`], and what was put out in several turns is
//! what would have been put out in one. Until all of it is out, the line does not pass the time on.

use anabranch_batch::{Batch, Time, Until};

use crate::pulled::Pulled;
use crate::tactic::{Output, Timed};
use crate::worker::WorkerContext;

/// A tactic, and how far it has come.
pub(crate) struct Advancing {
    pub tactic: Box<dyn Timed>,
    pub as_of: Time,
    /// All before this time is put out.
    pub done: Time,
    /// Up to where the tactic is putting out, while that takes several turns.
    pub under_way: Option<Time>,
    pub worker: WorkerContext,
}

/// How far a tactic has come.
struct Reached {
    /// It puts out nothing before this time any more.
    upto: Time,
    /// From when on it may put out what it keeps back.
    pending: Option<Time>,
}

impl Advancing {
    pub fn new(tactic: Box<dyn Timed>, as_of: Time, worker: WorkerContext) -> Advancing {
        Advancing { tactic, as_of, done: Time::MIN, under_way: None, worker }
    }

    pub fn push(&mut self, input: usize, batch: Batch) {
        let is_taken = self.tactic.takes_absent() && matches!(batch.until(), Until::Forever);
        self.tactic.push(input, if is_taken { batch } else { batch.flatten() });
    }

    /// Lets the tactic, which has been given the rows of a turn, put out all before its frontier.
    pub fn advance_line(&mut self, pulled: &mut Pulled) {
        let reached = self.advance(pulled.upto, &mut pulled.out);
        pulled.has_more |= reached.upto < pulled.upto;
        pulled.pending = reached.pending.into_iter().chain(pulled.pending).min();
        pulled.upto = reached.upto;
    }

    /// Lets the tactic put out everything before `upto`, if that is later than before, or as much
    /// of it as a turn allows.
    fn advance(&mut self, upto: Time, out: &mut Output) -> Reached {
        let aim = self.under_way.unwrap_or(upto);
        if aim > self.done.max(self.as_of) {
            if let Some(pending) = self.tactic.pending_from() {
                self.tactic.advance(aim, out);
                if pending >= aim && self.worker.has_spare_time() {
                    self.tactic.idle();
                }
            }
            self.under_way = self.tactic.has_more().then_some(aim);
            if self.under_way.is_some() {
                return Reached { upto: self.done, pending: Some(self.done) };
            }
            self.done = aim;
            self.tactic.completed(aim);
        }
        self.tactic.fold(aim.max(self.as_of), out);
        Reached { upto: aim, pending: self.tactic.pending_from().map(|_| aim) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use anabranch_batch::{Diffs, Times};
    use arrow::array::Int64Array;
    use std::sync::Arc;

    use crate::pending::Pending;

    /// Puts rows out as they came, once they are complete: one batch a turn.
    #[derive(Default)]
    struct Slow {
        pending: Pending,
        ready: Vec<Batch>,
    }

    impl Timed for Slow {
        fn push(&mut self, _input: usize, batch: Batch) {
            self.pending.push(batch);
        }

        fn advance(&mut self, upto: Time, out: &mut Output) {
            if self.ready.is_empty() {
                self.ready = self.pending.take_ready(upto);
            }
            self.ready.pop().into_iter().for_each(|batch| out.give_rows(batch));
        }

        fn has_more(&self) -> bool {
            !self.ready.is_empty()
        }

        fn pending_from(&self) -> Option<Time> {
            let ready = self.ready.iter().map(|batch| batch.times().min());
            self.pending.pending_from().into_iter().chain(ready).min()
        }

        fn size_bytes(&self) -> usize {
            self.pending.size_bytes()
        }
    }

    fn rows(values: std::ops::Range<i64>, time: Time) -> Batch {
        let values: Int64Array = values.collect::<Vec<_>>().into();
        Batch::new(vec![Arc::new(values)], Times::Constant(time), Diffs::Constant(1))
    }

    #[test]
    fn much_is_put_out_in_several_turns_and_nothing_is_lost_meanwhile() {
        let mut advancing = Advancing::new(Box::<Slow>::default(), 0, WorkerContext::default());
        (0..3).for_each(|part| advancing.push(0, rows(10 * part..10 * part + 10, 1)));
        let mut out = Output::default();
        let reached = advancing.advance(2, &mut out);
        assert_eq!((reached.upto, reached.pending), (Time::MIN, Some(Time::MIN)));
        // What comes meanwhile waits until the first is out, also if its time is complete.
        advancing.push(0, rows(30..35, 2));
        let mut turns = 1;
        while advancing.advance(3, &mut out).upto < 2 {
            turns += 1;
        }
        assert_eq!(turns, 2);
        assert!(out.rows.iter().all(|batch| batch.times().max() == 1));
        assert_eq!(out.rows.iter().map(Batch::len).sum::<usize>(), 30);
        let mut out = Output::default();
        let reached = advancing.advance(3, &mut out);
        assert_eq!((reached.upto, reached.pending), (3, None));
        assert_eq!(out.rows.iter().map(Batch::len).sum::<usize>(), 5);
    }
}
