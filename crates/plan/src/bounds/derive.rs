//! The bounds of a plan's columns, from the relations upwards.
//!
//! | node | a column keeps its bound |
//! |---|---|
//! | scan | as the relation promises |
//! | stage | if computed by what rises; a condition `c >= d` gives `c` the bound of `d` as well |
//! | unnest | a list's bound is that of its elements |
//! | union, set operations | the least of all inputs' |
//! | aggregate, top-k, window functions, row patterns | keys, groups, partitions; never results, which tell of old rows when they change |
//! | window functions whose frames reach back only | the first order column, too: what comes changes results behind it |
//! | joins | tied columns: the least of the own bound and what the other side meets; none of NOT IN |
//! | as-of join, backward | the left time: the least of both times' |
//! | sessions | partition columns; the last time: the time's less the gap, since a row that comes joins no session that has ended before |
//! | as-of join, forward | the left time: the least of the own and the right one less the tolerance; of an inner join the right time: the least of both |

use super::bound::{Bound, Promised};
use super::matching::{Matched, comparisons, matched, unqualified};
use super::monotone::{bound_of, bounds_of};
use crate::ir::{JoinKind, Node, Plan};
use anabranch_spec::aggregate::AggregateFunction;
use anabranch_spec::asof::Strategy;
use anabranch_spec::order::SortKey;
use datafusion_expr::utils::split_conjunction;
use datafusion_expr::{BinaryExpr, Expr, ExprSchemable, Operator};

/// The bound of each column of a plan; `None` for a column of which any value may still change.
pub fn bounds(plan: &Plan, promised: &dyn Promised) -> Vec<Option<Bound>> {
    let none = || vec![None; plan.schema.fields().len()];
    let of = |input: &Plan| bounds(input, promised);
    match &plan.node {
        Node::Scan { relation, columns } => match promised.promises(relation) {
            Some(promises) => columns.iter().map(|column| promises.bounds.get(column).cloned()).collect(),
            None => none(),
        },
        Node::Constant { .. } => vec![Some(Bound::Never); plan.schema.fields().len()],
        Node::Stage { input, filter, project } => {
            let below = filtered(input, filter, of(input));
            bounds_of(project, &input.schema, &below)
        }
        Node::Unnest { input, .. } => of(input),
        Node::Union { inputs } => {
            let all: Vec<Vec<Option<Bound>>> = inputs.iter().map(|input| of(input)).collect();
            (0..plan.schema.fields().len()).map(|column| least_of(all.iter().map(|of| &of[column]))).collect()
        }
        Node::SetOperation { left, right, .. } => {
            let both = [of(left), of(right)];
            (0..plan.schema.fields().len()).map(|column| least_of(both.iter().map(|of| &of[column]))).collect()
        }
        Node::Distinct { input } => of(input),
        Node::Aggregate { input, keys, .. } => only(plan, keys.iter().copied().enumerate(), &of(input)),
        Node::TopK { input, top } => only(plan, top.group.iter().map(|&column| (column, column)), &of(input)),
        Node::Window { input, window } => {
            let below = of(input);
            let mut all = only(plan, window.partition.iter().map(|&column| (column, column)), &below);
            let rises = |key: &&SortKey| !key.descending && !key.nulls_first && window.reaches_back_only();
            if let Some(first) = window.order.first().filter(rises) {
                all[first.column] = below[first.column].clone();
            }
            all
        }
        Node::Asof { left, right, asof } => {
            let mut all = none();
            let times = [of(left).swap_remove(asof.left_time), of(right).swap_remove(asof.right_time)];
            match asof.strategy {
                Strategy::Backward => all[asof.left_time] = least_of(times.iter()),
                Strategy::Forward => {
                    all[asof.left_time] = met_ahead(&times, asof.tolerance);
                    if !asof.outer {
                        // (Matches below both bounds are frozen, and so are the rows that have
                        // them.)
                        all[left.schema.fields().len() + asof.right_time] = least_of(times.iter());
                    }
                }
                Strategy::Nearest => {}
            }
            all
        }
        Node::Session { input, session } => {
            let below = of(input);
            let mut all = only(plan, session.partition.iter().map(|&column| (column, column)), &below);
            let gap = i64::try_from(session.gap).ok();
            all[input.schema.fields().len() + 1] =
                gap.and_then(|gap| Some(below[session.time].clone()?.plus(gap.checked_neg()?)));
            all
        }
        Node::Recognize { input, recognize } => only(plan, recognize.partition.iter().copied().enumerate(), &of(input)),
        Node::Join { .. } => joined(plan, promised),
        _ => none(),
    }
}

