//! Temporal filters: conditions of standing queries that compare with `now()`.
//!
//! The engine keeps the time of the last commit in a relation of one row, so that
//!
//! ```text
//!     WHERE ts >= now() - INTERVAL '1 day'
//! =   WHERE ts >= (SELECT max(watermark) - INTERVAL '1 day' FROM the clock)
//! ```
//!
//! which is a comparison of rows with one changing value: a tick of the clock costs the rows that
//! come or go with it.
//!
//! Law: the rows at a time `t` are those of the query at `t` with `now() = t`.
//!
//! `now()` stands in the conditions of WHERE, HAVING and the ON of inner joins, one side of a
//! comparison, without columns beside it. `now() - ts < i` becomes `ts > now() - i` where `i` has
//! no months (which are longer or shorter by where they begin). Everything else is refused
//! (decision 0090).

use std::sync::Arc;

use datafusion_common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion_common::{Column, Result as DfResult, ScalarValue, Spans};
use datafusion_expr::logical_plan::{Filter, Join, LogicalPlan, LogicalPlanBuilder, Subquery};
use datafusion_expr::utils::{conjunction, split_conjunction_owned};
use datafusion_expr::{BinaryExpr, Expr, JoinType, Operator, TableSource, cast};

use arrow::datatypes::DataType;

use crate::error::SqlError;
use crate::functions::aggregates;

/// The only column of the relation that holds the clock.
const CLOCK_COLUMN: &str = "watermark";

/// The relation that holds the time of the last commit.
pub(crate) struct ClockRelation {
    pub(crate) name: String,
    pub(crate) source: Arc<dyn TableSource>,
}

/// Whether a plan asks for the present anywhere.
pub(crate) fn asks_for_now(plan: &LogicalPlan) -> DfResult<bool> {
    let mut found = false;
    plan.apply_with_subqueries(|node| {
        node.apply_expressions(|expr| {
            found |= has_now(expr);
            Ok(TreeNodeRecursion::Continue)
        })
    })?;
    Ok(found)
}

/// The plan with the clock's relation in place of `now()` in its conditions.
///
/// # Errors
/// `Unsupported` for conditions that are no comparison with the clock.
pub(crate) fn follow(plan: LogicalPlan, clock: &ClockRelation) -> DfResult<LogicalPlan> {
    let followed = plan.transform_down_with_subqueries(|node| match node {
        LogicalPlan::Filter(filter) if has_now(&filter.predicate) => {
            let predicate = clock.conditions(filter.predicate)?;
            Ok(Transformed::yes(LogicalPlan::Filter(Filter::try_new(predicate, filter.input)?)))
        }
        LogicalPlan::Join(join) if join.filter.as_ref().is_some_and(has_now) => {
            Ok(Transformed::yes(above_join(join, clock)?))
        }
        node => Ok(Transformed::no(node)),
    })?;
    Ok(followed.data)
}

/// The join with its conditions on the clock in a filter above.
fn above_join(mut join: Join, clock: &ClockRelation) -> DfResult<LogicalPlan> {
    if join.join_type != JoinType::Inner {
        return Err(SqlError::unsupported(
            "now() in the ON of an outer join of a view",
            "Join with a derived table that compares in its WHERE: \
             LEFT JOIN (SELECT * FROM u WHERE ts >= now() - INTERVAL '1 day') AS u ON ..",
        )
        .into());
    }
    let parts = join.filter.take().map(split_conjunction_owned).unwrap_or_default();
    let (with_now, others): (Vec<Expr>, Vec<Expr>) = parts.into_iter().partition(has_now);
    join.filter = conjunction(others);
    let joined = Arc::new(LogicalPlan::Join(join));
    match conjunction(with_now) {
        Some(predicate) => Ok(LogicalPlan::Filter(Filter::try_new(clock.conditions(predicate)?, joined)?)),
        None => Ok(Arc::unwrap_or_clone(joined)),
    }
}

impl ClockRelation {
    fn conditions(&self, predicate: Expr) -> DfResult<Expr> {
        let mut all = Vec::new();
        for part in split_conjunction_owned(predicate) {
            match has_now(&part) {
                true => self.condition(part, &mut all)?,
                false => all.push(part),
            }
        }
        Ok(conjunction(all).unwrap_or_else(|| Expr::Literal(ScalarValue::Boolean(Some(true)), None)))
    }

    /// A condition with `now()`, as comparisons with the clock's row.
    fn condition(&self, expr: Expr, all: &mut Vec<Expr>) -> DfResult<()> {
        match expr {
            Expr::Alias(alias) => self.condition(*alias.expr, all),
            Expr::Not(inner) => match negated(*inner) {
                Some(conditions) => conditions.into_iter().try_for_each(|part| self.either(part, all)),
                None => Err(refused()),
            },
            Expr::Between(between) if !between.negated => {
                let value = between.expr;
                self.either(comparison(value.as_ref().clone(), Operator::GtEq, *between.low), all)?;
                self.either(comparison(*value, Operator::LtEq, *between.high), all)
            }
            Expr::BinaryExpr(BinaryExpr { left, op: Operator::And, right }) => {
                self.either(*left, all)?;
                self.either(*right, all)
            }
            Expr::BinaryExpr(BinaryExpr { left, op: Operator::Eq, right }) => {
                self.compared(left.as_ref().clone(), Operator::GtEq, right.as_ref().clone(), all)?;
                self.compared(*left, Operator::LtEq, *right, all)
            }
            Expr::BinaryExpr(BinaryExpr { left, op, right }) if is_order(op) => self.compared(*left, op, *right, all),
            _ => Err(refused()),
        }
    }

