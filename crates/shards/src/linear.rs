//! What a query over each shard says of the query over all of them.
//!
//! A query is *linear* in a split input when the union of its results over shards is its result
//! over the union. Stateless verbs are; a join is when the other side is replicated. Law: [`over`]
//! says `Ok` only if that holds for all contents; it may refuse queries for which it holds too.

use std::sync::Arc;

use anabranch_engine::frame::{CustomAggregate, StateStep, StatesOf};
use anabranch_plan::temporal::Verb;
use anabranch_plan::{AggregateCall, AggregateFunction, Node, Plan};
use datafusion_common::ScalarValue;
use datafusion_expr::{Case, Expr};

use crate::program::INPUTS;
use crate::relational::FirstRows;

/// How the rows of a plan lie in shards, if what each shard holds is right.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lies {
    /// Their union is the result.
    Split,
    /// Each holds the result.
    Replicated,
}

/// How the result of a plan lies, given how its inputs `left` and `right` do.
///
/// # Errors
/// The verb that needs to see all rows, as words for a message.
pub fn over(plan: &Plan, inputs: [Lies; 2]) -> Result<Lies, String> {
    use Lies::{Replicated, Split};
    let below = plan.inputs().into_iter().map(|input| over(input, inputs)).collect::<Result<Vec<Lies>, String>>()?;
    if let Node::Temporal { verb: Verb::Events { input, .. }, .. } = &plan.node {
        let place = INPUTS.iter().position(|name| name == input);
        return Ok(inputs[place.ok_or_else(|| format!("input \"{input}\""))?]);
    }
    if !below.is_empty() && below.iter().all(|lies| *lies == Replicated) {
        return Ok(Replicated);
    }
    match &plan.node {
        node if is_stateless(node) => match below.iter().all(|lies| *lies == Split) {
            true => Ok(Split),
            false => Err("a union of rows that are split with rows that are replicated".to_owned()),
        },
        Node::Temporal { verb: Verb::Join { .. }, .. } if below.contains(&Replicated) => Ok(Split),
        Node::Temporal { verb, .. } if is_of_the_left(verb) && below[1] == Replicated => Ok(Split),
        _ => Err(anabranch_plan::explain::line(plan)),
    }
}

/// Whether a row's result depends on that row alone.
fn is_stateless(node: &Node) -> bool {
    match node {
        Node::Stage { .. } | Node::Unnest { .. } | Node::Union { .. } => true,
        Node::Temporal { verb, .. } => matches!(
            verb,
            Verb::Bounds { .. }
                | Verb::Shift { .. }
                | Verb::Duration { .. }
                | Verb::Lifetime { .. }
                | Verb::Hopping(_)
                | Verb::Quantize { .. }
                | Verb::PointAtEnd
                | Verb::Extend { .. }
                | Verb::ClipDuration { .. }
                | Verb::Chop { .. }
        ),
        _ => false,
    }
}

/// Whether a verb of two inputs looks each row of the first up in the second.
fn is_of_the_left(verb: &Verb) -> bool {
    matches!(verb, Verb::Clip { .. } | Verb::Asof { .. } | Verb::WhereNotExists { .. })
}

/// What puts the results of shards together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Combine {
    /// This aggregate of them.
    By(AggregateFunction),
    /// A further step of the aggregate whose states they are.
    States(StatesOf),
}

impl Combine {
    /// What puts results of a call over results together: the outer value is `None` if the call
    /// does something else with them, the inner one if its results cannot be put together.
    pub(crate) fn after(&self, call: &AggregateCall) -> Option<Option<Combine>> {
        if call.filter.is_some() {
            return None;
        }
        match self {
            Combine::By(function) => {
                let counts_equal = matches!(function, AggregateFunction::Sum | AggregateFunction::BitXor);
                let fits = call.function == *function && !(call.distinct && counts_equal);
                fits.then(|| Some(self.clone()))
            }
            // (Equal states of two shards are two.)
            Combine::States(_) if call.distinct => None,
            Combine::States(of) => match step(call)? {
                StateStep::Merge(whose) if whose == of => Some(Some(self.clone())),
                StateStep::Finish(whose) if whose == of => Some(None),
                _ => None,
            },
        }
    }
}

/// What others put together of each shard's rows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Partial {
    /// Columns of the groups, or of rows.
    pub keys: Vec<String>,
    /// Columns of results, and what puts them together.
    pub results: Vec<(String, Combine)>,
    /// Of no aggregate, but of DISTINCT, or of the first rows: the same once more over all.
    pub again: Option<Option<FirstRows>>,
}

impl Partial {
    /// Rows of which the same is asked once more.
    pub fn again(plan: &Plan, first: Option<FirstRows>) -> Partial {
        let keys = plan.schema.fields().iter().map(|field| field.name().clone()).collect();
        Partial { keys, results: vec![], again: Some(first) }
    }

    /// The same of columns `(from, to)`; `None` if a group's column, or one of an order, is left
    /// out.
    pub fn renamed(self, names: &[(String, String)]) -> Option<Partial> {
        let name = |from: &String| names.iter().find(|(old, _)| old == from).map(|(_, new)| new.clone());
        let order = |first: FirstRows| {
            let order = first.order.iter().map(|(column, down, nulls)| Some((name(column)?, *down, *nulls)));
            Some(FirstRows { order: order.collect::<Option<_>>()?, ..first })
        };
        self.keys.iter().map(name).collect::<Option<Vec<String>>>()?;
        // (A column may come out twice.)
        let keys = names.iter().filter(|(from, _)| self.keys.contains(from)).map(|(_, to)| to.clone()).collect();
        let result = |(from, to): &(String, String)| {
            let (_, by) = self.results.iter().find(|(column, _)| column == from)?;
            Some((to.clone(), by.clone()))
        };
        let again = match self.again {
            Some(Some(first)) => Some(Some(order(first)?)),
            other => other,
        };
        Some(Partial { keys, results: names.iter().filter_map(result).collect(), again })
    }
}

