//! `mode(x)`, the most frequent value: `mode() WITHIN GROUP (ORDER BY x)` is rewritten to it. Only
//! its type matters: operators compute it.

use std::sync::Arc;

use arrow::datatypes::{DataType, FieldRef};
use datafusion_common::{Result as DfResult, not_impl_err};
use datafusion_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion_expr::{Accumulator, AggregateUDF, AggregateUDFImpl, Signature, Volatility};

/// The function.
pub(crate) fn udaf() -> Arc<AggregateUDF> {
    Arc::new(AggregateUDF::from(FunctionMode { signature: Signature::any(1, Volatility::Immutable) }))
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct FunctionMode {
    signature: Signature,
}

impl AggregateUDFImpl for FunctionMode {
    fn name(&self) -> &str {
        "mode"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, arg_types: &[DataType]) -> DfResult<DataType> {
        Ok(arg_types[0].clone())
    }

    fn accumulator(&self, _args: AccumulatorArgs) -> DfResult<Box<dyn Accumulator>> {
        not_impl_err!("mode is computed by operators")
    }

    fn state_fields(&self, _args: StateFieldsArgs) -> DfResult<Vec<FieldRef>> {
        Ok(vec![])
    }
}
