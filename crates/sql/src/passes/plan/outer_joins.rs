//! Outer columns in and below the joins of a subquery.
//!
//! DataFusion pulls conditions over outer columns up to the root of a subquery, through joins of
//! all kinds. Over an inner join, and over the side that an outer join keeps, a condition has the
//! same rows above and below the join. On the side that the join may leave out it belongs to the
//! join's own condition, and there a value of the outer columns decides which rows are padded. Such
//! a join is done for every value there is, the *domain*, and the condition above it picks the rows
//! of the value at hand:
//!
//! ```text
//! EXISTS (SELECT .. FROM x LEFT JOIN y ON y.b = l.a)                          for each row of l
//! = EXISTS (SELECT .. FROM (x CROSS JOIN (SELECT DISTINCT a FROM l) d) LEFT JOIN y ON y.b = d.a WHERE d.a IS NOT DISTINCT FROM l.a)
//! ```
//!
//! Rows of a window are all rows that its query has for one outer row: where they are chosen by
//! equality, the window is partitioned by what is compared; else by the domain.
//!
//! Law: the plan means what it did, or planning fails. Cost: the kept side once for each value of
//! the domain.
//!
//! Source: Neumann and Kemper, *Unnesting Arbitrary Queries*, BTW 2015, section 3: the rules for
//! outer joins.

use std::sync::Arc;

use datafusion_common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion_common::{Column, JoinType, Result as DfResult};
use datafusion_expr::logical_plan::{Filter, Join, LogicalPlan, LogicalPlanBuilder, Window};
use datafusion_expr::utils::{conjunction, split_conjunction_owned};
use datafusion_expr::{BinaryExpr, Expr, Operator, lit, when};

use crate::error::SqlError;
use crate::passes::plan::decorrelate::mentions_outer;

/// What surrounds a subquery.
pub(crate) struct Surroundings<'a> {
    /// The rows that the subquery is asked for.
    pub(crate) rows: Option<&'a LogicalPlan>,
    /// Gives names that no user writes.
    pub(crate) name: &'a mut dyn FnMut() -> String,
}

/// Conditions over outer columns at the top of a plan, and the plan without them.
fn without_outer(plan: LogicalPlan) -> DfResult<(LogicalPlan, Vec<Expr>)> {
    let LogicalPlan::Filter(filter) = plan else { return Ok((plan, vec![])) };
    let parts = split_conjunction_owned(filter.predicate).into_iter();
    let (outer, own): (Vec<Expr>, Vec<Expr>) = parts.partition(Expr::contains_outer);
    Ok((filtered(Arc::unwrap_or_clone(filter.input), own)?, outer))
}

/// Rows under further conditions.
pub(crate) fn filtered(rows: LogicalPlan, conditions: Vec<Expr>) -> DfResult<LogicalPlan> {
    match conjunction(conditions) {
        Some(all) => Ok(LogicalPlan::Filter(Filter::try_new(all, Arc::new(rows))?)),
        None => Ok(rows),
    }
}

/// The join with its conditions over outer columns above it. Its sides have theirs at their top.
pub(crate) fn raise(join: Join, around: &mut Surroundings) -> DfResult<LogicalPlan> {
    let Join { left, right, join_type, on, filter, .. } = join;
    let (left, mut of_left) = without_outer(Arc::unwrap_or_clone(left))?;
    let (right, mut of_right) = without_outer(Arc::unwrap_or_clone(right))?;
    let equal = on.into_iter().map(|(l, r)| l.eq(r));
    let condition = equal.chain(filter.into_iter().flat_map(split_conjunction_owned));
    let (mut outer, own): (Vec<Expr>, Vec<Expr>) = condition.partition(Expr::contains_outer);
    let mut above = Vec::new();
    let is_left_out = |side: &LogicalPlan| if mentions_outer(side) { Err(refused()) } else { Ok(()) };
    match join_type {
        JoinType::Inner => {
            above.append(&mut of_left);
            above.append(&mut of_right);
            above.append(&mut outer);
        }
        JoinType::Left => {
            is_left_out(&right)?;
            above.append(&mut of_left);
            outer.append(&mut of_right);
        }
        JoinType::Right => {
            is_left_out(&left)?;
            above.append(&mut of_right);
            outer.append(&mut of_left);
        }
        JoinType::Full if of_left.is_empty() && of_right.is_empty() => {
            is_left_out(&left)?;
            is_left_out(&right)?;
        }
        _ => return Err(refused().into()),
    }
    let joined = |left: LogicalPlan, right: LogicalPlan, own: Vec<Expr>| {
        LogicalPlanBuilder::from(left).join_on(right, join_type, own)?.build()
    };
    if outer.is_empty() {
        return filtered(joined(left, right, own)?, above);
    }
    let domain = Domain::of(&outer, around)?;
    let condition = own.into_iter().map(Ok).chain(outer.into_iter().map(|part| domain.instead_of_outer(part)));
    let mut condition = condition.collect::<DfResult<Vec<Expr>>>()?;
    let rows = match join_type {
        JoinType::Left => joined(domain.times(left)?, right, condition)?,
        JoinType::Right => joined(left, domain.times(right)?, condition)?,
        _ => {
            // Both sides are kept: the padded rows of either have a value of the domain.
            let other = domain.renamed(around.name)?;
            for (mine, others) in domain.names.iter().zip(&other.names) {
                condition.push(same(Expr::Column(mine.clone()), Expr::Column(others.clone())));
            }
            let rows = joined(domain.times(left)?, other.times(right)?, condition)?;
            return domain.or_other(rows, &other, above);
        }
    };
    above.extend(domain.is_at_hand());
    filtered(rows, above)
}

