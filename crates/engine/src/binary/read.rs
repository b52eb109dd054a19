//! Values read as PostgreSQL's `recv` functions read them.
//!
//! Law: no length is believed before its bytes are there.

use std::sync::Arc;

use anabranch_batch::numeric;
use anabranch_sql::pg_types::{data_type, element_of, oid};
use arrow::array::{ArrayRef, StringViewArray};
use arrow::datatypes::{DataType, IntervalMonthDayNano};
use datafusion_common::ScalarValue;

use super::{EPOCH_DAYS, EPOCH_MICROS};

/// A day, in microseconds: the last time of day.
const DAY_MICROS: i64 = 86_400_000_000;

/// The dates that PostgreSQL has, from 4713-11-24 BC to 5874897-12-31, in days since 1970.
const DATES: std::ops::Range<i32> = -2_440_588..2_145_042_906;

/// Where the first of them begins, in microseconds since 1970.
const FIRST_MICROS: i64 = DATES.start as i64 * DAY_MICROS;

/// Why bytes are no value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Misread {
    /// They are not as the type's `send` function writes them.
    Malformed,
    /// They are a text that is not UTF-8, or has a zero byte.
    NoText,
    /// They are an array of several dimensions.
    Dimensions,
}

/// The value that these bytes are, of a type of PostgreSQL named by its number there, as an array
/// of one row. A type that is not known here is read as text.
///
/// # Errors
/// See [`Misread`].
pub fn read(of: u32, bytes: &[u8]) -> Result<ArrayRef, Misread> {
    match element_of(of) {
        Some(_) => list(bytes),
        None => scalar(of, bytes)?.to_array().map_err(|_| Misread::Malformed),
    }
}

fn fixed<const N: usize>(bytes: &[u8]) -> Result<[u8; N], Misread> {
    bytes.try_into().map_err(|_| Misread::Malformed)
}

/// A text as an array of one row.
///
/// # Errors
/// [`Misread::NoText`].
pub fn text(bytes: &[u8]) -> Result<ArrayRef, Misread> {
    let text = std::str::from_utf8(bytes).ok().filter(|text| !text.contains('\0')).ok_or(Misread::NoText)?;
    Ok(Arc::new(StringViewArray::from(vec![text])))
}

fn scalar(of: u32, bytes: &[u8]) -> Result<ScalarValue, Misread> {
    Ok(match of {
        oid::BOOL => ScalarValue::Boolean(Some(fixed::<1>(bytes)?[0] != 0)),
        oid::INT2 => ScalarValue::Int16(Some(i16::from_be_bytes(fixed(bytes)?))),
        oid::INT4 => ScalarValue::Int32(Some(i32::from_be_bytes(fixed(bytes)?))),
        oid::INT8 => ScalarValue::Int64(Some(i64::from_be_bytes(fixed(bytes)?))),
        oid::OID => ScalarValue::UInt32(Some(u32::from_be_bytes(fixed(bytes)?))),
        oid::FLOAT4 => ScalarValue::Float32(Some(f32::from_be_bytes(fixed(bytes)?))),
        oid::FLOAT8 => ScalarValue::Float64(Some(f64::from_be_bytes(fixed(bytes)?))),
        oid::BYTEA => ScalarValue::BinaryView(Some(bytes.to_vec())),
        oid::DATE => {
            let days = i32::from_be_bytes(fixed(bytes)?);
            let days = match days {
                // (The ends of time are the same there.)
                i32::MAX | i32::MIN => days,
                _ => days.checked_add(EPOCH_DAYS).filter(|days| DATES.contains(days)).ok_or(Misread::Malformed)?,
            };
            ScalarValue::Date32(Some(days))
        }
        oid::TIME => match i64::from_be_bytes(fixed(bytes)?) {
            micros @ 0..=DAY_MICROS => ScalarValue::Time64Microsecond(Some(micros)),
            _ => return Err(Misread::Malformed),
        },
        oid::TIMESTAMP | oid::TIMESTAMPTZ => {
            let micros = i64::from_be_bytes(fixed(bytes)?);
            let micros = match micros {
                i64::MAX | i64::MIN => micros,
                _ => {
                    let micros = micros.checked_add(EPOCH_MICROS);
                    micros.filter(|micros| *micros >= FIRST_MICROS).ok_or(Misread::Malformed)?
                }
            };
            let zone = (of == oid::TIMESTAMPTZ).then(|| "UTC".into());
            ScalarValue::TimestampMicrosecond(Some(micros), zone)
        }
        oid::INTERVAL => interval(bytes)?,
        oid::NUMERIC => number(bytes)?,
        oid::UUID => {
            let hex: String = fixed::<16>(bytes)?.iter().map(|byte| format!("{byte:02x}")).collect();
            let groups = [&hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..]];
            ScalarValue::Utf8View(Some(groups.join("-")))
        }
        oid::JSONB => match bytes.split_first() {
            Some((1, text)) => text_value(text)?,
            _ => return Err(Misread::Malformed),
        },
        // All others are text: names, json, and what is not known here.
        _ => text_value(bytes)?,
    })
}

