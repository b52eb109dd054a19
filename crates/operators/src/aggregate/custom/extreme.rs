//! Least and greatest value of events that are never taken out: one value a group, instead of all
//! values in order.
//!
//! Law: over events that never end, or that do not overlap, the result is that of `min` and `max`.
//! For integers and times.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, Int64Array};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Int64Type};

use super::user::{GroupRows, UserAggregate};

/// Which value is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Extreme {
    Least,
    Greatest,
}

impl Extreme {
    /// Whether values of a type are integers in their order.
    pub(crate) fn is_of(data_type: &DataType) -> bool {
        (data_type.is_integer() && *data_type != DataType::UInt64) || matches!(data_type, DataType::Timestamp(..))
    }

    /// Puts what `other` has seen into `state`.
    pub(super) fn merge(self, state: &mut Option<i64>, other: Option<i64>) {
        let Some(value) = other else { return };
        *state = Some(state.map_or(value, |held| match self {
            Extreme::Least => held.min(value),
            Extreme::Greatest => held.max(value),
        }));
    }
}

impl UserAggregate for Extreme {
    type State = Option<i64>;

    fn name(&self) -> &str {
        match self {
            Extreme::Least => "min",
            Extreme::Greatest => "max",
        }
    }

    fn output_type(&self, arguments: &[DataType]) -> Result<DataType, String> {
        arguments.first().cloned().ok_or_else(|| "it needs an argument".to_owned())
    }

    fn initial(&self) -> Option<i64> {
        None
    }

    fn accumulate(&self, states: &mut [Option<i64>], rows: &GroupRows<'_>) -> Result<(), String> {
        let column = cast(rows.column(0), &DataType::Int64).map_err(|error| error.to_string())?;
        let column = column.as_primitive::<Int64Type>();
        for (state, row) in rows.iter().filter(|(_, row)| column.is_valid(*row)) {
            self.merge(&mut states[state], Some(column.value(row)));
        }
        Ok(())
    }

    fn compute(&self, states: &[&Option<i64>]) -> Result<ArrayRef, String> {
        Ok(Arc::new(states.iter().map(|state| **state).collect::<Int64Array>()))
    }
}
