//! Verbs on events: from plan nodes to operators, and the frontier that a plan's output reaches.

use std::collections::BTreeMap;
use std::sync::Arc;

use anabranch_arrangement::MergeEffort;
use anabranch_batch::{END, Time, types};
use anabranch_flow::chain::Chain;
use anabranch_flow::events::{self, Reach};
use anabranch_flow::line::Apply;
use anabranch_flow::tactic::Timed;
use anabranch_operators::aggregate::{Aggregate, AggregateSpec};
use anabranch_operators::temporal::Hold;
use anabranch_operators::temporal::custom::CustomOperator;
use anabranch_operators::temporal::detect::Detect;
use anabranch_operators::temporal::sliding::{Sliding, SlidingSpec};
use anabranch_operators::temporal::{
    absent, append_join, asof, bounds, changes, chop, clip, clip_duration, duration, extend, hopping, join, lifetime,
    point_at_end, quantize, session, shift, stitch,
};
use anabranch_plan::properties::Properties;
use anabranch_plan::temporal::{FOREVER, Verb, Windows};
use anabranch_plan::{Foreign, Node, Plan};
use arrow::datatypes::DataType;

use super::physical::{Step, StepId};
use super::prepare::Preparer;
use super::specs::{aggregate_spec, types_of};
use super::temporal_step::TemporalStep;
use crate::error::Error;

/// How a verb that remembers runs.
struct Remembering {
    name: &'static str,
    /// Columns that each input is exchanged by.
    routes: Vec<Vec<usize>>,
    tactic: Box<dyn Timed>,
}

