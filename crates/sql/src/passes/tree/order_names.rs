//! `ORDER BY count`, `ORDER BY "?column?"` and `ORDER BY 2`: items of the select list by the names
//! that PostgreSQL gives them, by their places, and by their expressions.
//!
//! A bare name in ORDER BY is an output column before it is a column of a table. DataFusion knows
//! the names that the user wrote; an item without one has its text for a name there. Beside
//! aggregates it does not find an item by that text.

use std::ops::ControlFlow;

use datafusion_expr::sqlparser::ast::{
    Expr, GroupByExpr, Ident, OrderBy, OrderByKind, Query, Select, SelectItem, SetExpr, Value, visit_expressions,
};

use super::expression_names::{item_name, select_items};
use super::series::unnests;
use crate::error::{ErrorKind, Result, SqlError};
use crate::syntax::names::fold;

/// Puts items without a name of their own in the place of their names, and names in the place of
/// items and of their positions.
///
/// # Errors
/// `UnknownName` for a name that several items have, of which one is computed.
pub(super) fn write_out(select: &mut Select, mut order_by: Option<&mut OrderBy>) -> Result<()> {
    check_names(select, order_by.as_deref())?;
    let at = order_by.as_deref_mut().map_or_else(Vec::new, |order_by| places_of(select, order_by));
    for (key, at) in at {
        // (An item whose name others have is written once more.)
        let item = name_item(select, at).map(Expr::Identifier);
        let item = item.or_else(|| computed_item(&select.projection[at]).filter(|item| !is_key(select, item)));
        if let (Some(item), Some(OrderBy { kind: OrderByKind::Expressions(keys), .. })) =
            (item, order_by.as_deref_mut())
        {
            keys[key].expr = item;
        }
    }
    for_each_name(order_by, |name| {
        let places = 1..=select.projection.len();
        let mut named = places.zip(&select.projection).filter(|(_, item)| item_name(item).as_deref() == Some(name));
        // (Rows are made of an item that yields several where it stands alone.)
        if let (Some((at, SelectItem::UnnamedExpr(item))), None) = (named.next(), named.next())
            && unnests(item)
        {
            return Some(Expr::value(Value::Number(at.to_string(), false)));
        }
        let mut named = select.projection.iter().filter(|item| item_name(item).as_deref() == Some(name));
        // Two items of one name are ambiguous, which DataFusion says; a name that the user gave,
        // DataFusion finds.
        match (named.next(), named.next()) {
            (Some(SelectItem::UnnamedExpr(item)), None) if !is_column(item) => Some(item.clone()),
            _ => None,
        }
    });
    Ok(())
}

/// Refuses names of items that differ. (Two columns of one name DataFusion refuses.)
fn check_names(select: &Select, order_by: Option<&OrderBy>) -> Result<()> {
    let Some(OrderBy { kind: OrderByKind::Expressions(keys), .. }) = order_by else { return Ok(()) };
    for key in keys {
        let Expr::Identifier(ident) = &key.expr else { continue };
        let name = fold(ident);
        let named = select.projection.iter().filter(|item| item_name(item).as_deref() == Some(&name));
        let mut named = named.filter_map(item_expr);
        let Some(first) = named.next() else { continue };
        if named.any(|other| other != first && !(is_column(other) && is_column(first))) {
            return Err(SqlError::new(ErrorKind::UnknownName, format!("ORDER BY \"{name}\" is ambiguous"))
                .with_hint("Give one of the items another name: .. AS other."));
        }
    }
    Ok(())
}

/// Puts positions in the place of names above a set operation, whose columns are named by the first
/// query.
///
/// # Errors
/// None.
pub(super) fn as_positions(query: &mut Query) -> Result<()> {
    if !matches!(query.body.as_ref(), SetExpr::SetOperation { .. }) {
        return Ok(());
    }
    let items: &[SelectItem] = select_items(&query.body).map_or(&[], Vec::as_slice);
    let is_value = |item: &SelectItem| matches!(item, SelectItem::UnnamedExpr(_) | SelectItem::ExprWithAlias { .. });
    if !items.iter().all(is_value) {
        return Ok(());
    }
    let names: Vec<Option<String>> = items.iter().map(item_name).collect();
    let is_named = |at: usize| match &items[at] {
        SelectItem::UnnamedExpr(item) => is_column(item),
        _ => true,
    };
    for_each_name(query.order_by.as_mut(), |name| {
        let mut places = (0..names.len()).filter(|at| names[*at].as_deref() == Some(name));
        match (places.next(), places.next()) {
            (Some(at), None) if !is_named(at) => Some(Expr::value(Value::Number((at + 1).to_string(), false))),
            _ => None,
        }
    });
    Ok(())
}

