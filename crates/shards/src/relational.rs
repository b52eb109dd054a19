//! Queries of SQL over each shard: where their rows lie, and what is left to put together.
//!
//! Law: as for [`linear`](crate::linear) and [`safety`](crate::safety); the rules of relational
//! nodes are those of [`anabranch_plan::placement`].

use anabranch_plan::explain::line;
use anabranch_plan::placement::{PlacementRule, PlanPlacement, over};
use anabranch_plan::temporal::Verb;
use anabranch_plan::{Node, Plan, RankedBy, TopK};
use datafusion_expr::Expr;

use crate::layout::{ShardGroup, To};
use crate::linear::{Combine, Partial};
use crate::own_values::is_by_own_values;
use crate::placement::{Placement, Spread};
use crate::program::INPUTS;

/// The relational part of a query of SQL; `None` for a frame.
pub fn relational(plan: &Plan) -> Option<&Plan> {
    match &plan.node {
        Node::Temporal { verb: Verb::OfChanges, inputs } => Some(&inputs[0]),
        _ => None,
    }
}

/// What is known of the rows of a plan.
struct KnownRows {
    /// How they lie across processes, and within each.
    places: [PlanPlacement; 2],
    /// What is left to put together.
    partial: Option<Partial>,
}

/// What is known of a step's result, given where its inputs lie and what is left of them.
///
/// # Errors
/// The node that needs to see all rows, or whole results, as words for a message.
pub fn known(plan: &Plan, inputs: &[(&Placement, Option<&Partial>)]) -> Result<(Placement, Option<Partial>), String> {
    let KnownRows { places: [across, within], partial } = rows(plan, inputs)?;
    let spread = |place| to_spread(place, plan, inputs);
    Ok((Placement { across: spread(across), within: spread(within) }, partial))
}

fn rows(plan: &Plan, inputs: &[(&Placement, Option<&Partial>)]) -> Result<KnownRows, String> {
    if let Node::Temporal { verb: Verb::Events { input, .. }, .. } = &plan.node {
        let step = INPUTS.iter().position(|name| name == input).and_then(|at| inputs.get(at));
        let (placement, partial) = step.ok_or_else(|| format!("input \"{input}\""))?;
        let places = [of_spread(&placement.across, plan), of_spread(&placement.within, plan)];
        return Ok(KnownRows { places, partial: partial.cloned() });
    }
    let lie: Vec<&Placement> = inputs.iter().map(|(placement, _)| *placement).collect();
    if let Node::Join { left, .. } = &plan.node
        && is_by_own_values(plan, &lie)
    {
        let left = rows(left, inputs)?;
        let places = left.places.map(|place| over(plan, &[place, PlanPlacement::Replicated]));
        if let ([Some(across), Some(within)], None) = (places, left.partial) {
            return Ok(KnownRows { places: [across, within], partial: None });
        }
    }
    let below = plan.inputs().into_iter().map(|input| rows(input, inputs)).collect::<Result<Vec<_>, String>>()?;
    let at = |level: usize| below.iter().map(|rows| rows.places[level].clone()).collect::<Vec<_>>();
    let places = [0, 1].map(|level| over(plan, &at(level)));
    let is_whole = places.iter().all(Option::is_some);
    let places = places.map(|place| place.unwrap_or(PlanPlacement::Arbitrary));
    if below.iter().all(|rows| rows.partial.is_none()) {
        let is_split = || below.iter().all(|rows| rows.places.iter().all(|place| *place != PlanPlacement::Replicated));
        let partial = match is_whole {
            true => None,
            false => Some(partial(plan).filter(|_| is_split()).ok_or_else(|| line(plan))?),
        };
        return Ok(KnownRows { places, partial });
    }
    let [KnownRows { partial: Some(before), .. }] = below.as_slice() else {
        return Err("partial results in a query of two inputs".to_owned());
    };
    if let Node::Stage { filter, project, .. } = &plan.node {
        let renamed = filter.is_empty().then(|| before.clone().renamed(&chosen(plan, project)));
        let partial = renamed.flatten().ok_or_else(|| format!("partial results are computed with: {}", line(plan)))?;
        return Ok(KnownRows { places, partial: Some(partial) });
    }
    let left = combining(plan, before).ok_or_else(|| {
        format!("partial results are not put together by a plain aggregate of theirs: {}", line(plan))
    })?;
    match (is_whole, left) {
        (true, _) => Ok(KnownRows { places, partial: None }),
        (false, Some(partial)) => Ok(KnownRows { places, partial: Some(partial) }),
        (false, None) => Err(format!("partial results are computed with: {}", line(plan))),
    }
}

