//! Inner join: pairs of rows with equal keys, found by probing one side's arrangement with the
//! other side's changes.
//!
//! Law: the output accumulates, at every time, to the pairs of rows of the two collections at that
//! time whose keys are equal and which pass the stage. An update of the output takes place at the
//! later of its two parts' times, and its diff is the product of theirs. Each pair of updates is
//! met exactly once: a run of one side is joined with those updates of the other that were
//! acknowledged before it.
//!
//! Changelog in and out (row @time diff), key in front:
//!
//! ```text
//!     left  (1, a) @3 +1             (1, a, x) @5 +1
//!     right (1, x) @5 +1             (1, a, x) @8 -1
//!     left  (1, a) @8 -1
//! ```
//!
//! State: the two arrangements, shared with their other readers, nothing of its own. Rows that
//! no change will meet are given up by a floor. A side that will not change any more lets go of the
//! other's arrangement. Cost: a probe of the other side in proportion to the smaller of the two,
//! and one gather of the columns that are needed above, after the keys have met. Work is cut by
//! fuel; the frontier waits for it. Source: shared arrangements (VLDB 2020), section 5.3; which
//! updates were acknowledged is told by time alone, since times are totally ordered.

mod pairs;
pub(in crate::relational) mod spec;

use std::collections::VecDeque;
use std::sync::Arc;

use anabranch_arrangement::{Reader, Run, Sealed};
use anabranch_batch::{END, Time};

use anabranch_flow::chain::Chain;
use anabranch_flow::drive::HeldCapability;
use anabranch_flow::limit::Limit;
use anabranch_flow::line::{Feed, Frontiers};
use anabranch_flow::pulled::Pulled;
use anabranch_flow::runs::{Arranged, RunsFeed};
use anabranch_flow::tactic::Output;
use anabranch_flow::{Edges, Open};
pub(crate) use pairs::RunPairs;
pub use spec::JoinSpec;
pub(crate) use spec::SMALL_PART;

use super::hash_pairs::HashPairs;
use super::history::{is_unsorted_history, rows_of};

/// Probes and pairs that one scheduling of the operator may cost: some ten milliseconds.
const FUEL_PER_TURN: usize = 1 << 17;

/// Joins two arrangements. Rows of a side below its limit are looked up by no change to come.
pub fn join<'s>(left: Arranged<'s>, right: Arranged<'s>, spec: JoinSpec, limits: Vec<Limit>) -> Chain<'s> {
    let (scope, as_of) = (left.scope(), spec.as_of);
    let edges = Edges::of_any([left.edges(), right.edges()]);
    let placed = spec.placed();
    let open: Open<'s> = Box::new(move |opening| {
        let (left_reader, left) = left.open(opening);
        let (right_reader, right) = right.open(opening);
        Box::new(JoinFeed { sides: [left, right], state: JoinState::new(spec, [left_reader, right_reader]), limits })
    });
    Chain::of_feed(scope, "Join", as_of, edges, open).placed(placed)
}

/// A join as a feed: its work is cut by fuel, and time goes no further than what is left to do.
struct JoinFeed {
    sides: [Box<dyn RunsFeed>; 2],
    state: JoinState,
    limits: Vec<Limit>,
}

impl Feed for JoinFeed {
    fn pull(&mut self, frontiers: &Frontiers, hold: &mut HeldCapability, pulled: &mut Pulled) {
        let JoinFeed { sides: [left, right], state, .. } = self;
        let mut pull = |feed: &mut Box<dyn RunsFeed>, side| {
            feed.pull(frontiers, hold, pulled, &mut |runs, time| state.accept(side, runs, time))
        };
        let frontiers = [pull(left, Side::Left), pull(right, Side::Right)];
        self.state.work(FUEL_PER_TURN, &mut pulled.out);
        self.state.follow(frontiers);
        let pending = self.state.todo.iter().map(|work| work.time).min();
        pulled.has_more |= pending.is_some();
        let upto = frontiers[0].min(frontiers[1]);
        let upto = pending.map_or(upto, |pending| pending.min(upto));
        for limit in &self.limits {
            if let Some(reader) = &mut self.state.readers[limit.input] {
                limit.raise(reader, upto);
            }
        }
        pulled.reach(upto, pending);
    }
}

/// A side of a join.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    Left = 0,
    Right = 1,
}

impl Side {
    pub(crate) fn other(self) -> Side {
        match self {
            Side::Left => Side::Right,
            Side::Right => Side::Left,
        }
    }
}

struct JoinState {
    spec: JoinSpec,
    /// The arrangement of each side, while the other side may still change.
    readers: [Option<Reader>; 2],
    /// Updates of each side before this time have been taken up.
    acknowledged: [Time; 2],
    todo: VecDeque<Work>,
}

/// The joins of a run with what `reader` has before a time: the run's keys are looked up there, or,
/// if there is far less, what there is is looked up in the run.
fn by_order(spec: &JoinSpec, side: Side, run: &Arc<Run>, others: Vec<Arc<Run>>, before: Time) -> VecDeque<Pairing> {
    let is_small = others.iter().map(|other| other.len()).sum::<usize>() < run.len() / SMALL_PART;
    if is_small && others.iter().all(|other| other.is_before(before)) {
        return others
            .iter()
            .map(|other| {
                Pairing::Sorted(Box::new(RunPairs::new(spec, side.other(), other, vec![Arc::clone(run)], END)))
            })
            .collect();
    }
    VecDeque::from([Pairing::Sorted(Box::new(RunPairs::new(spec, side, run, others, before)))])
}

