//! `sum` and `avg` of intervals over windows, as sums of their parts.
//!
//! ```text
//! sum(i) OVER w     interval_of(sum(months) OVER w, sum(days) OVER w, sum(micros) OVER w)
//! ```
//!
//! Aggregates of groups are split where they are translated; calls over windows are columns of a
//! node, so a projection above the node puts their parts together.

use arrow::datatypes::DataType;
use datafusion_common::{Column, DFSchema, DFSchemaRef};
use datafusion_expr::expr::WindowFunction;
use datafusion_expr::{Expr, WindowFunctionDefinition, cast};

use crate::functions::aggregates;
use crate::functions::intervals::{IntervalField, IntervalOf, IntervalPart, is_interval};
use crate::time::functions::interval_divide;

/// Where a window's column comes from.
pub(super) enum WindowColumn {
    /// The result of that call.
    Call(usize),
    /// The interval whose parts are the results of these calls, divided by the result of the last.
    Interval { parts: Vec<usize>, count: Option<usize> },
}

/// Adds the calls that a call is computed by.
pub(super) fn split(call: Expr, schema: &DFSchema, calls: &mut Vec<Expr>) -> WindowColumn {
    let Some((call, is_mean)) = sum_of(&call, schema) else {
        calls.push(call);
        return WindowColumn::Call(calls.len() - 1);
    };
    // (A sum and a mean over one window share their parts.)
    let mut place = |part: WindowFunction| {
        let part = Expr::from(part);
        let known = calls.iter().position(|call| matches!(call, Expr::Alias(alias) if *alias.expr == part));
        known.unwrap_or_else(|| {
            let name = format!("__part_{}", calls.len());
            calls.push(part.alias(name));
            calls.len() - 1
        })
    };
    let interval = call.params.args[0].clone();
    let parts = IntervalField::ALL.map(|part| {
        let mut call = call.clone();
        call.fun = WindowFunctionDefinition::AggregateUDF(aggregates::sum());
        call.params.args = vec![IntervalPart::udf(part).call(vec![interval.clone()])];
        place(call)
    });
    let count = is_mean
        .then(|| place(WindowFunction { fun: WindowFunctionDefinition::AggregateUDF(aggregates::count()), ..call }));
    WindowColumn::Interval { parts: parts.to_vec(), count }
}

/// The call, and whether it is a mean, if it is a sum or mean of intervals.
fn sum_of(call: &Expr, schema: &DFSchema) -> Option<(WindowFunction, bool)> {
    match call {
        Expr::Alias(alias) => sum_of(&alias.expr, schema),
        Expr::WindowFunction(call) => {
            let is_mean = match call.fun.name() {
                "sum" => false,
                "avg" => true,
                _ => return None,
            };
            let is_sum = !call.params.distinct && call.params.args.first().is_some_and(|arg| is_interval(arg, schema));
            is_sum.then(|| (call.as_ref().clone(), is_mean))
        }
        _ => None,
    }
}

impl WindowColumn {
    /// The column over the node's columns, of which those of the calls begin at `width`.
    pub(super) fn put_together(&self, schema: &DFSchemaRef, width: usize) -> Expr {
        let at = |call: usize| Expr::Column(Column::from(schema.qualified_field(width + call)));
        match self {
            WindowColumn::Call(call) => at(*call),
            WindowColumn::Interval { parts, count } => {
                let sum = IntervalOf::udf().call(parts.iter().map(|part| at(*part)).collect());
                match count {
                    Some(count) => interval_divide(sum, cast(at(*count), DataType::Float64)),
                    None => sum,
                }
            }
        }
    }
}
