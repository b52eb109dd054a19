//! Elements of arrays of documents, uuids and labels are these behind `unnest`.
//!
//! DataFusion's Unnest drops the marks of lists. Derived tables, named queries and functions in
//! FROM have those of their elements as soon as they are planned. Cost: a call around the column.

use std::sync::Arc;

use anabranch_batch::TextLimit;
use arrow::datatypes::Field;
use datafusion_common::Result as DfResult;
use datafusion_common::tree_node::Transformed;
use datafusion_expr::Expr;
use datafusion_expr::logical_plan::{LogicalPlan, Projection};

use crate::functions::enumerations::label_of;
use crate::functions::forms::UUID_IN;
use crate::functions::table::call;
use crate::resolve::documents::elements_limit_of;
use crate::resolve::type_marks::EnumMark;

/// The rows, with columns that are elements marked as what they are.
pub(super) fn mark(plan: LogicalPlan) -> DfResult<LogicalPlan> {
    let limits = limits_of(&plan);
    if limits.iter().all(Option::is_none) {
        return Ok(plan);
    }
    let columns = plan.schema().columns().into_iter().zip(limits).map(|(column, limit)| {
        let (relation, name) = (column.relation.clone(), column.name.clone());
        let value = Expr::Column(column);
        let marked = match limit {
            Some(Element::Label(mark)) => label_of(value, &mark),
            Some(Element::Text(limit)) if let Some(function) = function_of(limit) => call(function, vec![value]),
            _ => return value,
        };
        marked.alias_qualified(relation, name)
    });
    Ok(LogicalPlan::Projection(Projection::try_new(columns.collect(), Arc::new(plan))?))
}

/// The same of all lists that are unnested in a plan, whose elements have an order of their own.
pub(super) fn mark_all(plan: LogicalPlan) -> DfResult<LogicalPlan> {
    let marked = plan.transform_up_with_subqueries(|node| {
        let has_order = |element: &Element| matches!(element, Element::Label(_) | Element::Text(TextLimit::Jsonb));
        let is_marked = matches!(node, LogicalPlan::Unnest(_)) && limits_of(&node).iter().flatten().any(has_order);
        Ok(if is_marked { Transformed::yes(mark(node)?) } else { Transformed::no(node) })
    });
    Ok(marked?.data)
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

/// What an element of a list is, beside a text.
#[derive(Clone)]
enum Element {
    Text(TextLimit),
    Label(EnumMark),
}

impl Element {
    /// Those of a list with a mark.
    fn of(list: &Field) -> Option<Element> {
        let label = EnumMark::of_elements(list).map(Element::Label);
        label.or_else(|| elements_limit_of(list).map(Element::Text))
    }
}

/// What the columns are that are elements of lists.
fn limits_of(plan: &LogicalPlan) -> Vec<Option<Element>> {
    let width = plan.schema().fields().len();
    match plan {
        LogicalPlan::Unnest(node) => {
            let of = |at: &usize| {
                let is_list = node.list_type_columns.iter().any(|(list, _)| list == at);
                is_list.then(|| Element::of(node.input.schema().field(*at))).flatten()
            };
            node.dependency_indices.iter().map(of).collect()
        }
        LogicalPlan::Projection(node) => {
            let below = limits_of(&node.input);
            let of = |expr: &Expr| {
                let Expr::Column(column) = expr.clone().unalias_nested().data else { return None };
                below.get(node.input.schema().maybe_index_of_column(&column)?).cloned().flatten()
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
