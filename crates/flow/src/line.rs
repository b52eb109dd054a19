//! Feeds, and the links behind them, at work.
//!
//! Law: as that of [`crate::chain`]. A line is a feed itself, so lines may meet in a tactic, or
//! follow one another in a union, without an edge between them.

use anabranch_batch::{Batch, END, Time, Until};
use timely::communication::Pull;
use timely::dataflow::channels::Message;
use timely::dataflow::operators::generic::InputHandleCore;
use timely::progress::frontier::MutableAntichain;

use crate::counting::Counting;
use crate::drive::{HeldCapability, frontier_of};
use crate::parcel::Parcel;
use crate::tactic::{Output, Timed};
use crate::worker::WorkerContext;

/// The frontiers of an operator's inputs.
pub type Frontiers = [MutableAntichain<Time>];

/// Brings rows into an operator.
pub trait Feed {
    /// What has come since the last call. The hold may be used for everything that was brought and
    /// is not put out, the pending included.
    fn pull(&mut self, frontiers: &Frontiers, hold: &mut HeldCapability, pulled: &mut Pulled);

    /// Bytes that the feed's own operator holds, apart from arrangements.
    fn size_bytes(&self) -> usize {
        0
    }

    /// Bytes that all operators of the feed hold, apart from arrangements.
    fn held_bytes(&self) -> usize {
        self.size_bytes()
    }
}

/// What feeds have brought in a turn.
pub struct Pulled {
    /// Rows and row errors.
    pub out: Output,
    /// No row before this time will come.
    pub upto: Time,
    /// What a feed keeps back may be put out from this time on.
    pub pending: Option<Time>,
    /// Whether there is more to do, so that the operator is to be scheduled again.
    pub has_more: bool,
    /// Rows that came in.
    pub(crate) n_rows: usize,
}

impl Default for Pulled {
    /// Nothing has come, and nothing will.
    fn default() -> Pulled {
        Pulled { out: Output::default(), upto: END, pending: None, has_more: false, n_rows: 0 }
    }
}

impl Pulled {
    /// Lets a tactic, which has been given the rows, put out all before `upto`, or as much of it as
    /// a turn allows.
    fn advance(&mut self, tactic: &mut Advancing) {
        let reached = tactic.advance(self.upto, &mut self.out);
        self.has_more |= reached.upto < self.upto;
        self.pending = reached.pending.into_iter().chain(self.pending).min();
        self.upto = reached.upto;
    }

    /// Adds what another feed has brought, but for its rows.
    pub fn take_but_rows(&mut self, other: Pulled) {
        other.out.errors.into_iter().for_each(|batch| self.out.give_errors(batch));
        self.has_more |= other.has_more;
        self.n_rows += other.n_rows;
        self.reach(other.upto, other.pending);
    }

    /// A feed brings nothing before `upto` any more, and keeps back what may be put out from
    /// `pending` on.
    pub fn reach(&mut self, upto: Time, pending: Option<Time>) {
        self.upto = self.upto.min(upto);
        self.pending = self.pending.into_iter().chain(pending).min();
    }
}

/// What becomes of a batch.
pub(crate) type Apply = Box<dyn FnMut(Batch, &mut Output)>;

pub(crate) enum Link {
    Apply(Apply),
    Timed(Advancing),
    /// The end of an operator, as its counts see it.
    Count(Counting),
}

impl Link {
    pub fn recalls(&self) -> bool {
        matches!(self, Link::Timed(last) if last.tactic.recalls())
    }
}

/// Feeds, and links that their rows go through.
pub(crate) struct Line {
    pub feeds: Vec<Box<dyn Feed>>,
    pub links: Vec<Link>,
}

