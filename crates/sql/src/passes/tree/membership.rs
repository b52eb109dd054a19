//! `IN (query)` where NULL and false are not the same.
//!
//! As a condition of its own in WHERE, `x IN (query)` keeps the rows that match, and DataFusion
//! plans a semijoin; `x NOT IN (query)` becomes an antijoin that knows about NULLs. Elsewhere (`NOT
//! IN` beside `OR`, either in `CASE`, under `NOT` or `IS TRUE`) DataFusion would plan a mark of two
//! values. There it becomes counts, as in a select list, which have three.
//!
//! In the ON of an inner join such a condition moves to WHERE.
//!
//! Queries with outer columns can be counted so if they only filter and select, and only for values
//! that are not aggregates; others keep their form where NULL and false are the same, and are
//! refused elsewhere.

use std::collections::BTreeSet;

use datafusion_expr::sqlparser::ast::{
    self, BinaryOperator, Expr, Join, JoinConstraint, JoinOperator, ObjectNamePart, Query, Select, TableFactor,
    UnaryOperator,
};

use super::counts::in_as_count;
use super::subquery::{is_aggregate, is_plain};
use crate::error::{Result, SqlError};
use crate::resolve::catalog::Catalog;
use crate::syntax::names::fold;
use crate::syntax::walk::{Look, Looking, change_outside_queries, look};

/// Rewrites the conditions of a select.
pub(super) fn count_in_conditions(select: &mut Select, catalog: &dyn Catalog) -> Result<()> {
    let conditions = Conditions { catalog };
    let mut moved = Vec::new();
    for from in &mut select.from {
        let movable = from.joins.iter().all(|join| keeps_left(&join.join_operator));
        for join in &mut from.joins {
            let movable = movable && is_inner(&join.join_operator);
            if let Some(condition) = condition_of(join) {
                moved.extend(conditions.settle_on(condition, movable)?);
            }
        }
    }
    for condition in select.selection.iter_mut().chain(&mut select.having) {
        conditions.settle(condition, true)?;
    }
    select.selection = select.selection.take().into_iter().chain(moved).reduce(both);
    Ok(())
}

fn both(left: Expr, right: Expr) -> Expr {
    let nested = |expr| Box::new(Expr::Nested(Box::new(expr)));
    Expr::BinaryOp { left: nested(left), op: BinaryOperator::And, right: nested(right) }
}

fn is_inner(join: &JoinOperator) -> bool {
    matches!(join, JoinOperator::Join(_) | JoinOperator::Inner(_))
}

/// Whether a condition on the rows to the left can as well stand behind the join.
fn keeps_left(join: &JoinOperator) -> bool {
    is_inner(join) || matches!(join, JoinOperator::Left(_) | JoinOperator::LeftOuter(_) | JoinOperator::CrossJoin(_))
}

fn condition_of(join: &mut Join) -> Option<&mut Expr> {
    use JoinOperator::{FullOuter, Inner, Join, Left, LeftOuter, Right, RightOuter};
    match &mut join.join_operator {
        Join(c) | Inner(c) | Left(c) | LeftOuter(c) | Right(c) | RightOuter(c) | FullOuter(c) => match c {
            JoinConstraint::On(condition) => Some(condition),
            _ => None,
        },
        _ => None,
    }
}

struct Conditions<'a> {
    catalog: &'a dyn Catalog,
}

