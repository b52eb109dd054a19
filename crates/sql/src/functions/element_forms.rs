//! What casts to arrays of documents and uuids mean: each text in the form of the type, or an
//! error.
//!
//! Cost: one pass over the elements.

use std::sync::Arc;

use anabranch_batch::TextLimit;
use arrow::datatypes::{DataType, Field, FieldRef};
use datafusion_common::{Result as DfResult, exec_datafusion_err};
use datafusion_expr::{
    ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};

use crate::resolve::documents::marked_list;

/// The types, and the functions that read their arrays.
const READERS: [(TextLimit, &str); 3] =
    [(TextLimit::Uuid, "__uuids_in"), (TextLimit::Json, "__jsons_in"), (TextLimit::Jsonb, "__jsonbs_in")];

/// The function that reads arrays whose elements have this form.
pub(crate) fn list_reader_of(limit: TextLimit) -> Option<&'static str> {
    READERS.iter().find(|(of, _)| *of == limit).map(|(_, name)| *name)
}

/// All functions of this module.
pub(crate) fn all() -> impl Iterator<Item = Arc<ScalarUDF>> {
    (0..READERS.len())
        .map(|at| Arc::new(ScalarUDF::from(ReadElements { at, signature: Signature::any(1, Volatility::Immutable) })))
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct ReadElements {
    /// Its place among the readers.
    at: usize,
    signature: Signature,
}

impl ScalarUDFImpl for ReadElements {
    fn name(&self) -> &str {
        READERS[self.at].1
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, arg_types: &[DataType]) -> DfResult<DataType> {
        Ok(arg_types[0].clone())
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs) -> DfResult<FieldRef> {
        let field = Field::new(self.name(), args.arg_fields[0].data_type().clone(), true);
        Ok(Arc::new(marked_list(field, READERS[self.at].0)))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> DfResult<ColumnarValue> {
        let lists = args.args[0].to_array(args.number_rows)?;
        let limit = READERS[self.at].0;
        let read = limit.fit_elements(&lists);
        Ok(ColumnarValue::Array(read.map_err(|text| exec_datafusion_err!("{}", limit.misfit(&text)))?))
    }
}
