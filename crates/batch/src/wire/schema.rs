//! Column types in bytes: one tag a type, then its parameters; nested types hold their fields
//! (name, nullable, type).
//!
//! Tags are never reused for another meaning. Field metadata does not travel: rows have none.

use arrow::datatypes::{DataType, Field, FieldRef, IntervalUnit, TimeUnit};
use std::sync::Arc;

use crate::types;

/// Deepest nesting that is read: bounds the stack on hostile bytes.
const DEPTH_MAX: usize = 64;

/// Types without parameters, by tag.
const PLAIN: [(u8, DataType); 24] = [
    (0, DataType::Null),
    (1, DataType::Boolean),
    (2, DataType::Int8),
    (3, DataType::Int16),
    (4, DataType::Int32),
    (5, DataType::Int64),
    (6, DataType::UInt8),
    (7, DataType::UInt16),
    (8, DataType::UInt32),
    (9, DataType::UInt64),
    (10, DataType::Float16),
    (11, DataType::Float32),
    (12, DataType::Float64),
    (13, DataType::Utf8),
    (14, DataType::LargeUtf8),
    (15, DataType::Utf8View),
    (16, DataType::Binary),
    (17, DataType::LargeBinary),
    (18, DataType::BinaryView),
    (19, DataType::Date32),
    (20, DataType::Date64),
    (21, DataType::Interval(IntervalUnit::YearMonth)),
    (22, DataType::Interval(IntervalUnit::DayTime)),
    (23, DataType::Interval(IntervalUnit::MonthDayNano)),
];
const DECIMAL128: u8 = 32;
const DECIMAL256: u8 = 33;
const FIXED: u8 = 34;
const TIME32: u8 = 35;
const TIME64: u8 = 36;
const DURATION: u8 = 37;
const TIMESTAMP: u8 = 38;
const TIMESTAMP_ZONED: u8 = 39;
const LIST: u8 = 40;
const LARGE_LIST: u8 = 41;
const STRUCT: u8 = 42;
const DECIMAL64: u8 = 43;
const UNITS: [TimeUnit; 4] = [TimeUnit::Second, TimeUnit::Millisecond, TimeUnit::Microsecond, TimeUnit::Nanosecond];

/// Appends a type.
///
/// # Panics
/// If [`types::check`] refuses it.
pub(super) fn put_type(data_type: &DataType, out: &mut Vec<u8>) {
    if let Some((tag, _)) = PLAIN.iter().find(|(_, plain)| plain == data_type) {
        return out.push(*tag);
    }
    match data_type {
        DataType::Decimal64(precision, scale) => out.extend([DECIMAL64, *precision, *scale as u8]),
        DataType::Decimal128(precision, scale) => out.extend([DECIMAL128, *precision, *scale as u8]),
        DataType::Decimal256(precision, scale) => out.extend([DECIMAL256, *precision, *scale as u8]),
        DataType::FixedSizeBinary(width) => put_u32(FIXED, *width as u32, out),
        DataType::Time32(unit) => out.extend([TIME32, *unit as u8]),
        DataType::Time64(unit) => out.extend([TIME64, *unit as u8]),
        DataType::Duration(unit) => out.extend([DURATION, *unit as u8]),
        DataType::Timestamp(unit, None) => out.extend([TIMESTAMP, *unit as u8]),
        DataType::Timestamp(unit, Some(zone)) => {
            out.extend([TIMESTAMP_ZONED, *unit as u8]);
            put_text(zone, out);
        }
        DataType::List(element) => {
            out.push(LIST);
            put_field(element, out);
        }
        DataType::LargeList(element) => {
            out.push(LARGE_LIST);
            put_field(element, out);
        }
        DataType::Struct(fields) => {
            put_u32(STRUCT, fields.len() as u32, out);
            fields.iter().for_each(|field| put_field(field, out));
        }
        other => panic!("columns of type {other} are converted by types::to_planned before they travel"),
    }
}

fn put_field(field: &Field, out: &mut Vec<u8>) {
    put_text(field.name(), out);
    out.push(u8::from(field.is_nullable()));
    put_type(field.data_type(), out);
}

fn put_text(text: &str, out: &mut Vec<u8>) {
    out.extend((text.len() as u32).to_le_bytes());
    out.extend(text.as_bytes());
}

