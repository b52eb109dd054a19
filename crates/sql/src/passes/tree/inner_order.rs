//! `SELECT array_agg(a) FROM (SELECT a FROM t ORDER BY b) q`: lists in the order of the rows that
//! they are made of.
//!
//! ```text
//!     array_agg(a) FROM (SELECT a FROM t ORDER BY b DESC) q
//!     array_agg(a ORDER BY q.__order_0 DESC) FROM (SELECT a, b AS __order_0 FROM t ..) q
//! ```
//!
//! Lists made of the rows of a function are in the order of these:
//!
//! ```text
//!     string_agg(w, ' ') FROM unnest(a) AS w
//!     string_agg(w, ' ' ORDER BY w.__place) FROM unnest(a) WITH ORDINALITY AS w(w, __place)
//! ```
//!
//! Rows have no order here, and PostgreSQL promises none; but its lists come in this one, and users
//! rely on it. A call with an order of its own keeps that. Joins mix the rows, so they are left as
//! they are.

use datafusion_expr::sqlparser::ast::{
    Expr, FunctionArgumentClause, FunctionArguments, Ident, OrderByExpr, OrderByKind, OrderByOptions, Query, Select,
    SelectItem, SetExpr, TableAlias, TableAliasColumnDef, TableFactor, Value,
};

use super::expression_names::item_name;
use super::series::{self, Series};
use crate::error::Result;
use crate::syntax::names::fold;
use crate::syntax::walk::change_outside_queries;

/// Aggregates whose answer tells the order of their rows.
const ORDERED: [&str; 5] = ["array_agg", "string_agg", "json_agg", "jsonb_agg", "json_object_agg"];

/// The column of a row's place among those of its function.
const PLACE: &str = "__place";

/// Carries the order of the one ordered query of FROM, or of the rows of its one function, into the
/// aggregates over it.
///
/// # Errors
/// None.
pub(super) fn carry(select: &mut Select) -> Result<()> {
    let mut is_wanted = false;
    let mut looked = select.projection.clone();
    for item in &mut looked {
        change_outside_queries(item, &mut |expr| {
            is_wanted |= open_call(expr).is_some();
            Ok(())
        })?;
    }
    if !is_wanted {
        return Ok(());
    }
    let Some(keys) = place_key(select).or_else(|| ordered_keys(select)) else { return Ok(()) };
    for item in &mut select.projection {
        change_outside_queries(item, &mut |expr| {
            if let Some(clauses) = open_call(expr) {
                clauses.push(FunctionArgumentClause::OrderBy(keys.clone()));
            }
            Ok(())
        })?;
    }
    Ok(())
}

/// The keys of the one ordered query of FROM.
fn ordered_keys(select: &mut Select) -> Option<Vec<OrderByExpr>> {
    let [from] = select.from.as_mut_slice() else { return None };
    let TableFactor::Derived { subquery, alias: Some(alias), lateral: false, .. } = &mut from.relation else {
        return None;
    };
    let is_plain = from.joins.is_empty() && alias.columns.is_empty() && subquery.order_by.is_some();
    is_plain.then(|| outer_keys(subquery, &alias.name)).flatten()
}

/// The place of a row of the one function in FROM, which gives it from here on.
pub(super) fn place_key(select: &mut Select) -> Option<Vec<OrderByExpr>> {
    let [from] = select.from.as_mut_slice() else { return None };
    let Series { table, columns, .. } = series::of(&from.relation).ok().flatten().filter(|_| from.joins.is_empty())?;
    let (alias, ordinality) = match &mut from.relation {
        TableFactor::Table { alias, with_ordinality, .. }
        | TableFactor::Function { alias, with_ordinality, .. }
        | TableFactor::UNNEST { alias, with_ordinality, .. } => (alias, with_ordinality),
        _ => return None,
    };
    if *ordinality {
        return None;
    }
    *ordinality = true;
    let names = columns.into_iter().chain([PLACE.to_owned()]).map(|name| Ident::with_quote('"', name));
    let columns = names.map(|name| TableAliasColumnDef { name, data_type: None }).collect();
    *alias = Some(TableAlias { explicit: true, name: table.clone(), columns, at: None });
    let place = Expr::CompoundIdentifier(vec![table, Ident::with_quote('"', PLACE)]);
    Some(vec![OrderByExpr { expr: place, options: OrderByOptions::default(), with_fill: None }])
}

