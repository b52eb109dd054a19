//! Groups: snapshot aggregates, and whole sub-queries applied to each group.
//!
//! A sub-query of a group is not run once for each group: its verbs carry the keys along and keep
//! groups apart by them, so a thousand groups cost what their rows cost. (Trill's GroupApply is a
//! physical grouping that every operator knows; keys as ordinary columns are its logical form.)

use std::sync::Arc;

use anabranch_plan::properties::Properties;
use anabranch_plan::temporal::Verb;
use anabranch_plan::{AggregateCall, AggregateFunction, Plan, SortKey};
use arrow::datatypes::DataType;
use datafusion_expr::Expr;

use super::aggregate::FrameAggregate;
use super::expression::{self, Resolved, col, start};
use super::query::{Frame, FrameState, columns_of, schema_of, temporal};
use super::rows::{computed, input_for};
use crate::error::Error;

/// A frame, grouped; see [`Frame::group_by`].
#[derive(Clone, Debug)]
pub struct GroupBy {
    frame: Frame,
    keys: Vec<Expr>,
}

impl Frame {
    /// Groups by the values of expressions, for [`GroupBy::agg`].
    pub fn group_by(&self, keys: impl IntoIterator<Item = Expr>) -> GroupBy {
        GroupBy { frame: self.clone(), keys: keys.into_iter().collect() }
    }

    /// Aggregates over all rows; see [`GroupBy::agg`].
    #[must_use]
    pub fn agg(&self, aggregates: impl IntoIterator<Item = FrameAggregate>) -> Frame {
        self.group_by([]).agg(aggregates)
    }

    /// Each distinct row once, while there is one. Of rows with a unique key that is all of them.
    #[must_use]
    pub fn distinct(&self) -> Frame {
        let columns: Vec<Expr> = match self.state() {
            Ok(state) if Properties::of(&state.plan).unique.is_some() => return self.clone(),
            Ok(state) => columns_of(state.schema()).iter().map(|(name, _)| col(name)).collect(),
            Err(error) => return Frame::failed(error),
        };
        self.group_by(columns).agg([])
    }

    /// Applies a query to each group of rows with equal keys, as if there were no others; the keys
    /// are columns of the result. Nests.
    #[must_use]
    pub fn group_apply(&self, keys: impl IntoIterator<Item = Expr>, body: impl FnOnce(Frame) -> Frame) -> Frame {
        let keys: Vec<Expr> = keys.into_iter().collect();
        match (self.grouped(&keys), self.state()) {
            (Ok(group), Ok(outer)) => body(group.clone()).ungrouped(&group, &outer.group),
            (Err(error), _) | (_, Err(error)) => Frame::failed(error),
        }
    }

    /// Applies a query of two inputs to each pair of groups with equal keys; the keys are computed
    /// from the columns of both.
    #[must_use]
    pub fn group_apply_with(
        &self,
        other: &Frame,
        keys: impl IntoIterator<Item = Expr>,
        body: impl FnOnce(Frame, Frame) -> Frame,
    ) -> Frame {
        let keys: Vec<Expr> = keys.into_iter().collect();
        match (self.grouped(&keys), other.grouped(&keys), self.state()) {
            (Ok(left), Ok(right), Ok(outer)) => body(left.clone(), right).ungrouped(&left, &outer.group),
            (Err(error), ..) | (_, Err(error), _) | (.., Err(error)) => Frame::failed(error),
        }
    }

    /// This frame inside the groups of the keys.
    fn grouped(&self, keys: &[Expr]) -> Result<Frame, Error> {
        let state = self.state()?;
        let (plan, names) = with_keys(state, keys)?;
        let group = state.group.iter().cloned().chain(names).collect();
        Ok(Frame::regrouped(state, plan, group))
    }

    /// This frame, made of that of a group, back in the outer groups.
    fn ungrouped(&self, group: &Frame, outer: &[String]) -> Frame {
        match (self.state(), group.state()) {
            (Ok(state), Ok(given)) if state.group == given.group => {
                Frame::regrouped(state, state.plan.clone(), outer.to_vec())
            }
            (Ok(_), Ok(_)) => Frame::failed(
                Error::invalid("the query applied to the groups is not made of the group's frame")
                    .with_hint("Begin with the frame that group_apply gives to its body."),
            ),
            (Err(error), _) | (_, Err(error)) => Frame::failed(error),
        }
    }
}

impl GroupBy {
    /// Snapshot aggregates: time is cut wherever a row of the group starts or ends; for each piece
    /// in which the group has rows, one event: the keys, then the aggregates over the rows in
    /// force.
    #[must_use]
    pub fn agg(&self, aggregates: impl IntoIterator<Item = FrameAggregate>) -> Frame {
        let aggregates: Vec<FrameAggregate> = aggregates.into_iter().collect();
        self.frame.then_rows(|state| aggregate(state, &self.keys, &aggregates))
    }
}

