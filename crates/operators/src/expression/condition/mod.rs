//! Conditions on columns as they are: ranges, one column against another, sets of texts, LIKE. What
//! most filters are made of.
//!
//! Law: a row passes when every test is true of it; a test of NULL is not true, negated or not
//! (SQL's WHERE). No test can fail, so their order shows in nothing but the cost.
//!
//! Cost: rows are looked at in blocks of 64, whose verdict is one word. A test looks at those rows
//! of a block that are left: at all of them, column at a time, while they are many (a third of a
//! nanosecond a row of 4 bytes), else at each; blocks of which nothing is left are passed over.
//! Nothing is copied.
//!
//! Source: selection vectors (MonetDB/X100, CIDR 2005), as bits.

mod like;

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, StringViewArray, make_view};
use arrow::buffer::{BooleanBuffer, NullBuffer};
use arrow::datatypes::{
    DataType, Date32Type, Date64Type, Decimal64Type, Decimal128Type, Int16Type, Int32Type, Int64Type, TimeUnit,
    TimestampMicrosecondType, TimestampMillisecondType, TimestampNanosecondType, TimestampSecondType, UInt64Type,
};
use std::sync::Arc;

use anabranch_batch::Columns;

use crate::expression::Expression;
pub use like::Like;

/// Tests of which all must be true.
#[derive(Clone, Debug)]
pub struct Condition {
    tests: Vec<Test>,
}

/// One test of a column.
#[derive(Clone, Debug)]
pub struct Test {
    /// Position of the column.
    pub column: usize,
    /// What is asked.
    pub question: Question,
    /// Whether the answer is turned round.
    pub negated: bool,
}

/// What is asked of a cell.
#[derive(Clone, Debug)]
pub enum Question {
    /// Is it `least ..= greatest`? Of integers, dates and times, and of decimals without their
    /// point.
    Range {
        /// The first that is in it.
        least: i128,
        /// The last that is in it.
        greatest: i128,
    },
    /// Is it less than (or equal to) the cell of another column of the same type?
    Below {
        /// Position of the other column.
        other: usize,
        /// Whether equal cells will do.
        or_equal: bool,
    },
    /// Is it one of these texts?
    OneOf(Vec<String>),
    /// Does it match?
    Like(Like),
}

/// A block whose rows are this few is looked at row by row.
const SPARSE_ROWS: u32 = 12;

/// Rows of a block: the bits of its verdict.
const BLOCK_ROWS: usize = 64;

impl Condition {
    /// All of these tests. Ranges of one column are looked at together.
    ///
    /// # Panics
    /// If there is no test.
    pub fn new(tests: Vec<Test>) -> Condition {
        assert!(!tests.is_empty(), "a condition has a test");
        let mut merged: Vec<Test> = Vec::new();
        for test in tests {
            match merged.iter_mut().find_map(|known| known.range_of(&test)) {
                Some((least, greatest)) => {
                    if let Question::Range { least: other_least, greatest: other_greatest } = test.question {
                        (*least, *greatest) = ((*least).max(other_least), (*greatest).min(other_greatest));
                    }
                }
                None => merged.push(test),
            }
        }
        merged.sort_by_key(Test::cost);
        Condition { tests: merged }
    }

    /// Where a column of this type can be asked for a range, or compared with another of its type.
    pub fn is_ordered(data_type: &DataType) -> bool {
        use DataType::{Date32, Date64, Decimal64, Decimal128, Int16, Int32, Int64, Timestamp, UInt64};
        matches!(data_type, Int16 | Int32 | Int64 | UInt64 | Date32 | Date64 | Timestamp(..))
            || matches!(data_type, Decimal64(..) | Decimal128(..))
    }

    /// Which rows pass.
    fn mask(&self, columns: &Columns, rows: usize) -> BooleanBuffer {
        if rows <= BLOCK_ROWS {
            return BooleanBuffer::new(vec![self.verdict_of_few(columns, rows)].into(), 0, rows);
        }
        let bound: Vec<Bound> = self.tests.iter().map(|test| Bound::new(test, columns)).collect();
        let mut words: Vec<u64> = Vec::with_capacity(rows.div_ceil(BLOCK_ROWS));
        for start in (0..rows).step_by(BLOCK_ROWS) {
            let len = BLOCK_ROWS.min(rows - start);
            let mut left = u64::MAX >> (BLOCK_ROWS - len);
            for test in &bound {
                if left == 0 {
                    break;
                }
                left &= test.verdict(start, len, left);
            }
            words.push(left);
        }
        BooleanBuffer::new(words.into(), 0, rows)
    }

