//! Verbs that look at where lifetimes begin and end, and sessions.

use std::sync::Arc;

use anabranch_plan::Plan;
use anabranch_plan::temporal::Verb;
use datafusion_expr::Expr;

use super::join::Keyed;
use super::lifetimes::positive;
use super::query::{Frame, FrameState};
use crate::error::Error;

impl Frame {
    /// The end of every event, as a point; events that never end are left out.
    #[must_use]
    pub fn point_at_end(&self) -> Frame {
        self.then(|state| Ok(state.verb(Verb::PointAtEnd)))
    }

    /// Lifetimes that end `ticks` later, or earlier when negative: what that leaves nothing of is
    /// gone. Open events stay open.
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

    /// Every event lasts until its session ends: `timeout` ticks after the last event of the
    /// session. A gap of `timeout` or more starts a new one, and so does a multiple of `maximum`,
    /// if there is one. Inside [`group_apply`](Frame::group_apply) each group has its own sessions.
    #[must_use]
    pub fn session(&self, timeout: i64, maximum: Option<i64>) -> Frame {
        self.then(|state| {
            positive("a timeout", timeout)?;
            maximum.map_or(Ok(()), |maximum| positive("the maximum of a session", maximum))?;
            let keys = state.group.iter().map(|name| state.position(name)).collect::<Result<_, _>>()?;
            Ok(state.verb(Verb::Session { keys, timeout, maximum }))
        })
    }

    /// Events that end when an event of `other` begins *after* them, if that is before their own
    /// end. With keys, one expression for each side, only by events with equal keys; NULL is equal
    /// to nothing.
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

fn clip(left: &FrameState, right: &FrameState, left_on: &[Expr], right_on: &[Expr]) -> Result<Arc<Plan>, Error> {
    let keyed = Keyed::new(left, right, left_on, right_on)?;
    keyed.left_rows(left, |left_key, right_key| Verb::Clip { left_key, right_key })
}
