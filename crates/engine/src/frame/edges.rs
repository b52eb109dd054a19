//! Verbs that look at where lifetimes begin and end, and sessions.

use std::sync::Arc;

use anabranch_plan::Plan;
use anabranch_plan::temporal::Verb;
use datafusion_expr::Expr;

use super::expression::{self, Resolved, col};
use super::lifetimes::positive;
use super::query::{Frame, State, columns_of, temporal};
use super::rows::{computed, input_for};
use crate::error::Error;

impl Frame {
    /// The end of every event, as a point; events that never end are left out.
    #[must_use]
    pub fn point_at_end(&self) -> Frame {
        self.then(|state| Ok(state.verb(Verb::PointAtEnd)))
    }

    /// Lifetimes that end `ticks` later, or earlier when negative: what that leaves nothing of is gone. Open events stay open.
    #[must_use]
    pub fn extend(&self, ticks: i64) -> Frame {
        self.then(|state| Ok(state.verb(Verb::Extend { ticks })))
    }

    /// Lifetimes of at most `limit` ticks; open events get an end.
    #[must_use]
    pub fn clip_duration(&self, limit: i64) -> Frame {
        self.then(|state| {
            positive("a limit", limit)?;
            Ok(state.verb(Verb::ClipDuration { limit }))
        })
    }

    /// Lifetimes cut at every `offset + k * period`.
    #[must_use]
    pub fn chop(&self, period: i64, offset: i64) -> Frame {
        self.then(|state| {
            positive("a period", period)?;
            Ok(state.verb(Verb::Chop { period, offset }))
        })
    }

    /// Events of equal rows that touch become one: the opposite of [`chop`](Frame::chop).
    #[must_use]
    pub fn stitch(&self) -> Frame {
        self.then(|state| Ok(state.verb(Verb::Stitch)))
    }

    /// Every event lasts until its session ends: `timeout` ticks after the last event of the session. A gap of `timeout` or more starts a new one, and so
    /// does a multiple of `maximum`, if there is one. Inside [`group_apply`](Frame::group_apply) each group has its own sessions.
    #[must_use]
    pub fn session(&self, timeout: i64, maximum: Option<i64>) -> Frame {
        self.then(|state| {
            positive("a timeout", timeout)?;
            maximum.map_or(Ok(()), |maximum| positive("the maximum of a session", maximum))?;
            let keys = state.group.iter().map(|name| state.position(name)).collect::<Result<_, _>>()?;
            Ok(state.verb(Verb::Session { keys, timeout, maximum }))
        })
    }

    /// Events that end when an event of `other` begins *after* them, if that is before their own end. With keys, one expression for each side, only by
    /// events with equal keys; NULL is equal to nothing.
    #[must_use]
    pub fn clip_by(
        &self,
        other: &Frame,
        keys: impl IntoIterator<Item = Expr>,
        other_keys: impl IntoIterator<Item = Expr>,
    ) -> Frame {
        let keys: Vec<Expr> = keys.into_iter().collect();
        let other_keys: Vec<Expr> = other_keys.into_iter().collect();
        self.then_with(other, |left, right| clip(left, right, &keys, &other_keys))
    }
}

fn clip(left: &State, right: &State, left_on: &[Expr], right_on: &[Expr]) -> Result<Arc<Plan>, Error> {
    if left_on.len() != right_on.len() {
        return Err(Error::invalid(format!(
            "the two sides are compared by {} and {} keys",
            left_on.len(),
            right_on.len()
        )));
    }
    let group: Vec<Expr> = left.group.iter().map(|name| col(name)).collect();
    let keys = |on: &[Expr]| group.iter().chain(on).cloned().collect::<Vec<_>>();
    let (left_plan, left_key) = with_keys(left, &keys(left_on))?;
    let (right_plan, right_key) = with_keys(right, &keys(right_on))?;
    for (&left_at, &right_at) in left_key.iter().zip(&right_key) {
        let (ours, theirs) = (left_plan.schema.field(left_at), right_plan.schema.field(right_at));
        if ours.data_type() != theirs.data_type() {
            return Err(Error::invalid(format!(
                "{} and {} are compared, but of types {} and {}",
                ours.name(),
                theirs.name(),
                ours.data_type(),
                theirs.data_type()
            ))
            .with_hint("Cast one of them to the type of the other."));
        }
    }
    let schema = left_plan.schema.clone();
    let clipped = temporal(Verb::Clip { left_key, right_key }, vec![left_plan, right_plan], schema);
    if clipped.schema.fields().len() == left.schema().fields().len() {
        return Ok(clipped);
    }
    let kept = columns_of(left.schema());
    let kept = kept.iter().map(|(name, _)| expression::resolve(&col(name), &clipped.schema));
    computed(&clipped, kept.collect::<Result<_, _>>()?)
}

/// All columns, then the keys that are none of them; with the places of the keys.
fn with_keys(state: &State, keys: &[Expr]) -> Result<(Arc<Plan>, Vec<usize>), Error> {
    let input = input_for(state, keys)?;
    let mut columns = columns_of(state.schema())
        .iter()
        .map(|(name, _)| expression::resolve(&col(name), &input.schema))
        .collect::<Result<Vec<Resolved>, _>>()?;
    let n_columns = columns.len();
    let mut places = Vec::new();
    for key in keys {
        let key = expression::resolve(key, &input.schema)?;
        let place = columns.iter().position(|column| column.expr == key.expr).unwrap_or_else(|| {
            let name = format!("@key {}", columns.len());
            columns.push(Resolved { name, ..key });
            columns.len() - 1
        });
        places.push(place);
    }
    let plan = if columns.len() == n_columns { state.plan.clone() } else { computed(&input, columns)? };
    Ok((plan, places))
}