impl Line {
    /// One turn of all feeds and links.
    pub fn turn(&mut self, frontiers: &Frontiers, hold: &mut HeldCapability) -> Pulled {
        let mut pulled = Pulled::default();
        self.feeds.iter_mut().for_each(|feed| feed.pull(frontiers, hold, &mut pulled));
        pulled.n_rows += pulled.out.rows.iter().map(Batch::len).sum::<usize>();
        let (mut came, mut last): (usize, Option<&dyn Timed>) = (0, None);
        for link in &mut self.links {
            if let Link::Count(counting) = link {
                let feeds = || self.feeds.iter().map(|feed| feed.size_bytes()).sum::<usize>();
                let size_bytes = || last.map_or_else(feeds, |tactic| tactic.size_bytes());
                counting.take(&pulled.out.rows, came, size_bytes);
                continue;
            }
            let rows = std::mem::take(&mut pulled.out.rows);
            came = rows.iter().map(Batch::len).sum();
            match link {
                Link::Apply(apply) => rows.into_iter().for_each(|batch| apply(batch, &mut pulled.out)),
                Link::Timed(tactic) => {
                    rows.into_iter().for_each(|batch| tactic.push(0, batch));
                    pulled.advance(tactic);
                    last = Some(tactic.tactic.as_ref());
                }
                Link::Count(_) => {}
            }
        }
        pulled
    }
}

impl Feed for Line {
    fn pull(&mut self, frontiers: &Frontiers, hold: &mut HeldCapability, pulled: &mut Pulled) {
        let mut own = self.turn(frontiers, hold);
        own.out.rows.drain(..).for_each(|batch| pulled.out.give_rows(batch));
        pulled.take_but_rows(own);
    }

    fn held_bytes(&self) -> usize {
        let tactics = self.links.iter().map(|link| match link {
            Link::Apply(_) | Link::Count(_) => 0,
            Link::Timed(advancing) => advancing.tactic.size_bytes(),
        });
        tactics.chain(self.feeds.iter().map(|feed| feed.held_bytes())).sum()
    }
}

/// Lines that meet in a tactic.
pub(crate) struct Meeting {
    pub lines: Vec<Line>,
    pub tactic: Advancing,
}

impl Feed for Meeting {
    fn pull(&mut self, frontiers: &Frontiers, hold: &mut HeldCapability, pulled: &mut Pulled) {
        let mut met = Pulled::default();
        for (input, line) in self.lines.iter_mut().enumerate() {
            let mut own = line.turn(frontiers, hold);
            own.out.rows.drain(..).for_each(|batch| self.tactic.push(input, batch));
            met.take_but_rows(own);
        }
        met.advance(&mut self.tactic);
        met.out.rows.drain(..).for_each(|batch| pulled.out.give_rows(batch));
        pulled.take_but_rows(met);
    }

    fn size_bytes(&self) -> usize {
        self.tactic.tactic.size_bytes()
    }

    fn held_bytes(&self) -> usize {
        self.size_bytes() + self.lines.iter().map(Feed::held_bytes).sum::<usize>()
    }
}

/// An edge of the dataflow as a feed.
pub(crate) struct Edge<P: Pull<Message<Time, Parcel>>> {
    pub input: InputHandleCore<Time, Parcel, P>,
    /// Number among the operator's inputs.
    pub index: usize,
}

impl<P: Pull<Message<Time, Parcel>>> Feed for Edge<P> {
    fn pull(&mut self, frontiers: &Frontiers, hold: &mut HeldCapability, pulled: &mut Pulled) {
        self.input.for_each(|message, parcel| {
            hold.lower_to(&message);
            match std::mem::take(parcel) {
                Parcel::Empty => {}
                Parcel::Rows(batch) => pulled.out.give_rows(batch),
                Parcel::Errors(batch) => pulled.out.give_errors(batch),
            }
        });
        pulled.reach(frontier_of(&frontiers[self.index]), None);
    }
}

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

    fn push(&mut self, input: usize, batch: Batch) {
        let is_taken = self.tactic.takes_absent() && matches!(batch.until(), Until::Forever);
        self.tactic.push(input, if is_taken { batch } else { batch.flatten() });
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