fn text_value(bytes: &[u8]) -> Result<ScalarValue, Misread> {
    ScalarValue::try_from_array(&text(bytes)?, 0).map_err(|_| Misread::NoText)
}

fn interval(bytes: &[u8]) -> Result<ScalarValue, Misread> {
    let bytes: [u8; 16] = fixed(bytes)?;
    let micros = i64::from_be_bytes(bytes[..8].try_into().expect("eight bytes"));
    let days = i32::from_be_bytes(bytes[8..12].try_into().expect("four bytes"));
    let months = i32::from_be_bytes(bytes[12..].try_into().expect("four bytes"));
    let nanoseconds = micros.checked_mul(1000).ok_or(Misread::Malformed)?;
    Ok(ScalarValue::IntervalMonthDayNano(Some(IntervalMonthDayNano { months, days, nanoseconds })))
}

/// The inverse of [`number`](super::write::number).
fn number(bytes: &[u8]) -> Result<ScalarValue, Misread> {
    if bytes.len() < 8 || !bytes.len().is_multiple_of(2) {
        return Err(Misread::Malformed);
    }
    let shorts: Vec<u16> = bytes.chunks(2).map(|pair| u16::from_be_bytes([pair[0], pair[1]])).collect();
    let [n_groups, weight, sign, scale] = [shorts[0], shorts[1], shorts[2], shorts[3]];
    let groups = &shorts[4..];
    if usize::from(n_groups) != groups.len() || groups.iter().any(|group| *group > 9_999) || scale > 0x3fff {
        return Err(Misread::Malformed);
    }
    let text = match sign {
        0xC000 => "NaN".to_owned(),
        0xD000 => "Infinity".to_owned(),
        0xF000 => "-Infinity".to_owned(),
        0 | 0x4000 => decimal_text(groups, i32::from(weight as i16), sign == 0x4000, usize::from(scale)),
        _ => return Err(Misread::Malformed),
    };
    let number = numeric::parse(&text).map_err(|_| Misread::Malformed)?;
    let mut encoded = Vec::new();
    numeric::encode(&number, &mut encoded);
    Ok(ScalarValue::LargeBinary(Some(encoded)))
}

fn list(bytes: &[u8]) -> Result<ArrayRef, Misread> {
    let int = |at: usize| -> Result<i32, Misread> {
        let four = bytes.get(at..at + 4).ok_or(Misread::Malformed)?;
        Ok(i32::from_be_bytes(four.try_into().expect("four bytes")))
    };
    let (n_dimensions, element) = (int(0)?, int(8)? as u32);
    let length = match n_dimensions {
        0 => 0,
        1 => usize::try_from(int(12)?).map_err(|_| Misread::Malformed)?,
        _ => return Err(Misread::Dimensions),
    };
    let mut rest = bytes.get(if n_dimensions == 0 { 12 } else { 20 }..).ok_or(Misread::Malformed)?;
    let element_type = data_type(element).unwrap_or(DataType::Utf8View);
    let null = ScalarValue::try_from(&element_type).map_err(|_| Misread::Malformed)?;
    let mut values = Vec::new();
    for _ in 0..length {
        let (head, behind) = rest.split_at_checked(4).ok_or(Misread::Malformed)?;
        let n_bytes = i32::from_be_bytes(head.try_into().expect("four bytes"));
        rest = behind;
        if n_bytes == -1 {
            values.push(null.clone());
            continue;
        }
        let n_bytes = usize::try_from(n_bytes).map_err(|_| Misread::Malformed)?;
        let (value, behind) = rest.split_at_checked(n_bytes).ok_or(Misread::Malformed)?;
        values.push(scalar(element, value)?);
        rest = behind;
    }
    Ok(ScalarValue::new_list_nullable(&values, &element_type))
}

