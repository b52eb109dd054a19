//! Decimals read from text, with the digits that are written.

use arrow::datatypes::{Decimal128Type, DecimalType};
use datafusion_common::ScalarValue;

use crate::resolve::type_names::DECIMAL_DIGITS_MAX;

/// `1.5e3` as `1500`.
pub(crate) fn plain_decimal(text: &str) -> Option<String> {
    match decimal(text)? {
        ScalarValue::Decimal128(Some(value), digits, scale) => {
            Some(Decimal128Type::format_decimal(value, digits, scale))
        }
        _ => None,
    }
}

/// A decimal of as many digits as are written; `None` if it is none, or has too many.
pub(crate) fn decimal(text: &str) -> Option<ScalarValue> {
    let text = text.trim();
    let (mantissa, exponent) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
    let (sign, mantissa) = match mantissa.strip_prefix('-') {
        Some(rest) => (-1, rest),
        None => (1, mantissa.strip_prefix('+').unwrap_or(mantissa)),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits = format!("{whole}{fraction}");
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let scale = i32::try_from(fraction.len()).ok()?.checked_sub(exponent.parse().ok()?)?;
    let (value, scale) = match u8::try_from(scale) {
        Ok(scale) => (digits.parse::<i128>().ok()?, scale),
        Err(_) => (digits.parse::<i128>().ok()?.checked_mul(10i128.checked_pow(scale.unsigned_abs())?)?, 0),
    };
    let n_digits = u8::try_from(value.to_string().len()).ok()?.max(scale);
    let fits = n_digits <= DECIMAL_DIGITS_MAX;
    fits.then_some(ScalarValue::Decimal128(Some(sign * value), n_digits, i8::try_from(scale).ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimals_have_the_digits_that_are_written() {
        for (text, expected) in [
            ("2.254", Some((2254, 4, 3))),
            (" -0.05 ", Some((-5, 2, 2))),
            ("1e3", Some((1000, 4, 0))),
            ("+1.5e-3", Some((15, 4, 4))),
            ("7.", Some((7, 1, 0))),
            ("", None),
            ("x", None),
            ("1e40", None),
            ("1e-2147483648", None),
            ("NaN", None),
        ] {
            let expected = expected.map(|(value, digits, scale)| ScalarValue::Decimal128(Some(value), digits, scale));
            assert_eq!(decimal(text), expected, "{text}");
        }
    }
}
