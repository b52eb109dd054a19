//! Names that several columns of one derived table have.
//!
//! ```text
//! SELECT a FROM (SELECT 1 AS a, 2 AS a) t    column reference "a" is ambiguous
//! SELECT * FROM (SELECT 1 AS a, 2 AS a) t    both
//! ```
//!
//! Left to others: names within subqueries, which may be those of inner tables.

use std::collections::HashSet;

use datafusion_expr::sqlparser::ast::{Expr, JoinConstraint, JoinOperator, OrderBy, Select, SelectItem, TableFactor};

use super::columns::{Known, factor_columns};
use super::merged::REPEATED;
use crate::error::{ErrorKind, Result, SqlError};
use crate::resolve::catalog::Catalog;
use crate::syntax::names::{fold, object_name};
use crate::syntax::walk::look_outside_queries;

/// Refuses such names in a SELECT and in the order above it.
///
/// # Errors
/// `Invalid` for a name of several columns.
pub(super) fn refuse(select: &Select, order_by: Option<&OrderBy>, known: &Known, catalog: &dyn Catalog) -> Result<()> {
    let factors = select
        .from
        .iter()
        .flat_map(|from| std::iter::once(&from.relation).chain(from.joins.iter().map(|join| &join.relation)));
    let repeated: Vec<(Option<String>, Vec<String>)> = factors
        .filter(|factor| matches!(factor, TableFactor::Derived { .. } | TableFactor::Table { args: None, .. }))
        .filter_map(|factor| Some((table_name(factor), repeated_in(&factor_columns(factor, known, catalog)?))))
        .filter(|(_, names)| !names.is_empty())
        .collect();
    if repeated.is_empty() {
        return Ok(());
    }
    let is_repeated = |name: &str| repeated.iter().any(|(_, names)| names.iter().any(|known| known == name));
    let found = |expr: &Expr| match expr {
        Expr::Identifier(name) => Some(fold(name)).filter(|name| is_repeated(name)),
        Expr::CompoundIdentifier(path) => {
            let [table, name] = path.as_slice() else { return None };
            let (table, name) = (fold(table), fold(name));
            let is_own =
                |(own, names): &(Option<String>, Vec<String>)| own.as_deref() == Some(&table) && names.contains(&name);
            repeated.iter().any(is_own).then_some(name)
        }
        _ => None,
    };
    let first = first_named(select, order_by, &found);
    let shared = select.from.iter().flat_map(|from| &from.joins).flat_map(shared_names);
    match first.or_else(|| shared.into_iter().find(|name| is_repeated(name))) {
        Some(name) => Err(SqlError::new(ErrorKind::Invalid, format!("column reference \"{name}\" is ambiguous"))
            .with_hint("Several columns of a derived table have this name: give each its own, as in SELECT x AS y.")),
        None => Ok(()),
    }
}

/// The first name in the clauses of a SELECT that is looked for.
fn first_named(select: &Select, order_by: Option<&OrderBy>, found: &dyn Fn(&Expr) -> Option<String>) -> Option<String> {
    let mut first = None;
    let mut note = |expr: &Expr| {
        if first.is_none() {
            first = found(expr);
        }
    };
    // (Beside the names of the others stands what a wildcard was written out as.)
    if !select.projection.iter().any(is_of_wildcard) {
        look_outside_queries(&select.projection, &mut note);
    }
    look_outside_queries(&select.selection, &mut note);
    look_outside_queries(&select.group_by, &mut note);
    look_outside_queries(&select.having, &mut note);
    for join in select.from.iter().flat_map(|from| &from.joins) {
        look_outside_queries(&join.join_operator, &mut note);
    }
    // (A name alone is first one of the select list.)
    let items: Vec<String> = select.projection.iter().filter_map(alias_of).collect();
    if let Some(order_by) = order_by {
        look_outside_queries(order_by, &mut |expr| match expr {
            Expr::Identifier(name) if items.contains(&fold(name)) => {}
            other => note(other),
        });
    }
    first
}

fn table_name(factor: &TableFactor) -> Option<String> {
    match factor {
        TableFactor::Derived { alias: Some(alias), .. } | TableFactor::Table { alias: Some(alias), .. } => {
            Some(fold(&alias.name))
        }
        TableFactor::Table { name, .. } => object_name(name).ok(),
        _ => None,
    }
}

fn repeated_in(columns: &[String]) -> Vec<String> {
    let mut seen = HashSet::with_capacity(columns.len());
    columns.iter().filter(|name| !seen.insert(*name)).cloned().collect()
}

fn is_of_wildcard(item: &SelectItem) -> bool {
    match item {
        SelectItem::UnnamedExpr(Expr::CompoundIdentifier(path)) => {
            path.last().is_some_and(|name| name.value.starts_with(REPEATED))
        }
        SelectItem::UnnamedExpr(Expr::Identifier(name)) => name.value.starts_with(REPEATED),
        _ => false,
    }
}

fn alias_of(item: &SelectItem) -> Option<String> {
    match item {
        SelectItem::ExprWithAlias { alias, .. } => Some(fold(alias)),
        _ => None,
    }
}

/// The names that USING shares.
fn shared_names(join: &datafusion_expr::sqlparser::ast::Join) -> Vec<String> {
    use JoinOperator as Op;
    match &join.join_operator {
        Op::Join(on)
        | Op::Inner(on)
        | Op::Left(on)
        | Op::LeftOuter(on)
        | Op::Right(on)
        | Op::RightOuter(on)
        | Op::FullOuter(on) => match on {
            JoinConstraint::Using(names) => names.iter().filter_map(|name| object_name(name).ok()).collect(),
            _ => vec![],
        },
        _ => vec![],
    }
}
