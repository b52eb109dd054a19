//! Where a loop is.

use anabranch_batch::Time;

/// A round of an epoch.
#[derive(Clone, Copy, Debug)]
pub(super) struct Moment {
    /// The time outside of the loop.
    pub epoch: Time,
    /// The changes from this time on, up to the epoch, are the epoch's.
    pub from: Time,
    /// From 1.
    pub round: Time,
    /// Whether the epoch is the loop's first.
    pub is_first: bool,
}
