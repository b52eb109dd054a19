//! Tests of subqueries, in the forms that DataFusion decorrelates rightly; refused where it has
//! none.
//!
//! - `EXISTS` of an aggregate without groups is true: that is one row. With HAVING it is the
//!   condition over that row.
//! - A correlated `EXISTS` shows no columns; its ORDER BY, DISTINCT and LIMIT do not matter.
//! - A correlated `x NOT IN (query)` is `NOT EXISTS (.. WHERE (x = y) IS NOT FALSE)`: no row is
//!   equal, and none might be.
//! - Subqueries to the left of `IN`, `ANY` and `ALL` become columns of the rows tested.
//! - Subqueries in the ON of a join become filters: over an inner join, or on the side that an
//!   outer join may leave out.
//! - Conditions over outer columns move out of derived tables, in `hoist`, and above joins and
//!   windows, in `outer_joins`.
//! - Columns that a subquery is correlated by get names of their own where others are named alike.
//!
//! Law: a rewritten plan means what the plan did, or planning fails.
//!
//! Source: DataFusion pulls correlated conditions up into the join condition, by the names of their
//! columns; what it may not pull them through is in Neumann and Kemper, *Unnesting Arbitrary
//! Queries*, BTW 2015.

use std::sync::Arc;

use datafusion_common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion_common::{Column, DFSchema, ExprSchema, JoinType, Result as DfResult};
use datafusion_expr::expr::{Exists, InSubquery, SetComparison};
use datafusion_expr::expr_rewriter::NamePreserver;
use datafusion_expr::logical_plan::{
    Aggregate, Distinct, FetchType, Filter, Join, Limit, LogicalPlan, LogicalPlanBuilder, Projection, SkipType,
    Subquery,
};
use datafusion_expr::utils::{conjunction, merge_schema, split_conjunction, split_conjunction_owned};
use datafusion_expr::{Expr, lit};

use crate::error::SqlError;
use crate::passes::plan::decorrelate::mentions_outer;
use crate::passes::plan::outer_conditions::out_of_derived;
use crate::passes::plan::outer_joins::Surroundings;
use crate::passes::plan::unnest::{columns_within, has_subquery, subquery_of};

/// Rewrites the subqueries of a plan, inner ones first.
pub(crate) fn settle(plan: LogicalPlan) -> DfResult<LogicalPlan> {
    let mut names = Names(0);
    let settled = plan.transform_up_with_subqueries(|node| {
        let mut any = false;
        node.apply_expressions(|expr| {
            any |= has_subquery(expr);
            Ok(TreeNodeRecursion::Continue)
        })?;
        Ok(if any { Transformed::yes(settle_node(node, &mut names)?) } else { Transformed::no(node) })
    })?;
    Ok(settled.data)
}

/// Names that no user writes.
struct Names(usize);

impl Names {
    fn next(&mut self) -> Column {
        self.0 += 1;
        Column::new_unqualified(format!("__correlated_{}", self.0))
    }
}

fn settle_node(node: LogicalPlan, names: &mut Names) -> DfResult<LogicalPlan> {
    match node {
        LogicalPlan::Join(join) => settle_join(join, names),
        LogicalPlan::Filter(filter) => settle_filter(filter, names),
        other => {
            let schema = merge_schema(&other.inputs());
            let rows = match other.inputs().as_slice() {
                [input] => Some((*input).clone()),
                _ => None,
            };
            let preserver = NamePreserver::new(&other);
            let settled = other.map_expressions(|expr| {
                let name = preserver.save(&expr);
                Ok(Transformed::yes(name.restore(settle_expr(expr, &schema, rows.as_ref(), names)?)))
            })?;
            settled.data.recompute_schema()
        }
    }
}

