//! A plan with other types and names of its columns.

use arrow::datatypes::DataType;
use datafusion_common::{Column, Result as DfResult};
use datafusion_expr::logical_plan::{LogicalPlan, LogicalPlanBuilder};
use datafusion_expr::{Expr, cast};

/// The types of a plan's columns.
pub(crate) fn types_of(plan: &LogicalPlan) -> Vec<DataType> {
    plan.schema().fields().iter().map(|field| field.data_type().clone()).collect()
}

/// The plan with other types and names of its columns, which have, or will have once its
/// expressions are settled, the types `of`.
pub(crate) fn conform(
    plan: LogicalPlan,
    of: &[DataType],
    types: &[DataType],
    names: &[String],
) -> DfResult<LogicalPlan> {
    let exprs: Vec<Expr> = plan
        .schema()
        .iter()
        .zip(of.iter().zip(types))
        .zip(names)
        .map(|((field, (settled, wanted)), name)| {
            let is_kept = settled == wanted && field.1.data_type() == wanted;
            let column = Expr::Column(Column::from(field));
            let value = if is_kept { column } else { cast(column, wanted.clone()) };
            value.alias(name)
        })
        .collect();
    LogicalPlanBuilder::from(plan).project(exprs)?.build()
}
