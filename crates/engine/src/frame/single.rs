//! The value of the only row, as a user would write an aggregate.
//!
//! Law: the value if the group has one row, NULL if it has none that the filter lets pass, an error
//! of the group's row while it has several.
//!
//! Cost: not invertible, since of two rows it remembers one: over lifetimes that overlap it walks
//! the rows in force at each change (see [`UserAggregate`]). Source: Trill, `SingleOrDefault`.

use std::sync::Arc;

use anabranch_operators::aggregate::custom::{GroupRows, UserAggregate};
use arrow::array::{ArrayRef, NullArray};
use arrow::datatypes::DataType;
use datafusion_common::ScalarValue;
use datafusion_expr::Expr;

use super::aggregate::{FrameAggregate, custom};

/// The value of the only row; NULL without a row, an error while there are several.
pub fn single(expr: Expr) -> FrameAggregate {
    custom(Single, [expr])
}

struct Single;

/// How many rows there are, and the value of one of them.
#[derive(Clone, Default)]
struct Seen {
    n_rows: usize,
    value: Option<ScalarValue>,
}

impl UserAggregate for Single {
    type State = Seen;

    fn name(&self) -> &str {
        "single"
    }

    fn output_type(&self, arguments: &[DataType]) -> Result<DataType, String> {
        arguments.first().cloned().ok_or_else(|| "it takes one value".to_owned())
    }

    fn initial(&self) -> Seen {
        Seen::default()
    }

    fn accumulate(&self, states: &mut [Seen], rows: &GroupRows<'_>) -> Result<(), String> {
        for (state, row) in rows.iter() {
            let seen = &mut states[state];
            seen.n_rows += 1;
            if seen.n_rows == 1 {
                let value = ScalarValue::try_from_array(rows.column(0), row);
                seen.value = Some(value.map_err(|error| error.to_string())?);
            }
        }
        Ok(())
    }

    fn compute(&self, states: &[&Seen]) -> Result<ArrayRef, String> {
        if let Some(several) = states.iter().find(|seen| seen.n_rows > 1) {
            return Err(format!("there are {} rows where one was expected", several.n_rows));
        }
        let Some(known) = states.iter().find_map(|seen| seen.value.as_ref()) else {
            return Ok(Arc::new(NullArray::new(states.len())));
        };
        let null = ScalarValue::try_from(known.data_type()).map_err(|error| error.to_string())?;
        let values = states.iter().map(|seen| seen.value.clone().unwrap_or_else(|| null.clone()));
        ScalarValue::iter_to_array(values).map_err(|error| error.to_string())
    }

    fn heap_bytes(&self, state: &Seen) -> usize {
        state.value.as_ref().map_or(0, |value| value.size().saturating_sub(size_of::<ScalarValue>()))
    }
}
