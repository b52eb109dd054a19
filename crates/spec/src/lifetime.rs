//! What lifetimes that are computed do with the ends of events.

/// What becomes of end edges when durations are computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LifetimeEnds {
    /// Left out: the duration is known from the start.
    Dropped,
    /// Moved to the new end of their event.
    Kept,
}
