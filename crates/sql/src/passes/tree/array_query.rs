//! `ARRAY(SELECT ..)`: the rows of a query of one column as a list.
//!
//! ```text
//!     ARRAY(SELECT x FROM t WHERE c ORDER BY y)    (SELECT array_agg(x ORDER BY y) FROM t WHERE c), or an empty list
//! ```
//!
//! A query that does more than filter is a derived table, whose rows are numbered in its order.

use datafusion_expr::sqlparser::ast::{
    Expr, FunctionArg, FunctionArgExpr, FunctionArguments, OrderBy, OrderByKind, Query, SelectItem, SetExpr,
};

use super::subquery::{around, expr as parsed, is_plain};
use crate::error::{ErrorKind, Result, SqlError};

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
        && select.distinct.is_none()
        && let [SelectItem::UnnamedExpr(value) | SelectItem::ExprWithAlias { expr: value, .. }] =
            select.projection.as_slice()
    {
        let order = with_values(order, value);
        let number = parsed(&format!("row_number() OVER ({order})"))?;
        select.projection.push(SelectItem::UnnamedExpr(number));
        return around("SELECT array_agg(__c ORDER BY __n) FROM (SELECT 1, 1) AS __array(__c, __n)", query);
    }
    let descends = match &order.kind {
        OrderByKind::Expressions(keys) => keys.first().is_some_and(|key| key.options.asc == Some(false)),
        OrderByKind::All(_) => false,
    };
    let direction = if descends { "DESC" } else { "ASC" };
    around(&format!("SELECT array_agg(__c ORDER BY __c {direction}) FROM (SELECT 1) AS __array(__c)"), query)
}
