//! Joins of rows with what is computed for their own values.
//!
//! ```text
//!   Join left on x is not distinct from x
//!     rows
//!     Aggregate by x
//!       Join left where (left.x > right.y) is null
//!         Distinct [x]
//!           rows
//!         what lies in every shard
//! ```
//!
//! `EXISTS`, `ALL` and `ANY` of a query become such joins. Law: where nothing but the rows' own
//! values and what lies in every shard is looked at, a shard computes for each of its rows what it
//! would compute over all rows: the join is right wherever the rows lie, and moves none of them.
//! The values must be those of all rows that are joined, or of more: conditions are compared as
//! text, over the columns of the input, since columns that are not read are left out.

use std::collections::BTreeSet;

use anabranch_plan::temporal::Verb;
use anabranch_plan::{JoinKind, Node, Plan};
use datafusion_common::Column;
use datafusion_common::tree_node::{Transformed, TreeNode};
use datafusion_expr::Expr;

use crate::placement::{Placement, Spread};
use crate::program::INPUTS;

/// Whether a node is a join of rows with what is computed for their own values, of inputs that lie
/// so.
pub(crate) fn is_by_own_values(plan: &Plan, inputs: &[&Placement]) -> bool {
    let Node::Join { left, right, kind, left_key, right_key, .. } = &plan.node else { return false };
    let Some(ours) = keeps_left(*kind).then(|| RowsOfInput::of(left, inputs)).flatten() else { return false };
    let Some(values) = own_values(right, &ours, inputs) else { return false };
    // (A row meets the value that it has itself.)
    values.iter().all(|(column, of)| {
        let mut pairs = left_key.iter().zip(right_key);
        pairs.any(|(l, r)| r == column && ours.columns.get(*l) == Some(of))
    })
}

/// Whether each row of a join is one of its left side, with what is found for it.
fn keeps_left(kind: JoinKind) -> bool {
    matches!(kind, JoinKind::Inner | JoinKind::Left | JoinKind::LeftSemi | JoinKind::LeftAnti | JoinKind::LeftMark)
}

/// Of a plan of values of some rows: its columns that are values, each with what it is. `None` if
/// the plan looks at anything else that does not lie in every shard.
fn own_values(plan: &Plan, of: &RowsOfInput, inputs: &[&Placement]) -> Option<Vec<(usize, String)>> {
    match &plan.node {
        Node::Distinct { input } => {
            let rows = RowsOfInput::of(input, inputs)?;
            let has_all = rows.input == of.input && rows.conditions.is_subset(&of.conditions);
            has_all.then(|| rows.columns.into_iter().enumerate().collect())
        }
        Node::Stage { input, project, .. } => {
            let moved = |(at, value): (usize, String)| {
                let name = input.schema.field(at).name();
                Some((project.iter().position(|expr| column(expr) == Some(name))?, value))
            };
            own_values(input, of, inputs)?.into_iter().map(moved).collect()
        }
        Node::Aggregate { input, keys, .. } => {
            let values = own_values(input, of, inputs)?;
            values.into_iter().map(|(at, value)| Some((keys.iter().position(|key| *key == at)?, value))).collect()
        }
        Node::Join { left, right, kind, output, .. } => {
            (keeps_left(*kind) && lies_everywhere(right, inputs)).then_some(())?;
            let values = own_values(left, of, inputs)?;
            values.into_iter().map(|(at, value)| Some((output.iter().position(|from| *from == at)?, value))).collect()
        }
        _ => None,
    }
}

/// Whether a plan reads nothing but what lies in every shard.
fn lies_everywhere(plan: &Plan, inputs: &[&Placement]) -> bool {
    match &plan.node {
        Node::Temporal { verb: Verb::Events { input, .. }, .. } => {
            let placement = INPUTS.iter().position(|name| name == input).and_then(|at| inputs.get(at));
            placement.is_some_and(|lies| lies.across == Spread::Replicated && lies.within == Spread::Replicated)
        }
        Node::Constant { .. } => true,
        _ => {
            let below = plan.inputs();
            !below.is_empty() && below.into_iter().all(|input| lies_everywhere(input, inputs))
        }
    }
}

