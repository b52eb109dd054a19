//! Literals in quotes beside values of other types: they have those types, as in PostgreSQL; DataFusion would make text of all, or refuse.
//!
//! Beside decimals a literal is a decimal of its own digits: `n < '2.254'` is not rounded to the column's scale.

use arrow::datatypes::{DataType, Decimal128Type, DecimalType, TimeUnit};
use datafusion_common::ScalarValue;
use datafusion_expr::{Expr, cast};

use crate::functions::conversions::ByteaIn;
use crate::passes::expr::common_type::float_among;
use crate::resolve::types::{DECIMAL_DIGITS_MAX, is_text};

/// Reads the literals among values that must be of one type; `types` are those of the values. Returns whether there were some.
pub(crate) fn read_literals(values: &mut [&mut Expr], types: &mut [DataType]) -> bool {
    let is_open = |(value, is): (&&mut Expr, &DataType)| is.is_null() || is_literal_text(value);
    let beside: Vec<DataType> =
        values.iter().zip(&*types).filter(|of| !is_open((of.0, of.1))).map(|(_, is)| is.clone()).collect();
    if beside.is_empty() || beside.iter().any(is_text) {
        return false;
    }
    let mut is_changed = false;
    for (value, is) in values.iter_mut().zip(types) {
        if let Some((read, as_type)) = read_literal(value, &beside) {
            (**value, *is) = (read, as_type);
            is_changed = true;
        }
    }
    is_changed
}

/// A literal in quotes as a value beside others, and its type.
pub(crate) fn read_literal(value: &Expr, beside: &[DataType]) -> Option<(Expr, DataType)> {
    let Expr::Literal(literal, _) = value else { return None };
    if !is_literal_text(value) {
        return None;
    }
    let among = |wanted: fn(&DataType) -> bool| beside.iter().find(|is| wanted(is)).cloned();
    let typed = float_among(beside)
        .or_else(|| among(|is| matches!(is, DataType::Timestamp(_, Some(_)))))
        .or_else(|| among(|is| matches!(is, DataType::Timestamp(_, None))))
        .or_else(|| among(DataType::is_decimal))
        .or_else(|| among(|is| *is == DataType::Int64))
        .or_else(|| among(DataType::is_integer))
        .or_else(|| among(is_read))?;
    if typed.is_decimal()
        && let Some(decimal) = literal.try_as_str().flatten().and_then(decimal)
    {
        let own = decimal.data_type();
        return Some((Expr::Literal(decimal, None), own));
    }
    let read = match &typed {
        DataType::Binary | DataType::BinaryView => ByteaIn::udf().call(vec![value.clone()]),
        _ => cast(value.clone(), typed.clone()),
    };
    Some((read, typed))
}

fn is_literal_text(value: &Expr) -> bool {
    matches!(value, Expr::Literal(literal, _) if is_text(&literal.data_type()))
}

fn is_read(beside: &DataType) -> bool {
    use DataType as D;
    matches!(beside, D::Date32 | D::Time64(TimeUnit::Microsecond) | D::Interval(_))
        || matches!(beside, D::Boolean | D::Binary | D::BinaryView)
}

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
fn decimal(text: &str) -> Option<ScalarValue> {
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