/// The bounds of some columns of a plan, each the bound of a column of its input.
fn only(plan: &Plan, places: impl Iterator<Item = (usize, usize)>, below: &[Option<Bound>]) -> Vec<Option<Bound>> {
    let mut all = vec![None; plan.schema.fields().len()];
    places.for_each(|(place, of)| all[place] = below[of].clone());
    all
}

/// The least of several bounds, if all are known.
pub(super) fn least_of<'a>(mut bounds: impl Iterator<Item = &'a Option<Bound>>) -> Option<Bound> {
    let first = bounds.next()?.clone()?;
    bounds.try_fold(first, |least, bound| Some(least.least(bound.clone()?)))
}

/// Bounds of rows that pass conditions: `c > d` gives `c` the bound of `d`.
fn filtered(input: &Plan, filter: &[Expr], mut bounds: Vec<Option<Bound>>) -> Vec<Option<Bound>> {
    for condition in filter.iter().flat_map(|filter| split_conjunction(filter)) {
        let is_strict = matches!(condition, Expr::BinaryExpr(BinaryExpr { op: Operator::Gt | Operator::Lt, .. }));
        for (greater, less) in comparisons(condition) {
            let Expr::Column(column) = greater else { continue };
            let Some(column) = input.schema.maybe_index_of_column(column) else { continue };
            let Some(bound) = bound_of(less, &input.schema, &bounds) else { continue };
            let bound = bound.plus(i64::from(is_strict));
            bounds[column] = Some(match bounds[column].take() {
                Some(before) => before.greatest(bound),
                None => bound,
            });
        }
    }
    bounds
}

/// The least left time of a change of an as-of join forward: a right row that comes is the match of
/// left rows before it, as far as the tolerance reaches.
fn met_ahead([left, right]: &[Option<Bound>; 2], tolerance: Option<u64>) -> Option<Bound> {
    let reach = i64::try_from(tolerance?).ok()?;
    Some(left.clone()?.least(right.clone()?.plus(reach.checked_neg()?)))
}

fn joined(plan: &Plan, promised: &dyn Promised) -> Vec<Option<Bound>> {
    let Node::Join { left, right, kind, output, .. } = &plan.node else { return vec![] };
    let (of_left, of_right) = (bounds(left, promised), bounds(right, promised));
    let n_left = of_left.len();
    let mut all: Vec<Option<Bound>> = vec![None; n_left + of_right.len()];
    let says = matched(plan, &of_left, &of_right).into_iter();
    let says = says.filter(|_| *kind != JoinKind::LeftAntiNullAware);
    for Matched { side, column, met_from, own, .. } in says {
        let Some(own) = own else { continue };
        let place = &mut all[side * n_left + column];
        let bound = own.least(met_from);
        *place = Some(match place.take() {
            Some(before) => before.greatest(bound),
            None => bound,
        });
    }
    if let Some((Expr::Column(value), bound)) = closing(plan, promised)
        && let Some(column) = left.schema.maybe_index_of_column(&value)
    {
        all[column] = Some(bound);
    }
    if let Some((Expr::Column(value), bound)) = expiring(plan, promised)
        && let Some(column) = left.schema.maybe_index_of_column(&value)
    {
        all[column] = Some(match all[column].take() {
            Some(before) => before.greatest(bound),
            None => bound,
        });
    }
    // (Of a mark join the mark stands where the right columns would begin.)
    if matches!(kind, JoinKind::LeftSemi | JoinKind::LeftAnti | JoinKind::LeftAntiNullAware | JoinKind::LeftMark) {
        all.truncate(n_left);
    }
    output.iter().map(|column| all.get(*column).cloned().flatten()).collect()
}

