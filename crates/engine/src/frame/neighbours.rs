//! Pairs of events that follow each other.
//!
//! ```text
//!     in    a at 1      b at 4      c at 4      d at 9
//!     consecutive pairs         [4, 5) a b   [4, 5) a c       [9, 10) b d   [9, 10) c d
//! ```
//!
//! Law: events count where they begin, whatever their ends. The *next* of an event is every event
//! at the least later time at which one begins; events of one time do not follow each other. A pair
//! is a point at the time of its second event, with the columns of both as [`join`](Frame::join)
//! names them. Inside [`group_apply`](Frame::group_apply) pairs keep to their group.
//!
//! Each verb is a composition: events last until the next one begins (`clip_by`), a tick later
//! (`shift`) they meet that one (`join`). State: events without a next one yet; those that wait
//! `within` ticks at most are freed after that. Source: Trill, `FollowedByImmediate`,
//! `ConsecutivePairs`, `Sessionize`.

use datafusion_expr::Expr;

use super::join::How;
use super::query::Frame;
use crate::error::Error;

use anabranch_plan::temporal::FOREVER;

impl Frame {
    /// Pairs of an event for which `first` is true with the next event, if `second` is true for
    /// that one and fewer than `within` ticks lie between their starts; [`FOREVER`] for any number.
    #[must_use]
    pub fn followed_by_immediate(&self, first: Expr, second: Expr, within: i64) -> Frame {
        if within < 2 {
            let error = Error::invalid(format!("the next event comes within 2 ticks at least, but {within} are given"));
            return Frame::failed(error.with_detail("An event at a time follows those of earlier times only."));
        }
        let lasting = if within == FOREVER { FOREVER } else { within - 1 };
        let waiting = self.filter(first).alter_duration(lasting);
        waiting.until_next(self).paired_with(&self.filter(second))
    }

    /// Pairs of every event with the next one.
    #[must_use]
    pub fn consecutive_pairs(&self) -> Frame {
        self.alter_duration(FOREVER).until_next(self).paired_with(self)
    }

    /// Pairs of every event that opens a session of its key (`opens` is true) with the next one of
    /// the key that closes it (`closes` is true). The keys are columns of the result; a NULL key
    /// has no sessions.
    #[must_use]
    pub fn sessionize(&self, keys: impl IntoIterator<Item = Expr>, opens: Expr, closes: Expr) -> Frame {
        self.group_apply(keys, |group| {
            let closing = group.filter(closes);
            group.filter(opens).alter_duration(FOREVER).until_next(&closing).paired_with(&closing)
        })
    }

    /// Events until one of `other` begins after them.
    fn until_next(&self, other: &Frame) -> Frame {
        self.clip_by(other, [], [])
    }

    /// Events that last until the next one of `other`, each with that one.
    fn paired_with(&self, other: &Frame) -> Frame {
        // (An event ends where its next one begins; a tick later the two are in force together for
        // one tick.)
        self.shift(1).join(&other.alter_duration(1), [], [], How::Inner)
    }
}
