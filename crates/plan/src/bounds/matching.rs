//! Conditions of a join that tie a column of one side to the other side.
//!
//! A condition `u >= v` with `u` of one side, `v` of the other, says of `u` what `v`'s bound says
//! of `v`: a change of `v`'s side meets rows with `u` at or above the bound only. An equality says
//! so both ways.

use datafusion_common::tree_node::{Transformed, TreeNode};
use datafusion_common::{Column, DFSchema};
use datafusion_expr::utils::split_conjunction;
use datafusion_expr::{BinaryExpr, Expr, Operator};

use super::bound::Bound;
use super::monotone::{bound_of, shifted};
use crate::ir::{Node, Plan};

/// A column of one side that changes of the other side meet at or above a bound only.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Matched {
    /// 0 for the left side, 1 for the right one.
    pub side: usize,
    /// Position in the side's schema.
    pub column: usize,
    /// Below it no change of the other side meets a row.
    pub met_from: Bound,
    /// Below it no change of the own side comes, if that is known.
    pub own: Option<Bound>,
}

/// What the conditions of a join say, given the bounds of both sides: keys first.
pub fn matched(plan: &Plan, of_left: &[Option<Bound>], of_right: &[Option<Bound>]) -> Vec<Matched> {
    let Node::Join { left, right, left_key, right_key, residual, .. } = &plan.node else { return vec![] };
    let mut matched = Vec::new();
    for (&a, &b) in left_key.iter().zip(right_key) {
        let (own, other) = (of_left[a].clone(), of_right[b].clone());
        let both = [(0, a, &own, &other), (1, b, &other, &own)];
        matched.extend(both.into_iter().filter_map(|(side, column, own, met_from)| {
            Some(Matched { side, column, met_from: met_from.clone()?, own: own.clone() })
        }));
    }
    let sides = [(left.schema.as_ref(), of_left), (right.schema.as_ref(), of_right)];
    for condition in residual.iter().flat_map(split_conjunction) {
        for (greater, less) in comparisons(condition) {
            matched.extend(tied(greater, less, &sides));
        }
    }
    matched
}

/// The pairs of expressions of which the first is at least the second where the condition is true.
pub(crate) fn comparisons(condition: &Expr) -> Vec<(&Expr, &Expr)> {
    match condition {
        Expr::BinaryExpr(BinaryExpr { left, op, right }) => match op {
            Operator::GtEq | Operator::Gt => vec![(left, right)],
            Operator::LtEq | Operator::Lt => vec![(right, left)],
            Operator::Eq => vec![(left, right), (right, left)],
            _ => vec![],
        },
        Expr::Between(between) if !between.negated => {
            vec![(&between.expr, &between.low), (&between.high, &between.expr)]
        }
        _ => vec![],
    }
}

type Side<'a> = (&'a DFSchema, &'a [Option<Bound>]);

/// What `greater >= less` says of the column that `greater` is, but for a constant.
fn tied(greater: &Expr, less: &Expr, sides: &[Side; 2]) -> Option<Matched> {
    let (side, other) = (side_of(greater)?, side_of(less)?);
    if side == other {
        return None;
    }
    let (own, others) = (sides[side], sides[other]);
    let (greater, less) = (unqualified(greater), unqualified(less));
    let (column, ticks) = shifted(&greater, own.0)?;
    let Expr::Column(column) = column else { return None };
    let column = own.0.maybe_index_of_column(column)?;
    let met_from = bound_of(&less, others.0, others.1)?.plus(ticks.checked_neg()?);
    Some(Matched { side, column, met_from, own: own.1[column].clone() })
}

/// The one side of a join, 0 or 1, that all columns of an expression are of.
pub fn side_of(expr: &Expr) -> Option<usize> {
    let mut sides = expr.column_refs().into_iter().map(|column| match column.relation.as_ref()?.table() {
        "left" => Some(0),
        "right" => Some(1),
        _ => None,
    });
    let first = sides.next()??;
    sides.all(|side| side == Some(first)).then_some(first)
}

/// The expression with columns of one side, by their names alone.
///
/// # Panics
/// Never: renaming columns does not fail.
pub fn unqualified(expr: &Expr) -> Expr {
    let plain = expr.clone().transform_up(|e| match e {
        Expr::Column(column) => Ok(Transformed::yes(Expr::Column(Column::from_name(column.name)))),
        other => Ok(Transformed::no(other)),
    });
    plain.expect("renaming columns does not fail").data
}
