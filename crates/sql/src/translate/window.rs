//! Window functions: `row_number()` as a top-k, aggregates over whole partitions as a join with the grouped rows.
//!
//! A filter on the row number above becomes the top-k's limit (in `stage`), so that only the first rows of each group are
//! kept in order. Other window functions depend on a row's neighbours and are refused.

use std::sync::Arc;

use anabranch_plan::{JoinKind, Node, Nulls, Plan, SortKey, TopK};
use arrow::datatypes::DataType;
use datafusion_common::DFSchema;
use datafusion_expr::expr::{AggregateFunctionParams, WindowFunction};
use datafusion_expr::logical_plan::Window;
use datafusion_expr::{Expr, WindowFrameBound, WindowFunctionDefinition};

use super::Translator;
use super::aggregate::{Wanted, grouped};
use super::expr::{column, resolve};
use super::join::{Draw, joined};
use super::schema::{drafts, schema};
use super::stage::{take, with_columns};
use crate::error::{Result, SqlError};

impl Translator {
    pub(super) fn window(&self, window: &Window) -> Result<Arc<Plan>> {
        let plan = self.node(&window.input)?;
        self.windows(window, plan)
    }

    /// The input's columns, then one column for each window expression.
    fn windows(&self, window: &Window, mut plan: Arc<Plan>) -> Result<Arc<Plan>> {
        let from = window.input.schema();
        for (n, expr) in window.window_expr.iter().enumerate() {
            let call = call_of(expr)?;
            let at = from.fields().len() + n;
            plan = if is_row_number(call) {
                numbered(plan, call, from)?
            } else {
                over_partition(plan, call, from, window.schema.field(at).data_type())?
            };
        }
        Ok(plan)
    }
}

fn call_of(expr: &Expr) -> Result<&WindowFunction> {
    match expr {
        Expr::WindowFunction(call) => Ok(call),
        Expr::Alias(alias) => call_of(&alias.expr),
        other => Err(SqlError::internal(format!("{other} is not a window function"))),
    }
}

fn is_row_number(call: &WindowFunction) -> bool {
    call.fun.name() == "row_number"
}

/// Appends the row's number within its partition. A filter on the number becomes a limit in `stage`.
fn numbered(plan: Arc<Plan>, call: &WindowFunction, from: &DFSchema) -> Result<Arc<Plan>> {
    let width = plan.schema.fields().len();
    let params = &call.params;
    let mut exprs = resolved(&params.partition_by, from, &plan)?;
    let n_groups = exprs.len();
    for key in &params.order_by {
        exprs.push(resolve(&key.expr, from, &plan.schema)?);
    }
    let (input, columns) = with_columns(plan, exprs)?;
    let mut group: Vec<usize> = Vec::new();
    for at in &columns[..n_groups] {
        if !group.contains(at) {
            group.push(*at);
        }
    }
    let mut order: Vec<SortKey> = Vec::new();
    for (key, at) in params.order_by.iter().zip(&columns[n_groups..]) {
        if !group.contains(at) && !order.iter().any(|known| known.column == *at) {
            order.push(SortKey { column: *at, descending: !key.asc, nulls_first: key.nulls_first });
        }
    }
    let top = TopK { group, order, offset: 0, limit: None, row_number: true };
    let mut columns = drafts(&input.schema);
    columns.push(("row_number".into(), DataType::UInt64, false));
    let number = columns.len() - 1;
    let plan = Arc::new(Plan { node: Node::TopK { input, top }, schema: schema(columns) });
    let shown: Vec<usize> = (0..width).chain([number]).collect();
    Ok(take(plan, &shown))
}

/// Appends an aggregate over the row's whole partition.
fn over_partition(plan: Arc<Plan>, call: &WindowFunction, from: &DFSchema, output: &DataType) -> Result<Arc<Plan>> {
    let params = &call.params;
    let WindowFunctionDefinition::AggregateUDF(function) = &call.fun else {
        return Err(refused(call));
    };
    let frame = &params.window_frame;
    let whole = params.order_by.is_empty()
        || matches!(
            (&frame.start_bound, &frame.end_bound),
            (WindowFrameBound::Preceding(from), WindowFrameBound::Following(to)) if from.is_null() && to.is_null()
        );
    if !whole {
        return Err(refused(call));
    }
    let keys = resolved(&params.partition_by, from, &plan)?;
    let n_keys = keys.len();
    let width = plan.schema.fields().len();
    let (plan, left_key) = with_columns(plan, keys)?;
    let aggregate = AggregateFunctionParams {
        args: params.args.clone(),
        distinct: params.distinct,
        filter: params.filter.clone(),
        order_by: vec![],
        null_treatment: params.null_treatment,
    };
    let wanted = Wanted::of(function.name(), &aggregate, output, &|e| resolve(e, from, &plan.schema))?;
    let group = left_key.iter().map(|at| column(&plan.schema, *at)).collect();
    let totals = grouped(plan.clone(), group, vec![wanted])?;
    let left_width = plan.schema.fields().len();
    let output: Vec<usize> = (0..width).chain([left_width + n_keys]).collect();
    Ok(joined(Draw {
        kind: JoinKind::Inner,
        left: plan,
        right: totals,
        left_key,
        right_key: (0..n_keys).collect(),
        nulls: Nulls::Equal,
        residual: None,
        output,
    }))
}

fn resolved(exprs: &[Expr], from: &DFSchema, plan: &Plan) -> Result<Vec<Expr>> {
    exprs.iter().map(|e| resolve(e, from, &plan.schema)).collect()
}

fn refused(call: &WindowFunction) -> SqlError {
    let name = call.fun.name();
    let hint = match name {
        "rank" | "dense_rank" | "percent_rank" | "cume_dist" | "ntile" => {
            "Use row_number() OVER (PARTITION BY .. ORDER BY ..), with a unique last order column to break ties."
        }
        "lag" | "lead" => {
            "Number the rows with row_number() in a subquery and join it with itself on number = number + 1."
        }
        "first_value" | "last_value" | "nth_value" => {
            "Number the rows with row_number() OVER (PARTITION BY .. ORDER BY ..) and keep number = 1."
        }
        _ => {
            "Leave ORDER BY out of the window for a total over the partition; for a running total join with the earlier rows."
        }
    };
    SqlError::unsupported(format!("window function {name}() over an ordered frame"), hint)
}