/// Columns that a projection only repeats: from, to.
fn chosen(plan: &Plan, project: &[Expr]) -> Vec<(String, String)> {
    let names = plan.schema.fields().iter().map(|field| field.name().clone());
    project.iter().zip(names).filter_map(|(expr, to)| Some((column(expr)?.clone(), to))).collect()
}

fn of_spread(spread: &Spread, plan: &Plan) -> PlanPlacement {
    let together = |rule, columns: &[String]| {
        let at = |name: &String| plan.schema.index_of_column_by_name(None, name);
        let columns = columns.iter().map(at).collect::<Option<Vec<usize>>>();
        columns.map_or(PlanPlacement::Arbitrary, |columns| PlanPlacement::Together { rule, columns })
    };
    match spread {
        Spread::Arbitrary => PlanPlacement::Arbitrary,
        Spread::Placed { column, shards } => {
            together(PlacementRule::Ranges(rule_of_turns(shards)), std::slice::from_ref(column))
        }
        Spread::Replicated => PlanPlacement::Replicated,
        Spread::One => PlanPlacement::One,
        Spread::ByKey(columns, To::Same) => together(PlacementRule::Hash(None), columns),
        Spread::ByKey(columns, To::Shards(shards)) => together(PlacementRule::Hash(Some(*shards)), columns),
        // (In the shards without rows, an aggregate of nothing is a row.)
        Spread::ByKey(columns, To::Group(_)) if columns.is_empty() => PlanPlacement::Arbitrary,
        Spread::ByKey(columns, To::Group(group)) => together(PlacementRule::Ranges(rule_of(group)), columns),
        Spread::ByNumber(column) => together(PlacementRule::Number, std::slice::from_ref(column)),
        Spread::Packed { source, column } => {
            together(PlacementRule::Ranges(source.clone()), std::slice::from_ref(column))
        }
    }
}

/// What tells the hashes of a group apart from other rules: no source has such a name.
fn rule_of(group: &ShardGroup) -> String {
    format!("\0{group}")
}

/// The same of the turns of a list.
fn rule_of_turns(shards: &[usize]) -> String {
    format!("\0by turns {shards:?}")
}

/// The list of the inputs by whose turns a rule is.
fn turns_of(rule: &str, inputs: &[(&Placement, Option<&Partial>)]) -> Option<Vec<usize>> {
    let spreads = inputs.iter().flat_map(|(placement, _)| [&placement.across, &placement.within]);
    let mut lists = spreads.filter_map(|spread| match spread {
        Spread::Placed { shards, .. } => Some(shards),
        _ => None,
    });
    lists.find(|shards| rule_of_turns(shards) == rule).cloned()
}

/// The group of the inputs that a rule is of.
fn group_of(rule: &str, inputs: &[(&Placement, Option<&Partial>)]) -> Option<ShardGroup> {
    let spreads = inputs.iter().flat_map(|(placement, _)| [&placement.across, &placement.within]);
    let mut groups = spreads.filter_map(|spread| match spread {
        Spread::ByKey(_, To::Group(group)) => Some(group),
        _ => None,
    });
    groups.find(|group| rule_of(group) == rule).cloned()
}