/// All columns, and the keys as columns; with the names of the keys.
fn with_keys(state: &FrameState, keys: &[Expr]) -> Result<(Arc<Plan>, Vec<String>), Error> {
    let input = input_for(state, keys)?;
    let mut columns = columns_of(state.schema())
        .iter()
        .map(|(name, _)| expression::resolve(&col(name), &input.schema))
        .collect::<Result<Vec<Resolved>, _>>()?;
    let n_columns = columns.len();
    let mut names = Vec::new();
    for key in keys {
        let key = expression::resolve(key, &input.schema)?;
        names.push(key.name.clone());
        let is_there = columns.iter().any(|column| column.name == key.name && column.expr == key.expr);
        if !is_there {
            columns.push(key);
        }
    }
    if columns.len() == n_columns {
        return Ok((state.plan.clone(), names));
    }
    Ok((computed(&input, columns)?, names))
}

fn aggregate(state: &FrameState, keys: &[Expr], aggregates: &[FrameAggregate]) -> Result<Arc<Plan>, Error> {
    let group: Vec<Expr> = state.group.iter().map(|name| col(name)).collect();
    let parts = aggregates.iter().flat_map(|aggregate| {
        let FrameAggregate { argument, further, filter, .. } = aggregate;
        argument.iter().chain(further).chain(filter)
    });
    let beginning = start();
    let starts = aggregates.iter().any(|aggregate| aggregate.by_start).then_some(&beginning);
    let input = input_for(state, keys.iter().chain(parts).chain(starts))?;
    let mut columns: Vec<Resolved> = Vec::new();
    for key in group.iter().chain(keys) {
        let key = expression::resolve(key, &input.schema)?;
        if !columns.iter().any(|column| column.name == key.name && column.expr == key.expr) {
            columns.push(key);
        }
    }
    let n_keys = columns.len();
    let mut output: Vec<(String, DataType)> =
        columns.iter().map(|key| (key.name.clone(), key.data_type.clone())).collect();
    let mut calls = Vec::new();
    for aggregate in aggregates {
        aggregate.error.clone().map_or(Ok(()), Err)?;
        let argument = aggregate.argument.as_ref().map(|expr| place(expr, &input, &mut columns)).transpose()?;
        let further = aggregate.further.iter().map(|expr| place(expr, &input, &mut columns));
        let further = further.collect::<Result<Vec<usize>, Error>>()?;
        let filter = aggregate.filter.as_ref().map(|expr| place(expr, &input, &mut columns)).transpose()?;
        if let Some(filter) = filter.filter(|at| columns[*at].data_type != DataType::Boolean) {
            let Resolved { name, data_type, .. } = &columns[filter];
            return Err(Error::invalid(format!("a filter is true or false, but {name} is of type {data_type}")));
        }
        let starts = aggregate.by_start.then(|| place(&beginning, &input, &mut columns)).transpose()?;
        let in_order = |column: usize| SortKey { column, descending: false, nulls_first: false };
        let types = argument.iter().chain(&further).map(|&at| columns[at].data_type.clone());
        let output_type = aggregate.output_type(&types.collect::<Vec<_>>())?;
        output.push((aggregate.name(), output_type.clone()));
        calls.push(AggregateCall {
            function: match &aggregate.function {
                AggregateFunction::Custom(custom, _) => AggregateFunction::Custom(custom.clone(), further),
                known => known.clone(),
            },
            argument,
            distinct: aggregate.distinct,
            filter,
            order: starts.map(in_order).into_iter().collect(),
            output_type,
        });
    }
    let schema = schema_of(&output)?;
    // (Columns of the stage below are named by place: two arguments may read alike.)
    for (at, column) in columns.iter_mut().enumerate().skip(n_keys) {
        column.name = format!("@{at} {}", column.name);
    }
    let verb = Verb::Aggregate { keys: (0..n_keys).collect(), calls };
    Ok(temporal(verb, vec![computed(&input, columns)?], schema))
}

/// The place of an expression among the columns below an aggregate, where it is put unless it is
/// there.
fn place(expr: &Expr, input: &Plan, columns: &mut Vec<Resolved>) -> Result<usize, Error> {
    let resolved = expression::resolve(expr, &input.schema)?;
    if let Some(at) = columns.iter().position(|column| column.expr == resolved.expr) {
        return Ok(at);
    }
    columns.push(resolved);
    Ok(columns.len() - 1)
}
