//! Window functions: from plan data to what the operator computes.

use anabranch_arrangement::MergeEffort;
use anabranch_operators::ordered::window::WindowSpec;
use anabranch_plan::{Window, WindowCall, WindowFunction};
use arrow::datatypes::DataType;

use super::specs::aggregate_spec;
use crate::error::Error;

/// The operator of window functions over rows of these types.
///
/// # Errors
/// `Invalid` for aggregates that are not defined for their types.
pub(super) fn compile(window: &Window, input_types: Vec<DataType>) -> Result<WindowSpec, Error> {
    let mut window = window.clone();
    for WindowCall { function, .. } in &mut window.calls {
        if let WindowFunction::Aggregate(aggregate) = function {
            let mut checked = aggregate_spec(&[], std::slice::from_ref(aggregate), input_types.clone())?;
            *aggregate = checked.calls.remove(0);
        }
    }
    Ok(WindowSpec { window, input_types, effort: MergeEffort::default() })
}
