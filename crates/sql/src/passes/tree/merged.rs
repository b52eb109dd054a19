//! Columns shared by `USING` and `NATURAL`, and wildcards beside other columns.
//!
//! A shared column comes first in `*`, once. What it is depends on the join: the left side's
//! column, in a right join the right side's, in a full one whichever is there. So a FROM with such
//! joins is written with ON, its shared columns with what they are, and `*` as the columns that SQL
//! lists:
//!
//! ```text
//! SELECT k, * FROM a FULL JOIN b USING (k)
//! SELECT coalesce(a.k, b.k) AS k, coalesce(a.k, b.k) AS k, a.x, b.y FROM a FULL JOIN b ON a.k = b.k
//! ```
//!
//! A join in parentheses with a name of its own becomes a derived table. `SELECT *, a` lists all
//! columns too, since DataFusion wants columns that repeat to have names of their own; what the
//! user sees is restored at the plan's root.
//!
//! Columns of tables are looked up in the catalog; where they decide and are not known, the query
//! is refused.

use std::collections::BTreeSet;

use datafusion_expr::sqlparser::ast::{
    self, BinaryOperator, Expr, FunctionArg, Ident, Join, JoinConstraint, JoinOperator, OrderBy, OrderByKind, Query,
    Select, SelectItem, SelectItemQualifiedWildcardKind, SetExpr, TableFactor, TableWithJoins,
    WildcardAdditionalOptions,
};

use super::asof::is_asof_join;
use super::columns::{Known, add_with, factor_columns, query_columns};
use super::expression_names::item_name;
use super::window_table::is_call_of_rows;
use crate::error::{ErrorKind, Result, SqlError};
use crate::resolve::catalog::Catalog;
use crate::resolve::unknown::unknown_relation;
use crate::syntax::names::{fold, object_name};
use crate::syntax::relation_calls::{call, called};
use crate::syntax::template::template;
use crate::syntax::walk::{Changing, change, change_outside_queries};

/// The function that a shared column of a FULL JOIN is.
const COALESCE: &str = "coalesce";

/// Writes out the shared columns of a select and of the order above it.
///
/// # Errors
/// `Unsupported` where the columns of a side are not known; `Invalid` for a shared column that a
/// side does not have, or has twice.
pub(super) fn write_out(
    select: &mut Select,
    order_by: Option<&mut OrderBy>,
    known: &Known,
    catalog: &dyn Catalog,
) -> Result<()> {
    if !select.from.iter().any(shares_columns) {
        return list_beside_others(select, known, catalog);
    }
    let list = Listing::of_from(&mut select.from, known, catalog)?;
    list.expand_wildcards(select)?;
    let outputs: Vec<String> = select.projection.iter().filter_map(output).collect();
    name_items(select, &list);
    let mut replacing = Replacing { list: &list, known, catalog, inner: vec![] };
    // (Columns in a call over rows are those of its rows.)
    let mut calls: Vec<Vec<FunctionArg>> = Vec::new();
    each_call_of_rows(&mut select.from, &mut |args| calls.push(std::mem::take(args)));
    change(select, &mut replacing)?;
    let mut calls = calls.into_iter();
    each_call_of_rows(&mut select.from, &mut |args| *args = calls.next().unwrap_or_default());
    if let Some(OrderByKind::Expressions(keys)) = order_by.map(|order| &mut order.kind) {
        for key in keys {
            let shown = matches!(&key.expr, Expr::Identifier(name) if outputs.contains(&fold(name)));
            if !shown {
                change(&mut key.expr, &mut replacing)?;
            }
        }
    }
    rename_repeated(select);
    Ok(())
}

/// The arguments of each call over rows, in order.
fn each_call_of_rows(from: &mut [TableWithJoins], each: &mut dyn FnMut(&mut Vec<FunctionArg>)) {
    for from in from {
        let joined = from.joins.iter_mut().map(|join| &mut join.relation);
        for factor in std::iter::once(&mut from.relation).chain(joined) {
            match factor {
                TableFactor::Table { name, args: Some(args), .. } if is_call_of_rows(name) => each(&mut args.args),
                TableFactor::NestedJoin { table_with_joins, .. } => {
                    each_call_of_rows(std::slice::from_mut(table_with_joins), each);
                }
                _ => {}
            }
        }
    }
}

