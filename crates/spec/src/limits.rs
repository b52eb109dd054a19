//! Rounds of a loop.

use std::num::NonZeroU64;

/// What ends a loop before its fixed point.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum RoundLimit {
    /// Nothing does.
    #[default]
    None,
    /// The loop has a row error if its last round, of so many, still changes a variable. The rows
    /// are those after that round.
    Error(NonZeroU64),
    /// The variables are as after so many rounds.
    Return(NonZeroU64),
}

impl RoundLimit {
    /// The number of the last round, counted from 1.
    pub fn rounds_max(self) -> Option<u64> {
        match self {
            RoundLimit::None => None,
            RoundLimit::Error(rounds) | RoundLimit::Return(rounds) => Some(rounds.get()),
        }
    }

    /// Whether there is none.
    pub fn is_none(self) -> bool {
        self == RoundLimit::None
    }

    /// The row error of a loop that has not come to its end.
    pub fn message(rounds: u64) -> String {
        let s = if rounds == 1 { "" } else { "s" };
        format!("the recursion does not reach a fixed point within {rounds} round{s}")
    }
}
