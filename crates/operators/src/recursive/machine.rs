//! A loop at work: epochs one after the other, in each of them rounds.
//!
//! Law: when an epoch is over, what has left the loop accumulates to the loop's meaning over what
//! has entered it, up to that epoch. Nothing is put out for a round below the present one, and
//! nothing waits when an epoch is over. Work may stop after any node or portion of a join, and go
//! on later.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use anabranch_arrangement::Sealed;
use anabranch_batch::consolidate::consolidate;
use anabranch_batch::{Batch, Diffs, Time, Times};
use anabranch_flow::tactic::Output;
use arrow::array::StringViewArray;

use super::distinct::Distinct;
use super::least::Least;
use super::moment::Moment;
use super::overrun::Overrun;
use super::pairs::{JoinSide, pairs_of};
use super::reduce::{Reduce, ReduceInput};
use super::round_rows::RoundRows;
use anabranch_spec::limits::RoundLimit;

use super::spec::{LoopNode, LoopSpec, NodeId, Ranks};
use super::stages::Stages;
use super::trace::{Entering, RoundTrace};
use crate::relational::join::{JoinSpec, RunPairs};

/// A loop. See the module's page.
pub(super) struct Machine {
    spec: LoopSpec,
    states: Vec<LoopState>,
    /// Where the rows of joins go while they are made: see [`LoopSpec::ways`].
    ways: Vec<Vec<NodeId>>,
    /// The rows of each node in the present round.
    now: Vec<Vec<Batch>>,
    /// Rows of each node for later rounds.
    later: Vec<BTreeMap<Time, Vec<Batch>>>,
    /// Rows of each stream that this epoch brings.
    entered: Vec<Vec<Batch>>,
    /// Rows of each variable for the next round; those that no node reads are not kept.
    variables: Vec<Variable>,
    place: Option<Place>,
    has_begun: bool,
    /// All changes before this time belong to epochs that have begun.
    from: Time,
    /// What the epoch puts out: rows of the result, and row errors.
    results: RoundRows,
    out: Output,
    /// Whether the loop has the error of its limit.
    is_over_limit: bool,
}

/// Where work goes on.
struct Place {
    moment: Moment,
    /// The number of nodes at the end of a round.
    node: NodeId,
    /// Whether the node, or the end of the round, has begun.
    is_node_begun: bool,
}

enum LoopState {
    Stateless,
    Arrangement(RoundTrace),
    Entering(Entering),
    Joining(VecDeque<RunPairs>),
    Distinct(Distinct),
    Least(Least),
    Reduce(Reduce),
    Loop(Box<Stages>),
}

struct Variable {
    next: Vec<Batch>,
    is_read: bool,
    /// Equal rows are summed up already.
    is_consolidated: bool,
    overrun: Option<Overrun>,
}

impl Machine {
    /// A loop over nothing, with the arrangements that enter it.
    pub fn new(spec: LoopSpec, arranged: Vec<Entering>) -> Machine {
        let ranks = spec.ranks();
        Machine::with_ranks(spec, arranged, ranks)
    }

    /// The same, with ranks that the loop can do with.
    pub(super) fn with_ranks(spec: LoopSpec, arranged: Vec<Entering>, ranks: Ranks) -> Machine {
        let mut arranged: Vec<Option<Entering>> = arranged.into_iter().map(Some).collect();
        let state = |node: &LoopNode| match node {
            LoopNode::EnterArranged { input } => {
                LoopState::Entering(arranged[*input].take().expect("an arrangement enters by one node"))
            }
            LoopNode::Arrange { layout, .. } => LoopState::Arrangement(RoundTrace::new(layout, spec.effort)),
            LoopNode::Join { .. } => LoopState::Joining(VecDeque::new()),
            LoopNode::Distinct { types, .. } => LoopState::Distinct(Distinct::new(types, ranks)),
            LoopNode::Least { least, .. } => LoopState::Least(Least::new(least.clone())),
            LoopNode::Reduce { tactic, is_over_nothing, .. } => {
                LoopState::Reduce(Reduce::new(tactic, *is_over_nothing))
            }
            LoopNode::Loop { inner, .. } => LoopState::Loop(Box::new(Stages::new(inner))),
            _ => LoopState::Stateless,
        };
        let states = spec.nodes.iter().map(state).collect();
        let variables = (0..spec.bindings.len()).map(|binding| Variable::new(&spec, binding)).collect();
        let n_nodes = spec.nodes.len();
        Machine {
            states,
            ways: spec.ways(),
            now: vec![Vec::new(); n_nodes],
            later: vec![BTreeMap::new(); n_nodes],
            entered: vec![Vec::new(); spec.n_inputs],
            variables,
            place: None,
            has_begun: false,
            from: Time::MIN,
            results: RoundRows::default(),
            out: Output::default(),
            is_over_limit: false,
            spec,
        }
    }

