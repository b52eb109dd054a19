//! Names: of columns as PostgreSQL gives them, and of tables that a column's name would hide.

use std::collections::BTreeSet;
use std::ops::ControlFlow;

use datafusion_expr::sqlparser::ast::{
    self, AccessExpr, Expr, GroupByExpr, Ident, Query, SelectItem, SetExpr, TableFactor,
};

use super::columns::{Known, query_columns};
use super::expression_names::{item_name, select_items};
use super::outer_aggregates::tables_of;
use super::series::unnests;
use crate::resolve::catalog::Catalog;
use crate::syntax::names::{OTHER_TABLE, fold, object_name};
use crate::syntax::parse::operands::ALL_FIELDS;
use crate::syntax::walk::{Look, Looking, look};

/// Gives the columns of a query, named by the planner, the names that PostgreSQL gives them.
pub(crate) fn set_output_names(names: &mut [String], query: &Query, catalog: &dyn Catalog) {
    if let Some(known) = query_columns(query, &Known::new(), catalog)
        && known.len() == names.len()
    {
        names.clone_from_slice(&known);
        return;
    }
    let n = names.len();
    let (front, back) = names_around_wildcards(query);
    for (i, name) in front.into_iter().enumerate().take(n) {
        names[i] = name.unwrap_or_else(|| names[i].clone());
    }
    for (i, name) in back.into_iter().enumerate().take(n) {
        names[n - 1 - i] = name.unwrap_or_else(|| names[n - 1 - i].clone());
    }
}

/// The names of a query's columns as PostgreSQL gives them, where the text decides: `None` for
/// items whose names (or number) come from relations. The second list counts from the end, for
/// items after a wildcard.
fn names_around_wildcards(query: &Query) -> (Vec<Option<String>>, Vec<Option<String>>) {
    let Some(items) = select_items(&query.body) else {
        return (vec![], vec![]);
    };
    // (All fields of a row.)
    let is_one = |field: &Expr| matches!(field, Expr::Identifier(name) if name.value != ALL_FIELDS);
    let is_field = |access: &AccessExpr| matches!(access, AccessExpr::Dot(field) if !is_one(field));
    let is_wildcard = |item: &&SelectItem| {
        matches!(item, SelectItem::Wildcard(_) | SelectItem::QualifiedWildcard(..))
            || matches!(item, SelectItem::UnnamedExpr(Expr::CompoundFieldAccess { access_chain, .. }) if access_chain.iter().any(is_field))
    };
    let front = items.iter().take_while(|i| !is_wildcard(i)).map(item_name).collect();
    let back = items.iter().rev().take_while(|i| !is_wildcard(i)).map(item_name).collect();
    (front, back)
}

/// Gives repeated items of the top select list names of their own: DataFusion wants them distinct.
/// With `all`, every unnamed computation gets one.
pub(super) fn name_repeated(query: &mut Query, all: bool) {
    name_repeated_in(&mut query.body, all);
}

fn name_repeated_in(body: &mut SetExpr, all: bool) {
    let select = match body {
        SetExpr::Select(select) => select,
        SetExpr::SetOperation { left, right, .. } => {
            name_repeated_in(left, all);
            return name_repeated_in(right, all);
        }
        _ => return,
    };
    let mut seen: Vec<String> = Vec::new();
    let mut columns: Vec<Vec<String>> = Vec::new();
    let names: Vec<Option<String>> = select.projection.iter().map(item_name).collect();
    let is_unique = |name: &Option<String>| names.iter().filter(|other| *other == name).count() == 1;
    for (n, item) in select.projection.iter_mut().enumerate() {
        let (shown, column) = match item {
            SelectItem::UnnamedExpr(expr) => (expr.to_string(), column_path(expr)),
            // (`t.k AS k` is the column that `t.k` is.)
            SelectItem::ExprWithAlias { alias, expr } => {
                let own = column_path(expr).filter(|path| path.last() == Some(&fold(alias)));
                (alias.to_string(), own)
            }
            _ => continue,
        };
        let named = matches!(item, SelectItem::ExprWithAlias { .. });
        // (`g` and `t.g` may be one column.)
        let again = column.as_ref().is_some_and(|path| columns.iter().any(|other| may_be_one(other, path)));
        // (Its place in ORDER BY is found by its name.)
        let is_unnested = !named && (!is_unique(&names[n]) || names[n].as_deref() == Some("?column?")) && unnests(item);
        let repeated = again || seen.contains(&shown) || (all && column.is_none() && !named) || is_unnested;
        if !repeated {
            seen.push(shown);
            columns.extend(column);
            continue;
        }
        let (SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. }) = item else {
            continue;
        };
        *item =
            SelectItem::ExprWithAlias { expr: expr.clone(), alias: Ident::with_quote('"', format!("__repeated_{n}")) };
    }
}

