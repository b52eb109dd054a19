//! Whether a program means what it says: the union of its shards' results is the result of one
//! shard.
//!
//! A program is judged for every layout, level by level: within processes, then across. Partial
//! aggregates are allowed on the way, if they are put together behind a movement.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::sync::Arc;

use anabranch_engine::Error;
use anabranch_plan::Plan;

use crate::layout::{Move, ShardScope, To};
use crate::linear::{self, Lies, Partial};
use crate::placement::{Placement, Spread};
use crate::program::{ActionKind, BRANCH, ProgramStep, Shards, Verb};
use crate::relational::{self, relational};

/// What is known of a step's rows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KnownPlacement {
    /// Where they lie.
    pub placement: Placement,
    /// Whether they are what the step says.
    pub state: SafetyState,
}

/// Whether rows are what a step says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SafetyState {
    /// The union of the shards is the result of one shard.
    Whole,
    /// It would be, after these are put together.
    Partial(Partial),
    /// It is not, or that is unknown: the reason.
    Wrong(String),
}

/// Knowledge by step, so that a step of several users is looked at once.
pub(crate) type KnownSteps = BTreeMap<*const ProgramStep, KnownPlacement>;

impl Shards {
    /// Whether the program yields the same contents for every number of shards.
    ///
    /// # Errors
    /// The first error of building it; `Invalid` when it does not, or when that is not known, with
    /// the step that is to blame.
    pub fn check(&self) -> Result<(), Error> {
        let KnownPlacement { placement, state } = self.known()?;
        let refused = |message: String, hint: &str| Err(Error::invalid(message).with_hint(hint));
        match state {
            SafetyState::Wrong(reason) => refused(
                format!("the program depends on the number of shards: {reason}"),
                "Move rows that belong together into one shard before, compute aggregates in parts (in_parts, or \
                 a mean as sum and count), or run the program unchecked (anabranch plan --unchecked).",
            ),
            SafetyState::Partial(partial) => refused(
                format!("the program ends with partial results of each shard: {}", columns(&partial)),
                "Redistribute them, and put them together with a further aggregate.",
            ),
            SafetyState::Whole if !placement.across.is_split() || !placement.within.is_split() => refused(
                format!("the program's result is {placement}: each copy comes out"),
                "Leave the last broadcast out.",
            ),
            SafetyState::Whole => Ok(()),
        }
    }

    /// What is known of the result.
    ///
    /// # Errors
    /// The first error of building the program.
    pub fn known(&self) -> Result<KnownPlacement, Error> {
        let mut table = KnownSteps::new();
        known_step(self.step()?, &mut table)
    }

    /// The program as a tree, each step with its key, where its rows lie, and whether they are
    /// partial.
    ///
    /// # Errors
    /// The first error of building the program.
    pub fn explain(&self) -> Result<String, Error> {
        let mut text = String::new();
        explain(self.step()?, 0, &mut KnownSteps::new(), &mut BTreeSet::new(), &mut text)?;
        Ok(text)
    }
}

fn explain(
    step: &Arc<ProgramStep>,
    depth: usize,
    table: &mut KnownSteps,
    printed: &mut BTreeSet<*const ProgramStep>,
    text: &mut String,
) -> Result<(), Error> {
    let is_seen = !printed.insert(Arc::as_ptr(step));
    let known = known_step(step, table)?;
    let what = match &step.verb {
        Verb::Source { events, .. } => format!("source {} in {} shards", events.name(), step.layout.shards()),
        Verb::Dataset(dataset) => format!("dataset {} in {} shards", dataset.name, step.layout.shards()),
        Verb::Rekey => format!("rekey ({})", step.key.join(", ")),
        Verb::Choose(_) => format!("branches ({})", step.key.join(", ")),
        Verb::InTime => "in order of time".to_owned(),
        Verb::Query { .. } if step.key.is_empty() => "query".to_owned(),
        Verb::Query { .. } => format!("query by ({})", step.key.join(", ")),
        Verb::Move { kind, reach } => {
            let scope = match (reach.scope, &reach.to) {
                (_, To::Group(group)) => format!(" to {group}"),
                (_, To::Shards(shards)) => format!(" to {shards} shards"),
                (ShardScope::Flat, To::Same) => String::new(),
                (ShardScope::Local, To::Same) => " local".to_owned(),
                (ShardScope::Global, To::Same) => " global".to_owned(),
            };
            match kind {
                ActionKind::Split { nodes, fan_out, .. } => format!("split {nodes} x {fan_out}"),
                kind => format!("{}{scope}", kind.name()),
            }
        }
    };
    let state = match &known.state {
        SafetyState::Whole => String::new(),
        SafetyState::Partial(partial) => format!("; partial: {}", columns(partial)),
        SafetyState::Wrong(reason) => format!("; depends on shards: {reason}"),
    };
    let again = if is_seen && !step.inputs.is_empty() { " (as above)" } else { "" };
    // (Text is written to a string, which takes all of it.)
    let _ = writeln!(text, "{:width$}{what}{again}: {}{state}", "", known.placement, width = 2 * depth);
    if again.is_empty() {
        step.inputs.iter().rev().try_for_each(|input| explain(input, depth + 1, table, printed, text))?;
    }
    Ok(())
}

