//! Plans that mean the same and cost less to keep current.
//!
//! Law: [`optimise`] keeps the function from collections to a collection, and the schema. Where a
//! rewrite moves a condition to other rows than its writer's, the condition cannot fail, so that no
//! row error appears. (A row error may disappear with the row that it was computed for.) The random
//! plans of the law tests run as they are, and after each rewrite.
//!
//! There are no statistics when a view is made, and a view lives longer than they would be true:
//! decisions rest on the plan alone (which inputs are filtered, what is unique), with guesses of
//! [`selectivity`] in place of counts. What costs is what must be remembered: the rows of every
//! input of a join, and of every intermediate result. A join's order therefore starts at what is
//! filtered most.
//!
//! Reading order: [`region`] (inner joins as a set), [`order`], [`restrict`] (aggregates over the
//! keys that are asked for only), [`reuse`] (a relation joined with its own aggregate),
//! [`grouped_join`] (an outer join under a grouping by its key), [`slices`] (aggregates of windows
//! that overlap), [`numbers`] (of all rows), [`bands`] (joins of what is near), [`selectivity`],
//! [`calls_once`] (of conditions and columns), [`build`]. The table [`REWRITES`]
//! gives their order; [`behind_index`] and [`keys_once`] use what [`Facts`] say about indexes.
//!
//! Sources: Neumann and Kemper, *Unnesting Arbitrary Queries* (BTW 2015); Seshadri et al.,
//! *Cost-Based Optimization for Magic* (SIGMOD 1996) for `restrict`; Yan and Larson, *Eager
//! Aggregation and Lazy Aggregation* (VLDB 1995) for `grouped_join` and `reuse`; TPC-H on
//! differential dataflow for which plans are wanted.

pub mod bands;
mod behind_index;
mod build;
mod calls_once;
mod facts;
mod grouped_join;
mod inputs;
mod keys_once;
mod numbers;
mod numeric_mean;
mod order;
mod region;
mod restrict;
mod reuse;
mod selectivity;
mod slices;

use std::sync::Arc;

pub use facts::{Facts, Indexes};
pub use inputs::with_inputs;
pub use selectivity::{TO_NUMERIC, cannot_fail};

use crate::ir::Plan;

/// A rewrite of whole plans. Each keeps the plan's meaning, and its schema.
pub struct Rewrite {
    /// What EXPLAIN calls the rewrite.
    pub name: &'static str,
    /// What the rewrite spares.
    pub spares: &'static str,
    /// The plan after the rewrite; an equal plan where the rewrite finds nothing to do.
    pub apply: fn(&Arc<Plan>, &Facts<'_>) -> Arc<Plan>,
}

/// All rewrites, in the order in which [`optimise`] applies them.
pub const REWRITES: &[Rewrite] = &[
    Rewrite {
        name: "groupings apart",
        spares: "the rows of an outer join under a grouping by the join's key",
        apply: |plan, facts| unless_spread(plan, facts, &grouped_join::apart),
    },
    Rewrite {
        name: "self joins",
        spares: "a relation that is joined with its own aggregate and then summed up",
        apply: |plan, _| top_down(plan, &reuse::without_self_join),
    },
    Rewrite {
        name: "slices of windows",
        spares: "a row's work in each of the windows that overlap, where results of slices combine",
        apply: |plan, facts| unless_spread(plan, facts, &slices::sliced),
    },
    Rewrite {
        name: "row numbers",
        spares: "all rows of a group for a change among them, where all of them have their places",
        apply: |plan, _| top_down(plan, &numbers::counted),
    },
    Rewrite {
        name: "join order",
        spares: "rows of aggregates whose keys no join asks for, and large intermediate results",
        apply: |plan, _| join_order(plan),
    },
    Rewrite {
        name: "joins within bands",
        spares: "all rows of a key for a row that is near few of them",
        apply: bands::banded,
    },
    Rewrite {
        name: "conditions behind indexes",
        spares: "an arrangement of the filtered rows, where an index of all rows exists",
        apply: |plan, facts| behind_index::behind_indexes(plan, facts.indexes),
    },
    Rewrite {
        name: "keys once",
        spares: "repeated rows on the side of a semi or anti join that is only asked for its keys",
        apply: |plan, facts| keys_once::keys_once(plan, facts.indexes),
    },
    Rewrite {
        name: "calls once",
        spares: "a call for the rows that a condition with the same call has let through",
        apply: |plan, _| top_down(plan, &calls_once::once),
    },
];

/// The plan, rewritten where the rewrite is expected to pay. Planning calls this once for each
/// query.
pub fn optimise(plan: &Arc<Plan>, facts: &Facts<'_>) -> Arc<Plan> {
    REWRITES.iter().fold(Arc::clone(plan), |plan, rewrite| (rewrite.apply)(&plan, facts))
}

/// The plan as it came (`"as written"`), then the plan after each rewrite that changed it.
pub fn optimised_in_steps(plan: &Arc<Plan>, facts: &Facts<'_>) -> Vec<(&'static str, Arc<Plan>)> {
    let mut steps = vec![("as written", Arc::clone(plan))];
    let mut now = Arc::clone(plan);
    for rewrite in REWRITES {
        let next = (rewrite.apply)(&now, facts);
        if next != now {
            steps.push((rewrite.name, Arc::clone(&next)));
            now = next;
        }
    }
    steps
}

/// The plan with `better` applied at every node, as often as it finds something, from the root
/// down.
fn top_down(plan: &Arc<Plan>, better: &dyn Fn(&Arc<Plan>) -> Option<Arc<Plan>>) -> Arc<Plan> {
    let mut plan = Arc::clone(plan);
    while let Some(next) = better(&plan) {
        plan = next;
    }
    with_inputs(&plan, |input| top_down(input, better))
}

/// As [`top_down`], unless rows lie in several shards: what is put together of parts there would
/// look as if it wanted rows from elsewhere.
fn unless_spread(plan: &Arc<Plan>, facts: &Facts<'_>, better: &dyn Fn(&Arc<Plan>) -> Option<Arc<Plan>>) -> Arc<Plan> {
    if facts.is_spread { Arc::clone(plan) } else { top_down(plan, better) }
}

/// The plan with the inner joins of each region in a good order.
fn join_order(plan: &Arc<Plan>) -> Arc<Plan> {
    match region::Region::of(plan) {
        Some(mut region) => {
            restrict::aggregates(&mut region);
            for leaf in &mut region.leaves {
                *leaf = join_order(leaf);
            }
            order::ordered(&region)
        }
        None => with_inputs(plan, join_order),
    }
}
