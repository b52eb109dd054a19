//! `ORDER BY count` and `ORDER BY "?column?"`: items of the select list by the names that
//! PostgreSQL gives them.
//!
//! A bare name in ORDER BY is an output column before it is a column of a table. DataFusion knows
//! the names that the user wrote; an item without one has its text for a name there.

use datafusion_expr::sqlparser::ast::{Expr, OrderBy, OrderByKind, Query, Select, SelectItem, SetExpr, Value};

use super::expression_names::{item_name, select_items};
use crate::error::Result;
use crate::syntax::names::fold;

/// Puts items without a name of their own in the place of their names.
pub(super) fn write_out(select: &mut Select, order_by: Option<&mut OrderBy>) {
    for_each_name(order_by, |name| {
        let mut named = select.projection.iter().filter(|item| item_name(item).as_deref() == Some(name));
        // Two items of one name are ambiguous, which DataFusion says; a name that the user gave,
        // DataFusion finds.
        match (named.next(), named.next()) {
            (Some(SelectItem::UnnamedExpr(item)), None) if !is_column(item) => Some(item.clone()),
            _ => None,
        }
    });
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