    /// The same loop, which goes its own way from here on.
    ///
    /// # Panics
    /// Within an epoch, or if an arrangement enters the loop.
    pub(super) fn copy(&self) -> Machine {
        assert!(self.place.is_none(), "a loop is copied between epochs");
        let states = self.states.iter().map(LoopState::copy).collect();
        let variables = self.variables.iter().map(Variable::copy).collect();
        Machine {
            states,
            variables,
            has_begun: self.has_begun,
            from: self.from,
            is_over_limit: self.is_over_limit,
            ..Machine::new(self.spec.clone(), vec![])
        }
    }

    /// Bytes of all that is kept. Runs that copies share count for each of them.
    pub(super) fn size_bytes(&self) -> usize {
        self.states.iter().map(LoopState::size_bytes).sum::<usize>() + self.results.size_bytes()
    }

    /// Whether the first epoch has begun.
    pub fn has_begun(&self) -> bool {
        self.has_begun
    }

    /// The epoch that is being worked on.
    pub fn epoch(&self) -> Option<Time> {
        self.place.as_ref().map(|place| place.moment.epoch)
    }

    /// Runs of an arrangement that enters.
    pub fn accept(&mut self, input: usize, runs: Vec<Sealed>) {
        self.entering(input).accept(runs);
    }

    /// The next epoch in which an arrangement that enters has changes.
    pub fn next_time(&self) -> Option<Time> {
        let times = self.states.iter().filter_map(|state| match state {
            LoopState::Entering(entering) => entering.next_time(),
            _ => None,
        });
        times.min()
    }

    /// All epochs before `upto` are over, and nothing waits before it.
    pub fn forget_before(&mut self, upto: Time) {
        self.from = self.from.max(upto);
        for state in &mut self.states {
            if let LoopState::Entering(entering) = state {
                entering.forget_before(upto);
            }
        }
    }

    fn entering(&mut self, input: usize) -> &mut Entering {
        let is_it = |node: &LoopNode| matches!(node, LoopNode::EnterArranged { input: number } if *number == input);
        let node = self.spec.nodes.iter().position(is_it).expect("an arrangement enters by a node");
        match &mut self.states[node] {
            LoopState::Entering(entering) => entering,
            _ => unreachable!("the node is one by which an arrangement enters"),
        }
    }

    /// Begins an epoch with the rows that streams bring.
    ///
    /// # Panics
    /// If another is being worked on.
    pub fn begin(&mut self, epoch: Time, entered: Vec<Vec<Batch>>) {
        assert!(self.place.is_none(), "epochs come one after the other");
        let from = if self.has_begun { self.from } else { Time::MIN };
        self.from = epoch + 1;
        let moment = Moment { epoch, from, round: 1, is_first: !self.has_begun };
        self.entered = entered;
        self.has_begun = true;
        self.place = Some(Place { moment, node: 0, is_node_begun: false });
    }

    /// Goes on with an epoch until it is over, or the fuel is used up. Returns whether it is over;
    /// then all that it changes is in `out`.
    pub fn work(&mut self, fuel: &mut isize, out: &mut Output) -> bool {
        while let Some(mut place) = self.place.take() {
            if place.node == self.spec.nodes.len() {
                if !std::mem::replace(&mut place.is_node_begun, true) {
                    self.end_round(&place.moment);
                }
                let next = self.next_round();
                if !self.tidy(next.is_none(), fuel) {
                    self.place = Some(place);
                    return false;
                }
                match next {
                    Some(round) => {
                        let moment = Moment { round, ..place.moment };
                        self.place = Some(Place { moment, node: 0, is_node_begun: false });
                    }
                    None => self.close(place.moment.epoch, out),
                }
                continue;
            }
            let is_done = *fuel > 0 && self.evaluate(&mut place, fuel);
            if is_done {
                place = Place { node: place.node + 1, is_node_begun: false, ..place };
            }
            self.place = Some(place);
            if !is_done {
                return false;
            }
        }
        true
    }

