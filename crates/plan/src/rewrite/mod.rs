//! Plans that mean the same and cost less to keep current.
//!
//! Law: [`improve`] keeps the function from collections to a collection, and the schema. Where it moves a condition to other rows than its writer's,
//! the condition is one that cannot fail, so that no row error appears that was not there. (A row error may disappear with the row that it was computed for.)
//! The random plans of the law tests are run as they are and improved.
//!
//! There are no statistics when a view is made, and a view lives longer than they would be true: decisions rest on the plan alone (which
//! inputs are filtered, what is unique), with guesses of [`selectivity`] in place of counts. What costs is what must be remembered: the
//! rows of every input of a join, and of every intermediate result. A join's order therefore starts at what is filtered most.
//!
//! Reading order: [`region`] (inner joins as a set), [`order`], [`restrict`] (aggregates over the keys that are asked for only), [`reuse`] (a relation
//! joined with its own aggregate), [`grouped_join`] (an outer join under a grouping by its key), [`selectivity`], [`build`].
//! [`behind_index`] and [`keys_once`] come last, where a session knows which indexes there are.
//!
//! Sources: Neumann and Kemper, *Unnesting Arbitrary Queries* (BTW 2015); Seshadri et al., *Cost-Based Optimization for Magic* (SIGMOD 1996) for
//! `restrict`; Yan and Larson, *Eager Aggregation and Lazy Aggregation* (VLDB 1995) for `grouped_join` and `reuse`; TPC-H on differential dataflow for which plans are wanted.

mod behind_index;
mod build;
mod grouped_join;
mod keys_once;
mod order;
mod region;
mod restrict;
mod reuse;
mod selectivity;

use std::sync::Arc;

pub use behind_index::{Indexes, behind_indexes};
pub use keys_once::keys_once;
pub use selectivity::{TO_NUMERIC, cannot_fail};

use crate::ir::{Node, Plan};

/// The plan, rewritten where that is expected to pay.
pub fn improve(plan: &Arc<Plan>) -> Arc<Plan> {
    if let Some(better) = grouped_join::apart(plan) {
        return improve(&better);
    }
    if let Some(better) = reuse::without_self_join(plan) {
        return improve(&better);
    }
    match region::Region::of(plan) {
        Some(mut region) => {
            restrict::aggregates(&mut region);
            for leaf in &mut region.leaves {
                *leaf = improve(leaf);
            }
            order::ordered(&region)
        }
        None => with_inputs(plan, improve),
    }
}

/// The plan with other inputs of the same schemas.
fn with_inputs(plan: &Arc<Plan>, change: impl Fn(&Arc<Plan>) -> Arc<Plan>) -> Arc<Plan> {
    let mut node = plan.node.clone();
    match &mut node {
        Node::Scan { .. } | Node::Constant { .. } => return Arc::clone(plan),
        Node::Stage { input, .. }
        | Node::Unnest { input, .. }
        | Node::Aggregate { input, .. }
        | Node::Distinct { input }
        | Node::TopK { input, .. }
        | Node::Recognize { input, .. } => *input = change(input),
        Node::Join { left, right, .. } | Node::Asof { left, right, .. } | Node::SetOperation { left, right, .. } => {
            *left = change(left);
            *right = change(right);
        }
        Node::Union { inputs } | Node::Temporal { inputs, .. } => {
            inputs.iter_mut().for_each(|input| *input = change(input))
        }
    }
    Arc::new(Plan { node, schema: plan.schema.clone() })
}
