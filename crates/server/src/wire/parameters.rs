//! Values of parameters, as clients send them.

use anabranch_batch::numeric;
use anabranch_engine::Error;
use anabranch_sql::{input, sql_name};
use arrow::array::{ArrayRef, StringViewArray};
use arrow::datatypes::{DataType, Field, IntervalMonthDayNano};
use datafusion_common::ScalarValue;
use std::sync::Arc;

use super::binary::{EPOCH_DAYS, EPOCH_MICROS};
use anabranch_sql::pg_types::{PgType, data_type, element_of, oid};

/// A value for `$n`, of the type that the statement wants. `declared` is the type that the client
/// named, 0 if it named none.
///
/// # Errors
/// `Data` for a value that is not of the type.
pub(crate) fn value(
    n: usize,
    bytes: Option<&[u8]>,
    format: i16,
    declared: u32,
    wanted: &DataType,
) -> Result<ScalarValue, Error> {
    let Some(bytes) = bytes else {
        return ScalarValue::try_from(wanted).map_err(|error| Error::internal(format!("a NULL for ${n}: {error}")));
    };
    let told = match declared {
        0 | oid::UNKNOWN => PgType::of(&Field::new("", wanted.clone(), true)).oid,
        declared => declared,
    };
    let given = match format {
        0 => text_array(n, bytes)?,
        _ => Reading { n, of: told }.array(bytes)?,
    };
    let fits = fitted(n, &given, wanted)?;
    ScalarValue::try_from_array(&fits, 0).map_err(|error| Error::internal(format!("the value of ${n}: {error}")))
}

fn fitted(n: usize, given: &ArrayRef, wanted: &DataType) -> Result<ArrayRef, Error> {
    if given.data_type() == wanted {
        return Ok(given.clone());
    }
    let given = match (given.data_type(), wanted) {
        // (Plain numerics are read from text, as users write them.)
        (DataType::LargeBinary, _) => anabranch_sql::output::shown_column(given),
        _ => given.clone(),
    };
    if let DataType::List(_) = wanted
        && let DataType::List(_) = given.data_type()
    {
        return arrow::compute::cast(&given, wanted).map_err(|error| misfit(n, wanted, &error.to_string()));
    }
    input::convert(&given, wanted).map_err(|problem| misfit(n, wanted, &problem))
}

fn misfit(n: usize, wanted: &DataType, problem: &str) -> Error {
    Error::data(problem.to_owned())
        .with_sqlstate(if problem.contains("out of range") { "22003" } else { "22P02" })
        .with_detail(format!("This is the value of parameter ${n}, which is of type {}.", sql_name(wanted)))
}

fn text_array(n: usize, bytes: &[u8]) -> Result<ArrayRef, Error> {
    let text = std::str::from_utf8(bytes)
        .ok()
        .filter(|text| !text.contains('\0'))
        .ok_or_else(|| Error::data(format!("the value of parameter ${n} is not UTF-8 text")).with_sqlstate("22021"))?;
    Ok(Arc::new(StringViewArray::from(vec![text])))
}

/// A value of a binary format being read.
struct Reading {
    n: usize,
    of: u32,
}

impl Reading {
    fn malformed(&self) -> Error {
        Error::data(format!("incorrect binary data format in bind parameter {}", self.n)).with_sqlstate("22P03")
    }

    fn fixed<const N: usize>(&self, bytes: &[u8]) -> Result<[u8; N], Error> {
        bytes.try_into().map_err(|_| self.malformed())
    }

    fn array(&self, bytes: &[u8]) -> Result<ArrayRef, Error> {
        if element_of(self.of).is_some() {
            return self.list(bytes);
        }
        let value = self.scalar(bytes)?;
        value.to_array().map_err(|error| Error::internal(format!("the value of ${}: {error}", self.n)))
    }

