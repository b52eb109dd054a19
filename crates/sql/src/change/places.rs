//! The places of an insertion's rows in the order that its query says.
//!
//! Law: `INSERT INTO t (x) SELECT .. ORDER BY y` numbers rows in the order of `y`, as PostgreSQL
//! does. The place is `row_number()` over the order; a query without ORDER BY has none.

use std::sync::Arc;

use datafusion_common::{Column, Result as DfResult};
use datafusion_expr::expr::{WindowFunction, WindowFunctionDefinition};
use datafusion_expr::logical_plan::{Limit, LogicalPlan, LogicalPlanBuilder, Projection, Sort};
use datafusion_expr::{Expr, ExprFunctionExt};

use crate::functions::table::FUNCTIONS;

/// The column of places.
pub(super) const PLACE: &str = "__place_of_row";

/// The query's plan with the places of its rows behind its columns; `None` if it says no order.
pub(super) fn with_places(plan: &LogicalPlan) -> DfResult<Option<LogicalPlan>> {
    Ok(match plan {
        LogicalPlan::Sort(sort) => {
            let function = WindowFunctionDefinition::WindowUDF(FUNCTIONS.window["row_number"].clone());
            let number = Expr::from(WindowFunction::new(function, vec![])).order_by(sort.expr.clone()).build()?;
            let name = number.schema_name().to_string();
            let numbered = LogicalPlanBuilder::from(sort.input.as_ref().clone()).window(vec![number])?.build()?;
            let mut columns: Vec<Expr> = sort.input.schema().columns().into_iter().map(Expr::Column).collect();
            columns.push(Expr::Column(Column::new_unqualified(name)).alias(PLACE));
            let numbered = LogicalPlan::Projection(Projection::try_new(columns, Arc::new(numbered))?);
            let order = vec![Expr::Column(Column::new_unqualified(PLACE)).sort(true, false)];
            Some(LogicalPlan::Sort(Sort { expr: order, input: Arc::new(numbered), fetch: sort.fetch }))
        }
        LogicalPlan::Limit(limit) => with_places(&limit.input)?
            .map(|input| LogicalPlan::Limit(Limit { input: Arc::new(input), ..limit.clone() })),
        LogicalPlan::Projection(projection) => match with_places(&projection.input)? {
            Some(input) => {
                let place = Expr::Column(Column::new_unqualified(PLACE));
                let columns = projection.expr.iter().cloned().chain([place]).collect();
                Some(LogicalPlan::Projection(Projection::try_new(columns, Arc::new(input))?))
            }
            None => None,
        },
        _ => None,
    })
}

/// The rows with their last column as the place.
pub(super) fn named_places(rows: LogicalPlan) -> DfResult<LogicalPlan> {
    let mut columns: Vec<Expr> = rows.schema().columns().into_iter().map(Expr::Column).collect();
    if let Some(place) = columns.pop() {
        columns.push(place.alias(PLACE));
    }
    LogicalPlanBuilder::from(rows).project(columns)?.build()
}
