//! Entries of FROM that are computed of each row before them: functions and LATERAL queries that
//! project, filter, unnest and join.
//!
//! ```text
//! dep(L, R)                     =  carry(L, R), L's columns under their own names
//! carry(L, one row)             =  L
//! carry(L, project or filter)   =  the same, over carry(L, input)
//! carry(L, unnest)              =  the same, over carry(L, input)
//! carry(L, join)                =  into the one side that depends on L
//! carry(L, R without L)         =  R x L
//! ```
//!
//! Law: each row of L stands beside the rows of R for it, as often as L has it. So R has no node
//! that looks at several rows: no DISTINCT, aggregate, window or limit. Cost: that of the nodes; no
//! join with the values of L, and no state but for joins within R. Others are left to the general
//! method.

use std::sync::Arc;

use datafusion_common::tree_node::{Transformed, TreeNode};
use datafusion_common::{Column, DFSchema, JoinType, Result as DfResult, ScalarValue};
use datafusion_expr::Expr;
use datafusion_expr::expr::{Exists, InSubquery, SetComparison};
use datafusion_expr::logical_plan::{
    Filter, Join, JoinConstraint, LogicalPlan, LogicalPlanBuilder, Subquery, SubqueryAlias, Unnest,
};

use super::free::{free_of, is_lateral};
use super::replaced::Replaced;
use super::{is_one_row, named_as, refused, told_keys};
use crate::passes::plan::repeated_rows::behind_lists;

/// Computes such entries beside the rows before them, at any depth of a plan.
///
/// # Errors
/// None that a user can cause.
pub(crate) fn flatten(plan: LogicalPlan) -> DfResult<LogicalPlan> {
    if !is_lateral(&plan) {
        return Ok(plan);
    }
    let mut n_flat = 0;
    let flat = told_keys::leave_out(plan)?.transform_up_with_subqueries(|node| {
        let node = match node {
            LogicalPlan::Join(join) => {
                n_flat += 1;
                flatten_join(join, n_flat)?
            }
            other => Transformed::no(other),
        };
        node.transform_data(|node| {
            node.map_expressions(|expr| expr.transform_up(|part| Ok(Transformed::yes(with_free(part)?))))
        })
    })?;
    Ok(flat.data)
}

/// A subquery that names no more outer columns than it has.
fn with_free(expr: Expr) -> DfResult<Expr> {
    Ok(match expr {
        Expr::ScalarSubquery(subquery) => Expr::ScalarSubquery(only_free(subquery)?),
        Expr::Exists(Exists { subquery, negated }) => Expr::Exists(Exists { subquery: only_free(subquery)?, negated }),
        Expr::InSubquery(test) => {
            let subquery = only_free(test.subquery)?;
            Expr::InSubquery(InSubquery { subquery, ..test })
        }
        Expr::SetComparison(test) => {
            let subquery = only_free(test.subquery)?;
            Expr::SetComparison(SetComparison { subquery, ..test })
        }
        other => other,
    })
}

fn only_free(subquery: Subquery) -> DfResult<Subquery> {
    let free = free_of(&subquery.subquery)?;
    let mut subquery = subquery;
    let is_free = |outer: &Expr| matches!(outer, Expr::OuterReferenceColumn(_, column) if free.contains(column));
    subquery.outer_ref_columns.retain(is_free);
    Ok(subquery)
}

/// `number` tells the join from others of the plan.
fn flatten_join(join: Join, number: usize) -> DfResult<Transformed<LogicalPlan>> {
    let outer: Vec<Column> =
        free_of(&join.right)?.into_iter().filter(|column| join.left.schema().has_column(column)).collect();
    if outer.is_empty() {
        return unwrapped(join);
    }
    let is_met = match join.join_type {
        JoinType::Inner => true,
        // (Each row of the left has its row, so none is made up.)
        JoinType::Left => is_always(join.filter.as_ref()) && join.on.is_empty() && gives_one_row(&join.right),
        _ => false,
    };
    if !is_met || join.join_constraint == JoinConstraint::Using || !is_by_row(&join.right, &outer)? {
        return Ok(Transformed::no(LogicalPlan::Join(join)));
    }
    let Join { left, right, on, filter, .. } = join;
    let columns = left.schema().columns();
    let source = RowsBefore::of(Arc::unwrap_or_clone(left), number)?;
    let shown = right.schema().clone();
    let (rows, keys) = source.carry(Arc::unwrap_or_clone(right))?;
    let named = rows.schema().columns().into_iter().skip(keys.len()).map(Expr::Column).collect();
    let own = keys
        .into_iter()
        .zip(columns)
        .map(|(key, Column { relation, name, .. })| Expr::Column(key).alias_qualified(relation, name));
    let items: Vec<Expr> = own.chain(named_as(named, &shown)).collect();
    let beside = behind_lists(LogicalPlanBuilder::from(rows).project(items)?.build()?)?;
    let condition = on.into_iter().map(|(l, r)| l.eq(r)).chain(filter).reduce(Expr::and);
    let joined = match condition.filter(|condition| !is_always(Some(condition))) {
        Some(condition) => LogicalPlan::Filter(Filter::try_new(condition, Arc::new(beside))?),
        None => beside,
    };
    Ok(Transformed::yes(joined))
}

