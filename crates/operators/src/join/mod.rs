//! Inner join: pairs of rows with equal keys, found by probing one side's arrangement with the other side's changes.
//!
//! Law: the output accumulates, at every time, to the pairs of rows of the two collections at that time whose keys are equal and
//! which pass the stage. An update of the output takes place at the later of its two parts' times, and its diff is the product of theirs.
//! Each pair of updates is met exactly once: a run of one side is joined with those updates of the other that were acknowledged before it.
//!
//! Changelog in and out (row @time diff), key in front:
//!
//! ```text
//!     left  (1, a) @3 +1             (1, a, x) @5 +1
//!     right (1, x) @5 +1             (1, a, x) @8 -1
//!     left  (1, a) @8 -1
//! ```
//!
//! State: the two arrangements, shared with whoever else reads them, nothing of its own. A side that will not change any more
//! lets go of the other's arrangement. Cost: a probe of the other side in proportion to the smaller of the two, and one gather of the columns that are needed
//! above, after the keys have met. Work is cut by fuel; the frontier waits for it.
//! Source: shared arrangements (VLDB 2020), section 5.3; which updates were acknowledged is told by time alone, since times are totally ordered.

mod pairs;

use std::collections::VecDeque;
use std::rc::Rc;

use anabranch_arrangement::{NullKeys, Reader, Run};
use anabranch_batch::{END, Time};
use timely::container::NoopBuilder;
use timely::dataflow::channels::pact::Pipeline;
use timely::dataflow::operators::Capability;
use timely::dataflow::operators::generic::OutputBuilder;
use timely::dataflow::operators::generic::builder_rc::OperatorBuilder;

use crate::Stream;
use crate::arrange::Arranged;
use crate::drive::{frontier_of, send, union};
use crate::parcel::Parcel;
use crate::stage::Stage;
use crate::steps::Meter;
use crate::tactic::Output;
use pairs::RunPairs;
pub(crate) use pairs::gather_chunks;

/// What to join on, and what to make of the pairs.
#[derive(Clone)]
pub struct JoinSpec {
    /// Key columns of the left arrangement.
    pub left_key: Vec<usize>,
    /// Key columns of the right arrangement.
    pub right_key: Vec<usize>,
    /// Whether NULL keys match each other.
    pub nulls: NullKeys,
    /// Columns of the left rows that the stage needs.
    pub gather_left: Vec<usize>,
    /// Columns of the right rows that the stage needs.
    pub gather_right: Vec<usize>,
    /// Residual predicate and projection, over the gathered left columns followed by the gathered right ones.
    pub stage: Stage,
    /// Output times are at least this.
    pub as_of: Time,
}

/// Probes and pairs that one scheduling of the operator may cost: some ten milliseconds.
const FUEL_PER_TURN: usize = 1 << 17;

/// Joins two arrangements of one dataflow.
pub fn join<'s>(left: Arranged<'s>, right: Arranged<'s>, name: &str, spec: JoinSpec) -> Stream<'s> {
    let scope = left.sealed.scope();
    let mut operator = OperatorBuilder::new(format!("Join {name}"), scope);
    let mut left_input = operator.new_input(left.sealed, Pipeline);
    let mut right_input = operator.new_input(right.sealed, Pipeline);
    let (output, stream) = operator.new_output::<Parcel>();
    let mut output = OutputBuilder::<_, NoopBuilder<Parcel>>::from(output);
    let activator = scope.activator_for(operator.operator_info().address);
    let readers = [left.reader, right.reader];
    operator.build(move |capabilities| {
        drop(capabilities);
        let mut state = JoinState::new(spec, readers);
        let meter = Meter::new("Join");
        move |frontiers| {
            let _step = meter.step();
            left_input.for_each(|capability, sealed| {
                let capability = capability.retain_least(0).expect("a message has a time");
                let runs = sealed.drain(..).map(|sealed| (sealed.run, sealed.upper));
                state.accept(Side::Left, runs.collect(), capability);
            });
            right_input.for_each(|capability, sealed| {
                let capability = capability.retain_least(0).expect("a message has a time");
                let runs = sealed.drain(..).map(|sealed| (sealed.run, sealed.upper));
                state.accept(Side::Right, runs.collect(), capability);
            });
            let mut output = output.activate();
            let done = state.work(FUEL_PER_TURN, |out, capability| send(out, capability, &mut output));
            state.follow([frontier_of(&frontiers[0]), frontier_of(&frontiers[1])]);
            if !done {
                activator.activate();
            }
        }
    });
    let mut streams = vec![stream];
    streams.extend(left.errors);
    streams.extend(right.errors);
    if streams.len() == 1 { streams.pop().expect("one stream") } else { union(scope, streams) }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Side {
    Left = 0,
    Right = 1,
}

impl Side {
    fn other(self) -> Side {
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

/// A run of one side to be joined with what was acknowledged of the other.
struct Work {
    side: Side,
    capability: Capability<Time>,
    run: Rc<Run>,
    /// Updates of the other side from this time on will meet the run from their own side.
    before: Time,
    /// Where the join has got to; made when the work begins.
    pairs: Option<RunPairs>,
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
    fn accept(&mut self, side: Side, runs: Vec<(Rc<Run>, Time)>, capability: Capability<Time>) {
        let before = self.acknowledged[side.other() as usize];
        for (run, upper) in runs {
            let acknowledged = &mut self.acknowledged[side as usize];
            // What comes first is the whole history, whose times compaction may have moved up to `as_of`.
            *acknowledged = upper.max(self.spec.as_of + 1).max(*acknowledged);
            if before > Time::MIN {
                let capability = capability.clone();
                self.todo.push_back(Work { side, capability, run, before, pairs: None });
            }
        }
    }

    /// Works until the fuel is used up; true when nothing is left to do.
    fn work(&mut self, fuel: usize, mut send: impl FnMut(&mut Output, &Capability<Time>)) -> bool {
        let mut fuel = fuel as isize;
        let mut out = Output::default();
        while fuel > 0 {
            let Some(work) = self.todo.front_mut() else {
                return true;
            };
            let reader = self.readers[work.side.other() as usize].as_ref();
            let reader = reader.expect("the other side's arrangement is held while there is work");
            let pairs = work.pairs.get_or_insert_with(|| {
                let runs = reader.runs();
                match work.side {
                    Side::Left => RunPairs::left_run(&self.spec, &work.run, runs, work.before),
                    Side::Right => RunPairs::right_run(&self.spec, &work.run, runs, work.before),
                }
            });
            let done = pairs.work(&self.spec.stage, &mut fuel, &mut out);
            send(&mut out, &work.capability);
            if done {
                self.todo.pop_front();
            }
        }
        self.todo.is_empty()
    }

    /// Acknowledges the frontiers and lets go of history that no work to come will ask for.
    fn follow(&mut self, frontiers: [Time; 2]) {
        for side in [Side::Left, Side::Right] {
            // History comes in one piece, at `as_of`, with times up to it: until the frontier is past it nothing has come.
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
