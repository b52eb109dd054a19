//! The states of an arrangement: where the updates that were written are kept.
//!
//! | state | where updates are | bound |
//! |---|---|---|
//! | *quiet* | there are none; `upper` is that of the arrangement beside | nothing was written |
//! | *sorted* | all complete updates are in runs | the start of every other arrangement |
//! | *held* | some complete updates lie unsorted in the builder | `Shared::holds_too_much` |
//! | *dormant* | with the origin; those after `since` in the builder | the origin may be asked |
//!
//! Updates whose time is not complete lie in the builder in every state but quiet.
//!
//! | from | event | to |
//! |---|---|---|
//! | quiet | a batch is pushed: the arrangement takes an `upper` of its own | sorted |
//! | sorted | a time is completed that some update in the builder has | held |
//! | held | a reader asks for runs, or a listener is told | sorted |
//! | held | too much is held, and a reader asked since this last happened | sorted |
//! | held | too much is held unread, and no origin may be asked | sorted |
//! | held | too much is held unread, and the origin may be asked | dormant |
//! | held | spare time finds much: as if too much were held | sorted, dormant |
//! | dormant | the slowest reader moves on: batches up to its `since` are dropped | dormant |
//! | dormant | a reader asks, or a listener or an early follower starts | sorted |
//! | dormant | the origin has too many rows, or readers stand still while much is held | sorted |
//!
//! Law: no other transition happens; [`State::assert_follows`] stops the process at one. Cost: two
//! comparisons a transition.

use anabranch_batch::Time;

/// Where the updates of an arrangement are kept.
#[derive(Debug)]
pub(crate) enum ArrangementState {
    /// Nothing was written. `upper` is that of the arrangement beside.
    Quiet,
    /// All complete updates are in runs.
    Sorted(Readership),
    /// Some complete updates lie unsorted in the builder.
    Held(Readership),
    /// Updates are with the origin.
    Dormant(Dormancy),
}

/// Whether a reader asked for held updates since they last were too much.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Readership {
    /// No reader asked: much may be held.
    Unread,
    /// A reader asked: little is held, so that the next answer comes soon.
    Read,
}

/// What is known about updates that are with their origin.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Dormancy {
    /// Contents can be had as of this time and later. All updates after it are in the builder.
    pub since: Time,
    /// Completions in a row that left `since` as it was.
    pub n_stuck: usize,
    /// Whether contents as of `since` are known to be empty.
    pub is_empty: bool,
}

impl ArrangementState {
    /// Whether a reader asked since updates last were too much.
    pub fn is_read(&self) -> bool {
        matches!(self, ArrangementState::Sorted(Readership::Read) | ArrangementState::Held(Readership::Read))
    }

    /// What is known about updates with their origin; `None` in other states.
    pub fn dormancy(&self) -> Option<&Dormancy> {
        match self {
            ArrangementState::Dormant(dormancy) => Some(dormancy),
            _ => None,
        }
    }

    /// The readership that sorted and held updates keep while one becomes the other.
    pub fn readership(&self) -> Readership {
        match self {
            ArrangementState::Sorted(readership) | ArrangementState::Held(readership) => *readership,
            ArrangementState::Quiet | ArrangementState::Dormant(_) => Readership::Unread,
        }
    }

    /// Asserts that this state may come after `before`: the table of the module's page.
    pub fn assert_follows(&self, before: &ArrangementState) {
        let is_legal = match (before, self) {
            (ArrangementState::Quiet, ArrangementState::Sorted(Readership::Unread)) => true,
            (ArrangementState::Sorted(_), ArrangementState::Sorted(_) | ArrangementState::Held(_)) => true,
            (ArrangementState::Held(_), ArrangementState::Sorted(_)) => true,
            // A reader that asked lately would wake the arrangement at once.
            (ArrangementState::Held(Readership::Unread), ArrangementState::Dormant(_)) => true,
            (ArrangementState::Dormant(before), ArrangementState::Dormant(after)) => before.since <= after.since,
            (ArrangementState::Dormant(_), ArrangementState::Sorted(_)) => true,
            _ => false,
        };
        assert!(is_legal, "an arrangement does not go from {before:?} to {self:?}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ASLEEP: ArrangementState = ArrangementState::Dormant(Dormancy { since: 5, n_stuck: 0, is_empty: false });

    #[test]
    fn an_unread_arrangement_falls_asleep_and_wakes_sorted() {
        let states = [
            ArrangementState::Quiet,
            ArrangementState::Sorted(Readership::Unread),
            ArrangementState::Held(Readership::Unread),
            ASLEEP,
            ArrangementState::Dormant(Dormancy { since: 6, n_stuck: 3, is_empty: false }),
            ArrangementState::Sorted(Readership::Read),
            ArrangementState::Held(Readership::Read),
            ArrangementState::Sorted(Readership::Unread),
        ];
        states.windows(2).for_each(|pair| pair[1].assert_follows(&pair[0]));
    }

    #[test]
    #[should_panic(expected = "does not go from")]
    fn a_read_arrangement_does_not_fall_asleep() {
        ASLEEP.assert_follows(&ArrangementState::Held(Readership::Read));
    }
}
