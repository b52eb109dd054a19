//! Values written as PostgreSQL's `send` functions write them.

use anabranch_batch::numeric;
use anabranch_sql::output::{Printer, is_null, printer};
use anabranch_sql::pg_types::{PgType, element_of, oid};
use arrow::array::{Array, ArrayRef, ArrowPrimitiveType, AsArray};
use arrow::datatypes::{
    DataType, Date32Type, Decimal128Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type,
    IntervalMonthDayNanoType, IntervalUnit, Time64MicrosecondType, TimeUnit, TimestampMicrosecondType, UInt8Type,
    UInt16Type, UInt32Type, UInt64Type,
};

use super::{EPOCH_DAYS, EPOCH_MICROS};
use crate::error::Error;

/// Writes one value, not NULL, behind what is there.
pub type Writer<'a> = Box<dyn Fn(usize, &mut Vec<u8>) -> Result<(), Error> + 'a>;

/// Writes values of a column of this type of PostgreSQL, named by its number there.
/// `is_numeric_text`: the column is text that shows plain numerics.
///
/// # Errors
/// `Invalid` for a type without a binary format.
pub fn writer(column: &ArrayRef, of: u32, is_numeric_text: bool) -> Result<Writer<'_>, Error> {
    Ok(match column.data_type() {
        DataType::Boolean => {
            let values = column.as_boolean();
            Box::new(move |row, out| {
                out.push(u8::from(values.value(row)));
                Ok(())
            })
        }
        DataType::Int8 => bytes::<Int8Type, 2>(column, |value| i16::from(value).to_be_bytes()),
        DataType::Int16 => bytes::<Int16Type, 2>(column, i16::to_be_bytes),
        DataType::UInt8 => bytes::<UInt8Type, 2>(column, |value| i16::from(value).to_be_bytes()),
        DataType::Int32 => bytes::<Int32Type, 4>(column, i32::to_be_bytes),
        DataType::UInt16 => bytes::<UInt16Type, 4>(column, |value| i32::from(value).to_be_bytes()),
        DataType::Int64 => bytes::<Int64Type, 8>(column, i64::to_be_bytes),
        DataType::UInt32 => bytes::<UInt32Type, 4>(column, u32::to_be_bytes),
        DataType::Float32 => bytes::<Float32Type, 4>(column, f32::to_be_bytes),
        DataType::Float64 => bytes::<Float64Type, 8>(column, f64::to_be_bytes),
        DataType::Date32 => bytes::<Date32Type, 4>(column, |days| match days {
            // (The ends of time are the same there.)
            i32::MAX | i32::MIN => days.to_be_bytes(),
            _ => days.saturating_sub(EPOCH_DAYS).to_be_bytes(),
        }),
        DataType::Time64(TimeUnit::Microsecond) => bytes::<Time64MicrosecondType, 8>(column, i64::to_be_bytes),
        DataType::Timestamp(TimeUnit::Microsecond, _) => {
            bytes::<TimestampMicrosecondType, 8>(column, |micros| match micros {
                i64::MAX | i64::MIN => micros.to_be_bytes(),
                _ => micros.saturating_sub(EPOCH_MICROS).to_be_bytes(),
            })
        }
        DataType::Interval(IntervalUnit::MonthDayNano) => intervals(column),
        DataType::UInt64 => {
            let values = column.as_primitive::<UInt64Type>();
            Box::new(move |row, out| number(&values.value(row).to_string(), out))
        }
        DataType::Decimal128(..) => {
            let values = column.as_primitive::<Decimal128Type>();
            Box::new(move |row, out| number(&values.value_as_string(row), out))
        }
        DataType::LargeBinary => {
            let values = column.as_binary::<i64>();
            Box::new(move |row, out| {
                let mut text = String::new();
                numeric::write(&numeric::number_of(values.value(row)), &mut text);
                number(&text, out)
            })
        }
        DataType::Utf8View if is_numeric_text => {
            let values = column.as_string_view();
            Box::new(move |row, out| number(values.value(row), out))
        }
        DataType::Utf8View if of == oid::UUID => {
            let values = column.as_string_view();
            Box::new(move |row, out| uuid(values.value(row), out))
        }
        DataType::Utf8View if of == oid::JSONB => {
            let text = text_writer(column);
            Box::new(move |row, out| {
                out.push(1);
                text(row, out)
            })
        }
        DataType::Utf8View | DataType::Utf8 | DataType::LargeUtf8 | DataType::Null => text_writer(column),
        DataType::BinaryView => {
            let values = column.as_binary_view();
            Box::new(move |row, out| {
                out.extend_from_slice(values.value(row));
                Ok(())
            })
        }
        DataType::List(_) => {
            let values = column.as_list::<i32>();
            let element = element_of(of).unwrap_or(oid::TEXT);
            let first = i32::from(!matches!(of, oid::INT2VECTOR | oid::OIDVECTOR));
            Box::new(move |row, out| array(&values.value(row), element, first, out))
        }
        DataType::Struct(_) => records(column),
        other => {
            return Err(Error::invalid(format!("type {other} has no binary format here"))
                .with_sqlstate("0A000")
                .with_hint("Ask for it as text."));
        }
    })
}

