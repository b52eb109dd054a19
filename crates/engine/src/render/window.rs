//! Window functions: from plan data to what the operator computes.

use anabranch_arrangement::MergeEffort;
use anabranch_operators::ordered::window as operator;
use anabranch_plan::{Place, Window, WindowCall, WindowFunction};
use arrow::datatypes::DataType;

use super::specs::{aggregate_spec, direction};
use crate::error::Error;

/// The operator of window functions over rows of these types.
///
/// # Errors
/// `Invalid` for aggregates that are not defined for their types.
pub(super) fn compile(window: &Window, input_types: Vec<DataType>) -> Result<operator::WindowSpec, Error> {
    let call = |call: &WindowCall| {
        let function = match &call.function {
            WindowFunction::Aggregate(aggregate) => {
                let mut spec = aggregate_spec(&[], std::slice::from_ref(aggregate), input_types.clone())?;
                operator::WindowFunction::Aggregate(spec.calls.remove(0))
            }
            WindowFunction::Value { column, place } => match place {
                Place::First => operator::WindowFunction::First(*column),
                Place::Last => operator::WindowFunction::Last(*column),
                Place::Nth(n) => operator::WindowFunction::Nth(*column, *n),
            },
            WindowFunction::PercentRank => operator::WindowFunction::PercentRank,
            WindowFunction::CumeDist => operator::WindowFunction::CumeDist,
        };
        Ok::<_, Error>(operator::WindowCall { function, frame: call.frame })
    };
    Ok(operator::WindowSpec {
        partition: window.partition.clone(),
        order: window.order.iter().map(direction).collect(),
        calls: window.calls.iter().map(call).collect::<Result<_, _>>()?,
        input_types,
        effort: MergeEffort::default(),
    })
}