/// A join in progress.
enum Pairing {
    /// By the order of the runs.
    Sorted(Box<RunPairs>),
    /// Of histories, some of which have no order yet.
    Unsorted(Box<HashPairs>),
}

impl Pairing {
    /// Goes on until the fuel is used up; true at the end.
    fn work(&mut self, spec: &JoinSpec, fuel: &mut isize, out: &mut Output) -> bool {
        match self {
            Pairing::Sorted(pairs) => pairs.work(&spec.stage, fuel, out),
            Pairing::Unsorted(pairs) => {
                let rows = (*fuel).max(0) as usize;
                *fuel = 0;
                pairs.work(spec, rows, out)
            }
        }
    }
}

/// A run of one side to be joined with what was acknowledged of the other.
struct Work {
    side: Side,
    /// Its pairs may be put out from this time on.
    time: Time,
    run: Arc<Run>,
    /// Updates of the other side from this time on will meet the run from their own side.
    before: Time,
    /// What is left of the join; made when the work begins.
    pairs: Option<VecDeque<Pairing>>,
    /// The run is a sorted part of one, of which it is known that its order is used.
    is_part: bool,
}

impl JoinState {
    fn new(spec: JoinSpec, [left, right]: [Reader; 2]) -> JoinState {
        JoinState {
            spec,
            readers: [Some(left), Some(right)],
            acknowledged: [Time::MIN, Time::MIN],
            todo: VecDeque::new(),
        }
    }

    /// Takes up runs that were sealed together.
    fn accept(&mut self, side: Side, runs: Vec<Sealed>, time: Time) {
        let before = self.acknowledged[side.other() as usize];
        for Sealed { run, upper, .. } in runs {
            let acknowledged = &mut self.acknowledged[side as usize];
            // What comes first is the whole history, whose times compaction may have moved up to
            // `as_of`.
            *acknowledged = upper.max(self.spec.as_of + 1).max(*acknowledged);
            if before > Time::MIN {
                self.todo.push_back(Work { side, time, run, before, pairs: None, is_part: false });
            }
        }
    }

    /// Works until the fuel is used up, or nothing is left to do.
    fn work(&mut self, fuel: usize, out: &mut Output) {
        let mut fuel = fuel as isize;
        while fuel > 0 {
            let Some(work) = self.todo.front_mut() else { return };
            let Some(pairs) = &mut work.pairs else {
                self.begin();
                continue;
            };
            match pairs.front_mut() {
                None => _ = self.todo.pop_front(),
                Some(first) => {
                    if first.work(&self.spec, &mut fuel, out) {
                        pairs.pop_front();
                    }
                }
            }
        }
    }

    /// Begins the work that is next: by the order of its run, part by part, or without order.
    fn begin(&mut self) {
        let Some(mut work) = self.todo.pop_front() else { return };
        let Work { side, time, ref run, before, is_part, .. } = work;
        let reader = self.readers[side.other() as usize].as_ref();
        let others = reader.expect("the other side's arrangement is held while there is work").runs_for(run.len());
        if !is_part && is_unsorted_history(others.iter().chain([run]), self.spec.as_of, before) {
            let (own, other) = (rows_of([run]), rows_of(&others));
            let sides = if side == Side::Left { [own, other] } else { [other, own] };
            let pairs = HashPairs::new(&self.spec, sides);
            work.pairs = Some(pairs.map(|pairs| Pairing::Unsorted(Box::new(pairs))).into_iter().collect());
        } else if is_part || !run.is_in_parts() {
            work.pairs = Some(by_order(&self.spec, side, run, others, before));
        } else {
            for run in run.sorted_parts().into_iter().rev() {
                self.todo.push_front(Work { side, time, run, before, pairs: None, is_part: true });
            }
            return;
        }
        self.todo.push_front(work);
    }

    /// Acknowledges the frontiers and lets go of history that no work to come will ask for.
    fn follow(&mut self, frontiers: [Time; 2]) {
        for side in [Side::Left, Side::Right] {
            // History comes in one piece, at `as_of`, with times up to it: until the frontier is
            // past it nothing has come.
            let (acknowledged, frontier) = (&mut self.acknowledged[side as usize], frontiers[side as usize]);
            if frontier > self.spec.as_of {
                *acknowledged = frontier.max(*acknowledged);
            }
        }
        for side in [Side::Left, Side::Right] {
            let askers = self.todo.iter().filter(|work| work.side == side.other());
            let needed = askers.map(|work| work.run.lower().max(self.spec.as_of).min(work.before - 1)).min();
            let asker_frontier = frontiers[side.other() as usize];
            if needed.is_none() && asker_frontier == END {
                self.readers[side as usize] = None;
                continue;
            }
            let acknowledged = self.acknowledged[side as usize];
            let since = needed.unwrap_or(END).min(asker_frontier).min(acknowledged.saturating_sub(1));
            if let Some(reader) = &mut self.readers[side as usize]
                && since > reader.since()
            {
                reader.set_since(since);
            }
        }
    }
}
