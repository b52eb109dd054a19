//! `SELECT a::text AS a, unnest(xs) FROM t`: names of computed columns beside a list that is
//! unnested.
//!
//! ```text
//! (SELECT a::text AS a, unnest(xs) AS x FROM t) AS q
//! (SELECT a::text AS __repeated_0, unnest(xs) AS x FROM t) AS q(a, x)
//! ```

use datafusion_expr::sqlparser::ast::{
    Expr, Ident, OrderBy, Query, SelectItem, SetExpr, TableAlias, TableAliasColumnDef, TableFactor,
};

use super::columns::{Known, add_with, query_columns};
use super::merged::name_of_repeated;
use super::series::unnests;
use crate::resolve::catalog::Catalog;
use crate::syntax::names::fold;
use crate::syntax::walk::look_outside_queries;

/// Gives such columns other names within a derived table.
pub(super) fn hide(factor: &mut TableFactor, known: &Known, catalog: &dyn Catalog) {
    if let TableFactor::Derived { subquery, alias: Some(alias), .. } = factor {
        hide_in(subquery, alias, known, catalog);
    }
}

/// The same in the queries of a WITH clause.
pub(super) fn hide_named(query: &mut Query, known: &Known, catalog: &dyn Catalog) {
    let mut known = known.clone();
    add_with(query, &mut known, catalog);
    for named in query.with.iter_mut().flat_map(|with| &mut with.cte_tables) {
        hide_in(&mut named.query, &mut named.alias, &known, catalog);
    }
}

/// The same in a whole query, whose columns are named by its text.
pub(super) fn hide_at_top(query: &mut Query) {
    let is_named = |name: &str| query.order_by.as_ref().is_some_and(|order| names_of(order).iter().any(|n| n == name));
    if let SetExpr::Select(select) = query.body.as_ref()
        && !select.projection.iter().filter_map(alias_of).any(|name| is_named(&name))
    {
        rename(query);
    }
}

fn hide_in(query: &mut Query, alias: &mut TableAlias, known: &Known, catalog: &dyn Catalog) {
    if !alias.columns.is_empty() || query.order_by.is_some() {
        return;
    }
    let Some(names) = query_columns(query, known, catalog) else { return };
    let SetExpr::Select(select) = query.body.as_ref() else { return };
    if select.projection.len() == names.len() && rename(query) {
        let column = |name: &String| TableAliasColumnDef { name: Ident::with_quote('"', name), data_type: None };
        alias.columns = names.iter().map(column).collect();
    }
}

/// Whether a column has another name now.
fn rename(query: &mut Query) -> bool {
    let SetExpr::Select(select) = query.body.as_mut() else { return false };
    if !select.projection.iter().any(unnests) {
        return false;
    }
    let mut is_changed = false;
    for (n, item) in select.projection.iter_mut().enumerate() {
        if let SelectItem::ExprWithAlias { expr, alias } = item
            && is_of_own_name(expr, &fold(alias))
        {
            *alias = Ident::with_quote('"', name_of_repeated(n));
            is_changed = true;
        }
    }
    is_changed
}

fn alias_of(item: &SelectItem) -> Option<String> {
    match item {
        SelectItem::ExprWithAlias { alias, .. } => Some(fold(alias)),
        _ => None,
    }
}

fn names_of(order: &OrderBy) -> Vec<String> {
    let mut names = Vec::new();
    look_outside_queries(order, &mut |part| {
        if let Expr::Identifier(name) = part {
            names.push(fold(name));
        }
    });
    names
}

/// Whether a value is computed of a column that is called as the value is.
fn is_of_own_name(expr: &Expr, own: &str) -> bool {
    if matches!(expr, Expr::Identifier(_) | Expr::CompoundIdentifier(_)) {
        return false;
    }
    let mut is_found = false;
    look_outside_queries(expr, &mut |part| match part {
        Expr::Identifier(name) => is_found |= fold(name) == own,
        Expr::CompoundIdentifier(path) => is_found |= path.last().is_some_and(|name| fold(name) == own),
        _ => {}
    });
    is_found
}