/// For a join that lets rows through whose value a watermark has reached (`EMIT ON WINDOW CLOSE`):
/// the value, and its bound. Rows with values below are out, and change no more.
pub fn closing(plan: &Plan, promised: &dyn Promised) -> Option<(Expr, Bound)> {
    let Node::Join { left, right, kind: JoinKind::Inner, left_key, residual: Some(residual), .. } = &plan.node else {
        return None;
    };
    let Expr::BinaryExpr(BinaryExpr { left: value, op, right: scalar }) = residual else { return None };
    let mark = held_mark(right, promised).filter(|_| left_key.is_empty())?;
    if !of_side(value, "left") || !matches!(scalar.as_ref(), Expr::Column(_)) || !of_side(scalar, "right") {
        return None;
    }
    let passed = match op {
        Operator::LtEq => mark.plus(1),
        Operator::Lt => mark,
        _ => return None,
    };
    let value = unqualified(value);
    let of_rows = bound_of(&value, &left.schema, &bounds(left, promised))?;
    Some((value, of_rows.least(passed)))
}

/// For a join that lets rows through whose value is not behind a rising scalar (a temporal filter,
/// `ts >= now() - INTERVAL '1 day'`): the value, and its bound. Rows with values below are gone,
/// and do not come back.
pub fn expiring(plan: &Plan, promised: &dyn Promised) -> Option<(Expr, Bound)> {
    let Node::Join { left, right, kind: JoinKind::Inner, left_key, residual: Some(residual), .. } = &plan.node else {
        return None;
    };
    let Expr::BinaryExpr(BinaryExpr { left: first, op, right: second }) = residual else { return None };
    let (value, op, scalar) = match of_side(first, "left") {
        true => (first, *op, second),
        false => (second, op.swap()?, first),
    };
    if !left_key.is_empty() || !of_side(value, "left") || !of_side(scalar, "right") {
        return None;
    }
    let (value, scalar) = (unqualified(value), unqualified(scalar));
    let is_alike = value.get_type(left.schema.as_ref()).ok()? == scalar.get_type(right.schema.as_ref()).ok()?;
    let bound = bound_of(&scalar, &right.schema, &held(right, promised)).filter(|_| is_alike)?;
    match op {
        Operator::GtEq => Some((value, bound)),
        Operator::Gt => Some((value, bound.plus(1))),
        _ => None,
    }
}

/// Whether an expression over a join's columns reads one side, and no other.
fn of_side(expr: &Expr, side: &str) -> bool {
    let columns = expr.column_refs();
    !columns.is_empty() && columns.iter().all(|column| column.relation.as_ref().is_some_and(|of| of.table() == side))
}

/// What the columns of the one row of a plan, made of a watermark, do not fall below.
fn held(plan: &Plan, promised: &dyn Promised) -> Vec<Option<Bound>> {
    match &plan.node {
        Node::Stage { input, filter, project } if filter.is_empty() => {
            let below = held(input, promised);
            bounds_of(project, &input.schema, &below)
        }
        _ => match held_mark(plan, promised) {
            Some(mark) => vec![Some(mark)],
            None => vec![None; plan.schema.fields().len()],
        },
    }
}

/// The watermark whose greatest value the one row of a plan is.
fn held_mark(plan: &Plan, promised: &dyn Promised) -> Option<Bound> {
    match &plan.node {
        Node::Stage { input, filter, project } => {
            let is_pick = filter.is_empty() && matches!(&project[..], [Expr::Column(_) | Expr::Alias(_)]);
            held_mark(input, promised).filter(|_| is_pick)
        }
        Node::Aggregate { input, keys, calls } => {
            let is_greatest = keys.is_empty()
                && calls.len() == 1
                && calls[0].function == AggregateFunction::Max
                && calls[0].filter.is_none();
            let Node::Scan { relation, .. } = &input.node else { return None };
            promised.promises(relation)?.mark.clone().filter(|_| is_greatest)
        }
        _ => None,
    }
}

/// Whether no row of a plan is ever taken back.
pub fn is_append_only(plan: &Plan, promised: &dyn Promised) -> bool {
    match &plan.node {
        Node::Scan { relation, .. } => promised.promises(relation).is_some_and(|promises| promises.is_append_only),
        Node::Constant { .. } => true,
        Node::Stage { input, .. } | Node::Unnest { input, .. } | Node::Distinct { input } => {
            is_append_only(input, promised)
        }
        Node::Join { left, right, kind: JoinKind::Inner | JoinKind::LeftSemi, .. } => {
            is_append_only(left, promised) && is_append_only(right, promised)
        }
        Node::Union { inputs } => inputs.iter().all(|input| is_append_only(input, promised)),
        _ => false,
    }
}