fn columns(partial: &Partial) -> String {
    match (&partial.again, partial.results.as_slice()) {
        (Some(Some(_)), _) => "first rows".to_owned(),
        (Some(None), _) | (None, []) => "distinct rows".to_owned(),
        (None, results) => results.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>().join(", "),
    }
}

/// What is known of a step, from what is known of its inputs.
///
/// # Errors
/// Those of building a query.
pub(crate) fn known_step(step: &Arc<ProgramStep>, table: &mut KnownSteps) -> Result<KnownPlacement, Error> {
    if let Some(known) = table.get(&Arc::as_ptr(step)) {
        return Ok(known.clone());
    }
    let inputs =
        step.inputs.iter().map(|input| known_step(input, table)).collect::<Result<Vec<KnownPlacement>, Error>>()?;
    let derived = derive(step, &inputs)?;
    table.insert(Arc::as_ptr(step), derived.clone());
    Ok(derived)
}

/// What follows for a step from what is known of its inputs.
fn derive(step: &ProgramStep, inputs: &[KnownPlacement]) -> Result<KnownPlacement, Error> {
    match &step.verb {
        Verb::Source { events, packed } => {
            let spread = match packed {
                Some(column) => Spread::Packed { source: events.name().to_owned(), column: column.clone() },
                None => Spread::Arbitrary,
            };
            let placement = Placement { across: spread.clone(), within: spread };
            Ok(KnownPlacement { placement, state: SafetyState::Whole })
        }
        Verb::Dataset(dataset) => {
            Ok(KnownPlacement { placement: dataset.placement.clone(), state: SafetyState::Whole })
        }
        // (Rows lie by columns that they have, whatever the key is.)
        Verb::InTime | Verb::Rekey => Ok(inputs[0].clone()),
        Verb::Choose(_) => {
            let KnownPlacement { placement, state } = inputs[0].clone();
            Ok(KnownPlacement { placement: placement.kept(&step.key), state })
        }
        Verb::Move { kind, reach } => Ok(derive_move(step, kind, reach, &inputs[0])),
        Verb::Query { frame } => {
            let plan = frame.plan()?;
            derive_query(step, &plan, inputs)
        }
    }
}

fn derive_move(step: &ProgramStep, kind: &ActionKind, reach: &Move, input: &KnownPlacement) -> KnownPlacement {
    let spread = match kind {
        ActionKind::Redistribute => Spread::ByKey(step.key.clone(), reach.to.clone()),
        ActionKind::Broadcast => Spread::Replicated,
        ActionKind::Split { places: Some(shards), .. } => {
            Spread::Placed { column: BRANCH.to_owned(), shards: shards.to_vec() }
        }
        ActionKind::Split { .. } | ActionKind::ToBranch => Spread::ByNumber(BRANCH.to_owned()),
        ActionKind::Reshard | ActionKind::Deal | ActionKind::Multicast(_) | ActionKind::Spray(_) => Spread::Arbitrary,
    };
    // (Copies in one shard are as many as they were.)
    let copies_some = matches!(kind, ActionKind::Broadcast) && reach.to != To::Same && !reach.to.is_one();
    let placement = match copies_some {
        true => Placement::ARBITRARY,
        false => input.placement.moved(reach, spread),
    };
    let copies = input.placement.touched(reach.scope).into_iter().any(|spread| !spread.is_split());
    let state = match (&input.state, kind) {
        (SafetyState::Wrong(reason), _) => SafetyState::Wrong(reason.clone()),
        (_, kind) if copies => SafetyState::Wrong(format!("a {} of rows that are replicated", kind.name())),
        (_, ActionKind::Multicast(_)) => {
            SafetyState::Wrong("a multicast, whose copies are the program's own affair".to_owned())
        }
        _ if copies_some => SafetyState::Wrong("a broadcast to some of the shards".to_owned()),
        (state, _) => state.clone(),
    };
    KnownPlacement { placement, state }
}

