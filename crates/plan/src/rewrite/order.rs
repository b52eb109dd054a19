//! The order of joins: from what is filtered most, along equalities, to what it is joined with.
//!
//! The first leaf is the one of which least is left; each next one is connected to what is joined
//! already, and of several the one of which least is left. A leaf that is connected only through
//! columns that two joined leaves share already would be paired with all rows of its kind
//! (customers and suppliers of a nation): it waits for another connection. Before a leaf is joined,
//! it takes along what it alone is connected to, where that is filtered as much as anything joined
//! so far (suppliers of one nation). Without any filter the order of the text stays.
//!
//! Cost: quadratic in the number of leaves and columns, once a query.

use std::sync::Arc;

use datafusion_common::{Column, TableReference};
use datafusion_expr::Expr;
use datafusion_expr::utils::conjunction;

use super::build::{choose, field, replace, schema, width};
use super::region::{ColumnId, Region, named};
use super::selectivity::selectivity;
use crate::ir::{JoinKind, Node, Plan};
use anabranch_spec::order::Nulls;

/// The region's joins in an order.
pub(super) fn ordered(region: &Region) -> Arc<Plan> {
    let order = Order::new(region);
    let mut joins = Joins::new(region);
    let mut joined = joins.leaf(order.first());
    let mut left: Vec<usize> = (0..region.leaves.len()).filter(|leaf| *leaf != order.first()).collect();
    while !left.is_empty() {
        let next = order.next(&joined.leaves, &left);
        left.retain(|leaf| *leaf != next);
        let mut side = joins.leaf(next);
        for companion in order.companions(next, &joined.leaves, &left) {
            left.retain(|leaf| *leaf != companion);
            let companion = joins.leaf(companion);
            side = joins.join(side, companion);
        }
        joined = joins.join(joined, side);
    }
    joins.finished(joined)
}

/// What decides about the order.
struct Order<'a> {
    region: &'a Region,
    shares: Vec<f64>,
    /// The class of equal columns of each column that is in one, by its least member.
    classes: Vec<Option<ColumnId>>,
}

impl<'a> Order<'a> {
    fn new(region: &'a Region) -> Order<'a> {
        let shares = region.leaves.iter().map(|leaf| selectivity(leaf)).collect();
        let class = |column| {
            let class = region.equals(column);
            (class.len() > 1).then_some(class[0])
        };
        Order { region, shares, classes: (0..region.columns.len()).map(class).collect() }
    }

    fn first(&self) -> usize {
        let mut first = 0;
        for leaf in 1..self.shares.len() {
            if self.shares[leaf] < self.shares[first] {
                first = leaf;
            }
        }
        first
    }

    fn classes_of(&self, leaf: usize) -> Vec<ColumnId> {
        let columns = (0..self.classes.len()).filter(|column| self.region.leaf(*column) == leaf);
        columns.filter_map(|column| self.classes[column]).collect()
    }

    fn next(&self, joined: &[usize], left: &[usize]) -> usize {
        let filtered = self.shares.iter().any(|share| *share < 1.0);
        let rank = |leaf: usize| {
            let shared: Vec<ColumnId> =
                self.classes_of(leaf).into_iter().filter(|class| self.members(joined, *class) > 0).collect();
            let grade = if shared.is_empty() {
                2
            } else {
                u8::from(filtered && shared.iter().all(|class| self.members(joined, *class) > 1))
            };
            (grade, if filtered { self.shares[leaf] } else { 1.0 }, leaf)
        };
        let ranks = left.iter().map(|leaf| rank(*leaf));
        let best = ranks.min_by(|a, b| a.0.cmp(&b.0).then(a.1.total_cmp(&b.1)).then(a.2.cmp(&b.2)));
        best.expect("some leaf is left").2
    }

    /// Leaves among `joined` that have a column of a class.
    fn members(&self, joined: &[usize], class: ColumnId) -> usize {
        joined.iter().filter(|leaf| self.classes_of(**leaf).contains(&class)).count()
    }

    /// Leaves that only `leaf` connects, and that are filtered as much as what is joined already.
    fn companions(&self, leaf: usize, joined: &[usize], left: &[usize]) -> Vec<usize> {
        let least = joined.iter().map(|leaf| self.shares[*leaf]).fold(1.0, f64::min);
        let own = self.classes_of(leaf);
        let is_companion = |other: &&usize| {
            let classes = self.classes_of(**other);
            let apart = left.iter().filter(|third| *third != *other);
            let elsewhere: Vec<ColumnId> =
                joined.iter().chain(apart).flat_map(|third| self.classes_of(*third)).collect();
            self.shares[**other] < 1.0
                && self.shares[**other] <= least
                && classes.iter().any(|class| own.contains(class))
                && classes.iter().all(|class| !elsewhere.contains(class))
        };
        left.iter().filter(is_companion).copied().collect()
    }
}

/// Some leaves joined: the plan, and which column of the region each of its columns is.
struct Joined {
    plan: Arc<Plan>,
    columns: Vec<ColumnId>,
    leaves: Vec<usize>,
}

/// Builds joins.
struct Joins<'a> {
    region: &'a Region,
    /// Columns known to be equal by the joins made: each column's representative.
    known: Vec<ColumnId>,
    edges: Vec<(ColumnId, ColumnId)>,
    conditions: Vec<Expr>,
}

