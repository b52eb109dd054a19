//! Values in the binary format of COPY, as PostgreSQL's `send` and `recv` functions have them.
//!
//! A value is read as its text, which is then read like that of the other formats. Left out: lists
//! and records.

use std::sync::Arc;

use anabranch_batch::TextLimit;
use anabranch_sql::output::{is_plain_numeric, printer};
use arrow::array::{
    ArrayRef, AsArray, Date32Array, IntervalMonthDayNanoArray, Time64MicrosecondArray, TimestampMicrosecondArray,
};
use arrow::datatypes::{
    DataType, Date32Type, Field, Float32Type, Float64Type, Int16Type, Int32Type, Int64Type, IntervalMonthDayNano,
    IntervalMonthDayNanoType, IntervalUnit, Time64MicrosecondType, TimeUnit, TimestampMicrosecondType,
};

use crate::error::Error;

/// What every file begins with.
pub(super) const SIGNATURE: &[u8; 11] = b"PGCOPY\n\xff\r\n\0";

/// Days from 1970 to 2000, where PostgreSQL counts from, and the same in microseconds.
const EPOCH_DAYS: i32 = 10_957;
const EPOCH_MICROS: i64 = EPOCH_DAYS as i64 * 86_400_000_000;

/// Appends a value, without its length. Not called for NULL.
pub(super) type Writer<'a> = Box<dyn Fn(usize, &mut Vec<u8>) -> Result<(), Error> + 'a>;

/// Writes values of a column.
///
/// # Errors
/// `Invalid` for a type that has no binary format here.
pub(super) fn writer<'a>(array: &'a ArrayRef, field: &Field) -> Result<Writer<'a>, Error> {
    macro_rules! number {
        ($type:ty, $shift:expr) => {{
            let values = array.as_primitive::<$type>();
            Box::new(move |row, out| {
                out.extend_from_slice(&(values.value(row) - $shift).to_be_bytes());
                Ok(())
            })
        }};
    }
    let text = || -> Box<dyn Fn(usize) -> String + 'a> {
        let print = printer(array);
        Box::new(move |row| {
            let mut text = String::new();
            print(row, &mut text);
            text
        })
    };
    let is_number =
        is_plain_numeric(field) || matches!(array.data_type(), DataType::Decimal128(..) | DataType::LargeBinary);
    Ok(match array.data_type() {
        _ if is_number => {
            let text = text();
            Box::new(move |row, out| numeric_bytes(&text(row), out))
        }
        DataType::Boolean => {
            let values = array.as_boolean();
            Box::new(move |row, out| {
                out.push(u8::from(values.value(row)));
                Ok(())
            })
        }
        DataType::Int16 => number!(Int16Type, 0),
        DataType::Int32 => number!(Int32Type, 0),
        DataType::Int64 => number!(Int64Type, 0),
        DataType::Float32 => number!(Float32Type, 0.0),
        DataType::Float64 => number!(Float64Type, 0.0),
        DataType::Date32 => number!(Date32Type, EPOCH_DAYS),
        DataType::Time64(TimeUnit::Microsecond) => number!(Time64MicrosecondType, 0),
        DataType::Timestamp(TimeUnit::Microsecond, _) => number!(TimestampMicrosecondType, EPOCH_MICROS),
        DataType::Interval(IntervalUnit::MonthDayNano) => {
            let values = array.as_primitive::<IntervalMonthDayNanoType>();
            Box::new(move |row, out| {
                let value = values.value(row);
                out.extend_from_slice(&(value.nanoseconds / 1000).to_be_bytes());
                out.extend_from_slice(&value.days.to_be_bytes());
                out.extend_from_slice(&value.months.to_be_bytes());
                Ok(())
            })
        }
        DataType::BinaryView => {
            let values = array.as_binary_view();
            Box::new(move |row, out| {
                out.extend_from_slice(values.value(row));
                Ok(())
            })
        }
        DataType::Utf8View | DataType::Utf8 | DataType::Null => {
            let (text, limit) = (text(), TextLimit::of(field));
            Box::new(move |row, out| {
                let text = text(row);
                match limit {
                    Some(TextLimit::Uuid) => {
                        let digits: String = text.chars().filter(|c| *c != '-').collect();
                        let byte = |at: usize| u8::from_str_radix(digits.get(at..at + 2)?, 16).ok();
                        let bytes: Option<Vec<u8>> = (0..16).map(|n| byte(2 * n)).collect();
                        let bytes = bytes.ok_or_else(|| Error::internal(format!("\"{text}\" is no uuid")))?;
                        out.extend_from_slice(&bytes);
                    }
                    Some(TextLimit::Jsonb) => {
                        out.push(1);
                        out.extend_from_slice(text.as_bytes());
                    }
                    _ => out.extend_from_slice(text.as_bytes()),
                }
                Ok(())
            })
        }
        _ => {
            let name = anabranch_sql::sql_name(array.data_type());
            return Err(Error::invalid(format!("type {name} in the binary format of COPY is not supported"))
                .with_sqlstate("0A000")
                .with_hint("Use the format text or csv, or cast the column to text."));
        }
    })
}

