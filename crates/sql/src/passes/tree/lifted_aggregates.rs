//! `HAVING EXISTS (SELECT 1 FROM u WHERE u.z > sum(t.y))`: an aggregate in a subquery belongs to
//! the query whose columns it is of.
//!
//! ```text
//! SELECT t.x, (SELECT sum(t.y) FROM u) FROM t GROUP BY t.x HAVING c
//! SELECT g.key AS x, (SELECT g.total FROM u)
//! FROM (SELECT t.x AS key, sum(t.y) AS total FROM t GROUP BY t.x) AS g WHERE c
//! ```
//!
//! Law: the groups are those of the query, and each aggregate is computed once for a group. A query
//! that names columns which are neither keys nor in aggregates is left as it is:
//! `outer_aggregates` refuses the aggregate.

use datafusion_expr::sqlparser::ast::{
    Expr, Function, GroupByExpr, Ident, OrderBy, Query, Select, SelectItem, SetExpr, TableFactor, Value, Visit,
};

use super::columns::{Known, add_with, factor_columns};
use super::expression_names::item_name;
use super::outer_aggregates::{is_total, selected, shown_name};
use crate::error::Result;
use crate::resolve::catalog::Catalog;
use crate::syntax::names::fold;
use crate::syntax::template::template;
use crate::syntax::walk::{Changing, Look, Looking, change, look, look_outside_queries};

/// The derived table of the groups.
const GROUPS: &str = "__groups";

/// Computes such aggregates beside the query's own.
///
/// # Errors
/// None that a user can cause.
pub(super) fn lift(
    select: &mut Select,
    order_by: Option<&mut OrderBy>,
    known: &Known,
    catalog: &dyn Catalog,
) -> Result<()> {
    let scopes = || OpenScopes {
        own: ScopeTables::of(select, known, catalog),
        inner: vec![],
        known: vec![known.clone()],
        catalog,
    };
    let mut searched = Searched { scopes: scopes(), is_found: false };
    look(&select.projection, &mut searched);
    look(&select.having, &mut searched);
    if let Some(order_by) = order_by.as_deref() {
        look(order_by, &mut searched);
    }
    if !searched.is_found {
        return Ok(());
    }
    let Some(groups) = groups_of(select, &searched.scopes.own) else { return Ok(()) };
    let mut lifting = Lifting { scopes: scopes(), keys: keys_of(&groups), groups, totals: vec![] };
    let mut changed = select.clone();
    let mut order = order_by.as_deref().cloned();
    for item in &mut changed.projection {
        let name = item_name(item);
        change(item, &mut lifting)?;
        if let (SelectItem::UnnamedExpr(expr), Some(name)) = (&*item, name.filter(|name| name != "?column?")) {
            *item = SelectItem::ExprWithAlias { expr: expr.clone(), alias: Ident::with_quote('"', name) };
        }
    }
    change(&mut changed.having, &mut lifting)?;
    change(&mut changed.qualify, &mut lifting)?;
    change(&mut changed.distinct, &mut lifting)?;
    change(&mut changed.named_window, &mut lifting)?;
    change(&mut order, &mut lifting)?;
    let outputs: Vec<String> = select.projection.iter().filter_map(item_name).collect();
    let names_others = names_own(&changed.projection, &lifting, &[])
        || names_own(&changed.having, &lifting, &[])
        || names_own(&changed.qualify, &lifting, &[])
        || names_own(&order, &lifting, &outputs);
    if names_others {
        return Ok(());
    }
    *select = lifting.over_groups(select, changed)?;
    if let (Some(order_by), Some(order)) = (order_by, order) {
        *order_by = order;
    }
    Ok(())
}