    /// Evaluates a node, or a part of it. Returns whether that was all.
    fn evaluate(&mut self, place: &mut Place, fuel: &mut isize) -> bool {
        let Place { moment, node: id, .. } = *place;
        let is_begun = std::mem::replace(&mut place.is_node_begun, true);
        let mut rows: Vec<Batch> = Vec::new();
        let (before, rest) = self.states.split_at_mut(id);
        let state = &mut rest[0];
        match (&self.spec.nodes[id], state) {
            (LoopNode::Enter { input }, _) => {
                let entered = std::mem::take(&mut self.entered[*input]);
                rows.extend(entered.into_iter().map(|batch| batch.with_times(Times::Constant(moment.round))));
            }
            (LoopNode::Variable { binding }, _) => rows = std::mem::take(&mut self.variables[*binding].next),
            (LoopNode::Stage { input, stage }, _) => {
                let mut out = Output::default();
                self.now[*input].iter().for_each(|batch| stage.apply(batch.clone(), &mut out));
                rows = out.rows;
                self.out.errors.extend(out.errors);
            }
            (LoopNode::Unnest { input, unnest }, _) => {
                let mut out = Output::default();
                self.now[*input].iter().for_each(|batch| unnest.apply(batch.clone().compact(), &mut out));
                rows = out.rows;
                self.out.errors.extend(out.errors);
            }
            (LoopNode::Union { inputs }, _) => {
                inputs.iter().for_each(|input| rows.extend(self.now[*input].iter().cloned()));
            }
            (LoopNode::Arrange { input, .. }, LoopState::Arrangement(trace)) => trace.take(&self.now[*input]),
            (LoopNode::Distinct { input, .. }, LoopState::Distinct(distinct)) => {
                self.now[*input].iter().for_each(|batch| distinct.absorb(batch, moment.round));
                *fuel -= rows_of(&self.now[*input]) as isize;
                rows.extend(distinct.finish(moment.round));
            }
            (LoopNode::Least { input, .. }, LoopState::Least(least)) => {
                self.now[*input].iter().for_each(|batch| least.absorb(batch, moment.round));
                *fuel -= rows_of(&self.now[*input]) as isize;
                rows.extend(least.finish(moment.round));
            }
            (LoopNode::Join { left, right, join }, LoopState::Joining(pairs)) => {
                if !is_begun {
                    *pairs = pairs_of(join, join_side(&before[*left]), join_side(&before[*right]), &moment);
                    rows = self.later[id].remove(&moment.round).unwrap_or_default();
                }
                let mut out = Output::default();
                work_on(pairs, join, fuel, &mut out);
                let is_done = pairs.is_empty();
                self.out.errors.append(&mut out.errors);
                self.now[id].extend(rows);
                out.rows.into_iter().for_each(|batch| self.sort_in(id, batch, moment.round));
                self.pass_on(id, moment.round);
                return is_done;
            }
            (LoopNode::Reduce { inputs, .. }, LoopState::Reduce(reduce)) => {
                let sides: Vec<ReduceInput<'_>> = inputs.iter().map(|input| reduce_input(&before[*input])).collect();
                if !is_begun && !reduce.begin(&sides, &moment) {
                    return true;
                }
                let Some(out) = reduce.work(moment.round) else {
                    *fuel = 0;
                    return false;
                };
                *fuel -= rows_of(&out.rows) as isize;
                rows = out.rows;
                self.out.errors.extend(out.errors);
            }
            (LoopNode::Loop { inputs, .. }, LoopState::Loop(stages)) => {
                let sides: Vec<ReduceInput<'_>> = inputs.iter().map(|input| reduce_input(&before[*input])).collect();
                if !is_begun && !stages.begin(&sides, &moment) {
                    return true;
                }
                let Some(out) = stages.work(moment.round, fuel) else { return false };
                rows = out.rows;
                self.out.errors.extend(out.errors);
            }
            (LoopNode::EnterArranged { .. }, _) => {}
            _ => unreachable!("each node has the state of its kind"),
        }
        *fuel -= rows_of(&rows) as isize + 1;
        self.now[id] = rows;
        true
    }

    /// Passes the rows that a node has made so far to the node that absorbs them, if there is one:
    /// a round may have many more pairs than distinct rows.
    fn pass_on(&mut self, id: NodeId, round: Time) {
        let Some((last, through)) = self.ways[id].split_last() else { return };
        let mut rows = std::mem::take(&mut self.now[id]);
        for node in through {
            if let LoopNode::Stage { stage, .. } = &self.spec.nodes[*node] {
                let mut out = Output::default();
                rows.drain(..).for_each(|batch| stage.apply(batch, &mut out));
                rows = out.rows;
                self.out.errors.extend(out.errors);
            }
        }
        match &mut self.states[*last] {
            LoopState::Distinct(distinct) => rows.iter().for_each(|batch| distinct.absorb(batch, round)),
            LoopState::Least(least) => rows.iter().for_each(|batch| least.absorb(batch, round)),
            _ => unreachable!("rows are absorbed by these"),
        }
    }

