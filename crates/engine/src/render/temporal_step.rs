//! Verbs on events, compiled: what a step of a dataflow says of them.

use anabranch_batch::order::Nulls;
use anabranch_operators::aggregate::AggregateSpec;
use anabranch_operators::temporal::custom::CustomOperator;
use anabranch_operators::temporal::detect::DetectSpec;
use anabranch_operators::temporal::sliding::SlidingSpec;
use anabranch_operators::temporal::{asof, hopping, lifetime, quantize};
use anabranch_spec::lifetime::LifetimeEnds;
use arrow::datatypes::DataType;

/// A verb on events, compiled.
#[derive(Clone)]
pub enum TemporalStep {
    Bounds(LifetimeEnds),
    Shift {
        ticks: i64,
    },
    Duration {
        ticks: i64,
    },
    Lifetime(lifetime::Lifetime),
    Hopping(hopping::Hopping),
    Quantize(quantize::Quantize),
    Aggregate(AggregateSpec),
    PointAtEnd,
    Extend {
        ticks: i64,
        types: Vec<DataType>,
    },
    ClipDuration {
        limit: i64,
        types: Vec<DataType>,
    },
    Chop {
        period: i64,
        offset: i64,
        types: Vec<DataType>,
    },
    Stitch {
        types: Vec<DataType>,
    },
    OfChanges {
        types: Vec<DataType>,
    },
    Session {
        keys: Vec<usize>,
        types: Vec<DataType>,
        timeout: i64,
        maximum: Option<i64>,
    },
    Clip {
        left_key: Vec<usize>,
        types: Vec<DataType>,
        right_key: Vec<usize>,
    },
    Detect(Box<DetectSpec>),
    Join {
        left_key: Vec<usize>,
        right_key: Vec<usize>,
        key_types: Vec<DataType>,
    },
    /// A join of events that never end.
    AppendJoin {
        left_key: Vec<usize>,
        right_key: Vec<usize>,
        key_types: Vec<DataType>,
        /// The place among the keys of one that rises on both sides.
        rising: Option<usize>,
    },
    Asof(asof::AsofSpec),
    WhereNotExists {
        left_key: Vec<usize>,
        right_key: Vec<usize>,
        key_types: Vec<DataType>,
        nulls: Nulls,
    },
    /// A snapshot aggregate of events that last equally long.
    Sliding(SlidingSpec),
    /// A user's own operator.
    Custom {
        operator: CustomOperator,
        keys: Vec<Vec<usize>>,
        types: Vec<DataType>,
    },
}
