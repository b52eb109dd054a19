//! A relation joined with its own aggregate by the aggregate's key, to be summed up once more.
//!
//! ```text
//! sum by order of quantity over (orders ⋈ line items ⋈ (orders whose line items' sum of quantity is large))
//! = sum by order of the sum over (orders ⋈ (orders whose line items' sum of quantity is large, with that sum))
//! ```
//!
//! The rows of a group are not needed one by one when all that is done with them is a sum (or a
//! least or greatest value) that the aggregate has already: the relation need not be remembered at
//! all. Holds when the relation is used for the calls and the equality only, and every call is such
//! a one.
//!
//! Source: Yan and Larson, *Eager Aggregation and Lazy Aggregation*, VLDB 1995, for aggregates in
//! two steps.

use std::sync::Arc;

use super::build::{column, field, replace, schema, width};
use super::order;
use super::region::{ColumnId, Region, name, named};
use crate::ir::{Node, Plan};
use crate::positions::position;
use anabranch_spec::aggregate::{AggregateCall, AggregateFunction};
use datafusion_expr::Expr;

/// The aggregate over a region without the relation, if there is a relation it can do without.
pub(super) fn without_self_join(plan: &Arc<Plan>) -> Option<Arc<Plan>> {
    let Node::Aggregate { input, keys, calls } = &plan.node else {
        return None;
    };
    let region = Region::of(input)?;
    let relation = argument_leaf(&region, calls)?;
    (0..region.leaves.len())
        .filter(|leaf| *leaf != relation)
        .find_map(|leaf| Pair { region: &region, relation, aggregate: leaf }.joined_once(plan, keys, calls))
}

/// The one leaf that all calls take their arguments from.
fn argument_leaf(region: &Region, calls: &[AggregateCall]) -> Option<usize> {
    let mut leaves = calls.iter().map(|call| {
        let plain = !call.distinct && call.filter.is_none();
        let merges = matches!(call.function, AggregateFunction::Sum | AggregateFunction::Min | AggregateFunction::Max);
        let argument = call.argument.filter(|_| plain && merges)?;
        Some(region.leaf(region.output[argument]))
    });
    let first = leaves.next()??;
    leaves.all(|leaf| leaf == Some(first)).then_some(first)
}

/// A leaf, and another that may be its aggregate.
struct Pair<'a> {
    region: &'a Region,
    relation: usize,
    aggregate: usize,
}

