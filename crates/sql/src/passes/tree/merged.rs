//! Columns shared by `USING` and `NATURAL` in full and right joins.
//!
//! A shared column is the right side's in a right join, and whichever is there in a full one; DataFusion shows the left side's. So a
//! FROM with such a join is written with ON, its shared columns with what they are, and `*` as the columns that SQL lists:
//!
//! ```text
//! SELECT k, * FROM a FULL JOIN b USING (k)
//! SELECT coalesce(a.k, b.k) AS k, coalesce(a.k, b.k) AS k, a.* EXCEPT (k), b.* EXCEPT (k) FROM a FULL JOIN b ON a.k = b.k
//! ```
//!
//! Columns of tables are looked up in the catalog; where they decide and are not known, the query is refused.

use datafusion_expr::sqlparser::ast::{
    self, BinaryOperator, Expr, Ident, JoinConstraint, JoinOperator, OrderBy, OrderByKind, Query, Select, SelectItem,
    SelectItemQualifiedWildcardKind, SetExpr, TableFactor, WildcardAdditionalOptions,
};

use crate::error::{Result, SqlError};
use crate::resolve::catalog::Catalog;
use crate::syntax::parse::{fold, object_name};
use crate::syntax::walk::change_outside_queries;

/// A query named by WITH, with its columns where these are known.
pub(super) type WithQuery = (String, Option<Vec<String>>);

/// The queries named by WITH that are in reach, innermost last.
pub(super) type Known = Vec<WithQuery>;

/// Adds the queries of a WITH clause.
pub(super) fn add_with(query: &Query, known: &mut Known, catalog: &dyn Catalog) {
    for cte in query.with.iter().flat_map(|with| &with.cte_tables) {
        let columns = alias_columns(&cte.alias).or_else(|| query_columns(&cte.query, known, catalog));
        known.push((fold(&cte.alias.name), columns));
    }
}

/// Writes out the shared columns of a select and of the order above it.
///
/// # Errors
/// `Unsupported` where the columns of a side are not known.
pub(super) fn write_out(
    select: &mut Select,
    order_by: Option<&mut OrderBy>,
    known: &[WithQuery],
    catalog: &dyn Catalog,
) -> Result<()> {
    if !select.from.iter().flat_map(|from| &from.joins).any(|join| shows_other_side(&join.join_operator)) {
        return Ok(());
    }
    let mut list = Listing::default();
    for from in &mut select.from {
        let mut columns = Listing::of(&from.relation, known, catalog)?;
        for join in &mut from.joins {
            let right = Listing::of(&join.relation, known, catalog)?;
            columns = columns.joined(right, &mut join.join_operator)?;
        }
        list.append(columns);
    }
    list.expand_wildcards(select)?;
    let outputs: Vec<String> = select.projection.iter().filter_map(output).collect();
    let mut replace = |expr: &mut Expr| list.replace(expr);
    name_items(select, &list);
    change_outside_queries(select, &mut replace)?;
    if let Some(OrderByKind::Expressions(keys)) = order_by.map(|order| &mut order.kind) {
        for key in keys {
            let shown = matches!(&key.expr, Expr::Identifier(name) if outputs.contains(&fold(name)));
            if !shown {
                change_outside_queries(&mut key.expr, &mut replace)?;
            }
        }
    }
    Ok(())
}

/// Whether DataFusion would show the wrong side's column.
fn shows_other_side(operator: &JoinOperator) -> bool {
    match operator {
        JoinOperator::FullOuter(constraint)
        | JoinOperator::Right(constraint)
        | JoinOperator::RightOuter(constraint) => {
            matches!(constraint, JoinConstraint::Using(_) | JoinConstraint::Natural)
        }
        _ => false,
    }
}