/// A join whose condition has no subqueries.
fn settle_join(mut join: Join, names: &mut Names) -> DfResult<LogicalPlan> {
    let condition = join.filter.take().map(split_conjunction_owned).unwrap_or_default();
    let (tests, rest): (Vec<Expr>, Vec<Expr>) = condition.into_iter().partition(has_subquery);
    join.filter = conjunction(rest);
    let Some(test) = conjunction(tests.clone()) else { return Ok(LogicalPlan::Join(join)) };
    let side = match join.join_type {
        JoinType::Inner => return settle_filter(Filter::try_new(test, Arc::new(LogicalPlan::Join(join)))?, names),
        JoinType::Left => &mut join.right,
        JoinType::Right => &mut join.left,
        _ => return Err(refused_in_on().into()),
    };
    if !tests.iter().all(|test| is_over(test, side.schema())) {
        return Err(refused_in_on().into());
    }
    *side = Arc::new(settle_filter(Filter::try_new(test, side.clone())?, names)?);
    Ok(LogicalPlan::Join(join))
}

fn refused_in_on() -> SqlError {
    SqlError::unsupported(
        "a subquery in the ON of an outer join, over columns of both sides",
        "Write a LATERAL subquery that has the condition in its WHERE, and join with that ON true.",
    )
}

/// Whether all columns of a test, and of its subqueries from outside of them, are of that schema.
pub(crate) fn is_over(test: &Expr, schema: &DFSchema) -> bool {
    let mut columns = Vec::new();
    let is_known = columns_within(test, &mut columns).is_ok();
    is_known && !test.contains_outer() && columns.iter().all(|column| schema.has_column(column))
}

fn settle_filter(filter: Filter, names: &mut Names) -> DfResult<LogicalPlan> {
    let visible: Vec<Expr> = filter.input.schema().columns().into_iter().map(Expr::Column).collect();
    let mut computed: Vec<(Expr, Column)> = Vec::new();
    let mut input = Arc::unwrap_or_clone(filter.input);
    let parts = split_conjunction_owned(filter.predicate)
        .into_iter()
        .map(|part| name_operands(part, &mut computed, names))
        .collect::<DfResult<Vec<_>>>()?;
    let is_widened = !computed.is_empty();
    if is_widened {
        let mut columns = visible.clone();
        for (operand, name) in computed {
            columns.push(settle_expr(operand, input.schema(), Some(&input), names)?.alias(&name.name));
        }
        input = LogicalPlanBuilder::from(input).project(columns)?.build()?;
    }
    let parts = parts
        .into_iter()
        .map(|part| settle_expr(absent(part, input.schema())?, input.schema(), Some(&input), names))
        .collect::<DfResult<Vec<_>>>()?;
    let predicate = conjunction(parts).unwrap_or_else(|| lit(true));
    let settled = LogicalPlan::Filter(Filter::try_new(predicate, Arc::new(input))?);
    match is_widened {
        true => LogicalPlanBuilder::from(settled).project(visible)?.build(),
        false => Ok(settled),
    }
}

/// Replaces what stands left of `IN`, `ANY` and `ALL` by a column, where it has a subquery.
fn name_operands(part: Expr, computed: &mut Vec<(Expr, Column)>, names: &mut Names) -> DfResult<Expr> {
    let named = part.transform_up(|mut e| {
        let operand = match &mut e {
            Expr::InSubquery(InSubquery { expr, .. }) | Expr::SetComparison(SetComparison { expr, .. }) => expr,
            _ => return Ok(Transformed::no(e)),
        };
        if !has_subquery(operand) {
            return Ok(Transformed::no(e));
        }
        let name = names.next();
        computed.push((std::mem::replace(operand.as_mut(), Expr::Column(name.clone())), name));
        Ok(Transformed::yes(e))
    })?;
    Ok(named.data)
}

/// `x NOT IN (query)` where `x` has turned out to be a constant, as an EXISTS.
pub(crate) fn constants_absent(plan: LogicalPlan) -> DfResult<LogicalPlan> {
    let is_constant = |part: &Expr| match part {
        Expr::InSubquery(InSubquery { expr, negated: true, .. }) => expr.column_refs().is_empty(),
        _ => false,
    };
    match plan {
        LogicalPlan::Filter(filter) if split_conjunction(&filter.predicate).into_iter().any(is_constant) => {
            let Filter { predicate, input, .. } = filter;
            let parts = split_conjunction_owned(predicate).into_iter();
            let parts = parts.map(|part| if is_constant(&part) { absent(part, input.schema()) } else { Ok(part) });
            let predicate = conjunction(parts.collect::<DfResult<Vec<Expr>>>()?).unwrap_or_else(|| lit(true));
            Ok(LogicalPlan::Filter(Filter::try_new(predicate, input)?))
        }
        other => Ok(other),
    }
}

