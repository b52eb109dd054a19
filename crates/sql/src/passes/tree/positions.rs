//! `ORDER BY (1)` and `GROUP BY ROLLUP (1)`: positions in parentheses and in grouping sets.
//!
//! PostgreSQL forgets parentheses around one expression, so that a number in them is the position
//! of an item. DataFusion takes it for a constant, by which nothing is in order, and in grouping
//! sets any number.

use datafusion_expr::sqlparser::ast::{
    Expr, GroupByExpr, OrderByKind, Query, SelectItem, SetExpr, UnaryOperator, Value, ValueWithSpan,
};

use crate::error::{ErrorKind, Result, SqlError};

/// Takes positions out of their parentheses.
///
/// # Errors
/// `Invalid` for constants in ORDER BY that are no positions.
pub(super) fn take_out(query: &mut Query) -> Result<()> {
    if let Some(OrderByKind::Expressions(keys)) = query.order_by.as_mut().map(|order_by| &mut order_by.kind) {
        for key in keys {
            bare(&mut key.expr);
            check(&key.expr)?;
        }
    }
    if let SetExpr::Select(select) = query.body.as_mut()
        && let GroupByExpr::Expressions(groups, _) = &mut select.group_by
    {
        for group in groups {
            match group {
                // (DataFusion knows positions beside sets, and none in them.)
                Expr::Rollup(sets) | Expr::Cube(sets) | Expr::GroupingSets(sets) => {
                    for part in sets.iter_mut().flatten() {
                        bare(part);
                        if let Some(item) = item_at(&select.projection, part) {
                            *part = item;
                        }
                    }
                }
                group => bare(group),
            }
        }
    }
    Ok(())
}

/// Takes a number out of parentheses.
fn bare(expr: &mut Expr) {
    let mut inner: &Expr = expr;
    while let Expr::Nested(within) = inner {
        inner = within;
    }
    if constant(inner).is_some() {
        *expr = inner.clone();
    }
}

/// The item at a position, if that is one.
pub(super) fn item_at(items: &[SelectItem], position: &Expr) -> Option<Expr> {
    let Some(Value::Number(at, _)) = constant(position) else { return None };
    match items.get(at.parse::<usize>().ok()?.checked_sub(1)?)? {
        SelectItem::UnnamedExpr(item) | SelectItem::ExprWithAlias { expr: item, .. } => Some(item.clone()),
        _ => None,
    }
}

fn constant(expr: &Expr) -> Option<&Value> {
    match expr {
        Expr::Value(ValueWithSpan { value: value @ (Value::Number(..) | Value::SingleQuotedString(_)), .. }) => {
            Some(value)
        }
        _ => None,
    }
}

/// Refuses a constant that is no position.
fn check(key: &Expr) -> Result<()> {
    let hint = "Write a column, or the position of an item of the select list.";
    match key {
        Expr::UnaryOp { op: UnaryOperator::Minus, expr } if matches!(constant(expr), Some(Value::Number(..))) => {
            let message = format!("ORDER BY position {key} is not in select list");
            Err(SqlError::new(ErrorKind::Invalid, message).with_hint(hint))
        }
        key if matches!(constant(key), Some(Value::SingleQuotedString(_))) => {
            Err(SqlError::new(ErrorKind::Invalid, "non-integer constant in ORDER BY").with_hint(hint))
        }
        _ => Ok(()),
    }
}