impl<'a> Joins<'a> {
    fn new(region: &'a Region) -> Joins<'a> {
        let known = (0..region.columns.len()).collect();
        Joins { region, known, edges: region.edges.clone(), conditions: region.conditions.clone() }
    }

    /// A leaf, with the columns that are needed outside.
    fn leaf(&self, leaf: usize) -> Joined {
        let region = self.region;
        let mut columns: Vec<ColumnId> = (0..region.columns.len()).filter(|id| region.leaf(*id) == leaf).collect();
        columns.retain(|id| self.is_needed(*id));
        if columns.is_empty() {
            columns.extend((0..region.columns.len()).find(|id| region.leaf(*id) == leaf));
        }
        let positions: Vec<usize> = columns.iter().map(|id| region.columns[*id].1).collect();
        Joined { plan: choose(&region.leaves[leaf], &positions), columns, leaves: vec![leaf] }
    }

    /// Whether a column is shown, or is part of an equality or a condition still to come.
    fn is_needed(&self, column: ColumnId) -> bool {
        self.region.output.contains(&column)
            || self.edges.iter().any(|(a, b)| *a == column || *b == column)
            || self.conditions.iter().any(|condition| Region::condition_columns(condition).contains(&column))
    }

    fn learn(&mut self, a: ColumnId, b: ColumnId) {
        let (from, to) = (self.known[a], self.known[b]);
        self.known.iter_mut().filter(|known| **known == from).for_each(|known| *known = to);
    }

    fn join(&mut self, left: Joined, right: Joined) -> Joined {
        let mut pairs: Vec<(ColumnId, ColumnId)> = Vec::new();
        let (mut crossing, mut others) = (Vec::new(), Vec::new());
        for (a, b) in std::mem::take(&mut self.edges) {
            match (left.columns.contains(&a), right.columns.contains(&b)) {
                (true, true) => crossing.push((a, b)),
                _ if left.columns.contains(&b) && right.columns.contains(&a) => crossing.push((b, a)),
                _ => others.push((a, b)),
            }
        }
        self.edges = others;
        for (a, b) in crossing {
            if self.known[a] != self.known[b] {
                self.learn(a, b);
                pairs.push((a, b));
            }
        }
        if pairs.is_empty() {
            // Equal by way of columns that are joined later.
            for a in &left.columns {
                let class = self.region.equals(*a);
                if let Some(b) = right.columns.iter().find(|b| class.contains(b))
                    && self.known[*a] != self.known[*b]
                {
                    self.learn(*a, *b);
                    pairs.push((*a, *b));
                }
            }
        }
        let all: Vec<ColumnId> = left.columns.iter().chain(&right.columns).copied().collect();
        let (here, later): (Vec<Expr>, Vec<Expr>) = std::mem::take(&mut self.conditions)
            .into_iter()
            .partition(|condition| Region::condition_columns(condition).iter().all(|column| all.contains(column)));
        self.conditions = later;
        let residual = conjunction(here.iter().map(|condition| sided(condition, &left, &right)));
        let at = |columns: &[ColumnId], id: &ColumnId| {
            columns.iter().position(|column| column == id).expect("a column of this side")
        };
        let mut output: Vec<usize> = (0..all.len()).filter(|position| self.is_needed(all[*position])).collect();
        if output.is_empty() {
            output.push(0);
        }
        let columns = output.iter().map(|position| all[*position]).collect();
        let node = Node::Join {
            left_key: pairs.iter().map(|(a, _)| at(&left.columns, a)).collect(),
            right_key: pairs.iter().map(|(_, b)| at(&right.columns, b)).collect(),
            left: Arc::clone(&left.plan),
            right: Arc::clone(&right.plan),
            kind: JoinKind::Inner,
            nulls: Nulls::Differ,
            residual,
            output: output.clone(),
        };
        let n_left = width(&left.plan);
        let fields = output
            .iter()
            .map(|at| if *at < n_left { field(&left.plan, *at) } else { field(&right.plan, *at - n_left) });
        let schema = schema(fields);
        let leaves = left.leaves.into_iter().chain(right.leaves).collect();
        Joined { plan: Arc::new(Plan { node, schema }), columns, leaves }
    }

    /// All joined: the columns of the origin, under their names.
    fn finished(&self, joined: Joined) -> Arc<Plan> {
        assert!(self.edges.is_empty() && self.conditions.is_empty(), "every equality and condition was applied");
        let at = |id: &ColumnId| joined.columns.iter().position(|column| column == id).expect("what is shown is kept");
        let positions: Vec<usize> = self.region.output.iter().map(at).collect();
        let chosen = choose(&joined.plan, &positions);
        Arc::new(Plan { node: chosen.node.clone(), schema: self.region.origin.schema.clone() })
    }
}

/// A condition as a residual over the two sides.
fn sided(condition: &Expr, left: &Joined, right: &Joined) -> Expr {
    replace(condition, &|column| {
        let id = named(column);
        let (name, side, at) = match left.columns.iter().position(|column| *column == id) {
            Some(at) => ("left", left, at),
            None => ("right", right, right.columns.iter().position(|column| *column == id).expect("one of the sides")),
        };
        Expr::Column(Column::new(Some(TableReference::bare(name)), side.plan.schema.field(at).name()))
    })
}
