//! Subqueries inside aggregates and window functions become columns of the rows below.
//!
//! ```text
//! sum(x) FILTER (WHERE (SELECT count(*) FROM q WHERE q.k = p.k) > 0)   over p
//! =   sum(x) FILTER (WHERE s > 0)   over (SELECT p.*, (SELECT count(*) FROM q WHERE q.k = p.k) AS s FROM p)
//! ```
//!
//! Law: the plan means what it did; a subquery has its value whether or not a filter lets its row
//! pass.
//!
//! DataFusion decorrelates subqueries of filters and select lists only; those of an aggregate it
//! leaves, or takes their outer columns for columns of the subquery.

use std::sync::Arc;

use datafusion_common::tree_node::{Transformed, TreeNode};
use datafusion_common::{Column, Result as DfResult};
use datafusion_expr::Expr;
use datafusion_expr::expr_rewriter::NamePreserver;
use datafusion_expr::logical_plan::{LogicalPlan, Projection};

/// Lifts the subqueries out of all aggregates and window functions of a plan.
pub(crate) fn lift(plan: LogicalPlan) -> DfResult<LogicalPlan> {
    let mut n_lifted = 0;
    let lifted = plan.transform_up_with_subqueries(|node| match node {
        LogicalPlan::Aggregate(_) | LogicalPlan::Window(_) => lift_out_of(node, &mut n_lifted),
        _ => Ok(Transformed::no(node)),
    })?;
    Ok(lifted.data)
}

fn lift_out_of(node: LogicalPlan, n_lifted: &mut usize) -> DfResult<Transformed<LogicalPlan>> {
    let mut columns: Vec<(Expr, Column)> = Vec::new();
    let mut replace = |e: Expr| {
        if !matches!(e, Expr::ScalarSubquery(_)) {
            return Ok(Transformed::no(e));
        }
        if let Some((_, name)) = columns.iter().find(|(known, _)| *known == e) {
            return Ok(Transformed::yes(Expr::Column(name.clone())));
        }
        *n_lifted += 1;
        let name = Column::new_unqualified(format!("__lifted_{n_lifted}"));
        columns.push((e, name.clone()));
        Ok(Transformed::yes(Expr::Column(name)))
    };
    let names = NamePreserver::new(&node);
    let shown = node.schema().columns();
    let node = node.map_expressions(|expr| {
        let name = names.save(&expr);
        let replaced = expr.transform_up(&mut replace)?;
        Ok(replaced.update_data(|expr| name.restore(expr)))
    })?;
    if columns.is_empty() {
        return Ok(Transformed::no(node.data));
    }
    let node = node.data.map_children(|input| {
        let mut exprs: Vec<Expr> = input.schema().columns().into_iter().map(Expr::Column).collect();
        exprs.extend(columns.iter().map(|(subquery, name)| subquery.clone().alias(&name.name)));
        Ok(Transformed::yes(LogicalPlan::Projection(Projection::try_new(exprs, Arc::new(input))?)))
    })?;
    let node = node.data.recompute_schema()?;
    if !matches!(node, LogicalPlan::Window(_)) {
        return Ok(Transformed::yes(node));
    }
    // (Window functions show the columns below: those above count on their number.)
    let shown = shown.into_iter().map(Expr::Column).collect();
    Ok(Transformed::yes(LogicalPlan::Projection(Projection::try_new(shown, Arc::new(node))?)))
}
