//! Stages: filters and projections, fused with what lies below.
//!
//! A stage over a stage is one stage, unless that would compute something twice. A stage that only
//! chooses columns becomes the choice of its input where that can choose (scans, joins), and
//! disappears where it chooses all.

use std::sync::Arc;

use anabranch_plan::{Node, Plan, explain};
use arrow::datatypes::DataType;
use datafusion_common::{DFSchema, ScalarValue};
use datafusion_expr::{BinaryExpr, Expr, ExprSchemable, Operator};

use super::expr::{carried, column, count_uses, position, position_near, substitute};
use super::schema::{Draft, schema};
use crate::error::Result;
use crate::resolve::type_names::canonical;

/// A column to be computed, and the name its user gave.
pub(crate) type Column = (Expr, Option<String>);

/// Filters `input`, then computes `columns` (over `input`'s schema).
pub(crate) fn stage(input: Arc<Plan>, filter: Vec<Expr>, columns: Vec<Column>) -> Result<Arc<Plan>> {
    let (input, filter, columns) = merged(input, filter, columns)?;
    let filter: Vec<Expr> = filter.into_iter().filter(|e| !is_true(e)).collect();
    let (input, filter) = bounded(input, filter);
    let input = pruned(input, &filter, &columns);
    if filter.is_empty() {
        let near = columns.iter().enumerate();
        let positions: Option<Vec<usize>> = near.map(|(at, (e, _))| position_near(e, &input.schema, at)).collect();
        if let Some(chosen) = positions.and_then(|positions| chosen(&input, &positions)) {
            return Ok(chosen);
        }
        if let Some(constant) = constant(&input, &columns)? {
            return Ok(constant);
        }
    }
    let mut project = Vec::with_capacity(columns.len());
    let mut drafts: Vec<Draft> = Vec::with_capacity(columns.len());
    for (at, (expr, alias)) in columns.into_iter().enumerate() {
        let name = name_of(&expr, alias);
        if let Some(at) = position_near(&expr, &input.schema, at)
            && let field = input.schema.field(at)
            && canonical(field.data_type()) == *field.data_type()
        {
            drafts.push((name, field.data_type().clone(), field.is_nullable()));
            project.push(expr);
            continue;
        }
        let (expr, data_type) = carried(expr, &input.schema)?;
        let nullable = expr.nullable(input.schema.as_ref())?;
        drafts.push((name, data_type, nullable));
        project.push(expr);
    }
    Ok(Arc::new(Plan { node: Node::Stage { input, filter, project }, schema: schema(drafts) }))
}

/// Keeps the rows for which all of `filter` holds.
pub(crate) fn filter(input: Arc<Plan>, filter: Vec<Expr>) -> Result<Arc<Plan>> {
    if filter.iter().all(is_true) {
        return Ok(input);
    }
    let columns = all_columns(&input.schema);
    stage(input, filter, columns)
}

/// The columns at these positions, in this order.
pub(crate) fn take(input: Arc<Plan>, positions: &[usize]) -> Arc<Plan> {
    if let Some(plan) = chosen(&input, positions) {
        return plan;
    }
    let columns: Vec<Column> = positions.iter().map(|at| (column(&input.schema, *at), None)).collect();
    stage(input, vec![], columns).expect("columns of the input have types")
}

/// Appends what of `exprs` is not a plain column; returns where each is.
pub(crate) fn with_columns(input: Arc<Plan>, exprs: Vec<Expr>) -> Result<(Arc<Plan>, Vec<usize>)> {
    let mut columns = all_columns(&input.schema);
    let width = columns.len();
    let mut positions = Vec::with_capacity(exprs.len());
    for expr in exprs {
        let at = position(&expr, &input.schema).or_else(|| columns.iter().position(|(e, _)| *e == expr));
        positions.push(at.unwrap_or_else(|| {
            columns.push((expr, None));
            columns.len() - 1
        }));
    }
    if columns.len() == width {
        return Ok((input, positions));
    }
    Ok((stage(input, vec![], columns)?, positions))
}

/// Every column of a schema.
pub(crate) fn all_columns(schema: &DFSchema) -> Vec<Column> {
    (0..schema.fields().len()).map(|at| (column(schema, at), None)).collect()
}

