//! Subqueries inside aggregates, window functions and orders become columns of the rows below.
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

/// Lifts the subqueries out of all aggregates, window functions and orders of a plan.
pub(crate) fn lift(plan: LogicalPlan) -> DfResult<LogicalPlan> {
    let mut n_lifted = 0;
    let lifted = plan.transform_up_with_subqueries(|node| match node {
        LogicalPlan::Aggregate(_) | LogicalPlan::Window(_) | LogicalPlan::Sort(_) => lift_out_of(node, &mut n_lifted),
        _ => Ok(Transformed::no(node)),
    })?;
    Ok(lifted.data)
}

fn lift_out_of(node: LogicalPlan, n_lifted: &mut usize) -> DfResult<Transformed<LogicalPlan>> {
    let mut columns: Vec<(Expr, Column)> = Vec::new();
    let is_order = matches!(node, LogicalPlan::Sort(_));
    let is_lifted = |e: &Expr| match e {
        Expr::ScalarSubquery(_) => true,
        Expr::Exists(_) | Expr::InSubquery(_) => is_order,
        _ => false,
    };
    let mut replace = |e: Expr| {
        if !is_lifted(&e) {
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
    let node = node.data.map_children(|input| Ok(Transformed::yes(with_columns(input, &columns)?)))?;
    let node = node.data.recompute_schema()?;
    if !is_order && !matches!(node, LogicalPlan::Window(_)) {
        return Ok(Transformed::yes(node));
    }
    // (Window functions and orders show the columns below: those above count on their number.)
    let shown = shown.into_iter().map(Expr::Column).collect();
    Ok(Transformed::yes(LogicalPlan::Projection(Projection::try_new(shown, Arc::new(node))?)))
}

/// The rows with the subqueries as columns behind theirs. An order may name what a select list
/// leaves out: its subqueries are computed over the rows of which the list is made.
fn with_columns(input: LogicalPlan, columns: &[(Expr, Column)]) -> DfResult<LogicalPlan> {
    let lifted = columns.iter().map(|(subquery, name)| subquery.clone().alias(&name.name));
    let is_in_reach =
        |(subquery, _): &(Expr, Column)| outer_columns(subquery).iter().all(|column| input.schema().has_column(column));
    match input {
        LogicalPlan::Projection(list) if !columns.iter().all(is_in_reach) => {
            let exprs = list.expr.iter().cloned().chain(lifted).collect();
            Ok(LogicalPlan::Projection(Projection::try_new(exprs, list.input)?))
        }
        input => {
            let own = input.schema().columns().into_iter().map(Expr::Column);
            let exprs = own.chain(lifted).collect();
            Ok(LogicalPlan::Projection(Projection::try_new(exprs, Arc::new(input))?))
        }
    }
}

/// The columns of the rows outside that a subquery names.
fn outer_columns(subquery: &Expr) -> Vec<Column> {
    let outer = match subquery {
        Expr::ScalarSubquery(query) => &query.outer_ref_columns,
        Expr::Exists(test) => &test.subquery.outer_ref_columns,
        Expr::InSubquery(test) => &test.subquery.outer_ref_columns,
        _ => return vec![],
    };
    let name = |outer: &Expr| match outer {
        Expr::OuterReferenceColumn(_, column) => Some(column.clone()),
        _ => None,
    };
    outer.iter().filter_map(name).collect()
}