/// Writes out `*` beside columns that it has too.
fn list_beside_others(select: &mut Select, known: &Known, catalog: &dyn Catalog) -> Result<()> {
    if select.projection.len() < 2 || !select.projection.iter().any(is_wildcard) {
        return Ok(());
    }
    let Ok(list) = Listing::of_from(&mut select.from.clone(), known, catalog) else { return Ok(()) };
    let Some(listed) = list.names() else { return Ok(()) };
    let repeats = |item: &SelectItem| is_wildcard(item) || output(item).is_some_and(|name| listed.contains(&name));
    if select.projection.iter().filter(|item| repeats(item)).count() < 2 {
        return Ok(());
    }
    list.expand_wildcards(select)?;
    rename_repeated(select);
    Ok(())
}

/// Writes out the wildcards of a select list, where the columns are known.
///
/// # Errors
/// As [`write_out`].
pub(super) fn list_wildcards(select: &mut Select, known: &Known, catalog: &dyn Catalog) -> Result<()> {
    let Ok(list) = Listing::of_from(&mut select.from.clone(), known, catalog) else { return Ok(()) };
    if select.projection.iter().any(is_wildcard) && list.names().is_some() {
        list.expand_wildcards(select)?;
    }
    Ok(())
}

fn is_wildcard(item: &SelectItem) -> bool {
    matches!(item, SelectItem::Wildcard(_) | SelectItem::QualifiedWildcard(..))
}

/// Whether a join shares columns, here or in parentheses.
fn shares_columns(from: &TableWithJoins) -> bool {
    let nested = |factor: &TableFactor| match factor {
        TableFactor::NestedJoin { table_with_joins, .. } => shares_columns(table_with_joins),
        _ => false,
    };
    let shares = |join: &Join| {
        let by_name = matches!(constraint_of(join), Some(JoinConstraint::Using(_) | JoinConstraint::Natural));
        (by_name && !is_asof_join(join)) || nested(&join.relation)
    };
    nested(&from.relation) || from.joins.iter().any(shares)
}

fn constraint_of(join: &Join) -> Option<&JoinConstraint> {
    use JoinOperator::{FullOuter, Inner, Join, Left, LeftOuter, Right, RightOuter};
    match &join.join_operator {
        Join(c) | Inner(c) | Left(c) | LeftOuter(c) | Right(c) | RightOuter(c) | FullOuter(c) => Some(c),
        _ => None,
    }
}

/// What `*` lists.
#[derive(Clone, Default)]
pub(super) struct Listing {
    items: Vec<Item>,
}

#[derive(Clone)]
enum Item {
    /// A shared column.
    Shared { name: String, expr: Box<Expr> },
    /// A table's columns but for the shared ones.
    Table { name: Ident, columns: Option<Vec<String>>, without: Vec<String> },
}

impl Listing {
    /// What `*` lists over these tables. Conditions by name are written with ON, and named joins in
    /// parentheses as derived tables.
    ///
    /// # Errors
    /// As [`write_out`].
    pub(super) fn of_from(from: &mut [TableWithJoins], known: &Known, catalog: &dyn Catalog) -> Result<Self> {
        let mut list = Listing::default();
        for from in from {
            list.append(Self::of_joins(from, known, catalog)?);
        }
        Ok(list)
    }

    fn of_joins(from: &mut TableWithJoins, known: &Known, catalog: &dyn Catalog) -> Result<Self> {
        let mut columns = Self::of(&mut from.relation, known, catalog)?;
        for join in &mut from.joins {
            let right = Self::of(&mut join.relation, known, catalog)?;
            if is_asof_join(join) {
                columns.append(right);
            } else {
                columns = columns.joined(right, &mut join.join_operator)?;
            }
        }
        Ok(columns)
    }