fn name_of(expr: &Expr, alias: Option<String>) -> String {
    match expr {
        Expr::Column(column) => column.name.clone(),
        other => alias.unwrap_or_else(|| explain::expression(other)),
    }
}

fn is_true(expr: &Expr) -> bool {
    matches!(expr, Expr::Literal(ScalarValue::Boolean(Some(true)), _))
}

/// Drops below a stage into this one if each of its computations is used at most once here.
fn merged(input: Arc<Plan>, filter: Vec<Expr>, columns: Vec<Column>) -> Result<(Arc<Plan>, Vec<Expr>, Vec<Column>)> {
    let Node::Stage { input: below, filter: filter_below, project } = &input.node else {
        return Ok((input, filter, columns));
    };
    let mut uses = vec![0; project.len()];
    filter.iter().for_each(|e| count_uses(e, 0, &input.schema, &mut uses));
    columns.iter().enumerate().for_each(|(at, (e, _))| count_uses(e, at, &input.schema, &mut uses));
    let cheap = |e: &Expr| matches!(e, Expr::Column(_) | Expr::Literal(..));
    if project.iter().zip(&uses).any(|(e, n)| *n > 1 && !cheap(e)) {
        return Ok((input, filter, columns));
    }
    let mut all = filter_below.clone();
    for expr in filter {
        all.push(substitute(expr, 0, &input.schema, project)?);
    }
    let columns = columns
        .into_iter()
        .enumerate()
        .map(|(at, (expr, alias))| {
            let alias = match &expr {
                Expr::Column(column) => Some(column.name.clone()),
                _ => alias,
            };
            Ok((substitute(expr, at, &input.schema, project)?, alias))
        })
        .collect::<Result<Vec<_>>>()?;
    merged(below.clone(), all, columns)
}

/// The input without the columns that this stage does not use, if it can do without them.
fn pruned(input: Arc<Plan>, filter: &[Expr], columns: &[Column]) -> Arc<Plan> {
    if !matches!(input.node, Node::Join { .. } | Node::TopK { .. }) {
        return input;
    }
    let mut uses = vec![0; input.schema.fields().len()];
    filter.iter().for_each(|e| count_uses(e, 0, &input.schema, &mut uses));
    columns.iter().enumerate().for_each(|(at, (e, _))| count_uses(e, at, &input.schema, &mut uses));
    let used: Vec<usize> = (0..uses.len()).filter(|at| uses[*at] > 0).collect();
    match &input.node {
        Node::TopK { top, .. } if top.numbered && uses.last() == Some(&0) => without_number(&input),
        Node::Join { .. } if used.len() < uses.len() => chosen(&input, &used).unwrap_or(input),
        _ => input,
    }
}

/// Makes filters on a row number the limit of the top-k that numbers the rows.
fn bounded(input: Arc<Plan>, filter: Vec<Expr>) -> (Arc<Plan>, Vec<Expr>) {
    let Node::TopK { input: below, top } = &input.node else {
        return (input, filter);
    };
    if !top.numbered || top.offset > 0 {
        return (input, filter);
    }
    let number_at = input.schema.fields().len() - 1;
    let mut limit = top.limit;
    let mut rest = Vec::with_capacity(filter.len());
    for part in filter {
        let Some((most, exact)) = upper_bound(&part, &input.schema, number_at) else {
            rest.push(part);
            continue;
        };
        limit = Some(limit.map_or(most, |known| known.min(most)));
        if exact && most > 1 {
            rest.push(part);
        }
    }
    let mut top = top.clone();
    top.limit = limit;
    let plan = Arc::new(Plan { node: Node::TopK { input: below.clone(), top }, schema: input.schema.clone() });
    (plan, rest)
}