/// `x NOT IN (query)` as a condition of its own, as an EXISTS where DataFusion's antijoin would not
/// do: where the query has outer columns, or `x` no columns.
fn absent(part: Expr, schema: &DFSchema) -> DfResult<Expr> {
    let Expr::InSubquery(InSubquery { expr, subquery, negated: true }) = part else {
        return Ok(part);
    };
    if subquery.outer_ref_columns.is_empty() && !expr.column_refs().is_empty() {
        return Ok(Expr::InSubquery(InSubquery { expr, subquery, negated: true }));
    }
    if expr.contains_outer() {
        return Err(refused_levels().into());
    }
    let mut outer = subquery.outer_ref_columns.clone();
    let tested = expr.transform_up(|e| match &e {
        Expr::Column(column) => {
            let reference = Expr::OuterReferenceColumn(schema.field_from_column(column)?.clone(), column.clone());
            outer.push(reference.clone());
            Ok(Transformed::yes(reference))
        }
        _ => Ok(Transformed::no(e)),
    })?;
    let mut rows = subquery.subquery.as_ref();
    while let LogicalPlan::Distinct(Distinct::All(input)) = rows {
        rows = input;
    }
    let (value, rows) = match rows {
        LogicalPlan::Projection(Projection { expr, input, .. }) if expr.len() == 1 => {
            (expr[0].clone().unalias(), input.as_ref())
        }
        other => (Expr::Column(Column::from(other.schema().qualified_field(0))), other),
    };
    if limits_outer(rows)? {
        return Err(refused_limit().into());
    }
    let equal = tested.data.eq(value).is_not_false();
    // One filter: of two, one above the other, DataFusion would forget the columns of the lower
    // one.
    let rows = match rows {
        LogicalPlan::Filter(filter) => Filter::try_new(filter.predicate.clone().and(equal), filter.input.clone())?,
        other => Filter::try_new(equal, Arc::new(other.clone()))?,
    };
    let rows = LogicalPlanBuilder::from(LogicalPlan::Filter(rows)).project(vec![lit(1_i64)])?.build()?;
    let subquery = Subquery { subquery: Arc::new(rows), outer_ref_columns: outer, spans: subquery.spans };
    Ok(Expr::Exists(Exists { subquery, negated: true }))
}

/// Settles the subqueries of an expression over that schema, and those rows if there is one input.
fn settle_expr(expr: Expr, schema: &DFSchema, rows: Option<&LogicalPlan>, names: &mut Names) -> DfResult<Expr> {
    let settled = expr.transform_up(|e| {
        let Some(subquery) = subquery_of(&e) else { return Ok(Transformed::no(e)) };
        let from_here = |outer: &Expr| match outer {
            Expr::OuterReferenceColumn(_, column) => schema.has_column(column),
            _ => true,
        };
        if !subquery.outer_ref_columns.iter().all(from_here) {
            return Err(refused_levels().into());
        }
        let is_correlated = !subquery.outer_ref_columns.is_empty();
        match e {
            Expr::Exists(Exists { subquery, negated }) => {
                Ok(Transformed::yes(settle_exists(subquery, negated, rows, names)?))
            }
            Expr::InSubquery(mut test) if is_correlated => {
                check_rows(&test.subquery.subquery)?;
                test.subquery = named(name_value(test.subquery, names)?, rows, names)?;
                Ok(Transformed::yes(Expr::InSubquery(test)))
            }
            Expr::SetComparison(mut test) if is_correlated => {
                check_rows(&test.subquery.subquery)?;
                test.subquery = named(name_value(test.subquery, names)?, rows, names)?;
                Ok(Transformed::yes(Expr::SetComparison(test)))
            }
            Expr::ScalarSubquery(subquery) if is_correlated => {
                Ok(Transformed::yes(Expr::ScalarSubquery(named(subquery, rows, names)?)))
            }
            other => Ok(Transformed::no(other)),
        }
    })?;
    Ok(settled.data)
}

