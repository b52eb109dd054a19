//! Which columns a table or a query in the text has, where that can be told before planning.

use datafusion_expr::sqlparser::ast::{
    self, ExceptSelectItem, ExcludeSelectItem, Query, Select, SelectItem, SelectItemQualifiedWildcardKind, SetExpr,
    TableFactor, WildcardAdditionalOptions,
};

use super::expression_names::item_name;
use super::merged::{Listing, each_by_name};
use super::series;
use super::window_table::{is_call_of_rows, read_by_call};
use crate::error::Result;
use crate::resolve::catalog::Catalog;
use crate::syntax::names::{fold, object_name};
use crate::syntax::relation_calls::{MUTUALLY_RECURSIVE, RECURSIVE, called_in_from};
use crate::syntax::template::template;

/// The queries named by WITH that are in reach, innermost last, with their columns where these are
/// known.
pub(super) type Known = Vec<(String, Option<Vec<String>>)>;

/// Adds the queries of a WITH clause.
pub(super) fn add_with(query: &Query, known: &mut Known, catalog: &dyn Catalog) {
    query.with.iter().flat_map(|with| &with.cte_tables).for_each(|cte| add_cte(cte, known, catalog));
}

/// For each query of a WITH clause the queries that it can reach: earlier ones, or all where they
/// may be recursive.
pub(super) fn reachable_within(query: &Query, around: &Known, all: &Known, catalog: &dyn Catalog) -> Vec<Known> {
    let Some(with) = &query.with else { return vec![] };
    let mut known = around.clone();
    let mut reach = |cte: &ast::Cte| {
        let mut reached = if with.recursive { all.clone() } else { known.clone() };
        // (The step of a loop reads its variables.)
        reached.extend(variables_of(cte, &known, catalog));
        add_cte(cte, &mut known, catalog);
        reached
    };
    with.cte_tables.iter().map(&mut reach).collect()
}

fn add_cte(cte: &ast::Cte, known: &mut Known, catalog: &dyn Catalog) {
    let columns = query_columns(&cte.query, known, catalog);
    known.extend(variables_of(cte, known, catalog));
    known.push((fold(&cte.alias.name), renamed(columns, Some(&cte.alias))));
}

/// The variables of a query that is a loop.
fn variables_of(cte: &ast::Cte, known: &Known, catalog: &dyn Catalog) -> Known {
    let SetExpr::Select(select) = cte.query.body.as_ref() else { return Known::new() };
    let of_loop = select.from.first().and_then(|from| loop_columns(&from.relation, known, catalog));
    of_loop.map(|(_, variables)| variables).unwrap_or_default()
}

/// The columns of a loop's rows, and its variables with theirs, if a table is a loop.
fn loop_columns(factor: &TableFactor, known: &Known, catalog: &dyn Catalog) -> Option<(Option<Vec<String>>, Known)> {
    let text = |expr: &ast::Expr| match expr {
        ast::Expr::Value(value) => value.value.clone().into_string(),
        _ => None,
    };
    match called_in_from(factor)? {
        (function, args) if function == RECURSIVE => {
            let ([variable, _, ast::Expr::Subquery(first), _], given) = args.split_first_chunk()? else { return None };
            let mut names: Vec<String> = given.iter().filter_map(|name| text(name)).collect();
            let columns = query_columns(first, known, catalog).map(|columns| {
                names.extend(columns.into_iter().skip(names.len()));
                names
            });
            Some((columns.clone(), vec![(text(variable)?, columns)]))
        }
        (function, args) if function == MUTUALLY_RECURSIVE => {
            let (own, variables) = mutual_columns(&args)?;
            Some((Some(own), variables.into_iter().map(|(name, columns)| (name, Some(columns))).collect()))
        }
        _ => None,
    }
}

/// A variable and its columns.
type Columns = (String, Vec<String>);

/// The columns of each variable of a call that `recursion` made, and of the variable that is read.
fn mutual_columns(args: &[&ast::Expr]) -> Option<(Vec<String>, Vec<Columns>)> {
    let text = |expr: &ast::Expr| match expr {
        ast::Expr::Value(value) => value.value.clone().into_string(),
        _ => None,
    };
    let columns = |expr: &ast::Expr| match expr {
        ast::Expr::Subquery(query) => match query.body.as_ref() {
            SetExpr::Select(select) => select.projection.iter().map(item_name).collect(),
            _ => None,
        },
        _ => None,
    };
    let result = text(args.first()?)?;
    let variables = args.get(3..)?.chunks_exact(3);
    let variables: Vec<Columns> =
        variables.map(|parts| Some((text(parts[0])?, columns(parts[1])?))).collect::<Option<_>>()?;
    let own = variables.iter().find(|(name, _)| *name == result)?.1.clone();
    Some((own, variables))
}

/// The columns under the names that an alias gives to the first of them.
fn renamed(columns: Option<Vec<String>>, alias: Option<&ast::TableAlias>) -> Option<Vec<String>> {
    let given = alias.iter().flat_map(|alias| &alias.columns).map(|column| fold(&column.name));
    let mut names: Vec<String> = given.collect();
    match columns {
        Some(columns) => {
            names.extend(columns.into_iter().skip(names.len()));
            Some(names)
        }
        // An alias that lists columns lists all of them, as far as can be told.
        None => (!names.is_empty()).then_some(names),
    }
}