/// Values of a fixed width.
fn bytes<T: ArrowPrimitiveType, const N: usize>(
    column: &ArrayRef,
    of: impl Fn(T::Native) -> [u8; N] + 'static,
) -> Writer<'_> {
    let values = column.as_primitive::<T>();
    Box::new(move |row, out| {
        out.extend_from_slice(&of(values.value(row)));
        Ok(())
    })
}

/// Microseconds, days and months.
fn intervals(column: &ArrayRef) -> Writer<'_> {
    let values = column.as_primitive::<IntervalMonthDayNanoType>();
    Box::new(move |row, out| {
        let value = values.value(row);
        out.extend_from_slice(&(value.nanoseconds / 1000).to_be_bytes());
        out.extend_from_slice(&value.days.to_be_bytes());
        out.extend_from_slice(&value.months.to_be_bytes());
        Ok(())
    })
}

/// The number of columns, then each with its type.
fn records(column: &ArrayRef) -> Writer<'_> {
    let values = column.as_struct();
    Box::new(move |row, out| {
        out.extend_from_slice(&(values.num_columns() as i32).to_be_bytes());
        for (part, field) in values.columns().iter().zip(values.fields()) {
            let of = PgType::of(field).oid;
            out.extend_from_slice(&of.to_be_bytes());
            value(part, &writer(part, of, false)?, row, out)?;
        }
        Ok(())
    })
}

/// An array: dimensions, whether there are NULLs, the type of elements, lengths and the place of
/// the first element, elements.
fn array(elements: &ArrayRef, of: u32, first: i32, out: &mut Vec<u8>) -> Result<(), Error> {
    let mut lengths: Vec<usize> = vec![elements.len()];
    let mut level = elements.clone();
    while let Some(lists) = level.as_list_opt::<i32>() {
        let length = if lists.is_empty() { 0 } else { lists.value_length(0) as usize };
        if (0..lists.len()).any(|row| lists.is_null(row) || lists.value_length(row) as usize != length) {
            return Err(Error::data("multidimensional arrays must have sub-arrays with matching dimensions")
                .with_sqlstate("2202E"));
        }
        lengths.push(length);
        let parts: Vec<ArrayRef> = (0..lists.len()).map(|row| lists.value(row)).collect();
        let parts: Vec<&dyn Array> = parts.iter().map(AsRef::as_ref).collect();
        if parts.is_empty() {
            break;
        }
        level = arrow::compute::concat(&parts)?;
    }
    let is_empty = lengths.contains(&0);
    let n_dimensions = if is_empty { 0 } else { lengths.len() };
    out.extend_from_slice(&(n_dimensions as i32).to_be_bytes());
    out.extend_from_slice(&i32::from(level.null_count() > 0).to_be_bytes());
    out.extend_from_slice(&of.to_be_bytes());
    if is_empty {
        return Ok(());
    }
    for length in lengths {
        out.extend_from_slice(&(length as i32).to_be_bytes());
        out.extend_from_slice(&first.to_be_bytes());
    }
    let writer = writer(&level, of, of == oid::NUMERIC)?;
    (0..level.len()).try_for_each(|row| value(&level, &writer, row, out))
}

