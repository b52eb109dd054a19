//! `mode`, `percentile_disc`, and `min` and `max` over windows, of values of an enumeration:
//! computed of the places of the labels, and read as labels above.
//!
//! ```text
//! mode(l)     __enum_label(mode(__enum_order(l)))
//! ```

use std::sync::Arc;

use arrow::datatypes::DataType;
use datafusion_common::tree_node::Transformed;
use datafusion_common::{Column, DFSchema, Result as DfResult};
use datafusion_expr::expr::Sort;
use datafusion_expr::logical_plan::{Aggregate, LogicalPlan, LogicalPlanBuilder, Projection};
use datafusion_expr::{Expr, ExprSchemable};

use crate::functions::enumerations::{label_at, mark_of, order_of};
use crate::resolve::type_marks::EnumMark;

/// Computes the calls of a node of places.
pub(crate) fn by_places(node: LogicalPlan) -> DfResult<Transformed<LogicalPlan>> {
    let (calls, input) = match &node {
        LogicalPlan::Aggregate(aggregate) => (&aggregate.aggr_expr, &aggregate.input),
        LogicalPlan::Window(window) => (&window.window_expr, &window.input),
        _ => return Ok(Transformed::no(node)),
    };
    let of_places: Vec<Option<(Expr, EnumMark)>> =
        calls.iter().enumerate().map(|(n, call)| of_places(call, n, input.schema())).collect();
    if of_places.iter().all(Option::is_none) {
        return Ok(Transformed::no(node));
    }
    let made = calls.iter().zip(&of_places).map(|(call, made)| made.as_ref().map_or(call, |(made, _)| made).clone());
    let made: Vec<Expr> = made.collect();
    let over = match &node {
        LogicalPlan::Aggregate(aggregate) => {
            LogicalPlan::Aggregate(Aggregate::try_new(input.clone(), aggregate.group_expr.clone(), made)?)
        }
        _ => LogicalPlanBuilder::from(input.as_ref().clone()).window(made)?.build()?,
    };
    let n_before = node.schema().fields().len() - of_places.len();
    let columns = node.schema().iter().enumerate().map(|(at, (qualifier, field))| {
        match at.checked_sub(n_before).and_then(|n| of_places[n].as_ref().map(|(_, mark)| (n, mark))) {
            Some((n, mark)) => {
                let place = Expr::Column(Column::from_name(name_of(n)));
                label_at(place, mark).alias_qualified(qualifier.cloned(), field.name())
            }
            None => Expr::Column(Column::new(qualifier.cloned(), field.name())),
        }
    });
    Ok(Transformed::yes(LogicalPlan::Projection(Projection::try_new(columns.collect(), Arc::new(over))?)))
}

/// The call over places, with the enumeration that it is of.
fn of_places(call: &Expr, n: usize, schema: &DFSchema) -> Option<(Expr, EnumMark)> {
    let single = |mark: &EnumMark, made: Expr| {
        let is_list = matches!(made.get_type(schema), Ok(DataType::List(_)));
        (!is_list).then(|| (made.alias(name_of(n)), mark.clone()))
    };
    match call.clone().unalias() {
        Expr::AggregateFunction(mut call) if matches!(call.func.name(), "mode" | "percentile_disc") => {
            let mark = mark_of(call.params.args.first()?, schema)?;
            by_place(&mut call.params.args, &mut call.params.order_by, &mark);
            single(&mark, Expr::AggregateFunction(call))
        }
        Expr::WindowFunction(mut call) if matches!(call.fun.name(), "min" | "max") => {
            let mark = mark_of(call.params.args.first()?, schema)?;
            by_place(&mut call.params.args, &mut [], &mark);
            single(&mark, Expr::WindowFunction(call))
        }
        _ => None,
    }
}

/// Puts the place of the value in its stead.
fn by_place(args: &mut [Expr], order_by: &mut [Sort], mark: &EnumMark) {
    let Some(value) = args.first_mut() else { return };
    for key in order_by.iter_mut().filter(|key| key.expr == *value) {
        key.expr = order_of(value.clone(), mark);
    }
    *value = order_of(std::mem::take(value), mark);
}

fn name_of(n: usize) -> String {
    format!("__place_{n}")
}
