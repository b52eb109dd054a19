//! Functions that give their argument, with another field: what the planner knows of a value, said
//! otherwise.
//!
//! Cost: none; the column is handed on.

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use arrow::datatypes::{DataType, Field, FieldRef};
use datafusion_common::Result as DfResult;
use datafusion_expr::{
    ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};

/// A function of that kind.
#[derive(Debug)]
pub(crate) struct SameValue {
    name: &'static str,
    /// What the field of the argument becomes.
    field: fn(&Field) -> Field,
    signature: Signature,
}

impl SameValue {
    /// The function of that name.
    pub(crate) fn udf(name: &'static str, field: fn(&Field) -> Field) -> Arc<ScalarUDF> {
        let signature = Signature::any(1, Volatility::Immutable);
        Arc::new(ScalarUDF::from(SameValue { name, field, signature }))
    }
}

impl PartialEq for SameValue {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for SameValue {}

impl Hash for SameValue {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.name.hash(state);
    }
}

impl ScalarUDFImpl for SameValue {
    fn name(&self) -> &str {
        self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, types: &[DataType]) -> DfResult<DataType> {
        Ok(types[0].clone())
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs) -> DfResult<FieldRef> {
        Ok(Arc::new((self.field)(args.arg_fields[0].as_ref())))
    }

    fn invoke_with_args(&self, mut args: ScalarFunctionArgs) -> DfResult<ColumnarValue> {
        Ok(args.args.swap_remove(0))
    }
}
