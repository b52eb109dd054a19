//! Variances and standard deviations of exact numbers, as sums.
//!
//! ```text
//! stddev(x)     __stddev_samp(count(x), sum(x), sum(x * x))
//! ```
//!
//! Law: the digits are PostgreSQL's, which computes them of exact sums. Of floats they are left to
//! their aggregate.
//!
//! With DISTINCT, squares are summed by the sign of their root: of two numbers that differ in their
//! sign alone each has its square.

use std::sync::Arc;

use anabranch_batch::numeric::TYPE;
use datafusion_common::tree_node::Transformed;
use datafusion_common::{Column, DFSchema, Result as DfResult, internal_datafusion_err};
use datafusion_expr::expr::{AggregateFunction, WindowFunction};
use datafusion_expr::logical_plan::{Aggregate, LogicalPlan, LogicalPlanBuilder, Projection, Window};
use datafusion_expr::{Expr, ExprSchemable, Operator, WindowFunctionDefinition, cast, lit, when};

use crate::functions::aggregates;
use crate::functions::deviations::Dispersion;
use crate::functions::numerics::plain_operation;
use crate::functions::table::FUNCTIONS;

/// Replaces them in all aggregates and windows of a plan.
pub(crate) fn replace(plan: LogicalPlan) -> DfResult<LogicalPlan> {
    Ok(plan
        .transform_up_with_subqueries(|node| match node {
            LogicalPlan::Aggregate(aggregate) => in_aggregate(aggregate),
            LogicalPlan::Window(window) => in_window(window),
            other => Ok(Transformed::no(other)),
        })?
        .data)
}

fn in_aggregate(aggregate: Aggregate) -> DfResult<Transformed<LogicalPlan>> {
    let below = Arc::clone(aggregate.input.schema());
    if !aggregate.aggr_expr.iter().any(|call| dispersion_of(call, &below).is_some()) {
        return Ok(Transformed::no(LogicalPlan::Aggregate(aggregate)));
    }
    let Aggregate { input, group_expr, aggr_expr, schema, .. } = aggregate;
    let n_groups = schema.fields().len() - aggr_expr.len();
    let (calls, columns) = of_sums(aggr_expr, &schema, n_groups, &below)?;
    let plan = LogicalPlan::Aggregate(Aggregate::try_new(input, group_expr, calls)?);
    Ok(Transformed::yes(LogicalPlan::Projection(Projection::try_new(columns, Arc::new(plan))?)))
}

fn in_window(window: Window) -> DfResult<Transformed<LogicalPlan>> {
    let below = Arc::clone(window.input.schema());
    if !window.window_expr.iter().any(|call| dispersion_of(call, &below).is_some()) {
        return Ok(Transformed::no(LogicalPlan::Window(window)));
    }
    let Window { input, window_expr, schema } = window;
    let (calls, columns) = of_sums(window_expr, &schema, below.fields().len(), &below)?;
    let plan = LogicalPlanBuilder::from(Arc::unwrap_or_clone(input)).window(calls)?.build()?;
    Ok(Transformed::yes(LogicalPlan::Projection(Projection::try_new(columns, Arc::new(plan))?)))
}

/// The calls in place of some, and the columns of their node computed of these: the first
/// `n_before` as they are, then one for each call.
fn of_sums(given: Vec<Expr>, schema: &DFSchema, n_before: usize, below: &DFSchema) -> DfResult<(Vec<Expr>, Vec<Expr>)> {
    let mut calls = Vec::new();
    let mut columns: Vec<Expr> = schema.columns().into_iter().take(n_before).map(Expr::Column).collect();
    for (call, (qualifier, field)) in given.into_iter().zip(schema.iter().skip(n_before)) {
        let value = match dispersion_of(&call, below) {
            Some((dispersion, x)) => {
                let params = parts(call.unalias(), x, below, &mut calls)?;
                dispersion.udf().call(params.into_iter().map(Expr::Column).collect())
            }
            None => {
                calls.push(call);
                Expr::Column(Column::new(qualifier.cloned(), field.name()))
            }
        };
        columns.push(value.alias_qualified(qualifier.cloned(), field.name()));
    }
    Ok((calls, columns))
}

/// What a call tells of exact numbers, and of which.
fn dispersion_of(call: &Expr, schema: &DFSchema) -> Option<(Dispersion, Expr)> {
    let (name, args) = match call {
        Expr::Alias(alias) => return dispersion_of(&alias.expr, schema),
        Expr::AggregateFunction(call) => (call.func.name(), &call.params.args),
        Expr::WindowFunction(call) => (call.fun.name(), &call.params.args),
        _ => return None,
    };
    let dispersion = Dispersion::of(name)?;
    let [x] = args.as_slice() else { return None };
    let is = x.get_type(schema).ok()?;
    (is.is_integer() || is.is_decimal() || is == TYPE).then(|| (dispersion, x.clone()))
}

/// Adds the calls that one is computed of, and names their columns.
fn parts(call: Expr, x: Expr, schema: &DFSchema, calls: &mut Vec<Expr>) -> DfResult<Vec<Column>> {
    let sum = &FUNCTIONS.aggregate["sum"];
    let number = match x.get_type(schema)? == TYPE {
        true => x.clone(),
        false => cast(x.clone(), TYPE),
    };
    let square = plain_operation(Operator::Multiply, &number, &number, (&TYPE, &TYPE))
        .ok_or_else(|| internal_datafusion_err!("numerics have a product"))?;
    let is_distinct = match &call {
        Expr::AggregateFunction(call) => call.params.distinct,
        Expr::WindowFunction(call) => call.params.distinct,
        _ => false,
    };
    let squares = match is_distinct {
        true => {
            vec![when(x.clone().gt_eq(lit(0i64)), square.clone()).end()?, when(x.clone().lt(lit(0i64)), square).end()?]
        }
        false => vec![square],
    };
    let mut place = |function: &Arc<datafusion_expr::AggregateUDF>, arg: Expr| {
        let part = match call.clone() {
            Expr::AggregateFunction(mut call) => {
                call.params.args = vec![arg];
                Expr::AggregateFunction(AggregateFunction { func: Arc::clone(function), ..call })
            }
            Expr::WindowFunction(call) => {
                let mut call = *call;
                call.params.args = vec![arg];
                let fun = WindowFunctionDefinition::AggregateUDF(Arc::clone(function));
                Expr::from(WindowFunction { fun, ..call })
            }
            other => other,
        };
        let known = calls.iter().find_map(|call| match call {
            Expr::Alias(alias) if *alias.expr == part => Some(alias.name.clone()),
            _ => None,
        });
        let name = known.unwrap_or_else(|| {
            let name = format!("__spread_{}", calls.len());
            calls.push(part.alias(&name));
            name
        });
        Column::from_name(name)
    };
    let mut columns = vec![place(&aggregates::count(), x), place(sum, number)];
    columns.extend(squares.into_iter().map(|squares| place(sum, squares)));
    Ok(columns)
}
