//! Sums, differences and products of decimals and integers, exact, in machine words while they fit.
//!
//! Law: the value of each row is that of the general form of the expression. Where a value may not
//! fit the words that are used here (known from the most significant bits of a block's values,
//! before anything is computed) the general form evaluates the batch, errors included.
//!
//! Cost: rows are evaluated in blocks that stay in the first-level cache; a decimal, also one of 16
//! bytes, is read once and computed with as one 8-byte word, so an operation is one instruction a
//! row, without a test for overflow. The general form works on 16 bytes and tests every row: some
//! 10 ns for a product.
//!
//! Source: MonetDB/X100 (CIDR 2005) for blocks; the bound of a block in place of the bound of a
//! type is ours.

use std::sync::Arc;

use anabranch_batch::Columns;
use arrow::array::{Array, ArrayRef, ArrowPrimitiveType, AsArray, PrimitiveArray};
use arrow::buffer::NullBuffer;
use arrow::datatypes::{DataType, Decimal64Type, Decimal128Type, Int32Type, Int64Type};

use crate::expression::{Expression, ExpressionRef};

/// Rows evaluated together.
const BLOCK_ROWS: usize = 512;

/// Absolute values of words are below two to this power.
const WORD_BITS: u32 = 62;

/// What is computed, from unscaled values (decimals without their point).
#[derive(Clone, Debug, PartialEq)]
pub enum Term {
    /// A column of decimals or integers.
    Column(usize),
    /// The same in every row.
    Constant(i64),
    /// Of both.
    Sum(Box<Term>, Box<Term>),
    /// The first less the second.
    Difference(Box<Term>, Box<Term>),
    /// Of both.
    Product(Box<Term>, Box<Term>),
}

/// A term as an expression of decimals.
pub struct Arithmetic {
    term: Term,
    /// Columns that the term reads.
    columns: Vec<usize>,
    /// A decimal of 64 or 128 bits.
    output_type: DataType,
    /// Evaluates batches that do not fit.
    general: ExpressionRef,
}

impl Arithmetic {
    /// The term, whose general form is this; `None` where that is not faster.
    pub fn new(term: Term, output_type: DataType, general: ExpressionRef) -> Option<Arithmetic> {
        let is_computed = !matches!(term, Term::Column(_) | Term::Constant(_));
        let is_decimal = matches!(output_type, DataType::Decimal64(..) | DataType::Decimal128(..));
        let mut columns = Vec::new();
        term.list_columns(&mut columns);
        (is_computed && is_decimal && !columns.is_empty()).then_some(Arithmetic { term, columns, output_type, general })
    }

    /// Whether a column of this type can be read.
    pub fn reads(data_type: &DataType) -> bool {
        use DataType::{Decimal64, Decimal128, Int32, Int64};
        matches!(data_type, Decimal64(..) | Decimal128(..) | Int64 | Int32)
    }

    /// The values; `None` if some may not fit.
    fn in_words<V: From<i64>>(&self, columns: &Columns, rows: usize) -> Option<Vec<V>> {
        let mut values = Vec::with_capacity(rows);
        let mut scratch = Scratch { free: Vec::new(), len: BLOCK_ROWS.min(rows) };
        for start in (0..rows).step_by(BLOCK_ROWS) {
            let block = Block { columns, start, len: BLOCK_ROWS.min(rows - start) };
            let root = block.evaluate(&self.term, &mut scratch)?;
            values.extend(root.words[..block.len].iter().map(|&word| V::from(word)));
            scratch.free.push(root.words);
        }
        Some(values)
    }

    /// The same as a column.
    fn column<T: ArrowPrimitiveType<Native: From<i64>>>(&self, columns: &Columns, rows: usize) -> Option<ArrayRef> {
        let values = PrimitiveArray::<T>::new(self.in_words(columns, rows)?.into(), self.nulls(columns));
        Some(Arc::new(values.with_data_type(self.output_type.clone())))
    }

    fn nulls(&self, columns: &Columns) -> Option<NullBuffer> {
        let nulls = self.columns.iter().map(|&column| columns[column].logical_nulls());
        nulls.fold(None, |all, nulls| NullBuffer::union(all.as_ref(), nulls.as_ref()))
    }
}

impl Expression for Arithmetic {
    fn evaluate(&self, columns: &Columns, rows: usize) -> Result<ArrayRef, String> {
        let column = match self.output_type {
            DataType::Decimal64(..) => self.column::<Decimal64Type>(columns, rows),
            _ => self.column::<Decimal128Type>(columns, rows),
        };
        column.map_or_else(|| self.general.evaluate(columns, rows), Ok)
    }
}

impl Term {
    fn list_columns(&self, columns: &mut Vec<usize>) {
        match self {
            Term::Column(column) if !columns.contains(column) => columns.push(*column),
            Term::Column(_) | Term::Constant(_) => {}
            Term::Sum(left, right) | Term::Difference(left, right) | Term::Product(left, right) => {
                left.list_columns(columns);
                right.list_columns(columns);
            }
        }
    }
}

