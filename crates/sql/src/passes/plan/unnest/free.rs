//! What a plan refers to outside of it, and which subqueries it has.

use std::collections::HashMap;

use datafusion_common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion_common::{Column, Result as DfResult};
use datafusion_expr::Expr;
use datafusion_expr::expr::{Exists, InSubquery, SetComparison};
use datafusion_expr::logical_plan::{LogicalPlan, Subquery};

use super::shared::SharedNode;

/// Nodes of a plan, each as often as it stands in it. (Parts that are one in memory are counted
/// once: the number can be exponential in the depth.)
pub(super) fn n_nodes(plan: &LogicalPlan, known: &mut HashMap<*const LogicalPlan, usize>) -> usize {
    if let Some(n) = known.get(&std::ptr::from_ref(plan)) {
        return *n;
    }
    if let Some(shared) = SharedNode::of(plan) {
        return shared.n_nodes;
    }
    let below = plan.inputs().into_iter().map(|input| n_nodes(input, known));
    let n = below.fold(1, usize::saturating_add);
    known.insert(std::ptr::from_ref(plan), n);
    n
}

/// Whether a subquery that depends on outer columns is left in a plan.
pub(crate) fn is_nested(plan: &LogicalPlan) -> bool {
    plan.exists(|node| {
        let mut found = matches!(node, LogicalPlan::Subquery(_));
        for expr in node.expressions() {
            found |= expr.exists(|part| {
                Ok(matches!(
                    part,
                    Expr::Exists(_) | Expr::InSubquery(_) | Expr::SetComparison(_) | Expr::OuterReferenceColumn(..)
                ) || matches!(part, Expr::ScalarSubquery(subquery) if !subquery.outer_ref_columns.is_empty()))
            })?;
        }
        Ok(found)
    })
    .unwrap_or(true)
}

/// Whether an entry of FROM depends on those before. (Subqueries in expressions are none.)
pub(crate) fn is_lateral(plan: &LogicalPlan) -> bool {
    plan.exists(|node| {
        let mut found = matches!(node, LogicalPlan::Subquery(subquery) if !subquery.outer_ref_columns.is_empty());
        for expr in node.expressions() {
            found |= expr.exists(|part| Ok(subquery_of(part).is_some_and(|inner| is_lateral(&inner.subquery))))?;
        }
        Ok(found)
    })
    .unwrap_or(true)
}

/// Whether a plan has a subquery of any kind.
pub(crate) fn has_subqueries(plan: &LogicalPlan) -> bool {
    plan.exists(|node| {
        let mut found = matches!(node, LogicalPlan::Subquery(_));
        for expr in node.expressions() {
            found |= expr.exists(|part| Ok(subquery_of(part).is_some()))?;
        }
        Ok(found)
    })
    .unwrap_or(true)
}

/// The subquery that an expression is.
pub(crate) fn subquery_of(expr: &Expr) -> Option<&Subquery> {
    match expr {
        Expr::ScalarSubquery(subquery)
        | Expr::Exists(Exists { subquery, .. })
        | Expr::InSubquery(InSubquery { subquery, .. })
        | Expr::SetComparison(SetComparison { subquery, .. }) => Some(subquery),
        _ => None,
    }
}

/// Whether a subquery stands in an expression.
pub(crate) fn has_subquery(expr: &Expr) -> bool {
    expr.exists(|part| Ok(subquery_of(part).is_some())).unwrap_or(true)
}

/// Outer columns that a plan refers to from outside of it.
pub(super) fn free_of(plan: &LogicalPlan) -> DfResult<Vec<Column>> {
    let mut free = Vec::new();
    collect_free(plan, &mut free)?;
    Ok(free)
}

pub(super) fn collect_free(plan: &LogicalPlan, free: &mut Vec<Column>) -> DfResult<()> {
    let add = |column: Column, free: &mut Vec<Column>| {
        if !free.contains(&column) {
            free.push(column);
        }
    };
    let inputs = plan.inputs();
    for (at, input) in inputs.iter().enumerate() {
        let mut below = Vec::new();
        collect_free(input, &mut below)?;
        // The right side of a join may name columns of the left.
        let left = inputs.first().filter(|_| at == 1 && matches!(plan, LogicalPlan::Join(_)));
        let bound = |column: &Column| left.is_some_and(|left| left.schema().has_column(column));
        below.into_iter().filter(|column| !bound(column)).for_each(|column| add(column, free));
    }
    if let LogicalPlan::Subquery(subquery) = plan {
        collect_free(&subquery.subquery, free)?;
    }
    for expr in plan.expressions() {
        expr.apply(|part| {
            if let Expr::OuterReferenceColumn(_, column) = part {
                add(column.clone(), free);
            }
            if let Some(subquery) = subquery_of(part) {
                let mut below = Vec::new();
                collect_free(&subquery.subquery, &mut below)?;
                let bound = |column: &Column| inputs.iter().any(|input| input.schema().has_column(column));
                below.into_iter().filter(|column| !bound(column)).for_each(|column| add(column, free));
            }
            Ok(TreeNodeRecursion::Continue)
        })?;
    }
    Ok(())
}

/// The columns of the rows at hand in an expression, those that its subqueries refer to included.
pub(crate) fn columns_within(expr: &Expr, columns: &mut Vec<Column>) -> DfResult<()> {
    expr.apply(|part| {
        match (part, subquery_of(part)) {
            (Expr::Column(column), _) => columns.push(column.clone()),
            (_, Some(subquery)) => collect_free(&subquery.subquery, columns)?,
            _ => {}
        }
        Ok(TreeNodeRecursion::Continue)
    })?;
    Ok(())
}
