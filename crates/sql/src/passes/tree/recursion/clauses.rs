//! SEARCH and CYCLE, written out as PostgreSQL's documentation writes them: columns that carry the
//! path on which a row was found.
//!
//! ```text
//! first      SELECT c, ARRAY[ROW(c)] FROM (first) AS __first(c)
//! step       SELECT c, path || ROW(c) FROM (SELECT .., r.path FROM r ..) AS __step(c, path)
//! ```
//!
//! SEARCH DEPTH FIRST orders by such a path, BREADTH FIRST by the row's distance and columns. CYCLE
//! marks a row that is on the path to it, and goes no further from there.

use datafusion_expr::sqlparser::ast::{
    Expr, Query, Select, SelectItem, SelectItemQualifiedWildcardKind, SetExpr, TableAliasColumnDef, TableFactor,
    TableWithJoins,
};

use super::super::expression_names::item_name;
use super::{quoted, side_query};
use crate::error::{ErrorKind, Result, SqlError};
use crate::syntax::names::{fold, object_name};
use crate::syntax::relation_calls::variable;
use crate::syntax::template::template;

/// The clauses of a named query.
#[derive(Default)]
pub(super) struct Clauses {
    search: Option<Search>,
    cycle: Option<Cycle>,
}

struct Search {
    is_depth_first: bool,
    by: Vec<String>,
    order: String,
}

struct Cycle {
    columns: Vec<String>,
    /// The column that says whether a row closes a cycle, with its two values.
    mark: String,
    marked: String,
    unmarked: String,
    path: String,
}

/// A column that a clause adds: its name, its value in the first rows, its value in further ones.
struct Added {
    name: String,
    first: String,
    step: String,
}

impl Clauses {
    pub(super) fn is_empty(&self) -> bool {
        self.search.is_none() && self.cycle.is_none()
    }

    /// Takes the clause that the parser wrote as `SELECT order, columns, name`.
    pub(super) fn add_search(&mut self, query: &Query) -> Result<()> {
        let items = items(query);
        let [order, by @ .., name] = items.as_slice() else { return Err(broken()) };
        self.search =
            Some(Search { is_depth_first: order.to_string() == "'depth'", by: names_of(by), order: name_of(name) });
        Ok(())
    }

    /// Takes the clause that the parser wrote as `SELECT marked, unmarked, columns, mark, path`.
    pub(super) fn add_cycle(&mut self, query: &Query) -> Result<()> {
        let items = items(query);
        let [marked, unmarked, columns @ .., mark, path] = items.as_slice() else { return Err(broken()) };
        self.cycle = Some(Cycle {
            columns: names_of(columns),
            mark: name_of(mark),
            marked: marked.to_string(),
            unmarked: unmarked.to_string(),
            path: name_of(path),
        });
        Ok(())
    }

    /// Adds the clauses' columns to both terms of the query `name` and to its list of columns.
    pub(super) fn add_to(
        &self,
        name: &str,
        first: &mut SetExpr,
        step: &mut SetExpr,
        columns: &mut Vec<TableAliasColumnDef>,
    ) -> Result<()> {
        let names = all_columns(name, first, columns)?;
        self.check(&names)?;
        let added = self.added();
        let list = list(&names);
        let values = |of: fn(&Added) -> &str| added.iter().map(|added| format!(", {}", of(added))).collect::<String>();
        let of_first = values(|added| &added.first);
        let around = format!("SELECT {list}{of_first} FROM (SELECT 1) AS __first({list})");
        *first = around_term(&around, side_query(first)?)?;
        self.carry(name, step, &names, &added)?;
        let all = [names.clone(), added.iter().map(|added| added.name.clone()).collect()].concat();
        let condition = self.cycle.iter().map(|cycle| format!(" WHERE {} <> {}", ident(&cycle.mark), cycle.marked));
        let of_step = values(|added| &added.step);
        let around = format!(
            "SELECT {list}{of_step} FROM (SELECT 1) AS __step({}){}",
            self::list(&all),
            condition.collect::<String>()
        );
        *step = around_term(&around, side_query(step)?)?;
        *columns = all.iter().map(|name| TableAliasColumnDef { name: quoted(name), data_type: None }).collect();
        Ok(())
    }

