//! Feeds, and the links behind them, at work.
//!
//! Law: as that of [`crate::chain`]. A line is a feed itself, so lines may meet in a tactic, or
//! follow one another in a union, without an edge between them.

use std::sync::Arc;

use anabranch_batch::{Batch, Time};
use timely::communication::Pull;
use timely::dataflow::channels::Message;
use timely::dataflow::operators::generic::InputHandleCore;
use timely::progress::frontier::MutableAntichain;
use timely::progress::operate::FrontierInterest;

use crate::account::{HeldState, MoveCounter};
use crate::advancing::Advancing;
use crate::counting::Counting;
use crate::drive::{HeldCapability, frontier_of};
use crate::event_verb::{EventVerb, Reach};
use crate::parcel::Parcel;
use crate::pulled::Pulled;
use crate::tactic::Output;

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

    /// Rows that it holds, if it tells.
    fn state_rows(&self) -> Option<usize> {
        None
    }

    /// Bytes that all operators of the feed hold, apart from arrangements.
    fn held_bytes(&self) -> usize {
        self.size_bytes()
    }
}

/// What becomes of a batch.
pub type Apply = Box<dyn FnMut(Batch, &mut Output)>;

pub(crate) enum Link {
    Apply(Apply),
    /// What was put out before may lie this far behind the frontier.
    Reach(Reach),
    Tactic(Working),
    /// The end of an operator, as its counts see it.
    Count(Counting),
}

/// A tactic at work.
pub(crate) enum Working {
    /// On changes of a relation.
    Timed(Advancing),
    /// On events.
    Events(EventVerb),
}

impl Link {
    pub fn recalls(&self) -> bool {
        matches!(self, Link::Tactic(Working::Timed(last)) if last.tactic.recalls())
    }

    /// How closely edges before the link follow their frontiers, if the chain ends in an edge.
    pub fn interest(&self) -> FrontierInterest {
        match self {
            // Functions of batches do not look at frontiers.
            Link::Apply(_) | Link::Count(_) => FrontierInterest::Never,
            // Tactics on changes do while something waits.
            Link::Tactic(Working::Timed(_)) => FrontierInterest::IfCapability,
            // The frontier of events is passed on exactly, whether rows wait or not.
            Link::Reach(_) | Link::Tactic(Working::Events(_)) => FrontierInterest::Always,
        }
    }
}

impl Working {
    fn push(&mut self, input: usize, batch: Batch) {
        match self {
            Working::Timed(tactic) => tactic.push(input, batch),
            Working::Events(verb) => verb.push(input, batch),
        }
    }

    /// Puts out all before the frontier, or as much of it as a turn allows.
    fn advance(&mut self, pulled: &mut Pulled) {
        match self {
            Working::Timed(tactic) => tactic.advance_line(pulled),
            Working::Events(verb) => verb.advance(pulled),
        }
    }

    fn held(&self) -> HeldState {
        let rows = match self {
            Working::Timed(advancing) => advancing.tactic.state_rows(),
            Working::Events(_) => None,
        };
        HeldState { rows, bytes: self.size_bytes() }
    }

    fn size_bytes(&self) -> usize {
        match self {
            Working::Timed(advancing) => advancing.tactic.size_bytes(),
            Working::Events(verb) => verb.size_bytes(),
        }
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
        let (mut came, mut last): (usize, Option<&Working>) = (0, None);
        let mut is_of_feeds = true;
        for link in &mut self.links {
            if let Link::Count(counting) = link {
                // (An operator without a tactic of its own holds nothing, but for what the feeds
                // hold.)
                let (tactic, is_first) = (last.take(), std::mem::take(&mut is_of_feeds));
                let feeds = || HeldState {
                    rows: self.feeds.iter().find_map(|feed| feed.state_rows()),
                    bytes: self.feeds.iter().map(|feed| feed.size_bytes()).sum(),
                };
                counting.take(&pulled.out.rows, came, pulled.upto, || match tactic {
                    Some(tactic) => tactic.held(),
                    None if is_first => feeds(),
                    None => HeldState::default(),
                });
                continue;
            }
            if let Link::Reach(reach) = link {
                pulled.reach_exactly(reach(pulled.upto));
                continue;
            }
            let rows = std::mem::take(&mut pulled.out.rows);
            came = rows.iter().map(Batch::len).sum();
            match link {
                Link::Apply(apply) => rows.into_iter().for_each(|batch| apply(batch, &mut pulled.out)),
                Link::Tactic(tactic) => {
                    rows.into_iter().for_each(|batch| tactic.push(0, batch));
                    tactic.advance(&mut pulled);
                    last = Some(tactic);
                }
                Link::Count(_) | Link::Reach(_) => {}
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
            Link::Apply(_) | Link::Reach(_) | Link::Count(_) => 0,
            Link::Tactic(tactic) => tactic.size_bytes(),
        });
        tactics.chain(self.feeds.iter().map(|feed| feed.held_bytes())).sum()
    }
}

/// Lines that meet in a tactic.
pub(crate) struct Meeting {
    pub lines: Vec<Line>,
    pub tactic: Working,
}

impl Feed for Meeting {
    fn pull(&mut self, frontiers: &Frontiers, hold: &mut HeldCapability, pulled: &mut Pulled) {
        let mut met = Pulled::default();
        for (input, line) in self.lines.iter_mut().enumerate() {
            let mut own = line.turn(frontiers, hold);
            own.out.rows.drain(..).for_each(|batch| self.tactic.push(input, batch));
            met.take_but_rows(own);
        }
        self.tactic.advance(&mut met);
        met.out.rows.drain(..).for_each(|batch| pulled.out.give_rows(batch));
        pulled.take_but_rows(met);
    }

    fn size_bytes(&self) -> usize {
        self.tactic.size_bytes()
    }

    fn state_rows(&self) -> Option<usize> {
        self.tactic.held().rows
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
    /// Who counts the rows that come, of those that move.
    pub counter: Option<Arc<MoveCounter>>,
}

impl<P: Pull<Message<Time, Parcel>>> Feed for Edge<P> {
    fn pull(&mut self, frontiers: &Frontiers, hold: &mut HeldCapability, pulled: &mut Pulled) {
        self.input.for_each(|message, parcel| {
            hold.lower_to(&message);
            match std::mem::take(parcel) {
                Parcel::Empty => {}
                Parcel::Rows(batch) => {
                    self.counter.iter().for_each(|counter| counter.take(batch.len()));
                    pulled.out.give_rows(batch);
                }
                Parcel::Errors(batch) => pulled.out.give_errors(batch),
            }
        });
        pulled.reach(frontier_of(&frontiers[self.index]), None);
    }
}
