//! Single values from text: what each SQL type accepts.
//!
//! Law: a value is read exactly or not at all (`None`), except that fraction digits beyond a type's
//! own are rounded half away from zero, as PostgreSQL does on input. Spaces around numbers, dates
//! and booleans are ignored. Only plain numerics and bytes are allocated.

use anabranch_batch::numeric::{self, Number};

/// Signed decimal digits.
pub(crate) fn integer(text: &[u8]) -> Option<i64> {
    let text = text.trim_ascii();
    let (negative, digits) = sign(text);
    if digits.is_empty() || digits.len() > 19 {
        return integer_padded(negative, digits);
    }
    let mut value: u64 = 0;
    for &byte in digits {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        value = value * 10 + u64::from(digit);
    }
    signed(negative, value)
}

/// More than 19 digits: only leading zeros make that legal.
fn integer_padded(negative: bool, digits: &[u8]) -> Option<i64> {
    let rest = digits.iter().position(|&byte| byte != b'0').map(|zeros| &digits[zeros..])?;
    if rest.len() > 19 || rest.len() == digits.len() {
        return None;
    }
    let value: u64 = std::str::from_utf8(rest).ok()?.parse().ok()?;
    signed(negative, value)
}

fn signed(negative: bool, value: u64) -> Option<i64> {
    if negative { 0i64.checked_sub_unsigned(value) } else { i64::try_from(value).ok() }
}

fn sign(text: &[u8]) -> (bool, &[u8]) {
    match text.split_first() {
        Some((b'-', rest)) => (true, rest),
        Some((b'+', rest)) => (false, rest),
        _ => (false, text),
    }
}

/// A floating-point number, `NaN` and `Infinity` included.
pub(crate) fn float(text: &[u8]) -> Option<f64> {
    std::str::from_utf8(text.trim_ascii()).ok()?.parse().ok()
}

/// A plain `numeric`.
pub(crate) fn number(text: &[u8]) -> Option<Number> {
    numeric::parse(std::str::from_utf8(text).ok()?).ok()
}

/// A decimal of that precision and scale, as its unscaled value.
pub(crate) fn decimal(text: &[u8], precision: u8, scale: i8) -> Option<i128> {
    let (negative, text) = sign(text.trim_ascii());
    let (mut value, mut point, mut digits) = (0i128, None, 0usize);
    let mut exponent = 0i32;
    for (i, &byte) in text.iter().enumerate() {
        let digit = byte.wrapping_sub(b'0');
        if digit <= 9 {
            value = value.checked_mul(10)?.checked_add(i128::from(digit))?;
            digits += 1;
        } else if byte == b'.' && point.is_none() {
            point = Some(digits);
        } else if matches!(byte, b'e' | b'E') && digits > 0 {
            exponent = i32::try_from(integer(&text[i + 1..])?).ok()?;
            break;
        } else {
            return None;
        }
    }
    if digits == 0 {
        return None;
    }
    let fraction = (digits - point.unwrap_or(digits)) as i32;
    let value = rescale(value, i32::from(scale).checked_sub(fraction)?.checked_add(exponent)?)?;
    let limit = 10i128.checked_pow(u32::from(precision))?;
    (value < limit).then_some(if negative { -value } else { value })
}

/// `value` times ten to `shift`, rounded half up (values are not negative here).
fn rescale(value: i128, shift: i32) -> Option<i128> {
    if shift >= 0 {
        return if value == 0 { Some(0) } else { value.checked_mul(10i128.checked_pow(shift.unsigned_abs())?) };
    }
    match 10i128.checked_pow(shift.unsigned_abs()) {
        Some(divisor) => Some(value / divisor + i128::from(value % divisor >= divisor / 2)),
        None => Some(0),
    }
}

/// What PostgreSQL takes for a boolean.
pub(crate) fn boolean(text: &[u8]) -> Option<bool> {
    let text = text.trim_ascii();
    let is = |word: &str| text.eq_ignore_ascii_case(word.as_bytes());
    match text.first()? {
        b't' | b'T' if text.len() == 1 || is("true") => Some(true),
        b'f' | b'F' if text.len() == 1 || is("false") => Some(false),
        b'1' if text.len() == 1 => Some(true),
        b'0' if text.len() == 1 => Some(false),
        _ if is("yes") || is("y") || is("on") => Some(true),
        _ if is("no") || is("n") || is("off") => Some(false),
        _ => None,
    }
}

/// `YYYY-MM-DD` as days since 1970-01-01. A time of day behind it must be midnight.
pub(crate) fn date(text: &[u8]) -> Option<i32> {
    let text = text.trim_ascii();
    match text.len() {
        8 | 9 => infinity(text).map(|is_negative| if is_negative { i32::MIN } else { i32::MAX }),
        10 => days(text),
        11.. => {
            let micros = timestamp(text, FileZone::Ignore)?;
            (micros.rem_euclid(DAY_MICROS) == 0).then_some((micros / DAY_MICROS) as i32)
        }
        _ => None,
    }
}