/// Rows that are some of an input's.
struct RowsOfInput {
    input: String,
    /// What each column is, in columns of the input.
    columns: Vec<String>,
    /// What holds of the rows, and chooses them.
    conditions: BTreeSet<String>,
}

impl RowsOfInput {
    /// The rows of a plan that only chooses among an input's, and computes columns.
    fn of(plan: &Plan, inputs: &[&Placement]) -> Option<RowsOfInput> {
        match &plan.node {
            Node::Temporal { verb: Verb::Events { input, .. }, .. } => {
                let columns = plan.schema.fields().iter().map(|field| field.name().clone()).collect();
                Some(RowsOfInput { input: input.clone(), columns, conditions: BTreeSet::new() })
            }
            Node::Stage { input, filter, project } => {
                let mut rows = RowsOfInput::of(input, inputs)?;
                let text = |expr: &Expr| {
                    let name = |column: &Column| {
                        Some(rows.columns.get(input.schema.index_of_column_by_name(None, &column.name)?)?.clone())
                    };
                    in_columns(expr, &name)
                };
                let columns = project.iter().map(text).collect::<Option<Vec<String>>>()?;
                let conditions = filter.iter().map(text).collect::<Option<Vec<String>>>()?;
                rows.conditions.extend(conditions);
                Some(RowsOfInput { columns, ..rows })
            }
            // (Rows that are looked up are what they were.)
            Node::Join { left, right, kind, left_key, right_key, nulls, residual, output }
                if matches!(kind, JoinKind::LeftSemi | JoinKind::LeftAnti | JoinKind::LeftMark)
                    && lies_everywhere(right, inputs) =>
            {
                let (mut rows, theirs) = (RowsOfInput::of(left, inputs)?, RowsOfInput::of(right, inputs)?);
                let pair = |(l, r): (&usize, &usize)| format!("{} = {}", rows.columns[*l], theirs.columns[*r]);
                let mut on: Vec<String> = left_key.iter().zip(right_key).map(pair).collect();
                if let Some(residual) = residual {
                    let name = |column: &Column| {
                        let is_left = column.relation.as_ref().is_some_and(|side| side.table() == "left");
                        let (side, known, word) = match is_left {
                            true => (left, &rows.columns, "ours"),
                            false => (right, &theirs.columns, "theirs"),
                        };
                        let at = side.schema.index_of_column_by_name(None, &column.name)?;
                        Some(format!("{word}.{}", known.get(at)?))
                    };
                    on.push(in_columns(residual, &name)?);
                }
                let RowsOfInput { input, conditions, .. } = &theirs;
                let found = format!("{kind:?} {nulls:?} {on:?} of {input} where {conditions:?}");
                if *kind != JoinKind::LeftMark {
                    rows.conditions.insert(found.clone());
                }
                let columns = output.iter().map(|at| rows.columns.get(*at).unwrap_or(&found).clone()).collect();
                Some(RowsOfInput { columns, ..rows })
            }
            _ => None,
        }
    }
}

/// An expression as text, with these names of columns; `None` if it is not one of its columns
/// alone.
fn in_columns(expr: &Expr, name: &dyn Fn(&Column) -> Option<String>) -> Option<String> {
    if expr.is_volatile() {
        return None;
    }
    let mut is_known = true;
    let renamed = expr.clone().transform(|part| {
        let Expr::Column(column) = &part else { return Ok(Transformed::no(part)) };
        let named = name(column);
        is_known &= named.is_some();
        Ok(Transformed::yes(Expr::Column(Column::from_name(named.unwrap_or_default()))))
    });
    let plain = match renamed.ok()?.data {
        Expr::Alias(alias) => *alias.expr,
        other => other,
    };
    is_known.then(|| match &plain {
        Expr::Column(column) => column.name.clone(),
        other => other.to_string(),
    })
}

/// The column that an expression only repeats.
fn column(expr: &Expr) -> Option<&String> {
    match expr {
        Expr::Column(column) => Some(&column.name),
        Expr::Alias(alias) => column(&alias.expr),
        _ => None,
    }
}