    fn either(&self, part: Expr, all: &mut Vec<Expr>) -> DfResult<()> {
        if has_now(&part) {
            return self.condition(part, all);
        }
        all.push(part);
        Ok(())
    }

    fn compared(&self, left: Expr, op: Operator, right: Expr, all: &mut Vec<Expr>) -> DfResult<()> {
        let turned = op.swap().ok_or_else(refused)?;
        let (value, op, now) = match (has_now(&left), has_now(&right)) {
            (false, true) => (left, op, right),
            (true, false) => (right, turned, left),
            _ => return Err(refused()),
        };
        let (value, op, now) =
            if has_columns(&now) { apart(value, op, now).ok_or_else(refused)? } else { (value, op, now) };
        all.push(comparison(value, op, self.of_clock(now)?));
        Ok(())
    }

    /// An expression of `now()` alone, as a scalar subquery over the clock's row.
    fn of_clock(&self, expr: Expr) -> DfResult<Expr> {
        let table = self.name.as_str();
        let column = Expr::Column(Column::new(Some(datafusion_common::TableReference::bare(table)), CLOCK_COLUMN));
        let scan = LogicalPlanBuilder::scan(datafusion_common::TableReference::bare(table), self.source.clone(), None)?;
        let latest =
            scan.aggregate(Vec::<Expr>::new(), vec![aggregates::max().call(vec![column]).alias(CLOCK_COLUMN)])?;
        let present = Expr::Column(Column::new_unqualified(CLOCK_COLUMN));
        let expr = expr.transform_up(|e| {
            Ok(match &e {
                Expr::ScalarFunction(call) if call.name() == "now" => Transformed::yes(present.clone()),
                Expr::ScalarFunction(call) if call.name() == "current_date" => {
                    Transformed::yes(cast(present.clone(), DataType::Date32))
                }
                _ => Transformed::no(e),
            })
        })?;
        let plan = latest.project(vec![expr.data.alias("now")])?.build()?;
        let subquery = Subquery { subquery: Arc::new(plan), outer_ref_columns: vec![], spans: Spans::new() };
        Ok(Expr::ScalarSubquery(subquery))
    }
}

/// `now() - e < i` as `e > now() - i`, where `i` is a span of days and hours.
fn apart(value: Expr, op: Operator, now: Expr) -> Option<(Expr, Operator, Expr)> {
    let is_fixed =
        matches!(&value, Expr::Literal(ScalarValue::IntervalMonthDayNano(Some(span)), _) if span.months == 0);
    let Expr::BinaryExpr(BinaryExpr { left: present, op: Operator::Minus, right: moment }) = uncast(now) else {
        return None;
    };
    let is_apart = is_fixed && has_now(&present) && !has_columns(&present) && !has_now(&moment);
    let earlier = Expr::BinaryExpr(BinaryExpr::new(present, Operator::Minus, Box::new(value)));
    // (`i > now() - e` is `e > now() - i`.)
    is_apart.then_some((*moment, op, earlier))
}

/// An expression without the cast that a difference of moments has.
fn uncast(expr: Expr) -> Expr {
    match expr {
        Expr::Cast(cast) => *cast.expr,
        other => other,
    }
}

/// The parts of a condition that all hold where an expression does not.
fn negated(expr: Expr) -> Option<Vec<Expr>> {
    match expr {
        Expr::Not(inner) => Some(vec![*inner]),
        Expr::BinaryExpr(BinaryExpr { left, op: Operator::Or, right }) => Some(vec![Expr::Not(left), Expr::Not(right)]),
        Expr::BinaryExpr(BinaryExpr { left, op, right }) if is_order(op) => {
            Some(vec![Expr::BinaryExpr(BinaryExpr::new(left, op.negate()?, right))])
        }
        Expr::Between(between) if between.negated => {
            let value = between.expr;
            let low = comparison(value.as_ref().clone(), Operator::GtEq, *between.low);
            Some(vec![low, comparison(*value, Operator::LtEq, *between.high)])
        }
        _ => None,
    }
}

fn comparison(left: Expr, op: Operator, right: Expr) -> Expr {
    Expr::BinaryExpr(BinaryExpr::new(Box::new(left), op, Box::new(right)))
}

fn is_order(op: Operator) -> bool {
    matches!(op, Operator::Lt | Operator::LtEq | Operator::Gt | Operator::GtEq)
}

fn has_now(expr: &Expr) -> bool {
    let is_now = |e: &Expr| matches!(e, Expr::ScalarFunction(call) if matches!(call.name(), "now" | "current_date"));
    expr.exists(|e| Ok(is_now(e))).unwrap_or(false)
}

fn has_columns(expr: &Expr) -> bool {
    let is_column = |e: &Expr| {
        matches!(e, Expr::Column(_) | Expr::OuterReferenceColumn(..) | Expr::ScalarSubquery(_) | Expr::Exists(_))
    };
    expr.exists(|e| Ok(is_column(e))).unwrap_or(false)
}

fn refused() -> datafusion_common::DataFusionError {
    SqlError::unsupported(
        "this condition with now() in a view",
        "Compare a value of the row with now(), joined to other conditions by AND: \
         ts >= now() - INTERVAL '1 day'. Write OR as a UNION ALL of queries that exclude each other.",
    )
    .into()
}
