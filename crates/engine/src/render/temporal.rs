//! Verbs on events: from plan nodes to operators, and the frontier that a plan's output reaches.

use std::collections::BTreeMap;
use std::sync::Arc;

use anabranch_arrangement::MergeEffort;
use anabranch_batch::{END, Time};
use anabranch_operators::Stream;
use anabranch_operators::aggregate::{Aggregate, AggregateSpec};
use anabranch_operators::temporal::{Hold, bounds, driver, duration, hopping, lifetime, quantize, shift};
use anabranch_plan::temporal::{Ends, Verb, Windows};
use anabranch_plan::{Node, Plan};

use super::physical::{Step, StepId};
use super::prepare::{Preparer, aggregate_spec, types_of};
use crate::error::Error;

/// A verb on events, compiled.
#[derive(Clone)]
pub enum TemporalStep {
    Bounds,
    Shift { ticks: i64 },
    Duration { ticks: i64 },
    Lifetime(lifetime::Lifetime),
    Hopping(hopping::Hopping),
    Quantize(quantize::Quantize),
    Aggregate(AggregateSpec),
}

impl Preparer<'_> {
    /// The step of a temporal node.
    pub(super) fn temporal(&mut self, plan: &Plan, verb: &Verb, inputs: &[Arc<Plan>]) -> Result<StepId, Error> {
        if let Verb::Events { input } = verb {
            return self.events(plan, input);
        }
        let step = compile(verb, inputs)?;
        let inputs = inputs.iter().map(|input| self.stream(input)).collect::<Result<Vec<_>, _>>()?;
        Ok(self.push(Step::Temporal { verb: step, inputs }))
    }

    fn events(&mut self, plan: &Plan, input: &str) -> Result<StepId, Error> {
        let read = self.read(&input_name(input))?;
        let columns = (0..plan.schema.fields().len()).collect();
        Ok(self.push(Step::ImportStream {
            name: input.to_owned(),
            input: Some(read.collection),
            history: None,
            columns,
        }))
    }
}

/// How an input of events is called among the relations that a dataflow reads.
pub fn input_name(input: &str) -> String {
    format!("events {input}")
}

fn compile(verb: &Verb, inputs: &[Arc<Plan>]) -> Result<TemporalStep, Error> {
    Ok(match verb {
        Verb::Events { .. } => unreachable!("inputs are imported"),
        Verb::Bounds => TemporalStep::Bounds,
        Verb::Shift { ticks } => TemporalStep::Shift { ticks: *ticks },
        Verb::Duration { ticks } => TemporalStep::Duration { ticks: *ticks },
        Verb::Lifetime { start, duration, ends } => {
            let n_computed = usize::from(start.is_some()) + usize::from(duration.is_some());
            TemporalStep::Lifetime(lifetime::Lifetime {
                start: *start,
                duration: *duration,
                ends: match ends {
                    Ends::Dropped => lifetime::Ends::Dropped,
                    Ends::Kept => lifetime::Ends::Kept,
                },
                n_columns: inputs[0].schema.fields().len() - n_computed,
            })
        }
        Verb::Hopping(Windows { size, period, offset }) => {
            TemporalStep::Hopping(hopping::Hopping { size: *size, period: *period, offset: *offset })
        }
        Verb::Quantize { windows: Windows { size, period, offset }, progress } => {
            let windows = quantize::Quantize { size: *size, period: *period, progress: *progress, offset: *offset };
            TemporalStep::Quantize(windows)
        }
        Verb::Aggregate { keys, calls } => {
            TemporalStep::Aggregate(aggregate_spec(keys, calls, types_of(&inputs[0].schema))?)
        }
    })
}

impl TemporalStep {
    /// How far the verb reaches back behind the frontier.
    fn hold(&self) -> Hold {
        match self {
            TemporalStep::Shift { ticks } if *ticks < 0 => Hold::Back(ticks.saturating_neg()),
            TemporalStep::Quantize(windows) => windows.hold(),
            _ => Hold::Same,
        }
    }

    /// The operator.
    pub(super) fn render<'s>(&self, inputs: Vec<Stream<'s>>, effort: MergeEffort) -> Stream<'s> {
        let hold = self.hold();
        let mut inputs = inputs.into_iter();
        let mut next = || inputs.next().expect("a verb has its inputs");
        match self {
            TemporalStep::Bounds => driver::stateless(next(), "Bounds", hold, bounds::apply),
            TemporalStep::Shift { ticks } => {
                let ticks = *ticks;
                driver::stateless(next(), "Shift", hold, move |batch, out| shift::apply(batch, ticks, out))
            }
            TemporalStep::Duration { ticks } => {
                let ticks = *ticks;
                driver::stateless(next(), "Duration", hold, move |batch, out| duration::apply(batch, ticks, out))
            }
            TemporalStep::Lifetime(lifetime) => {
                let lifetime = *lifetime;
                driver::stateless(next(), "Lifetime", hold, move |batch, out| lifetime.apply(batch, out))
            }
            TemporalStep::Hopping(windows) => {
                let windows = *windows;
                driver::stateless(next(), "Hopping", hold, move |batch, out| windows.apply(batch, out))
            }
            TemporalStep::Quantize(windows) => {
                let windows = *windows;
                driver::stateless(next(), "Quantize", hold, move |batch, out| windows.apply(batch, out))
            }
            TemporalStep::Aggregate(spec) => {
                let mut spec = spec.clone();
                spec.effort = effort;
                let keys = spec.keys.clone();
                driver::events(vec![(next(), keys)], "Snapshots", hold, Box::new(Aggregate::snapshots(spec)))
            }
        }
    }
}

/// The frontier that a plan's output reaches when its inputs of events are complete before the times in `inputs`.
pub fn output_frontier(plan: &Plan, inputs: &BTreeMap<String, Time>) -> Time {
    if let Node::Temporal { verb: Verb::Events { input }, .. } = &plan.node {
        return inputs.get(input).copied().unwrap_or(END);
    }
    let frontier = plan.inputs().into_iter().map(|input| output_frontier(input, inputs)).min().unwrap_or(END);
    match &plan.node {
        Node::Temporal { verb, inputs } => compile(verb, inputs).map_or(frontier, |step| step.hold().apply(frontier)),
        _ => frontier,
    }
}
