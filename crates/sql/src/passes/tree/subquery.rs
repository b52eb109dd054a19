//! Subqueries that DataFusion plans only in other words.
//!
//! - A scalar subquery is made to yield one row, or an error at run time: `(SELECT x FROM t WHERE
//!   ..)` becomes `(SELECT one_row(any_value(x), count(*)) FROM t WHERE ..)`, and `(SELECT count(*)
//!   FROM t HAVING c)` a `CASE` of the condition.
//! - `(SELECT x .. ORDER BY y LIMIT 1)` becomes `(SELECT first_value(x ORDER BY y) ..)`.
//! - `EXISTS`, `IN`, `ANY` and `ALL` in a select list become counts (`counts`).
//! - `= ANY` and `<> ALL` become `IN` and `NOT IN`.
//! - `IN`, `ANY` and `ALL` of an aggregate without groups, which is one row, become comparisons
//!   with it.
//! - `EXISTS (.. OFFSET n)` counts to more than *n*.

use datafusion_expr::sqlparser::ast::{
    self, BinaryOperator, Distinct, Expr, GroupByExpr, LimitClause, OrderByKind, Query, Select, SelectItem, SetExpr,
    Visit,
};
use datafusion_expr::sqlparser::parser::Parser;

use super::counts::more_than;
use super::expression_names::item_name;
use super::rows::row;
use super::series::gives_rows;
use crate::error::{Result, SqlError};
use crate::functions::table::FUNCTIONS;
use crate::passes::tree::json_lists::is_written_aggregate;
use crate::syntax::dialect::Postgres;
use crate::syntax::names::fold;
use crate::syntax::template::template;
use crate::syntax::walk::look_outside_queries;

/// `x op ANY (query)` is `x op (query)` where the query is an aggregate without groups.
///
/// # Errors
/// None.
pub(super) fn compare_with_one_row(expr: &mut Expr) -> Result<()> {
    let (left, op, query) = match expr {
        Expr::InSubquery { expr, subquery, negated: false } => (expr, BinaryOperator::Eq, subquery),
        Expr::InSubquery { expr, subquery, negated: true } => (expr, BinaryOperator::NotEq, subquery),
        Expr::AnyOp { left, compare_op, right, .. } | Expr::AllOp { left, compare_op, right } => match right.as_mut() {
            Expr::Subquery(query) => (left, compare_op.clone(), query),
            _ => return Ok(()),
        },
        _ => return Ok(()),
    };
    let one_row = match query.body.as_ref() {
        SetExpr::Select(select) => select.projection.len() == 1 && select.having.is_none() && is_total(query),
        _ => false,
    };
    if one_row && row(left).is_none() {
        let left = Box::new(Expr::Nested(left.clone()));
        let comparison = Expr::BinaryOp { left, op, right: Box::new(Expr::Subquery(query.clone())) };
        *expr = Expr::Nested(Box::new(comparison));
    }
    Ok(())
}

/// Whether a query is an aggregate without groups: one row, unless HAVING removes it.
pub(super) fn is_total(query: &Query) -> bool {
    let SetExpr::Select(select) = query.body.as_ref() else { return false };
    let shape = Shape::of(select);
    let is_kept = select.qualify.is_none();
    is_kept
        && shape.aggregates
        && !shape.groups
        && !shape.lists
        && query.limit_clause.is_none()
        && query.fetch.is_none()
}

/// `x IN (VALUES ..)` is `x IN (SELECT c FROM (VALUES ..) AS v(c))`, and so it is with rows.
///
/// # Errors
/// None that a user can cause.
pub(super) fn select_values(expr: &mut Expr) -> Result<()> {
    if let Expr::InSubquery { subquery, .. } = expr
        && let SetExpr::Values(values) = subquery.body.as_ref()
    {
        let n_columns = values.rows.first().map_or(1, |row| row.content.len());
        let columns: Vec<String> = (0..n_columns).map(|n| format!("__c{n}")).collect();
        let columns = columns.join(", ");
        let text = format!("SELECT {columns} FROM (SELECT 1) AS __values({columns})");
        *subquery = around(&text, subquery.as_ref().clone())?;
    }
    Ok(())
}

