//! What the relation of the clock holds.

use anabranch_batch::Time;

/// What the relation holds.
#[derive(Debug, Default)]
pub(crate) struct Present {
    /// Time of its row; none before the first reader.
    pub(crate) shown: Option<Time>,
    /// A reader is about to come.
    pub(crate) is_awaited: bool,
}