/// Whether the text is `-infinity`, if it is that or `infinity`: the extreme values of a type.
fn infinity(text: &[u8]) -> Option<bool> {
    match text.strip_prefix(b"-") {
        Some(word) => word.eq_ignore_ascii_case(b"infinity").then_some(true),
        None => text.eq_ignore_ascii_case(b"infinity").then_some(false),
    }
}

const DAY_MICROS: i64 = 86_400_000_000;

/// Whether an offset such as `+02` at the end of a timestamp moves it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FileZone {
    /// `timestamp`: the wall clock counts, an offset is read and ignored, as PostgreSQL does.
    Ignore,
    /// `timestamp with time zone`: to UTC; no offset means UTC.
    Apply,
}

/// `YYYY-MM-DD[( |T)HH:MM[:SS[.f]][zone]]` as microseconds since the epoch.
pub(crate) fn timestamp(text: &[u8], zone: FileZone) -> Option<i64> {
    let text = text.trim_ascii();
    if text.len() < 10 {
        return infinity(text).map(|is_negative| if is_negative { i64::MIN } else { i64::MAX });
    }
    let (date, rest) = text.split_at(10);
    let midnight = i64::from(days(date)?) * DAY_MICROS;
    let Some((separator, rest)) = rest.split_first() else { return Some(midnight) };
    if !matches!(separator, b' ' | b'T' | b't') {
        return None;
    }
    let (of_day, rest) = time_prefix(rest)?;
    let offset = offset_micros(rest.trim_ascii())?;
    let wall = midnight.checked_add(of_day)?;
    if zone == FileZone::Apply { wall.checked_sub(offset) } else { Some(wall) }
}

/// `HH:MM[:SS[.f]]` as microseconds since midnight.
pub(crate) fn time(text: &[u8]) -> Option<i64> {
    match time_prefix(text.trim_ascii())? {
        (micros, []) => Some(micros),
        _ => None,
    }
}

/// Days of a ten-byte `YYYY-MM-DD`.
fn days(text: &[u8]) -> Option<i32> {
    let [y1, y2, y3, y4, b'-', m1, m2, b'-', d1, d2] = *text else { return None };
    let year = i32::from(two(y1, y2)?) * 100 + i32::from(two(y3, y4)?);
    let (month, day) = (two(m1, m2)?, two(d1, d2)?);
    if !(1..=12).contains(&month) || day == 0 || day > days_of_month(year, month) {
        return None;
    }
    Some(days_from_civil(year, i32::from(month), i32::from(day)))
}

