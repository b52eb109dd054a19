//! `float_to_numeric(x)`: what a cast of a float to `numeric` means.
//!
//! Law: the decimal of as many digits as the float is sure of, 15 for `double precision` and 6 for
//! `real`, rounded half away from zero to the scale, as in PostgreSQL; Arrow would take the binary
//! fraction to its last bit, so that `0.285::numeric(10,2)` is 0.28. Cost: each value is written
//! and read again.

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, Decimal128Array};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Float32Type, Float64Type};
use datafusion_common::tree_node::Transformed;
use datafusion_common::{DFSchema, Result as DfResult, exec_err, internal_err};
use datafusion_expr::{Expr, ExprSchemable};

use crate::functions::conversions::Conversion;
use crate::resolve::value_errors::field_overflow;

/// Digits that a `double precision` keeps of any decimal.
const DOUBLE_DIGITS: usize = 15;

/// Digits that a `real` keeps of any decimal.
const REAL_DIGITS: usize = 6;

/// A cast of a float to a decimal, made ours.
pub(crate) fn round_float(expr: Expr, schema: &DFSchema) -> DfResult<Transformed<Expr>> {
    match expr {
        Expr::Cast(cast)
            if matches!(cast.field.data_type(), DataType::Decimal128(..))
                && cast.expr.get_type(schema).is_ok_and(|from| from.is_floating()) =>
        {
            Ok(Transformed::yes(Conversion::call("float_to_numeric", *cast.expr, cast.field.data_type(), convert)))
        }
        other => Ok(Transformed::no(other)),
    }
}

pub(crate) fn convert(floats: &ArrayRef, to: &DataType) -> DfResult<ArrayRef> {
    let DataType::Decimal128(precision, scale) = *to else {
        return internal_err!("float_to_numeric yields decimals");
    };
    let read = |text: String, value: f64| match unscaled(&text, precision, scale) {
        Some(digits) => Ok(digits),
        None if value.is_finite() => exec_err!("{}: {value}", field_overflow(to)),
        None => exec_err!("cannot convert {value} to numeric"),
    };
    let digits: Decimal128Array = if *floats.data_type() == DataType::Float32 {
        let digits = |value: f32| read(format!("{value:.*e}", REAL_DIGITS - 1), f64::from(value));
        let floats = floats.as_primitive::<Float32Type>();
        floats.iter().map(|value| value.map(digits).transpose()).collect::<DfResult<_>>()?
    } else {
        let floats = cast(floats, &DataType::Float64)?;
        let digits = |value: f64| read(format!("{value:.*e}", DOUBLE_DIGITS - 1), value);
        let floats = floats.as_primitive::<Float64Type>();
        floats.iter().map(|value| value.map(digits).transpose()).collect::<DfResult<_>>()?
    };
    Ok(Arc::new(digits.with_precision_and_scale(precision, scale)?))
}

/// The digits of `1.2345e6` at a scale, rounded half away from zero; `None` where they do not fit.
fn unscaled(scientific: &str, precision: u8, scale: i8) -> Option<i128> {
    let (mantissa, exponent) = scientific.split_once('e')?;
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits: i128 = format!("{whole}{fraction}").parse().ok()?;
    let shift = exponent.parse::<i32>().ok()? - i32::try_from(fraction.len()).ok()? + i32::from(scale);
    let value = if digits == 0 {
        0
    } else if shift >= 0 {
        digits.checked_mul(10i128.checked_pow(shift.unsigned_abs())?)?
    } else {
        match 10i128.checked_pow(shift.unsigned_abs()) {
            Some(unit) => (digits + digits.signum() * (unit / 2)) / unit,
            None => 0,
        }
    };
    let fits = value.unsigned_abs() < 10u128.pow(u32::from(precision));
    fits.then_some(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimals_of_floats_are_rounded_half_away_from_zero() {
        let double = |value: f64, scale| unscaled(&format!("{value:.14e}"), 38, scale);
        for (value, scale, expected) in [
            (0.285, 2, Some(29)),
            (-0.285, 2, Some(-29)),
            (1e20, 4, Some(10i128.pow(24))),
            (0.1 + 0.2, 10, Some(3_000_000_000)),
            (123_456.0, -2, Some(1235)),
            (4e-30, 10, Some(0)),
            (0.0, 10, Some(0)),
            (1e30, 10, None),
            (f64::NAN, 2, None),
            (f64::INFINITY, 2, None),
        ] {
            assert_eq!(double(value, scale), expected, "{value} at {scale}");
        }
        assert_eq!(unscaled(&format!("{:.5e}", 0.1f32), 38, 10), Some(1_000_000_000));
    }
}