impl Preparer<'_> {
    /// The step of a temporal node.
    pub(super) fn temporal(&mut self, plan: &Plan, verb: &Verb, inputs: &[Arc<Plan>]) -> Result<StepId, Error> {
        if self.n_loops() > 0 {
            let error = Error::invalid("verbs on events are not supported over variables of a loop");
            return Err(error.with_hint("compute them outside of the loop.").with_sqlstate("0A000"));
        }
        if let Verb::Events { input, .. } = verb {
            return self.events(plan, input);
        }
        let step = match verb {
            Verb::Custom { operator, keys } => custom_step(plan, operator, keys),
            _ => compile(verb, inputs)?,
        };
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
pub(crate) fn input_name(input: &str) -> String {
    format!("events {input}")
}

fn compile(verb: &Verb, inputs: &[Arc<Plan>]) -> Result<TemporalStep, Error> {
    Ok(match verb {
        Verb::Events { .. } => unreachable!("inputs are imported"),
        Verb::Custom { .. } => unreachable!("it is compiled with its plan's types"),
        Verb::Bounds { ends } => TemporalStep::Bounds(*ends),
        Verb::Shift { ticks } => TemporalStep::Shift { ticks: *ticks },
        Verb::Duration { ticks } => TemporalStep::Duration { ticks: *ticks },
        Verb::Lifetime { start, duration, ends, back } => {
            let n_computed = usize::from(start.is_some()) + usize::from(duration.is_some());
            TemporalStep::Lifetime(lifetime::Lifetime {
                start: *start,
                duration: *duration,
                ends: *ends,
                back: *back,
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
            let spec = aggregate_spec(keys, calls, types_of(&inputs[0].schema))?;
            let known = Properties::of(&inputs[0]);
            let sliding = known.duration.and_then(|duration| SlidingSpec::new(&spec, duration, known.hop));
            sliding.map_or(TemporalStep::Aggregate(spec), TemporalStep::Sliding)
        }
        Verb::PointAtEnd => TemporalStep::PointAtEnd,
        Verb::Extend { ticks } => TemporalStep::Extend { ticks: *ticks, types: types_of(&inputs[0].schema) },
        Verb::ClipDuration { limit } => match Properties::of(&inputs[0]).duration {
            // (Their ends are known, or never come.)
            Some(duration) => TemporalStep::Duration { ticks: duration.min(*limit) },
            None => TemporalStep::ClipDuration { limit: *limit, types: types_of(&inputs[0].schema) },
        },
        Verb::Chop { period, offset } => {
            TemporalStep::Chop { period: *period, offset: *offset, types: types_of(&inputs[0].schema) }
        }
        Verb::Stitch => TemporalStep::Stitch { types: types_of(&inputs[0].schema) },
        Verb::OfChanges => TemporalStep::OfChanges { types: types_of(&inputs[0].schema) },
        Verb::Session { keys, timeout, maximum } => TemporalStep::Session {
            keys: keys.clone(),
            types: types_of(&inputs[0].schema),
            timeout: *timeout,
            maximum: *maximum,
        },
        Verb::Clip { left_key, right_key } => TemporalStep::Clip {
            left_key: left_key.clone(),
            types: types_of(&inputs[0].schema),
            right_key: right_key.clone(),
        },
        Verb::Join { left_key, right_key } => join_step(inputs, left_key, right_key),
        Verb::Asof { left_key, right_key, strategy, exact, tolerance, outer } => TemporalStep::Asof(asof::AsofSpec {
            left_key: left_key.clone(),
            right_key: right_key.clone(),
            strategy: *strategy,
            exact: *exact,
            tolerance: *tolerance,
            outer: *outer,
            key_types: types_at(&inputs[0], left_key),
            right_types: types_of(&inputs[1].schema),
        }),
        Verb::WhereNotExists { left_key, right_key, nulls } => TemporalStep::WhereNotExists {
            left_key: left_key.clone(),
            right_key: right_key.clone(),
            key_types: types_at(&inputs[0], left_key),
            nulls: *nulls,
        },
        Verb::Detect(detect) => TemporalStep::Detect(Box::new(super::detect::compile(detect, &inputs[0].schema)?)),
    })
}

/// A user's operator, with the types that its columns have in batches.
fn custom_step(plan: &Plan, operator: &Foreign, keys: &[Vec<usize>]) -> TemporalStep {
    let operator: &CustomOperator = operator.function().expect("operators here are of this type only");
    let types = types_of(&plan.schema);
    TemporalStep::Custom { operator: operator.clone(), keys: keys.to_vec(), types }
}

/// The join that the properties of its inputs choose.
fn join_step(inputs: &[Arc<Plan>], left_key: &[usize], right_key: &[usize]) -> TemporalStep {
    let (left, right) = (Properties::of(&inputs[0]), Properties::of(&inputs[1]));
    let key_types = types_at(&inputs[0], left_key);
    let (left_key, right_key) = (left_key.to_vec(), right_key.to_vec());
    if (left.duration, right.duration) != (Some(FOREVER), Some(FOREVER)) {
        return TemporalStep::Join { left_key, right_key, key_types };
    }
    let rises = |(ours, theirs): (&usize, &usize)| left.sorted_by.contains(ours) && right.sorted_by.contains(theirs);
    let rising = left_key.iter().zip(&right_key).position(rises);
    TemporalStep::AppendJoin { left_key, right_key, key_types, rising }
}

/// What the properties of its inputs have chosen for a verb, in a few words; nothing for a verb
/// that runs in one way.
pub fn variant(plan: &Plan) -> Option<String> {
    let Node::Temporal { verb, inputs } = &plan.node else { return None };
    if matches!(verb, Verb::Events { .. } | Verb::Custom { .. }) {
        return None;
    }
    match compile(verb, inputs).ok()? {
        TemporalStep::Sliding(spec) => Some(spec.remark()),
        TemporalStep::Duration { .. } if matches!(verb, Verb::ClipDuration { .. }) => Some("a new duration".to_owned()),
        TemporalStep::AppendJoin { left_key, rising: Some(at), .. } => {
            Some(format!("merge join on {}", inputs[0].schema.field(left_key[at]).name()))
        }
        TemporalStep::AppendJoin { .. } => Some("no pair is kept".to_owned()),
        _ => None,
    }
}

impl TemporalStep {
    /// How far the verb reaches back behind the frontier.
    fn hold(&self) -> Hold {
        match self {
            TemporalStep::Shift { ticks } if *ticks < 0 => Hold::Back(ticks.saturating_neg()),
            TemporalStep::Lifetime(lifetime) if lifetime.back > 0 => Hold::Back(lifetime.back),
            TemporalStep::Quantize(windows) => windows.hold(),
            TemporalStep::Extend { ticks, .. } if *ticks < 0 => extend::Shorten::hold(ticks.saturating_neg()),
            _ => Hold::Same,
        }
    }

    /// The inputs, and the verb behind them.
    pub(super) fn render<'s>(&self, mut inputs: Vec<Chain<'s>>, effort: MergeEffort) -> Chain<'s> {
        let hold = self.hold();
        let reach: Reach = Box::new(move |frontier| hold.apply(frontier));
        if let Some((name, apply)) = self.stateless() {
            let input = inputs.pop().expect("a verb has its input");
            return match hold {
                Hold::Same => input.then(name, apply),
                _ => input.then_reaching(name, reach, apply),
            };
        }
        let Remembering { name, mut routes, tactic } =
            self.of_one(effort).or_else(|| self.of_two()).or_else(|| self.of_user()).expect("a verb is one of these");
        if let ([_], [_]) = (&inputs[..], &routes[..])
            && let (Some(input), Some(route)) = (inputs.pop(), routes.pop())
        {
            return input.then_events(name, route, reach, tactic);
        }
        events::events(inputs.into_iter().zip(routes).collect(), name, reach, tactic)
    }

    /// What is done to each batch, for verbs that remember nothing.
    fn stateless(&self) -> Option<(&'static str, Apply)> {
        Some(match self {
            TemporalStep::Bounds(ends) => {
                let ends = *ends;
                ("Bounds", Box::new(move |batch, out| bounds::apply(batch, ends, out)))
            }
            TemporalStep::Shift { ticks } => {
                let ticks = *ticks;
                ("Shift", Box::new(move |batch, out| shift::apply(batch, ticks, out)))
            }
            TemporalStep::Duration { ticks } => {
                let ticks = *ticks;
                ("Duration", Box::new(move |batch, out| duration::apply(batch, ticks, out)))
            }
            TemporalStep::Lifetime(lifetime) => {
                let lifetime = *lifetime;
                ("Lifetime", Box::new(move |batch, out| lifetime.apply(batch, out)))
            }
            TemporalStep::Hopping(windows) => {
                let windows = *windows;
                ("Hopping", Box::new(move |batch, out| windows.apply(batch, out)))
            }
            TemporalStep::Quantize(windows) => {
                let windows = *windows;
                ("Quantize", Box::new(move |batch, out| windows.apply(batch, out)))
            }
            TemporalStep::PointAtEnd => ("PointAtEnd", Box::new(point_at_end::apply)),
            TemporalStep::Extend { ticks, .. } if *ticks >= 0 => {
                let ticks = *ticks;
                ("Extend", Box::new(move |batch, out| extend::lengthen(batch, ticks, out)))
            }
            _ => return None,
        })
    }

    /// The tactic of a verb of one input that remembers.
    fn of_one(&self, effort: MergeEffort) -> Option<Remembering> {
        let one = |name, route, tactic| Remembering { name, routes: vec![route], tactic };
        Some(match self {
            TemporalStep::Aggregate(spec) => {
                let spec = AggregateSpec { effort, ..spec.clone() };
                one("Snapshots", spec.keys.clone(), Box::new(Aggregate::snapshots(spec)))
            }
            TemporalStep::Sliding(spec) => one("Snapshots", spec.keys().to_vec(), Box::new(Sliding::new(spec.clone()))),
            TemporalStep::Extend { ticks, types } => {
                one("Extend", all(types), Box::new(extend::Shorten::new(ticks.saturating_neg(), types)))
            }
            TemporalStep::ClipDuration { limit, types } => {
                one("ClipDuration", all(types), Box::new(clip_duration::ClipDuration::new(*limit, types)))
            }
            TemporalStep::Chop { period, offset, types } => {
                one("Chop", all(types), Box::new(chop::Chop::new(*period, *offset, types)))
            }
            TemporalStep::Stitch { types } => one("Stitch", all(types), Box::new(stitch::Stitch::new(types))),
            TemporalStep::OfChanges { types } => one("OfChanges", all(types), Box::new(changes::OfChanges::new(types))),
            TemporalStep::Session { keys, types, timeout, maximum } => {
                let key_types: Vec<DataType> = keys.iter().map(|&key| types[key].clone()).collect();
                let tactic = session::Session::new(keys.clone(), &key_types, *timeout, *maximum);
                one("Session", keys.clone(), Box::new(tactic))
            }
            TemporalStep::Detect(spec) => one("Detect", spec.group.clone(), Box::new(Detect::new((**spec).clone()))),
            _ => return None,
        })
    }

    /// The tactic of a user's operator.
    fn of_user(&self) -> Option<Remembering> {
        let TemporalStep::Custom { operator, keys, types } = self else { return None };
        let tactic = operator.tactic(keys.len(), types.clone());
        Some(Remembering { name: "Operator", routes: keys.clone(), tactic: Box::new(tactic) })
    }

    /// The tactic of a verb of two inputs.
    fn of_two(&self) -> Option<Remembering> {
        let two = |name, left: &[usize], right: &[usize], tactic| Remembering {
            name,
            routes: vec![left.to_vec(), right.to_vec()],
            tactic,
        };
        Some(match self {
            TemporalStep::Clip { left_key, types, right_key } => {
                let tactic = clip::Clip::new(left_key.clone(), types, right_key.clone());
                two("Clip", left_key, right_key, Box::new(tactic))
            }
            TemporalStep::Join { left_key, right_key, key_types } => {
                let tactic = join::Join::new(left_key.clone(), right_key.clone(), key_types);
                two("TemporalJoin", left_key, right_key, Box::new(tactic))
            }
            TemporalStep::AppendJoin { left_key, right_key, key_types, rising } => {
                let tactic = append_join::AppendJoin::new(left_key.clone(), right_key.clone(), key_types, *rising);
                two("TemporalJoin", left_key, right_key, Box::new(tactic))
            }
            TemporalStep::Asof(spec) => {
                two("TemporalAsof", &spec.left_key, &spec.right_key, Box::new(asof::TemporalAsof::new(spec.clone())))
            }
            TemporalStep::WhereNotExists { left_key, right_key, key_types, nulls } => {
                let tactic = absent::Absent::new(left_key.clone(), right_key.clone(), key_types, *nulls);
                two("WhereNotExists", left_key, right_key, Box::new(tactic))
            }
            _ => return None,
        })
    }
}

/// Types that some columns have in batches.
fn types_at(plan: &Plan, columns: &[usize]) -> Vec<DataType> {
    columns.iter().map(|&column| types::narrowed_type(plan.schema.field(column).data_type())).collect()
}

/// Every column: start and end edges of a row meet at one worker.
fn all(types: &[DataType]) -> Vec<usize> {
    (0..types.len()).collect()
}

/// The frontier that a plan's output reaches when its inputs of events are complete before the
/// times in `inputs`.
pub(crate) fn output_frontier(plan: &Plan, inputs: &BTreeMap<String, Time>) -> Time {
    if let Node::Temporal { verb: Verb::Events { input, .. }, .. } = &plan.node {
        return inputs.get(input).copied().unwrap_or(END);
    }
    let frontier = plan.inputs().into_iter().map(|input| output_frontier(input, inputs)).min().unwrap_or(END);
    match &plan.node {
        Node::Temporal { verb: Verb::Custom { .. }, .. } => frontier,
        Node::Temporal { verb, inputs } => compile(verb, inputs).map_or(frontier, |step| step.hold().apply(frontier)),
        _ => frontier,
    }
}