/// A query's groups, with keys in the place of their numbers and names; `None` where these are not
/// known.
fn groups_of(select: &Select, own: &ScopeTables) -> Option<Vec<Expr>> {
    let GroupByExpr::Expressions(groups, modifiers) = &select.group_by else { return None };
    let has_wildcard = |item: &SelectItem| item_name(item).is_none();
    if !modifiers.is_empty() || select.projection.iter().any(has_wildcard) {
        return None;
    }
    let of_item = |item: &SelectItem| match item {
        SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. } => Some(expr.clone()),
        _ => None,
    };
    let key = |key: &Expr| match key {
        Expr::Value(value) => match &value.value {
            Value::Number(digits, _) => {
                let at = digits.to_string().parse::<usize>().ok()?.checked_sub(1)?;
                select.projection.get(at).and_then(of_item)
            }
            _ => Some(key.clone()),
        },
        Expr::Identifier(name) if !own.has_column(&fold(name)) => {
            let is_named = |item: &&SelectItem| item_name(item).is_some_and(|item| item == fold(name));
            select.projection.iter().find(is_named).and_then(of_item)
        }
        _ => Some(key.clone()),
    };
    let set = |set: &Vec<Expr>| set.iter().map(key).collect::<Option<Vec<Expr>>>();
    let sets = |all: &Vec<Vec<Expr>>| all.iter().map(set).collect::<Option<Vec<Vec<Expr>>>>();
    let group = |group: &Expr| match group {
        Expr::GroupingSets(all) => sets(all).map(Expr::GroupingSets),
        Expr::Rollup(all) => sets(all).map(Expr::Rollup),
        Expr::Cube(all) => sets(all).map(Expr::Cube),
        Expr::Tuple(parts) => set(parts).map(Expr::Tuple),
        other => key(other),
    };
    groups.iter().map(group).collect()
}

/// The keys of groups, each once.
fn keys_of(groups: &[Expr]) -> Vec<Expr> {
    let mut keys: Vec<Expr> = Vec::new();
    let mut add = |key: &Expr| {
        if !keys.contains(key) {
            keys.push(key.clone());
        }
    };
    for group in groups {
        match group {
            Expr::GroupingSets(sets) | Expr::Rollup(sets) | Expr::Cube(sets) => {
                sets.iter().flatten().for_each(&mut add)
            }
            Expr::Tuple(parts) => parts.iter().for_each(&mut add),
            other => add(other),
        }
    }
    keys
}

/// The tables of a query with their columns; `None` for what is not known.
#[derive(Default)]
struct ScopeTables {
    tables: Vec<(Option<String>, Option<Vec<String>>)>,
    /// Whether the query is nothing but a value of the query around.
    is_value: bool,
}

impl ScopeTables {
    fn of(select: &Select, known: &Known, catalog: &dyn Catalog) -> Self {
        let factors = select
            .from
            .iter()
            .flat_map(|from| std::iter::once(&from.relation).chain(from.joins.iter().map(|join| &join.relation)));
        let table = |factor: &TableFactor| (shown_name(factor), factor_columns(factor, known, catalog));
        ScopeTables { tables: factors.map(table).collect(), is_value: false }
    }

    fn of_body(body: &SetExpr, known: &Known, catalog: &dyn Catalog) -> Self {
        match body {
            SetExpr::Select(select) => Self::of(select, known, catalog),
            SetExpr::SetOperation { left, right, .. } => {
                let mut both = Self::of_body(left, known, catalog);
                both.tables.extend(Self::of_body(right, known, catalog).tables);
                both
            }
            _ => ScopeTables::default(),
        }
    }

    fn has_column(&self, name: &str) -> bool {
        self.tables.iter().any(|(_, columns)| columns.as_ref().is_some_and(|columns| columns.iter().any(|c| c == name)))
    }

    /// Whether a name may be one of a column here.
    fn may_have(&self, path: &[Ident]) -> bool {
        match path {
            [table, _] => self.tables.iter().any(|(name, _)| name.as_ref().is_none_or(|name| *name == fold(table))),
            [name] => self.has_column(&fold(name)) || self.tables.iter().any(|(_, columns)| columns.is_none()),
            _ => true,
        }
    }

