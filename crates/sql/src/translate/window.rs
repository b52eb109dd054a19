//! Window functions: `row_number()` as a top-k, aggregates over whole partitions as a join with the grouped rows.
//!
//! A filter on the row number right above becomes the top-k's limit, so that only the first rows of each group are
//! kept in order. Other window functions depend on a row's neighbours and are refused.

use std::sync::Arc;

use anabranch_plan::{JoinKind, Node, Nulls, Plan, SortKey, TopK};
use arrow::datatypes::DataType;
use datafusion_common::{DFSchema, ScalarValue};
use datafusion_expr::expr::{AggregateFunctionParams, WindowFunction};
use datafusion_expr::logical_plan::{LogicalPlan, Window};
use datafusion_expr::{BinaryExpr, Expr, Operator, WindowFrameBound, WindowFunctionDefinition};

use super::Translator;
use super::aggregate::{Wanted, grouped};
use super::expr::{column, conjuncts, position, resolve};
use super::join::{Draw, joined};
use super::schema::{drafts, schema};
use super::stage::{self, take, with_columns};
use crate::error::{Result, SqlError};

impl Translator {
    pub(super) fn window(&self, window: &Window) -> Result<Arc<Plan>> {
        let plan = self.node(&window.input)?;
        self.windows(window, plan, None)
    }

    /// A filter over a `row_number()`: its bounds become the limit. `None` if the input is something else.
    pub(super) fn filtered_window(&self, predicate: &Expr, input: &LogicalPlan) -> Result<Option<Arc<Plan>>> {
        let LogicalPlan::Window(window) = input else {
            return Ok(None);
        };
        let [expr] = window.window_expr.as_slice() else {
            return Ok(None);
        };
        if !is_row_number(call_of(expr)?) {
            return Ok(None);
        }
        let number_at = window.schema.fields().len() - 1;
        let mut most: Option<u64> = None;
        let mut rest = Vec::new();
        for part in conjuncts(predicate) {
            match bound(&part, &window.schema, number_at) {
                Some(Bound::AtMost(n)) => most = Some(most.map_or(n, |m| m.min(n))),
                Some(Bound::Exactly(n)) => {
                    most = Some(most.map_or(n, |m| m.min(n)));
                    if n > 1 {
                        rest.push(part);
                    }
                }
                None => rest.push(part),
            }
        }
        let plan = self.node(&window.input)?;
        let plan = self.windows(window, plan, most)?;
        let filters = rest
            .iter()
            .map(|e| resolve(e, &window.schema, &plan.schema))
            .collect::<Result<Vec<_>>>()?;
        Ok(Some(stage::filter(plan, filters)?))
    }

    /// The input's columns, then one column for each window expression.
    fn windows(&self, window: &Window, mut plan: Arc<Plan>, limit: Option<u64>) -> Result<Arc<Plan>> {
        let from = window.input.schema();
        for (n, expr) in window.window_expr.iter().enumerate() {
            let call = call_of(expr)?;
            let at = from.fields().len() + n;
            plan = if is_row_number(call) {
                numbered(plan, call, from, limit)?
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

/// Appends the row's number within its partition, keeping at most the first `limit` rows.
fn numbered(plan: Arc<Plan>, call: &WindowFunction, from: &DFSchema, limit: Option<u64>) -> Result<Arc<Plan>> {
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
            order.push(SortKey {
                column: *at,
                descending: !key.asc,
                nulls_first: key.nulls_first,
            });
        }
    }
    let top = TopK {
        group,
        order,
        offset: 0,
        limit: limit.map(|n| usize::try_from(n).unwrap_or(usize::MAX)),
        row_number: true,
    };
    let mut columns = drafts(&input.schema);
    columns.push(("row_number".into(), DataType::UInt64, false));
    let number = columns.len() - 1;
    let plan = Arc::new(Plan {
        node: Node::TopK { input, top },
        schema: schema(columns),
    });
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
        _ => "Leave ORDER BY out of the window for a total over the partition; for a running total join with the earlier rows.",
    };
    SqlError::unsupported(format!("window function {name}() over an ordered frame"), hint)
}

enum Bound {
    AtMost(u64),
    Exactly(u64),
}

/// Reads `number <= k`, `number < k`, `number = k` and their mirror images.
fn bound(part: &Expr, schema: &DFSchema, number_at: usize) -> Option<Bound> {
    let Expr::BinaryExpr(BinaryExpr { left, op, right }) = part else {
        return None;
    };
    let (n, op) = if is_number(left, schema, number_at) {
        (whole(right)?, *op)
    } else if is_number(right, schema, number_at) {
        (whole(left)?, op.swap()?)
    } else {
        return None;
    };
    match op {
        Operator::LtEq => Some(Bound::AtMost(u64::try_from(n).unwrap_or(0))),
        Operator::Lt => Some(Bound::AtMost(u64::try_from(n - 1).unwrap_or(0))),
        Operator::Eq if n >= 1 => Some(Bound::Exactly(n as u64)),
        Operator::Eq => Some(Bound::AtMost(0)),
        _ => None,
    }
}

fn is_number(expr: &Expr, schema: &DFSchema, number_at: usize) -> bool {
    match expr {
        Expr::Cast(cast) => is_number(&cast.expr, schema, number_at),
        Expr::Alias(alias) => is_number(&alias.expr, schema, number_at),
        Expr::Column(name) => schema.maybe_index_of_column(name) == Some(number_at),
        other => position(other, schema) == Some(number_at),
    }
}

fn whole(expr: &Expr) -> Option<i64> {
    let Expr::Literal(value, _) = expr else {
        return None;
    };
    match value.cast_to(&DataType::Int64) {
        Ok(ScalarValue::Int64(n)) if !matches!(value.data_type(), DataType::Decimal128(_, s) if s > 0) => n,
        _ => None,
    }
}
