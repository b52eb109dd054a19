//! What the relations that a plan reads promise, and what may leave the state of its nodes for
//! that.

use std::collections::BTreeMap;

use anabranch_arrangement::has_ticks;
use anabranch_batch::types::narrowed_type;
use anabranch_plan::Plan;
use anabranch_plan::bounds::{self, Leaving, LeavingState, Promised, Promises};

use super::spec::Read;

/// What the relations that are read promise.
pub(crate) struct Reading<'a>(pub &'a BTreeMap<String, Read>);

impl Promised for Reading<'_> {
    fn promises(&self, relation: &str) -> Option<&Promises> {
        self.0.get(relation).map(|read| &read.promises)
    }
}

/// What leaves each input of a node, in columns that limits can be of.
pub(crate) fn leaving(plan: &Plan, promised: &dyn Promised) -> Vec<Vec<Leaving>> {
    let LeavingState::OfInputs(leaving) = bounds::state(plan, promised) else { return vec![] };
    let inputs = plan.inputs().into_iter().zip(leaving);
    let usable = inputs.map(|(input, leaving)| {
        let has_ticks = |leaving: &Leaving| has_ticks(&narrowed_type(input.schema.field(leaving.column).data_type()));
        leaving.into_iter().filter(has_ticks).collect()
    });
    usable.collect()
}

/// Whether some of a node's state leaves.
pub(crate) fn is_freed(plan: &Plan, promised: &dyn Promised) -> bool {
    leaving(plan, promised).iter().any(|of_input| !of_input.is_empty())
}
