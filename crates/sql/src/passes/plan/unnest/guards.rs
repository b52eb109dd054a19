//! Which rows ask for the value of a subquery.
//!
//! ```text
//! CASE WHEN c THEN (q) END     the rows where c is true
//! c AND (q), c OR (q)          the rows where c is not false, where c is not true
//! coalesce(c, (q))             the rows where c is NULL
//! ```
//!
//! Law: a branch that is not taken cannot fail, so the domain of a subquery has the values of these
//! rows alone. The others have NULL in the place of the answer, which nothing reads. Conditions
//! with subqueries of their own are left out: the domain is larger then.

use datafusion_common::Result as DfResult;
use datafusion_common::tree_node::{Transformed, TreeNode};
use datafusion_expr::expr::{Case, ScalarFunction};
use datafusion_expr::logical_plan::{LogicalPlan, LogicalPlanBuilder};
use datafusion_expr::utils::{conjunction, split_binary};
use datafusion_expr::{BinaryExpr, Expr, Operator};

use super::free::{has_subquery, subquery_of};

/// What stands for a subquery. Rows for which the conditions are true ask for it.
pub(crate) type Answer<'a> = dyn FnMut(Expr, &[Expr]) -> DfResult<Expr> + 'a;

/// An expression with answers in place of its subqueries; the value of `expr` counts where all of
/// `conditions` are true.
pub(crate) fn answered(expr: Expr, conditions: &[Expr], answer: &mut Answer<'_>) -> DfResult<Expr> {
    if !has_subquery(&expr) {
        return Ok(expr);
    }
    match expr {
        Expr::Case(case) => of_case(case, conditions, answer),
        Expr::BinaryExpr(BinaryExpr { left, op: op @ (Operator::And | Operator::Or), right }) => {
            let beside = |side: &Expr| {
                let each = split_binary(side, op).into_iter().cloned();
                let asks = each.map(|part| match op {
                    Operator::And => part.is_not_false(),
                    _ => part.is_not_true(),
                });
                asks.fold(conditions.to_vec(), |known, condition| with(&known, condition))
            };
            let (of_left, of_right) = (beside(&right), beside(&left));
            let left = answered(*left, &of_left, answer)?;
            let right = answered(*right, &of_right, answer)?;
            Ok(Expr::BinaryExpr(BinaryExpr::new(Box::new(left), op, Box::new(right))))
        }
        Expr::ScalarFunction(ScalarFunction { func, args }) if func.name() == "coalesce" => {
            let mut known = conditions.to_vec();
            let mut answers = Vec::with_capacity(args.len());
            for arg in args {
                let after = with(&known, arg.clone().is_null());
                answers.push(answered(arg, &known, answer)?);
                known = after;
            }
            Ok(Expr::ScalarFunction(ScalarFunction { func, args: answers }))
        }
        other => {
            let other = other.map_children(|part| Ok(Transformed::yes(answered(part, conditions, answer)?)))?.data;
            if subquery_of(&other).is_some() { answer(other, conditions) } else { Ok(other) }
        }
    }
}

fn of_case(case: Case, conditions: &[Expr], answer: &mut Answer<'_>) -> DfResult<Expr> {
    let Case { expr: value, when_then_expr, else_expr } = case;
    let mut known = conditions.to_vec();
    let mut branches = Vec::with_capacity(when_then_expr.len());
    for (when, then) in when_then_expr {
        let is_taken = match &value {
            Some(value) => value.as_ref().clone().eq(when.as_ref().clone()),
            None => when.as_ref().clone(),
        };
        let within = with(&known, is_taken.clone().is_true());
        let when = answered(*when, &known, answer)?;
        branches.push((Box::new(when), Box::new(answered(*then, &within, answer)?)));
        known = with(&known, is_taken.is_not_true());
    }
    let value = value.map(|value| answered(*value, conditions, answer).map(Box::new)).transpose()?;
    let otherwise = else_expr.map(|other| answered(*other, &known, answer).map(Box::new)).transpose()?;
    Ok(Expr::Case(Case { expr: value, when_then_expr: branches, else_expr: otherwise }))
}

/// The conditions and one more, if the rows alone tell it.
fn with(conditions: &[Expr], condition: Expr) -> Vec<Expr> {
    let is_told = !has_subquery(&condition) && !condition.contains_outer();
    conditions.iter().cloned().chain(is_told.then_some(condition)).collect()
}

/// The rows for which all of `conditions` are true.
pub(crate) fn asking(rows: &LogicalPlan, conditions: &[Expr]) -> DfResult<LogicalPlan> {
    match conjunction(conditions.iter().cloned()) {
        Some(condition) => LogicalPlanBuilder::from(rows.clone()).filter(condition)?.build(),
        None => Ok(rows.clone()),
    }
}
