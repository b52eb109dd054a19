//! How far a verb on events reaches back behind the frontier of its input.

use anabranch_batch::{END, Time};

use super::ticks;

/// How far a verb's output reaches back behind its input's frontier.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Hold {
    /// Not at all: events out are at or after the events in that cause them.
    Same,
    /// By this many ticks (not negative).
    Back(i64),
    /// To the last `offset + k * period`.
    Floor {
        /// Positive.
        period: i64,
        /// Any.
        offset: i64,
    },
}

impl Hold {
    /// The frontier of the output, for a frontier of the input. Monotone, and not after its
    /// argument.
    pub fn apply(self, frontier: Time) -> Time {
        match self {
            _ if frontier == END || frontier == Time::MIN => frontier,
            Hold::Same => frontier,
            Hold::Back(ticks) => frontier.saturating_sub(ticks),
            Hold::Floor { period, offset } => ticks::floor(frontier, period, offset),
        }
    }
}
