//! Aggregates of a dataflow, on one worker or several.
//!
//! Law: rows of a group meet on one worker. What can be made less before goes in fewer rows: sums
//! batch by batch (decision 0105); the least and the greatest of all rows by an aggregate of each
//! worker over what it has, which keeps the state, and one over a row a worker.

use anabranch_flow::chain::Chain;
use anabranch_flow::line::Apply;
use anabranch_operators::aggregate::{Aggregate, AggregateSpec, Combiner};

use super::Renderer;
use crate::cluster::spec::LimitStep;

/// Rows made fewer before they move. (With one worker none do.)
pub(super) fn combined(mut combiner: Combiner) -> Option<Apply> {
    Some(Box::new(move |batch, out| combiner.combine(batch, out)))
}

/// Whether each of several workers aggregates what it has first, where rows lie by the hash of
/// these columns: then what takes a row back comes to the worker that has the row.
pub(super) fn is_in_two_steps(aggregate: &AggregateSpec, limits: &[LimitStep], places: Option<&[usize]>) -> bool {
    limits.is_empty() && aggregate.is_of_extremes() && places.is_some_and(|columns| !columns.is_empty())
}

impl<'s> Renderer<'s, '_, '_> {
    /// An aggregate: rows move to the worker of their group, made fewer before if they can be.
    pub(super) fn aggregate(&mut self, chain: Chain<'s>, aggregate: &AggregateSpec, limits: &[LimitStep]) -> Chain<'s> {
        let mut spec = AggregateSpec { effort: self.options.effort, ..aggregate.clone() };
        let (keys, shard) = (spec.keys.clone(), self.shard());
        let combine = || combined(Combiner::of_aggregate(aggregate)?.on_shard(shard));
        let mut chain = chain.then_unless_placed(&keys, "Combine", combine);
        let in_two_steps = spec.in_two_steps();
        let in_two_steps =
            in_two_steps.filter(|_| self.scope.peers() > 1 && is_in_two_steps(aggregate, limits, chain.places()));
        if let Some((first, second)) = in_two_steps {
            let first = Box::new(Aggregate::new(first, None).of_part());
            // (The rows of each worker are a group of their own, which is not to move.)
            chain = chain.placed(Some(vec![])).then_timed("Aggregate", vec![], first, None).placed(None);
            chain = chain.counted_in_part(self.user.0);
            spec = second;
        }
        let over_nothing = (keys.is_empty() && self.owns_single_group()).then_some(self.options.as_of);
        let tactic = self.limited(Box::new(Aggregate::new(spec, over_nothing).on_shard(shard)), limits);
        let key_out = (0..keys.len()).collect();
        chain.then_timed("Aggregate", keys, tactic, Some(key_out))
    }
}
