//! Subscripts of arrays of arrays.
//!
//! ```text
//! a[1]  of an integer[]        element 1        a[1]     of an integer[][]     NULL
//!                                               a[1][2]  of an integer[][]     element 2 of row 1
//! ```
//!
//! In PostgreSQL an array has one type whatever its dimensions, and with fewer subscripts than
//! dimensions there is no element. Here the type has the dimensions, so the types decide.

use std::hash::Hash;
use std::sync::Arc;

use arrow::datatypes::{DataType, FieldRef};
use datafusion_common::tree_node::Transformed;
use datafusion_common::{DFSchema, Result as DfResult, ScalarValue};
use datafusion_expr::{
    ColumnarValue, Expr, ExprSchemable, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
    Volatility,
};

/// The function around an element that was taken by all its subscripts.
pub(crate) const SUBSCRIPTED: &str = "__subscripted";

pub(super) fn udf() -> Arc<ScalarUDF> {
    Arc::new(ScalarUDF::from(Subscripted { signature: Signature::any(1, Volatility::Immutable) }))
}

/// Takes the function away: an element as it is, and NULL in place of an array.
pub(crate) fn settle_subscripts(expr: Expr, schema: &DFSchema) -> DfResult<Transformed<Expr>> {
    let mut call = match expr {
        Expr::ScalarFunction(call) if call.func.name() == SUBSCRIPTED => call,
        other => return Ok(Transformed::no(other)),
    };
    let element = call.args.swap_remove(0);
    let is = element.get_type(schema)?;
    Ok(Transformed::yes(match innermost(&is) {
        Some(innermost) => Expr::Literal(ScalarValue::try_from(innermost)?, None),
        None => element,
    }))
}

/// The type of the elements within all lists; `None` of what is no list.
fn innermost(is: &DataType) -> Option<&DataType> {
    match is {
        DataType::List(element) => Some(innermost(element.data_type()).unwrap_or(element.data_type())),
        _ => None,
    }
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Subscripted {
    signature: Signature,
}

impl ScalarUDFImpl for Subscripted {
    fn name(&self) -> &str {
        SUBSCRIPTED
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, types: &[DataType]) -> DfResult<DataType> {
        Ok(innermost(&types[0]).unwrap_or(&types[0]).clone())
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs) -> DfResult<FieldRef> {
        let field = &args.arg_fields[0];
        Ok(match innermost(field.data_type()) {
            Some(innermost) => Arc::new(field.as_ref().clone().with_data_type(innermost.clone()).with_nullable(true)),
            None => field.clone(),
        })
    }

    /// (It is taken away before rows are computed.)
    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> DfResult<ColumnarValue> {
        Ok(match innermost(args.arg_fields[0].data_type()) {
            Some(innermost) => ColumnarValue::Scalar(ScalarValue::try_from(innermost)?),
            None => args.args[0].clone(),
        })
    }
}
