//! What window functions are asked to compute.

use anabranch_arrangement::MergeEffort;
use anabranch_spec::window::Window;
use arrow::datatypes::DataType;

/// What is computed, of rows of which types.
#[derive(Clone, Debug)]
pub struct WindowSpec {
    /// What is computed.
    pub window: Window,
    /// Types of all input columns.
    pub input_types: Vec<DataType>,
    /// How eagerly the state is merged.
    pub effort: MergeEffort,
}