impl Partial {
    /// The same after a stage that gives columns other names, and sums of nothing the value 0;
    /// `None` if it does anything else with them, or leaves a group's column out.
    fn through(self, filter: &[Expr], project: &[Expr], stage: &Plan) -> Option<Partial> {
        let passed = |expr: &Expr| match expr.clone().unalias() {
            Expr::Column(column) => Some(column.name),
            Expr::Case(case) => self.sum_or_zero(&case),
            _ => None,
        };
        if !filter.is_empty() {
            return None;
        }
        let names = project.iter().map(passed).collect::<Option<Vec<String>>>()?;
        let to = stage.schema.fields().iter().map(|field| field.name().clone());
        let names: Vec<(String, String)> = names.into_iter().zip(to).collect();
        self.renamed(&names)
    }

    /// The column of a sum that is taken as 0 where it is NULL: sums of those are the sum, or 0.
    fn sum_or_zero(&self, case: &Case) -> Option<String> {
        let ([(when, then)], Some(instead)) = (case.when_then_expr.as_slice(), &case.else_expr) else { return None };
        let (Expr::IsNotNull(tested), Expr::Column(column)) = (&**when, &**then) else { return None };
        let is_zero = matches!(&**instead, Expr::Literal(value, _)
            if ScalarValue::new_zero(&value.data_type()).is_ok_and(|zero| zero == *value));
        let is_sum = self.results.contains(&(column.name.clone(), Combine::By(AggregateFunction::Sum)));
        (case.expr.is_none() && **tested == **then && is_zero && is_sum).then(|| column.name.clone())
    }
}

/// What must be put together after an aggregate of split rows, if that can be done.
pub fn partial(plan: &Plan) -> Option<Partial> {
    if let Node::Stage { input, filter, project } = &plan.node {
        return partial(input)?.through(filter, project, plan);
    }
    let (calls, keys, below) = aggregate(plan)?;
    over(below, [Lies::Split; 2]).ok()?;
    let name = |at: usize| plan.schema.field(at).name().clone();
    let results = calls.iter().enumerate().map(|(at, call)| Some((name(keys.len() + at), combined(call)?)));
    Some(Partial { keys: (0..keys.len()).map(name).collect(), results: results.collect::<Option<_>>()?, again: None })
}

/// What is left to put together after a query over partial results: the outer value is `None` if
/// the query does something else with them.
pub fn combining(plan: &Plan, partial: &Partial) -> Option<Option<Partial>> {
    // (Stages above see whole results only if nothing is left to put together.)
    if let Node::Stage { input, filter, project } = &plan.node {
        let below = combining(input, partial)?;
        return Some(below.and_then(|below| below.through(filter, project, plan)));
    }
    let (calls, keys, below) = aggregate(plan)?;
    let Node::Stage { input, filter, project } = &below.node else { return None };
    if !filter.is_empty() || !matches!(&input.node, Node::Temporal { verb: Verb::Events { .. }, .. }) {
        return None;
    }
    let column = |at: usize| match &project[at] {
        Expr::Column(column) => Some(&column.name),
        _ => None,
    };
    let are_keys = keys.iter().all(|&key| column(key).is_some_and(|name| partial.keys.contains(name)));
    let mut results = Vec::new();
    for (at, call) in calls.iter().enumerate() {
        let argument = column(call.argument?)?;
        let (_, combine) = partial.results.iter().find(|(name, _)| name == argument)?;
        let left = combine.after(call)?;
        results.push(left.map(|left| (plan.schema.field(keys.len() + at).name().clone(), left)));
    }
    let keys = (0..keys.len()).map(|at| plan.schema.field(at).name().clone()).collect();
    let results: Option<Vec<(String, Combine)>> = results.into_iter().collect();
    are_keys.then(|| results.map(|results| Partial { keys, results, again: None }))
}

fn aggregate(plan: &Plan) -> Option<(&[AggregateCall], &[usize], &Arc<Plan>)> {
    match &plan.node {
        Node::Temporal { verb: Verb::Aggregate { keys, calls }, inputs } => Some((calls, keys, &inputs[0])),
        _ => None,
    }
}

/// What puts the results of an aggregate of each shard together.
pub(crate) fn combined(call: &AggregateCall) -> Option<Combine> {
    use AggregateFunction::{BitAnd, BitOr, BitXor, BoolAnd, BoolOr, Count, Custom, Max, Min, Sum, TopK};
    match &call.function {
        Min | Max | BoolAnd | BoolOr | BitAnd | BitOr => Some(Combine::By(call.function.clone())),
        _ if call.distinct => None,
        Count | Sum => Some(Combine::By(Sum)),
        BitXor => Some(Combine::By(BitXor)),
        TopK(k) => Some(Combine::States(StatesOf::TopK(*k))),
        Custom(..) => match step(call)? {
            StateStep::Store(whose) => Some(Combine::States(whose.clone())),
            StateStep::Merge(_) | StateStep::Finish(_) => None,
        },
        _ => None,
    }
}

/// What a call does with stored states.
fn step(call: &AggregateCall) -> Option<&StateStep> {
    match &call.function {
        AggregateFunction::Custom(custom, _) => CustomAggregate::of(custom).step(),
        _ => None,
    }
}