    fn scalar(&self, bytes: &[u8]) -> Result<ScalarValue, Error> {
        Ok(match self.of {
            oid::BOOL => ScalarValue::Boolean(Some(self.fixed::<1>(bytes)?[0] != 0)),
            oid::INT2 => ScalarValue::Int16(Some(i16::from_be_bytes(self.fixed(bytes)?))),
            oid::INT4 => ScalarValue::Int32(Some(i32::from_be_bytes(self.fixed(bytes)?))),
            oid::INT8 => ScalarValue::Int64(Some(i64::from_be_bytes(self.fixed(bytes)?))),
            oid::OID => ScalarValue::UInt32(Some(u32::from_be_bytes(self.fixed(bytes)?))),
            oid::FLOAT4 => ScalarValue::Float32(Some(f32::from_be_bytes(self.fixed(bytes)?))),
            oid::FLOAT8 => ScalarValue::Float64(Some(f64::from_be_bytes(self.fixed(bytes)?))),
            oid::BYTEA => ScalarValue::BinaryView(Some(bytes.to_vec())),
            oid::DATE => {
                let days = i32::from_be_bytes(self.fixed(bytes)?);
                ScalarValue::Date32(Some(days.checked_add(EPOCH_DAYS).ok_or_else(|| self.malformed())?))
            }
            oid::TIME => ScalarValue::Time64Microsecond(Some(i64::from_be_bytes(self.fixed(bytes)?))),
            oid::TIMESTAMP | oid::TIMESTAMPTZ => {
                let micros = i64::from_be_bytes(self.fixed(bytes)?);
                let micros = micros.checked_add(EPOCH_MICROS).ok_or_else(|| self.malformed())?;
                let zone = (self.of == oid::TIMESTAMPTZ).then(|| "UTC".into());
                ScalarValue::TimestampMicrosecond(Some(micros), zone)
            }
            oid::INTERVAL => self.interval(bytes)?,
            oid::NUMERIC => self.number(bytes)?,
            oid::UUID => {
                let hex: String = self.fixed::<16>(bytes)?.iter().map(|byte| format!("{byte:02x}")).collect();
                let groups = [&hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..]];
                ScalarValue::Utf8View(Some(groups.join("-")))
            }
            oid::JSONB => match bytes.split_first() {
                Some((1, text)) => self.text(text)?,
                _ => return Err(self.malformed()),
            },
            // All others are text: names, json, and what is not known here.
            _ => self.text(bytes)?,
        })
    }

    fn text(&self, bytes: &[u8]) -> Result<ScalarValue, Error> {
        let text = text_array(self.n, bytes)?;
        ScalarValue::try_from_array(&text, 0).map_err(|error| Error::internal(error.to_string()))
    }

    fn interval(&self, bytes: &[u8]) -> Result<ScalarValue, Error> {
        let bytes: [u8; 16] = self.fixed(bytes)?;
        let micros = i64::from_be_bytes(bytes[..8].try_into().expect("eight bytes"));
        let days = i32::from_be_bytes(bytes[8..12].try_into().expect("four bytes"));
        let months = i32::from_be_bytes(bytes[12..].try_into().expect("four bytes"));
        let nanoseconds = micros.checked_mul(1000).ok_or_else(|| self.malformed())?;
        Ok(ScalarValue::IntervalMonthDayNano(Some(IntervalMonthDayNano { months, days, nanoseconds })))
    }

    /// The inverse of [`number`](super::binary::number).
    fn number(&self, bytes: &[u8]) -> Result<ScalarValue, Error> {
        if bytes.len() < 8 || !bytes.len().is_multiple_of(2) {
            return Err(self.malformed());
        }
        let shorts: Vec<u16> = bytes.chunks(2).map(|pair| u16::from_be_bytes([pair[0], pair[1]])).collect();
        let [n_groups, weight, sign, scale] = [shorts[0], shorts[1], shorts[2], shorts[3]];
        let groups = &shorts[4..];
        if usize::from(n_groups) != groups.len() || groups.iter().any(|group| *group > 9_999) || scale > 0x3fff {
            return Err(self.malformed());
        }
        let text = match sign {
            0xC000 => "NaN".to_owned(),
            0xD000 => "Infinity".to_owned(),
            0xF000 => "-Infinity".to_owned(),
            0 | 0x4000 => decimal_text(groups, i32::from(weight as i16), sign == 0x4000, usize::from(scale)),
            _ => return Err(self.malformed()),
        };
        let number = numeric::parse(&text).map_err(|_| self.malformed())?;
        let mut encoded = Vec::new();
        numeric::encode(&number, &mut encoded);
        Ok(ScalarValue::LargeBinary(Some(encoded)))
    }

    fn list(&self, bytes: &[u8]) -> Result<ArrayRef, Error> {
        let int = |at: usize| -> Result<i32, Error> {
            let four = bytes.get(at..at + 4).ok_or_else(|| self.malformed())?;
            Ok(i32::from_be_bytes(four.try_into().expect("four bytes")))
        };
        let (n_dimensions, element) = (int(0)?, int(8)? as u32);
        let length = match n_dimensions {
            0 => 0,
            1 => usize::try_from(int(12)?).map_err(|_| self.malformed())?,
            _ => {
                return Err(Error::invalid(format!("parameter ${} is an array of several dimensions", self.n))
                    .with_sqlstate("0A000")
                    .with_hint("Send it as text."));
            }
        };
        let of = Reading { n: self.n, of: element };
        let mut rest = bytes.get(if n_dimensions == 0 { 12 } else { 20 }..).ok_or_else(|| self.malformed())?;
        let element_type = data_type(element).unwrap_or(DataType::Utf8View);
        let null = ScalarValue::try_from(&element_type).map_err(|error| Error::internal(error.to_string()))?;
        let mut values = Vec::new();
        for _ in 0..length {
            let (head, behind) = rest.split_at_checked(4).ok_or_else(|| self.malformed())?;
            let n_bytes = i32::from_be_bytes(head.try_into().expect("four bytes"));
            rest = behind;
            if n_bytes == -1 {
                values.push(null.clone());
                continue;
            }
            let n_bytes = usize::try_from(n_bytes).map_err(|_| self.malformed())?;
            let (value, behind) = rest.split_at_checked(n_bytes).ok_or_else(|| self.malformed())?;
            values.push(of.scalar(value)?);
            rest = behind;
        }
        Ok(ScalarValue::new_list_nullable(&values, &element_type))
    }
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
    use super::super::{binary, rows};
    use super::*;

    #[test]
    fn numbers_come_back_as_they_were_sent() {
        for text in ["0", "1", "-1", "12345.678", "0.0001", "-0.000012", "99999999999999999999.5", "10000", "NaN"] {
            let mut bytes = Vec::new();
            binary::number(text, &mut bytes).unwrap();
            let value = value(1, Some(&bytes), 1, oid::NUMERIC, &numeric::TYPE).unwrap();
            let shown = anabranch_sql::output::shown_column(&value.to_array().unwrap());
            let mut out = Vec::new();
            rows::text_writer(&shown)(0, &mut out).unwrap();
            assert_eq!(String::from_utf8(out).unwrap(), text);
        }
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
            ScalarValue::TimestampMicrosecond(Some(1), None),
            ScalarValue::TimestampMicrosecond(Some(-1), Some("UTC".into())),
            ScalarValue::IntervalMonthDayNano(Some(interval)),
            ScalarValue::List(ints),
        ];
        for case in cases {
            let column = case.to_array().unwrap();
            let of = PgType::of(&Field::new("", case.data_type(), true)).oid;
            let mut bytes = Vec::new();
            binary::writer(&column, of, false).unwrap()(0, &mut bytes).unwrap();
            assert_eq!(value(1, Some(&bytes), 1, of, &case.data_type()).unwrap(), case);
        }
    }

    #[test]
    fn bytes_that_are_no_value_are_refused() {
        for (of, bytes) in [
            (oid::INT4, &b"\0\0\0"[..]),
            (oid::NUMERIC, b"\0\x01\0\0\0\0\0\0"),
            (oid::NUMERIC, b"\0\x01\0\0\0\0\0\0\x27\x10"),
            (1007, b"\0\0\0\x01\0\0\0\0\0\0\0\x17\x7f\xff\xff\xff\0\0\0\x01"),
            (1007, b"\0\0"),
        ] {
            let error = value(2, Some(bytes), 1, of, &DataType::Int32).unwrap_err();
            assert_eq!(error.sqlstate(), "22P03", "{error}");
        }
        let error = value(1, Some(b"x"), 0, 0, &DataType::Int32).unwrap_err();
        assert_eq!((error.sqlstate(), error.message.contains("integer")), ("22P02", true), "{error}");
    }
}
