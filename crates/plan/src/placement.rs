//! Where the rows of a plan lie, when what it reads lies in several shards.
//!
//! Each shard runs the plan over the rows that it has. The plan is *safe* when the results of the
//! shards together are the result over all rows; then it is also known which of them lie together.
//! Law: [`over`] says where only if that holds for all contents; it may refuse plans for which it
//! holds too. Cost: a pass over the plan. Source: Quill (Chandramouli et al., VLDB 2016), 3.

use datafusion_expr::Expr;

use crate::ir::{JoinKind, Node, Plan};

/// Where rows lie. Columns are positions in the plan's schema.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PlanPlacement {
    /// Each row in one shard, any.
    Arbitrary,
    /// Rows that are equal in these columns in one shard.
    Together {
        /// Which shard: rows of equal rules and equal values lie in the same.
        rule: PlacementRule,
        /// The columns.
        columns: Vec<usize>,
    },
    /// Each row in each shard.
    Replicated,
    /// All rows in the first shard, where alone the plan runs.
    One,
}

/// What says in which shard a value lies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PlacementRule {
    /// Its hash, among so many shards; `None` for all.
    Hash(Option<usize>),
    /// The number itself.
    Number,
    /// The ranges of this source.
    Ranges(String),
}

use PlanPlacement::{Arbitrary, One, Replicated, Together};

/// Where the rows of a node lie, given how those of its inputs do; `None` where shards do not see
/// all rows that they need.
pub fn over(plan: &Plan, below: &[PlanPlacement]) -> Option<PlanPlacement> {
    // (A variable of a loop is as its loop: that one runs over what lies everywhere, or in one
    // shard.)
    if matches!(plan.node, Node::Constant { .. } | Node::Variable { .. }) {
        return Some(Replicated);
    }
    if below.is_empty() {
        return None;
    }
    if below.iter().all(|place| *place == Replicated) {
        return Some(Replicated);
    }
    if below.iter().all(|place| matches!(place, One | Replicated)) {
        return Some(One);
    }
    match &plan.node {
        Node::Stage { project, input, .. } => {
            let named = |at: usize| {
                let name = input.schema.field(at).name();
                project.iter().position(|expr| column_name(expr) == Some(name))
            };
            Some(moved(&below[0], named))
        }
        Node::Unnest { columns, .. } => Some(moved(&below[0], |at| (!columns.contains(&at)).then_some(at))),
        Node::Join { .. } => join(plan, &below[0], &below[1]),
        Node::Aggregate { keys, .. } => {
            is_within(&below[0], keys).then(|| moved(&below[0], |at| keys.iter().position(|key| *key == at)))
        }
        // (Equal rows are equal in any columns.)
        Node::Distinct { .. } => matches!(below[0], Together { .. }).then(|| below[0].clone()),
        Node::TopK { top, .. } => is_within(&below[0], &top.group).then(|| below[0].clone()),
        Node::Window { window, .. } => is_within(&below[0], &window.partition).then(|| below[0].clone()),
        Node::Recognize { recognize, .. } => {
            let keys = &recognize.partition;
            is_within(&below[0], keys).then(|| moved(&below[0], |at| keys.iter().position(|key| *key == at)))
        }
        Node::Session { session, .. } => is_within(&below[0], &session.partition).then(|| below[0].clone()),
        Node::Union { .. } => {
            let is_split = |place: &PlanPlacement| *place != Replicated;
            let all_split = below.iter().all(is_split);
            all_split.then(|| if below.iter().all(|place| *place == below[0]) { below[0].clone() } else { Arbitrary })
        }
        Node::SetOperation { .. } => {
            (matches!(below[0], Together { .. }) && below[0] == below[1]).then(|| below[0].clone())
        }
        // (Each row of the left is looked up by itself.)
        Node::Asof { asof, .. } => {
            let found = below[1] == Replicated || are_aligned(&below[0], &below[1], &asof.left_key, &asof.right_key);
            found.then(|| below[0].clone())
        }
        Node::Scan { .. }
        | Node::Constant { .. }
        | Node::Temporal { .. }
        | Node::Recursive(_)
        | Node::Variable { .. } => None,
    }
}

/// Whether rows of equal values in `keys` lie in one shard.
pub fn is_within(place: &PlanPlacement, keys: &[usize]) -> bool {
    match place {
        One => true,
        Together { columns, .. } => columns.iter().all(|column| keys.contains(column)),
        Arbitrary | Replicated => false,
    }
}

/// The same rows under other positions; a placement by a column that is gone is any.
fn moved(place: &PlanPlacement, position: impl Fn(usize) -> Option<usize>) -> PlanPlacement {
    match place {
        Together { rule, columns } => match columns.iter().map(|at| position(*at)).collect::<Option<Vec<usize>>>() {
            Some(columns) => Together { rule: rule.clone(), columns },
            None => Arbitrary,
        },
        other => other.clone(),
    }
}

fn join(plan: &Plan, left: &PlanPlacement, right: &PlanPlacement) -> Option<PlanPlacement> {
    let Node::Join { left: left_plan, kind, left_key, right_key, output, .. } = &plan.node else { return None };
    let of_left = |at: usize| output.iter().position(|from| *from == at);
    let width = left_plan.schema.fields().len();
    let of_right = |at: usize| output.iter().position(|from| *from == width + at);
    let looks_up = matches!(
        kind,
        JoinKind::Inner
            | JoinKind::Left
            | JoinKind::LeftSemi
            | JoinKind::LeftAnti
            | JoinKind::LeftAntiNullAware
            | JoinKind::LeftMark
    );
    match (left, right) {
        (left, Replicated) if looks_up => Some(moved(left, of_left)),
        (Replicated, right) if matches!(kind, JoinKind::Inner | JoinKind::Right) => Some(moved(right, of_right)),
        // (NOT IN must know of every NULL on the right.)
        _ if *kind == JoinKind::LeftAntiNullAware => None,
        _ if !are_aligned(left, right, left_key, right_key) => None,
        _ => Some(match kind {
            JoinKind::Right => moved(right, of_right),
            JoinKind::Full => Arbitrary,
            JoinKind::Inner => match moved(left, of_left) {
                Arbitrary => moved(right, of_right),
                known => known,
            },
            _ => moved(left, of_left),
        }),
    }
}

/// Whether rows that match lie in one shard: by the same rule, by columns that the keys pair.
fn are_aligned(left: &PlanPlacement, right: &PlanPlacement, left_key: &[usize], right_key: &[usize]) -> bool {
    let (Together { rule, columns }, Together { rule: other, columns: theirs }) = (left, right) else { return false };
    let is_paired =
        |(ours, theirs): (&usize, &usize)| left_key.iter().zip(right_key).any(|pair| pair == (ours, theirs));
    rule == other && columns.len() == theirs.len() && columns.iter().zip(theirs).all(is_paired)
}

/// The column that an expression only repeats.
fn column_name(expr: &Expr) -> Option<&String> {
    match expr {
        Expr::Column(column) => Some(&column.name),
        Expr::Alias(alias) => column_name(&alias.expr),
        _ => None,
    }
}