    /// Which rows of a block, the only one, pass. Tests after the last row has failed are not even
    /// prepared.
    fn verdict_of_few(&self, columns: &Columns, rows: usize) -> u64 {
        let mut left = u64::MAX.unbounded_shr((BLOCK_ROWS - rows) as u32);
        for test in &self.tests {
            if left == 0 {
                break;
            }
            left &= Bound::new(test, columns).verdict(0, rows, left);
        }
        left
    }
}

impl Expression for Condition {
    fn evaluate(&self, columns: &Columns, rows: usize) -> Result<ArrayRef, String> {
        Ok(Arc::new(BooleanArray::new(self.mask(columns, rows), None)))
    }

    fn verdict(&self, columns: &Columns, rows: usize) -> Option<u64> {
        (rows <= BLOCK_ROWS).then(|| self.verdict_of_few(columns, rows))
    }

    fn is_quick(&self) -> bool {
        self.tests.iter().all(|test| matches!(test.question, Question::Range { .. } | Question::Below { .. }))
    }
}

impl Test {
    /// The range, if both ask the same column for one.
    fn range_of(&mut self, other: &Test) -> Option<(&mut i128, &mut i128)> {
        let is_range = matches!(other.question, Question::Range { .. });
        let is_same = self.column == other.column && !self.negated && !other.negated && is_range;
        match &mut self.question {
            Question::Range { least, greatest } if is_same => Some((least, greatest)),
            _ => None,
        }
    }

    /// Cheap tests go first. (Tests of one cost stay in the order in which they were written.)
    fn cost(&self) -> u8 {
        match self.question {
            Question::Range { .. } => 0,
            Question::Below { .. } => 1,
            Question::OneOf(_) => 2,
            Question::Like(_) => 3,
        }
    }
}

/// A test with the cells it looks at.
struct Bound<'a> {
    cells: Cells<'a>,
    negated: bool,
    /// Where the cells it looks at are there, if some are not.
    valid: Option<NullBuffer>,
}