/// What `*` lists.
#[derive(Clone, Default)]
struct Listing {
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
    fn of(factor: &TableFactor, known: &[WithQuery], catalog: &dyn Catalog) -> Result<Self> {
        let name = match factor {
            TableFactor::Table { alias: Some(alias), .. } | TableFactor::Derived { alias: Some(alias), .. } => {
                alias.name.clone()
            }
            TableFactor::Table { name, alias: None, .. } => match name.0.last().and_then(|part| part.as_ident()) {
                Some(ident) => ident.clone(),
                None => return Err(refused()),
            },
            _ => return Err(refused()),
        };
        let columns = factor_columns(factor, known, catalog);
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
            JoinOperator::CrossJoin(_) | JoinOperator::AsOf { .. } => {
                self.append(right);
                return Ok(self);
            }
            _ => return Err(refused()),
        };
        let names = match constraint {
            JoinConstraint::Using(names) => names.iter().map(object_name).collect::<Result<Vec<_>>>()?,
            JoinConstraint::Natural => self.common_with(&right)?,
            JoinConstraint::On(_) | JoinConstraint::None => vec![],
        };
        let mut conditions = Vec::with_capacity(names.len());
        let mut shared = Vec::with_capacity(names.len());
        for name in names {
            let (l, r) = (self.take(&name)?, right.take(&name)?);
            conditions.push(binary(l.clone(), BinaryOperator::Eq, r.clone()));
            shared.push(Item::Shared { name, expr: Box::new(merge(l, r)) });
        }
        if let Some(condition) = conditions.into_iter().reduce(|a, b| binary(a, BinaryOperator::And, b)) {
            *constraint = JoinConstraint::On(condition);
        }
        shared.extend(self.items);
        shared.extend(right.items);
        Ok(Self { items: shared })
    }

    /// Names of the columns that both sides have, in this side's order.
    fn common_with(&self, right: &Self) -> Result<Vec<String>> {
        let (mut left, right) = (self.names().ok_or_else(refused)?, right.names().ok_or_else(refused)?);
        left.retain(|name| right.contains(name));
        match left.is_empty() {
            true => Err(refused()),
            false => Ok(left),
        }
    }

    /// The names that `*` shows, if they are known.
    fn names(&self) -> Option<Vec<String>> {
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

    /// Takes the column out of the list.
    fn take(&mut self, wanted: &str) -> Result<Expr> {
        let shared = self.items.iter().position(|item| matches!(item, Item::Shared { name, .. } if name == wanted));
        if let Some(Item::Shared { expr, .. }) = shared.map(|at| self.items.remove(at)) {
            return Ok(*expr);
        }
        let alone = self.items.iter().filter(|item| matches!(item, Item::Table { .. })).count() == 1;
        let owner = self.items.iter_mut().find_map(|item| match item {
            Item::Table { name, columns, without } => match columns {
                Some(columns) => columns.iter().any(|column| column == wanted).then_some((name, without)),
                None => alone.then_some((name, without)),
            },
            Item::Shared { .. } => None,
        });
        match owner {
            Some((table, without)) => {
                without.push(wanted.to_string());
                Ok(Expr::CompoundIdentifier(vec![table.clone(), Ident::with_quote('"', wanted)]))
            }
            None => Err(refused()),
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
        if let Expr::Identifier(ident) = expr
            && let Some(shared) = self.shared(&fold(ident))
        {
            *expr = shared.clone();
        }
        Ok(())
    }

    fn expand_wildcards(&self, select: &mut Select) -> Result<()> {
        let mut projection = Vec::with_capacity(select.projection.len());
        for item in std::mem::take(&mut select.projection) {
            match item {
                SelectItem::Wildcard(options) => {
                    if options.opt_except.is_some() || options.opt_exclude.is_some() || options.opt_replace.is_some() {
                        return Err(refused());
                    }
                    projection.extend(self.items.iter().filter_map(Item::select));
                }
                other => projection.push(other),
            }
        }
        select.projection = projection;
        Ok(())
    }
}

impl Item {
    /// The item of a select list; nothing for a table all of whose columns are shared.
    fn select(&self) -> Option<SelectItem> {
        let (name, columns, without) = match self {
            Item::Shared { name, expr } => {
                let alias = Ident::with_quote('"', name);
                return Some(SelectItem::ExprWithAlias { expr: expr.as_ref().clone(), alias });
            }
            Item::Table { name, columns, without } => (name, columns, without),
        };
        if columns.as_ref().is_some_and(|columns| columns.iter().all(|column| without.contains(column))) {
            return None;
        }
        let mut excluded = without.iter().map(|name| Ident::with_quote('"', name));
        let options = WildcardAdditionalOptions {
            opt_except: excluded
                .next()
                .map(|first_element| ast::ExceptSelectItem { first_element, additional_elements: excluded.collect() }),
            ..WildcardAdditionalOptions::default()
        };
        let table = ast::ObjectName(vec![ast::ObjectNamePart::Identifier(name.clone())]);
        Some(SelectItem::QualifiedWildcard(SelectItemQualifiedWildcardKind::ObjectName(table), options))
    }
}

/// Gives bare shared columns in the select list the name they lose.
fn name_items(select: &mut Select, list: &Listing) {
    for item in &mut select.projection {
        if let SelectItem::UnnamedExpr(Expr::Identifier(ident)) = item
            && let Some(expr) = list.shared(&fold(ident))
        {
            let alias = Ident::with_quote('"', fold(ident));
            *item = SelectItem::ExprWithAlias { expr: expr.clone(), alias };
        }
    }
}

fn output(item: &SelectItem) -> Option<String> {
    match item {
        SelectItem::ExprWithAlias { alias, .. } => Some(fold(alias)),
        SelectItem::UnnamedExpr(Expr::Identifier(ident)) => Some(fold(ident)),
        _ => None,
    }
}

fn binary(left: Expr, op: BinaryOperator, right: Expr) -> Expr {
    Expr::BinaryOp { left: Box::new(left), op, right: Box::new(right) }
}

fn coalesce(left: Expr, right: Expr) -> Expr {
    let argument = |expr| ast::FunctionArg::Unnamed(ast::FunctionArgExpr::Expr(expr));
    Expr::Function(ast::Function {
        name: ast::ObjectName(vec![ast::ObjectNamePart::Identifier(Ident::new("coalesce"))]),
        uses_odbc_syntax: false,
        parameters: ast::FunctionArguments::None,
        args: ast::FunctionArguments::List(ast::FunctionArgumentList {
            duplicate_treatment: None,
            args: vec![argument(left), argument(right)],
            clauses: vec![],
        }),
        filter: None,
        null_treatment: None,
        over: None,
        within_group: vec![],
    })
}

fn alias_columns(alias: &ast::TableAlias) -> Option<Vec<String>> {
    (!alias.columns.is_empty()).then(|| alias.columns.iter().map(|column| fold(&column.name)).collect())
}

/// Names of the columns of a table or subquery, if they can be told.
pub(super) fn factor_columns(factor: &TableFactor, known: &[WithQuery], catalog: &dyn Catalog) -> Option<Vec<String>> {
    match factor {
        TableFactor::Table { name, alias, args: None, .. } => {
            if let Some(columns) = alias.as_ref().and_then(alias_columns) {
                return Some(columns);
            }
            let name = object_name(name).ok()?;
            if let Some((_, columns)) = known.iter().rev().find(|(with, _)| *with == name) {
                return columns.clone();
            }
            let relation = catalog.relation(&name)?;
            Some(relation.schema.fields().iter().map(|field| field.name().clone()).collect())
        }
        TableFactor::Derived { subquery, alias, .. } => {
            alias.as_ref().and_then(alias_columns).or_else(|| query_columns(subquery, known, catalog))
        }
        _ => None,
    }
}

fn query_columns(query: &Query, known: &[WithQuery], catalog: &dyn Catalog) -> Option<Vec<String>> {
    let mut known = known.to_vec();
    add_with(query, &mut known, catalog);
    let mut body = query.body.as_ref();
    while let SetExpr::SetOperation { left, .. } = body {
        body = left;
    }
    let select = match body {
        SetExpr::Query(query) => return query_columns(query, &known, catalog),
        SetExpr::Select(select) => select,
        _ => return None,
    };
    let mut names = Vec::new();
    for item in &select.projection {
        match item {
            SelectItem::Wildcard(_) => {
                for from in &select.from {
                    if !from.joins.is_empty() {
                        return None;
                    }
                    names.extend(factor_columns(&from.relation, &known, catalog)?);
                }
            }
            SelectItem::QualifiedWildcard(..) => return None,
            named => names.push(super::names::item_name(named)?),
        }
    }
    Some(names)
}

fn refused() -> SqlError {
    SqlError::unsupported(
        "this FULL or RIGHT JOIN with USING or NATURAL",
        "Write ON a.k = b.k, and coalesce(a.k, b.k) where the shared column is wanted.",
    )
}
