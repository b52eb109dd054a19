//! Order of rows: a total order column by column, and 64-bit prefixes that decide most comparisons.
//!
//! Law: the order agrees with [`crate::equal`] (equal rows compare as `Equal` and no others do). Within a column: false before true, numbers by
//! value with NaN after all others, text by bytes, intervals by months, days, then the rest, lists and structs lexicographically
//! with their own nulls last; each reversed by `descending`. NULLs stand first or last by `nulls_first`, whether descending or not.

use arrow::array::{Array, ArrayRef, OffsetSizeTrait};
use arrow::buffer::{NullBuffer, ScalarBuffer};
use arrow::datatypes::{ArrowNativeType, IntervalDayTime, IntervalMonthDayNano, i256};
use std::cmp::Ordering;

use crate::cells::{ByteCells, Bytes, Cells, F16, INLINE_BYTES_MAX, Views, canonical, cells, nulls};
use crate::types;

/// How one column orders.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Direction {
    /// Largest first.
    pub descending: bool,
    /// NULLs before all values, else after them.
    pub nulls_first: bool,
}

impl Direction {
    /// Smallest first, NULLs last: what SQL says when nothing is said.
    pub const ASCENDING: Direction = Direction { descending: false, nulls_first: false };
    /// Largest first, NULLs first, as in PostgreSQL: the exact reverse of [`Direction::ASCENDING`].
    pub const DESCENDING: Direction = Direction { descending: true, nulls_first: true };
}

/// Order of a row of one column against a row of another.
type Compare = Box<dyn Fn(usize, usize) -> Ordering + Send + Sync>;

/// Total order of rows of one set of columns against rows of another. One boxed closure a column: prefixes come first where speed counts.
pub struct Comparator {
    /// One per column, most significant first.
    columns: Vec<Compare>,
}

impl Comparator {
    /// Compares rows of `left` with rows of `right`, one direction a column.
    ///
    /// # Panics
    /// If the three differ in length, or column types cannot be compared.
    pub fn new(left: &[ArrayRef], right: &[ArrayRef], directions: &[Direction]) -> Comparator {
        assert!(left.len() == right.len() && left.len() == directions.len(), "columns and directions come in equal number");
        let columns = left.iter().zip(right).zip(directions);
        Comparator { columns: columns.map(|((left, right), direction)| compare_column(left, right, *direction)).collect() }
    }

    /// Order of row `i` of the left against row `j` of the right.
    ///
    /// # Panics
    /// If a row is out of bounds.
    #[inline]
    pub fn compare(&self, i: usize, j: usize) -> Ordering {
        self.columns.iter().map(|column| column(i, j)).find(|order| order.is_ne()).unwrap_or(Ordering::Equal)
    }
}

impl std::fmt::Debug for Comparator {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Comparator").field("n_columns", &self.columns.len()).finish()
    }
}

fn compare_column(left: &ArrayRef, right: &ArrayRef, direction: Direction) -> Compare {
    let (left, right) = types::comparable(left, right).unwrap_or_else(|| (left.clone(), right.clone()));
    let nulls = (nulls(&left), nulls(&right));
    let values = compare_values(&left, &right);
    match nulls {
        (None, None) if direction.descending => Box::new(move |i, j| values(i, j).reverse()),
        (None, None) => values,
        (left, right) => compare_nullable(left, right, values, direction),
    }
}

fn compare_nullable(left: Option<NullBuffer>, right: Option<NullBuffer>, values: Compare, direction: Direction) -> Compare {
    let is_null = |nulls: &Option<NullBuffer>, row| nulls.as_ref().is_some_and(|nulls: &NullBuffer| nulls.is_null(row));
    let null_first = if direction.nulls_first { Ordering::Less } else { Ordering::Greater };
    Box::new(move |i, j| match (is_null(&left, i), is_null(&right, j)) {
        (true, true) => Ordering::Equal,
        (true, false) => null_first,
        (false, true) => null_first.reverse(),
        (false, false) if direction.descending => values(i, j).reverse(),
        (false, false) => values(i, j),
    })
}

