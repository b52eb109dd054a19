//! Plans that make the same rows but for the order and the names of columns.

use std::sync::Arc;

use anabranch_plan::positions::position_near;
use anabranch_plan::{Node, Plan};
use datafusion_expr::Expr;

/// The order in which to take the columns of `wanted` (positions in a plan, which are at `columns`
/// in the arrangement) to get `key`.
pub(crate) fn order_of(key: &[usize], wanted: &[usize], columns: &[usize]) -> Option<Vec<usize>> {
    if key.len() != wanted.len() {
        return None;
    }
    let place = |column: &usize| wanted.iter().position(|wanted| columns[*wanted] == *column);
    let places = key.iter().map(place).collect::<Option<Vec<usize>>>()?;
    let mut seen = places.clone();
    seen.sort_unstable();
    seen.iter().copied().eq(0..wanted.len()).then_some(places)
}

/// The plan that makes the rows, without stages above it that only pick columns, and where the
/// columns of `plan` are in it. Picks above a join stay: they are fused into it and save columns.
pub(crate) fn base_of(plan: &Arc<Plan>) -> (&Arc<Plan>, Vec<usize>) {
    let all = || (0..plan.schema.fields().len()).collect::<Vec<usize>>();
    let Node::Stage { input, filter, project } = &plan.node else { return (plan, all()) };
    let Some(picks) = picks(input, filter, project) else { return (plan, all()) };
    let is_whole = picks.iter().copied().eq(0..input.schema.fields().len());
    if !is_whole && matches!(input.node, Node::Join { .. }) {
        return (plan, all());
    }
    let (base, columns) = base_of(input);
    (base, picks.into_iter().map(|pick| columns[pick]).collect())
}

/// The plan without stages above it that change nothing but names.
pub(crate) fn unnamed(plan: &Arc<Plan>) -> &Arc<Plan> {
    let Node::Stage { input, filter, project } = &plan.node else { return plan };
    match picks(input, filter, project) {
        Some(picks) if picks.iter().copied().eq(0..input.schema.fields().len()) => unnamed(input),
        _ => plan,
    }
}

/// The columns that a stage picks, if that is all it does.
pub(crate) fn picks(input: &Plan, filter: &[Expr], project: &[Expr]) -> Option<Vec<usize>> {
    let pick = |(at, expr): (usize, &Expr)| match expr {
        Expr::Alias(alias) => position_near(&alias.expr, &input.schema, at),
        expr => position_near(expr, &input.schema, at),
    };
    filter.is_empty().then(|| project.iter().enumerate().map(pick).collect())?
}