/// Reads `number <= k`, `number < k`, `number = k` and their mirror images: the greatest number,
/// and whether only it passes.
fn upper_bound(part: &Expr, schema: &DFSchema, number_at: usize) -> Option<(usize, bool)> {
    let Expr::BinaryExpr(BinaryExpr { left, op, right }) = part else {
        return None;
    };
    let (n, op) = if is_number(left, schema, number_at) {
        (whole(right)?, *op)
    } else if is_number(right, schema, number_at) {
        (whole(left)?, op.swap()?)
    } else {
        return None;
    };
    let clamped = |n: i64| usize::try_from(n).unwrap_or(0);
    match op {
        Operator::LtEq => Some((clamped(n), false)),
        Operator::Lt => Some((clamped(n.saturating_sub(1)), false)),
        Operator::Eq => Some((clamped(n), n >= 1)),
        _ => None,
    }
}

fn is_number(expr: &Expr, schema: &DFSchema, number_at: usize) -> bool {
    match expr {
        Expr::Cast(cast) if cast.field.data_type().is_integer() => is_number(&cast.expr, schema, number_at),
        other => position(other, schema) == Some(number_at),
    }
}

fn whole(expr: &Expr) -> Option<i64> {
    let Expr::Literal(value, _) = expr else {
        return None;
    };
    if !value.data_type().is_integer() {
        return None;
    }
    match value.cast_to(&DataType::Int64) {
        Ok(ScalarValue::Int64(n)) => n,
        _ => None,
    }
}

/// A top-k that does not number its rows.
fn without_number(plan: &Arc<Plan>) -> Arc<Plan> {
    let Node::TopK { input, top } = &plan.node else {
        return plan.clone();
    };
    if top.offset == 0 && top.limit.is_none() {
        return input.clone();
    }
    let mut top = top.clone();
    top.numbered = false;
    Arc::new(Plan { node: Node::TopK { input: input.clone(), top }, schema: input.schema.clone() })
}

/// The input yielding only the columns at these positions, if it can choose by itself.
fn chosen(input: &Arc<Plan>, positions: &[usize]) -> Option<Arc<Plan>> {
    let width = input.schema.fields().len();
    if positions.len() == width && positions.iter().enumerate().all(|(n, at)| n == *at) {
        return Some(input.clone());
    }
    let distinct = positions.iter().enumerate().all(|(n, at)| !positions[..n].contains(at));
    let node = match &input.node {
        Node::Scan { relation, columns } if distinct => {
            Node::Scan { relation: relation.clone(), columns: positions.iter().map(|at| columns[*at]).collect() }
        }
        Node::Join { left, right, kind, left_key, right_key, nulls, residual, output } if distinct => Node::Join {
            left: left.clone(),
            right: right.clone(),
            kind: *kind,
            left_key: left_key.clone(),
            right_key: right_key.clone(),
            nulls: *nulls,
            residual: residual.clone(),
            output: positions.iter().map(|at| output[*at]).collect(),
        },
        _ => return None,
    };
    let drafts = positions
        .iter()
        .map(|at| {
            let field = input.schema.field(*at);
            (field.name().clone(), field.data_type().clone(), field.is_nullable())
        })
        .collect();
    Some(Arc::new(Plan { node, schema: schema(drafts) }))
}

/// Literals and columns over literal rows are literal rows.
fn constant(input: &Arc<Plan>, columns: &[Column]) -> Result<Option<Arc<Plan>>> {
    let Node::Constant { rows } = &input.node else {
        return Ok(None);
    };
    let mut cells = Vec::with_capacity(columns.len());
    let mut drafts: Vec<Draft> = Vec::with_capacity(columns.len());
    for (expr, alias) in columns {
        let name = name_of(expr, alias.clone());
        let (expr, data_type) = carried(expr.clone(), &input.schema)?;
        let cell = match &expr {
            Expr::Literal(value, _) => Cell::Value(value.clone()),
            other => match position(other, &input.schema) {
                Some(at) => Cell::Column(at),
                None => return Ok(None),
            },
        };
        drafts.push((name, data_type, expr.nullable(input.schema.as_ref())?));
        cells.push(cell);
    }
    let rows = rows
        .iter()
        .map(|row| {
            let cell = |cell: &Cell| match cell {
                Cell::Value(value) => value.clone(),
                Cell::Column(at) => row[*at].clone(),
            };
            cells.iter().map(cell).collect()
        })
        .collect();
    Ok(Some(Arc::new(Plan { node: Node::Constant { rows }, schema: schema(drafts) })))
}

enum Cell {
    Value(ScalarValue),
    Column(usize),
}