/// The text of a value of that column; `None` if the bytes are none.
pub(super) fn text_of(bytes: &[u8], field: &Field) -> Option<Vec<u8>> {
    let shown = |array: ArrayRef| {
        let mut text = String::new();
        printer(&array)(0, &mut text);
        Some(text.into_bytes())
    };
    let of_i64 = || Some(i64::from_be_bytes(bytes.try_into().ok()?));
    Some(match field.data_type() {
        DataType::Boolean => match bytes {
            [0] => b"f".to_vec(),
            [1] => b"t".to_vec(),
            _ => return None,
        },
        DataType::Int16 => i16::from_be_bytes(bytes.try_into().ok()?).to_string().into_bytes(),
        DataType::Int32 => i32::from_be_bytes(bytes.try_into().ok()?).to_string().into_bytes(),
        DataType::Int64 => of_i64()?.to_string().into_bytes(),
        DataType::Float32 => f32::from_be_bytes(bytes.try_into().ok()?).to_string().into_bytes(),
        DataType::Float64 => f64::from_be_bytes(bytes.try_into().ok()?).to_string().into_bytes(),
        DataType::Decimal128(..) | DataType::LargeBinary => numeric_text(bytes)?.into_bytes(),
        DataType::Date32 => {
            let days = i32::from_be_bytes(bytes.try_into().ok()?).checked_add(EPOCH_DAYS)?;
            return shown(Arc::new(Date32Array::from(vec![days])));
        }
        DataType::Time64(_) => return shown(Arc::new(Time64MicrosecondArray::from(vec![of_i64()?]))),
        DataType::Timestamp(_, zone) => {
            let micros = of_i64()?.checked_add(EPOCH_MICROS)?;
            return shown(Arc::new(TimestampMicrosecondArray::from(vec![micros]).with_timezone_opt(zone.clone())));
        }
        DataType::Interval(_) => {
            let (time, rest) = bytes.split_at_checked(8)?;
            let (days, months) = rest.split_at_checked(4)?;
            let micros = i64::from_be_bytes(time.try_into().ok()?);
            let value = IntervalMonthDayNano {
                months: i32::from_be_bytes(months.try_into().ok()?),
                days: i32::from_be_bytes(days.try_into().ok()?),
                nanoseconds: micros.checked_mul(1000)?,
            };
            return shown(Arc::new(IntervalMonthDayNanoArray::from(vec![value])));
        }
        DataType::BinaryView => {
            let mut text = b"\\x".to_vec();
            bytes.iter().for_each(|byte| text.extend_from_slice(format!("{byte:02x}").as_bytes()));
            text
        }
        DataType::Utf8View => match TextLimit::of(field) {
            Some(TextLimit::Uuid) if bytes.len() == 16 => {
                bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>().into_bytes()
            }
            // (Answers tell uuid and jsonb as text, and COPY .. TO writes them so.)
            Some(TextLimit::Jsonb) => bytes.strip_prefix(&[1]).unwrap_or(bytes).to_vec(),
            _ => bytes.to_vec(),
        },
        _ => return None,
    })
}