/// One for each row of a block, the first of all.
type Words = Vec<i64>;

/// Words that are not in use.
struct Scratch {
    free: Vec<Words>,
    /// Rows of the longest block.
    len: usize,
}

impl Scratch {
    fn words(&mut self) -> Words {
        self.free.pop().unwrap_or_else(|| vec![0; self.len])
    }
}

/// The values of a term in a block.
struct Values {
    words: Words,
    /// Absolute values are at most two to this power.
    bits: u32,
}

/// Rows that are evaluated together.
struct Block<'a> {
    columns: &'a Columns,
    start: usize,
    len: usize,
}

impl Block<'_> {
    /// The values of a term; `None` if some may not fit.
    fn evaluate(&self, term: &Term, scratch: &mut Scratch) -> Option<Values> {
        match term {
            Term::Column(column) => self.read(&self.columns[*column], scratch),
            Term::Constant(value) => {
                let mut words = scratch.words();
                words[..self.len].fill(*value);
                fitting(words, bits_of(value.unsigned_abs()))
            }
            Term::Sum(left, right) => {
                let (mut left, right) = (self.evaluate(left, scratch)?, self.evaluate(right, scratch)?);
                left.words
                    .iter_mut()
                    .zip(right.words.iter())
                    .for_each(|(left, right)| *left = left.wrapping_add(*right));
                let bits = left.bits.max(right.bits) + 1;
                scratch.free.push(right.words);
                fitting(left.words, bits)
            }
            Term::Difference(left, right) => {
                let (mut left, right) = (self.evaluate(left, scratch)?, self.evaluate(right, scratch)?);
                left.words
                    .iter_mut()
                    .zip(right.words.iter())
                    .for_each(|(left, right)| *left = left.wrapping_sub(*right));
                let bits = left.bits.max(right.bits) + 1;
                scratch.free.push(right.words);
                fitting(left.words, bits)
            }
            Term::Product(left, right) => {
                let (mut left, right) = (self.evaluate(left, scratch)?, self.evaluate(right, scratch)?);
                left.words
                    .iter_mut()
                    .zip(right.words.iter())
                    .for_each(|(left, right)| *left = left.wrapping_mul(*right));
                let bits = left.bits + right.bits;
                scratch.free.push(right.words);
                fitting(left.words, bits)
            }
        }
    }

    fn read(&self, column: &ArrayRef, scratch: &mut Scratch) -> Option<Values> {
        let mut words = scratch.words();
        let rows = self.start..self.start + self.len;
        let bits = match column.data_type() {
            DataType::Decimal64(..) => read_narrow(&column.as_primitive::<Decimal64Type>().values()[rows], &mut words),
            DataType::Decimal128(..) => read_wide(&column.as_primitive::<Decimal128Type>().values()[rows], &mut words)?,
            DataType::Int64 => read_narrow(&column.as_primitive::<Int64Type>().values()[rows], &mut words),
            DataType::Int32 => read_narrow(&column.as_primitive::<Int32Type>().values()[rows], &mut words),
            other => unreachable!("no column of type {other} was to be read"),
        };
        fitting(words, bits)
    }
}

fn fitting(words: Words, bits: u32) -> Option<Values> {
    (bits <= WORD_BITS).then_some(Values { words, bits })
}

/// The least `n` with `magnitude <= 2^n`, or one more.
fn bits_of(magnitude: u64) -> u32 {
    u64::BITS - magnitude.leading_zeros()
}

/// Reads 128-bit integers; `None` if one does not fit a word. (Slots of NULLs count, whatever they
/// hold: they cost a little speed at worst.)
fn read_wide(slots: &[i128], words: &mut [i64]) -> Option<u32> {
    let (mut magnitudes, mut excess) = (0u64, 0u64);
    for (word, &slot) in words.iter_mut().zip(slots) {
        let (low, high) = (slot as i64, (slot >> 64) as i64);
        let sign = low >> 63;
        magnitudes |= (low ^ sign) as u64;
        excess |= (high ^ sign) as u64;
        *word = low;
    }
    // (The magnitude of a negative number is one more than its complement.)
    (excess == 0).then(|| bits_of(magnitudes))
}