    fn added(&self) -> Vec<Added> {
        let mut added = Vec::new();
        if let Some(Search { is_depth_first, by, order }) = &self.search {
            let (by, name) = (list(by), ident(order));
            let (first, step) = match is_depth_first {
                true => (format!("ARRAY[ROW({by})]"), format!("array_append({name}, ROW({by}))")),
                false => (format!("ROW(0, {by})"), format!("ROW(get_field({name}, 'c0') + 1, {by})")),
            };
            added.push(Added { name: order.clone(), first, step });
        }
        if let Some(Cycle { columns, mark, marked, unmarked, path }) = &self.cycle {
            let (columns, name) = (list(columns), ident(path));
            added.push(Added {
                name: mark.clone(),
                first: unmarked.clone(),
                step: format!(
                    "CASE WHEN array_position({name}, ROW({columns})) IS NOT NULL THEN {marked} ELSE {unmarked} END"
                ),
            });
            added.push(Added {
                name: path.clone(),
                first: format!("ARRAY[ROW({columns})]"),
                step: format!("array_append({name}, ROW({columns}))"),
            });
        }
        added
    }

    fn check(&self, names: &[String]) -> Result<()> {
        let mut new: Vec<(&str, &String)> = Vec::new();
        if let Some(search) = &self.search {
            is_listed("search", &search.by, names)?;
            new.push(("search sequence", &search.order));
        }
        if let Some(cycle) = &self.cycle {
            is_listed("cycle", &cycle.columns, names)?;
            new.extend([("cycle mark", &cycle.mark), ("cycle path", &cycle.path)]);
        }
        for (n, (kind, name)) in new.iter().enumerate() {
            if names.contains(name) {
                let message = format!("{kind} column name \"{name}\" already used in WITH query column list");
                return Err(SqlError::new(ErrorKind::Syntax, message).with_hint("Give the column another name."));
            }
            if let Some((other, _)) = new[..n].iter().find(|(_, other)| other == name) {
                let message = format!("{other} column name and {kind} column name are the same");
                return Err(SqlError::new(ErrorKind::Syntax, message).with_hint("Give one of them another name."));
            }
        }
        Ok(())
    }

    /// Makes the step yield the added columns of the row that it started from.
    fn carry(&self, name: &str, step: &mut SetExpr, names: &[String], added: &[Added]) -> Result<()> {
        let Some(select) = as_select(step) else { return Err(not_a_select("right")) };
        let alias = select.from.iter().find_map(|entry| alias_in(entry, &variable(name))).ok_or_else(|| {
            SqlError::new(
                ErrorKind::Unsupported,
                format!("with a SEARCH or CYCLE clause, the recursive reference to WITH query \"{name}\" must be at the top level of its right-hand SELECT"),
            )
            .with_hint(format!("Write FROM {name}, without a query in parentheses around it."))
        })?;
        select.projection = expanded(select, &alias, names)?;
        let of_alias = |column: &String| Expr::CompoundIdentifier(vec![quoted(&alias), quoted(column)]);
        let carried = added.iter().enumerate().map(|(n, added)| SelectItem::ExprWithAlias {
            expr: of_alias(&added.name),
            alias: quoted(&format!("__carried_{n}")),
        });
        select.projection.extend(carried);
        Ok(())
    }
}

/// Names of all columns of a named query: those given, then those of its first term.
fn all_columns(name: &str, first: &mut SetExpr, given: &[TableAliasColumnDef]) -> Result<Vec<String>> {
    let Some(select) = as_select(first) else { return Err(not_a_select("left")) };
    let mut names: Vec<String> = given.iter().map(|column| fold(&column.name)).collect();
    for item in select.projection.iter().skip(names.len()) {
        match item_name(item) {
            Some(name) => names.push(name),
            None => {
                return Err(SqlError::unsupported("SEARCH or CYCLE of a query that selects *", "").with_hint(format!(
                    "List the columns in the query's first part, or after its name: {name}(a, b)."
                )));
            }
        }
    }
    Ok(names)
}