fn put_u32(tag: u8, value: u32, out: &mut Vec<u8>) {
    out.push(tag);
    out.extend(value.to_le_bytes());
}

/// Reads types off the front of some bytes; errors say what was wrong.
pub(super) struct TypeReader<'a> {
    pub bytes: &'a [u8],
}

impl TypeReader<'_> {
    /// The next type, one that [`types::check`] accepts.
    pub fn data_type(&mut self) -> Result<DataType, String> {
        let data_type = self.nested_type(0)?;
        types::check(&data_type).map_err(|unsupported| unsupported.to_string())?;
        Ok(data_type)
    }

    fn nested_type(&mut self, depth: usize) -> Result<DataType, String> {
        if depth > DEPTH_MAX {
            return Err(format!("types are nested more than {DEPTH_MAX} deep"));
        }
        let tag = self.byte()?;
        if let Some((_, plain)) = PLAIN.iter().find(|(plain, _)| *plain == tag) {
            return Ok(plain.clone());
        }
        Ok(match tag {
            DECIMAL64 => self.decimal(18).map(|(precision, scale)| DataType::Decimal64(precision, scale))?,
            DECIMAL128 => self.decimal(38).map(|(precision, scale)| DataType::Decimal128(precision, scale))?,
            DECIMAL256 => self.decimal(76).map(|(precision, scale)| DataType::Decimal256(precision, scale))?,
            FIXED => DataType::FixedSizeBinary(i32::try_from(self.u32()?).map_err(|_| "width is beyond 2^31")?),
            TIME32 => match self.unit()? {
                unit @ (TimeUnit::Second | TimeUnit::Millisecond) => DataType::Time32(unit),
                _ => return Err("32-bit times are in seconds or milliseconds".into()),
            },
            TIME64 => match self.unit()? {
                unit @ (TimeUnit::Microsecond | TimeUnit::Nanosecond) => DataType::Time64(unit),
                _ => return Err("64-bit times are in micro- or nanoseconds".into()),
            },
            DURATION => DataType::Duration(self.unit()?),
            TIMESTAMP => DataType::Timestamp(self.unit()?, None),
            TIMESTAMP_ZONED => DataType::Timestamp(self.unit()?, Some(self.text()?.into())),
            LIST => DataType::List(self.field(depth)?),
            LARGE_LIST => DataType::LargeList(self.field(depth)?),
            STRUCT => {
                let n_fields = self.u32()?;
                DataType::Struct((0..n_fields).map(|_| self.field(depth)).collect::<Result<_, _>>()?)
            }
            tag => return Err(format!("no type has tag {tag}")),
        })
    }

    fn field(&mut self, depth: usize) -> Result<FieldRef, String> {
        let name = self.text()?.to_string();
        let nullable = self.byte()? != 0;
        Ok(Arc::new(Field::new(name, self.nested_type(depth + 1)?, nullable)))
    }

    fn decimal(&mut self, precision_max: u8) -> Result<(u8, i8), String> {
        let (precision, scale) = (self.byte()?, self.byte()? as i8);
        let legal = (1..=precision_max).contains(&precision) && i16::from(scale).abs() <= i16::from(precision);
        if legal {
            Ok((precision, scale))
        } else {
            Err(format!("no decimal has precision {precision} and scale {scale}"))
        }
    }

    fn unit(&mut self) -> Result<TimeUnit, String> {
        let unit = self.byte()?;
        UNITS.get(usize::from(unit)).copied().ok_or_else(|| format!("no time unit has tag {unit}"))
    }

    fn text(&mut self) -> Result<&str, String> {
        let len = self.u32()? as usize;
        std::str::from_utf8(self.take(len)?).map_err(|_| "a name is not UTF-8".to_string())
    }

    fn u32(&mut self) -> Result<u32, String> {
        let bytes = self.take(4)?;
        Ok(u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]))
    }

    fn byte(&mut self) -> Result<u8, String> {
        Ok(self.take(1)?[0])
    }

    fn take(&mut self, len: usize) -> Result<&[u8], String> {
        let (taken, rest) = self.bytes.split_at_checked(len).ok_or("it ends early")?;
        self.bytes = rest;
        Ok(taken)
    }
}