/// Ascending order of non-null cells.
fn compare_values(left: &ArrayRef, right: &ArrayRef) -> Compare {
    macro_rules! by {
        ($native:ty, $compare:expr) => {{
            let (left, right) = (scalars::<$native>(left), scalars::<$native>(right));
            Box::new(move |i, j| $compare(&left[i], &right[j]))
        }};
    }
    match (cells(left), cells(right)) {
        (Cells::Null, Cells::Null) => Box::new(|_, _| Ordering::Equal),
        (Cells::Bool(l), Cells::Bool(r)) => {
            let (left, right) = (l.clone(), r.clone());
            Box::new(move |i, j| left.value(i).cmp(&right.value(j)))
        }
        (Cells::I8(_), Cells::I8(_)) => by!(i8, i8::cmp),
        (Cells::I16(_), Cells::I16(_)) => by!(i16, i16::cmp),
        (Cells::I32(_), Cells::I32(_)) => by!(i32, i32::cmp),
        (Cells::I64(_), Cells::I64(_)) => by!(i64, i64::cmp),
        (Cells::U8(_), Cells::U8(_)) => by!(u8, u8::cmp),
        (Cells::U16(_), Cells::U16(_)) => by!(u16, u16::cmp),
        (Cells::U32(_), Cells::U32(_)) => by!(u32, u32::cmp),
        (Cells::U64(_), Cells::U64(_)) => by!(u64, u64::cmp),
        (Cells::F16(_), Cells::F16(_)) => by!(F16, |l: &F16, r: &F16| compare_floats(l.to_f64(), r.to_f64())),
        (Cells::F32(_), Cells::F32(_)) => by!(f32, |l: &f32, r: &f32| compare_floats(f64::from(*l), f64::from(*r))),
        (Cells::F64(_), Cells::F64(_)) => by!(f64, |l: &f64, r: &f64| compare_floats(*l, *r)),
        (Cells::I128(_), Cells::I128(_)) => by!(i128, i128::cmp),
        (Cells::I256(_), Cells::I256(_)) => by!(i256, i256::cmp),
        (Cells::DayTime(_), Cells::DayTime(_)) => by!(IntervalDayTime, IntervalDayTime::cmp),
        (Cells::MonthDayNano(_), Cells::MonthDayNano(_)) => by!(IntervalMonthDayNano, IntervalMonthDayNano::cmp),
        (Cells::Bytes(_), Cells::Bytes(_)) => compare_bytes::<i32>(left, right),
        (Cells::LargeBytes(_), Cells::LargeBytes(_)) => compare_bytes::<i64>(left, right),
        (Cells::Fixed(l), Cells::Fixed(r)) if l.width() == r.width() => compare_fixed(left, right, l.width()),
        (Cells::Views(_), Cells::Views(_)) => compare_views(left, right),
        (Cells::List(_, l), Cells::List(_, r)) => compare_lists::<i32>(left, right, l, r),
        (Cells::LargeList(_, l), Cells::LargeList(_, r)) => compare_lists::<i64>(left, right, l, r),
        (Cells::Struct(l), Cells::Struct(r)) => {
            let fields = Comparator::new(l, r, &vec![Direction::ASCENDING; l.len()]);
            Box::new(move |i, j| fields.compare(i, j))
        }
        _ => panic!("columns of types {} and {} do not compare", left.data_type(), right.data_type()),
    }
}

fn compare_bytes<O: OffsetSizeTrait>(left: &ArrayRef, right: &ArrayRef) -> Compare {
    let owned = |array: &ArrayRef| {
        let data = array.to_data();
        (ScalarBuffer::<O>::new(data.buffers()[0].clone(), data.offset(), data.len() + 1), data.buffers()[1].clone())
    };
    let (left, right) = (owned(left), owned(right));
    Box::new(move |i, j| {
        let (left, right) = (Bytes::new(&left.0, &left.1), Bytes::new(&right.0, &right.1));
        left.bytes(i).cmp(right.bytes(j))
    })
}

