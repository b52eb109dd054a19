//! The nearest decimals of a scale to a plain numeric.

use std::sync::Arc;

use anabranch_batch::numeric::{self, Number};
use arrow::array::Decimal128Array;
use arrow::datatypes::DataType;
use datafusion_common::Result as DfResult;
use datafusion_expr::{ColumnarValue, Expr, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility};

use super::numerics::{DIGITS_MAX, readers};

/// `numeric_floor(x)` and `numeric_ceiling(x)`: the nearest decimal of a scale that is not greater,
/// or not less.
#[derive(Debug, PartialEq, Eq, Hash)]
struct AtScale {
    scale: i8,
    is_floor: bool,
    signature: Signature,
}

/// The greatest decimal of a scale that is not above a plain numeric: what decimals of that scale
/// are compared with instead of it. Beyond what decimals of 38 digits reach it is the greatest or
/// least of them.
pub fn floor_at(value: Expr, scale: i8) -> Expr {
    at_scale(value, scale, true)
}

/// The least decimal of a scale that is not below a plain numeric. See [`floor_at`].
pub fn ceiling_at(value: Expr, scale: i8) -> Expr {
    at_scale(value, scale, false)
}

fn at_scale(value: Expr, scale: i8, is_floor: bool) -> Expr {
    let signature = Signature::any(1, Volatility::Immutable);
    Arc::new(ScalarUDF::from(AtScale { scale, is_floor, signature })).call(vec![value])
}

impl AtScale {
    fn nearest(&self, number: &Number) -> i128 {
        let greatest = 10i128.pow(DIGITS_MAX as u32) - 1;
        let Number::Finite(finite) = number else {
            return if number.sign() == Some(-1) { -greatest } else { greatest };
        };
        let scaled = finite.coefficient.shifted(self.scale as u32);
        let (whole, rest) = scaled.divided(&numeric::Whole::power_of_ten(finite.scale));
        let step = match (rest.is_zero(), rest.is_negative(), self.is_floor) {
            (false, true, true) => numeric::Whole::Small(-1),
            (false, false, false) => numeric::Whole::Small(1),
            _ => numeric::Whole::default(),
        };
        let nearest = whole.plus(&step);
        let end = if nearest.is_negative() { -greatest } else { greatest };
        nearest.to_i128().map_or(end, |value| value.clamp(-greatest, greatest))
    }
}

impl ScalarUDFImpl for AtScale {
    fn name(&self) -> &str {
        if self.is_floor { "numeric_floor" } else { "numeric_ceiling" }
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _arg_types: &[DataType]) -> DfResult<DataType> {
        Ok(DataType::Decimal128(DIGITS_MAX as u8, self.scale))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> DfResult<ColumnarValue> {
        let readers = readers(&args)?;
        let values = (0..args.number_rows).map(|row| readers[0].value(row).map(|number| self.nearest(&number)));
        let values = values.collect::<Decimal128Array>().with_precision_and_scale(DIGITS_MAX as u8, self.scale)?;
        Ok(ColumnarValue::Array(Arc::new(values)))
    }
}
