//! Columns of numbers.

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, Decimal64Array, Decimal128Array, Int64Array, LargeBinaryArray, LargeBinaryBuilder,
    UInt64Array,
};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Decimal64Type, Decimal128Type, Float32Type, Float64Type, Int64Type, UInt64Type};

use super::encoding::{decode, encode, encode_decimal};
use super::number::{Number, Outcome};
use super::text::from_float;

/// Digits that a `double precision` keeps of any decimal.
const DOUBLE_DIGITS: usize = 15;

/// Digits that a `real` keeps of any decimal.
const REAL_DIGITS: usize = 6;

/// Rows of numbers of any kind, to be read one by one.
pub enum Reader {
    /// Plain numerics.
    Encoded(LargeBinaryArray),
    /// Decimals of eight bytes, and their scale.
    Narrow(Decimal64Array, u32),
    /// Decimals of sixteen bytes, and their scale.
    Wide(Decimal128Array, u32),
    /// Whole numbers.
    Integers(Int64Array),
    /// Whole numbers that are not negative.
    Naturals(UInt64Array),
    /// Floats of eight bytes.
    Double(ArrayRef),
    /// Floats of four bytes.
    Single(ArrayRef),
    /// Any others: without values.
    Nothing,
}

impl Reader {
    /// `None` if the column holds no numbers.
    pub fn new(column: &ArrayRef) -> Option<Reader> {
        let scale = |scale: i8| u32::try_from(scale).ok();
        Some(match column.data_type() {
            DataType::LargeBinary => Reader::Encoded(column.as_binary().clone()),
            DataType::Decimal64(_, s) => Reader::Narrow(column.as_primitive::<Decimal64Type>().clone(), scale(*s)?),
            DataType::Decimal128(_, s) => Reader::Wide(column.as_primitive::<Decimal128Type>().clone(), scale(*s)?),
            DataType::UInt64 => Reader::Naturals(column.as_primitive::<UInt64Type>().clone()),
            integer if integer.is_integer() => {
                let wide = cast(column, &DataType::Int64).ok()?;
                Reader::Integers(wide.as_primitive::<Int64Type>().clone())
            }
            DataType::Float64 => Reader::Double(column.clone()),
            DataType::Float32 => Reader::Single(column.clone()),
            DataType::Null => Reader::Nothing,
            _ => return None,
        })
    }

    /// `None` where there is no value.
    pub fn value(&self, row: usize) -> Option<Number> {
        let there = |array: &dyn Array| array.is_valid(row);
        match self {
            Reader::Encoded(array) => there(array).then(|| number_of(array.value(row))),
            Reader::Narrow(array, scale) => there(array).then(|| Number::new(i128::from(array.value(row)), *scale)),
            Reader::Wide(array, scale) => there(array).then(|| Number::new(array.value(row), *scale)),
            Reader::Integers(array) => there(array).then(|| Number::new(i128::from(array.value(row)), 0)),
            Reader::Naturals(array) => there(array).then(|| Number::new(i128::from(array.value(row)), 0)),
            Reader::Double(array) => {
                let value = || array.as_primitive::<Float64Type>().value(row);
                there(array).then(|| from_float(value(), DOUBLE_DIGITS))
            }
            Reader::Single(array) => {
                let value = || array.as_primitive::<Float32Type>().value(row);
                there(array).then(|| from_float(value().into(), REAL_DIGITS))
            }
            Reader::Nothing => None,
        }
    }

    /// Decimals and integers without their point, for what need not look at digits.
    fn unscaled(&self, row: usize) -> Option<(i128, u32)> {
        match self {
            Reader::Narrow(array, scale) => array.is_valid(row).then(|| (array.value(row).into(), *scale)),
            Reader::Wide(array, scale) => array.is_valid(row).then(|| (array.value(row), *scale)),
            Reader::Integers(array) => array.is_valid(row).then(|| (array.value(row).into(), 0)),
            _ => None,
        }
    }

    fn is_decimal(&self) -> bool {
        matches!(self, Reader::Narrow(..) | Reader::Wide(..) | Reader::Integers(_))
    }
}

/// The number of an element of a column.
///
/// # Panics
/// If the bytes are those of no number: only [`encode`] makes them.
pub fn number_of(bytes: &[u8]) -> Number {
    decode(bytes).expect("columns of numbers hold what was encoded")
}

/// Makes a column.
pub struct Builder {
    column: LargeBinaryBuilder,
    bytes: Vec<u8>,
}

impl Builder {
    /// Room for so many rows.
    pub fn with_capacity(rows: usize) -> Builder {
        Builder { column: LargeBinaryBuilder::with_capacity(rows, 8 * rows), bytes: Vec::with_capacity(32) }
    }

    /// Adds a row.
    pub fn append(&mut self, number: Option<&Number>) {
        match number {
            None => self.column.append_null(),
            Some(number) => {
                self.bytes.clear();
                encode(number, &mut self.bytes);
                self.column.append_value(&self.bytes);
            }
        }
    }

    fn append_decimal(&mut self, decimal: Option<(i128, u32)>) {
        match decimal {
            None => self.column.append_null(),
            Some((value, scale)) => {
                self.bytes.clear();
                encode_decimal(value, scale, &mut self.bytes);
                self.column.append_value(&self.bytes);
            }
        }
    }

    /// The column, of type [`TYPE`](super::TYPE).
    pub fn finish(mut self) -> ArrayRef {
        Arc::new(self.column.finish())
    }
}

/// The numbers of a column of integers, decimals or floats; `None` if it holds none.
pub fn encoded(column: &ArrayRef) -> Option<ArrayRef> {
    let reader = Reader::new(column)?;
    if let Reader::Encoded(_) = reader {
        return Some(column.clone());
    }
    let mut builder = Builder::with_capacity(column.len());
    if reader.is_decimal() {
        (0..column.len()).for_each(|row| builder.append_decimal(reader.unscaled(row)));
    } else {
        (0..column.len()).for_each(|row| builder.append(reader.value(row).as_ref()));
    }
    Some(builder.finish())
}

/// What an operation makes of each row; NULL where there is no value.
///
/// # Errors
/// Of the first row that has one.
pub fn map(column: &Reader, rows: usize, of: impl Fn(&Number) -> Outcome) -> Result<ArrayRef, super::Fault> {
    let mut builder = Builder::with_capacity(rows);
    for row in 0..rows {
        let result = column.value(row).map(|value| of(&value)).transpose()?;
        builder.append(result.as_ref());
    }
    Ok(builder.finish())
}

/// What an operation makes of each row of two columns; NULL where a value is missing.
///
/// # Errors
/// Of the first row that has one.
pub fn map_pairs(
    left: &Reader,
    right: &Reader,
    rows: usize,
    of: impl Fn(&Number, &Number) -> Outcome,
) -> Result<ArrayRef, super::Fault> {
    let mut builder = Builder::with_capacity(rows);
    for row in 0..rows {
        let result = match (left.value(row), right.value(row)) {
            (Some(left), Some(right)) => Some(of(&left, &right)?),
            _ => None,
        };
        builder.append(result.as_ref());
    }
    Ok(builder.finish())
}
