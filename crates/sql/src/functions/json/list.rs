//! Lists of documents, on their way to become documents themselves.
//!
//! Law: the list is as it is; its field says that the elements are documents, which a column's does
//! not where rows are computed.

use std::sync::Arc;

use arrow::datatypes::Field;
use datafusion_expr::{Expr, ScalarUDF};

use crate::functions::same_value::SameValue;
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

/// The function.
pub(super) fn udf() -> Arc<ScalarUDF> {
    SameValue::udf(MARKED_LIST, |field: &Field| DocumentForm::Json.mark_list(field.clone()))
}