/// The windows with their conditions over outer columns above them: in a window are the rows for
/// one value of the outer columns.
pub(crate) fn partition(window: Window, around: &mut Surroundings) -> DfResult<LogicalPlan> {
    let Window { input, window_expr, schema } = window;
    let n_before = input.schema().fields().len();
    let mut shown: Vec<Expr> = input.schema().columns().into_iter().map(Expr::Column).collect();
    let (mut input, outer) = without_outer(Arc::unwrap_or_clone(input))?;
    if mentions_outer(&input) || window_expr.iter().any(Expr::contains_outer) {
        return Err(refused_window().into());
    }
    let compared: Option<Vec<Expr>> = outer.iter().map(compared_with_outer).collect();
    let (keys, above) = match compared {
        Some(keys) => (keys, outer),
        None => {
            let domain = Domain::of(&outer, around)?;
            let below = outer.into_iter().map(|part| domain.instead_of_outer(part)).collect::<DfResult<Vec<Expr>>>()?;
            input = filtered(domain.times(input)?, below)?;
            let keys: Vec<Expr> = domain.names.iter().cloned().map(Expr::Column).collect();
            shown.extend(keys.iter().cloned());
            (keys, domain.is_at_hand())
        }
    };
    let calls = window_expr.into_iter().map(|call| {
        let partitioned = call.transform_up(|mut e| {
            if let Expr::WindowFunction(call) = &mut e {
                call.params.partition_by.extend(keys.iter().cloned());
                return Ok(Transformed::yes(e));
            }
            Ok(Transformed::no(e))
        })?;
        Ok(partitioned.data)
    });
    let calls = calls.collect::<DfResult<Vec<Expr>>>()?;
    for (n, call) in calls.iter().enumerate() {
        let value = Column::new_unqualified(call.schema_name().to_string());
        shown.push(Expr::Column(value).alias(schema.field(n_before + n).name()));
    }
    let rows = LogicalPlanBuilder::from(input).window(calls)?.project(shown)?.build()?;
    filtered(rows, above)
}

/// What a condition compares with an outer value by equality, if that is all it does.
fn compared_with_outer(condition: &Expr) -> Option<Expr> {
    let Expr::BinaryExpr(BinaryExpr { left, op: Operator::Eq, right }) = condition else { return None };
    let is_value = |e: &Expr| e.contains_outer() && e.column_refs().is_empty();
    match (left.contains_outer(), right.contains_outer()) {
        (false, true) if is_value(right) => Some(left.as_ref().clone()),
        (true, false) if is_value(left) => Some(right.as_ref().clone()),
        _ => None,
    }
}

/// The values of outer columns.
struct Domain {
    /// The outer columns, as the subquery refers to them.
    outer: Vec<Expr>,
    /// Their names in the domain.
    names: Vec<Column>,
    /// A column that is true.
    present: Column,
    rows: LogicalPlan,
}