/// Digits of base 10,000, the weight of the first, the sign, and the digits behind the point.
fn numeric_bytes(text: &str, out: &mut Vec<u8>) -> Result<(), Error> {
    let special: Option<u16> = match text {
        "NaN" => Some(0xC000),
        "Infinity" => Some(0xD000),
        "-Infinity" => Some(0xF000),
        _ => None,
    };
    if let Some(sign) = special {
        out.extend_from_slice(&[0; 4]);
        out.extend_from_slice(&sign.to_be_bytes());
        out.extend_from_slice(&[0; 2]);
        return Ok(());
    }
    let (sign, digits) = text.strip_prefix('-').map_or((0u16, text), |digits| (0x4000, digits));
    let (whole, part) = digits.split_once('.').unwrap_or((digits, ""));
    let whole = whole.trim_start_matches('0');
    let padded = format!("{}{whole}{part}", "0".repeat(whole.len().next_multiple_of(4) - whole.len()));
    let padded = format!("{padded}{}", "0".repeat(part.len().next_multiple_of(4) - part.len()));
    let mut groups: Vec<i16> = Vec::with_capacity(padded.len() / 4);
    for group in padded.as_bytes().chunks(4) {
        let group = std::str::from_utf8(group).ok().and_then(|group| group.parse().ok());
        groups.push(group.ok_or_else(|| Error::internal(format!("\"{text}\" is no number")))?);
    }
    let mut weight = whole.len().div_ceil(4) as i32 - 1;
    let n_leading = groups.iter().take_while(|group| **group == 0).count();
    groups.drain(..n_leading);
    weight -= n_leading as i32;
    while groups.last() == Some(&0) {
        groups.pop();
    }
    let (weight, sign) = if groups.is_empty() { (0, 0) } else { (weight, sign) };
    let too_large = |_| Error::data("a number is too large for the binary format").with_sqlstate("22003");
    out.extend_from_slice(&i16::try_from(groups.len()).map_err(too_large)?.to_be_bytes());
    out.extend_from_slice(&i16::try_from(weight).map_err(too_large)?.to_be_bytes());
    out.extend_from_slice(&sign.to_be_bytes());
    out.extend_from_slice(&i16::try_from(part.len()).map_err(too_large)?.to_be_bytes());
    groups.iter().for_each(|group| out.extend_from_slice(&group.to_be_bytes()));
    Ok(())
}

fn numeric_text(bytes: &[u8]) -> Option<String> {
    let parts: Vec<i16> =
        bytes.chunks(2).map(|pair| Some(i16::from_be_bytes(pair.try_into().ok()?))).collect::<Option<_>>()?;
    let [n_groups, weight, sign, scale, groups @ ..] = parts.as_slice() else { return None };
    if usize::try_from(*n_groups).ok()? != groups.len() || *scale < 0 {
        return None;
    }
    let sign = match *sign as u16 {
        0 => "",
        0x4000 => "-",
        0xC000 => return Some("NaN".into()),
        0xD000 => return Some("Infinity".into()),
        0xF000 => return Some("-Infinity".into()),
        _ => return None,
    };
    let group = |at: i32| usize::try_from(at).ok().and_then(|at| groups.get(at)).copied().unwrap_or(0);
    let mut text = String::from(sign);
    let weight = i32::from(*weight);
    match weight < 0 {
        true => text.push('0'),
        false => (0..=weight).for_each(|at| text.push_str(&format!("{:04}", group(at)))),
    }
    let mut part = String::new();
    let mut at = weight + 1;
    if weight < -1 {
        part.push_str(&"0000".repeat((-1 - weight) as usize));
        at = 0;
    } else if weight == -1 {
        at = 0;
    }
    while part.len() < *scale as usize {
        part.push_str(&format!("{:04}", group(at)));
        at += 1;
    }
    part.truncate(*scale as usize);
    if !part.is_empty() {
        text.push('.');
        text.push_str(&part);
    }
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_as_they_were_written() {
        for text in ["0", "1", "-1", "12345.6789", "10000", "0.0001", "0.00000001", "-0.5", "100000000", "1.50", "NaN"]
        {
            let mut bytes = Vec::new();
            numeric_bytes(text, &mut bytes).unwrap();
            let read = numeric_text(&bytes).unwrap();
            let plain = |text: &str| match text.strip_prefix('-') {
                Some(digits) => format!("-{}", digits.trim_start_matches('0')),
                None => text.trim_start_matches('0').to_owned(),
            };
            assert_eq!(plain(&read), plain(text));
        }
    }
}
