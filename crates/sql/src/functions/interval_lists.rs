//! `__interval_key(list)`: what arrays of intervals are compared by: a text for each element, in
//! the order of their lengths.
//!
//! Cost: one pass over the elements.

use std::sync::Arc;

use anabranch_batch::order::interval_length;
use arrow::array::{Array, ArrayRef, AsArray, ListArray, StringViewArray};
use arrow::datatypes::{DataType, Field, IntervalMonthDayNanoType};
use datafusion_common::{Result as DfResult, exec_err};
use datafusion_expr::{ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility};

use crate::functions::intervals::INTERVAL;

/// The function's name.
pub(crate) const INTERVAL_KEY: &str = "__interval_key";

/// Whether a type is that of arrays of intervals.
pub(crate) fn is_list_of_intervals(is: &DataType) -> bool {
    matches!(is, DataType::List(of) if *of.data_type() == INTERVAL)
}

/// The function, of intervals and of arrays of them.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(crate) struct IntervalKey {
    signature: Signature,
}

impl IntervalKey {
    pub(crate) fn udf() -> Arc<ScalarUDF> {
        Arc::new(ScalarUDF::from(Self { signature: Signature::any(1, Volatility::Immutable) }))
    }
}

/// Texts in the order of the intervals' lengths.
fn keys_of(intervals: &ArrayRef) -> DfResult<ArrayRef> {
    let Some(intervals) = intervals.as_primitive_opt::<IntervalMonthDayNanoType>() else {
        return exec_err!("an interval was expected");
    };
    // (Without their sign, numbers have the order of their digits.)
    let key = |length: i128| format!("{:032x}", length.cast_unsigned() ^ (1 << 127));
    let keys = intervals.iter().map(|value| value.map(|value| key(interval_length(&value))));
    Ok(Arc::new(keys.collect::<StringViewArray>()))
}

impl ScalarUDFImpl for IntervalKey {
    fn name(&self) -> &str {
        INTERVAL_KEY
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, types: &[DataType]) -> DfResult<DataType> {
        Ok(match &types[0] {
            DataType::List(_) => DataType::new_list(DataType::Utf8View, true),
            _ => DataType::Utf8View,
        })
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> DfResult<ColumnarValue> {
        let values = args.args[0].to_array(args.number_rows)?;
        let Some(lists) = values.as_list_opt::<i32>() else { return Ok(ColumnarValue::Array(keys_of(&values)?)) };
        let field = Arc::new(Field::new_list_field(DataType::Utf8View, true));
        let (offsets, nulls) = (lists.offsets().clone(), lists.nulls().cloned());
        Ok(ColumnarValue::Array(Arc::new(ListArray::try_new(field, offsets, keys_of(lists.values())?, nulls)?)))
    }
}
