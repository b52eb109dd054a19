//! `SELECT * EXCLUDE (c)`, `* EXCEPT (c)`, `* REPLACE (x + 1 AS x)` and `ORDER BY ALL`, as in
//! DuckDB.
//!
//! ```text
//! SELECT * EXCLUDE (s) FROM t            SELECT t.k, t.x FROM t
//! SELECT * REPLACE (x + 1 AS x) FROM t   SELECT t.k, x + 1 AS x, t.s FROM t
//! SELECT k, x FROM t ORDER BY ALL DESC   SELECT k, x FROM t ORDER BY 1 DESC, 2 DESC
//! ```

use datafusion_expr::sqlparser::ast::{
    Expr, Ident, OrderByExpr, OrderByKind, Query, Select, SelectItem, SelectItemQualifiedWildcardKind, Value,
    WildcardAdditionalOptions,
};

use super::columns::{Known, left_out, query_columns};
use super::hooks::Names;
use super::merged::Listing;
use crate::error::{ErrorKind, Result, SqlError};
use crate::resolve::catalog::Catalog;
use crate::resolve::suggest::nearest;
use crate::syntax::names::{fold, object_name};

/// Whether `*` stands for fewer columns, or other ones.
fn is_changed(options: &WildcardAdditionalOptions) -> bool {
    options.opt_except.is_some() || options.opt_exclude.is_some() || options.opt_replace.is_some()
}

/// Lists the columns of such items.
///
/// # Errors
/// `UnknownName` for a column that is not there; `Unsupported` where the columns are not known.
pub(super) fn write_out(select: &mut Select, known: &Known, catalog: &dyn Catalog) -> Result<()> {
    let options = |item: &SelectItem| match item {
        SelectItem::Wildcard(options) | SelectItem::QualifiedWildcard(_, options) => Some(options.clone()),
        _ => None,
    };
    if !select.projection.iter().filter_map(options).any(|options| is_changed(&options)) {
        return Ok(());
    }
    let listing = Listing::of_from(&mut select.from.clone(), known, catalog)?;
    let mut projection = Vec::with_capacity(select.projection.len());
    for item in std::mem::take(&mut select.projection) {
        let columns = match &item {
            SelectItem::Wildcard(options) if is_changed(options) => listing.listed(None),
            SelectItem::QualifiedWildcard(SelectItemQualifiedWildcardKind::ObjectName(table), options)
                if is_changed(options) =>
            {
                listing.listed(Some(&object_name(table)?))
            }
            _ => {
                projection.push(item);
                continue;
            }
        };
        let (Some(columns), Some(options)) = (columns, options(&item)) else {
            let hint = "Its columns are not known yet: list those that you want.";
            return Err(SqlError::unsupported(format!("{item} of this table"), hint));
        };
        projection.extend(changed(columns, &options)?);
    }
    select.projection = projection;
    Ok(())
}

/// The columns without those left out, and with those replaced.
fn changed(columns: Vec<(String, SelectItem)>, options: &WildcardAdditionalOptions) -> Result<Vec<SelectItem>> {
    let without = left_out(options)?;
    let replaced = options.opt_replace.iter().flat_map(|replace| &replace.items);
    let replaced: Vec<(String, &Expr)> = replaced.map(|element| (fold(&element.column_name), &element.expr)).collect();
    for name in without.iter().chain(replaced.iter().map(|(name, _)| name)) {
        if !columns.iter().any(|(known, _)| known == name) {
            let near = nearest(name, columns.iter().map(|(known, _)| known.as_str()));
            let hint = near.map(|near| format!("Perhaps you meant the column \"{near}\".")).unwrap_or_default();
            let message = format!("column \"{name}\" does not exist");
            return Err(SqlError::new(ErrorKind::UnknownName, message).with_hint(hint));
        }
    }
    let kept = columns.into_iter().filter(|(name, _)| !without.contains(name));
    let item = |(name, item): (String, SelectItem)| match replaced.iter().find(|(other, _)| *other == name) {
        Some((_, expr)) => SelectItem::ExprWithAlias { expr: (*expr).clone(), alias: Ident::with_quote('"', name) },
        None => item,
    };
    Ok(kept.map(item).collect())
}

/// `ORDER BY ALL` as the positions of all items.
///
/// # Errors
/// `Unsupported` where the columns are not known.
pub(super) fn order_by_all(query: &mut Query, names: &Names) -> Result<()> {
    let Some(catalog) = names.catalog else { return Ok(()) };
    let Some(OrderByKind::All(options)) = query.order_by.as_ref().map(|order_by| &order_by.kind) else {
        return Ok(());
    };
    let options = *options;
    let Some(columns) = query_columns(query, names.reachable(), catalog) else {
        return Err(SqlError::unsupported("ORDER BY ALL of this query", "Write the columns, or their positions."));
    };
    let position = |at: usize| Expr::value(Value::Number(at.to_string(), false));
    let key = |at: usize| OrderByExpr { expr: position(at), options, with_fill: None };
    if let Some(order_by) = &mut query.order_by {
        order_by.kind = OrderByKind::Expressions((1..=columns.len()).map(key).collect());
    }
    Ok(())
}