fn to_spread(place: PlanPlacement, plan: &Plan, inputs: &[(&Placement, Option<&Partial>)]) -> Spread {
    let PlanPlacement::Together { rule, columns } = place else {
        return match place {
            PlanPlacement::Replicated => Spread::Replicated,
            PlanPlacement::One => Spread::One,
            _ => Spread::Arbitrary,
        };
    };
    let mut names: Vec<String> = columns.iter().map(|at| name(plan, *at)).collect();
    match rule {
        PlacementRule::Hash(shards) => Spread::ByKey(names, shards.map_or(To::Same, To::Shards)),
        PlacementRule::Number => Spread::ByNumber(names.swap_remove(0)),
        PlacementRule::Ranges(rule) => match (group_of(&rule, inputs), turns_of(&rule, inputs)) {
            (Some(group), _) => Spread::ByKey(names, To::Group(group)),
            (None, Some(shards)) => Spread::Placed { column: names.swap_remove(0), shards },
            (None, None) => Spread::Packed { source: rule, column: names.swap_remove(0) },
        },
    }
}

/// What must be put together after a node over rows of each shard, if that can be done: it is an
/// aggregate, DISTINCT, or the first rows of all.
fn partial(plan: &Plan) -> Option<Partial> {
    match &plan.node {
        Node::Aggregate { keys, calls, .. } => {
            let results = (keys.len()..)
                .zip(calls)
                .map(|(at, call)| Some((name(plan, at), crate::linear::combined(call)?)))
                .collect::<Option<_>>()?;
            Some(Partial { keys: (0..keys.len()).map(|at| name(plan, at)).collect(), results, again: None })
        }
        Node::Distinct { .. } => Some(Partial::again(plan, None)),
        Node::TopK { top, .. } if top.group.is_empty() && is_of_rows(top) && !top.numbered && top.offset == 0 => {
            Some(Partial::again(plan, Some(named(top, plan))))
        }
        _ => None,
    }
}

/// What is left to put together after a node over partial results, where they do not lie together:
/// the outer value is `None` if the node does something else with them, the inner one if its rows
/// are none that can be put together.
fn combining(plan: &Plan, before: &Partial) -> Option<Option<Partial>> {
    match (&plan.node, &before.again) {
        (Node::Distinct { .. }, Some(None)) => Some(Some(Partial::again(plan, None))),
        (Node::TopK { top, .. }, Some(Some(first))) => {
            let order = named(top, plan).order;
            let needs = top.limit.map(|limit| limit.saturating_add(top.offset));
            let are_enough = needs.zip(first.limit).is_some_and(|(needs, had)| needs <= had);
            (top.group.is_empty() && is_of_rows(top) && order == first.order && are_enough).then_some(())?;
            Some(partial(plan))
        }
        (Node::Aggregate { input, keys, calls }, None) => {
            keys.iter().all(|key| before.keys.contains(&name(input, *key))).then_some(())?;
            let mut results = Vec::new();
            for (at, call) in (keys.len()..).zip(calls) {
                let argument = name(input, call.argument?);
                let (_, combine) = before.results.iter().find(|(name, _)| *name == argument)?;
                results.push(combine.after(call)?.map(|left| (name(plan, at), left)));
            }
            let keys = (0..keys.len()).map(|at| name(plan, at)).collect();
            let results: Option<Vec<(String, Combine)>> = results.into_iter().collect();
            Some(results.map(|results| Partial { keys, results, again: None }))
        }
        _ => None,
    }
}

fn name(plan: &Plan, at: usize) -> String {
    plan.schema.field(at).name().clone()
}

/// The first rows of all, by names of columns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FirstRows {
    /// Column, descending, NULLs first.
    pub order: Vec<(String, bool, bool)>,
    /// How many.
    pub limit: Option<usize>,
}

/// Whether so many rows are kept, and not those that are tied with them.
fn is_of_rows(top: &TopK) -> bool {
    top.ranked == RankedBy::Row
}

fn named(top: &TopK, plan: &Plan) -> FirstRows {
    let key =
        |key: &anabranch_plan::SortKey| (plan.schema.field(key.column).name().clone(), key.descending, key.nulls_first);
    FirstRows { order: top.order.iter().map(key).collect(), limit: top.limit }
}

fn column(expr: &Expr) -> Option<&String> {
    match expr {
        Expr::Column(column) => Some(&column.name),
        Expr::Alias(alias) => column(&alias.expr),
        _ => None,
    }
}