/// Drops constants from the order within a call, which they say nothing of: DataFusion takes
/// numbers for places of columns.
///
/// # Errors
/// None.
pub(super) fn drop_constants(expr: &mut Expr) -> Result<()> {
    let Expr::Function(function) = expr else { return Ok(()) };
    let FunctionArguments::List(list) = &mut function.args else { return Ok(()) };
    for clause in &mut list.clauses {
        if let FunctionArgumentClause::OrderBy(keys) = clause {
            keys.retain(|key| !matches!(&key.expr, Expr::Value(value) if matches!(value.value, Value::Number(..))));
        }
    }
    list.clauses.retain(|clause| !matches!(clause, FunctionArgumentClause::OrderBy(keys) if keys.is_empty()));
    Ok(())
}

/// The clauses of a call of such an aggregate that has no order and is no window function.
fn open_call(expr: &mut Expr) -> Option<&mut Vec<FunctionArgumentClause>> {
    let Expr::Function(function) = expr else { return None };
    let name = function.name.to_string().to_lowercase();
    if !ORDERED.contains(&name.as_str()) || function.over.is_some() || !function.within_group.is_empty() {
        return None;
    }
    let FunctionArguments::List(list) = &mut function.args else { return None };
    let is_open = list.duplicate_treatment.is_none() && list.clauses.is_empty();
    is_open.then_some(&mut list.clauses)
}

/// The first branch of set operations.
fn first_select(body: &mut SetExpr) -> Option<&mut Select> {
    match body {
        SetExpr::Select(select) => Some(select),
        SetExpr::SetOperation { left, .. } => first_select(left),
        _ => None,
    }
}

/// The keys of the query's order as columns of its rows, which are added where they are no columns
/// yet; `None` where that cannot be.
fn outer_keys(query: &mut Query, table: &Ident) -> Option<Vec<OrderByExpr>> {
    let OrderByKind::Expressions(keys) = &query.order_by.as_ref()?.kind else { return None };
    let is_select = matches!(query.body.as_ref(), SetExpr::Select(_));
    // (Of a set operation the first branch names the columns, and its order is by these alone.)
    let inner = first_select(query.body.as_mut())?;
    let names: Vec<Option<String>> = inner.projection.iter().map(item_name).collect();
    let is_single = |name: &String| names.iter().flatten().filter(|other| *other == name).count() == 1;
    let mut added = Vec::new();
    let mut outer = Vec::with_capacity(keys.len());
    for (n, key) in keys.iter().enumerate() {
        let shown = match &key.expr {
            Expr::Identifier(ident) => {
                Some(fold(ident)).filter(|name| names.iter().flatten().any(|known| known == name))
            }
            Expr::Value(value) => match &value.value {
                Value::Number(number, _) => {
                    let at = number.parse::<usize>().ok()?.checked_sub(1)?;
                    Some(names.iter().take(at + 1).cloned().collect::<Option<Vec<_>>>()?.into_iter().nth(at)?)
                }
                _ => None,
            },
            _ => None,
        };
        let column = match shown {
            Some(name) if is_single(&name) => Ident::with_quote('"', name),
            Some(_) => return None,
            None if inner.distinct.is_some() || !is_select => return None,
            None => {
                let alias = Ident::with_quote('"', format!("__order_{n}"));
                added.push(SelectItem::ExprWithAlias { expr: key.expr.clone(), alias: alias.clone() });
                alias
            }
        };
        outer.push(OrderByExpr { expr: Expr::CompoundIdentifier(vec![table.clone(), column]), ..key.clone() });
    }
    inner.projection.extend(added);
    Some(outer)
}