fn settle_exists(subquery: Subquery, negated: bool, around: Option<&LogicalPlan>, names: &mut Names) -> DfResult<Expr> {
    let Some(rows) = rows_of(&subquery.subquery)? else { return Ok(lit(negated)) };
    if is_total(rows) {
        return Ok(lit(!negated));
    }
    if let LogicalPlan::Filter(having) = rows
        && rows_of(&having.input)?.is_some_and(is_total)
        && !having.predicate.contains_outer()
    {
        let test = LogicalPlanBuilder::from(having.input.clone()).project(vec![having.predicate.clone()])?.build()?;
        let test = named(Subquery { subquery: Arc::new(test), ..subquery }, around, names)?;
        let test = Expr::ScalarSubquery(test);
        return Ok(if negated { test.is_not_true() } else { test.is_true() });
    }
    if subquery.outer_ref_columns.is_empty() {
        return Ok(Expr::Exists(Exists { subquery, negated }));
    }
    check_rows(rows)?;
    let rows = LogicalPlanBuilder::from(rows.clone()).project(vec![lit(1_i64)])?.build()?;
    let subquery = named(Subquery { subquery: Arc::new(rows), ..subquery }, around, names)?;
    Ok(Expr::Exists(Exists { subquery, negated }))
}

/// The part of a query that says whether it has rows; `None` if it never has.
fn rows_of(plan: &LogicalPlan) -> DfResult<Option<&LogicalPlan>> {
    let mut plan = plan;
    loop {
        plan = match plan {
            LogicalPlan::Projection(projection) => &projection.input,
            LogicalPlan::SubqueryAlias(alias) => &alias.input,
            LogicalPlan::Distinct(Distinct::All(input)) => input,
            LogicalPlan::Sort(sort) if sort.fetch.is_none() => &sort.input,
            LogicalPlan::Limit(limit) => match (limit.get_skip_type()?, limit.get_fetch_type()?) {
                (_, FetchType::Literal(Some(0))) => return Ok(None),
                (SkipType::Literal(0), FetchType::Literal(_)) => &limit.input,
                _ => return Ok(Some(plan)),
            },
            _ => return Ok(Some(plan)),
        };
    }
}

/// Whether a plan is an aggregate without groups.
fn is_total(plan: &LogicalPlan) -> bool {
    matches!(plan, LogicalPlan::Aggregate(Aggregate { group_expr, .. }) if group_expr.is_empty())
}

/// Refuses correlated rows below an aggregate without groups, which has a row for none, and below a
/// limit.
fn check_rows(plan: &LogicalPlan) -> DfResult<()> {
    if plan.exists(|node| Ok(is_total(node) && mentions_outer(node)))? {
        return Err(SqlError::unsupported(
            "EXISTS, IN, ANY or ALL over an aggregate of rows that depend on the outer query",
            "Compare with the aggregate itself, as in x = (SELECT max(y) FROM t WHERE ..).",
        )
        .into());
    }
    if limits_outer(plan)? {
        return Err(refused_limit().into());
    }
    Ok(())
}

fn limits_outer(plan: &LogicalPlan) -> DfResult<bool> {
    plan.exists(|node| Ok(matches!(node, LogicalPlan::Limit(Limit { .. })) && mentions_outer(node)))
}

fn refused_limit() -> SqlError {
    SqlError::unsupported(
        "EXISTS, IN, ANY or ALL over a LIMIT or OFFSET of rows that depend on the outer query",
        "Number the rows with row_number() in a derived table, and compare the number.",
    )
}

fn refused_levels() -> SqlError {
    SqlError::unsupported(
        "a subquery with columns from further out than the query it stands in",
        "Join with the table of these columns inside the subquery. Beside GROUP BY, only the columns it lists are in reach.",
    )
}