/// A number, from its decimal text: digits of base 10,000, the weight of the first, the sign, and
/// the digits behind the point.
pub(super) fn number(text: &str, out: &mut Vec<u8>) -> Result<(), Error> {
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
    let (sign, digits) = match text.strip_prefix('-') {
        Some(digits) => (0x4000u16, digits),
        None => (0, text),
    };
    let (whole, part) = digits.split_once('.').unwrap_or((digits, ""));
    let (whole, scale) = (whole.trim_start_matches('0'), part.len());
    let padded = format!("{:0>1$}", whole, whole.len().next_multiple_of(4));
    let part = format!("{part:0<0$}", part.len().next_multiple_of(4));
    let mut groups: Vec<u16> = Vec::with_capacity((padded.len() + part.len()) / 4);
    for group in padded.as_bytes().chunks(4).chain(part.as_bytes().chunks(4)) {
        let text = std::str::from_utf8(group).unwrap_or_default();
        groups.push(text.parse().map_err(|_| Error::internal(format!("\"{text}\" is no part of a number")))?);
    }
    let mut weight = (padded.len() / 4) as i32 - 1;
    while groups.last() == Some(&0) {
        groups.pop();
    }
    let n_leading = groups.iter().take_while(|group| **group == 0).count();
    groups.drain(..n_leading);
    weight -= n_leading as i32;
    if groups.is_empty() {
        weight = 0;
    }
    let too_large = || Error::data("a number is too large for the binary format").with_sqlstate("22003");
    out.extend_from_slice(&i16::try_from(groups.len()).map_err(|_| too_large())?.to_be_bytes());
    out.extend_from_slice(&i16::try_from(weight).map_err(|_| too_large())?.to_be_bytes());
    out.extend_from_slice(&(if groups.is_empty() { 0 } else { sign }).to_be_bytes());
    out.extend_from_slice(&i16::try_from(scale).map_err(|_| too_large())?.to_be_bytes());
    groups.iter().for_each(|group| out.extend_from_slice(&group.to_be_bytes()));
    Ok(())
}

fn uuid(text: &str, out: &mut Vec<u8>) -> Result<(), Error> {
    let digits: Vec<u8> = text.bytes().filter(|byte| *byte != b'-').collect();
    if digits.len() != 32 {
        return Err(Error::data(format!("invalid input syntax for type uuid: \"{text}\"")));
    }
    for pair in digits.chunks(2) {
        let byte = std::str::from_utf8(pair).ok().and_then(|pair| u8::from_str_radix(pair, 16).ok());
        out.push(byte.ok_or_else(|| Error::data(format!("invalid input syntax for type uuid: \"{text}\"")))?);
    }
    Ok(())
}

/// Appends a value's length and its bytes; NULL has the length -1.
///
/// # Errors
/// `Data` for a value that is longer than the format can say, or that the format cannot hold.
pub fn value(column: &ArrayRef, writer: &Writer<'_>, row: usize, out: &mut Vec<u8>) -> Result<(), Error> {
    if is_null(column, row) {
        out.extend_from_slice(&(-1i32).to_be_bytes());
        return Ok(());
    }
    let start = out.len();
    out.extend_from_slice(&[0; 4]);
    writer(row, out)?;
    let length = i32::try_from(out.len() - start - 4)
        .map_err(|_| Error::data("a value is longer than 2 GiB").with_sqlstate("54000"))?;
    out[start..start + 4].copy_from_slice(&length.to_be_bytes());
    Ok(())
}

/// Writes values of a column as text.
pub fn text_writer(column: &ArrayRef) -> Writer<'_> {
    match column.data_type() {
        DataType::Boolean => {
            let values = column.as_boolean();
            Box::new(move |row, out| {
                out.push(if values.value(row) { b't' } else { b'f' });
                Ok(())
            })
        }
        DataType::Utf8View => {
            let values = column.as_string_view();
            Box::new(move |row, out| {
                out.extend_from_slice(values.value(row).as_bytes());
                Ok(())
            })
        }
        _ => printed(printer(column)),
    }
}

fn printed(print: Printer<'_>) -> Writer<'_> {
    Box::new(move |row, out| {
        let mut text = String::new();
        print(row, &mut text);
        out.extend_from_slice(text.as_bytes());
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sent(text: &str) -> Vec<i16> {
        let mut out = Vec::new();
        number(text, &mut out).unwrap();
        out.chunks(2).map(|pair| i16::from_be_bytes([pair[0], pair[1]])).collect()
    }

    #[test]
    fn numbers_are_groups_of_four_digits() {
        // What PostgreSQL 15 sends: ndigits, weight, sign, dscale, digits.
        assert_eq!(sent("0"), [0, 0, 0, 0]);
        assert_eq!(sent("0.00"), [0, 0, 0, 2]);
        assert_eq!(sent("1"), [1, 0, 0, 0, 1]);
        assert_eq!(sent("12345.678"), [3, 1, 0, 3, 1, 2345, 6780]);
        assert_eq!(sent("-0.0001"), [1, -1, 0x4000, 4, 1]);
        assert_eq!(sent("0.000012"), [1, -2, 0, 6, 1200]);
        assert_eq!(sent("10000"), [1, 1, 0, 0, 1]);
        assert_eq!(sent("NaN"), [0, 0, 0xC000u16 as i16, 0]);
    }
}