/// The parts of a column's name.
fn column_path(expr: &Expr) -> Option<Vec<String>> {
    match expr {
        Expr::Identifier(ident) => Some(vec![fold(ident)]),
        Expr::CompoundIdentifier(parts) => Some(parts.iter().map(fold).collect()),
        _ => None,
    }
}

/// Whether one name ends as the other does.
fn may_be_one(a: &[String], b: &[String]) -> bool {
    a.ends_with(b) || b.ends_with(a)
}

/// Names the items of a derived table that DataFusion would not tell apart, or not name as
/// PostgreSQL does.
pub(super) fn name_derived(query: &mut Query, alias: Option<&ast::TableAlias>) {
    match alias.map_or(0, |alias| alias.columns.len()) {
        0 => name_calls(query),
        n_names => name_items(query, n_names),
    }
    name_right_branches(&mut query.body);
}

/// Gives repeated items names of their own in the later branches of a set operation, whose names
/// are never seen.
fn name_right_branches(body: &mut SetExpr) {
    if let SetExpr::SetOperation { left, right, .. } = body {
        name_right_branches(left);
        name_repeated_in(right, false);
    }
}

/// Names the unnamed calls in a select list after their functions, and columns of the queries
/// around after these, unless an `ORDER BY` might refer to them.
fn name_calls(query: &mut Query) {
    if query.order_by.is_some() {
        return;
    }
    let SetExpr::Select(select) = query.body.as_mut() else {
        return;
    };
    let names: Vec<Option<String>> = select.projection.iter().map(item_name).collect();
    let own = tables_of(select);
    let is_outer = |expr: &Expr| match (expr, &own) {
        (Expr::Identifier(_), _) => select.from.is_empty(),
        (Expr::CompoundIdentifier(path), Some(own)) => {
            matches!(path.as_slice(), [table, _] if !own.contains(&fold(table)))
        }
        _ => false,
    };
    let is_named = |item: &SelectItem| match item {
        SelectItem::UnnamedExpr(expr) => matches!(expr, Expr::Function(_)) || is_outer(expr),
        _ => false,
    };
    let wanting: Vec<bool> = select.projection.iter().map(is_named).collect();
    for n in 0..names.len() {
        let (true, SelectItem::UnnamedExpr(expr)) = (wanting[n], &select.projection[n]) else {
            continue;
        };
        let unique = names.iter().filter(|name| **name == names[n]).count() == 1;
        if let (Some(name), true) = (&names[n], unique) {
            select.projection[n] =
                SelectItem::ExprWithAlias { expr: expr.clone(), alias: Ident::with_quote('"', name) };
        }
    }
}

/// Gives the items of a select list names of their own, where they are as many: those of a list of
/// columns, `s(a, b)`, that take their place.
pub(super) fn name_items(query: &mut Query, n_names: usize) {
    if query.order_by.is_none() {
        name_items_in(&mut query.body, n_names);
    }
}

/// Both branches of a set operation: each is a select whose items DataFusion wants to tell apart.
fn name_items_in(body: &mut SetExpr, n_names: usize) {
    let select = match body {
        SetExpr::Select(select) => select,
        SetExpr::SetOperation { left, right, .. } => {
            name_items_in(left, n_names);
            return name_items_in(right, n_names);
        }
        _ => return,
    };
    let is_value = |item: &SelectItem| matches!(item, SelectItem::UnnamedExpr(_) | SelectItem::ExprWithAlias { .. });
    if select.projection.len() != n_names || !select.projection.iter().all(is_value) {
        return;
    }
    // (A name that GROUP BY names stays.)
    let keys: Vec<String> = match &select.group_by {
        GroupByExpr::Expressions(keys, _) => keys
            .iter()
            .filter_map(|key| if let Expr::Identifier(name) = key { Some(fold(name)) } else { None })
            .collect(),
        GroupByExpr::All(_) => vec![],
    };
    let names: Vec<Option<String>> = select.projection.iter().map(item_name).collect();
    for (n, item) in select.projection.iter_mut().enumerate() {
        let is_key = |name: &String| {
            keys.contains(name) && names.iter().filter(|other| other.as_ref() == Some(name)).count() == 1
        };
        let is_aliased = matches!(item, SelectItem::ExprWithAlias { .. });
        if is_aliased && names[n].as_ref().is_some_and(is_key) {
            continue;
        }
        if let SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. } = item {
            *item = SelectItem::ExprWithAlias { expr: expr.clone(), alias: Ident::new(format!("__item_{n}")) };
        }
    }
}