    fn of(factor: &mut TableFactor, known: &Known, catalog: &dyn Catalog) -> Result<Self> {
        if let TableFactor::NestedJoin { table_with_joins, alias } = factor {
            match alias {
                None => return Self::of_joins(table_with_joins, known, catalog),
                Some(alias) if shares_columns(table_with_joins) => {
                    let mut query = template("SELECT * FROM a")?;
                    if let SetExpr::Select(select) = query.body.as_mut() {
                        select.from = vec![table_with_joins.as_ref().clone()];
                    }
                    let alias = Some(alias.clone());
                    *factor = TableFactor::Derived { lateral: false, subquery: query, alias, sample: None };
                }
                Some(_) => {}
            }
        }
        if let TableFactor::Table { name, args: None, .. } = &*factor
            && let Ok(name) = object_name(name)
            && !known.iter().any(|(with, _)| *with == name)
            && catalog.relation(&name).is_none()
        {
            return Err(unknown_relation(catalog, &name));
        }
        let columns = factor_columns(factor, known, catalog);
        let name = match factor {
            TableFactor::Table { alias: Some(alias), .. }
            | TableFactor::Derived { alias: Some(alias), .. }
            | TableFactor::NestedJoin { alias: Some(alias), .. }
            | TableFactor::UNNEST { alias: Some(alias), .. }
            | TableFactor::Function { alias: Some(alias), .. } => alias.name.clone(),
            TableFactor::Table { name, alias: None, .. } | TableFactor::Function { name, alias: None, .. } => {
                match name.0.last().and_then(|part| part.as_ident()) {
                    Some(ident) => ident.clone(),
                    None => return Err(refused()),
                }
            }
            // (Without an alias its columns have no other names.)
            TableFactor::Derived { alias: None, .. } if columns.is_some() => Ident::with_quote('"', ""),
            _ => return Err(refused()),
        };
        Ok(Self { items: vec![Item::Table { name, columns, without: vec![] }] })
    }

    fn append(&mut self, other: Self) {
        self.items.extend(other.items);
    }

    /// The columns of this side joined with the right one; a shared column becomes a condition.
    fn joined(mut self, mut right: Self, operator: &mut JoinOperator) -> Result<Self> {
        let merge: fn(Expr, Expr) -> Expr = match operator {
            JoinOperator::FullOuter(_) => coalesce,
            JoinOperator::Right(_) | JoinOperator::RightOuter(_) => |_, right| right,
            _ => |left, _| left,
        };
        let constraint = match operator {
            JoinOperator::Join(constraint)
            | JoinOperator::Inner(constraint)
            | JoinOperator::Left(constraint)
            | JoinOperator::LeftOuter(constraint)
            | JoinOperator::Right(constraint)
            | JoinOperator::RightOuter(constraint)
            | JoinOperator::FullOuter(constraint) => constraint,
            JoinOperator::CrossJoin(_) => {
                self.append(right);
                return Ok(self);
            }
            _ => return Err(refused()),
        };
        let names = match constraint {
            JoinConstraint::Using(names) => names.iter().map(object_name).collect::<Result<Vec<_>>>()?,
            JoinConstraint::Natural => self.common_with(&right)?,
            JoinConstraint::On(condition) => {
                self.append(right);
                change_outside_queries(condition, &mut |expr| self.replace(expr))?;
                return Ok(self);
            }
            JoinConstraint::None => vec![],
        };
        let mut conditions = Vec::with_capacity(names.len());
        let mut shared = Vec::with_capacity(names.len());
        for name in names {
            let (l, r) = (self.take(&name, "left")?, right.take(&name, "right")?);
            conditions.push(binary(l.clone(), BinaryOperator::Eq, r.clone()));
            shared.push(Item::Shared { name, expr: Box::new(merge(l, r)) });
        }
        let all = conditions.into_iter().reduce(|a, b| binary(a, BinaryOperator::And, b));
        *constraint = JoinConstraint::On(all.unwrap_or_else(|| Expr::value(ast::Value::Boolean(true))));
        shared.extend(self.items);
        shared.extend(right.items);
        Ok(Self { items: shared })
    }

    /// Names of the columns that both sides have, in this side's order.
    fn common_with(&self, right: &Self) -> Result<Vec<String>> {
        let (mut left, right) = (self.names().ok_or_else(refused)?, right.names().ok_or_else(refused)?);
        left.retain(|name| right.contains(name));
        Ok(left)
    }

    /// The names that `*` shows, if they are known.
    pub(super) fn names(&self) -> Option<Vec<String>> {
        let mut names = Vec::new();
        for item in &self.items {
            match item {
                Item::Shared { name, .. } => names.push(name.clone()),
                Item::Table { columns, without, .. } => {
                    names.extend(columns.as_ref()?.iter().filter(|name| !without.contains(name)).cloned());
                }
            }
        }
        Some(names)
    }

