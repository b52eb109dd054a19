//! As-of joins of frames: each event with the one of the other frame whose start is nearest, on one side of it.
//!
//! They are made of other verbs. *Backward*: an event of the other frame is in force until the next one with its key begins (or the tolerance is over), and a
//! row takes what is in force at its start. *Forward*: a row waits until the next event with its key begins, and takes that.
//!
//! ```text
//!     left       a [5, 9)              right   x [3, 4)   y [7, 8)
//!     backward   a, x [5, 6)           forward   a, y [7, 8)
//! ```
//!
//! State: backward, the last event of each key (within the tolerance); forward, the rows that wait.

use datafusion_expr::Expr;

use super::join::How;
use super::lifetimes::positive;
use super::query::Frame;
use crate::error::Error;
use anabranch_plan::temporal::FOREVER;

/// Which event an as-of join takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Asof {
    strategy: Strategy,
    is_strict: bool,
    tolerance: Option<i64>,
    how: How,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Strategy {
    Backward,
    Forward,
}

impl Asof {
    /// The latest one that begins no later than the row. Pairs are points at the row's start.
    pub fn backward() -> Asof {
        Asof { strategy: Strategy::Backward, is_strict: false, tolerance: None, how: How::Inner }
    }

    /// The earliest one that begins no earlier than the row. Pairs are points at its start, when they are known.
    pub fn forward() -> Asof {
        Asof { strategy: Strategy::Forward, ..Asof::backward() }
    }

    /// None that begins with the row.
    #[must_use]
    pub fn strictly(self) -> Asof {
        Asof { is_strict: true, ..self }
    }

    /// None whose start is more than so many ticks away.
    #[must_use]
    pub fn tolerance(self, ticks: i64) -> Asof {
        Asof { tolerance: Some(ticks), ..self }
    }

    /// Backward: rows without a pair too, with NULLs on the right.
    #[must_use]
    pub fn left(self) -> Asof {
        Asof { how: How::Left, ..self }
    }

    /// How long an event reaches whose own tick is `before` ticks ahead of the first that it may be paired with.
    fn reach(self, before: i64) -> Result<i64, Error> {
        let Some(tolerance) = self.tolerance else { return Ok(FOREVER) };
        let reach = tolerance.saturating_add(before);
        positive("the reach of an as-of join", reach)?;
        Ok(reach)
    }
}

impl Frame {
    /// Each row with the event of `other` that begins nearest to its start, among those with equal keys: columns of this frame, then of the other, as in
    /// [`join`](Frame::join). Of several events of the other frame that begin at that time, each. NULL keys match nothing.
    #[must_use]
    pub fn join_asof(
        &self,
        other: &Frame,
        left_by: impl IntoIterator<Item = Expr>,
        right_by: impl IntoIterator<Item = Expr>,
        asof: Asof,
    ) -> Frame {
        let (left_by, right_by): (Vec<Expr>, Vec<Expr>) =
            (left_by.into_iter().collect(), right_by.into_iter().collect());
        let joined = match asof.strategy {
            Strategy::Backward => self.join_last(other, left_by, right_by, asof),
            Strategy::Forward => self.join_next(other, left_by, right_by, asof),
        };
        joined.unwrap_or_else(Frame::failed)
    }

    fn join_last(&self, other: &Frame, left_by: Vec<Expr>, right_by: Vec<Expr>, asof: Asof) -> Result<Frame, Error> {
        let from = i64::from(asof.is_strict);
        let other = if asof.is_strict { other.shift(from) } else { other.clone() };
        let in_force = other.alter_duration(asof.reach(1 - from)?).clip_by(&other, right_by.clone(), right_by.clone());
        Ok(self.alter_duration(1).join(&in_force, left_by, right_by, asof.how))
    }

    fn join_next(&self, other: &Frame, left_by: Vec<Expr>, right_by: Vec<Expr>, asof: Asof) -> Result<Frame, Error> {
        if asof.how != How::Inner {
            return Err(Error::invalid("an as-of join that looks forward keeps no rows without a pair")
                .with_hint("leave .left() out, or look backward."));
        }
        let before = i64::from(!asof.is_strict);
        // (An event that begins with the row is after the row that is moved back by a tick.)
        let waiting = if asof.is_strict { self.clone() } else { self.shift(-1) };
        let waiting = waiting.alter_duration(asof.reach(before)?);
        let met = waiting.clip_by(other, left_by.clone(), right_by.clone()).point_at_end();
        Ok(met.join(&other.alter_duration(1), left_by, right_by, How::Inner))
    }
}
