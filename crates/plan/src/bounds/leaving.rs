//! What leaves the state of a node, and when.
//!
//! | node | what leaves |
//! |---|---|
//! | aggregate, distinct, set operation | groups of which a key is below its bound |
//! | top-k, window functions | rows of groups, or partitions, below their bound |
//! | window functions of which all frames begin and end near their row | rows below the bound of the first order column, and of what frames begin from, but for the last ones that frames reach by their number |
//! | inner join | rows below what changes of the other side still meet |
//! | other joins | rows of a kept side alike: what comes of them is settled; of the other side, rows that only settled rows and rows that do not come would meet, since kept rows count those that they meet |
//! | join with the clock (a temporal filter) | rows that it has let out for good |
//! | as-of join, backward | left rows below both times' bounds: a right row to come is ahead of them; of a key's right rows below both, all but the last |
//! | as-of join, forward, within a tolerance | rows of both sides below the left times of changes to come |
//! | as-of join, forward, without | left rows that have matched a right row below both times' bounds; of a key's right rows below both, all but the last |
//! | as-of join to the nearest row | nothing |
//! | sessions | rows of sessions that have ended further than the gap before the bound of their time |
//! | row patterns | partitions below their bound; of others the rows that no match to come begins at or reads, where the first order column is bounded |

use super::bound::{Bound, Promised};
use super::derive::{bounds, closing, expiring, least_of};
use super::matching::{Matched, matched};
use crate::ir::{JoinKind, Node, Plan};
use anabranch_spec::asof::Strategy;
use anabranch_spec::window::Window;

/// Rows of an input that leave: those with a value of a column below a bound.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Leaving {
    /// Position in the input's schema.
    pub column: usize,
    /// What the value must be below.
    pub below: Bound,
}

/// The state of a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LeavingState {
    /// None, or no more than a row.
    Nothing,
    /// For each input what leaves; each is sufficient by itself, and without one all stays.
    OfInputs(Vec<Vec<Leaving>>),
    /// Rows that wait for a watermark leave when they are out; rows that a watermark has passed
    /// leave.
    Waiting(Bound),
}

/// What the state of a node is, and what leaves.
pub fn state(plan: &Plan, promised: &dyn Promised) -> LeavingState {
    let of = |input: &Plan| bounds(input, promised);
    let by = |columns: &[usize], input: &Plan| {
        let below = of(input);
        let leaving = columns.iter().filter_map(|&column| Some(Leaving { column, below: below[column].clone()? }));
        LeavingState::OfInputs(vec![leaving.collect()])
    };
    match &plan.node {
        Node::Aggregate { keys, .. } if keys.is_empty() => LeavingState::Nothing,
        Node::Aggregate { input, keys, .. } => by(keys, input),
        Node::Distinct { input } => by(&(0..input.schema.fields().len()).collect::<Vec<_>>(), input),
        Node::TopK { input, top } => by(&top.group, input),
        Node::Window { input, window } => {
            let below = of(input);
            let of_partition = window.partition.iter();
            let of_partition =
                of_partition.filter_map(|&column| Some(Leaving { column, below: below[column].clone()? }));
            LeavingState::OfInputs(vec![of_partition.chain(passed_by_frames(window, &below)).collect()])
        }
        Node::SetOperation { .. } => {
            let all = bounds(plan, promised).into_iter().enumerate();
            let leaving: Vec<Leaving> =
                all.filter_map(|(column, below)| Some(Leaving { column, below: below? })).collect();
            LeavingState::OfInputs(vec![leaving.clone(), leaving])
        }
        Node::Join { left, right, kind, .. } => {
            if let Some((_, below)) = closing(plan, promised) {
                return LeavingState::Waiting(below);
            }
            if let Some((_, below)) = expiring(plan, promised) {
                return LeavingState::Waiting(below);
            }
            LeavingState::OfInputs(sides(plan, *kind, &of(left), &of(right)))
        }
        Node::Asof { left, right, asof } => {
            // (Backward, and within a tolerance, the left time is bounded.)
            let below = bounds(plan, promised).swap_remove(asof.left_time).or_else(|| {
                let times = [of(left).swap_remove(asof.left_time), of(right).swap_remove(asof.right_time)];
                least_of(times.iter()).filter(|_| asof.strategy == Strategy::Forward && asof.tolerance.is_none())
            });
            let side = |column: usize| below.iter().map(|below| Leaving { column, below: below.clone() }).collect();
            LeavingState::OfInputs(vec![side(asof.left_time), side(asof.right_time)])
        }
        Node::Session { input, session } => by(&[session.time], input),
        Node::Recognize { input, recognize } => {
            let first = recognize.order.first().filter(|key| !key.descending && !key.nulls_first);
            by(&recognize.partition.iter().copied().chain(first.map(|key| key.column)).collect::<Vec<_>>(), input)
        }
        _ => LeavingState::Nothing,
    }
}

/// The rows that no frame to come reaches but by their number: those with an order value below what
/// comes, and below what frames of later rows begin from.
fn passed_by_frames(window: &Window, below: &[Option<Bound>]) -> Option<Leaving> {
    let first = window.order.first().filter(|key| !key.descending && !key.nulls_first)?;
    let reach = window.reach()?;
    // (Rows whose frames are not whole yet begin from lesser values. Of others the frames begin
    // from the order value less a constant, so the bound of what comes holds for what is there,
    // too.)
    if !reach.from.is_empty() && !reach.is_back_only() {
        return None;
    }
    let bounds = [first.column].into_iter().chain(reach.from).map(|column| &below[column]);
    Some(Leaving { column: first.column, below: least_of(bounds)? })
}

/// What leaves the sides of a join.
fn sides(plan: &Plan, kind: JoinKind, of_left: &[Option<Bound>], of_right: &[Option<Bound>]) -> Vec<Vec<Leaving>> {
    let all = matched(plan, of_left, of_right);
    if kind == JoinKind::LeftAntiNullAware {
        return vec![vec![], vec![]];
    }
    let is_kept = |side: usize| match kind {
        JoinKind::Inner | JoinKind::Full => true,
        JoinKind::Right => side == 1,
        JoinKind::Left | JoinKind::LeftSemi | JoinKind::LeftAnti | JoinKind::LeftAntiNullAware | JoinKind::LeftMark => {
            side == 0
        }
    };
    // (Rows of a side are counted by the rows that are kept of the other one.)
    let is_counted = |side: usize| kind != JoinKind::Inner && is_kept(1 - side);
    let mut sides = vec![vec![], vec![]];
    for (side, leaving) in sides.iter_mut().enumerate() {
        let of_side = match (is_counted(side), side) {
            (false, _) => all.clone(),
            (true, 0) => matched(plan, of_left, &unsettled(&all, 1, of_right)),
            (true, _) => matched(plan, &unsettled(&all, 0, of_left), of_right),
        };
        let of_side = of_side.into_iter().filter(|matched| matched.side == side);
        leaving.extend(of_side.map(|Matched { column, met_from: below, .. }| Leaving { column, below }));
    }
    sides
}

/// The bounds of a side's columns below which no row comes, and no row is met any more.
fn unsettled(all: &[Matched], side: usize, bounds: &[Option<Bound>]) -> Vec<Option<Bound>> {
    let met = |column: usize| all.iter().find(|of| of.side == side && of.column == column);
    let of_column = |(column, own): (usize, &Option<Bound>)| Some(own.clone()?.least(met(column)?.met_from.clone()));
    bounds.iter().enumerate().map(of_column).collect()
}
