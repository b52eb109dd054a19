//! Lists in the order of their type, without what equals the element before.
//!
//! ```text
//! __distinct_lengths(list)      of intervals: 1 day equals 24:00:00
//! __distinct_documents(list)    of documents: 1.0 equals 1
//! __distinct_labels(list)       of an enumeration
//! ```
//!
//! Cost: one pass over the elements; of documents, their keys of order.

use std::sync::Arc;

use anabranch_batch::order::interval_length;
use arrow::array::{Array, ArrayRef, AsArray, ListArray, UInt32Array};
use arrow::buffer::OffsetBuffer;
use arrow::compute::{cast, take};
use arrow::datatypes::{DataType, Field, FieldRef, IntervalMonthDayNanoType};
use datafusion_common::{Result as DfResult, exec_datafusion_err, exec_err};
use datafusion_expr::{
    ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};

use crate::functions::json::order_key;

/// What elements are equal by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Spelling {
    Length,
    Document,
    Label,
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct DistinctList {
    by: Spelling,
    signature: Signature,
}

/// All functions of this module.
pub(crate) fn all() -> impl Iterator<Item = Arc<ScalarUDF>> {
    [Spelling::Length, Spelling::Document, Spelling::Label].into_iter().map(udf)
}

/// The function of one kind of elements.
pub(crate) fn udf(by: Spelling) -> Arc<ScalarUDF> {
    Arc::new(ScalarUDF::from(DistinctList { by, signature: Signature::any(1, Volatility::Immutable) }))
}

impl Spelling {
    /// What each element is equal by; `None` for NULL.
    pub(super) fn keys(self, elements: &ArrayRef) -> DfResult<Vec<Option<String>>> {
        if self == Spelling::Length {
            let lengths = elements.as_primitive::<IntervalMonthDayNanoType>().iter();
            return Ok(lengths.map(|value| value.map(|value| interval_length(&value).to_string())).collect());
        }
        let texts = cast(elements, &DataType::Utf8View)?;
        let key = |text: &str| match self {
            Spelling::Document => order_key(text).map_err(|problem| exec_datafusion_err!("{problem}")),
            _ => Ok(text.to_owned()),
        };
        texts.as_string_view().iter().map(|text| text.map(key).transpose()).collect()
    }
}

impl ScalarUDFImpl for DistinctList {
    fn name(&self) -> &str {
        match self.by {
            Spelling::Length => "__distinct_lengths",
            Spelling::Document => "__distinct_documents",
            Spelling::Label => "__distinct_labels",
        }
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, arg_types: &[DataType]) -> DfResult<DataType> {
        Ok(arg_types[0].clone())
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs) -> DfResult<FieldRef> {
        let list = &args.arg_fields[0];
        let field = Field::new(self.name(), list.data_type().clone(), true);
        Ok(Arc::new(field.with_metadata(list.metadata().clone())))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> DfResult<ColumnarValue> {
        let column = args.args[0].to_array(args.number_rows)?;
        let DataType::List(field) = column.data_type().clone() else {
            return exec_err!("what differs is told of a list");
        };
        let lists = column.as_list::<i32>();
        let keys = self.by.keys(lists.values())?;
        let (mut kept, mut lengths) = (Vec::new(), Vec::with_capacity(lists.len()));
        for ends in lists.value_offsets().windows(2) {
            let (from, to) = (ends[0] as usize, ends[1] as usize);
            let before = kept.len();
            kept.extend((from..to).filter(|at| *at == from || keys[*at] != keys[at - 1]).map(|at| at as u32));
            lengths.push(kept.len() - before);
        }
        let values = take(lists.values(), &UInt32Array::from(kept), None)?;
        let offsets = OffsetBuffer::from_lengths(lengths);
        Ok(ColumnarValue::Array(Arc::new(ListArray::try_new(field, offsets, values, lists.nulls().cloned())?)))
    }
}
