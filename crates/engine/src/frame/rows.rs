//! Verbs that look at each row alone, and unions.

use std::sync::Arc;

use anabranch_plan::temporal::{LifetimeEnds, Verb};
use anabranch_plan::{Node, Plan};
use arrow::datatypes::DataType;
use datafusion_common::{DFSchema, DFSchemaRef};
use datafusion_expr::Expr;

use super::expression::{self, Resolved, col, reads_bounds, reads_window_bounds};
use super::query::{Frame, FrameState, columns_of, schema_of, temporal};
use super::windows::with_window_bounds;
use crate::error::Error;

impl Frame {
    /// The rows for which `predicate` is true.
    #[must_use]
    pub fn filter(&self, predicate: Expr) -> Frame {
        self.then_rows(|state| filter(state, &predicate))
    }

    /// The columns that `exprs` compute, and no others; the keys of the group, inside
    /// [`group_apply`](Frame::group_apply), stay.
    #[must_use]
    pub fn select(&self, exprs: impl IntoIterator<Item = Expr>) -> Frame {
        let exprs: Vec<Expr> = exprs.into_iter().collect();
        self.then_rows(|state| select(state, &exprs))
    }

    /// All columns, and those that `exprs` compute; a column of the same name is replaced.
    #[must_use]
    pub fn with_columns(&self, exprs: impl IntoIterator<Item = Expr>) -> Frame {
        let exprs: Vec<Expr> = exprs.into_iter().collect();
        self.then_rows(|state| with_columns(state, &exprs))
    }

    /// One row for each element of a list column, which the element replaces. Rows without elements
    /// are left out.
    #[must_use]
    pub fn explode(&self, column: &str) -> Frame {
        self.then_rows(|state| {
            let at = state.position(column)?;
            let mut columns = columns_of(state.schema());
            columns[at].1 = match &columns[at].1 {
                DataType::List(field) | DataType::LargeList(field) | DataType::FixedSizeList(field, _) => {
                    field.data_type().clone()
                }
                other => {
                    return Err(Error::invalid(format!("column \"{column}\" is no list, but of type {other}")));
                }
            };
            let node = Node::Unnest { input: state.plan.clone(), columns: vec![at], outer: false };
            Ok(Arc::new(Plan { node, schema: schema_of(&columns)? }))
        })
    }

    /// The events of both. Columns are matched by position and named as here; the keys of the
    /// group, inside [`group_apply`](Frame::group_apply), by their names.
    #[must_use]
    pub fn union(&self, other: &Frame) -> Frame {
        self.then_with(other, |left, right| {
            let (ours, theirs) = (columns_of(left.schema()), columns_of(right.schema()));
            let order = matched(left, right);
            let agrees = |((_, data_type), at): (&(String, DataType), &usize)| theirs[*at].1 == *data_type;
            if ours.len() != theirs.len() || order.len() != ours.len() || !ours.iter().zip(&order).all(agrees) {
                let types = |columns: &[(String, DataType)]| {
                    columns.iter().map(|(name, data_type)| format!("{name} {data_type}")).collect::<Vec<_>>().join(", ")
                };
                return Err(Error::invalid("the two frames of a union have different columns")
                    .with_detail(format!("They are ({}) and ({}).", types(&ours), types(&theirs)))
                    .with_hint("Bring one into the form of the other with select."));
            }
            let is_in_order = order.iter().copied().eq(0..order.len());
            let theirs = match is_in_order {
                true => right.plan.clone(),
                false => {
                    let picked = order.iter().map(|at| expression::resolve(&col(&theirs[*at].0), &right.plan.schema));
                    computed(&right.plan, picked.collect::<Result<Vec<Resolved>, _>>()?)?
                }
            };
            let inputs = vec![left.plan.clone(), theirs];
            Ok(Arc::new(Plan { node: Node::Union { inputs }, schema: left.plan.schema.clone() }))
        })
    }
}

/// For each column of `left`, the place of the column of `right` that goes with it.
fn matched(left: &FrameState, right: &FrameState) -> Vec<usize> {
    let names = |state: &FrameState| columns_of(state.schema()).into_iter().map(|(name, _)| name).collect::<Vec<_>>();
    let (ours, theirs) = (names(left), names(right));
    let is_key = |name: &String| left.group.contains(name);
    let mut others = (0..theirs.len()).filter(|at| !is_key(&theirs[*at]));
    let place = |name: &String| match is_key(name) {
        true => theirs.iter().position(|other| other == name),
        false => others.next(),
    };
    ours.iter().map_while(place).collect()
}

