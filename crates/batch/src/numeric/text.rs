//! Numbers as text, and as floats.

use std::fmt::Write;

use super::number::{Fault, Finite, Number};
use super::whole::Whole;

/// Exponents beyond this make no number, whatever their digits.
const EXPONENT_MAX: i64 = 1 << 20;

/// Why a text is no number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unreadable {
    /// It is none.
    Syntax,
    /// It has too many digits.
    Overflow,
}

impl From<Fault> for Unreadable {
    fn from(_: Fault) -> Self {
        Unreadable::Overflow
    }
}

/// A number as PostgreSQL reads it: spaces around, a sign, digits with a point, an exponent; `NaN`,
/// `inf` and `infinity` in any case.
///
/// # Errors
/// See [`Unreadable`].
pub fn parse(text: &str) -> Result<Number, Unreadable> {
    let text = text.trim_matches(|c: char| c.is_ascii_whitespace() || c == '\u{b}');
    let (is_negative, digits) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let is = |word: &str| digits.eq_ignore_ascii_case(word);
    if is("infinity") || is("inf") {
        return Ok(if is_negative { Number::NegativeInfinity } else { Number::Infinity });
    }
    if text.eq_ignore_ascii_case("nan") {
        return Ok(Number::NaN);
    }
    let (mantissa, exponent) = digits.split_once(['e', 'E']).map_or((digits, "0"), |(mantissa, e)| (mantissa, e));
    let exponent = read_exponent(exponent)?;
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let coefficient = match fraction {
        "" => Whole::from_digits(whole),
        fraction => Whole::from_digits(&format!("{whole}{fraction}")),
    };
    let coefficient = coefficient.ok_or(Unreadable::Syntax)?;
    let coefficient = if is_negative { coefficient.negated() } else { coefficient };
    let scale = fraction.len() as i64 - exponent;
    if coefficient.is_zero() {
        return Ok(Number::new(0, scale.clamp(0, 16_383) as u32));
    }
    if scale.abs() > 2 * EXPONENT_MAX {
        return Err(Unreadable::Overflow);
    }
    let finite = match u32::try_from(scale) {
        Ok(scale) => Finite { coefficient, scale },
        Err(_) if -scale > 131_072 => return Err(Unreadable::Overflow),
        Err(_) => Finite { coefficient: coefficient.shifted(scale.unsigned_abs() as u32), scale: 0 },
    };
    // PostgreSQL cuts what is written beyond the last digit that it keeps.
    let finite = if finite.scale > 16_383 { finite.rounded(16_383) } else { finite };
    Ok(finite.checked()?)
}

fn read_exponent(text: &str) -> Result<i64, Unreadable> {
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(Unreadable::Syntax);
    }
    let exponent = text.parse::<i64>().map_err(|_| Unreadable::Overflow)?;
    if exponent.abs() > EXPONENT_MAX { Err(Unreadable::Overflow) } else { Ok(exponent) }
}

/// Appends the number, all digits written out.
pub fn write(number: &Number, out: &mut String) {
    match number {
        Number::NaN => out.push_str("NaN"),
        Number::Infinity => out.push_str("Infinity"),
        Number::NegativeInfinity => out.push_str("-Infinity"),
        Number::Finite(finite) => {
            let digits = finite.coefficient.abs().to_text();
            let scale = finite.scale as usize;
            if finite.coefficient.is_negative() {
                out.push('-');
            }
            if scale == 0 {
                return out.push_str(&digits);
            }
            write!(out, "{digits:0>width$}", width = scale + 1).expect("writing to a String cannot fail");
            out.insert(out.len() - scale, '.');
        }
    }
}

impl std::fmt::Display for Number {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut text = String::new();
        write(self, &mut text);
        f.pad(&text)
    }
}

/// The nearest double.
pub fn to_f64(number: &Number) -> f64 {
    match number {
        Number::NaN => f64::NAN,
        Number::Infinity => f64::INFINITY,
        Number::NegativeInfinity => f64::NEG_INFINITY,
        Number::Finite(Finite { coefficient: Whole::Small(value), scale: 0 }) => *value as f64,
        Number::Finite(Finite { coefficient: Whole::Small(value), scale })
            if value.unsigned_abs() < 1 << 53 && *scale <= 22 =>
        {
            // Both are exact, so the quotient is rounded once.
            *value as f64 / 10f64.powi(*scale as i32)
        }
        Number::Finite(finite) => {
            let text = format!("{}e-{}", finite.coefficient.to_text(), finite.scale);
            text.parse().unwrap_or(f64::NAN)
        }
    }
}

/// The number of as many digits as a float is sure of: 15 of a `double precision`, 6 of a `real`.
pub fn from_float(value: f64, n_digits: usize) -> Number {
    if value.is_nan() {
        return Number::NaN;
    }
    if value.is_infinite() {
        return if value > 0.0 { Number::Infinity } else { Number::NegativeInfinity };
    }
    parse(&format!("{value:.*e}", n_digits - 1)).unwrap_or(Number::ZERO)
}
