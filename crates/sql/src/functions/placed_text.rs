//! `round(x, 2)::text` of a numeric without a scale: with as many places as it is rounded to.
//!
//! The value itself has no zeros at its end ([`NumericPlaces`]); the call tells how many to write.

use std::sync::Arc;

use anabranch_batch::numeric::{NumericPlaces, TYPE};
use arrow::datatypes::DataType;
use datafusion_common::{DFSchema, Result as DfResult, ScalarValue};
use datafusion_expr::expr::ScalarFunction;
use datafusion_expr::{
    ColumnarValue, Expr, ExprSchemable, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};

/// The places that `round(x, n)` and `trunc(x, n)` give numerics without a scale.
pub(crate) fn places_of(call: &ScalarFunction, schema: &DFSchema) -> Option<NumericPlaces> {
    let [value, Expr::Literal(places, _)] = call.args.as_slice() else { return None };
    if !matches!(call.func.name(), "round" | "trunc") || value.get_type(schema).ok()? != TYPE {
        return None;
    }
    match places.cast_to(&DataType::Int64).ok()? {
        ScalarValue::Int64(Some(places)) => Some(NumericPlaces(u8::try_from(places.max(0)).ok()?)),
        _ => None,
    }
}

/// The text of a rounded numeric; `None` for other values.
pub(crate) fn placed_text(value: &Expr, schema: &DFSchema) -> Option<Expr> {
    let Expr::ScalarFunction(call) = value else { return None };
    let NumericPlaces(places) = places_of(call, schema)?;
    let text = PlacedText { places, signature: Signature::any(1, Volatility::Immutable) };
    Some(Arc::new(ScalarUDF::from(text)).call(vec![value.clone()]))
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct PlacedText {
    places: u8,
    signature: Signature,
}

impl ScalarUDFImpl for PlacedText {
    fn name(&self) -> &str {
        "numeric_to_text"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _arg_types: &[DataType]) -> DfResult<DataType> {
        Ok(DataType::Utf8View)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> DfResult<ColumnarValue> {
        let numbers = args.args[0].to_array(args.number_rows)?;
        Ok(ColumnarValue::Array(NumericPlaces(self.places).shown(&numbers)))
    }
}
