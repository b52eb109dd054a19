//! `FETCH FIRST`, which DataFusion does not read.
//!
//! ```text
//!     FETCH FIRST n ROWS ONLY              LIMIT n
//!     FETCH FIRST n ROWS WITH TIES         QUALIFY rank() OVER (ORDER BY ..) <= n
//! ```

use datafusion_expr::sqlparser::ast::{self, Expr, LimitClause, OrderByKind, Query, Select, SelectItem, SetExpr};

use super::expression_names::item_name;
use crate::error::{ErrorKind, Result, SqlError};
use crate::syntax::names::fold;
use crate::syntax::parse::parse_expr;
use crate::syntax::template::template;

/// Writes the rows that are fetched in another way.
///
/// # Errors
/// `Unsupported` for PERCENT, and for an order of WITH TIES that cannot be repeated.
pub(super) fn to_limit(query: &mut Query) -> Result<()> {
    let Some(fetch) = query.fetch.take() else {
        return Ok(());
    };
    if fetch.percent {
        return Err(SqlError::unsupported("FETCH .. PERCENT", "Write FETCH FIRST n ROWS ONLY."));
    }
    let count = fetch.quantity.unwrap_or_else(|| Expr::value(ast::Value::Number("1".into(), false)));
    if fetch.with_ties {
        return with_ties(query, &count);
    }
    match &mut query.limit_clause {
        Some(LimitClause::LimitOffset { limit, .. }) => *limit = Some(count),
        other => {
            *other = Some(LimitClause::LimitOffset { limit: Some(count), offset: None, limit_by: vec![] });
        }
    }
    Ok(())
}

/// The first rows, and those that are equal to the last of them in the order.
fn with_ties(query: &mut Query, count: &Expr) -> Result<()> {
    let is_ordered = match query.order_by.as_ref().map(|order_by| &order_by.kind) {
        Some(OrderByKind::Expressions(keys)) => !keys.is_empty(),
        _ => false,
    };
    if !is_ordered {
        return Err(SqlError::new(ErrorKind::Syntax, "WITH TIES cannot be specified without ORDER BY clause"));
    }
    let skipped = match &query.limit_clause {
        Some(LimitClause::LimitOffset { offset: Some(offset), .. }) => format!(" + ({})", offset.value),
        _ => String::new(),
    };
    numbered(query, |order| format!("rank() OVER (ORDER BY {order}) <= ({count}){skipped}"))
}

/// Keeps the rows for which a condition on their numbers holds, which `condition` writes of the
/// order; the order is empty where the query has none.
pub(super) fn numbered(query: &mut Query, condition: impl FnOnce(&str) -> String) -> Result<()> {
    let keys = match query.order_by.as_ref().map(|order_by| &order_by.kind) {
        Some(OrderByKind::Expressions(keys)) => keys.clone(),
        _ => vec![],
    };
    let is_plain = |body: &SetExpr| matches!(body, SetExpr::Select(select) if select.distinct.is_none());
    if !is_plain(&query.body) {
        // (What is made distinct or put together first is a table.)
        let inner = Query { order_by: None, limit_clause: None, with: None, ..query.clone() };
        *query.body = *template(&format!("SELECT * FROM ({inner}) AS __all"))?.body;
    }
    let SetExpr::Select(select) = query.body.as_mut() else {
        return Err(SqlError::internal("a query that is put into FROM is a select"));
    };
    let order: Vec<String> = keys
        .into_iter()
        .map(|mut key| {
            key.expr = ordered_by(select, key.expr)?;
            Ok(key.to_string())
        })
        .collect::<Result<_>>()?;
    let condition = condition(&order.join(", "));
    select.qualify = Some(parse_expr(&match &select.qualify {
        Some(known) => format!("({known}) AND {condition}"),
        None => condition,
    })?);
    Ok(())
}

/// What a key of ORDER BY stands for: an item's number or name is the item.
fn ordered_by(select: &Select, key: Expr) -> Result<Expr> {
    let item = match &key {
        Expr::Value(value) => {
            let at = value.to_string().parse::<usize>().ok().and_then(|at| at.checked_sub(1));
            at.and_then(|at| select.projection.get(at))
        }
        Expr::Identifier(name) => {
            let is_named = |item: &&SelectItem| item_name(item).is_some_and(|item| item == fold(name));
            match select.projection.iter().find(is_named) {
                Some(item) => Some(item),
                None => return Ok(key),
            }
        }
        _ => return Ok(key),
    };
    match item {
        Some(SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. }) => Ok(expr.clone()),
        _ => {
            Err(SqlError::unsupported(format!("WITH TIES ordered by {key}"), "Order by a column, or by an expression."))
        }
    }
}
