//! Order-preserving 64-bit prefixes of rows: integers that decide most comparisons.

use arrow::array::{Array, ArrayRef};
use arrow::buffer::NullBuffer;

use super::compare::interval_length;
use super::direction::Direction;
use crate::cells::{ByteCells, Cells, INLINE_BYTES_MAX, Views, canonical, cells, nulls};

/// For each of `rows` rows a 64-bit prefix of its place under the directions: a smaller prefix
/// stands earlier. Prefixes of different batches compare, given the same column types and
/// directions.
///
/// The second result says whether prefixes are exact here: equal prefixes mean equal rows. It takes
/// a single column of integers, floats, booleans, dates or times without nulls, or of decimals that
/// fit in 64 bits. Between batches an equal prefix decides only if both are exact.
///
/// The first column decides, so rows that differ in later columns only have equal prefixes. Without
/// columns all prefixes are 0, exactly.
///
/// # Panics
/// If columns and directions differ in number, or a column is shorter than `rows`.
pub fn prefixes(columns: &[ArrayRef], directions: &[Direction], rows: usize) -> (Vec<u64>, bool) {
    assert_eq!(columns.len(), directions.len(), "columns and directions come in equal number");
    match (columns.first(), directions.first()) {
        (Some(column), Some(direction)) => {
            let (prefixes, exact) = column_prefixes(column, *direction, rows);
            (prefixes, exact && columns.len() == 1)
        }
        _ => (vec![0; rows], true),
    }
}

/// The prefixes of one column, ascending, with NULL last; and whether they are exact.
pub(super) fn ascending_prefixes(column: &ArrayRef, rows: usize) -> (Vec<u64>, bool) {
    column_prefixes(column, Direction::ASCENDING, rows)
}

/// The prefix of a row whose first column is this whole number, date or time.
pub fn prefix_of_whole(value: i64, direction: Direction) -> u64 {
    let bounds = bounds(direction);
    (signed(value) ^ flip(direction)).clamp(bounds.0, bounds.1)
}

/// Prefixes of one column, and whether equal ones mean equal cells.
fn column_prefixes(array: &ArrayRef, direction: Direction, rows: usize) -> (Vec<u64>, bool) {
    assert!(array.len() >= rows, "a column has a cell for each row");
    let place = Place::new(array, direction, rows);
    match cells(array) {
        Cells::Null => place.each(|_| (0, false)),
        Cells::Bool(bits) => place.each(|row| (signed(i64::from(bits.value(row))), true)),
        Cells::I8(values) => place.each(|row| (signed(i64::from(values[row])), true)),
        Cells::I16(values) => place.each(|row| (signed(i64::from(values[row])), true)),
        Cells::I32(values) => place.each(|row| (signed(i64::from(values[row])), true)),
        Cells::I64(values) => place.each(|row| (signed(values[row]), true)),
        Cells::U8(values) => place.each(|row| (signed(i64::from(values[row])), true)),
        Cells::U16(values) => place.each(|row| (signed(i64::from(values[row])), true)),
        Cells::U32(values) => place.each(|row| (signed(i64::from(values[row])), true)),
        Cells::U64(values) => place.each(|row| saturate(i128::from(values[row]))),
        Cells::F16(values) => place.each(|row| (float(values[row].to_f64()), true)),
        Cells::F32(values) => place.each(|row| (float(f64::from(values[row])), true)),
        Cells::F64(values) => place.each(|row| (float(values[row]), true)),
        Cells::I128(values) => place.each(|row| saturate(values[row])),
        Cells::I256(values) => place.each(|row| match values[row].to_i128() {
            Some(value) => saturate(value),
            None => (if values[row].is_negative() { u64::MIN } else { u64::MAX }, false),
        }),
        Cells::DayTime(values) => place.each(|row| (pair(values[row].days, values[row].milliseconds), true)),
        Cells::MonthDayNano(values) => {
            // (Microseconds: 64 bits of nanoseconds end with three centuries.)
            place.each(|row| (saturate(interval_length(&values[row]).div_euclid(1000)).0, false))
        }
        Cells::Bytes(values) => place.each(|row| (prefix_of_bytes(values.bytes(row)), false)),
        Cells::LargeBytes(values) => place.each(|row| (prefix_of_bytes(values.bytes(row)), false)),
        Cells::Fixed(values) => place.each(|row| (prefix_of_bytes(values.bytes(row)), false)),
        Cells::Views(values) => place.each(|row| (text_of_view(values, row), false)),
        Cells::List(..) | Cells::LargeList(..) | Cells::Struct(_) => place.each(|_| (1 << 63, false)),
    }
}