enum Cells<'a> {
    RangeI16(&'a [i16], [i16; 2]),
    RangeI32(&'a [i32], [i32; 2]),
    RangeI64(&'a [i64], [i64; 2]),
    RangeU64(&'a [u64], [u64; 2]),
    RangeI128(&'a [i128], [i128; 2]),
    /// Nothing is in the range.
    Nothing,
    BelowI16(&'a [i16], &'a [i16], bool),
    BelowI32(&'a [i32], &'a [i32], bool),
    BelowI64(&'a [i64], &'a [i64], bool),
    BelowU64(&'a [u64], &'a [u64], bool),
    BelowI128(&'a [i128], &'a [i128], bool),
    /// The texts that are wanted: as views hold them where they are short.
    OneOf(&'a StringViewArray, Vec<u128>, Vec<&'a str>),
    Like(&'a StringViewArray, &'a Like),
}

/// The slots of a column of ordered cells.
enum Slots<'a> {
    I16(&'a [i16]),
    I32(&'a [i32]),
    I64(&'a [i64]),
    U64(&'a [u64]),
    I128(&'a [i128]),
}

impl<'a> Bound<'a> {
    fn new(test: &'a Test, columns: &'a Columns) -> Bound<'a> {
        let column = &columns[test.column];
        let mut valid = column.logical_nulls();
        let cells = match &test.question {
            Question::Range { least, greatest } => range(column, *least, *greatest),
            Question::Below { other, or_equal } => {
                valid = NullBuffer::union(valid.as_ref(), columns[*other].logical_nulls().as_ref());
                below(column, &columns[*other], *or_equal)
            }
            Question::OneOf(wanted) => {
                let (short, long): (Vec<&str>, Vec<&str>) =
                    wanted.iter().map(String::as_str).partition(|text| text.len() <= 12);
                let short = short.into_iter().map(|text| make_view(text.as_bytes(), 0, 0)).collect();
                Cells::OneOf(column.as_string_view(), short, long)
            }
            Question::Like(like) => Cells::Like(column.as_string_view(), like),
        };
        Bound { cells, negated: test.negated, valid: valid.filter(|nulls| nulls.null_count() > 0) }
    }

    /// Of the `len` rows from `start` on, those of `left` of which the test is true.
    #[inline]
    fn verdict(&self, start: usize, len: usize, left: u64) -> u64 {
        let verdict = self.cells.verdict(start, len, left);
        let verdict = if self.negated { !verdict } else { verdict };
        match &self.valid {
            None => verdict,
            Some(valid) => verdict & each(left, |row| valid.is_valid(start + row)),
        }
    }
}

fn range<'a>(column: &'a ArrayRef, least: i128, greatest: i128) -> Cells<'a> {
    /// The part of the range that the type has; `None` if it is empty.
    fn part<T: TryFrom<i128>>(least: i128, greatest: i128, min: i128, max: i128) -> Option<[T; 2]> {
        let (least, greatest) = (least.max(min), greatest.min(max));
        let bound = |value: i128| T::try_from(value).ok();
        (least <= greatest).then_some([bound(least)?, bound(greatest)?])
    }
    macro_rules! cells {
        ($slots:expr, $variant:ident, $native:ty) => {
            part::<$native>(least, greatest, <$native>::MIN as i128, <$native>::MAX as i128)
                .map(|bounds| Cells::$variant($slots, bounds))
        };
    }
    let cells = match slots(column) {
        Slots::I16(slots) => cells!(slots, RangeI16, i16),
        Slots::I32(slots) => cells!(slots, RangeI32, i32),
        Slots::I64(slots) => cells!(slots, RangeI64, i64),
        Slots::U64(slots) => cells!(slots, RangeU64, u64),
        Slots::I128(slots) => cells!(slots, RangeI128, i128),
    };
    cells.unwrap_or(Cells::Nothing)
}

fn below<'a>(left: &'a ArrayRef, right: &'a ArrayRef, or_equal: bool) -> Cells<'a> {
    match (slots(left), slots(right)) {
        (Slots::I16(left), Slots::I16(right)) => Cells::BelowI16(left, right, or_equal),
        (Slots::I32(left), Slots::I32(right)) => Cells::BelowI32(left, right, or_equal),
        (Slots::I64(left), Slots::I64(right)) => Cells::BelowI64(left, right, or_equal),
        (Slots::U64(left), Slots::U64(right)) => Cells::BelowU64(left, right, or_equal),
        (Slots::I128(left), Slots::I128(right)) => Cells::BelowI128(left, right, or_equal),
        _ => unreachable!("columns of one type are compared"),
    }
}

fn slots(column: &ArrayRef) -> Slots<'_> {
    macro_rules! primitive {
        ($variant:ident, $arrow:ty) => {
            Slots::$variant(column.as_primitive::<$arrow>().values())
        };
    }
    match column.data_type() {
        DataType::Int16 => primitive!(I16, Int16Type),
        DataType::Int32 => primitive!(I32, Int32Type),
        DataType::Date32 => primitive!(I32, Date32Type),
        DataType::Int64 => primitive!(I64, Int64Type),
        DataType::Date64 => primitive!(I64, Date64Type),
        DataType::UInt64 => primitive!(U64, UInt64Type),
        DataType::Timestamp(TimeUnit::Second, _) => primitive!(I64, TimestampSecondType),
        DataType::Timestamp(TimeUnit::Millisecond, _) => primitive!(I64, TimestampMillisecondType),
        DataType::Timestamp(TimeUnit::Microsecond, _) => primitive!(I64, TimestampMicrosecondType),
        DataType::Timestamp(TimeUnit::Nanosecond, _) => primitive!(I64, TimestampNanosecondType),
        DataType::Decimal64(..) => primitive!(I64, Decimal64Type),
        DataType::Decimal128(..) => primitive!(I128, Decimal128Type),
        other => panic!("a column of type {other} is not ordered here"),
    }
}

impl Cells<'_> {
    #[inline]
    fn verdict(&self, start: usize, len: usize, left: u64) -> u64 {
        macro_rules! range {
            ($slots:expr, $bounds:expr) => {{
                let (slots, [least, greatest]) = (&$slots[start..start + len], *$bounds);
                bits(slots, left, |&slot| (least <= slot) & (slot <= greatest))
            }};
        }
        macro_rules! below {
            ($left:expr, $right:expr, $or_equal:expr) => {{
                let (lefts, rights) = (&$left[start..start + len], &$right[start..start + len]);
                match *$or_equal {
                    true => pair_bits(lefts, rights, left, |left, right| left <= right),
                    false => pair_bits(lefts, rights, left, |left, right| left < right),
                }
            }};
        }
        match self {
            Cells::RangeI16(slots, bounds) => range!(slots, bounds),
            Cells::RangeI32(slots, bounds) => range!(slots, bounds),
            Cells::RangeI64(slots, bounds) => range!(slots, bounds),
            Cells::RangeU64(slots, bounds) => range!(slots, bounds),
            Cells::RangeI128(slots, bounds) => range!(slots, bounds),
            Cells::Nothing => 0,
            Cells::BelowI16(lefts, rights, or_equal) => below!(lefts, rights, or_equal),
            Cells::BelowI32(lefts, rights, or_equal) => below!(lefts, rights, or_equal),
            Cells::BelowI64(lefts, rights, or_equal) => below!(lefts, rights, or_equal),
            Cells::BelowU64(lefts, rights, or_equal) => below!(lefts, rights, or_equal),
            Cells::BelowI128(lefts, rights, or_equal) => below!(lefts, rights, or_equal),
            Cells::OneOf(texts, short, long) => {
                let views = &texts.views()[start..start + len];
                let mut verdict =
                    short.iter().fold(0, |found, wanted| found | bits(views, left, |view| view == wanted));
                if !long.is_empty() {
                    verdict |= each(left & !verdict, |row| {
                        views[row] as u32 as usize > 12 && long.contains(&texts.value(start + row))
                    });
                }
                verdict
            }
            Cells::Like(texts, like) => each(left, |row| like.matches(texts.value(start + row).as_bytes())),
        }
    }
}

/// The rows of `left` for which the answer is true.
#[inline]
fn each(left: u64, answer: impl Fn(usize) -> bool) -> u64 {
    let (mut rest, mut verdict) = (left, 0);
    while rest != 0 {
        let row = rest.trailing_zeros();
        verdict |= u64::from(answer(row as usize)) << row;
        rest &= rest - 1;
    }
    verdict
}

/// The rows, of those in `left` at least, for whose slot the answer is true.
#[inline]
fn bits<T>(slots: &[T], left: u64, answer: impl Fn(&T) -> bool) -> u64 {
    if left.count_ones() <= SPARSE_ROWS {
        return each(left, |row| answer(&slots[row]));
    }
    let mut bytes = [0u8; BLOCK_ROWS];
    bytes.iter_mut().zip(slots).for_each(|(byte, slot)| *byte = u8::from(answer(slot)));
    packed(&bytes)
}

/// As [`bits`], of pairs of slots.
#[inline]
fn pair_bits<T>(lefts: &[T], rights: &[T], left: u64, answer: impl Fn(&T, &T) -> bool) -> u64 {
    if left.count_ones() <= SPARSE_ROWS {
        return each(left, |row| answer(&lefts[row], &rights[row]));
    }
    let mut bytes = [0u8; BLOCK_ROWS];
    let pairs = lefts.iter().zip(rights);
    bytes.iter_mut().zip(pairs).for_each(|(byte, (left, right))| *byte = u8::from(answer(left, right)));
    packed(&bytes)
}

/// A bit for each byte, all of which are 0 or 1. (The product moves the bytes' bits side by side
/// into the highest byte.)
#[inline]
fn packed(bytes: &[u8; BLOCK_ROWS]) -> u64 {
    let eights = bytes.as_chunks::<8>().0.iter().enumerate();
    eights.fold(0, |verdict, (at, eight)| {
        let bits = u64::from_le_bytes(*eight).wrapping_mul(0x0102_0408_1020_4080) >> 56;
        verdict | bits << (8 * at)
    })
}

#[cfg(test)]
mod tests;