fn compare_fixed(left: &ArrayRef, right: &ArrayRef, width: usize) -> Compare {
    let owned = |array: &ArrayRef| {
        let data = array.to_data();
        data.buffers()[0].slice_with_length(data.offset() * width, data.len() * width)
    };
    let (left, right) = (owned(left), owned(right));
    Box::new(move |i, j| left[i * width..(i + 1) * width].cmp(&right[j * width..(j + 1) * width]))
}

fn compare_views(left: &ArrayRef, right: &ArrayRef) -> Compare {
    let owned = |array: &ArrayRef| (scalars::<u128>(array), array.to_data().buffers()[1..].to_vec());
    let (left, right) = (owned(left), owned(right));
    Box::new(move |i, j| {
        let (left, right) =
            (Views { views: &left.0, buffers: &left.1 }, Views { views: &right.0, buffers: &right.1 });
        left.compare(i, right, j)
    })
}

fn compare_lists<O: OffsetSizeTrait>(left: &ArrayRef, right: &ArrayRef, l: &ArrayRef, r: &ArrayRef) -> Compare {
    let offsets = |array: &ArrayRef| {
        let data = array.to_data();
        ScalarBuffer::<O>::new(data.buffers()[0].clone(), data.offset(), data.len() + 1)
    };
    let (left, right) = (offsets(left), offsets(right));
    let elements = compare_column(l, r, Direction::ASCENDING);
    Box::new(move |i, j| {
        let (l, r) = (left[i].as_usize()..left[i + 1].as_usize(), right[j].as_usize()..right[j + 1].as_usize());
        let lengths = l.len().cmp(&r.len());
        l.zip(r).map(|(i, j)| elements(i, j)).find(|order| order.is_ne()).unwrap_or(lengths)
    })
}

/// The values of a primitive (or the views of a view) array.
fn scalars<T: ArrowNativeType>(array: &ArrayRef) -> ScalarBuffer<T> {
    let data = array.to_data();
    ScalarBuffer::new(data.buffers()[0].clone(), data.offset(), data.len())
}

fn compare_floats(left: f64, right: f64) -> Ordering {
    canonical(left).total_cmp(&canonical(right))
}

/// For each of `rows` rows a 64-bit prefix of its place under the directions: a smaller prefix stands earlier. Prefixes of different batches
/// compare, given the same column types and directions.
///
/// The second result says whether prefixes are exact here: equal prefixes mean equal rows. It takes a single column
/// of integers, floats, booleans, dates or times without nulls, or of decimals that fit in 64 bits. Between
/// batches an equal prefix decides only if both are exact.
///
/// The first column decides, so rows that differ in later columns only have equal prefixes. Without columns all prefixes are 0, exactly.
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
        Cells::MonthDayNano(values) => place.each(|row| (pair(values[row].months, values[row].days), false)),
        Cells::Bytes(values) => place.each(|row| (text(values.bytes(row)), false)),
        Cells::LargeBytes(values) => place.each(|row| (text(values.bytes(row)), false)),
        Cells::Fixed(values) => place.each(|row| (text(values.bytes(row)), false)),
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
    /// Prefixes of values lie within these bounds, whether there are nulls or not: other batches may have some.
    bounds: (u64, u64),
}

impl Place {
    fn new(array: &ArrayRef, direction: Direction, rows: usize) -> Place {
        let (null, bounds) = match direction.nulls_first {
            true => (u64::MIN, (u64::MIN + 1, u64::MAX)),
            false => (u64::MAX, (u64::MIN, u64::MAX - 1)),
        };
        Place { nulls: nulls(array), rows, flip: if direction.descending { u64::MAX } else { 0 }, null, bounds }
    }

    /// `ascending(row)` is the prefix of a non-null cell in ascending order, and whether no other value has the same.
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
            Some(nulls) => {
                (0..self.rows).map(|row| if nulls.is_valid(row) { place(row) } else { self.null }).collect()
            }
        };
        (prefixes, exact)
    }
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
fn text(bytes: &[u8]) -> u64 {
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
        _ => text(values.bytes(row)),
    }
}
