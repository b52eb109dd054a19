//! Decimals read from text, with the digits that are written.

use arrow::array::{Decimal128Array, StringViewArray};
use datafusion_common::ScalarValue;

use crate::functions::input::trimmed;
use crate::resolve::type_names::DECIMAL_DIGITS_MAX;

/// A decimal of as many digits as are written; `None` if it is none, or has too many.
pub(crate) fn decimal(text: &str) -> Option<ScalarValue> {
    let text = trimmed(text);
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

/// Digits that 64 bits hold whatever they are.
const DIGITS_OF_LONG: usize = 18;

/// Texts of decimals of a type; `None` unless each is a sign and digits that the type has, a point
/// among them: others are left to the library, which rounds.
pub(crate) fn read_plain(texts: &StringViewArray, digits: u8, scale: i8) -> Option<Decimal128Array> {
    let scale = usize::try_from(scale).ok()?;
    let value = |text: Option<&str>| match text {
        Some(text) => Some(Some(plain_value(text.as_bytes(), usize::from(digits), scale)?)),
        None => Some(None),
    };
    let values = texts.iter().map(value).collect::<Option<Decimal128Array>>()?;
    values.with_precision_and_scale(digits, scale as i8).ok()
}

fn plain_value(text: &[u8], digits: usize, scale: usize) -> Option<i128> {
    let (sign, text) = match text.split_first() {
        Some((b'-', rest)) => (-1, rest),
        _ => (1, text),
    };
    let mut value: i64 = 0;
    let mut point = None;
    if text.len() > DIGITS_OF_LONG {
        return None;
    }
    for (at, byte) in text.iter().enumerate() {
        match byte {
            b'0'..=b'9' => value = value * 10 + i64::from(byte - b'0'),
            b'.' if point.is_none() => point = Some(at),
            _ => return None,
        }
    }
    let n_fraction = point.map_or(0, |point| text.len() - point - 1);
    let n_whole = text.len() - n_fraction - usize::from(point.is_some());
    let n_zeros = scale.checked_sub(n_fraction)?;
    if n_whole == 0 || n_whole + scale > digits.min(DIGITS_OF_LONG) {
        return None;
    }
    Some(i128::from(sign * value * 10i64.pow(n_zeros as u32)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::array::{ArrayRef, AsArray};
    use arrow::compute::{CastOptions, cast_with_options};
    use arrow::datatypes::{DataType, Decimal128Type};
    use std::sync::Arc;

    /// What is read at once is what the library reads.
    #[test]
    fn plain_decimals_are_those_of_the_library() {
        let strict = CastOptions { safe: false, ..CastOptions::default() };
        let mut n_read = 0;
        for text in [
            "0",
            "-0",
            "7",
            "7.",
            ".5",
            "-1.5",
            "1.50",
            "1.505",
            "-12345678.91",
            "99999.99",
            "100000",
            "0.01",
            "+1",
            "",
            "-",
            ".",
            "-.5",
            "1e3",
            " 1",
            "1 ",
            "1.2.3",
            "x",
            "123456789012345678",
            "1234567890123456789",
            "0000000000000001.25",
            "99999999999999999.9",
            "NaN",
        ] {
            for (digits, scale) in [(5, 2), (7, 2), (15, 2), (18, 2), (38, 10), (5, 0), (4, 4)] {
                let texts = StringViewArray::from(vec![Some(text), None]);
                let Some(read) = read_plain(&texts, digits, scale) else { continue };
                n_read += 1;
                let column: ArrayRef = Arc::new(texts);
                let wanted = cast_with_options(&column, &DataType::Decimal128(digits, scale), &strict);
                let wanted = wanted.unwrap_or_else(|error| panic!("{text} ({digits}, {scale}): {error}"));
                assert_eq!(&read, wanted.as_primitive::<Decimal128Type>(), "{text} ({digits}, {scale})");
            }
        }
        assert!(n_read > 40, "{n_read} are few");
    }

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
