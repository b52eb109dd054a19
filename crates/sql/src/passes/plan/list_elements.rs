//! Elements of arrays of documents and uuids are documents and uuids behind `unnest`.
//!
//! DataFusion's Unnest drops the marks of lists. Derived tables, named queries and functions in
//! FROM have those of their elements as soon as they are planned. Cost: a call around the column.

use std::sync::Arc;

use anabranch_batch::TextLimit;
use datafusion_common::Result as DfResult;
use datafusion_expr::Expr;
use datafusion_expr::logical_plan::{LogicalPlan, Projection};

use crate::functions::forms::UUID_IN;
use crate::functions::table::call;
use crate::resolve::documents::elements_limit_of;

/// The rows, with columns that are elements marked as what they are.
pub(super) fn mark(plan: LogicalPlan) -> DfResult<LogicalPlan> {
    let limits = limits_of(&plan);
    if limits.iter().all(Option::is_none) {
        return Ok(plan);
    }
    let columns = plan.schema().columns().into_iter().zip(limits).map(|(column, limit)| {
        let (relation, name) = (column.relation.clone(), column.name.clone());
        let value = Expr::Column(column);
        let Some(function) = limit.and_then(function_of) else { return value };
        call(function, vec![value]).alias_qualified(relation, name)
    });
    Ok(LogicalPlan::Projection(Projection::try_new(columns.collect(), Arc::new(plan))?))
}

/// The function whose answers are marked.
fn function_of(limit: TextLimit) -> Option<&'static str> {
    match limit {
        TextLimit::Json => Some("__json_document"),
        TextLimit::Jsonb => Some("__jsonb_document"),
        TextLimit::Uuid => Some(UUID_IN),
        _ => None,
    }
}

/// What the columns are that are elements of lists.
fn limits_of(plan: &LogicalPlan) -> Vec<Option<TextLimit>> {
    let width = plan.schema().fields().len();
    match plan {
        LogicalPlan::Unnest(node) => {
            let of = |at: &usize| {
                let is_list = node.list_type_columns.iter().any(|(list, _)| list == at);
                is_list.then(|| elements_limit_of(node.input.schema().field(*at))).flatten()
            };
            node.dependency_indices.iter().map(of).collect()
        }
        LogicalPlan::Projection(node) => {
            let below = limits_of(&node.input);
            let of = |expr: &Expr| {
                let Expr::Column(column) = expr.clone().unalias_nested().data else { return None };
                below.get(node.input.schema().maybe_index_of_column(&column)?).copied().flatten()
            };
            node.expr.iter().map(of).collect()
        }
        LogicalPlan::SubqueryAlias(_) | LogicalPlan::Filter(_) | LogicalPlan::Sort(_) | LogicalPlan::Limit(_) => {
            match plan.inputs().as_slice() {
                [input] if input.schema().fields().len() == width => limits_of(input),
                _ => vec![None; width],
            }
        }
        _ => vec![None; width],
    }
}