    /// The items that `*` stands for, or `table.*`, each with the name of its column.
    pub(super) fn listed(&self, table: Option<&str>) -> Option<Vec<(String, SelectItem)>> {
        if let Some(wanted) = table {
            let name = self.items.iter().find_map(|item| match item {
                Item::Table { name, .. } if fold(name) == wanted => Some(name),
                _ => None,
            })?;
            let columns = self.columns_of(wanted)?;
            let item = |(shown, own): (&String, String)| (shown.clone(), SelectItem::UnnamedExpr(column(name, &own)));
            return Some(each_by_name(&columns).map(item).collect());
        }
        let (names, mut items) = (self.names()?, Vec::new());
        self.items.iter().for_each(|item| item.select(&mut items));
        Some(names.into_iter().zip(items).collect())
    }

    /// The columns of one of the tables, shared or not, if they are known.
    pub(super) fn columns_of(&self, table: &str) -> Option<Vec<String>> {
        self.items.iter().find_map(|item| match item {
            Item::Table { name, columns, .. } if fold(name) == table => columns.clone(),
            _ => None,
        })
    }

    /// Takes the column out of the list.
    fn take(&mut self, wanted: &str, side: &str) -> Result<Expr> {
        let mut owners: Vec<usize> = Vec::new();
        let mut unknown: Vec<usize> = Vec::new();
        for (at, item) in self.items.iter().enumerate() {
            match item {
                Item::Shared { name, .. } if name == wanted => owners.push(at),
                Item::Shared { .. } => {}
                Item::Table { columns: None, .. } => unknown.push(at),
                Item::Table { columns: Some(columns), without, .. } => {
                    let has = columns.iter().any(|column| column == wanted) && !without.iter().any(|w| w == wanted);
                    owners.extend(has.then_some(at));
                }
            }
        }
        let at = match (owners.as_slice(), unknown.as_slice()) {
            ([at], _) | ([], [at]) => *at,
            ([], []) => {
                let message = format!("column \"{wanted}\" specified in USING clause does not exist in {side} table");
                return Err(SqlError::new(ErrorKind::UnknownName, message));
            }
            ([], _) => return Err(refused()),
            _ => {
                let message = format!("common column name \"{wanted}\" appears more than once in {side} table");
                return Err(SqlError::new(ErrorKind::Invalid, message)
                    .with_hint("Name the columns with ON, as in ON a.k = b.k."));
            }
        };
        if let Item::Table { name, without, .. } = &mut self.items[at] {
            without.push(wanted.to_string());
            return Ok(column(name, wanted));
        }
        match self.items.remove(at) {
            Item::Shared { expr, .. } => Ok(*expr),
            Item::Table { .. } => Err(refused()),
        }
    }

    fn shared(&self, wanted: &str) -> Option<&Expr> {
        self.items.iter().find_map(|item| match item {
            Item::Shared { name, expr } if name == wanted => Some(expr.as_ref()),
            _ => None,
        })
    }

    /// Replaces a shared column by what it is.
    fn replace(&self, expr: &mut Expr) -> Result<()> {
        let Expr::Identifier(ident) = expr else { return Ok(()) };
        let name = fold(ident);
        let Some(shared) = self.shared(&name) else { return Ok(()) };
        let also = |item: &Item| match item {
            Item::Table { columns: Some(columns), without, .. } => columns.contains(&name) && !without.contains(&name),
            _ => false,
        };
        if self.items.iter().any(also) {
            let message = format!("column reference \"{name}\" is ambiguous");
            return Err(
                SqlError::new(ErrorKind::Invalid, message).with_hint("Write the table's name before the column.")
            );
        }
        *expr = shared.clone();
        Ok(())
    }

