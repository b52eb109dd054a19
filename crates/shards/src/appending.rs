//! Rows that are never taken back, and how they are spread.
//!
//! Law: what a source promises of all its rows holds of those of each shard, wherever they move; a
//! query keeps it if it looks at rows one by one. Where a row may be taken back it has to go where
//! it went before; where none is, a batch may go anywhere.

use std::collections::BTreeMap;

use anabranch_engine::Error;
use anabranch_engine::frame::FOREVER;
use anabranch_plan::properties::Properties;
use anabranch_plan::temporal::Verb as Temporal;
use anabranch_plan::{Node, Plan};

use crate::program::{ProgramStep, Verb};

/// Whether no row of a step is taken back, or ends. Cost: that of the steps behind one another,
/// each once.
///
/// # Errors
/// Those of building a query.
pub(crate) fn is_append_only(step: &ProgramStep) -> Result<bool, Error> {
    known(step, &mut BTreeMap::new())
}

fn known(step: &ProgramStep, seen: &mut BTreeMap<*const ProgramStep, bool>) -> Result<bool, Error> {
    if let Some(known) = seen.get(&std::ptr::from_ref(step)) {
        return Ok(*known);
    }
    let is_kept = match &step.verb {
        Verb::Source { events, .. } => events.properties()?.duration == Some(FOREVER),
        // (What a program has written is a result, and may have been taken back.)
        Verb::Dataset(_) => false,
        Verb::Rekey | Verb::Choose(_) | Verb::InTime | Verb::Move { .. } => true,
        Verb::Query { frame } => {
            let plan = frame.plan()?;
            is_by_row(&plan)
        }
    };
    let mut is_append_only = is_kept;
    for input in &step.inputs {
        is_append_only = is_append_only && known(input, seen)?;
    }
    seen.insert(std::ptr::from_ref(step), is_append_only);
    Ok(is_append_only)
}

/// Whether a query looks at rows one by one, or makes rows that last for ever in any case.
fn is_by_row(plan: &Plan) -> bool {
    match &plan.node {
        Node::Stage { input, .. } | Node::Unnest { input, .. } => is_by_row(input),
        Node::Union { inputs } => inputs.iter().all(|input| is_by_row(input)),
        Node::Temporal { verb: Temporal::Events { .. }, .. } => true,
        _ => Properties::of(plan).duration == Some(FOREVER),
    }
}

/// Rows that a movement has sent to each shard.
#[derive(Clone, Debug, Default)]
pub struct Dealt {
    rows: Vec<u64>,
}

impl Dealt {
    /// The shard of a batch of so many rows, of these: that which has been sent the fewest; of
    /// several the first one from `own` on. Those that were sent the most and the fewest differ by
    /// a batch at most.
    pub fn next(&mut self, shards: &[usize], own: usize, rows: usize) -> Option<usize> {
        let (before, from) = shards.split_at(shards.partition_point(|shard| *shard < own));
        let sent = |shard: usize| self.rows.get(shard).copied().unwrap_or(0);
        let target = from.iter().chain(before).copied().min_by_key(|shard| sent(*shard))?;
        if self.rows.len() <= target {
            self.rows.resize(target + 1, 0);
        }
        self.rows[target] += rows as u64;
        Some(target)
    }
}
