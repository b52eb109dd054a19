//! `ARRAY(SELECT ..)`: the rows of a query of one column as a list.
//!
//! ```text
//!     ARRAY(SELECT x FROM t WHERE c ORDER BY y)    (SELECT array_agg(x ORDER BY y) FROM t WHERE c), or an empty list
//! ```
//!
//! Rows of a function come in its order:
//!
//! ```text
//!     ARRAY(SELECT upper(unnest(a)))
//!         (SELECT array_agg(upper(__e) ORDER BY __place) FROM unnest(a) WITH ORDINALITY ..)
//! ```
//!
//! A query that does more than filter is a derived table, whose rows are numbered in its order.

use datafusion_expr::sqlparser::ast::{
    Distinct, Expr, FunctionArg, FunctionArgExpr, FunctionArguments, Ident, OrderBy, OrderByKind, Query, SelectItem,
    SetExpr,
};

use super::inner_order;
use super::series::gives_rows;
use super::subquery::{around, expr as parsed, is_plain};
use crate::error::{ErrorKind, Result, SqlError};
use crate::syntax::template::template;
use crate::syntax::walk::change_outside_queries;

/// The column of what a function of rows yields.
const ELEMENT: &str = "__e";

/// Rewrites the call.
///
/// # Errors
/// `Invalid` for a query of several columns.
pub(super) fn rewrite(expr: &mut Expr) -> Result<()> {
    let Expr::Function(function) = expr else { return Ok(()) };
    let FunctionArguments::Subquery(query) = &function.args else { return Ok(()) };
    if !function.name.to_string().eq_ignore_ascii_case("array") {
        return Ok(());
    }
    let of_call = of_one_call(query);
    let query = of_call.as_ref().unwrap_or(query);
    let list = match value_of(query)? {
        Some(value) if is_plain(query) => of_plain(query, &value)?,
        _ => of_rows(query.as_ref().clone())?,
    };
    let mut call = parsed("coalesce((SELECT 1), '{}')")?;
    if let Expr::Function(coalesce) = &mut call
        && let FunctionArguments::List(arguments) = &mut coalesce.args
        && let Some(first) = arguments.args.first_mut()
    {
        *first = FunctionArg::Unnamed(FunctionArgExpr::Expr(Expr::Subquery(list)));
    }
    *expr = call;
    Ok(())
}

/// A query without FROM whose item has one call of a function of rows: the call stands in FROM.
fn of_one_call(query: &Query) -> Option<Box<Query>> {
    let mut query = Box::new(query.clone());
    let SetExpr::Select(select) = query.body.as_mut() else { return None };
    let [SelectItem::UnnamedExpr(value) | SelectItem::ExprWithAlias { expr: value, .. }] =
        select.projection.as_mut_slice()
    else {
        return None;
    };
    if !select.from.is_empty() || query.order_by.is_some() {
        return None;
    }
    let mut calls = Vec::new();
    let replaced = change_outside_queries(value, &mut |part| {
        if let Expr::Function(call) = part
            && call.over.is_none()
            && gives_rows(&call.name.to_string().to_lowercase())
        {
            calls.push(call.clone());
            *part = Expr::Identifier(Ident::new(ELEMENT));
        }
        Ok(())
    });
    let ([call], Ok(())) = (calls.as_slice(), replaced) else { return None };
    let SetExpr::Select(from) = *template(&format!("SELECT 1 FROM {call} AS __rows({ELEMENT})")).ok()?.body else {
        return None;
    };
    select.from = from.from;
    Some(query)
}

/// The one item of a select, where the text tells.
fn value_of(query: &Query) -> Result<Option<Expr>> {
    let SetExpr::Select(select) = query.body.as_ref() else { return Ok(None) };
    match select.projection.as_slice() {
        [SelectItem::UnnamedExpr(value) | SelectItem::ExprWithAlias { expr: value, .. }] => Ok(Some(value.clone())),
        [_] => Ok(None),
        _ => Err(SqlError::new(ErrorKind::Invalid, "subquery must return only one column")
            .with_hint("Write ARRAY(SELECT one_column ..).")),
    }
}

fn of_plain(query: &Query, value: &Expr) -> Result<Box<Query>> {
    let mut query = query.clone();
    let order = match query.order_by.take() {
        Some(order) => format!(" {}", with_values(order, value)),
        None => String::new(),
    };
    if let SetExpr::Select(select) = query.body.as_mut() {
        let order = match order.is_empty() {
            true => inner_order::place_key(select).map(|keys| format!(" ORDER BY {}", keys[0])).unwrap_or_default(),
            false => order,
        };
        select.projection = vec![SelectItem::UnnamedExpr(parsed(&format!("array_agg({value}{order})"))?)];
    }
    Ok(Box::new(query))
}

/// Positions and names of the one item are its expression.
fn with_values(mut order: OrderBy, value: &Expr) -> OrderBy {
    if let OrderByKind::Expressions(keys) = &mut order.kind {
        keys.iter_mut().filter(|key| matches!(key.expr, Expr::Value(_))).for_each(|key| key.expr = value.clone());
    }
    order
}

/// The rows in the order of the query: a number for each, or the value itself where equal rows are
/// one.
fn of_rows(mut query: Query) -> Result<Box<Query>> {
    let Some(order) = query.order_by.clone() else {
        return around("SELECT array_agg(__c) FROM (SELECT 1) AS __array(__c)", query);
    };
    if let SetExpr::Select(select) = query.body.as_mut()
        && !matches!(select.distinct, Some(Distinct::Distinct))
        && let [SelectItem::UnnamedExpr(value) | SelectItem::ExprWithAlias { expr: value, .. }] =
            select.projection.as_slice()
    {
        let order = with_values(order, value);
        let number = parsed(&format!("row_number() OVER ({order})"))?;
        select.projection.push(SelectItem::UnnamedExpr(number));
        return around("SELECT array_agg(__c ORDER BY __n) FROM (SELECT 1, 1) AS __array(__c, __n)", query);
    }
    let options = match &order.kind {
        OrderByKind::Expressions(keys) => keys.first().map(|key| key.options).unwrap_or_default(),
        OrderByKind::All(options) => *options,
    };
    around(&format!("SELECT array_agg(__c ORDER BY __c {options}) FROM (SELECT 1) AS __array(__c)"), query)
}