/// The keys that are computed items, said by their positions or once more, and the items' places.
fn places_of(select: &Select, order_by: &OrderBy) -> Vec<(usize, usize)> {
    let OrderByKind::Expressions(keys) = &order_by.kind else { return vec![] };
    let place = |key: &Expr| match key {
        Expr::Value(value) => match &value.value {
            Value::Number(number, _) => number.parse::<usize>().ok()?.checked_sub(1),
            _ => None,
        },
        Expr::Identifier(_) | Expr::CompoundIdentifier(_) => None,
        key => select.projection.iter().position(|item| item_expr(item) == Some(key)),
    };
    // (A star stands for several places.)
    let n_single = select.projection.iter().take_while(|item| item_expr(item).is_some()).count();
    let found = keys.iter().enumerate().filter_map(|(n, key)| Some((n, place(&key.expr)?)));
    found.filter(|(_, at)| *at < n_single).collect()
}

fn item_expr(item: &SelectItem) -> Option<&Expr> {
    match item {
        SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. } => Some(expr),
        _ => None,
    }
}

/// Whether the groups are made by an item, which DataFusion then finds by its place.
fn is_key(select: &Select, item: &Expr) -> bool {
    matches!(&select.group_by, GroupByExpr::Expressions(keys, _) if keys.contains(item))
}

/// The name of a computed item, which is written beside it; `None` where others are called so.
fn name_item(select: &mut Select, at: usize) -> Option<Ident> {
    let name = item_name(select.projection.get(at)?)?;
    if names_column(select.projection.get(at)?, &name) {
        return None;
    }
    let is_other = |(n, item): (usize, &SelectItem)| n != at && item_name(item).is_none_or(|other| other == name);
    if select.projection.iter().enumerate().any(is_other) {
        return None;
    }
    match &mut select.projection[at] {
        SelectItem::ExprWithAlias { alias, .. } => Some(alias.clone()),
        item => {
            let (expr, alias) = (computed_item(item)?, Ident::with_quote('"', name));
            *item = SelectItem::ExprWithAlias { expr, alias: alias.clone() };
            Some(alias)
        }
    }
}

/// Whether a column of that name is in an item without a name, as in `x::text`: the name would be
/// taken for the column.
fn names_column(item: &SelectItem, name: &str) -> bool {
    let SelectItem::UnnamedExpr(expr) = item else { return false };
    let found = visit_expressions(expr, |expr| match expr {
        Expr::Identifier(ident) if fold(ident) == name => ControlFlow::Break(()),
        Expr::CompoundIdentifier(parts) if parts.last().is_some_and(|part| fold(part) == name) => {
            ControlFlow::Break(())
        }
        _ => ControlFlow::Continue(()),
    });
    found.is_break()
}

/// The expression of an item that is more than a column or a literal, and has no name.
fn computed_item(item: &SelectItem) -> Option<Expr> {
    let SelectItem::UnnamedExpr(expr) = item else { return None };
    (!is_column(expr) && !matches!(expr, Expr::Value(_))).then(|| expr.clone())
}

fn for_each_name(order_by: Option<&mut OrderBy>, item: impl Fn(&str) -> Option<Expr>) {
    let Some(OrderBy { kind: OrderByKind::Expressions(keys), .. }) = order_by else { return };
    for key in keys {
        if let Expr::Identifier(ident) = &key.expr
            && let Some(expr) = item(&fold(ident))
        {
            key.expr = expr;
        }
    }
}

fn is_column(item: &Expr) -> bool {
    matches!(item, Expr::Identifier(_) | Expr::CompoundIdentifier(_))
}
