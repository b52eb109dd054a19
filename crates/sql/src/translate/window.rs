//! Window functions: `row_number()`, `rank()` and `dense_rank()` as a top-k, aggregates over whole
//! partitions as a join with the grouped rows.
//!
//! A filter on the place above becomes the top-k's limit (in `stage`), so that only the first
//! rows of each group are kept in order. What follows from row numbers is in `ranks`; what looks at
//! frames is in `frames`.

use std::sync::Arc;

use anabranch_plan::{JoinKind, Nulls, Plan, RankedBy};
use anabranch_spec::frame::Exclude;
use arrow::datatypes::DataType;
use datafusion_common::DFSchema;
use datafusion_expr::expr::{WindowFunction, WindowFunctionParams};
use datafusion_expr::logical_plan::Window;
use datafusion_expr::{Expr, WindowFrameBound, WindowFrameUnits, WindowFunctionDefinition};

use super::Translator;
use super::aggregate::grouped;
use super::exclude::excluded;
use super::expr::{column, resolve};
use super::frames::over_frames;
use super::join::{Draw, joined};
use super::known_values::known_value;
use super::ranks::ranked;
use super::stage::{take, with_columns};
use super::window_parts::{aggregate_of, is_unordered, numbered, placed, resolved};
use crate::error::{Result, SqlError};

impl Translator {
    pub(super) fn window(&self, window: &Window) -> Result<Arc<Plan>> {
        let plan = self.node(&window.input)?;
        self.windows(window, plan)
    }

    /// The input's columns, then one column for each window expression.
    fn windows(&self, window: &Window, mut plan: Arc<Plan>) -> Result<Arc<Plan>> {
        let from = window.input.schema();
        let width = plan.schema.fields().len();
        let mut framed = Vec::new();
        let mut at = vec![0; window.window_expr.len()];
        let calls = window.window_expr.iter().map(|expr| Ok(excluded(call_of(expr)?)));
        let calls: Vec<(WindowFunction, Exclude)> = calls.collect::<Result<_>>()?;
        for (n, (call, exclude)) in calls.iter().enumerate() {
            let output = window.schema.field(from.fields().len() + n).data_type();
            let is_whole = *exclude == Exclude::Nothing;
            let known = known_value(plan.clone(), call, from, *exclude)?;
            plan = match known.map_or_else(|| ranked(plan.clone(), call, from, *exclude), |known| Ok(Some(known)))? {
                Some(plan) => plan,
                None if is_row_number(call) => numbered(plan, call, from)?,
                None if is_whole && is_of_partition(call) => over_partition(plan, call, from, output)?,
                None => {
                    framed.push((n, call, output, *exclude));
                    continue;
                }
            };
            at[n] = plan.schema.fields().len() - 1;
        }
        if framed.is_empty() {
            return Ok(plan);
        }
        if let [(n, call, _, Exclude::Nothing)] = framed[..]
            && call.fun.name() == "rank"
        {
            // (Alone, so that a condition on it may bound what is kept; others would need their
            // partition in order once more.)
            let plan = placed(plan, call, from, RankedBy::Rank)?;
            at[n] = plan.schema.fields().len() - 1;
            let shown: Vec<usize> = (0..width).chain(at).collect();
            return Ok(take(plan, &shown));
        }
        let first = plan.schema.fields().len();
        framed.iter().enumerate().for_each(|(place, (n, ..))| at[*n] = first + place);
        let calls: Vec<(&WindowFunction, &DataType, Exclude)> =
            framed.iter().map(|(_, call, output, exclude)| (*call, *output, *exclude)).collect();
        let plan = over_frames(plan, &calls, from)?;
        let shown: Vec<usize> = (0..width).chain(at).collect();
        Ok(take(plan, &shown))
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

/// Appends an aggregate over the row's whole partition.
fn over_partition(plan: Arc<Plan>, call: &WindowFunction, from: &DFSchema, output: &DataType) -> Result<Arc<Plan>> {
    let params = &call.params;
    let keys = resolved(&params.partition_by, from, &plan)?;
    let n_keys = keys.len();
    let width = plan.schema.fields().len();
    let (plan, left_key) = with_columns(plan, keys)?;
    let wanted = aggregate_of(call, output, &|e| resolve(e, from, &plan.schema))?;
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

/// Whether the call is an aggregate of all rows of the partition, to which their order is nothing.
fn is_of_partition(call: &WindowFunction) -> bool {
    let lists = ["array_agg", "string_agg", "first_value", "last_value", "nth_value"].contains(&call.fun.name());
    matches!(call.fun, WindowFunctionDefinition::AggregateUDF(_))
        && is_whole(&call.params)
        && (is_unordered(&call.params) || !lists)
}

/// Whether each row's frame is its whole partition. Without an order the rows of a partition are
/// peers, so a frame by values that reaches the current row reaches them all; a frame by positions
/// is no set of rows that the data decides.
fn is_whole(params: &WindowFunctionParams) -> bool {
    use WindowFrameBound::{CurrentRow, Following, Preceding};
    let frame = &params.window_frame;
    let from_first = matches!(&frame.start_bound, Preceding(rows) if rows.is_null());
    let to_last = matches!(&frame.end_bound, Following(rows) if rows.is_null());
    let by_peers = is_unordered(params) && frame.units != WindowFrameUnits::Rows;
    let starts = from_first || (by_peers && frame.start_bound == CurrentRow);
    let ends = to_last || (by_peers && frame.end_bound == CurrentRow);
    starts && ends
}