fn decimal_text(groups: &[u16], weight: i32, is_negative: bool, scale: usize) -> String {
    let group_at = |place: i32| -> u16 {
        usize::try_from(weight - place).ok().and_then(|at| groups.get(at)).copied().unwrap_or(0)
    };
    let mut text = String::from(if is_negative { "-" } else { "" });
    match weight >= 0 {
        true => (0..=weight).rev().for_each(|place| text.push_str(&format!("{:04}", group_at(place)))),
        false => text.push('0'),
    }
    if scale > 0 {
        let n_groups = scale.div_ceil(4) as i32;
        let part: String = (1..=n_groups).map(|n| format!("{:04}", group_at(-n))).collect();
        text.push('.');
        text.push_str(&part[..scale]);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::super::write;
    use super::*;
    use anabranch_sql::pg_types::PgType;
    use arrow::datatypes::Field;

    #[test]
    fn numbers_come_back_as_they_were_sent() {
        for text in ["0", "1", "-1", "12345.678", "0.0001", "-0.000012", "99999999999999999999.5", "10000", "NaN"] {
            let mut bytes = Vec::new();
            write::number(text, &mut bytes).unwrap();
            let shown = anabranch_sql::output::shown_column(&read(oid::NUMERIC, &bytes).unwrap());
            let mut out = Vec::new();
            write::text_writer(&shown)(0, &mut out).unwrap();
            assert_eq!(String::from_utf8(out).unwrap(), text);
        }
    }

    #[test]
    fn dates_and_times_that_postgresql_does_not_have_are_no_values() {
        let moment = FIRST_MICROS - EPOCH_MICROS;
        let date = DATES.start - EPOCH_DAYS;
        for (of, first) in [(oid::TIME, 0), (oid::TIMESTAMP, moment), (oid::TIMESTAMPTZ, moment)] {
            assert!(read(of, &i64::to_be_bytes(first)).is_ok());
            assert_eq!(read(of, &i64::to_be_bytes(first - 1)).unwrap_err(), Misread::Malformed);
        }
        assert!(read(oid::TIME, &DAY_MICROS.to_be_bytes()).is_ok());
        assert_eq!(read(oid::TIME, &(DAY_MICROS + 1).to_be_bytes()).unwrap_err(), Misread::Malformed);
        assert!(read(oid::DATE, &date.to_be_bytes()).is_ok());
        assert_eq!(read(oid::DATE, &(date - 1).to_be_bytes()).unwrap_err(), Misread::Malformed);
        assert_eq!(read(oid::DATE, &(DATES.end - EPOCH_DAYS).to_be_bytes()).unwrap_err(), Misread::Malformed);
        assert!(read(oid::DATE, &i32::MIN.to_be_bytes()).is_ok(), "the end of time");
    }

    #[test]
    fn values_come_back_as_they_were_sent() {
        let ints =
            ScalarValue::new_list_nullable(&[ScalarValue::Int32(Some(1)), ScalarValue::Int32(None)], &DataType::Int32);
        let interval = IntervalMonthDayNano { months: 1, days: -2, nanoseconds: 3_000 };
        let cases = [
            ScalarValue::Boolean(Some(true)),
            ScalarValue::Int16(Some(-3)),
            ScalarValue::Int64(Some(i64::MIN)),
            ScalarValue::Float64(Some(1.5)),
            ScalarValue::Utf8View(Some("é".into())),
            ScalarValue::BinaryView(Some(vec![0, 255])),
            ScalarValue::Date32(Some(-1)),
            ScalarValue::Date32(Some(i32::MAX)),
            ScalarValue::TimestampMicrosecond(Some(i64::MIN), None),
            ScalarValue::TimestampMicrosecond(Some(1), None),
            ScalarValue::TimestampMicrosecond(Some(-1), Some("UTC".into())),
            ScalarValue::IntervalMonthDayNano(Some(interval)),
            ScalarValue::List(ints),
        ];
        for case in cases {
            let column = case.to_array().unwrap();
            let of = PgType::of(&Field::new("", case.data_type(), true)).oid;
            let mut bytes = Vec::new();
            write::writer(&column, of, false).unwrap()(0, &mut bytes).unwrap();
            assert_eq!(ScalarValue::try_from_array(&read(of, &bytes).unwrap(), 0).unwrap(), case);
        }
    }
}
