//! Specifications of operators, made of what plans say.

use std::sync::Arc;

use anabranch_arrangement::{Layout, MergeEffort, ValueOrder};
use anabranch_batch::types;
use anabranch_operators::aggregate::AggregateSpec;
use anabranch_operators::ordered::asof::AsofSpec;
use anabranch_operators::ordered::session::SessionSpec;
use anabranch_operators::ordered::top_k::TopKSpec;
use anabranch_plan::{AggregateCall, TopK};
use anabranch_spec::asof::AsofJoin;
use anabranch_spec::session::SessionWindows;
use arrow::datatypes::DataType;
use datafusion_common::DFSchema;

use crate::error::Error;

/// The types that a schema's columns have in batches.
pub(super) fn types_of(schema: &DFSchema) -> Vec<DataType> {
    schema.fields().iter().map(|field| types::narrowed_type(field.data_type())).collect()
}

pub(super) fn layout(key: &[usize], types: &[DataType]) -> Arc<Layout> {
    Arc::new(Layout { key: key.to_vec(), values: ValueOrder::Hash, types: types.to_vec() })
}

pub(super) fn aggregate_spec(
    keys: &[usize],
    calls: &[AggregateCall],
    input_types: Vec<DataType>,
) -> Result<AggregateSpec, Error> {
    let narrowed =
        |call: &AggregateCall| AggregateCall { output_type: types::narrowed_type(&call.output_type), ..call.clone() };
    let spec = AggregateSpec {
        keys: keys.to_vec(),
        calls: calls.iter().map(narrowed).collect(),
        input_types,
        is_append_only: false,
        effort: MergeEffort::default(),
    };
    spec.check().map_err(|error| Error::invalid(error.to_string()))?;
    Ok(spec)
}

pub(super) fn asof_spec(asof: &AsofJoin, left_types: Vec<DataType>, right_types: Vec<DataType>) -> AsofSpec {
    AsofSpec { join: asof.clone(), left_types, right_types, effort: MergeEffort::default() }
}

pub(super) fn session_spec(windows: &SessionWindows, input_types: Vec<DataType>) -> SessionSpec {
    SessionSpec { windows: windows.clone(), input_types, effort: MergeEffort::default() }
}

pub(super) fn top_k_spec(top: &TopK, input_types: Vec<DataType>) -> TopKSpec {
    TopKSpec { top: top.clone(), input_types, is_append_only: false, effort: MergeEffort::default() }
}
