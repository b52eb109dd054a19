//! Kinds of types that `pg_type` does not list: domains, composite types, enums, ranges.
//!
//! ```text
//! SELECT CASE WHEN t.typtype = 'd' THEN (SELECT ..) END FROM pg_type t     SELECT NULL::oid FROM pg_type t
//! ```
//!
//! Drivers look such types up by subqueries of many levels. A branch for a kind that is not listed
//! is never taken, so its subquery needs no plan.

use datafusion_expr::sqlparser::ast::{
    BinaryOperator, CaseWhen, Expr, Select, SelectItem, SetExpr, TableFactor, Value,
};

use super::expression_names::item_name;
use crate::error::Result;
use crate::syntax::names::fold;
use crate::syntax::parse::parse_expr;

/// `typtype` of types that are listed: base types and pseudo types.
const LISTED: [&str; 2] = ["b", "p"];

/// Rewrites the select list of a query over `pg_type`.
///
/// # Errors
/// None that a user can cause.
pub(super) fn drop_branches(select: &mut Select) -> Result<()> {
    let factors = select
        .from
        .iter()
        .flat_map(|from| std::iter::once(&from.relation).chain(from.joins.iter().map(|join| &join.relation)));
    let types: Vec<String> = factors.filter_map(type_table).collect();
    if types.is_empty() {
        return Ok(());
    }
    for item in &mut select.projection {
        if let SelectItem::ExprWithAlias { expr, .. } = item
            && let Some(left) = without_branches(expr, &types)?
        {
            *expr = left;
        }
    }
    Ok(())
}

/// The name by which `pg_type` goes here.
fn type_table(factor: &TableFactor) -> Option<String> {
    let TableFactor::Table { name, alias, args: None, .. } = factor else { return None };
    let plain = name.0.last()?.as_ident().map(fold)?;
    (plain == "pg_type").then(|| alias.as_ref().map_or(plain, |alias| fold(&alias.name)))
}

/// What a CASE is whose branches are never taken.
fn without_branches(expr: &Expr, types: &[String]) -> Result<Option<Expr>> {
    match expr {
        Expr::Nested(inner) => without_branches(inner, types),
        Expr::Case { operand: None, conditions, else_result, .. }
            if conditions.iter().all(|when| is_unlisted(&when.condition, types)) =>
        {
            match else_result.as_deref() {
                Some(other) if !is_null(other) => Ok(Some(other.clone())),
                _ => parse_expr(&format!("CAST(NULL AS {})", result_type(conditions))).map(Some),
            }
        }
        _ => Ok(None),
    }
}

fn is_null(expr: &Expr) -> bool {
    matches!(expr, Expr::Value(value) if matches!(value.value, Value::Null))
}

/// `t.typtype = 'd'`.
fn is_unlisted(condition: &Expr, types: &[String]) -> bool {
    let Expr::BinaryOp { left, op: BinaryOperator::Eq, right } = condition else { return false };
    let (Expr::CompoundIdentifier(column), Expr::Value(kind)) = (left.as_ref(), right.as_ref()) else { return false };
    let [table, column] = column.as_slice() else { return false };
    let Value::SingleQuotedString(kind) = &kind.value else { return false };
    types.contains(&fold(table)) && fold(column) == "typtype" && !LISTED.contains(&kind.as_str())
}

/// The type of what the branches would give: numbers of types, or lists of numbers or names.
fn result_type(conditions: &[CaseWhen]) -> &'static str {
    let item = conditions.iter().find_map(|when| match &when.result {
        Expr::Subquery(query) => match query.body.as_ref() {
            SetExpr::Select(select) => select.projection.first().cloned(),
            _ => None,
        },
        _ => None,
    });
    let Some(item) = item else { return "oid" };
    let text = item.to_string().to_lowercase();
    match item_name(&item).as_deref() {
        Some("array_agg") if text.contains("name") => "text[]",
        Some("array_agg") => "oid[]",
        _ => "oid",
    }
}