impl Conditions<'_> {
    /// Rewrites the condition of a join. DataFusion plans counts in filters only: the parts that
    /// have become counts are taken out, to be conditions of WHERE.
    fn settle_on(&self, condition: &mut Expr, movable: bool) -> Result<Vec<Expr>> {
        if let Expr::BinaryOp { left, op: BinaryOperator::And, right } = condition {
            let mut moved = self.settle_on(left, movable)?;
            moved.extend(self.settle_on(right, movable)?);
            return Ok(moved);
        }
        let mut settled = condition.clone();
        self.settle(&mut settled, true)?;
        if settled == *condition || matches!(within(&settled), Expr::InSubquery { .. }) {
            *condition = settled;
            return Ok(vec![]);
        }
        if !movable {
            return Err(SqlError::unsupported(
                "IN (query) inside OR, NOT or CASE in the ON of an outer join",
                "Compute it as a column of a derived table, and join with that.",
            ));
        }
        *condition = Expr::value(ast::Value::Boolean(true));
        Ok(vec![settled])
    }

    /// Rewrites a condition that only AND and OR connect to the whole; `alone` if AND only.
    fn settle(&self, condition: &mut Expr, alone: bool) -> Result<()> {
        match condition {
            Expr::Nested(inner) => self.settle(inner, alone),
            Expr::BinaryOp { left, op: op @ (BinaryOperator::And | BinaryOperator::Or), right } => {
                let alone = alone && *op == BinaryOperator::And;
                self.settle(left, alone)?;
                self.settle(right, alone)
            }
            Expr::UnaryOp { op: UnaryOperator::Not, expr } => match within(expr) {
                Expr::InSubquery { expr, subquery, negated } => {
                    *condition =
                        Expr::InSubquery { expr: expr.clone(), subquery: subquery.clone(), negated: !*negated };
                    self.settle(condition, alone)
                }
                _ => self.count(condition),
            },
            // A match or none: nothing between is asked for.
            Expr::InSubquery { negated: false, .. } => Ok(()),
            Expr::InSubquery { expr, subquery, negated: true }
                if alone && (has_columns(expr) || !is_closed(subquery, self.catalog)) =>
            {
                Ok(())
            }
            Expr::Case { operand: None, conditions, else_result, .. } => {
                for arm in conditions {
                    self.settle_arm(&mut arm.condition)?;
                    self.count(&mut arm.result)?;
                }
                else_result.as_mut().map_or(Ok(()), |result| self.count(result))
            }
            _ => self.count(condition),
        }
    }

    /// Rewrites the condition of an arm of CASE: not to match and not to know lead on to the next
    /// arm alike.
    fn settle_arm(&self, condition: &mut Expr) -> Result<()> {
        match condition {
            Expr::Nested(inner) => self.settle_arm(inner),
            Expr::BinaryOp { left, op: BinaryOperator::And | BinaryOperator::Or, right } => {
                self.settle_arm(left)?;
                self.settle_arm(right)
            }
            Expr::InSubquery { expr, subquery, negated: false } if !self.is_countable(expr, subquery) => Ok(()),
            _ => self.count(condition),
        }
    }

    /// Makes every `IN (query)` a count.
    fn count(&self, condition: &mut Expr) -> Result<()> {
        change_outside_queries(condition, &mut |expr| {
            if let Expr::InSubquery { expr: value, subquery, negated } = expr {
                if !self.is_countable(value, subquery) {
                    return Err(SqlError::unsupported(
                        "IN of an aggregating or limited query with outer columns, of a row or of an aggregate, where NULL is not false (NOT IN beside OR, inside NOT or IS)",
                        "Write [NOT] EXISTS (SELECT .. WHERE y = x), which is true or false, or compare with a column of a derived table.",
                    ));
                }
                *expr = in_as_count(value, subquery, *negated)?;
            }
            Ok(())
        })
    }

    fn is_countable(&self, value: &Expr, query: &Query) -> bool {
        !matches!(value, Expr::Tuple(_)) && !is_aggregate(value) && (is_plain(query) || is_closed(query, self.catalog))
    }
}

fn within(expr: &Expr) -> &Expr {
    match expr {
        Expr::Nested(inner) => within(inner),
        other => other,
    }
}

/// Whether all columns of a query are of its own tables.
fn is_closed(query: &Query, catalog: &dyn Catalog) -> bool {
    let mut scope = Scope { catalog, tables: BTreeSet::new(), columns: Some(BTreeSet::new()) };
    look(query, &mut scope);
    let mut outside = Outside { scope: Some(&scope), found: false };
    look(query, &mut outside);
    !outside.found
}

fn has_columns(expr: &Expr) -> bool {
    let mut any = Outside { scope: None, found: false };
    look(expr, &mut any);
    any.found
}

/// The tables of a query at any depth, and their columns where all are known.
struct Scope<'a> {
    catalog: &'a dyn Catalog,
    tables: BTreeSet<String>,
    columns: Option<BTreeSet<String>>,
}

impl Looking for Scope<'_> {
    fn table_factor(&mut self, factor: &TableFactor) -> Look {
        let (relation, alias) = match factor {
            TableFactor::Table { name, alias, args: None, .. } => {
                let name = name.0.last().and_then(ObjectNamePart::as_ident).map(fold);
                let relation = name.as_ref().and_then(|name| self.catalog.relation(name));
                if alias.is_none() {
                    self.tables.extend(name);
                }
                (relation, alias)
            }
            TableFactor::Table { alias, .. }
            | TableFactor::Derived { alias, .. }
            | TableFactor::UNNEST { alias, .. }
            | TableFactor::TableFunction { alias, .. }
            | TableFactor::Function { alias, .. } => (None, alias),
            TableFactor::NestedJoin { alias: None, .. } => return Look::Continue(()),
            TableFactor::NestedJoin { alias, .. } => (None, alias),
            _ => (None, &None),
        };
        let renamed = alias.as_ref().is_some_and(|alias| !alias.columns.is_empty());
        self.tables.extend(alias.as_ref().map(|alias: &ast::TableAlias| fold(&alias.name)));
        match (relation, &mut self.columns) {
            (Some(relation), Some(columns)) if !renamed => {
                columns.extend(relation.schema.fields().iter().map(|field| field.name().clone()));
            }
            _ => self.columns = None,
        }
        Look::Continue(())
    }
}

/// Whether there is a column of none of the tables; without a scope, any column.
struct Outside<'a> {
    scope: Option<&'a Scope<'a>>,
    found: bool,
}

impl Looking for Outside<'_> {
    fn expr(&mut self, expr: &Expr) -> Look {
        self.found |= match (expr, self.scope) {
            (Expr::Identifier(_) | Expr::CompoundIdentifier(_), None) => true,
            (Expr::Identifier(name), Some(scope)) => {
                scope.columns.as_ref().is_some_and(|columns| !columns.contains(&fold(name)))
            }
            (Expr::CompoundIdentifier(parts), Some(scope)) => match parts.as_slice() {
                [table, _] => !scope.tables.contains(&fold(table)),
                _ => false,
            },
            _ => false,
        };
        if self.found { Look::Break(()) } else { Look::Continue(()) }
    }
}
