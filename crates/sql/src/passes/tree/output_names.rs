//! `SELECT -a AS a FROM t ORDER BY a + 1`: items named like columns that the order reads.
//!
//! A name alone in ORDER BY is an item of the select list; inside an expression, or behind a
//! table's name, it is a column of FROM. DataFusion looks among the items first, and takes
//! `t.a` for ambiguous beside an item `a`. Such items are given hidden names: at the top the
//! planner shows the user's, and around a query within another they are given back.

use std::ops::ControlFlow;

use datafusion_expr::sqlparser::ast::{
    Distinct, Expr, Ident, OrderBy, OrderByKind, Query, Select, SelectItem, SetExpr, TableFactor,
};

use super::columns::{Known, add_with};
use super::expression_names::item_name;
use super::hooks::Names;
use super::merged::Listing;
use super::subquery::around;
use crate::error::Result;
use crate::syntax::names::fold;
use crate::syntax::walk::{Look, Looking, look};

/// Hides such items of the top query.
pub(super) fn hide_at_top(query: &mut Query, names: &Names) {
    hide(query, &Known::new(), names);
}

/// Hides such items of a query within another. Only a limit makes its order mean something.
///
/// # Errors
/// None.
pub(super) fn hide_within(query: &mut Query, names: &Names) -> Result<()> {
    for cte in query.with.iter_mut().flat_map(|with| &mut with.cte_tables) {
        drop_order(&mut cte.query, names);
    }
    if query.limit_clause.is_none() && query.fetch.is_none() {
        return Ok(());
    }
    let SetExpr::Select(select) = query.body.as_ref() else { return Ok(()) };
    let Some(shown) = select.projection.iter().map(item_name).collect::<Option<Vec<_>>>() else { return Ok(()) };
    let hidden = hide(query, names.reachable(), names);
    match hidden.is_empty() {
        true => Ok(()),
        false => give_back(query, &shown),
    }
}

/// Drops such an order of a table in FROM.
///
/// # Errors
/// None.
pub(super) fn drop_order_in_from(factor: &mut TableFactor, names: &Names) -> Result<()> {
    if let TableFactor::Derived { subquery, .. } = factor {
        drop_order(subquery, names);
    }
    Ok(())
}

/// Drops such an order of a query whose rows are a table: it means nothing without a limit.
fn drop_order(query: &mut Query, names: &Names) {
    let is_limited = query.limit_clause.is_some() || query.fetch.is_some();
    if query.order_by.is_some() && !is_limited && !hide(&mut query.clone(), names.reachable(), names).is_empty() {
        query.order_by = None;
    }
}

/// Gives items hidden names, and returns their names of before.
fn hide(query: &mut Query, known: &Known, names: &Names) -> Vec<String> {
    let Some(catalog) = names.catalog else { return vec![] };
    let mut known = known.clone();
    add_with(query, &mut known, catalog);
    let (SetExpr::Select(select), Some(order_by)) = (query.body.as_mut(), query.order_by.as_mut()) else {
        return vec![];
    };
    let read = read_in_expressions(order_by);
    if read.qualified.is_empty() && read.bare.is_empty() {
        return vec![];
    }
    let columns = Listing::of_from(&mut select.from.clone(), &known, catalog).ok().and_then(|list| list.names());
    let is_read = |name: &String| {
        let is_column = || columns.as_ref().is_some_and(|columns| columns.contains(name));
        read.qualified.contains(name) || (read.bare.contains(name) && is_column())
    };
    let hidden: Vec<String> = select.projection.iter().filter_map(computed_name).filter(is_read).collect();
    hidden.iter().for_each(|name| rename(select, order_by, name));
    hidden
}

/// The name that the user gave to an item, unless the item is the column of that name.
fn computed_name(item: &SelectItem) -> Option<String> {
    let SelectItem::ExprWithAlias { expr, alias } = item else { return None };
    let name = fold(alias);
    let of = match expr {
        Expr::Identifier(ident) => Some(ident),
        Expr::CompoundIdentifier(parts) => parts.last(),
        _ => None,
    };
    (of.map(fold).as_ref() != Some(&name)).then_some(name)
}

fn hidden(name: &str) -> Ident {
    Ident::with_quote('"', format!("__item_{name}"))
}

fn rename(select: &mut Select, order_by: &mut OrderBy, name: &str) {
    for item in &mut select.projection {
        if computed_name(item).as_deref() == Some(name)
            && let SelectItem::ExprWithAlias { alias, .. } = item
        {
            *alias = hidden(name);
        }
    }
    let rename_key = |key: &mut Expr| {
        if lone_name(key).as_deref() == Some(name) {
            *key = Expr::Identifier(hidden(name));
        }
    };
    if let OrderByKind::Expressions(keys) = &mut order_by.kind {
        keys.iter_mut().for_each(|key| rename_key(&mut key.expr));
    }
    if let Some(Distinct::On(keys)) = &mut select.distinct {
        keys.iter_mut().for_each(rename_key);
    }
}

/// The name that a key consists of.
fn lone_name(key: &Expr) -> Option<String> {
    match key {
        Expr::Identifier(ident) => Some(fold(ident)),
        Expr::Nested(inner) => lone_name(inner),
        _ => None,
    }
}

/// Names of columns in expressions.
#[derive(Default)]
struct Read {
    /// Behind the name of a table.
    qualified: Vec<String>,
    bare: Vec<String>,
}

impl Looking for Read {
    fn expr(&mut self, expr: &Expr) -> Look {
        match expr {
            Expr::Identifier(ident) => self.bare.push(fold(ident)),
            Expr::CompoundIdentifier(parts) => self.qualified.extend(parts.last().map(fold)),
            _ => {}
        }
        ControlFlow::Continue(())
    }
}

/// What the keys read that are more than a name.
fn read_in_expressions(order_by: &OrderBy) -> Read {
    let mut read = Read::default();
    if let OrderByKind::Expressions(keys) = &order_by.kind {
        keys.iter().filter(|key| lone_name(&key.expr).is_none()).for_each(|key| look(&key.expr, &mut read));
    }
    read
}

/// `SELECT * FROM (query) AS __limited (name, ..)`.
///
/// # Errors
/// None: the text is ours.
fn give_back(query: &mut Query, shown: &[String]) -> Result<()> {
    let names: Vec<String> = shown.iter().map(|name| Ident::with_quote('"', name).to_string()).collect();
    let text = format!("SELECT * FROM (SELECT 1) AS __limited ({})", names.join(", "));
    *query = *around(&text, query.clone())?;
    Ok(())
}
