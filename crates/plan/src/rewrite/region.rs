//! Inner joins as a set: what they join, which columns are equal, what else holds.
//!
//! A region is what inner joins by key, choices of columns and conditions among them make up; its
//! *leaves* are the plans below. Columns of leaves are numbered through ([`Region::columns`]). A
//! semi join whose right side has each key at most once is an inner join that shows no columns of
//! that side, and belongs to the region too.

use std::sync::Arc;

use datafusion_common::Column;
use datafusion_expr::Expr;

use super::build::{replace, width};
use super::selectivity::cannot_fail;
use crate::ir::{JoinKind, Node, Plan};
use crate::positions::{position, positions};
use anabranch_spec::order::Nulls;

/// Number of a leaf's column in a region.
pub(super) type ColumnId = usize;

/// Inner joins, without an order.
#[derive(Debug)]
pub(super) struct Region {
    /// What is joined, in the order of the text.
    pub leaves: Vec<Arc<Plan>>,
    /// Leaf and position of each column.
    pub columns: Vec<(usize, usize)>,
    /// Pairs of columns of different leaves that are equal (and not null).
    pub edges: Vec<(ColumnId, ColumnId)>,
    /// What else holds, over columns named by [`name`].
    pub conditions: Vec<Expr>,
    /// What is shown.
    pub output: Vec<ColumnId>,
    /// The plan it was made of: its schema is kept.
    pub origin: Arc<Plan>,
}

/// How a condition of a region names a column.
pub(super) fn name(column: ColumnId) -> Expr {
    Expr::Column(Column::from_name(format!("#{column}")))
}

/// The column that a name in a condition stands for.
pub(super) fn named(column: &Column) -> ColumnId {
    let number = column.name.strip_prefix('#').and_then(|number| number.parse().ok());
    number.expect("conditions of a region name its columns")
}

impl Region {
    /// The region whose topmost join is `plan` (or is below a choice of columns that `plan` is), if
    /// there is one.
    pub(super) fn of(plan: &Arc<Plan>) -> Option<Region> {
        let mut region = Region {
            leaves: vec![],
            columns: vec![],
            edges: vec![],
            conditions: vec![],
            output: vec![],
            origin: Arc::clone(plan),
        };
        region.output = region.add(plan)?;
        Some(region)
    }

    /// Adds what a plan consists of; returns the number of each of its columns. `None` if it is not
    /// part of a region.
    fn add(&mut self, plan: &Arc<Plan>) -> Option<Vec<ColumnId>> {
        match &plan.node {
            Node::Join { left, right, kind, left_key, right_key, nulls: Nulls::Differ, residual, output }
                if !left_key.is_empty() && is_safe(residual.as_ref(), left, right) =>
            {
                let inner = match kind {
                    JoinKind::Inner => true,
                    JoinKind::LeftSemi => residual.is_none() && is_unique(right, right_key),
                    _ => false,
                };
                if !inner {
                    return None;
                }
                let mut all = self.add_or_leaf(left);
                let from_right = self.add_or_leaf(right);
                for (l, r) in left_key.iter().zip(right_key) {
                    self.edges.push((all[*l], from_right[*r]));
                }
                if let Some(residual) = residual {
                    self.conditions.push(replace(residual, &|column| {
                        let in_side = |side: &Plan, known: &str, ids: &[ColumnId]| {
                            let named = column.relation.as_ref().is_none_or(|side| side.table() == known);
                            let at = side.schema.index_of_column_by_name(None, &column.name).filter(|_| named);
                            at.map(|at| ids[at])
                        };
                        let id = in_side(left, "left", &all).or_else(|| in_side(right, "right", &from_right));
                        name(id.expect("a residual names columns of its sides"))
                    }));
                }
                all.extend(from_right);
                Some(output.iter().map(|at| all[*at]).collect())
            }
            Node::Stage { input, filter, project } if filter.iter().all(|e| cannot_fail(e, &input.schema)) => {
                let chosen = positions(project, &input.schema)?;
                let all = self.add(input)?;
                for condition in filter {
                    self.conditions.push(replace(condition, &|column| {
                        let at = position(&Expr::Column(column.clone()), &input.schema);
                        name(all[at.expect("a filter names columns of its input")])
                    }));
                }
                Some(chosen.into_iter().map(|at| all[at]).collect())
            }
            _ => None,
        }
    }

    fn add_or_leaf(&mut self, plan: &Arc<Plan>) -> Vec<ColumnId> {
        // What was added for a part that turns out not to belong is taken back.
        let before = (self.leaves.len(), self.columns.len(), self.edges.len(), self.conditions.len());
        if let Some(ids) = self.add(plan) {
            return ids;
        }
        self.leaves.truncate(before.0);
        self.columns.truncate(before.1);
        self.edges.truncate(before.2);
        self.conditions.truncate(before.3);
        let leaf = self.leaves.len();
        self.leaves.push(Arc::clone(plan));
        let first = self.columns.len();
        self.columns.extend((0..width(plan)).map(|at| (leaf, at)));
        (first..self.columns.len()).collect()
    }

    /// The leaf of a column.
    pub(super) fn leaf(&self, column: ColumnId) -> usize {
        self.columns[column].0
    }

    /// The columns that must be equal to this one, itself among them, in order.
    pub(super) fn equals(&self, column: ColumnId) -> Vec<ColumnId> {
        let mut class = vec![column];
        let mut next = 0;
        while next < class.len() {
            let member = class[next];
            for (a, b) in &self.edges {
                let other = if *a == member {
                    *b
                } else if *b == member {
                    *a
                } else {
                    continue;
                };
                if !class.contains(&other) {
                    class.push(other);
                }
            }
            next += 1;
        }
        class.sort_unstable();
        class
    }

    /// The columns that a condition names.
    pub(super) fn condition_columns(condition: &Expr) -> Vec<ColumnId> {
        condition.column_refs().into_iter().map(named).collect()
    }
}

fn is_safe(residual: Option<&Expr>, left: &Plan, right: &Plan) -> bool {
    residual.is_none_or(|residual| cannot_fail(residual, &Plan::join_schema(left, right)))
}

/// Whether no two rows of a plan (nor one row twice) agree in these columns.
pub(super) fn is_unique(plan: &Plan, columns: &[usize]) -> bool {
    match &plan.node {
        Node::Aggregate { keys, .. } => (0..keys.len()).all(|key| columns.contains(&key)),
        Node::Distinct { .. } => (0..width(plan)).all(|column| columns.contains(&column)),
        Node::Stage { input, project, .. } => {
            let below: Vec<usize> =
                columns.iter().filter_map(|at| project.get(*at).and_then(|e| position(e, &input.schema))).collect();
            is_unique(input, &below)
        }
        Node::Join {
            left,
            kind: JoinKind::LeftSemi | JoinKind::LeftAnti | JoinKind::LeftAntiNullAware,
            output,
            ..
        } => {
            let below: Vec<usize> = columns.iter().map(|at| output[*at]).collect();
            is_unique(left, &below)
        }
        _ => false,
    }
}