impl Domain {
    /// The values of the outer columns in some conditions.
    fn of(conditions: &[Expr], around: &mut Surroundings) -> DfResult<Self> {
        let Some(rows) = around.rows else { return Err(refused().into()) };
        let mut outer: Vec<Expr> = Vec::new();
        for condition in conditions {
            condition.apply(|e| {
                if matches!(e, Expr::OuterReferenceColumn(..)) && !outer.contains(e) {
                    outer.push(e.clone());
                }
                Ok(TreeNodeRecursion::Continue)
            })?;
        }
        let mut new_name = || Column::new_unqualified((around.name)());
        let names: Vec<Column> = outer.iter().map(|_| new_name()).collect();
        let present = new_name();
        let mut columns = Vec::with_capacity(outer.len() + 1);
        for (reference, name) in outer.iter().zip(&names) {
            let Expr::OuterReferenceColumn(_, column) = reference else { continue };
            if !rows.schema().has_column(column) {
                return Err(refused().into());
            }
            columns.push(Expr::Column(column.clone()).alias(&name.name));
        }
        let rows = LogicalPlanBuilder::from(rows.clone()).project(columns)?.distinct()?;
        let rows = with_truth(rows, &names, &present)?;
        Ok(Self { outer, names, present, rows })
    }

    /// The same values under other names.
    fn renamed(&self, name: &mut dyn FnMut() -> String) -> DfResult<Self> {
        let names: Vec<Column> = self.names.iter().map(|_| Column::new_unqualified(name())).collect();
        let present = Column::new_unqualified(name());
        let old = self.names.iter().chain([&self.present]);
        let columns = old.zip(names.iter().chain([&present]));
        let columns: Vec<Expr> = columns.map(|(old, new)| Expr::Column(old.clone()).alias(&new.name)).collect();
        let rows = LogicalPlanBuilder::from(self.rows.clone()).project(columns)?.build()?;
        Ok(Self { outer: self.outer.clone(), names, present, rows })
    }

    /// Each row with each value.
    fn times(&self, rows: LogicalPlan) -> DfResult<LogicalPlan> {
        LogicalPlanBuilder::from(rows).cross_join(self.rows.clone())?.build()
    }

    /// The condition over the domain's columns.
    fn instead_of_outer(&self, condition: Expr) -> DfResult<Expr> {
        let over = condition.transform_up(|e| {
            let at = self.outer.iter().position(|outer| *outer == e);
            Ok(at.map_or(Transformed::no(e), |at| Transformed::yes(Expr::Column(self.names[at].clone()))))
        })?;
        Ok(over.data)
    }

    /// The conditions that the value is that of the outer row.
    fn is_at_hand(&self) -> Vec<Expr> {
        let pairs = self.outer.iter().zip(&self.names);
        pairs.map(|(outer, name)| equal_to_outer(Expr::Column(name.clone()), outer)).collect()
    }

    /// The rows of a full join of both domains where the value of either is that of the outer row.
    fn or_other(&self, rows: LogicalPlan, other: &Domain, mut above: Vec<Expr>) -> DfResult<LogicalPlan> {
        for ((outer, mine), others) in self.outer.iter().zip(&self.names).zip(&other.names) {
            let there = Expr::Column(self.present.clone()).is_true();
            let value = when(there, Expr::Column(mine.clone())).otherwise(Expr::Column(others.clone()))?;
            above.push(same(value, outer.clone()));
        }
        filtered(rows, above)
    }
}

/// Adds a column that is true.
fn with_truth(rows: LogicalPlanBuilder, names: &[Column], present: &Column) -> DfResult<LogicalPlan> {
    let mut columns: Vec<Expr> = names.iter().cloned().map(Expr::Column).collect();
    columns.push(lit(true).alias(&present.name));
    rows.project(columns)?.build()
}

/// Whether both are equal or both are NULL.
fn same(left: Expr, right: Expr) -> Expr {
    Expr::BinaryExpr(BinaryExpr::new(Box::new(left), Operator::IsNotDistinctFrom, Box::new(right)))
}

/// An equality where there is no NULL: of these the planner makes more.
fn equal_to_outer(column: Expr, outer: &Expr) -> Expr {
    match outer {
        Expr::OuterReferenceColumn(field, _) if !field.is_nullable() => column.eq(outer.clone()),
        _ => same(column, outer.clone()),
    }
}

fn refused() -> SqlError {
    SqlError::unsupported(
        "a subquery whose outer join depends on the outer query on a side that it may leave out",
        "Move the condition over outer columns into the ON of that join, or join with the outer table inside the subquery.",
    )
}

fn refused_window() -> SqlError {
    SqlError::unsupported(
        "a window function in a subquery over grouped rows that depend on the outer query",
        "Partition the window by the compared columns in a derived table, and compare them outside of it.",
    )
}
