//! Verbs on events: the nodes of the temporal algebra.
//!
//! A temporal plan denotes a stream of events (rows with lifetimes) instead of a collection; what
//! the events add up to is one. Columns are positions in the input's schema. Ticks are of the
//! query's timeline; [`FOREVER`] ticks never end.
//!
//! Law: plain data, comparable and hashable, like every node; what a verb means is on the page of
//! the operator that runs it.

use anabranch_spec::aggregate::AggregateCall;
use anabranch_spec::asof::Strategy;
use anabranch_spec::foreign::Foreign;
pub use anabranch_spec::lifetime::LifetimeEnds;
use anabranch_spec::order::Nulls;

use crate::pattern::Detect;
use crate::properties::Properties;

/// The duration of events that never end.
pub const FOREVER: i64 = i64::MAX;

/// A verb of the temporal algebra. Inputs are those of [`Node::Temporal`](crate::Node::Temporal),
/// in order.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Verb {
    /// The events pushed into an input of the run, of the plan's schema. No inputs.
    Events {
        /// Name of the input.
        input: String,
        /// What the input promises of its events.
        declared: Properties,
    },
    /// Two more columns: the start of each event, and its end if that was known from the start. One
    /// input.
    Bounds {
        /// Whether end edges have their own end.
        ends: LifetimeEnds,
    },
    /// Lifetimes moved by so many ticks. One input.
    Shift {
        /// Back when negative.
        ticks: i64,
    },
    /// Every event lasts so long from its start. One input.
    Duration {
        /// Positive.
        ticks: i64,
    },
    /// Lifetimes from computed columns, the last ones of the input, which do not go on. One input.
    Lifetime {
        /// Column of new starts.
        start: Option<usize>,
        /// Column of durations.
        duration: Option<usize>,
        /// What becomes of end edges.
        ends: LifetimeEnds,
        /// How many ticks a new start may lie before the old one; not negative.
        back: i64,
    },
    /// Hopping windows, closed on the right, reported when they have closed. One input.
    Hopping(Windows),
    /// Windows closed on the left, reported while they fill. One input.
    Quantize {
        /// The windows.
        windows: Windows,
        /// Ticks from one early result to the next; the period for none.
        progress: i64,
    },
    /// One event for each group and each piece of time between its changes: keys, then results. One
    /// input.
    Aggregate {
        /// Key columns; none for one group.
        keys: Vec<usize>,
        /// What is computed for each piece.
        calls: Vec<AggregateCall>,
    },
    /// The ends of events, as points. One input.
    PointAtEnd,
    /// Lifetimes that end later. One input.
    Extend {
        /// Earlier when negative.
        ticks: i64,
    },
    /// Lifetimes of at most so many ticks. One input.
    ClipDuration {
        /// Positive.
        limit: i64,
    },
    /// Lifetimes cut at boundaries. One input.
    Chop {
        /// Ticks between boundaries; positive.
        period: i64,
        /// Some boundary.
        offset: i64,
    },
    /// Events of equal rows that touch become one. One input.
    Stitch,
    /// Events of a collection: rows begin when they come and end when they go. One input, which is
    /// no stream of events.
    OfChanges,
    /// Events last until their session ends. One input.
    Session {
        /// Columns whose values have sessions of their own.
        keys: Vec<usize>,
        /// Gaps of so many ticks end a session; positive.
        timeout: i64,
        /// Multiples of it end a session too; positive.
        maximum: Option<i64>,
    },
    /// Events of the first input end when an event of the second begins after them. Two inputs.
    Clip {
        /// Columns of the first,
        left_key: Vec<usize>,
        /// which are equal to these of the second.
        right_key: Vec<usize>,
    },
    /// Pairs of events with equal keys, while both are in force: columns of the first, then of the
    /// second. Two inputs.
    Join {
        /// Columns of the first,
        left_key: Vec<usize>,
        /// which are equal to these of the second; NULL is equal to nothing.
        right_key: Vec<usize>,
    },
    /// Events of the first input with those of the second that begin nearest: columns of the first,
    /// then of the second. Two inputs.
    Asof {
        /// Columns of the first,
        left_key: Vec<usize>,
        /// which are equal to these of the second; NULL is equal to nothing.
        right_key: Vec<usize>,
        /// On which side of an event's start the match begins.
        strategy: Strategy,
        /// Whether events that begin together match.
        exact: bool,
        /// How many ticks apart the starts of a match may be; not negative.
        tolerance: Option<i64>,
        /// Whether events of the first without a match are kept, with NULLs.
        outer: bool,
    },
    /// Events of the first input while the second has none with their key. Two inputs.
    WhereNotExists {
        /// Columns of the first,
        left_key: Vec<usize>,
        /// which are equal to these of the second.
        right_key: Vec<usize>,
        /// Whether NULLs are equal.
        nulls: Nulls,
    },
    /// Where a pattern is met: keys, then registers. One input.
    Detect(Box<Detect>),
    /// A user's own operator. One or two inputs.
    Custom {
        /// What it does.
        operator: Foreign,
        /// For each input, the columns whose equal values must meet.
        keys: Vec<Vec<usize>>,
    },
}

/// A grid of windows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Windows {
    /// Ticks of a window.
    pub size: i64,
    /// Ticks from one window to the next.
    pub period: i64,
    /// Some window's start.
    pub offset: i64,
}

impl Windows {
    /// How long a hopping window reports every event, if that is one number: the size, of windows
    /// apart and of windows of a whole number of hops.
    pub fn reported_ticks(&self) -> Option<i64> {
        (self.size <= self.period || self.size % self.period == 0).then_some(self.size)
    }
}
