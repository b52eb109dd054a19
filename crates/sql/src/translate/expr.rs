//! Expressions: resolved by position, then written with our unqualified names.

pub(crate) use anabranch_plan::positions::{position, position_near};
use arrow::datatypes::DataType;
use datafusion_common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion_common::{Column, DFSchema, ScalarValue};
use datafusion_expr::expr::InList;
use datafusion_expr::logical_plan::Subquery;
use datafusion_expr::utils::split_conjunction;
use datafusion_expr::{Expr, ExprSchemable, cast};

use crate::error::{Result, SqlError, no_parameter};
use crate::functions::json::operators::sort_key;
use crate::passes::plan::recursion::{recurs_over_outer, recursion_over_outer};
use crate::planner_messages::NAME_IT;
use crate::resolve::type_names::canonical;

/// What stands for a column: an expression, the type that has, and the type the column had for the
/// planner.
pub(crate) struct Stand {
    pub(crate) expr: Expr,
    pub(crate) is: DataType,
    pub(crate) was: DataType,
}

/// Writes an expression over `from` (DataFusion's schema of a node) as one over `to` (ours, the
/// same columns in order).
///
/// # Errors
/// `Unsupported` for subqueries that could not be made joins.
pub(crate) fn resolve(expr: &Expr, from: &DFSchema, to: &DFSchema) -> Result<Expr> {
    resolve_with(expr, &|name| {
        let at = from.index_of_column(name)?;
        Ok(Stand {
            expr: column(to, at),
            is: to.field(at).data_type().clone(),
            was: from.field(at).data_type().clone(),
        })
    })
}

/// As [`resolve`], of what rows are put in order by.
pub(crate) fn resolve_key(expr: &Expr, from: &DFSchema, to: &DFSchema) -> Result<Expr> {
    let field = expr.to_field(from).ok().map(|(_, field)| field);
    Ok(sort_key(resolve(expr, from, to)?, field.as_deref()))
}

/// As [`resolve`], with the caller saying what stands for a column.
pub(crate) fn resolve_with(expr: &Expr, stand: &dyn Fn(&Column) -> Result<Stand>) -> Result<Expr> {
    let resolved = expr.clone().transform_up(|e| match e {
        Expr::Column(name) => {
            let Stand { expr, is, was } = stand(&name)?;
            if was == DataType::Null {
                return Ok(Transformed::yes(Expr::Literal(ScalarValue::Null, None)));
            }
            Ok(Transformed::yes(if was == is { expr } else { cast(expr, was) }))
        }
        Expr::Alias(alias) => Ok(Transformed::yes(*alias.expr)),
        Expr::InList(list) => Ok(with_both_zeros(list)),
        Expr::ScalarSubquery(_)
        | Expr::Exists(_)
        | Expr::InSubquery(_)
        | Expr::SetComparison(_)
        | Expr::OuterReferenceColumn(..) => Err(correlated(&e).into()),
        Expr::Placeholder(parameter) if parameter.field.is_none() => Err(no_parameter(&parameter.id).into()),
        other => Ok(Transformed::no(other)),
    })?;
    Ok(resolved.data)
}

/// The list with the zeros of floats that it lacks: 0 is -0, but lists are looked up by their bits.
#[inline(never)]
fn with_both_zeros(mut list: InList) -> Transformed<Expr> {
    let other = |element: &Expr| match element {
        Expr::Literal(ScalarValue::Float64(Some(zero)), _) if *zero == 0.0 => Some(ScalarValue::Float64(Some(-zero))),
        Expr::Literal(ScalarValue::Float32(Some(zero)), _) if *zero == 0.0 => Some(ScalarValue::Float32(Some(-zero))),
        _ => None,
    };
    let zeros: Vec<Expr> = list.list.iter().filter_map(other).map(|zero| Expr::Literal(zero, None)).collect();
    let is_changed = !zeros.is_empty();
    list.list.extend(zeros);
    if is_changed { Transformed::yes(Expr::InList(list)) } else { Transformed::no(Expr::InList(list)) }
}

