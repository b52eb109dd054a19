//! Aggregates over the keys that are asked for only.
//!
//! ```text
//! parts of one kind ⋈ line items ⋈ (average by part of all line items)
//! = parts of one kind ⋈ line items ⋈ (average by part of the line items of parts of one kind)
//! ```
//!
//! A leaf of a region that groups by a column which must equal a column of a filtered leaf is given
//! only the rows with such a key: its input is joined with the filtered leaf's distinct keys.
//! Groups that are left out would have met nothing. It pays when the filter leaves little: the
//! input is then remembered once, by key, as it often is for another join already, instead of a
//! state for every group; and only groups that are asked for are kept current.
//!
//! Source: Seshadri et al., *Cost-Based Optimization for Magic*, SIGMOD 1996.

use std::sync::Arc;

use super::build::{choose, width};
use super::region::Region;
use super::selectivity::selectivity;
use crate::ir::{JoinKind, Node, Plan};
use crate::positions::position;
use anabranch_spec::order::Nulls;

/// The most of a filtered leaf for which its keys are worth looking up.
const SHARE_MAX: f64 = 0.1;

/// Restricts the aggregates among the leaves of a region.
pub(super) fn aggregates(region: &mut Region) {
    for leaf in 0..region.leaves.len() {
        if let Some(restricted) = restricted(region, leaf) {
            region.leaves[leaf] = restricted;
        }
    }
}

fn restricted(region: &Region, leaf: usize) -> Option<Arc<Plan>> {
    let plan = &region.leaves[leaf];
    let mut best: Option<(f64, usize, Arc<Plan>, usize)> = None;
    for column in (0..region.columns.len()).filter(|column| region.leaf(*column) == leaf) {
        let Some(key) = group_key(plan, region.columns[column].1) else { continue };
        for other in region.equals(column) {
            let (filtered, at) = region.columns[other];
            let share = selectivity(&region.leaves[filtered]);
            let is_aggregate = group_key(&region.leaves[filtered], at).is_some();
            if filtered != leaf && !is_aggregate && share <= SHARE_MAX && best.as_ref().is_none_or(|b| share < b.0) {
                best = Some((share, key, Arc::clone(&region.leaves[filtered]), at));
            }
        }
    }
    let (share, key, filtered, at) = best?;
    // What is filtered as much by itself gains nothing.
    (share < selectivity(plan)).then(|| with_input(plan, &|input| of_keys(input, key, &filtered, at)))
}

/// The column of the aggregate's input that this column of a plan is a group of.
fn group_key(plan: &Plan, at: usize) -> Option<usize> {
    match &plan.node {
        Node::Stage { input, project, .. } => group_key(input, position(project.get(at)?, &input.schema)?),
        Node::Aggregate { keys, .. } => keys.get(at).copied(),
        _ => None,
    }
}

/// The aggregate below stages over another input.
fn with_input(plan: &Arc<Plan>, change: &dyn Fn(&Arc<Plan>) -> Arc<Plan>) -> Arc<Plan> {
    let mut node = plan.node.clone();
    match &mut node {
        Node::Stage { input, .. } => *input = with_input(input, change),
        Node::Aggregate { input, .. } => *input = change(input),
        _ => unreachable!("a group key was found below stages"),
    }
    Arc::new(Plan { node, schema: plan.schema.clone() })
}

/// The rows of `input` whose column `key` is among the values of `filtered`'s column `at`.
fn of_keys(input: &Arc<Plan>, key: usize, filtered: &Arc<Plan>, at: usize) -> Arc<Plan> {
    let keys = choose(filtered, &[at]);
    let schema = keys.schema.clone();
    let keys = Arc::new(Plan { node: Node::Distinct { input: keys }, schema });
    let node = Node::Join {
        left: Arc::clone(input),
        right: keys,
        kind: JoinKind::Inner,
        left_key: vec![key],
        right_key: vec![0],
        nulls: Nulls::Differ,
        residual: None,
        output: (0..width(input)).collect(),
    };
    Arc::new(Plan { node, schema: input.schema.clone() })
}