/// A join with a LATERAL entry that needs no row of the other side: a derived table.
fn unwrapped(join: Join) -> DfResult<Transformed<LogicalPlan>> {
    let right = match join.right.as_ref() {
        LogicalPlan::Subquery(subquery) => subquery.subquery.clone(),
        LogicalPlan::SubqueryAlias(alias) => match alias.input.as_ref() {
            LogicalPlan::Subquery(subquery) => {
                let alias = SubqueryAlias::try_new(subquery.subquery.clone(), alias.alias.clone())?;
                Arc::new(LogicalPlan::SubqueryAlias(alias))
            }
            _ => return Ok(Transformed::no(LogicalPlan::Join(join))),
        },
        _ => return Ok(Transformed::no(LogicalPlan::Join(join))),
    };
    Ok(Transformed::yes(LogicalPlan::Join(Join { right, ..join })))
}

fn is_always(condition: Option<&Expr>) -> bool {
    condition.is_none_or(|condition| matches!(condition, Expr::Literal(ScalarValue::Boolean(Some(true)), _)))
}

/// Whether a plan is a row of computed values.
fn gives_one_row(plan: &LogicalPlan) -> bool {
    match plan {
        LogicalPlan::Projection(projection) => gives_one_row(&projection.input),
        LogicalPlan::SubqueryAlias(alias) => gives_one_row(&alias.input),
        LogicalPlan::Subquery(subquery) => gives_one_row(&subquery.subquery),
        other => is_one_row(other),
    }
}

/// Whether the nodes that depend on outer columns look at one row at a time.
fn is_by_row(plan: &LogicalPlan, outer: &[Column]) -> DfResult<bool> {
    let depends =
        |plan: &LogicalPlan| -> DfResult<bool> { Ok(free_of(plan)?.iter().any(|column| outer.contains(column))) };
    if !depends(plan)? {
        return Ok(true);
    }
    match plan {
        LogicalPlan::Projection(projection) => is_by_row(&projection.input, outer),
        LogicalPlan::Filter(filter) => is_by_row(&filter.input, outer),
        LogicalPlan::SubqueryAlias(alias) => is_by_row(&alias.input, outer),
        LogicalPlan::Subquery(subquery) => is_by_row(&subquery.subquery, outer),
        LogicalPlan::Unnest(unnest) => is_by_row(&unnest.input, outer),
        LogicalPlan::Sort(sort) if sort.fetch.is_none() => is_by_row(&sort.input, outer),
        LogicalPlan::Join(join) => {
            // (What depends on the left side of its own is left to the general method.)
            let is_lateral = free_of(&join.right)?.iter().any(|column| join.left.schema().has_column(column));
            let is_met = match join.join_type {
                JoinType::Inner => !depends(&join.left)? || !depends(&join.right)?,
                JoinType::Left => !depends(&join.right)?,
                _ => false,
            };
            let is_plain = join.join_constraint != JoinConstraint::Using && !is_lateral;
            Ok(is_plain && is_met && is_by_row(&join.left, outer)? && is_by_row(&join.right, outer)?)
        }
        _ => Ok(false),
    }
}

/// Columns of rows under the names of a schema, behind those that the rows are computed of.
fn behind_keys(
    rows: LogicalPlan,
    shown: Vec<Expr>,
    schema: &DFSchema,
    keys: Vec<Column>,
) -> DfResult<(LogicalPlan, Vec<Column>)> {
    let items: Vec<Expr> = keys.iter().cloned().map(Expr::Column).chain(named_as(shown, schema)).collect();
    Ok((LogicalPlanBuilder::from(rows).project(items)?.build()?, keys))
}

/// The rows that others stand beside.
struct RowsBefore {
    /// Their columns, as the others refer to them.
    outer: Vec<Column>,
    /// The same columns in `rows`.
    keys: Vec<Column>,
    /// The rows, with names that stand nowhere else.
    rows: LogicalPlan,
}

