//! `json` where values are told apart, compared or sorted: refused, as in PostgreSQL.
//!
//! ```text
//! SELECT DISTINCT j, GROUP BY j, UNION     could not identify an equality operator for type json
//! ORDER BY j                               could not identify an ordering operator for type json
//! j IN (..), j IS DISTINCT FROM j          operator does not exist: json = json
//! max(j), min(j)                           function max(json) does not exist
//! ```
//!
//! Documents are kept as texts, whose order and equality are those of their spelling. `jsonb` has
//! both of its own. Law: only plans of users come here, before steps that tell rows apart by all
//! their columns.

use std::sync::Arc;

use datafusion_common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion_common::{DFSchema, Result as DfResult};
use datafusion_expr::expr::{AggregateFunction, Sort as SortKey};
use datafusion_expr::logical_plan::{Distinct, LogicalPlan};
use datafusion_expr::utils::{grouping_set_to_exprlist, merge_schema};
use datafusion_expr::{Expr, Operator};

use crate::error::{ErrorKind, SqlError};
use crate::passes::plan::set_operations::SetNode;
use crate::resolve::documents::{DocumentForm, form_of};
use crate::resolve::operands::{is_json, markable, operand_name};
use crate::type_words::NO_FUNCTION;

/// The plan, if no document of type `json` is told apart or sorted in it.
pub(crate) fn check(plan: LogicalPlan) -> DfResult<LogicalPlan> {
    plan.apply_with_subqueries(|node| {
        check_node(node)?;
        let schema = merge_schema(&node.inputs());
        node.apply_expressions(|expr| {
            expr.apply(|part| check_part(part, &schema).map(|()| TreeNodeRecursion::Continue))
        })
    })?;
    Ok(plan)
}

fn check_node(node: &LogicalPlan) -> DfResult<()> {
    let schema = || merge_schema(&node.inputs());
    let has_json = |of: &DFSchema| of.fields().iter().any(|field| form_of(field) == Some(DocumentForm::Json));
    let told_apart = match node {
        LogicalPlan::Distinct(Distinct::All(input)) => has_json(input.schema()),
        LogicalPlan::Distinct(Distinct::On(on)) => any_json(&on.on_expr, &schema()),
        LogicalPlan::Aggregate(aggregate) => {
            let keys = grouping_set_to_exprlist(&aggregate.group_expr)?;
            // (Columns that follow from a primary key are added to the groups.)
            let is_added = |key: &&&Expr| keys.iter().any(|other| determines(other, key, &aggregate.input));
            keys.iter().filter(|key| !is_added(key)).any(|key| is_json(key, aggregate.input.schema()))
        }
        LogicalPlan::Extension(node) => {
            node.node.as_any().downcast_ref::<SetNode>().is_some_and(|set| has_json(set.left.schema()))
        }
        LogicalPlan::Sort(sort) => return check_keys(&sort.expr, sort.input.schema()),
        _ => false,
    };
    if told_apart { Err(no_operator("equality", None).into()) } else { Ok(()) }
}

/// Whether a column is the primary key of the rows that another column is of.
fn determines(key: &Expr, other: &Expr, rows: &Arc<LogicalPlan>) -> bool {
    let schema = rows.schema();
    let place = |expr: &Expr| match expr {
        Expr::Column(column) => schema.maybe_index_of_column(column),
        _ => None,
    };
    let (Some(key), Some(other)) = (place(key), place(other)) else { return false };
    let mut dependences = schema.functional_dependencies().iter();
    dependences.any(|known| {
        known.source_indices.contains(&key)
            && !known.source_indices.contains(&other)
            && known.target_indices.contains(&other)
    })
}

fn any_json(values: &[Expr], schema: &DFSchema) -> bool {
    values.iter().any(|value| is_json(value, schema))
}

fn check_keys(keys: &[SortKey], schema: &DFSchema) -> DfResult<()> {
    match keys.iter().any(|key| is_json(&key.expr, schema)) {
        true => Err(no_operator("ordering", Some("Cast the documents to jsonb to sort them.")).into()),
        false => Ok(()),
    }
}

fn no_operator(kind: &str, hint: Option<&str>) -> SqlError {
    let message = format!("could not identify an {kind} operator for type json");
    SqlError::new(ErrorKind::Type, message).with_hint(hint.unwrap_or("Cast the documents to jsonb to compare them."))
}

fn check_part(part: &Expr, schema: &DFSchema) -> DfResult<()> {
    match part {
        Expr::AggregateFunction(AggregateFunction { func, params }) => {
            check_extreme(func.name(), &params.args, schema)?;
            if params.distinct && any_json(&params.args, schema) {
                return Err(no_operator("equality", None).into());
            }
            check_keys(&params.order_by, schema)
        }
        Expr::WindowFunction(window) => {
            check_extreme(window.fun.name(), &window.params.args, schema)?;
            if any_json(&window.params.partition_by, schema) {
                return Err(no_operator("equality", None).into());
            }
            check_keys(&window.params.order_by, schema)
        }
        Expr::BinaryExpr(test) if matches!(test.op, Operator::IsDistinctFrom | Operator::IsNotDistinctFrom) => {
            compared(&test.left, "=", [test.right.as_ref()], schema)
        }
        Expr::InList(list) => compared(&list.expr, "=", &list.list, schema),
        Expr::Between(between) => compared(&between.expr, ">=", [between.low.as_ref()], schema),
        Expr::InSubquery(test) => {
            let inner = test.subquery.subquery.schema();
            let value = Expr::Column(inner.qualified_field(0).into());
            match is_json(&test.expr, schema) || is_json(&value, inner) {
                true => Err(no_comparison(&operand_name(&test.expr, schema), "=", &operand_name(&value, inner))),
                false => Ok(()),
            }
        }
        Expr::Case(case) => match &case.expr {
            Some(value) => compared(value, "=", case.when_then_expr.iter().map(|(when, _)| when.as_ref()), schema),
            None => Ok(()),
        },
        Expr::ScalarFunction(call) => match (call.func.name(), call.args.as_slice()) {
            ("nullif", [value, other]) => compared(value, "=", [other], schema),
            ("greatest" | "least", values) if any_json(values, schema) => {
                let message = "could not identify a comparison function for type json";
                Err(SqlError::new(ErrorKind::Type, message).with_hint("Cast the documents to jsonb.").into())
            }
            _ => Ok(()),
        },
        _ => Ok(()),
    }
}

/// Refuses the greatest and the least of documents.
fn check_extreme(function: &str, args: &[Expr], schema: &DFSchema) -> DfResult<()> {
    let ("max" | "min", [value]) = (function, args) else { return Ok(()) };
    match markable(value, schema).and_then(|field| form_of(&field)) {
        Some(form) => {
            let message = format!("function {function}({}) does not exist", form.type_name());
            Err(SqlError::new(ErrorKind::Type, message).with_hint(NO_FUNCTION).into())
        }
        None => Ok(()),
    }
}

fn compared<'a>(
    value: &Expr,
    operator: &str,
    others: impl IntoIterator<Item = &'a Expr>,
    schema: &DFSchema,
) -> DfResult<()> {
    for other in others {
        if is_json(value, schema) || is_json(other, schema) {
            return Err(no_comparison(&operand_name(value, schema), operator, &operand_name(other, schema)));
        }
    }
    Ok(())
}

fn no_comparison(left: &str, operator: &str, right: &str) -> datafusion_common::DataFusionError {
    SqlError::new(ErrorKind::Type, format!("operator does not exist: {left} {operator} {right}"))
        .with_hint("Cast the documents to jsonb to compare them.")
        .into()
}