/// The subquery with names of their own for the columns it is correlated by, where others are named
/// alike.
fn named(subquery: Subquery, rows: Option<&LogicalPlan>, names: &mut Names) -> DfResult<Subquery> {
    let plan = Arc::unwrap_or_clone(subquery.subquery);
    let plan = out_of_derived(plan, &mut Surroundings { rows, name: &mut || names.next().name })?;
    let plan = name_columns(plan, &mut Vec::new(), names)?;
    Ok(Subquery { subquery: Arc::new(plan), ..subquery })
}

/// The subquery whose value, where it is computed, has a name of its own: DataFusion gives casts
/// the name of what they cast.
fn name_value(subquery: Subquery, names: &mut Names) -> DfResult<Subquery> {
    let LogicalPlan::Projection(Projection { expr, input, .. }) = subquery.subquery.as_ref() else {
        return Ok(subquery);
    };
    let [value] = expr.as_slice() else { return Ok(subquery) };
    if matches!(value, Expr::Column(_)) {
        return Ok(subquery);
    }
    let value = value.clone().unalias().alias(names.next().name);
    let plan = LogicalPlan::Projection(Projection::try_new(vec![value], input.clone())?);
    Ok(Subquery { subquery: Arc::new(plan), ..subquery })
}

/// `above` has the columns of the nodes from the subquery's root.
fn name_columns(plan: LogicalPlan, above: &mut Vec<Column>, names: &mut Names) -> DfResult<LogicalPlan> {
    if !mentions_outer(&plan) {
        return Ok(plan);
    }
    let (n_above, n_named) = (above.len(), names.0);
    above.extend(plan.schema().columns());
    let plan = match plan {
        LogicalPlan::Filter(filter) => name_in_filter(filter, above, names)?,
        other => other,
    };
    let plan = plan.map_children(|child| Ok(Transformed::yes(name_columns(child, above, names)?)))?.data;
    above.truncate(n_above);
    if names.0 == n_named { Ok(plan) } else { plan.recompute_schema() }
}

fn name_in_filter(filter: Filter, above: &[Column], names: &mut Names) -> DfResult<LogicalPlan> {
    let parts = split_conjunction_owned(filter.predicate);
    let mut given: Vec<(Column, Column)> = Vec::new();
    for part in parts.iter().filter(|part| part.contains_outer()) {
        let mut columns: Vec<&Column> = part.column_refs().into_iter().collect();
        columns.sort_unstable();
        for column in columns {
            let shared = above.iter().any(|other| other.name == column.name && other != column);
            if shared && !given.iter().any(|(known, _)| known == column) {
                given.push((column.clone(), names.next()));
            }
        }
    }
    if given.is_empty() {
        let predicate = conjunction(parts).unwrap_or_else(|| lit(true));
        return Ok(LogicalPlan::Filter(Filter::try_new(predicate, filter.input)?));
    }
    let mut columns: Vec<Expr> = filter.input.schema().columns().into_iter().map(Expr::Column).collect();
    columns.extend(given.iter().map(|(column, name)| Expr::Column(column.clone()).alias(&name.name)));
    let input = LogicalPlanBuilder::from(filter.input).project(columns)?.build()?;
    let renamed = |part: Expr| -> DfResult<Expr> {
        if !part.contains_outer() {
            return Ok(part);
        }
        let renamed = part.transform_up(|e| match &e {
            Expr::Column(column) => match given.iter().find(|(known, _)| known == column) {
                Some((_, name)) => Ok(Transformed::yes(Expr::Column(name.clone()))),
                None => Ok(Transformed::no(e)),
            },
            _ => Ok(Transformed::no(e)),
        })?;
        Ok(renamed.data)
    };
    let parts = parts.into_iter().map(renamed).collect::<DfResult<Vec<_>>>()?;
    let predicate = conjunction(parts).unwrap_or_else(|| lit(true));
    Ok(LogicalPlan::Filter(Filter::try_new(predicate, Arc::new(input))?))
}
