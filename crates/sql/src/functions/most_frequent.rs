//! Of a list in the order of its type, the first of the elements that are equal most often: what
//! `mode()` is of values with several spellings. NULL counts for nothing.
//!
//! ```text
//! __most_frequent_length(list)      of intervals
//! __most_frequent_document(list)    of documents
//! ```
//!
//! Cost: one pass over the elements; of documents, their keys of order.

use std::sync::Arc;

use arrow::array::{AsArray, UInt32Array};
use arrow::compute::take;
use arrow::datatypes::{DataType, Field, FieldRef};
use datafusion_common::{Result as DfResult, exec_err};
use datafusion_expr::{
    ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};

use crate::functions::distinct_lists::Spelling;
use crate::resolve::documents::form_in_list;

#[derive(Debug, PartialEq, Eq, Hash)]
struct MostFrequent {
    by: Spelling,
    signature: Signature,
}

/// All functions of this module.
pub(crate) fn all() -> impl Iterator<Item = Arc<ScalarUDF>> {
    [Spelling::Length, Spelling::Document].into_iter().map(udf)
}

/// The function of one kind of elements.
pub(crate) fn udf(by: Spelling) -> Arc<ScalarUDF> {
    Arc::new(ScalarUDF::from(MostFrequent { by, signature: Signature::any(1, Volatility::Immutable) }))
}

/// The place of the first element of the longest run of equal ones.
fn of_longest_run(keys: &[Option<String>]) -> Option<usize> {
    let mut longest: Option<(usize, usize)> = None;
    let mut start = 0;
    for at in 0..keys.len() {
        if keys[at] != keys[start] {
            start = at;
        }
        let length = at - start + 1;
        if keys[at].is_some() && longest.is_none_or(|(_, known)| length > known) {
            longest = Some((start, length));
        }
    }
    longest.map(|(start, _)| start)
}

impl ScalarUDFImpl for MostFrequent {
    fn name(&self) -> &str {
        match self.by {
            Spelling::Length => "__most_frequent_length",
            _ => "__most_frequent_document",
        }
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, types: &[DataType]) -> DfResult<DataType> {
        Ok(match &types[0] {
            DataType::List(element) => element.data_type().clone(),
            other => other.clone(),
        })
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs) -> DfResult<FieldRef> {
        let list = &args.arg_fields[0];
        let field = Field::new(self.name(), self.return_type(&[list.data_type().clone()])?, true);
        Ok(Arc::new(match form_in_list(list) {
            Some(form) => form.mark(field),
            None => field,
        }))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> DfResult<ColumnarValue> {
        let column = args.args[0].to_array(args.number_rows)?;
        let Some(lists) = column.as_list_opt::<i32>() else { return exec_err!("an array was expected") };
        let keys = self.by.keys(lists.values())?;
        let chosen = lists.value_offsets().windows(2).map(|ends| {
            let (from, to) = (ends[0] as usize, ends[1] as usize);
            of_longest_run(&keys[from..to]).map(|at| (from + at) as u32)
        });
        Ok(ColumnarValue::Array(take(lists.values(), &chosen.collect::<UInt32Array>(), None)?))
    }
}