    /// Keeps the rows of a join for their rounds.
    fn sort_in(&mut self, id: NodeId, batch: Batch, round: Time) {
        let batch = batch.flatten();
        let times = match batch.times() {
            Times::Constant(time) if *time == round => return self.now[id].push(batch),
            Times::Constant(time) => return self.later[id].entry(*time).or_default().push(batch),
            Times::Column(times) => times.clone(),
        };
        let mut rows_at: BTreeMap<Time, Vec<u32>> = BTreeMap::new();
        (0..).zip(times.iter()).for_each(|(row, time)| rows_at.entry(*time).or_default().push(row));
        for (time, rows) in rows_at {
            assert!(time >= round, "no pair is of an earlier round than its parts");
            let part = batch.take(&rows).with_times(Times::Constant(time));
            match time == round {
                true => self.now[id].push(part),
                false => self.later[id].entry(time).or_default().push(part),
            }
        }
    }

    /// What the round has changed is now what was before; variables go into the next one.
    fn end_round(&mut self, moment: &Moment) {
        for state in &mut self.states {
            if let LoopState::Arrangement(trace) = state {
                trace.settle();
            }
        }
        let is_last = self.spec.round_max() == Some(moment.round);
        for (variable, binding) in self.variables.iter_mut().zip(&self.spec.bindings) {
            variable.end_round(&self.now[*binding], moment.round, is_last);
        }
        self.results.append(&mut self.now[self.spec.result]);
        self.now.iter_mut().for_each(Vec::clear);
    }

    /// Merges what came in parts. Returns whether that is done.
    fn tidy(&mut self, is_last: bool, fuel: &mut isize) -> bool {
        self.states.iter_mut().all(|state| match state {
            LoopState::Arrangement(trace) => trace.tidy(is_last, fuel),
            _ => true,
        })
    }

    /// The next round in which something happens, if there is one and the limit allows it.
    fn next_round(&self) -> Option<Time> {
        let waiting = self.later.iter().filter_map(|later| later.keys().next().copied());
        let states = self.states.iter().filter_map(|state| match state {
            LoopState::Distinct(distinct) => distinct.next_round(),
            LoopState::Least(least) => least.next_round(),
            LoopState::Reduce(reduce) => reduce.next_round(),
            LoopState::Loop(stages) => stages.next_round(),
            _ => None,
        });
        let variables = self.variables.iter().filter_map(|variable| variable.next.first());
        let variables = variables.map(|batch| batch.times().min());
        let round = waiting.chain(states).chain(variables).min()?;
        self.spec.round_max().is_none_or(|last| round <= last).then_some(round)
    }

    /// The epoch is over: puts out what it has changed.
    fn close(&mut self, epoch: Time, out: &mut Output) {
        for state in &mut self.states {
            match state {
                LoopState::Distinct(distinct) => distinct.close(),
                LoopState::Least(least) => least.close(),
                LoopState::Reduce(reduce) => reduce.close(),
                LoopState::Loop(stages) => stages.close(),
                LoopState::Entering(entering) => entering.close(epoch),
                _ => {}
            }
        }
        self.later.iter_mut().for_each(BTreeMap::clear);
        let errors = std::mem::take(&mut self.out).errors;
        let rows = std::mem::take(&mut self.results).into_batches();
        summed(rows, epoch).into_iter().for_each(|batch| out.give_rows(batch));
        summed(errors, epoch).into_iter().for_each(|batch| out.give_errors(batch));
        self.tell_limit(epoch, out);
    }

    /// Puts out the error of the limit when it comes or goes.
    fn tell_limit(&mut self, epoch: Time, out: &mut Output) {
        let RoundLimit::Error(rounds) = self.spec.limit else { return };
        let is_over = self.variables.iter().any(|variable| variable.overrun.as_ref().is_some_and(Overrun::is_any));
        if is_over != std::mem::replace(&mut self.is_over_limit, is_over) {
            let message = RoundLimit::message(rounds.get());
            let column = Arc::new(StringViewArray::from(vec![message.as_str()]));
            let diff = if is_over { 1 } else { -1 };
            out.give_errors(Batch::new(vec![column], Times::Constant(epoch), Diffs::Constant(diff)));
        }
    }
}