/// `EXISTS (.. OFFSET n)` asks for more than n rows.
///
/// # Errors
/// `Unsupported` for an offset that is an expression.
pub(super) fn count_beyond_offset(expr: &mut Expr) -> Result<()> {
    let Expr::Exists { subquery, negated } = expr else { return Ok(()) };
    let Some(LimitClause::LimitOffset { limit, offset: Some(offset), .. }) = &subquery.limit_clause else {
        return Ok(());
    };
    let whole = |e: &Expr| match e {
        Expr::Value(value) => match &value.value {
            ast::Value::Number(digits, _) => digits.parse::<u64>().ok(),
            _ => None,
        },
        _ => None,
    };
    let Some(offset) = whole(&offset.value) else {
        return Err(SqlError::unsupported("OFFSET of an expression in EXISTS", "Write a whole number."));
    };
    let nothing = limit.as_ref().and_then(whole) == Some(0);
    if offset > 0 && !nothing {
        let mut query = subquery.as_ref().clone();
        query.limit_clause = None;
        query.order_by = None;
        *expr = more_than(offset, query, *negated)?;
    }
    Ok(())
}

/// `x = ANY (query)` is `x IN (query)`, and `x <> ALL (query)` is `x NOT IN (query)`. Other
/// comparisons keep their form, but the column of the query gets a name of its own: DataFusion
/// would take an outer column of the same name for it.
///
/// # Errors
/// None that a user can cause.
pub(super) fn any_to_in(expr: &mut Expr) -> Result<()> {
    let (left, right, negated) = match expr {
        Expr::AnyOp { left, compare_op: BinaryOperator::Eq, right, .. } => (left, right, false),
        Expr::AllOp { left, compare_op: BinaryOperator::NotEq, right } => (left, right, true),
        Expr::AnyOp { left, right, .. } | Expr::AllOp { left, right, .. } if row(left).is_none() => {
            return name_compared(right);
        }
        _ => return Ok(()),
    };
    if let Expr::Subquery(subquery) = right.as_ref() {
        *expr = Expr::InSubquery { expr: left.clone(), subquery: subquery.clone(), negated };
    }
    Ok(())
}

fn name_compared(right: &mut Expr) -> Result<()> {
    const NAMED: &str = "SELECT __compared FROM (SELECT 1) AS __subquery(__compared)";
    let Expr::Subquery(query) = right else { return Ok(()) };
    if let SetExpr::Select(select) = query.body.as_mut()
        && let [item] = select.projection.as_mut_slice()
        && let SelectItem::UnnamedExpr(value) | SelectItem::ExprWithAlias { expr: value, .. } = item
    {
        *item = SelectItem::ExprWithAlias { expr: value.clone(), alias: ast::Ident::new("__compared") };
        return Ok(());
    }
    *query = around(NAMED, query.as_ref().clone())?;
    Ok(())
}

/// Rewrites a scalar subquery so that it yields one row: its value, NULL if there is none, an error
/// if there are several.
///
/// One row, not at most one: DataFusion takes the value of a query that is never NULL for never
/// NULL, also where there is no row. A query without tables is its value.
pub(super) fn exactly_one_row(expr: &mut Expr) -> Result<()> {
    let Expr::Subquery(query) = expr else { return Ok(()) };
    one_row_of(query)?;
    if let Some(value) = value_without_tables(query) {
        *expr = Expr::Nested(Box::new(value));
        return Ok(());
    }
    name_value(query);
    Ok(())
}

/// Names the value of a scalar subquery: DataFusion joins its column to those of the outer query,
/// where an aggregate of the same text (`sum(v) / (SELECT sum(v) ..)`) would have the same name.
fn name_value(query: &mut Query) {
    if let SetExpr::Select(select) = query.body.as_mut()
        && let [item @ SelectItem::UnnamedExpr(_)] = select.projection.as_mut_slice()
        && let SelectItem::UnnamedExpr(value) = item
        && query.order_by.is_none()
    {
        *item = SelectItem::ExprWithAlias { expr: value.clone(), alias: ast::Ident::new("__value") };
    }
}

fn value_without_tables(query: &Query) -> Option<Expr> {
    let SetExpr::Select(select) = query.body.as_ref() else { return None };
    let [SelectItem::UnnamedExpr(value) | SelectItem::ExprWithAlias { expr: value, .. }] = select.projection.as_slice()
    else {
        return None;
    };
    let shape = Shape::of(select);
    let computed = shape.aggregates || shape.groups || shape.windows || shape.lists;
    let is_value =
        select.from.is_empty() && select.selection.is_none() && query.with.is_none() && query.limit_clause.is_none();
    (is_value && !computed).then(|| value.clone())
}

