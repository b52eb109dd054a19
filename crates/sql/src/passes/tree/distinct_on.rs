//! `DISTINCT ON (1)` and `DISTINCT ON (name)`: keys that stand for items of the select list.
//!
//! A whole number is the position of an item, and a bare name that of an item before it is a
//! column's, as in ORDER BY. DataFusion takes the number for a constant, of which there is one
//! group.

use datafusion_expr::sqlparser::ast::{Distinct, Expr, OrderBy, OrderByExpr, OrderByKind, Select, SelectItem, Value};

use super::columns::Known;
use super::merged::list_wildcards;
use crate::error::{ErrorKind, Result, SqlError};
use crate::resolve::catalog::Catalog;
use crate::syntax::names::fold;

/// Writes the items in the place of what stands for them.
///
/// # Errors
/// `Invalid` for a position that is not in the select list, and for a name of several items.
pub(super) fn write_out(
    select: &mut Select,
    order_by: Option<&OrderBy>,
    known: &Known,
    catalog: &dyn Catalog,
) -> Result<()> {
    let mut keys = match select.distinct.take() {
        Some(Distinct::On(keys)) => keys,
        other => {
            select.distinct = other;
            return Ok(());
        }
    };
    let result = keys.iter_mut().try_for_each(|key| {
        while let Expr::Nested(inner) = key {
            *key = inner.as_ref().clone();
        }
        if let Some(position) = position(key)? {
            list_wildcards(select, known, catalog)?;
            *key = item_at(select, &position)?;
        } else if let Expr::Identifier(ident) = key
            && let Some(item) = item_named(select, &fold(ident))?
        {
            *key = item;
        }
        Ok(())
    });
    if let Some(OrderBy { kind: OrderByKind::Expressions(order), .. }) = order_by {
        sort_as(&mut keys, order, select);
    }
    select.distinct = Some(Distinct::On(keys));
    result
}

/// Puts keys in the order in which ORDER BY has them: DataFusion wants them so, PostgreSQL wants
/// the same ones in any order.
fn sort_as(keys: &mut [Expr], order: &[OrderByExpr], select: &Select) {
    for (at, OrderByExpr { expr, .. }) in order.iter().enumerate().take(keys.len()) {
        let item = match expr {
            Expr::Identifier(ident) => item_named(select, &fold(ident)).ok().flatten(),
            _ => position(expr).ok().flatten().and_then(|digits| item_at(select, &digits).ok()),
        };
        let meant = item.unwrap_or_else(|| expr.clone());
        let Some(found) = keys[at..].iter().position(|key| *key == meant) else { return };
        keys[at..=at + found].rotate_right(1);
    }
}

/// The digits of a position; `None` if the key is none.
fn position(key: &Expr) -> Result<Option<String>> {
    let Expr::Value(value) = key else { return Ok(None) };
    match &value.value {
        Value::Number(digits, _) => Ok(Some(digits.clone())),
        Value::SingleQuotedString(_) => Err(no_position()),
        _ => Ok(None),
    }
}

fn no_position() -> SqlError {
    SqlError::new(ErrorKind::Invalid, "non-integer constant in DISTINCT ON")
        .with_hint("Write a column, or the position of an item of the select list.")
}

fn item_at(select: &Select, digits: &str) -> Result<Expr> {
    let Ok(position) = digits.parse::<usize>() else {
        return Err(no_position());
    };
    let item = position.checked_sub(1).and_then(|at| select.projection.get(at));
    match item {
        // A constant makes one group, as any other constant does; as a key it would be a position
        // again.
        Some(SelectItem::UnnamedExpr(Expr::Value(_)) | SelectItem::ExprWithAlias { expr: Expr::Value(_), .. }) => {
            Ok(Expr::value(Value::Boolean(true)))
        }
        Some(SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. }) => Ok(expr.clone()),
        Some(_) => Err(SqlError::unsupported(
            "a position in DISTINCT ON beside * over a table whose columns are not known before planning",
            "Write the column instead of its position.",
        )),
        None => {
            let message = format!("DISTINCT ON position {position} is not in select list");
            Err(SqlError::new(ErrorKind::Invalid, message)
                .with_detail(format!("The select list has {} items.", select.projection.len())))
        }
    }
}

/// The item that is given that name, if it is another expression than the column.
fn item_named(select: &Select, name: &str) -> Result<Option<Expr>> {
    let mut found: Option<&Expr> = None;
    for item in &select.projection {
        let SelectItem::ExprWithAlias { expr, alias } = item else { continue };
        if fold(alias) != name {
            continue;
        }
        if found.is_some_and(|other| other != expr) {
            return Err(SqlError::new(ErrorKind::Invalid, format!("DISTINCT ON \"{name}\" is ambiguous"))
                .with_hint("Give the items of the select list names of their own."));
        }
        found = Some(expr);
    }
    Ok(found.cloned())
}