/// The select list without wildcards that would show the added columns.
fn expanded(select: &Select, alias: &str, names: &[String]) -> Result<Vec<SelectItem>> {
    let own = || {
        names
            .iter()
            .map(|column| SelectItem::UnnamedExpr(Expr::CompoundIdentifier(vec![quoted(alias), quoted(column)])))
    };
    let mut items = Vec::with_capacity(select.projection.len());
    for item in &select.projection {
        match item {
            SelectItem::Wildcard(options) => {
                for table in select.from.iter().flat_map(tables_of) {
                    match alias_of(table) {
                        Some(table) if table == alias => items.extend(own()),
                        Some(table) => items.push(SelectItem::QualifiedWildcard(
                            SelectItemQualifiedWildcardKind::ObjectName(vec![quoted(&table)].into()),
                            options.clone(),
                        )),
                        None => return Err(SqlError::unsupported("* beside SEARCH or CYCLE", "List the columns.")),
                    }
                }
            }
            SelectItem::QualifiedWildcard(SelectItemQualifiedWildcardKind::ObjectName(table), _)
                if object_name(table)? == alias =>
            {
                items.extend(own());
            }
            other => items.push(other.clone()),
        }
    }
    Ok(items)
}

fn tables_of(entry: &TableWithJoins) -> impl Iterator<Item = &TableFactor> {
    std::iter::once(&entry.relation).chain(entry.joins.iter().map(|join| &join.relation))
}

fn alias_of(table: &TableFactor) -> Option<String> {
    match table {
        TableFactor::Table { alias: Some(alias), .. } | TableFactor::Derived { alias: Some(alias), .. } => {
            Some(fold(&alias.name))
        }
        TableFactor::Table { name, .. } => object_name(name).ok(),
        _ => None,
    }
}

/// What the relation `wanted` is called in this entry of FROM.
fn alias_in(entry: &TableWithJoins, wanted: &str) -> Option<String> {
    tables_of(entry).find_map(|table| match table {
        TableFactor::Table { name, .. } if object_name(name).is_ok_and(|name| name == wanted) => alias_of(table),
        TableFactor::NestedJoin { table_with_joins, .. } => alias_in(table_with_joins, wanted),
        _ => None,
    })
}

/// The SELECT that a term is, without parentheses around it.
fn as_select(term: &mut SetExpr) -> Option<&mut Select> {
    match term {
        SetExpr::Select(select) => Some(select),
        SetExpr::Query(query) if query.with.is_none() && query.order_by.is_none() && query.limit_clause.is_none() => {
            as_select(&mut query.body)
        }
        _ => None,
    }
}

/// A template whose table in FROM is this term.
fn around_term(text: &str, term: Box<Query>) -> Result<SetExpr> {
    let mut around = template(text)?;
    if let SetExpr::Select(select) = around.body.as_mut()
        && let Some(TableFactor::Derived { subquery, .. }) = select.from.first_mut().map(|from| &mut from.relation)
    {
        *subquery = term;
    }
    Ok(*around.body)
}

fn is_listed(kind: &str, columns: &[String], names: &[String]) -> Result<()> {
    match columns.iter().find(|column| !names.contains(column)) {
        None => Ok(()),
        Some(column) => {
            let message = format!("{kind} column \"{column}\" not in WITH query column list");
            Err(SqlError::new(ErrorKind::Syntax, message).with_hint(format!("The columns are {}.", names.join(", "))))
        }
    }
}

fn not_a_select(side: &str) -> SqlError {
    let message = format!("with a SEARCH or CYCLE clause, the {side} side of the UNION must be a SELECT");
    SqlError::new(ErrorKind::Unsupported, message).with_hint("Put the other queries into a query of their own in FROM.")
}

fn items(query: &Query) -> Vec<&Expr> {
    let SetExpr::Select(select) = query.body.as_ref() else { return vec![] };
    let exprs = select.projection.iter().filter_map(|item| match item {
        SelectItem::UnnamedExpr(expr) => Some(expr),
        _ => None,
    });
    exprs.collect()
}

fn names_of(exprs: &[&Expr]) -> Vec<String> {
    exprs.iter().map(|expr| name_of(expr)).collect()
}

fn name_of(expr: &Expr) -> String {
    match expr {
        Expr::Identifier(name) => fold(name),
        other => other.to_string(),
    }
}

fn list(names: &[String]) -> String {
    names.iter().map(|name| ident(name)).collect::<Vec<_>>().join(", ")
}

fn ident(name: &str) -> String {
    quoted(name).to_string()
}

fn broken() -> SqlError {
    SqlError::internal("a clause of WITH has lost its parts")
}