    /// The table and the name of a column that is surely one of these.
    fn column(&self, path: &[Ident]) -> Option<(String, String)> {
        match path {
            [table, name] => {
                let table = fold(table);
                let is_own = self.tables.iter().any(|(name, _)| name.as_ref() == Some(&table));
                is_own.then(|| (table, fold(name)))
            }
            [name] => {
                let name = fold(name);
                let has = |columns: &Option<Vec<String>>| columns.as_ref().is_some_and(|all| all.contains(&name));
                let table = self.tables.iter().find(|(_, columns)| has(columns))?.0.clone()?;
                Some((table, name))
            }
            _ => None,
        }
    }
}

fn path_of(expr: &Expr) -> Option<&[Ident]> {
    match expr {
        Expr::Identifier(name) => Some(std::slice::from_ref(name)),
        Expr::CompoundIdentifier(path) => Some(path),
        _ => None,
    }
}

/// The query, and the queries within it that are open.
struct OpenScopes<'a> {
    own: ScopeTables,
    inner: Vec<ScopeTables>,
    known: Vec<Known>,
    catalog: &'a dyn Catalog,
}

impl OpenScopes<'_> {
    fn open(&mut self, query: &Query) {
        let mut known = self.known.last().cloned().unwrap_or_default();
        add_with(query, &mut known, self.catalog);
        let mut scope = ScopeTables::of_body(&query.body, &known, self.catalog);
        scope.is_value = self.inner.is_empty() && selected(query).is_some();
        self.known.push(known);
        self.inner.push(scope);
    }

    fn close(&mut self) {
        self.known.pop();
        self.inner.pop();
    }

    /// The query's column that a name means, in the innermost open query.
    fn own_column(&self, path: &[Ident]) -> Option<(String, String)> {
        match self.inner.iter().any(|scope| scope.may_have(path)) {
            true => None,
            false => self.own.column(path),
        }
    }

    /// Whether an aggregate within a subquery is one of the query.
    fn is_own(&self, call: &Function) -> bool {
        let (mut n_own, mut n_inner) = (0, 0);
        let mut note = |part: &Expr| match path_of(part) {
            Some(path) if self.own_column(path).is_some() => n_own += 1,
            Some(path) if self.inner.iter().any(|scope| scope.may_have(path)) => n_inner += 1,
            Some(_) => {}
            None if matches!(part, Expr::Subquery(_) | Expr::Exists { .. } | Expr::InSubquery { .. }) => n_inner += 1,
            None => {}
        };
        look_outside_queries(&call.args, &mut note);
        look_outside_queries(&call.filter, &mut note);
        look_outside_queries(&call.within_group, &mut note);
        n_own > 0 && n_inner == 0
    }

    /// An expression in which all names are those of the query's columns, each with its table.
    fn spelt(&self, expr: &Expr) -> Option<String> {
        let mut spelt = expr.clone();
        let mut names = Spelt { scopes: self, is_own: true };
        change(&mut spelt, &mut names).ok()?;
        names.is_own.then(|| within(&spelt).to_string())
    }
}

fn within(expr: &Expr) -> &Expr {
    match expr {
        Expr::Nested(inner) => within(inner),
        other => other,
    }
}

/// Spells names of columns with their tables.
struct Spelt<'a> {
    scopes: &'a OpenScopes<'a>,
    is_own: bool,
}

impl Changing for Spelt<'_> {
    fn query(&mut self, _query: &mut Query) -> Result<()> {
        self.is_own = false;
        Ok(())
    }

    fn after_expr(&mut self, expr: &mut Expr) -> Result<()> {
        let Some(path) = path_of(expr) else { return Ok(()) };
        match self.scopes.own_column(path) {
            Some((table, name)) => {
                let parts = [table, name].map(|part| Ident::with_quote('"', part));
                *expr = Expr::CompoundIdentifier(parts.to_vec());
            }
            None => self.is_own = false,
        }
        Ok(())
    }
}

/// Looks for an aggregate of the query within a subquery.
struct Searched<'a> {
    scopes: OpenScopes<'a>,
    is_found: bool,
}

