//! `ORDER BY n RANGE BETWEEN 1 PRECEDING ..` over a plain `numeric`: the key as a text.
//!
//! DataFusion gives the offsets of a frame the type of the key, and knows none of plain numerics;
//! offsets over a text stay as they are written. The key is put back where frames are translated.

use std::sync::Arc;

use arrow::datatypes::DataType;
use datafusion_common::{Result as DfResult, internal_err};
use datafusion_expr::{
    ColumnarValue, Expr, Operator, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};

use super::decimal_text::decimal;
use super::numerics::plain_operation;

const NAME: &str = "__range_key";

/// The key of a frame, until frames are translated.
#[derive(Debug, PartialEq, Eq, Hash)]
struct RangeKey {
    signature: Signature,
}

/// The key of a frame over plain numerics as the planner is to see it. (It is said to be volatile,
/// so that it is not made a column below.)
pub(crate) fn range_key(key: Expr) -> Expr {
    let signature = Signature::any(1, Volatility::Volatile);
    Arc::new(ScalarUDF::from(RangeKey { signature })).call(vec![key])
}

/// The key itself.
pub(crate) fn key_within(expr: &Expr) -> Option<&Expr> {
    match expr {
        Expr::ScalarFunction(call) if call.func.name() == NAME => call.args.first(),
        _ => None,
    }
}

/// A plain numeric plus or minus an offset that is written out; `None` for one that is no number
/// from zero on.
pub(crate) fn moved(key: &Expr, operator: Operator, offset: &str) -> Option<Expr> {
    let offset = decimal(offset).filter(|_| !offset.trim_start().starts_with('-'))?;
    let types = (&anabranch_batch::numeric::TYPE, &offset.data_type());
    plain_operation(operator, key, &Expr::Literal(offset.clone(), None), types)
}

impl ScalarUDFImpl for RangeKey {
    fn name(&self) -> &str {
        NAME
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _types: &[DataType]) -> DfResult<DataType> {
        Ok(DataType::Utf8View)
    }

    fn invoke_with_args(&self, _args: ScalarFunctionArgs) -> DfResult<ColumnarValue> {
        internal_err!("the key of a frame is translated with its frame")
    }
}
