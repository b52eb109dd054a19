//! Scalar subqueries that refer to outer columns otherwise than by equality.
//!
//! DataFusion leaves these where they are. The classical way out: take the distinct values of the
//! outer columns (the *domain*), join the subquery's rows to them, aggregate for each, and join the
//! results back.
//!
//! ```text
//! P where P.x > (select min(v) from Q where Q.k < P.y)
//! = P join (select d.y, min(v) from (select distinct y from P) d left join Q on Q.k < d.y group by d.y) s
//!     on P.y is not distinct from s.y   where P.x > s.min
//! ```
//!
//! Source: Neumann and Kemper, *Unnesting Arbitrary Queries*, BTW 2015, section 3.

use std::sync::Arc;

use datafusion_common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion_common::{Column, JoinType, NullEquality, Result as DfResult};
use datafusion_expr::expr::AggregateFunction;
use datafusion_expr::expr_rewriter::NamePreserver;
use datafusion_expr::logical_plan::{Aggregate, Filter, LogicalPlan, LogicalPlanBuilder, Projection, Subquery};
use datafusion_expr::utils::split_conjunction;
use datafusion_expr::{BinaryExpr, Expr, Operator, lit};

use crate::passes::plan::unnest::guards::{answered, asking};

/// The column that is true for rows of the subquery and null for a domain value without any.
const PRESENT: &str = "__present";

/// Replaces such subqueries in filters and select lists.
pub(crate) fn replace(plan: LogicalPlan) -> DfResult<LogicalPlan> {
    let mut n_replaced = 0;
    Ok(plan
        .transform_up_with_subqueries(|node| {
            if !matches!(node, LogicalPlan::Filter(_) | LogicalPlan::Projection(_)) {
                return Ok(Transformed::no(node));
            }
            replace_in(node, &mut n_replaced)
        })?
        .data)
}

fn replace_in(node: LogicalPlan, n_replaced: &mut usize) -> DfResult<Transformed<LogicalPlan>> {
    let mut input = node.inputs()[0].clone();
    let visible: Vec<Expr> = input.schema().columns().into_iter().map(Expr::Column).collect();
    let before = *n_replaced;
    let names = NamePreserver::new(&node);
    let mut exprs = Vec::new();
    for expr in node.expressions() {
        let name = names.save(&expr);
        let replaced = answered(expr, &[], &mut |part, conditions| {
            let Expr::ScalarSubquery(subquery) = &part else { return Ok(part) };
            let Some(parts) = parts(subquery, &input) else { return Ok(part) };
            let (joined, value) = parts.join_to(&input, conditions, *n_replaced)?;
            *n_replaced += 1;
            input = joined;
            Ok(value)
        })?;
        exprs.push(name.restore(replaced));
    }
    if *n_replaced == before {
        return Ok(Transformed::no(node));
    }
    match node {
        LogicalPlan::Filter(_) => {
            let Some(predicate) = exprs.pop() else {
                return Ok(Transformed::no(node));
            };
            let filter = LogicalPlan::Filter(Filter::try_new(predicate, Arc::new(input))?);
            Ok(Transformed::yes(LogicalPlanBuilder::from(filter).project(visible)?.build()?))
        }
        _ => Ok(Transformed::yes(LogicalPlan::Projection(Projection::try_new(exprs, Arc::new(input))?))),
    }
}

/// `select value from (select aggregates from source where conditions)`, where conditions name
/// outer columns.
struct Parts {
    value: Expr,
    aggregates: Vec<Expr>,
    conditions: Vec<Expr>,
    source: Arc<LogicalPlan>,
    outer: Vec<Column>,
}

/// The parts of a subquery of this shape, if it needs help and its outer columns are all of
/// `input`.
fn parts(subquery: &Subquery, input: &LogicalPlan) -> Option<Parts> {
    let LogicalPlan::Projection(projection) = subquery.subquery.as_ref() else {
        return None;
    };
    let LogicalPlan::Aggregate(Aggregate { input: below, group_expr, aggr_expr, .. }) = projection.input.as_ref()
    else {
        return None;
    };
    let LogicalPlan::Filter(Filter { predicate, input: source, .. }) = below.as_ref() else {
        return None;
    };
    let conditions: Vec<Expr> = split_conjunction(predicate).into_iter().cloned().collect();
    let mut outer: Vec<Column> = Vec::new();
    conditions.iter().for_each(|condition| collect_outer(condition, &mut outer));
    let plain = group_expr.is_empty() && projection.expr.len() == 1 && !mentions_outer(source);
    let inside = aggr_expr.iter().chain(&projection.expr).all(|e| !e.contains_outer());
    let known = outer.iter().all(|column| input.schema().has_column(column));
    let easy = conditions.iter().all(|c| !c.contains_outer() || is_equality(c));
    if !plain || !inside || !known || easy || outer.is_empty() {
        return None;
    }
    Some(Parts {
        value: projection.expr[0].clone(),
        aggregates: aggr_expr.clone(),
        conditions,
        source: source.clone(),
        outer,
    })
}

