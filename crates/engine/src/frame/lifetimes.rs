//! Verbs that change lifetimes, row by row.

use std::sync::Arc;

use anabranch_plan::Plan;
use anabranch_plan::temporal::{LifetimeEnds, Verb};
use arrow::datatypes::DataType;
use datafusion_expr::{Expr, cast};

use super::expression::{self, END, Resolved, col, reads};
use super::query::{Frame, FrameState, columns_of, temporal};
use super::reach;
use super::rows::{computed, input_with_ends};
use crate::error::Error;

impl Frame {
    /// Moves lifetimes by `ticks`, back when negative.
    #[must_use]
    pub fn shift(&self, ticks: i64) -> Frame {
        self.then(|state| Ok(state.verb(Verb::Shift { ticks })))
    }

    /// Every event lasts `ticks` from its start, whenever it ended before;
    /// [`FOREVER`](super::FOREVER) for no end. A sliding window of `ticks` under an aggregate.
    #[must_use]
    pub fn alter_duration(&self, ticks: i64) -> Frame {
        self.then(|state| {
            positive("a duration", ticks)?;
            Ok(state.verb(Verb::Duration { ticks }))
        })
    }

    /// Every event lasts as many ticks as an expression says, which may read
    /// [`start`](super::start) and columns, and [`end`](super::end). Durations that are not
    /// positive remove the event; NULL is for ever. If `end` is read, events without an end yet get
    /// theirs when it is known.
    #[must_use]
    pub fn alter_duration_by(&self, duration: Expr) -> Frame {
        self.then(|state| lifetime(state, None, Some(duration)))
    }

    /// New starts, and durations as in [`alter_duration_by`](Frame::alter_duration_by); without a
    /// duration events keep theirs.
    ///
    /// An expression that moves [`start`](super::start) back by a known distance (constants,
    /// remainders of constants, multiples) holds time back by as much. A new start further back is
    /// an error of its row, and so is any earlier start where the distance is not known. The
    /// expression may not read [`end`](super::end).
    #[must_use]
    pub fn alter_lifetime(&self, start: Expr, duration: Option<Expr>) -> Frame {
        self.then(|state| lifetime(state, Some(start), duration))
    }
}

/// An error unless `ticks` is positive.
pub(super) fn positive(what: &str, ticks: i64) -> Result<(), Error> {
    if ticks > 0 {
        return Ok(());
    }
    Err(Error::invalid(format!("{what} is a positive number of ticks, but it is {ticks}")))
}

/// Computes starts and durations as last columns, and applies them.
fn lifetime(state: &FrameState, start: Option<Expr>, duration: Option<Expr>) -> Result<Arc<Plan>, Error> {
    if start.as_ref().is_some_and(|start| reads(start, END)) {
        return Err(Error::invalid("a new start may not read end(), which is not known when an event begins")
            .with_hint("point_at_end() makes a point of the end of each event."));
    }
    let exprs: Vec<&Expr> = start.iter().chain(&duration).collect();
    let reads_end = exprs.iter().any(|expr| reads(expr, END));
    let ends = if reads_end || duration.is_none() { LifetimeEnds::Kept } else { LifetimeEnds::Dropped };
    let input = input_with_ends(state, exprs.iter().copied(), ends)?;
    let n_columns = state.schema().fields().len();

    let mut columns = columns_of(state.schema())
        .iter()
        .map(|(name, _)| expression::resolve(&col(name), &input.schema))
        .collect::<Result<Vec<Resolved>, _>>()?;
    for (name, expr) in [("@new start", &start), ("@new duration", &duration)] {
        if let Some(expr) = expr {
            columns.push(ticks(expr, name, &input)?);
        }
    }
    let verb = Verb::Lifetime {
        start: start.is_some().then_some(n_columns),
        duration: duration.is_some().then_some(n_columns + usize::from(start.is_some())),
        ends,
        back: start.as_ref().and_then(reach::back).unwrap_or(0),
    };
    Ok(temporal(verb, vec![computed(&input, columns)?], state.plan.schema.clone()))
}

/// An expression as a column of ticks.
fn ticks(expr: &Expr, name: &str, input: &Plan) -> Result<Resolved, Error> {
    let resolved = expression::resolve(expr, &input.schema)?;
    if !resolved.data_type.is_integer() && !matches!(resolved.data_type, DataType::Null | DataType::Timestamp(..)) {
        return Err(Error::invalid(format!(
            "ticks are a whole number, but {} is of type {}",
            resolved.name, resolved.data_type
        ))
        .with_hint("Round it, and cast it to Int64."));
    }
    let expr = cast(resolved.expr, DataType::Int64);
    Ok(Resolved { expr, name: name.to_owned(), data_type: DataType::Int64 })
}