fn derive_query(step: &ProgramStep, plan: &Plan, inputs: &[KnownPlacement]) -> Result<KnownPlacement, Error> {
    if let Some(rows) = relational(plan) {
        return Ok(derive_sql(rows, inputs));
    }
    let across = level(step, plan, inputs, |placement| &placement.across);
    let within = level(step, plan, inputs, |placement| &placement.within);
    let spread = |derived: &Result<Spread, String>, before: &Spread| {
        derived.clone().unwrap_or_else(|_| before.clone()).kept(&step.key)
    };
    let before = &inputs[0].placement;
    let placement = Placement { across: spread(&across, &before.across), within: spread(&within, &before.within) };
    let is_safe = across.is_ok() && within.is_ok();
    let reason = across.err().or(within.err()).unwrap_or_default();
    let state = match (wrong(inputs), inputs) {
        (Some(wrong), _) => wrong.clone(),
        (_, [KnownPlacement { state: SafetyState::Partial(partial), .. }]) => match linear::combining(plan, partial) {
            None => {
                SafetyState::Wrong("partial results are not put together by a plain aggregate of theirs".to_owned())
            }
            Some(_) if is_safe => SafetyState::Whole,
            Some(Some(partial)) => SafetyState::Partial(partial),
            Some(None) => SafetyState::Wrong(format!("partial results are computed with: {reason}")),
        },
        (_, inputs) if inputs.iter().any(|input| matches!(input.state, SafetyState::Partial(_))) => {
            SafetyState::Wrong("partial results in a query of two inputs".to_owned())
        }
        _ if is_safe => SafetyState::Whole,
        (_, [KnownPlacement { placement, .. }]) if placement.across.is_split() && placement.within.is_split() => {
            linear::partial(plan).map_or(SafetyState::Wrong(reason), SafetyState::Partial)
        }
        _ => SafetyState::Wrong(reason),
    };
    Ok(KnownPlacement { placement, state })
}

fn wrong(inputs: &[KnownPlacement]) -> Option<&SafetyState> {
    inputs.iter().map(|input| &input.state).find(|state| matches!(state, SafetyState::Wrong(_)))
}

/// What follows for a query of SQL, which names its groups itself: nothing hangs on the key.
fn derive_sql(rows: &Plan, inputs: &[KnownPlacement]) -> KnownPlacement {
    let partial = |input: &KnownPlacement| match &input.state {
        SafetyState::Partial(partial) => Some(partial.clone()),
        SafetyState::Whole | SafetyState::Wrong(_) => None,
    };
    let partials: Vec<Option<Partial>> = inputs.iter().map(partial).collect();
    let given: Vec<_> =
        inputs.iter().zip(&partials).map(|(input, partial)| (&input.placement, partial.as_ref())).collect();
    match (relational::known(rows, &given), wrong(inputs)) {
        (Ok((placement, partial)), None) => {
            KnownPlacement { placement, state: partial.map_or(SafetyState::Whole, SafetyState::Partial) }
        }
        (Ok((placement, _)), Some(wrong)) => KnownPlacement { placement, state: wrong.clone() },
        (Err(_), Some(wrong)) => KnownPlacement { placement: Placement::ARBITRARY, state: wrong.clone() },
        (Err(reason), None) => KnownPlacement { placement: Placement::ARBITRARY, state: SafetyState::Wrong(reason) },
    }
}

/// How the result is spread at one level, if each shard's part of it is right.
fn level(
    step: &ProgramStep,
    plan: &Plan,
    inputs: &[KnownPlacement],
    of: impl Fn(&Placement) -> &Spread,
) -> Result<Spread, String> {
    let spreads: Vec<&Spread> = inputs.iter().map(|input| of(&input.placement)).collect();
    let together = |spread: &Spread| spread.keeps_together(&step.key) && *spread == *spreads[0];
    if spreads.iter().all(|spread| together(spread)) {
        return Ok(spreads[0].clone());
    }
    let lies = |spread: &&Spread| if spread.is_split() { Lies::Split } else { Lies::Replicated };
    let first = lies(&spreads[0]);
    let lies = linear::over(plan, [first, spreads.get(1).map_or(first, lies)])?;
    let split = spreads.iter().find(|spread| spread.is_split());
    Ok(match (lies, split) {
        (Lies::Replicated, _) | (_, None) => Spread::Replicated,
        (Lies::Split, Some(spread)) if spreads.len() == 1 || !spreads[1].is_split() => (*spread).clone(),
        (Lies::Split, Some(_)) => Spread::Arbitrary,
    })
}