impl Pair<'_> {
    fn joined_once(&self, plan: &Plan, keys: &[usize], calls: &[AggregateCall]) -> Option<Arc<Plan>> {
        let region = self.region;
        let (grouped, shown) = below_stages(&region.leaves[self.aggregate])?;
        let Node::Aggregate { input, keys: group, calls: known } = &grouped.node else {
            return None;
        };
        if input != &region.leaves[self.relation] || group.is_empty() {
            return None;
        }
        // The aggregate's column of each group key, which must equal the relation's.
        let mut key_columns = Vec::with_capacity(group.len());
        for (n, key) in group.iter().enumerate() {
            let of_relation = self.column(self.relation, *key)?;
            let of_aggregate = self.column(self.aggregate, shown.iter().position(|at| *at == n)?)?;
            if !region.equals(of_relation).contains(&of_aggregate) {
                return None;
            }
            key_columns.push((of_relation, of_aggregate));
        }
        // Nothing else of the relation is used, but by the calls.
        let own = |column: &ColumnId| region.leaf(*column) == self.relation;
        let is_key = |column: &ColumnId| key_columns.iter().any(|(of_relation, _)| of_relation == column);
        let ends = region.edges.iter().flat_map(|(a, b)| [*a, *b]);
        let conditions = region.conditions.iter().flat_map(Region::condition_columns);
        let groups = keys.iter().map(|key| region.output[*key]);
        if ends.chain(groups).any(|column| own(&column) && !is_key(&column)) || conditions.into_iter().any(|c| own(&c))
        {
            return None;
        }
        let mut results = Vec::with_capacity(calls.len());
        for call in calls {
            let argument = region.columns[region.output[call.argument?]].1;
            let same = known.iter().position(|other| {
                other.function == call.function
                    && other.argument == Some(argument)
                    && !other.distinct
                    && other.filter.is_none()
            });
            results.push(group.len() + same?);
        }
        Some(self.rebuilt(plan, keys, calls, &key_columns, &results))
    }

    /// The number of a leaf's column.
    fn column(&self, leaf: usize, at: usize) -> Option<ColumnId> {
        self.region.columns.iter().position(|column| *column == (leaf, at))
    }

    /// The aggregate over the region without the relation; the other leaf shows the `results` of
    /// its calls besides.
    fn rebuilt(
        &self,
        plan: &Plan,
        keys: &[usize],
        calls: &[AggregateCall],
        key_columns: &[(ColumnId, ColumnId)],
        results: &[usize],
    ) -> Arc<Plan> {
        let region = self.region;
        let other = |column: ColumnId| {
            let known = key_columns.iter().find(|(of_relation, _)| *of_relation == column);
            known.map_or(column, |(_, of_aggregate)| *of_aggregate)
        };
        let n_shown = width(&region.leaves[self.aggregate]);
        let mut leaves = region.leaves.clone();
        leaves[self.aggregate] = showing(&leaves[self.aggregate], results);
        let mut columns = region.columns.clone();
        columns.extend((0..results.len()).map(|n| (self.aggregate, n_shown + n)));
        let result_column = |n: usize| region.columns.len() + n;

        let edges = region.edges.iter().map(|(a, b)| (other(*a), other(*b))).filter(|(a, b)| a != b).collect();
        // The relation stays in its place without any column or use, and is taken out of the
        // numbers.
        let moved_leaf = |leaf: usize| if leaf > self.relation { leaf - 1 } else { leaf };
        let mut output: Vec<ColumnId> = keys.iter().map(|key| other(region.output[*key])).collect();
        output.extend((0..results.len()).map(result_column));
        leaves.remove(self.relation);
        let columns = columns
            .into_iter()
            .map(|(leaf, at)| if leaf == self.relation { (usize::MAX, at) } else { (moved_leaf(leaf), at) })
            .collect::<Vec<_>>();
        let fields = output.iter().map(|id| field(&leaves[columns[*id].0], columns[*id].1));
        let schema = schema(fields);
        let origin = Arc::new(Plan { node: region.origin.node.clone(), schema });
        // NULL keys matched nothing.
        let present = key_columns.iter().map(|(_, of_aggregate)| Expr::IsNotNull(Box::new(name(*of_aggregate))));
        let conditions = region.conditions.iter().cloned().chain(present).collect();
        let region = Region { leaves, columns, edges, conditions, output, origin };
        let input = if region.leaves.len() == 1 { only_leaf(&region) } else { order::ordered(&region) };
        let calls = calls
            .iter()
            .enumerate()
            .map(|(n, call)| AggregateCall { argument: Some(keys.len() + n), ..call.clone() })
            .collect();
        let keys = (0..keys.len()).collect();
        Arc::new(Plan { node: Node::Aggregate { input, keys, calls }, schema: plan.schema.clone() })
    }
}

/// A region of one leaf: its conditions and its output are a stage.
fn only_leaf(region: &Region) -> Arc<Plan> {
    let leaf = &region.leaves[0];
    let own = |id: ColumnId| column(leaf, region.columns[id].1);
    let filter = region.conditions.iter().map(|condition| replace(condition, &|column| own(named(column)))).collect();
    let project = region.output.iter().map(|id| own(*id)).collect();
    let node = Node::Stage { input: Arc::clone(leaf), filter, project };
    Arc::new(Plan { node, schema: region.origin.schema.clone() })
}

/// The plan below stages that choose and filter, and its column behind each of the plan's.
fn below_stages(plan: &Arc<Plan>) -> Option<(&Arc<Plan>, Vec<usize>)> {
    match &plan.node {
        Node::Stage { input, project, .. } => {
            let (below, shown) = below_stages(input)?;
            let chosen: Option<Vec<usize>> = project.iter().map(|e| position(e, &input.schema)).collect();
            Some((below, chosen?.into_iter().map(|at| shown[at]).collect()))
        }
        _ => Some((plan, (0..width(plan)).collect())),
    }
}

/// The plan with more columns of what is below its stages, after its own.
fn showing(plan: &Arc<Plan>, more: &[usize]) -> Arc<Plan> {
    let Node::Stage { input, filter, project } = &plan.node else {
        // What is below shows everything: the columns are taken again.
        let wanted: Vec<usize> = (0..width(plan)).chain(more.iter().copied()).collect();
        return super::build::choose(plan, &wanted);
    };
    let input_width = width(input);
    let input = if matches!(input.node, Node::Stage { .. }) { showing(input, more) } else { Arc::clone(input) };
    let place = |n: usize| if width(&input) > input_width { input_width + n } else { more[n] };
    let mut project = project.clone();
    project.extend((0..more.len()).map(|n| column(&input, place(n))));
    let fields = (0..width(plan)).map(|at| field(plan, at)).chain((0..more.len()).map(|n| field(&input, place(n))));
    let schema = schema(fields.collect::<Vec<_>>());
    Arc::new(Plan { node: Node::Stage { input, filter: filter.clone(), project }, schema })
}