/// Names of tables in the query that are also names of columns in it. DataFusion reads `dept.id` as
/// a part of the column `dept` where there is one, PostgreSQL as the column `id` of the table
/// `dept`: these tables get other names.
pub(super) fn hidden_tables(query: &Query, catalog: &dyn Catalog) -> BTreeSet<String> {
    let mut seen = Seen { catalog, tables: BTreeSet::new(), columns: BTreeSet::new() };
    look(query, &mut seen);
    seen.tables.intersection(&seen.columns).cloned().collect()
}

struct Seen<'a> {
    catalog: &'a dyn Catalog,
    tables: BTreeSet<String>,
    columns: BTreeSet<String>,
}

impl Looking for Seen<'_> {
    fn table_factor(&mut self, factor: &TableFactor) -> Look {
        if let TableFactor::Derived { alias: Some(alias), .. }
        | TableFactor::UNNEST { alias: Some(alias), .. }
        | TableFactor::Function { alias: Some(alias), .. } = factor
        {
            self.tables.insert(fold(&alias.name));
        }
        if let TableFactor::Table { name, alias, .. } = factor
            && let Ok(name) = object_name(name)
        {
            if let Some(relation) = self.catalog.relation(&name) {
                self.columns.extend(relation.schema.fields().iter().map(|field| field.name().clone()));
            }
            self.tables.insert(alias.as_ref().map_or(name, |alias| fold(&alias.name)));
        }
        ControlFlow::Continue(())
    }

    fn select(&mut self, select: &ast::Select) -> Look {
        for item in &select.projection {
            if let SelectItem::ExprWithAlias { alias, .. } = item {
                self.columns.insert(fold(alias));
            }
        }
        ControlFlow::Continue(())
    }
}

/// The other name of a hidden table.
fn other_name(name: &str) -> Ident {
    Ident::with_quote('"', format!("{OTHER_TABLE}{name}"))
}

/// Gives a table its other name.
pub(super) fn rename_table(factor: &mut TableFactor, hidden: &BTreeSet<String>) {
    let (name, alias) = match factor {
        TableFactor::Table { name, alias, .. } => (name, alias),
        TableFactor::Derived { alias: Some(alias), .. } => {
            let shown = fold(&alias.name);
            if hidden.contains(&shown) {
                alias.name = other_name(&shown);
            }
            return;
        }
        _ => return,
    };
    let shown = match alias {
        Some(alias) => fold(&alias.name),
        None => object_name(name).unwrap_or_default(),
    };
    if !hidden.contains(&shown) {
        return;
    }
    match alias {
        Some(alias) => alias.name = other_name(&shown),
        None => {
            *alias = Some(ast::TableAlias { explicit: true, name: other_name(&shown), columns: vec![], at: None });
        }
    }
}

/// Follows a renamed table in `table.column`.
pub(super) fn rename_reference(expr: &mut Expr, hidden: &BTreeSet<String>) {
    if let Expr::CompoundIdentifier(parts) = expr
        && let [table, _] = parts.as_mut_slice()
        && hidden.contains(&fold(table))
    {
        table.value = other_name(&fold(table)).value;
        table.quote_style = Some('"');
    }
}

/// Follows a renamed table in `table.*`.
pub(super) fn rename_wildcards(select: &mut ast::Select, hidden: &BTreeSet<String>) {
    for item in &mut select.projection {
        if let SelectItem::QualifiedWildcard(ast::SelectItemQualifiedWildcardKind::ObjectName(name), _) = item
            && let [part] = name.0.as_mut_slice()
            && let Some(table) = part.as_ident().map(fold)
            && hidden.contains(&table)
        {
            *part = ast::ObjectNamePart::Identifier(other_name(&table));
        }
    }
}