    fn expand_wildcards(&self, select: &mut Select) -> Result<()> {
        let mut projection = Vec::with_capacity(select.projection.len());
        for item in std::mem::take(&mut select.projection) {
            match &item {
                SelectItem::Wildcard(options) => {
                    if options.opt_except.is_some() || options.opt_exclude.is_some() || options.opt_replace.is_some() {
                        return Err(refused());
                    }
                    self.items.iter().for_each(|item| item.select(&mut projection));
                }
                SelectItem::QualifiedWildcard(SelectItemQualifiedWildcardKind::ObjectName(name), options)
                    if options.opt_except.is_none() && options.opt_exclude.is_none() =>
                {
                    match (name.0.last().and_then(|part| part.as_ident()), object_name(name)) {
                        (Some(ident), Ok(table)) => match self.columns_of(&table) {
                            Some(columns) => {
                                let listed = each_by_name(&columns).map(|(_, own)| column(ident, &own));
                                projection.extend(listed.map(SelectItem::UnnamedExpr));
                            }
                            None => projection.push(item),
                        },
                        _ => projection.push(item),
                    }
                }
                _ => projection.push(item),
            }
        }
        select.projection = projection;
        Ok(())
    }
}

impl Item {
    /// Adds the items of a select list.
    fn select(&self, projection: &mut Vec<SelectItem>) {
        let (table, columns, without) = match self {
            Item::Shared { name, expr } => {
                projection.push(named(expr, name));
                return;
            }
            Item::Table { name, columns, without } => (name, columns, without),
        };
        if let Some(columns) = columns {
            let rest = each_by_name(columns).filter(|(name, _)| !without.contains(name));
            projection.extend(rest.map(|(_, own)| SelectItem::UnnamedExpr(column(table, &own))));
            return;
        }
        let mut excluded = without.iter().map(|name| Ident::with_quote('"', name));
        let options = WildcardAdditionalOptions {
            opt_except: excluded
                .next()
                .map(|first_element| ast::ExceptSelectItem { first_element, additional_elements: excluded.collect() }),
            ..WildcardAdditionalOptions::default()
        };
        let table = ast::ObjectName(vec![ast::ObjectNamePart::Identifier(table.clone())]);
        projection.push(SelectItem::QualifiedWildcard(SelectItemQualifiedWildcardKind::ObjectName(table), options));
    }
}

/// An item of that name. A column has its name, and its table with it.
fn named(expr: &Expr, name: &str) -> SelectItem {
    match expr {
        Expr::CompoundIdentifier(_) => SelectItem::UnnamedExpr(expr.clone()),
        _ => SelectItem::ExprWithAlias { expr: expr.clone(), alias: Ident::with_quote('"', name) },
    }
}

/// Gives bare shared columns in the select list the name they lose.
fn name_items(select: &mut Select, list: &Listing) {
    for item in &mut select.projection {
        if let SelectItem::UnnamedExpr(Expr::Identifier(ident)) = item
            && let Some(expr) = list.shared(&fold(ident))
        {
            *item = named(expr, &fold(ident));
        }
    }
}

/// The columns of a table, each with the name that tells it from those before it.
pub(super) fn each_by_name(columns: &[String]) -> impl Iterator<Item = (&String, String)> {
    columns.iter().enumerate().map(|(n, name)| {
        let own = if columns[..n].contains(name) { name_of_repeated(n) } else { name.clone() };
        (name, own)
    })
}

/// What names begin with that tell columns of one name apart.
pub(super) const REPEATED: &str = "__repeated_";

pub(super) fn name_of_repeated(n: usize) -> String {
    format!("{REPEATED}{n}")
}

/// Gives the columns of a query in FROM names of their own where several have the same, which only
/// `*` can list.
///
/// # Errors
/// As [`write_out`].
pub(super) fn tell_apart(query: &mut Query, known: &Known, catalog: &dyn Catalog) -> Result<()> {
    let Some(columns) = query_columns(query, known, catalog) else { return Ok(()) };
    if each_by_name(&columns).all(|(name, own)| *name == own) {
        return Ok(());
    }
    let mut known = known.clone();
    add_with(query, &mut known, catalog);
    let mut body = query.body.as_mut();
    loop {
        body = match body {
            SetExpr::SetOperation { left, .. } => left.as_mut(),
            SetExpr::Query(query) => return tell_apart(query, &known, catalog),
            SetExpr::Select(select) => {
                list_wildcards(select, &known, catalog)?;
                if select.projection.len() == columns.len() {
                    rename_items(select, |name, n| columns[..n].contains(name));
                }
                return Ok(());
            }
            _ => return Ok(()),
        };
    }
}