fn one_row_of(query: &mut Query) -> Result<()> {
    let first_only = limits_to_one(query);
    let SetExpr::Select(select) = query.body.as_mut() else {
        return if first_only { value_of(query) } else { wrap(query) };
    };
    if select.projection.len() != 1 {
        return Ok(());
    }
    let shape = Shape::of(select);
    if !shape.groups && !shape.lists && (shape.aggregates || select.from.is_empty()) {
        return one_row_or_none(query);
    }
    let (SelectItem::UnnamedExpr(value) | SelectItem::ExprWithAlias { expr: value, .. }) = &select.projection[0] else {
        return wrap(query);
    };
    let (value, name) = (value.clone(), item_name(&select.projection[0]));
    if shape.groups || shape.windows || shape.lists {
        return if first_only { value_of(query) } else { wrap(query) };
    }
    let is_distinct = select.distinct.is_some();
    // (Rows that differ in what DISTINCT ON names may have one value.)
    let has_distinct_values = matches!(select.distinct, Some(Distinct::Distinct));
    order_by_value(query, &value, name.as_deref());
    let text = match (&query.order_by, first_only, is_distinct) {
        (Some(order), true, false) if orders_by_columns(order) => {
            format!("first_value({value} {order})")
        }
        (_, true, _) => return if query.order_by.is_some() { value_of(query) } else { first_of(query, &value) },
        (_, false, true) if has_distinct_values && query.limit_clause.is_none() => {
            format!("one_row(any_value({value}), count(DISTINCT {value}))")
        }
        (_, false, false) if query.limit_clause.is_none() => format!("one_row(any_value({value}), count(*))"),
        _ => return wrap(query),
    };
    set_projection(query, expr(&text)?);
    Ok(())
}

/// A query of one row that conditions and limits may remove: the value where they leave it.
///
/// `(SELECT count(*) FROM t HAVING c)` becomes `(SELECT CASE WHEN c THEN count(*) END FROM t)`, and
/// `(SELECT x WHERE c)` likewise.
fn one_row_or_none(query: &mut Query) -> Result<()> {
    if query.limit_clause.is_some() || query.fetch.is_some() {
        if !limits_to_one(query) {
            return value_of(query);
        }
        query.limit_clause = None;
    }
    query.order_by = None;
    let SetExpr::Select(select) = query.body.as_mut() else { return Ok(()) };
    let kept_if = match select.having.take() {
        None if select.from.is_empty() => select.selection.take(),
        having => having,
    };
    if let Some(condition) = kept_if
        && let SelectItem::UnnamedExpr(value) | SelectItem::ExprWithAlias { expr: value, .. } =
            &mut select.projection[0]
    {
        *value = expr(&format!("CASE WHEN {condition} THEN {value} END"))?;
    }
    Ok(())
}

/// `ORDER BY 1` is an order by the one value there is, and so is its name alone; none, if the value
/// is the same for all rows.
fn order_by_value(query: &mut Query, value: &Expr, name: Option<&str>) {
    if let Some(ast::OrderBy { kind: OrderByKind::Expressions(keys), .. }) = &mut query.order_by {
        let is_first = |expr: &Expr| match expr {
            Expr::Value(v) => matches!(&v.value, ast::Value::Number(n, _) if n == "1"),
            Expr::Identifier(ident) => name.is_some_and(|name| name == fold(ident)),
            _ => false,
        };
        if matches!(value, Expr::Value(_)) && keys.iter().all(|key| is_first(&key.expr)) {
            query.order_by = None;
            return;
        }
        keys.iter_mut().filter(|key| is_first(&key.expr)).for_each(|key| key.expr = value.clone());
    }
}

/// `LIMIT 1` without an order: any row will do.
fn first_of(query: &mut Query, value: &Expr) -> Result<()> {
    set_projection(query, expr(&format!("any_value({value})"))?);
    Ok(())
}