/// Names of the columns of a table or subquery, if they can be told.
pub(super) fn factor_columns(factor: &TableFactor, known: &Known, catalog: &dyn Catalog) -> Option<Vec<String>> {
    match factor {
        TableFactor::Table { name, alias, args: None, .. } => {
            let name = object_name(name).ok()?;
            let columns = match known.iter().rev().find(|(with, _)| *with == name) {
                Some((_, columns)) => columns.clone(),
                None => {
                    let relation = catalog.relation(&name)?;
                    Some(relation.schema.fields().iter().map(|field| field.name().clone()).collect())
                }
            };
            renamed(columns, alias.as_ref())
        }
        TableFactor::Derived { subquery, alias, .. } => {
            renamed(query_columns(subquery, known, catalog), alias.as_ref())
        }
        TableFactor::Table { name, alias, args: Some(args), .. } if is_call_of_rows(name) => {
            let (rows, added) = read_by_call(name, &args.args)?;
            let mut columns = query_columns(&*template(&format!("SELECT * FROM {rows}")).ok()?, known, catalog)?;
            columns.extend(added.into_iter().map(str::to_owned));
            renamed(Some(columns), alias.as_ref())
        }
        TableFactor::NestedJoin { table_with_joins, alias } => {
            let mut from = [table_with_joins.as_ref().clone()];
            let listing = Listing::of_from(&mut from, known, catalog).ok()?;
            renamed(listing.names(), alias.as_ref())
        }
        other => match loop_columns(other, known, catalog) {
            Some((columns, _)) => columns,
            None => series::of(other).ok()?.map(|series| series.columns),
        },
    }
}

/// Names of the columns of a query, if they can be told.
pub(super) fn query_columns(query: &Query, known: &Known, catalog: &dyn Catalog) -> Option<Vec<String>> {
    let mut known = known.clone();
    add_with(query, &mut known, catalog);
    let mut body = query.body.as_ref();
    while let SetExpr::SetOperation { left, .. } = body {
        body = left;
    }
    match body {
        SetExpr::Query(query) => query_columns(query, &known, catalog),
        SetExpr::Select(select) => select_columns(select, &known, catalog),
        SetExpr::Values(values) => {
            let width = values.rows.first()?.content.len();
            Some((1..=width).map(|n| format!("column{n}")).collect())
        }
        _ => None,
    }
}

fn select_columns(select: &Select, known: &Known, catalog: &dyn Catalog) -> Option<Vec<String>> {
    let mut names = Vec::new();
    for item in &select.projection {
        match item {
            SelectItem::Wildcard(options) => {
                let without = left_out(options).ok()?;
                let listing = Listing::of_from(&mut select.from.clone(), known, catalog).ok()?;
                names.extend(listing.names()?.into_iter().filter(|name| !without.contains(name)));
            }
            SelectItem::QualifiedWildcard(SelectItemQualifiedWildcardKind::ObjectName(table), options) => {
                let without = left_out(options).ok()?;
                let listing = Listing::of_from(&mut select.from.clone(), known, catalog).ok()?;
                let columns = listing.columns_of(&object_name(table).ok()?)?;
                names.extend(columns.into_iter().filter(|name| !without.contains(name)));
            }
            SelectItem::QualifiedWildcard(..) => return None,
            SelectItem::UnnamedExpr(ast::Expr::CompoundFieldAccess { .. }) => return None,
            named => names.push(item_name(named)?),
        }
    }
    Some(names)
}

/// The columns that `*` leaves out.
pub(super) fn left_out(options: &WildcardAdditionalOptions) -> Result<Vec<String>> {
    let excepted = options.opt_except.iter().flat_map(|ExceptSelectItem { first_element, additional_elements }| {
        std::iter::once(first_element).chain(additional_elements).map(fold)
    });
    let mut names: Vec<String> = excepted.collect();
    match &options.opt_exclude {
        Some(ExcludeSelectItem::Single(name)) => names.push(object_name(name)?),
        Some(ExcludeSelectItem::Multiple(all)) => {
            names.extend(all.iter().map(object_name).collect::<Result<Vec<String>>>()?);
        }
        None => {}
    }
    Ok(names)
}

/// Completes an alias that names only the first columns of its table with the names of the others.
pub(super) fn complete_alias(factor: &mut TableFactor, known: &Known, catalog: &dyn Catalog) {
    let n_given = match alias_of(factor) {
        Some(alias) if !alias.columns.is_empty() => alias.columns.len(),
        _ => return,
    };
    let Some(columns) = factor_columns(factor, known, catalog) else { return };
    let others: Vec<String> = each_by_name(&columns).skip(n_given).map(|(_, own)| own).collect();
    if let Some(alias) = alias_of(factor) {
        alias.columns.extend(others.iter().map(|name| column_def(name)));
    }
}

fn column_def(name: &str) -> ast::TableAliasColumnDef {
    ast::TableAliasColumnDef { name: ast::Ident::with_quote('"', name), data_type: None }
}

fn alias_of(factor: &mut TableFactor) -> Option<&mut ast::TableAlias> {
    match factor {
        TableFactor::Table { alias, args: None, .. }
        | TableFactor::Derived { alias, .. }
        | TableFactor::NestedJoin { alias, .. } => alias.as_mut(),
        _ => None,
    }
}

/// Completes the lists of columns of the queries of a WITH clause.
pub(super) fn complete_with(query: &mut Query, known: &Known, catalog: &dyn Catalog) {
    let mut known = known.clone();
    for cte in query.with.iter_mut().flat_map(|with| &mut with.cte_tables) {
        let columns = renamed(query_columns(&cte.query, &known, catalog), Some(&cte.alias));
        if let Some(columns) = &columns
            && !cte.alias.columns.is_empty()
        {
            let n_given = cte.alias.columns.len();
            let others = each_by_name(columns).skip(n_given).map(|(_, own)| column_def(&own));
            cte.alias.columns.extend(others.collect::<Vec<_>>());
        }
        known.push((fold(&cte.alias.name), columns));
    }
}