impl LoopState {
    fn copy(&self) -> LoopState {
        match self {
            LoopState::Stateless => LoopState::Stateless,
            LoopState::Arrangement(trace) => LoopState::Arrangement(trace.copy()),
            LoopState::Entering(_) => unreachable!("no arrangement enters a loop that is copied"),
            LoopState::Joining(_) => LoopState::Joining(VecDeque::new()),
            LoopState::Distinct(distinct) => LoopState::Distinct(distinct.clone()),
            LoopState::Least(least) => LoopState::Least(least.clone()),
            LoopState::Reduce(reduce) => LoopState::Reduce(reduce.copy()),
            LoopState::Loop(stages) => LoopState::Loop(Box::new(stages.copy())),
        }
    }

    fn size_bytes(&self) -> usize {
        match self {
            LoopState::Arrangement(trace) => trace.size_bytes(),
            LoopState::Distinct(distinct) => distinct.size_bytes(),
            LoopState::Least(least) => least.size_bytes(),
            LoopState::Loop(stages) => stages.size_bytes(),
            LoopState::Stateless | LoopState::Entering(_) | LoopState::Joining(_) | LoopState::Reduce(_) => 0,
        }
    }
}

impl Variable {
    /// The same variable, between epochs.
    fn copy(&self) -> Variable {
        Variable {
            next: vec![],
            is_read: self.is_read,
            is_consolidated: self.is_consolidated,
            overrun: self.overrun.clone(),
        }
    }

    fn new(spec: &LoopSpec, binding: usize) -> Variable {
        let reads = |node: &LoopNode| matches!(node, LoopNode::Variable { binding: read } if *read == binding);
        let node = &spec.nodes[spec.bindings[binding]];
        Variable {
            next: vec![],
            is_read: spec.nodes.iter().any(reads),
            is_consolidated: matches!(
                node,
                LoopNode::Distinct { .. } | LoopNode::Least { .. } | LoopNode::Reduce { .. }
            ),
            overrun: matches!(spec.limit, RoundLimit::Error(_)).then(Overrun::default),
        }
    }

    /// Takes what a round has changed of the variable.
    fn end_round(&mut self, rows: &[Batch], round: Time, is_last: bool) {
        match &mut self.overrun {
            Some(overrun) if is_last => overrun.add(rows),
            _ => {}
        }
        if !self.is_read || is_last {
            return;
        }
        // (What cancels is no reason for another round.)
        let rows = match self.is_consolidated {
            true => rows.to_vec(),
            false => {
                let rows: Vec<Batch> = rows.iter().map(|batch| batch.clone().flatten()).collect();
                Batch::concat(&rows).map(consolidate).into_iter().collect()
            }
        };
        let rows = rows.into_iter().filter(|batch| !batch.is_empty());
        self.next.extend(rows.map(|batch| batch.with_times(Times::Constant(round + 1))));
    }
}

fn rows_of(batches: &[Batch]) -> usize {
    batches.iter().map(Batch::len).sum()
}

fn work_on(pairs: &mut VecDeque<RunPairs>, join: &JoinSpec, fuel: &mut isize, out: &mut Output) {
    while let Some(first) = pairs.front_mut()
        && *fuel > 0
    {
        if first.work(&join.stage, fuel, out) {
            pairs.pop_front();
        }
    }
}

/// What rounds have changed, as one change of an epoch.
fn summed(batches: Vec<Batch>, epoch: Time) -> Vec<Batch> {
    let all = batches.into_iter().map(|batch| batch.flatten().with_times(Times::Constant(epoch)));
    let all: Vec<Batch> = all.collect();
    let only_adds = |batch: &Batch| matches!(batch.diffs(), Diffs::Constant(diff) if *diff > 0);
    if all.iter().all(only_adds) {
        return all;
    }
    Batch::concat(&all).map(consolidate).into_iter().collect()
}

fn join_side(state: &LoopState) -> JoinSide<'_> {
    match state {
        LoopState::Arrangement(trace) => JoinSide::Inside(trace),
        LoopState::Entering(entering) => JoinSide::Outside(entering),
        _ => unreachable!("a join reads arrangements"),
    }
}

fn reduce_input(state: &LoopState) -> ReduceInput<'_> {
    match state {
        LoopState::Arrangement(trace) => ReduceInput::Inside(trace),
        LoopState::Entering(entering) => ReduceInput::Outside(entering),
        _ => unreachable!("a reduction reads arrangements"),
    }
}