fn read_narrow<T: Copy + Into<i64>>(slots: &[T], words: &mut [i64]) -> u32 {
    let mut magnitudes = 0u64;
    for (word, &slot) in words.iter_mut().zip(slots) {
        let value: i64 = slot.into();
        magnitudes |= (value ^ (value >> 63)) as u64;
        *word = value;
    }
    bits_of(magnitudes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use anabranch_batch::types;
    use arrow::array::{Decimal128Array, Int32Array};

    /// The same, a row at a time in 128 bits.
    struct General(Term);

    fn value(term: &Term, columns: &Columns, row: usize) -> Option<i128> {
        let pair = |left: &Term, right: &Term| value(left, columns, row).zip(value(right, columns, row));
        match term {
            Term::Column(column) => {
                let column = &columns[*column];
                column.is_valid(row).then(|| match column.data_type() {
                    DataType::Int32 => i128::from(column.as_primitive::<Int32Type>().value(row)),
                    _ => column.as_primitive::<Decimal128Type>().value(row),
                })
            }
            Term::Constant(value) => Some(i128::from(*value)),
            Term::Sum(left, right) => pair(left, right).map(|(left, right)| left + right),
            Term::Difference(left, right) => pair(left, right).map(|(left, right)| left - right),
            Term::Product(left, right) => pair(left, right).map(|(left, right)| left * right),
        }
    }

    impl Expression for General {
        fn evaluate(&self, columns: &Columns, rows: usize) -> Result<ArrayRef, String> {
            let values: Decimal128Array = (0..rows).map(|row| value(&self.0, columns, row)).collect();
            Ok(Arc::new(values.with_precision_and_scale(38, 4).unwrap()))
        }
    }

    fn decimals(values: impl Iterator<Item = Option<i128>>) -> ArrayRef {
        let values: Decimal128Array = values.collect();
        Arc::new(values.with_precision_and_scale(38, 2).unwrap())
    }

    fn check(term: Term, columns: &Columns, fits: bool) {
        let rows = columns[0].len();
        let general: ExpressionRef = Arc::new(General(term.clone()));
        let fast = Arithmetic::new(term.clone(), DataType::Decimal128(38, 4), Arc::clone(&general)).unwrap();
        assert_eq!(fast.in_words::<i128>(columns, rows).is_some(), fits, "{term:?}");
        assert_eq!(&fast.evaluate(columns, rows).unwrap(), &general.evaluate(columns, rows).unwrap(), "{term:?}");
    }

    #[test]
    fn words_and_the_general_form_agree() {
        let price = decimals((0..1500).map(|row| (row % 7 != 3).then_some(row * 997 - 400_000)));
        let large = decimals((0..1500).map(|row| Some(if row == 1499 { -(1i128 << 100) } else { row })));
        let edge = decimals((0..1500).map(|row| Some((1i128 << 60) - row)));
        let count: ArrayRef = Arc::new(Int32Array::from_iter((0..1500).map(|row| (row % 5 > 0).then_some(row - 700))));
        let columns: Columns = vec![price, large, edge, count].into();
        let column = |column| Box::new(Term::Column(column));
        let less = |column| Box::new(Term::Difference(Box::new(Term::Constant(100)), Box::new(Term::Column(column))));
        check(Term::Product(column(0), less(3)), &columns, true);
        check(Term::Product(Box::new(Term::Product(column(0), less(3))), column(3)), &columns, true);
        check(Term::Sum(column(0), column(3)), &columns, true);
        check(Term::Sum(column(1), column(0)), &columns, false);
        check(Term::Sum(column(2), column(0)), &columns, true);
        check(Term::Sum(Box::new(Term::Sum(column(2), column(2))), column(2)), &columns, false);
        check(Term::Product(column(2), column(0)), &columns, false);
    }

    #[test]
    fn narrow_decimals_are_read_and_made_as_wide_ones_are() {
        let price = (0..1500).map(|row| (row % 7 != 3).then_some(row * 997 - 400_000));
        let share = (0..1500).map(|row| Some(row % 11));
        let wide = |values: Vec<Option<i128>>| -> ArrayRef {
            Arc::new(Decimal128Array::from(values).with_precision_and_scale(9, 2).unwrap())
        };
        let columns: Columns = vec![wide(price.collect()), wide(share.collect())].into();
        let narrow = columns.iter().map(types::narrowed).collect::<Result<Columns, _>>().unwrap();
        let column = |column| Box::new(Term::Column(column));
        for term in [Term::Sum(column(0), column(1)), Term::Product(column(0), column(1))] {
            let general: ExpressionRef = Arc::new(General(term.clone()));
            let of = |output_type: DataType| Arithmetic::new(term.clone(), output_type, Arc::clone(&general)).unwrap();
            let expected = of(DataType::Decimal128(18, 4)).evaluate(&columns, 1500).unwrap();
            assert_eq!(&of(DataType::Decimal128(18, 4)).evaluate(&narrow, 1500).unwrap(), &expected);
            let made = of(DataType::Decimal64(18, 4)).evaluate(&narrow, 1500).unwrap();
            assert_eq!(&types::widened(&made), &expected);
        }
    }

    #[test]
    fn bounds_hold_at_powers_of_two() {
        for (value, bits) in [(0u64, 0), (1, 1), (2, 2), (3, 2), (4, 3), (1 << 61, 62)] {
            assert_eq!(bits_of(value), bits);
        }
        // -(2^61) has the bits of its complement 2^61 - 1, and its product with itself the sum of
        // both.
        let mut words = vec![0; 1];
        assert_eq!(read_wide(&[-(1 << 61)], &mut words), Some(61));
        assert_eq!(read_wide(&[1 << 64], &mut words), None);
    }
}