impl Looking for Searched<'_> {
    fn query(&mut self, query: &Query) -> Look {
        self.scopes.open(query);
        Look::Continue(())
    }

    fn after_query(&mut self, _query: &Query) -> Look {
        self.scopes.close();
        Look::Continue(())
    }

    fn expr(&mut self, expr: &Expr) -> Look {
        // (What a subquery without FROM selects stands in its place.)
        let is_within = self.scopes.inner.last().is_some_and(|scope| !scope.is_value);
        if let (true, Expr::Function(call)) = (is_within, expr) {
            self.is_found |= is_total(call) && self.scopes.is_own(call);
        }
        if self.is_found { Look::Break(()) } else { Look::Continue(()) }
    }
}

/// Puts columns of the groups in the place of keys and aggregates.
struct Lifting<'a> {
    scopes: OpenScopes<'a>,
    groups: Vec<Expr>,
    keys: Vec<Expr>,
    totals: Vec<Expr>,
}

impl Changing for Lifting<'_> {
    fn query(&mut self, query: &mut Query) -> Result<()> {
        self.scopes.open(query);
        Ok(())
    }

    fn after_query(&mut self, _query: &mut Query) -> Result<()> {
        self.scopes.close();
        Ok(())
    }

    fn expr(&mut self, expr: &mut Expr) -> Result<()> {
        if let Expr::Function(call) = &*expr
            && is_total(call)
            && (self.scopes.inner.is_empty() || self.scopes.is_own(call))
        {
            let at = self.totals.iter().position(|total| *total == *expr).unwrap_or_else(|| {
                self.totals.push(expr.clone());
                self.totals.len() - 1
            });
            *expr = column("total", at);
            return Ok(());
        }
        let Some(spelt) = self.scopes.spelt(expr) else { return Ok(()) };
        // (Keys are named where the query is.)
        let inner = std::mem::take(&mut self.scopes.inner);
        let at = self.keys.iter().position(|key| self.scopes.spelt(key).is_some_and(|key| key == spelt));
        self.scopes.inner = inner;
        if let Some(at) = at {
            *expr = column("key", at);
        }
        Ok(())
    }
}

fn column(kind: &str, at: usize) -> Expr {
    Expr::CompoundIdentifier(vec![Ident::new(GROUPS), Ident::new(format!("__{kind}_{at}"))])
}

/// Whether a part names a column of the query that is no column of its groups; names of items,
/// `outputs`, are none.
fn names_own(part: &impl Visit, lifting: &Lifting<'_>, outputs: &[String]) -> bool {
    let mut found = false;
    look_outside_queries(part, &mut |expr| {
        let is_output = matches!(expr, Expr::Identifier(name) if outputs.contains(&fold(name)));
        found |= !is_output && path_of(expr).is_some_and(|path| lifting.scopes.own.column(path).is_some());
    });
    found
}

impl Lifting<'_> {
    /// The changed query over the groups of the first one.
    fn over_groups(self, select: &Select, changed: Select) -> Result<Select> {
        let item = |kind: &'static str| {
            move |(at, expr): (usize, &Expr)| SelectItem::ExprWithAlias {
                expr: expr.clone(),
                alias: Ident::new(format!("__{kind}_{at}")),
            }
        };
        let keys = self.keys.iter().enumerate().map(item("key"));
        let projection = keys.chain(self.totals.iter().enumerate().map(item("total"))).collect();
        let groups = Select {
            projection,
            group_by: GroupByExpr::Expressions(self.groups.clone(), vec![]),
            distinct: None,
            having: None,
            qualify: None,
            named_window: vec![],
            ..select.clone()
        };
        let mut over = template(&format!("SELECT 1 FROM (SELECT 1) AS {GROUPS}"))?;
        let mut from = vec![];
        if let SetExpr::Select(outer) = over.body.as_mut() {
            if let Some(TableFactor::Derived { subquery, .. }) = outer.from.first_mut().map(|from| &mut from.relation) {
                *subquery.body = SetExpr::Select(Box::new(groups));
            }
            from = std::mem::take(&mut outer.from);
        }
        Ok(Select {
            from,
            selection: changed.having.clone(),
            having: None,
            group_by: GroupByExpr::Expressions(vec![], vec![]),
            ..changed
        })
    }
}