fn is_equality(condition: &Expr) -> bool {
    let Expr::BinaryExpr(BinaryExpr { left, op: Operator::Eq, right }) = condition else {
        return false;
    };
    left.contains_outer() != right.contains_outer()
}

fn collect_outer(expr: &Expr, outer: &mut Vec<Column>) {
    let walked = expr.apply(|e| {
        if let Expr::OuterReferenceColumn(_, column) = e
            && !outer.contains(column)
        {
            outer.push(column.clone());
        }
        Ok(TreeNodeRecursion::Continue)
    });
    debug_assert!(walked.is_ok(), "the closure does not fail");
}

/// Whether a plan names columns from outside of it.
pub(crate) fn mentions_outer(plan: &LogicalPlan) -> bool {
    plan.exists(|node| Ok(node.expressions().iter().any(Expr::contains_outer))).unwrap_or(true)
}

impl Parts {
    /// The input with the subquery's value appended, and the name of that value. Rows for which the
    /// conditions are true ask for it.
    fn join_to(self, input: &LogicalPlan, conditions: &[Expr], n: usize) -> DfResult<(LogicalPlan, Expr)> {
        let domain = format!("__domain_{n}");
        let result = format!("__scalar_{n}");
        let keys: Vec<String> = (0..self.outer.len()).map(|k| format!("__outer_{k}")).collect();
        let key = |table: &str, k: usize| Column::new(Some(table.to_string()), keys[k].clone());

        let columns = self.outer.iter().zip(&keys).map(|(column, name)| Expr::Column(column.clone()).alias(name));
        let domain_plan = LogicalPlanBuilder::from(asking(input, conditions)?)
            .project(columns.collect::<Vec<_>>())?
            .distinct()?
            .alias(domain.as_str())?
            .build()?;

        let mut source_columns: Vec<Expr> = self.source.schema().columns().into_iter().map(Expr::Column).collect();
        source_columns.push(lit(true).alias(PRESENT));
        let source = LogicalPlanBuilder::from(Arc::unwrap_or_clone(self.source)).project(source_columns)?.build()?;
        let conditions = self
            .conditions
            .into_iter()
            .map(|condition| {
                let inner = condition.transform_up(|e| match &e {
                    Expr::OuterReferenceColumn(_, column) => {
                        let at = self.outer.iter().position(|c| c == column);
                        Ok(at.map_or(Transformed::no(e), |k| Transformed::yes(Expr::Column(key(&domain, k)))))
                    }
                    _ => Ok(Transformed::no(e)),
                })?;
                Ok(inner.data)
            })
            .collect::<DfResult<Vec<_>>>()?;

        let names: Vec<String> = self.aggregates.iter().map(|e| e.schema_name().to_string()).collect();
        let aggregates = self
            .aggregates
            .into_iter()
            .zip(names)
            .map(|(e, name)| Ok(only_present(e)?.alias(name)))
            .collect::<DfResult<Vec<_>>>()?;
        let group: Vec<Expr> = (0..keys.len()).map(|k| Expr::Column(key(&domain, k))).collect();
        let mut shown = group.clone();
        shown.push(self.value.unalias().alias("__value"));
        let results = LogicalPlanBuilder::from(domain_plan)
            .join_on(source, JoinType::Left, conditions)?
            .aggregate(group, aggregates)?
            .project(shown)?
            .alias(result.as_str())?
            .build()?;

        let result_keys: Vec<Column> = (0..keys.len()).map(|k| key(&result, k)).collect();
        let joined = LogicalPlanBuilder::from(input.clone())
            .join_detailed(results, JoinType::Left, (self.outer, result_keys), None, NullEquality::NullEqualsNull)?
            .build()?;
        Ok((joined, Expr::Column(Column::new(Some(result), "__value"))))
    }
}

/// The aggregate over rows of the subquery only: a domain value without any has one row, whose
/// columns are null, in its place.
pub(crate) fn only_present(aggregate: Expr) -> DfResult<Expr> {
    let rewritten = aggregate.transform_up(|e| match e {
        Expr::AggregateFunction(AggregateFunction { func, mut params }) => {
            let skips_null = func.name() != "array_agg";
            let is_null = matches!(params.args.first(), Some(Expr::Column(_)));
            if !(skips_null && is_null) {
                let present = Expr::Column(Column::from_name(PRESENT));
                let filter = params.filter.take().map_or(present.clone(), |filter| present.and(*filter));
                params.filter = Some(Box::new(filter));
            }
            Ok(Transformed::yes(Expr::AggregateFunction(AggregateFunction { func, params })))
        }
        other => Ok(Transformed::no(other)),
    })?;
    Ok(rewritten.data)
}
