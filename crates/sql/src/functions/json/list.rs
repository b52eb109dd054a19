//! Lists of documents, on their way to become documents themselves.
//!
//! Law: the list is as it is; its field says that the elements are documents, which a column's does
//! not where rows are computed.

use std::sync::Arc;

use arrow::datatypes::{DataType, FieldRef};
use datafusion_common::Result as DfResult;
use datafusion_expr::{
    ColumnarValue, Expr, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};

use crate::resolve::documents::DocumentForm;

const MARKED_LIST: &str = "__document_list";

/// The list in a call that keeps its mark.
pub(super) fn marked(list: Expr) -> Expr {
    udf().call(vec![list])
}

/// Whether a value is such a call.
pub(super) fn is_marked(value: &Expr) -> bool {
    matches!(value, Expr::ScalarFunction(call) if call.func.name() == MARKED_LIST)
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct DocumentList {
    signature: Signature,
}

/// The function.
pub(super) fn udf() -> Arc<ScalarUDF> {
    Arc::new(ScalarUDF::from(DocumentList { signature: Signature::any(1, Volatility::Immutable) }))
}

impl ScalarUDFImpl for DocumentList {
    fn name(&self) -> &str {
        MARKED_LIST
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, types: &[DataType]) -> DfResult<DataType> {
        Ok(types[0].clone())
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs) -> DfResult<FieldRef> {
        Ok(Arc::new(DocumentForm::Json.mark_list(args.arg_fields[0].as_ref().clone())))
    }

    fn invoke_with_args(&self, mut args: ScalarFunctionArgs) -> DfResult<ColumnarValue> {
        Ok(args.args.swap_remove(0))
    }
}