pub(super) fn set_projection(query: &mut Query, value: Expr) {
    query.order_by = None;
    query.limit_clause = None;
    if let SetExpr::Select(select) = query.body.as_mut() {
        select.distinct = None;
        select.projection = vec![SelectItem::UnnamedExpr(value)];
    }
}

/// The value of a query of at most one row; NULL for none.
fn value_of(query: &mut Query) -> Result<()> {
    let inner = query.clone();
    *query = *around("SELECT any_value(__c) FROM (SELECT 1) AS __one(__c)", inner)?;
    Ok(())
}

/// The value of a query that is to have one row, checked when it runs.
fn wrap(query: &mut Query) -> Result<()> {
    let inner = query.clone();
    *query = *around("SELECT one_row(any_value(__c), count(*)) FROM (SELECT 1) AS __one(__c)", inner)?;
    Ok(())
}

/// The template with its derived table replaced.
pub(super) fn around(text: &str, inner: Query) -> Result<Box<Query>> {
    let mut query = template(text)?;
    if let SetExpr::Select(select) = query.body.as_mut()
        && let Some(ast::TableFactor::Derived { subquery, .. }) = select.from.first_mut().map(|from| &mut from.relation)
    {
        **subquery = inner;
    }
    Ok(query)
}

fn limits_to_one(query: &Query) -> bool {
    let one = |e: &Expr| matches!(e, Expr::Value(v) if matches!(&v.value, ast::Value::Number(n, _) if n == "1"));
    matches!(&query.limit_clause, Some(LimitClause::LimitOffset { limit: Some(limit), offset: None, .. }) if one(limit))
}

/// Whether each sort key is an expression, not a position in the select list.
fn orders_by_columns(order: &ast::OrderBy) -> bool {
    match &order.kind {
        OrderByKind::Expressions(keys) => !keys.iter().any(|key| matches!(key.expr, Expr::Value(_))),
        OrderByKind::All(_) => false,
    }
}

/// The expression that a text says.
pub(super) fn expr(text: &str) -> Result<Expr> {
    Ok(Parser::new(&Postgres).try_with_sql(text)?.parse_expr()?)
}

/// What a select does to the rows of its tables.
#[derive(Default)]
pub(super) struct Shape {
    pub(super) aggregates: bool,
    pub(super) groups: bool,
    windows: bool,
    /// Lists become rows.
    pub(super) lists: bool,
}

impl Shape {
    pub(super) fn of(select: &Select) -> Self {
        let mut shape = Shape {
            groups: !matches!(&select.group_by, GroupByExpr::Expressions(exprs, _) if exprs.is_empty()),
            // (QUALIFY is a condition on numbers of rows.)
            windows: select.qualify.is_some(),
            ..Shape::default()
        };
        for item in &select.projection {
            shape.look_at(item);
        }
        if let Some(having) = &select.having {
            shape.look_at(having);
            shape.aggregates = true;
        }
        shape
    }
}

/// Whether a query only filters the rows of its tables and selects from each.
pub(super) fn is_plain(query: &Query) -> bool {
    let SetExpr::Select(select) = query.body.as_ref() else { return false };
    let Shape { aggregates, groups, windows, lists, .. } = Shape::of(select);
    let is_whole = query.limit_clause.is_none() && query.fetch.is_none() && query.with.is_none();
    is_whole && select.distinct.is_none() && !(aggregates || groups || windows || lists)
}

/// Whether a part of a query calls an aggregate, its subqueries left out.
pub(super) fn has_aggregate(part: &impl Visit) -> bool {
    let mut shape = Shape::default();
    shape.look_at(part);
    shape.aggregates
}

/// Whether an expression is computed of a group or a window of rows.
pub(super) fn is_aggregate(expr: &Expr) -> bool {
    let mut shape = Shape::default();
    shape.look_at(expr);
    shape.aggregates || shape.windows
}

impl Shape {
    /// Notes what the calls in a part of a query are.
    fn look_at(&mut self, part: &impl Visit) {
        look_outside_queries(part, &mut |expr| {
            let Expr::Function(function) = expr else { return };
            let name = function.name.to_string().to_lowercase();
            if function.over.is_some() {
                self.windows = true;
            } else if gives_rows(&name) {
                self.lists = true;
            } else if FUNCTIONS.aggregate.contains_key(&name) || name == "one_row" || is_written_aggregate(&name) {
                self.aggregates = true;
            }
        });
    }
}