impl RowsBefore {
    fn of(rows: LogicalPlan, number: usize) -> DfResult<Self> {
        let outer = rows.schema().columns();
        let name = |n| Column::new_unqualified(format!("__beside_{number}_{n}"));
        let keys: Vec<Column> = (0..outer.len()).map(name).collect();
        let items = outer.iter().zip(&keys).map(|(column, key)| Expr::Column(column.clone()).alias(&key.name));
        let rows = LogicalPlanBuilder::from(rows).project(items.collect::<Vec<_>>())?.build()?;
        Ok(Self { outer, keys, rows })
    }

    fn depends(&self, plan: &LogicalPlan) -> DfResult<bool> {
        Ok(free_of(plan)?.iter().any(|column| self.outer.contains(column)))
    }

    fn replaced<'a>(&'a self, keys: &'a [Column], rows: &'a LogicalPlan) -> Replaced<'a> {
        Replaced { outer: &self.outer, keys, schema: rows.schema() }
    }

    /// The columns of the rows that a plan is computed of, and behind them the plan's.
    fn carry(&self, plan: LogicalPlan) -> DfResult<(LogicalPlan, Vec<Column>)> {
        if is_one_row(&plan) {
            return Ok((self.rows.clone(), self.keys.clone()));
        }
        let is_of_one_row = matches!(&plan, LogicalPlan::Projection(over) if is_one_row(&over.input));
        if !is_of_one_row && !self.depends(&plan)? {
            let crossed = LogicalPlanBuilder::from(self.rows.clone()).cross_join(plan)?.build()?;
            return Ok((crossed, self.keys.clone()));
        }
        match plan {
            LogicalPlan::Projection(projection) => {
                let own = projection.input.schema().clone();
                let (rows, keys) = self.carry(Arc::unwrap_or_clone(projection.input))?;
                let items = projection.expr.into_iter().map(|item| self.replaced(&keys, &rows).in_expr(item, &own));
                let items = items.collect::<DfResult<Vec<Expr>>>()?;
                behind_keys(rows, items, &projection.schema, keys)
            }
            LogicalPlan::Filter(filter) => {
                let own = filter.input.schema().clone();
                let (rows, keys) = self.carry(Arc::unwrap_or_clone(filter.input))?;
                let predicate = self.replaced(&keys, &rows).in_expr(filter.predicate, &own)?;
                Ok((LogicalPlan::Filter(Filter::try_new(predicate, Arc::new(rows))?), keys))
            }
            LogicalPlan::SubqueryAlias(alias) => {
                let (rows, keys) = self.carry(Arc::unwrap_or_clone(alias.input))?;
                let rows = SubqueryAlias::try_new(Arc::new(rows), alias.alias.clone())?;
                let keys = keys.into_iter().map(|key| Column::new(Some(alias.alias.clone()), key.name)).collect();
                Ok((LogicalPlan::SubqueryAlias(rows), keys))
            }
            LogicalPlan::Subquery(subquery) => self.carry(Arc::unwrap_or_clone(subquery.subquery)),
            // (The order of rows in FROM means nothing.)
            LogicalPlan::Sort(sort) => self.carry(Arc::unwrap_or_clone(sort.input)),
            LogicalPlan::Unnest(Unnest { input, exec_columns, options, schema, .. }) => {
                let (rows, keys) = self.carry(Arc::unwrap_or_clone(input))?;
                let rows =
                    LogicalPlanBuilder::from(rows).unnest_columns_with_options(exec_columns, options)?.build()?;
                let shown = rows.schema().columns().into_iter().skip(keys.len()).map(Expr::Column).collect();
                behind_keys(rows, shown, &schema, keys)
            }
            LogicalPlan::Join(join) => self.carry_join(join),
            _ => Err(refused("an entry of FROM")),
        }
    }

    fn carry_join(&self, join: Join) -> DfResult<(LogicalPlan, Vec<Column>)> {
        let Join { left, right, on, filter, join_type, schema, .. } = join;
        let of_right = self.depends(&right)?;
        let (left, right) = (Arc::unwrap_or_clone(left), Arc::unwrap_or_clone(right));
        let shown = left.schema().columns().into_iter().chain(right.schema().columns()).map(Expr::Column).collect();
        let (left, right, keys) = match of_right {
            true => {
                let (right, keys) = self.carry(right)?;
                (left, right, keys)
            }
            false => {
                let (left, keys) = self.carry(left)?;
                (left, right, keys)
            }
        };
        let joined = (*left.schema()).as_ref().join(right.schema())?;
        let condition = on.into_iter().map(|(l, r)| l.eq(r)).chain(filter).reduce(Expr::and);
        let replaced = Replaced { outer: &self.outer, keys: &keys, schema: &joined };
        let condition = condition.map(|condition| replaced.in_expr(condition, &schema)).transpose()?;
        let rows = LogicalPlanBuilder::from(left).join_on(right, join_type, condition)?.build()?;
        behind_keys(rows, shown, &schema, keys)
    }
}