fn days_of_month(year: i32, month: u8) -> u8 {
    match month {
        2 if year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Howard Hinnant, "chrono-compatible low-level date algorithms", `days_from_civil`.
fn days_from_civil(year: i32, month: i32, day: i32) -> i32 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let day_of_year = (153 * (month + if month > 2 { -3 } else { 9 }) + 2) / 5 + day - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    era * 146_097 + day_of_era - 719_468
}

fn two(high: u8, low: u8) -> Option<u8> {
    let (high, low) = (high.wrapping_sub(b'0'), low.wrapping_sub(b'0'));
    (high <= 9 && low <= 9).then_some(high * 10 + low)
}

/// The time of day at the front, and what follows it.
fn time_prefix(text: &[u8]) -> Option<(i64, &[u8])> {
    let (&[h1, h2, b':', m1, m2], mut rest) = text.split_first_chunk::<5>()? else { return None };
    let (hour, minute) = (two(h1, h2)?, two(m1, m2)?);
    let (mut second, mut micros) = (0, 0);
    if let Some((&[b':', s1, s2], behind)) = rest.split_first_chunk::<3>() {
        second = two(s1, s2)?;
        rest = behind;
        if let Some((b'.', digits)) = rest.split_first() {
            let count = digits.iter().take_while(|byte| byte.is_ascii_digit()).count();
            micros = fraction_micros(&digits[..count])?;
            rest = &digits[count..];
        }
    }
    if hour > 23 || minute > 59 || second > 59 {
        return None;
    }
    Some(((i64::from(hour) * 3600 + i64::from(minute) * 60 + i64::from(second)) * 1_000_000 + micros, rest))
}

fn fraction_micros(digits: &[u8]) -> Option<i64> {
    if digits.is_empty() {
        return None;
    }
    let mut micros =
        (0..6).fold(0i64, |micros, i| micros * 10 + i64::from(digits.get(i).map_or(0, |byte| byte - b'0')));
    if digits.get(6).is_some_and(|&byte| byte >= b'5') {
        micros += 1;
    }
    Some(micros)
}

/// `Z`, `UTC`, `+HH`, `+HHMM`, `+HH:MM` or nothing.
fn offset_micros(text: &[u8]) -> Option<i64> {
    let (negative, digits) = match text {
        [] | b"Z" | b"z" | b"UTC" => return Some(0),
        [b'-', rest @ ..] => (true, rest),
        [b'+', rest @ ..] => (false, rest),
        _ => return None,
    };
    let (hours, minutes) = match *digits {
        [h1, h2] => (two(h1, h2)?, 0),
        [h1, h2, m1, m2] | [h1, h2, b':', m1, m2] => (two(h1, h2)?, two(m1, m2)?),
        _ => return None,
    };
    let micros = (i64::from(hours) * 60 + i64::from(minutes)) * 60_000_000;
    (hours <= 15 && minutes <= 59).then_some(if negative { -micros } else { micros })
}

/// `\xDEADBEEF`, or the bytes as they are.
pub(crate) fn bytes(text: &[u8]) -> Option<Vec<u8>> {
    let Some(digits) = text.strip_prefix(b"\\x") else { return Some(text.to_vec()) };
    let nibble = |byte: u8| (byte as char).to_digit(16).map(|digit| digit as u8);
    if !digits.len().is_multiple_of(2) {
        return None;
    }
    digits.chunks(2).map(|pair| Some(nibble(pair[0])? * 16 + nibble(pair[1])?)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_are_read_to_their_limits() {
        assert_eq!(integer(b" -9223372036854775808 "), Some(i64::MIN));
        assert_eq!(integer(b"+9223372036854775807"), Some(i64::MAX));
        assert_eq!(integer(b"00000000000000000000042"), Some(42));
        for bad in ["", "-", "9223372036854775808", "1.0", "1e3", "x", "99999999999999999999"] {
            assert_eq!(integer(bad.as_bytes()), None, "{bad}");
        }
    }

    #[test]
    fn decimals_round_half_away_from_zero() {
        assert_eq!(decimal(b"1.005", 15, 2), Some(101));
        assert_eq!(decimal(b"-1.005", 15, 2), Some(-101));
        assert_eq!(decimal(b"1.004999", 15, 2), Some(100));
        assert_eq!(decimal(b"12.5e1", 15, 2), Some(12500));
        assert_eq!(decimal(b".5", 3, 1), Some(5));
        assert_eq!(decimal(b"0.04", 3, 1), Some(0));
        assert_eq!(decimal(b"0.05", 3, 1), Some(1));
        assert_eq!(decimal(b"100", 4, 2), None);
        assert_eq!(decimal(b"99.995", 4, 2), None);
        for bad in ["", ".", "1.2.3", "e5", "1e", "NaN", "1 2"] {
            assert_eq!(decimal(bad.as_bytes(), 10, 2), None, "{bad}");
        }
    }

    #[test]
    fn dates_are_checked_against_the_calendar() {
        assert_eq!(date(b"1970-01-01"), Some(0));
        assert_eq!(date(b"2000-02-29"), Some(11016));
        assert_eq!(date(b"1969-12-31"), Some(-1));
        assert_eq!(date(b"0001-01-01"), Some(-719_162));
        assert_eq!(date(b"2013-01-01 00:00:00"), Some(15706));
        assert_eq!(date(b" Infinity"), Some(i32::MAX));
        assert_eq!(timestamp(b"-infinity", FileZone::Ignore), Some(i64::MIN));
        for bad in ["1900-02-29", "2013-13-01", "2013-04-31", "2013-4-3", "13-04-2003", "2013-01-01 05:00:00"] {
            assert_eq!(date(bad.as_bytes()), None, "{bad}");
        }
    }

    #[test]
    fn timestamps_know_fractions_and_zones() {
        let noon = 43_200_000_000;
        assert_eq!(timestamp(b"1970-01-01T12:00:00", FileZone::Ignore), Some(noon));
        assert_eq!(timestamp(b"1970-01-01 12:00", FileZone::Ignore), Some(noon));
        assert_eq!(timestamp(b"1970-01-01 12:00:00.0000015", FileZone::Ignore), Some(noon + 2));
        assert_eq!(timestamp(b"1970-01-01 12:00:00+02", FileZone::Apply), Some(noon - 7_200_000_000));
        assert_eq!(timestamp(b"1970-01-01 12:00:00-05:30", FileZone::Apply), Some(noon + 19_800_000_000));
        assert_eq!(timestamp(b"1970-01-01T12:00:00Z", FileZone::Apply), Some(noon));
        assert_eq!(timestamp(b"1970-01-01 12:00:00+02", FileZone::Ignore), Some(noon));
        for bad in
            ["1970-01-01x12:00", "1970-01-01 25:00", "1970-01-01 12:00:61", "1970-01-01 12:00:00.", "1970-01-01 12"]
        {
            assert_eq!(timestamp(bad.as_bytes(), FileZone::Ignore), None, "{bad}");
        }
    }

    #[test]
    fn booleans_and_bytes() {
        assert_eq!(boolean(b"TRUE"), Some(true));
        assert_eq!(boolean(b"n"), Some(false));
        assert_eq!(boolean(b"maybe"), None);
        assert_eq!(bytes(b"\\x00fF"), Some(vec![0, 255]));
        assert_eq!(bytes(b"\\x0"), None);
        assert_eq!(bytes(b"abc"), Some(b"abc".to_vec()));
    }
}