/// Gives some items of the select list names of their own.
fn rename_items(select: &mut Select, mut is_repeated: impl FnMut(&String, usize) -> bool) {
    for (n, item) in select.projection.iter_mut().enumerate() {
        if item_name(item).is_some_and(|name| is_repeated(&name, n))
            && let SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. } = item
        {
            let alias = Ident::with_quote('"', name_of_repeated(n));
            *item = SelectItem::ExprWithAlias { expr: expr.clone(), alias };
        }
    }
}

/// Gives items names of their own that DataFusion would not tell from items before them.
fn rename_repeated(select: &mut Select) {
    let mut seen: Vec<(String, Option<String>)> = Vec::new();
    for (n, item) in select.projection.iter_mut().enumerate() {
        let shown = match item {
            SelectItem::UnnamedExpr(Expr::CompoundIdentifier(parts)) => match parts.as_slice() {
                [table, column] => (fold(column), Some(fold(table))),
                _ => continue,
            },
            _ => match output(item) {
                Some(name) => (name, None),
                None => continue,
            },
        };
        let alike = |(name, table): &(String, Option<String>)| {
            *name == shown.0 && (table.is_none() || shown.1.is_none() || *table == shown.1)
        };
        if !seen.iter().any(alike) {
            seen.push(shown);
            continue;
        }
        if let SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. } = item {
            let alias = Ident::with_quote('"', name_of_repeated(n));
            *item = SelectItem::ExprWithAlias { expr: expr.clone(), alias };
        }
    }
}

fn output(item: &SelectItem) -> Option<String> {
    match item {
        SelectItem::ExprWithAlias { alias, .. } => Some(fold(alias)),
        SelectItem::UnnamedExpr(Expr::Identifier(ident)) => Some(fold(ident)),
        SelectItem::UnnamedExpr(Expr::CompoundIdentifier(parts)) => parts.last().map(fold),
        _ => None,
    }
}

/// Replaces shared columns in a select, and in its subqueries where no table of theirs has such a
/// column.
struct Replacing<'a> {
    list: &'a Listing,
    known: &'a Known,
    catalog: &'a dyn Catalog,
    /// Names that the subqueries around know, of their tables and of their items; `None` where
    /// these cannot be told.
    inner: Vec<Option<BTreeSet<String>>>,
}

impl Changing for Replacing<'_> {
    fn query(&mut self, query: &mut Query) -> Result<()> {
        let mut known = self.known.clone();
        add_with(query, &mut known, self.catalog);
        let names = match query.body.as_ref() {
            SetExpr::Select(select) => Listing::of_from(&mut select.from.clone(), &known, self.catalog)
                .ok()
                .and_then(|list| list.names())
                .map(|names| names.into_iter().chain(select.projection.iter().filter_map(output)).collect()),
            _ => None,
        };
        self.inner.push(names);
        Ok(())
    }

    fn after_query(&mut self, _query: &mut Query) -> Result<()> {
        self.inner.pop();
        Ok(())
    }

    fn after_expr(&mut self, expr: &mut Expr) -> Result<()> {
        let Expr::Identifier(ident) = &*expr else { return Ok(()) };
        let name = fold(ident);
        let is_outer = self.inner.iter().all(|names| names.as_ref().is_some_and(|names| !names.contains(&name)));
        if is_outer { self.list.replace(expr) } else { Ok(()) }
    }
}

fn column(table: &Ident, name: &str) -> Expr {
    if table.value.is_empty() {
        return Expr::Identifier(Ident::with_quote('"', name));
    }
    Expr::CompoundIdentifier(vec![table.clone(), Ident::with_quote('"', name)])
}

fn binary(left: Expr, op: BinaryOperator, right: Expr) -> Expr {
    Expr::BinaryOp { left: Box::new(left), op, right: Box::new(right) }
}

/// The first value of several. (Of a chain of joins one call is made: DataFusion writes a call out
/// as a CASE that has each value twice, and calls in each other would double with each join.)
fn coalesce(left: Expr, right: Expr) -> Expr {
    let mut values = match called(&left) {
        Some((name, values)) if name == COALESCE => values.into_iter().cloned().collect(),
        _ => vec![left],
    };
    values.push(right);
    call(COALESCE, values)
}

fn refused() -> SqlError {
    SqlError::unsupported(
        "this JOIN with USING or NATURAL, as the columns of a side are not known before planning",
        "Write ON a.k = b.k, and coalesce(a.k, b.k) where the shared column of a FULL JOIN is wanted.",
    )
}
