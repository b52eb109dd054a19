//! What a sliding aggregate is asked to compute, and whether it can.

use anabranch_batch::END;
use anabranch_spec::aggregate::{AggregateCall, AggregateFunction};
use arrow::datatypes::DataType;

use crate::aggregate::AggregateSpec;
use crate::aggregate::custom::{CustomAggregate, Extreme};

/// What is wanted, and what is known of the stream.
#[derive(Clone, Debug)]
pub struct SlidingSpec {
    /// Keys and calls; see [`SlidingSpec::new`].
    pub(super) aggregate: AggregateSpec,
    /// Ticks that every event lasts.
    pub(super) duration: i64,
    /// Whether starts lie on a grid no finer than the duration.
    pub(super) apart: bool,
    /// Whether least or greatest values are asked for, each of which is one value then.
    pub(super) is_one_value: bool,
}

impl SlidingSpec {
    /// The key columns.
    pub fn keys(&self) -> &[usize] {
        &self.aggregate.keys
    }

    /// How the aggregate runs, in a few words: what the properties of the stream have chosen.
    pub fn remark(&self) -> String {
        let expiry = match (self.apart, self.duration) {
            (true, _) => "one piece a window",
            (false, END) => "nothing expires",
            (false, _) => "expiry from a queue",
        };
        let one = if self.is_one_value { ", least and greatest in one value" } else { "" };
        format!("{expiry}{one}")
    }

    /// The aggregate over events that last `duration` ticks ([`END`]: for ever) and start on a grid
    /// of `hop` ticks, if that is known; `None` when a call is not one of those this tactic does.
    pub fn new(aggregate: &AggregateSpec, duration: i64, hop: Option<i64>) -> Option<SlidingSpec> {
        let apart = hop.is_some_and(|hop| hop >= duration);
        let is_extreme =
            |call: &AggregateCall| matches!(call.function, AggregateFunction::Min | AggregateFunction::Max);
        let is_one_value = aggregate.calls.iter().any(is_extreme);
        let mut aggregate = aggregate.clone();
        if apart || duration == END {
            let types = aggregate.input_types.clone();
            aggregate.calls.iter_mut().for_each(|call| keep_one_value(call, &types));
        }
        let fits = |call: &AggregateCall| {
            let argument = call.argument.map(|column| &aggregate.input_types[column]);
            let small = |data_type: &DataType| data_type.is_integer() && *data_type != DataType::UInt64;
            !call.distinct
                && call.filter.is_none()
                && match (&call.function, argument, &call.output_type) {
                    (AggregateFunction::Count, _, DataType::Int64) => true,
                    (AggregateFunction::Sum, Some(argument), DataType::Int64) => small(argument),
                    (AggregateFunction::Avg, Some(argument), DataType::Float64) => small(argument),
                    (AggregateFunction::Custom(custom, _), ..) => {
                        let custom = CustomAggregate::of(custom);
                        apart || custom.is_invertible() || (duration == END && custom.can_combine())
                    }
                    _ => false,
                }
        };
        let fits = duration > 0 && aggregate.calls.iter().all(fits);
        fits.then_some(SlidingSpec { aggregate, duration, apart, is_one_value })
    }
}

/// Of values that are not taken out, the least or greatest is all there is to know.
fn keep_one_value(call: &mut AggregateCall, types: &[DataType]) {
    let extreme = match call.function {
        AggregateFunction::Min => Extreme::Least,
        AggregateFunction::Max => Extreme::Greatest,
        _ => return,
    };
    if call.argument.is_some_and(|column| Extreme::is_of(&types[column])) {
        // (Equal values change nothing.)
        call.distinct = false;
        call.function = AggregateFunction::Custom(CustomAggregate::extreme(extreme).into_foreign(), vec![]);
    }
}
