//! `FILTER (WHERE ..)`: what an aggregate takes is computed of the rows that pass only.
//!
//! ```text
//! sum(10 / x) FILTER (WHERE x <> 0)   =   sum(CASE WHEN x <> 0 THEN 10 / x END) FILTER (WHERE x <> 0)
//! ```
//!
//! Law: a row that a condition has removed cannot fail. Columns and constants cannot fail, and stay
//! as they are.

use arrow::datatypes::DataType;
use datafusion_common::tree_node::Transformed;
use datafusion_common::{DFSchema, Result as DfResult};
use datafusion_expr::expr::{AggregateFunction, Sort, WindowFunction};
use datafusion_expr::{Expr, ExprSchemable, when};

/// Guards the arguments of an aggregate by its filter.
pub(crate) fn guard_arguments(expr: Expr, schema: &DFSchema) -> DfResult<Transformed<Expr>> {
    match expr {
        Expr::AggregateFunction(AggregateFunction { func, mut params }) => {
            let Some(filter) = condition(params.filter.as_deref(), schema) else {
                return Ok(Transformed::no(Expr::AggregateFunction(AggregateFunction { func, params })));
            };
            guard(&mut params.args, &mut params.order_by, &filter)?;
            Ok(Transformed::yes(Expr::AggregateFunction(AggregateFunction { func, params })))
        }
        Expr::WindowFunction(mut call) => {
            let WindowFunction { params, .. } = call.as_mut();
            let Some(filter) = condition(params.filter.as_deref(), schema) else {
                return Ok(Transformed::no(Expr::WindowFunction(call)));
            };
            guard(&mut params.args, &mut [], &filter)?;
            Ok(Transformed::yes(Expr::WindowFunction(call)))
        }
        other => Ok(Transformed::no(other)),
    }
}

/// The filter, if it is a condition; the planner refuses others.
fn condition(filter: Option<&Expr>, schema: &DFSchema) -> Option<Expr> {
    let filter = filter?;
    matches!(filter.get_type(schema), Ok(DataType::Boolean)).then(|| filter.clone())
}

fn guard(args: &mut [Expr], order: &mut [Sort], filter: &Expr) -> DfResult<()> {
    for part in args.iter_mut().chain(order.iter_mut().map(|key| &mut key.expr)) {
        if !cannot_fail(part) {
            *part = when(filter.clone(), part.clone()).end()?;
        }
    }
    Ok(())
}

fn cannot_fail(expr: &Expr) -> bool {
    match expr {
        Expr::Alias(alias) => cannot_fail(&alias.expr),
        Expr::Column(_) | Expr::Literal(..) => true,
        _ => false,
    }
}