fn correlated(expr: &Expr) -> SqlError {
    let (construct, outer) = match expr {
        Expr::ScalarSubquery(query) => ("scalar subquery", &query.outer_ref_columns),
        Expr::Exists(exists) => ("EXISTS", &exists.subquery.outer_ref_columns),
        Expr::InSubquery(test) => ("IN, ANY or ALL", &test.subquery.outer_ref_columns),
        Expr::SetComparison(test) => ("IN, ANY or ALL", &test.subquery.outer_ref_columns),
        _ => return SqlError::unsupported("this reference to an outer query", CORRELATE),
    };
    if subquery_of(expr).is_some_and(|subquery| recurs_over_outer(&subquery.subquery)) {
        return recursion_over_outer();
    }
    if outer.is_empty() {
        return SqlError::unsupported(format!("a subquery ({construct}) at this place"), NAME_IT);
    }
    SqlError::unsupported(format!("this correlated {construct}"), CORRELATE)
}

fn subquery_of(expr: &Expr) -> Option<&Subquery> {
    match expr {
        Expr::ScalarSubquery(subquery) => Some(subquery),
        Expr::Exists(exists) => Some(&exists.subquery),
        Expr::InSubquery(test) => Some(&test.subquery),
        Expr::SetComparison(test) => Some(&test.subquery),
        _ => None,
    }
}

const CORRELATE: &str = "Correlate by equality (inner.x = outer.x) and without LIMIT; or join with a grouped query; or number the rows with row_number() and filter.";

/// The column at a position.
pub(crate) fn column(schema: &DFSchema, at: usize) -> Expr {
    Expr::Column(Column::from_name(schema.field(at).name()))
}

/// The parts of a conjunction, in order.
pub(crate) fn conjuncts(predicate: &Expr) -> Vec<Expr> {
    split_conjunction(predicate).into_iter().cloned().collect()
}

/// The expression with the type that a column may have, and that type.
pub(crate) fn carried(expr: Expr, schema: &DFSchema) -> Result<(Expr, DataType)> {
    if let Expr::Literal(ScalarValue::Utf8(text) | ScalarValue::LargeUtf8(text), _) = expr {
        return Ok((Expr::Literal(ScalarValue::Utf8View(text), None), DataType::Utf8View));
    }
    let is = expr.get_type(schema)?;
    let wanted = canonical(&is);
    if is == wanted {
        return Ok((expr, wanted));
    }
    if let Expr::Literal(value, _) = &expr
        && let Ok(value) = value.cast_to(&wanted)
    {
        return Ok((Expr::Literal(value, None), wanted));
    }
    let expr = match expr {
        // Text cast to another form of text and back is the text.
        Expr::Cast(inner) if wanted == DataType::Utf8View && inner.expr.get_type(schema)? == wanted => *inner.expr,
        other => cast(other, wanted.clone()),
    };
    Ok((expr, wanted))
}

/// How often each column of the schema is used in an expression, which likely is of the one `near`.
pub(crate) fn count_uses(expr: &Expr, near: usize, schema: &DFSchema, uses: &mut [usize]) {
    let walked = expr.apply(|e| {
        if let Some(at) = position_near(e, schema, near) {
            uses[at] += 1;
        }
        Ok(TreeNodeRecursion::Continue)
    });
    debug_assert!(walked.is_ok(), "the closure does not fail");
}

/// Replaces the columns of `schema`, likely the one `near`, by the expressions at their positions.
pub(crate) fn substitute(expr: Expr, near: usize, schema: &DFSchema, by: &[Expr]) -> Result<Expr> {
    let replaced = expr.transform_up(|e| match position_near(&e, schema, near) {
        Some(at) => Ok(Transformed::yes(by[at].clone())),
        None => Ok(Transformed::no(e)),
    })?;
    Ok(replaced.data)
}