fn filter(state: &FrameState, predicate: &Expr) -> Result<Arc<Plan>, Error> {
    let input = input_for(state, [predicate])?;
    let predicate = expression::resolve(predicate, &input.schema)?;
    if predicate.data_type != DataType::Boolean {
        return Err(Error::invalid(format!(
            "a filter is true or false, but {} is of type {}",
            predicate.name, predicate.data_type
        )));
    }
    Ok(stage(&input, vec![predicate.expr], as_they_are(state.schema()), state.plan.schema.clone()))
}

/// The plan of the selected columns, the group's first.
pub(super) fn select(state: &FrameState, exprs: &[Expr]) -> Result<Arc<Plan>, Error> {
    let input = input_for(state, exprs)?;
    let resolved = exprs.iter().map(|expr| expression::resolve(expr, &input.schema));
    let resolved = resolved.collect::<Result<Vec<Resolved>, _>>()?;
    let kept = state.group.iter().filter(|name| resolved.iter().all(|column| column.name != **name));
    let kept = kept.map(|name| expression::resolve(&col(name), &input.schema)).collect::<Result<Vec<_>, _>>()?;
    computed(&input, kept.into_iter().chain(resolved).collect())
}

fn with_columns(state: &FrameState, exprs: &[Expr]) -> Result<Arc<Plan>, Error> {
    let input = input_for(state, exprs)?;
    let new = exprs.iter().map(|expr| expression::resolve(expr, &input.schema)).collect::<Result<Vec<_>, _>>()?;
    if let Some(column) = new.iter().find(|column| state.group.contains(&column.name)) {
        return Err(Error::invalid(format!("column \"{}\" is the key of the group and stays as it is", column.name)));
    }
    let mut columns = Vec::new();
    for (name, _) in columns_of(state.schema()) {
        match new.iter().find(|column| column.name == name) {
            Some(column) => columns.push(column.clone()),
            None => columns.push(expression::resolve(&col(&name), &input.schema)?),
        }
    }
    let is_new = |column: &&Resolved| state.position(&column.name).is_err();
    columns.extend(new.iter().filter(is_new).cloned());
    computed(&input, columns)
}

/// The query's plan, with the bounds of lifetimes as columns if an expression reads them.
pub(super) fn input_for<'a>(state: &FrameState, exprs: impl IntoIterator<Item = &'a Expr>) -> Result<Arc<Plan>, Error> {
    input_with_ends(state, exprs, LifetimeEnds::Dropped)
}

/// As [`input_for`]; end edges have their own ends, or those of their start edges.
pub(super) fn input_with_ends<'a>(
    state: &FrameState,
    exprs: impl IntoIterator<Item = &'a Expr>,
    ends: LifetimeEnds,
) -> Result<Arc<Plan>, Error> {
    let exprs: Vec<&Expr> = exprs.into_iter().collect();
    if reads_window_bounds(exprs.iter().copied()) {
        return with_window_bounds(state);
    }
    match reads_bounds(exprs) {
        true => bounds(&state.plan, ends),
        false => Ok(state.plan.clone()),
    }
}

/// A plan with the bounds of lifetimes as last columns.
pub(super) fn with_bounds(plan: &Arc<Plan>) -> Result<Arc<Plan>, Error> {
    bounds(plan, LifetimeEnds::Dropped)
}

fn bounds(plan: &Arc<Plan>, ends: LifetimeEnds) -> Result<Arc<Plan>, Error> {
    let mut columns = columns_of(&plan.schema);
    columns.extend([expression::START, expression::END].map(|name| (name.to_owned(), DataType::Int64)));
    Ok(temporal(Verb::Bounds { ends }, vec![plan.clone()], schema_of(&columns)?))
}

/// A stage that computes columns.
pub(super) fn computed(input: &Arc<Plan>, columns: Vec<Resolved>) -> Result<Arc<Plan>, Error> {
    let names: Vec<(String, DataType)> =
        columns.iter().map(|column| (column.name.clone(), column.data_type.clone())).collect();
    let exprs = columns.into_iter().map(|column| column.expr).collect();
    Ok(stage(input, vec![], exprs, schema_of(&names)?))
}

/// A stage, joined with the one below if that only filters.
fn stage(input: &Arc<Plan>, filter: Vec<Expr>, project: Vec<Expr>, schema: DFSchemaRef) -> Arc<Plan> {
    if let Node::Stage { input: below, filter: first, project: passed } = &input.node
        && *passed == as_they_are(&below.schema)
        && *passed == as_they_are(&input.schema)
    {
        let filter = first.iter().cloned().chain(filter).collect();
        return Arc::new(Plan { node: Node::Stage { input: below.clone(), filter, project }, schema });
    }
    Arc::new(Plan { node: Node::Stage { input: input.clone(), filter, project }, schema })
}

/// All columns of a schema.
fn as_they_are(schema: &DFSchema) -> Vec<Expr> {
    schema.fields().iter().map(|field| col(field.name())).collect()
}
