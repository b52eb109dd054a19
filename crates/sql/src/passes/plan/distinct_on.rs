//! `DISTINCT ON (keys)` as the first row of each group by `row_number()`.
//!
//! DataFusion would turn it into one `first_value` for each column; a single top-1 keeps rows
//! whole.

use std::sync::Arc;

use datafusion_common::Result as DfResult;
use datafusion_common::tree_node::Transformed;
use datafusion_expr::expr::{WindowFunction, WindowFunctionParams};
use datafusion_expr::expr_rewriter::normalize_cols;
use datafusion_expr::logical_plan::{Distinct, DistinctOn, LogicalPlan, LogicalPlanBuilder};
use datafusion_expr::{Expr, WindowFrame, WindowFunctionDefinition, col, lit};

/// Replaces every `DISTINCT ON`, also in subqueries.
pub(crate) fn replace(plan: LogicalPlan) -> DfResult<LogicalPlan> {
    Ok(plan
        .transform_up_with_subqueries(|node| match node {
            LogicalPlan::Distinct(Distinct::On(distinct)) => Ok(Transformed::yes(first_of_each(distinct)?)),
            other => Ok(Transformed::no(other)),
        })?
        .data)
}

fn first_of_each(distinct: DistinctOn) -> DfResult<LogicalPlan> {
    let DistinctOn { on_expr, select_expr, sort_expr, input, schema } = distinct;
    let partition_by = normalize_cols(on_expr, &input)?;
    let order_by = sort_expr.unwrap_or_default();
    let number = Expr::from(WindowFunction {
        fun: WindowFunctionDefinition::WindowUDF(datafusion_functions_window::row_number::row_number_udwf()),
        params: WindowFunctionParams {
            args: vec![],
            partition_by,
            order_by: order_by.clone(),
            window_frame: WindowFrame::new(Some(false)),
            filter: None,
            null_treatment: None,
            distinct: false,
        },
    });
    let number_name = number.schema_name().to_string();
    let columns: Vec<Expr> = normalize_cols(select_expr, &input)?
        .into_iter()
        .zip(schema.iter())
        .map(|(expr, (qualifier, field))| expr.unalias().alias_qualified(qualifier.cloned(), field.name()))
        .collect();
    let mut builder = LogicalPlanBuilder::from(Arc::unwrap_or_clone(input))
        .window(vec![number])?
        .filter(col(datafusion_common::Column::from_name(number_name)).eq(lit(1u64)))?;
    if !order_by.is_empty() {
        builder = builder.sort(order_by)?;
    }
    builder.project(columns)?.build()
}
