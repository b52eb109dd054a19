//! What bounds the state of a plan's nodes, in words.

use std::collections::{BTreeMap, BTreeSet};

use anabranch_plan::Plan;
use anabranch_plan::bounds::{self, Bound, LeavingState, Promised};

use crate::cluster::{Read, Reading, leaving};

/// What is said of state that stays begins so.
pub(super) const KEPT: &str = "state kept";

/// What bounds the state of a node, or that nothing does, where a watermark might.
pub(super) fn state_remark(plan: &Plan, reads: &BTreeMap<String, Read>) -> Option<String> {
    let promised = Reading(reads);
    let watermarks = |bounds: &[Bound]| {
        let relations: BTreeSet<&str> = bounds.iter().flat_map(Bound::relations).collect();
        let relations: Vec<&str> = relations.into_iter().collect();
        match relations.len() {
            1 => format!("watermark of {}", relations[0]),
            _ => format!("watermarks of {}", relations.join(", ")),
        }
    };
    let leaving = match bounds::state(plan, &promised) {
        LeavingState::Nothing => return None,
        LeavingState::Waiting(below) => return Some(format!("state bounded by the {}", watermarks(&[below]))),
        LeavingState::OfInputs(_) => leaving(plan, &promised),
    };
    let of_plan = plan.relations();
    let mut promises = of_plan.iter().filter_map(|name| Some((name, promised.promises(name)?)));
    if leaving.iter().all(|of_input| !of_input.is_empty()) && !leaving.is_empty() {
        let columns: Vec<&str> = (plan.inputs().into_iter().zip(&leaving))
            .filter_map(|(input, leaving)| Some(input.schema.field(leaving.first()?.column).name().as_str()))
            .collect();
        let bounds: Vec<Bound> = leaving.iter().flatten().map(|leaving| leaving.below.clone()).collect();
        let mut columns = columns;
        columns.dedup();
        return Some(format!("state bounded by {} ({})", columns.join(" and "), watermarks(&bounds)));
    }
    if let Some((name, _)) = promises.clone().find(|(_, promises)| promises.is_changeable) {
        return Some(format!("{KEPT}: \"{name}\" takes UPDATE and DELETE, and has no APPEND ONLY"));
    }
    promises.any(|(_, promises)| !promises.bounds.is_empty()).then(|| match &leaving[..] {
        [_, _] => {
            let kept = ["left", "right"].into_iter().zip(&leaving).filter(|(_, leaving)| leaving.is_empty());
            let kept: Vec<&str> = kept.map(|(side, _)| side).collect();
            format!("{KEPT} ({}): no condition is bounded by a watermark", kept.join(" and "))
        }
        _ => format!("{KEPT}: no key is bounded by a watermark"),
    })
}