/// Where prefixes of one column go: below or above them is a place for NULL.
struct Place {
    nulls: Option<NullBuffer>,
    rows: usize,
    /// All ones when descending, else 0.
    flip: u64,
    /// Prefix of NULL.
    null: u64,
    /// Prefixes of values lie within these bounds, whether there are nulls or not: other batches
    /// may have some.
    bounds: (u64, u64),
}

impl Place {
    fn new(array: &ArrayRef, direction: Direction, rows: usize) -> Place {
        let null = if direction.nulls_first { u64::MIN } else { u64::MAX };
        Place { nulls: nulls(array), rows, flip: flip(direction), null, bounds: bounds(direction) }
    }

    /// `ascending(row)` is the prefix of a non-null cell in ascending order, and whether no other
    /// value has the same.
    #[inline]
    fn each(&self, ascending: impl Fn(usize) -> (u64, bool)) -> (Vec<u64>, bool) {
        let mut exact = self.nulls.is_none();
        let mut place = |row| {
            let (prefix, alone) = ascending(row);
            let flipped = prefix ^ self.flip;
            let clamped = flipped.clamp(self.bounds.0, self.bounds.1);
            exact &= alone & (clamped == flipped);
            clamped
        };
        let prefixes = match &self.nulls {
            None => (0..self.rows).map(place).collect(),
            Some(nulls) => (0..self.rows).map(|row| if nulls.is_valid(row) { place(row) } else { self.null }).collect(),
        };
        (prefixes, exact)
    }
}

/// All ones when descending, else 0.
fn flip(direction: Direction) -> u64 {
    if direction.descending { u64::MAX } else { 0 }
}

/// Where the prefixes of values lie.
fn bounds(direction: Direction) -> (u64, u64) {
    if direction.nulls_first { (1, u64::MAX) } else { (0, u64::MAX - 1) }
}

#[inline]
fn signed(value: i64) -> u64 {
    value as u64 ^ (1 << 63)
}

#[inline]
fn saturate(value: i128) -> (u64, bool) {
    match i64::try_from(value) {
        Ok(value) => (signed(value), true),
        Err(_) => (if value < 0 { u64::MIN } else { u64::MAX }, false),
    }
}

/// Positive floats above negative ones, negative ones reversed: unsigned order is the total order.
#[inline]
fn float(value: f64) -> u64 {
    let bits = canonical(value).to_bits();
    let negative = (bits as i64 >> 63) as u64;
    bits ^ (negative | 1 << 63)
}

#[inline]
fn pair(high: i32, low: i32) -> u64 {
    signed(i64::from(high) << 32) | u64::from(low as u32 ^ (1 << 31))
}

/// The first eight bytes, big endian; shorter text is filled up with zeros.
#[inline]
pub(super) fn prefix_of_bytes(bytes: &[u8]) -> u64 {
    match bytes.first_chunk::<8>() {
        Some(first) => u64::from_be_bytes(*first),
        None => bytes.iter().enumerate().fold(0, |prefix, (i, &byte)| prefix | u64::from(byte) << (56 - 8 * i)),
    }
}

#[inline]
fn text_of_view(values: Views<'_>, row: usize) -> u64 {
    let view = values.views[row];
    match view as u32 as usize {
        0..=INLINE_BYTES_MAX => ((view >> 32) as u64).swap_bytes(),
        _ => prefix_of_bytes(values.bytes(row)),
    }
}
