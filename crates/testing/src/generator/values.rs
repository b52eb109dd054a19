//! Random values from small pools, so that keys meet, groups fill and equal rows occur.

use anabranch_batch::numeric::{self, Number};
use arrow::datatypes::{DataType, TimeUnit};
use datafusion_common::ScalarValue;

use crate::rng::Rng;
use crate::row::Row;

/// How values are drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pool {
    /// A handful of values a type; floats are quarters, so that sums of them are exact in any
    /// order.
    Small,
    /// As `Small`, with -0.0, NaN and infinities among the floats. Not for plans that compute with
    /// floats.
    Special,
    /// Hundreds of values a type.
    Wide,
}

/// The types that random relations are made of.
pub fn column_types() -> Vec<DataType> {
    vec![
        DataType::Int64,
        DataType::Int32,
        DataType::Utf8View,
        DataType::Decimal128(12, 2),
        numeric::TYPE,
        DataType::Float64,
        DataType::Boolean,
        DataType::Date32,
        DataType::Timestamp(TimeUnit::Microsecond, None),
    ]
}

/// A random row of the given types; one value in eight is NULL.
pub fn row(rng: &mut Rng, types: &[DataType], pool: Pool) -> Row {
    Row::new(types.iter().map(|data_type| value(rng, data_type, pool)).collect::<Vec<_>>())
}

/// A random value of a type, NULL in one case of eight.
pub fn value(rng: &mut Rng, data_type: &DataType, pool: Pool) -> ScalarValue {
    if rng.below(8) == 0 {
        return ScalarValue::try_from(data_type).expect("every type has a null");
    }
    present(rng, data_type, pool)
}

/// A random value of a type that is not NULL.
///
/// # Panics
/// If random relations do not know the type.
pub fn present(rng: &mut Rng, data_type: &DataType, pool: Pool) -> ScalarValue {
    let number = if pool == Pool::Wide { rng.between(-400, 400) } else { rng.between(-2, 5) };
    match data_type {
        DataType::Int64 if rng.below(150) == 0 => ScalarValue::Int64(Some(*rng.pick(&[i64::MIN, i64::MAX]))),
        DataType::Int64 => ScalarValue::Int64(Some(number)),
        DataType::Int32 => ScalarValue::Int32(Some(number as i32)),
        DataType::Utf8View => ScalarValue::Utf8View(Some(text(rng, number, pool))),
        DataType::Decimal128(precision, scale) => {
            ScalarValue::Decimal128(Some(i128::from(number) * 25), *precision, *scale)
        }
        DataType::LargeBinary => ScalarValue::LargeBinary(Some(plain(rng, number, pool))),
        DataType::Float64 => ScalarValue::Float64(Some(float(rng, number, pool))),
        DataType::Boolean => ScalarValue::Boolean(Some(number % 2 == 0)),
        DataType::Date32 => ScalarValue::Date32(Some(19_000 + number as i32)),
        DataType::Timestamp(TimeUnit::Microsecond, zone) => {
            ScalarValue::TimestampMicrosecond(Some(1_700_000_000_000_000 + number * 1_000_000), zone.clone())
        }
        _ => panic!("there are no random values of type {data_type}"),
    }
}

/// Empty, short, longer than a view holds inline, outside ASCII, and numbers as text.
fn text(rng: &mut Rng, number: i64, pool: Pool) -> String {
    const SMALL: [&str; 9] = ["", "a", "ab", "b", "3", "0", "é", "a text that is long", "a text that is longer"];
    match pool {
        Pool::Wide if number % 2 == 0 => format!("a text with the number {number}"),
        Pool::Wide => number.to_string(),
        Pool::Small | Pool::Special => rng.pick(&SMALL).to_string(),
    }
}

/// A plain numeric: quarters mostly, and such as no decimal holds.
fn plain(rng: &mut Rng, number: i64, pool: Pool) -> Vec<u8> {
    const SPECIAL: [Number; 3] = [Number::NaN, Number::Infinity, Number::NegativeInfinity];
    let number = match rng.below(10) {
        _ if pool == Pool::Special && rng.chance(20) => rng.pick(&SPECIAL).clone(),
        0 => numeric::parse(&format!("{number}e40")).expect("it is a number"),
        1 => numeric::parse(&format!("{number}e-40")).expect("it is a number"),
        _ => Number::new(i128::from(number) * 25, 2),
    };
    let mut bytes = Vec::new();
    numeric::encode(&number, &mut bytes);
    bytes
}

fn float(rng: &mut Rng, number: i64, pool: Pool) -> f64 {
    const SPECIAL: [f64; 5] = [0.0, -0.0, f64::NAN, f64::INFINITY, f64::NEG_INFINITY];
    if pool == Pool::Special && rng.chance(40) { *rng.pick(&SPECIAL) } else { number as f64 * 0.25 }
}
