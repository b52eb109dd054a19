//! Unnest: one row for each element of a list, or of several lists side by side.
//!
//! Law: stateless; each output row has the time and diff of the row it came from. Of several lists
//! the first elements make a row, then the second ones; a shorter list is filled up with NULL. A
//! row whose lists are all empty or NULL yields nothing, or with `outer` one row with NULLs. Cost:
//! one gather for each list and one for the other columns; elements that follow one another are not
//! even moved. Rows are put out in pieces, so a long list takes no memory of its length but its
//! own.

use anabranch_batch::{Batch, Columns, gather, types};
use arrow::array::{Array, ArrayRef, AsArray, UInt32Array};
use arrow::compute;
use arrow::datatypes::DataType;

use crate::stateless::filter_project::error_rows;
use anabranch_flow::tactic::Output;

/// Replaces list columns by their elements.
#[derive(Clone, Debug)]
pub struct Unnest {
    /// Positions of the list columns, at least one.
    pub columns: Vec<usize>,
    /// Whether a row without elements yields one row with NULLs.
    pub outer: bool,
}

impl Unnest {
    /// Applies the verb to a batch. Where an element has more digits than its type says, its row is
    /// in error.
    pub fn apply(&self, batch: Batch, out: &mut Output) {
        let lists: Result<Vec<Lists>, String> =
            self.columns.iter().map(|column| Lists::of(batch.column(*column))).collect();
        let lists = match lists {
            Ok(lists) => lists,
            Err(message) if batch.len() == 1 => return out.give_errors(error_rows(&batch, &message)),
            Err(_) => {
                // (Rows are picked, not sliced: a slice of lists has the elements of all.)
                let (n, half) = (batch.len() as u32, batch.len() as u32 / 2);
                let halves = [(0..half), (half..n)].map(|rows| batch.take(&rows.collect::<Vec<u32>>()));
                return halves.into_iter().for_each(|half| self.apply(half, out));
            }
        };
        // The lists are left out first: repeated for each of its elements a list would grow with
        // their square.
        let n_columns = batch.columns().len();
        let others: Vec<usize> = (0..n_columns).filter(|column| !self.columns.contains(column)).collect();
        let rest = batch.project(&others);
        let mut pieces = Pieces { lists: &lists, outer: self.outer, n_rows: batch.len(), row: 0, at: 0 };
        while let Some(piece) = pieces.next_piece() {
            let repeated = rest.take(&piece.rows);
            let mut rest = repeated.columns().iter();
            let columns = (0..n_columns).map(|column| match self.columns.iter().position(|list| *list == column) {
                Some(at) => lists[at].pick(&piece.picks[at]),
                None => ArrayRef::clone(rest.next().expect("every column that is no list was repeated")),
            });
            let columns: Vec<ArrayRef> = columns.collect();
            out.give_rows(repeated.with_columns(Columns::from(columns)));
        }
    }
}

/// Fewer elements are copied: a slice keeps all elements of its lists.
const SLICED_ROWS_MIN: usize = 1 << 10;

/// Rows of a piece.
const PIECE_ROWS: usize = 1 << 16;

/// The rows to put out, piece by piece.
struct Pieces<'a> {
    lists: &'a [Lists],
    outer: bool,
    n_rows: usize,
    /// What comes next: an element of a row.
    row: usize,
    at: usize,
}

/// Some of the rows to put out.
struct Piece {
    /// The row that each comes from.
    rows: Vec<u32>,
    /// Of each list, the element in each row.
    picks: Vec<Vec<Option<u32>>>,
}

impl Pieces<'_> {
    fn next_piece(&mut self) -> Option<Piece> {
        let mut piece = Piece { rows: Vec::new(), picks: vec![Vec::new(); self.lists.len()] };
        while self.row < self.n_rows && piece.rows.len() < PIECE_ROWS {
            let (row, at) = (self.row, self.at);
            let longest = self.lists.iter().map(|list| list.len(row)).max().unwrap_or(0);
            let n_all = if self.outer { longest.max(1) } else { longest };
            let end = n_all.min(at + PIECE_ROWS - piece.rows.len());
            piece.rows.extend(std::iter::repeat_n(row as u32, end - at));
            for (list, picks) in self.lists.iter().zip(&mut piece.picks) {
                let (first, len) = (list.offsets[row], list.len(row));
                picks.extend((at..end).map(|at| (at < len).then_some((first + at) as u32)));
            }
            (self.row, self.at) = if end == n_all { (row + 1, 0) } else { (row, end) };
        }
        (!piece.rows.is_empty()).then_some(piece)
    }
}

/// A list column: where each row's elements lie.
struct Lists {
    lists: ArrayRef,
    /// One more than rows: row i's elements are at `offsets[i]..offsets[i + 1]`, unless it is NULL.
    offsets: Vec<usize>,
    elements: ArrayRef,
}

impl Lists {
    /// An error if an element has more digits than its type says.
    fn of(lists: &ArrayRef) -> Result<Lists, String> {
        let (offsets, elements) = match lists.data_type() {
            DataType::LargeList(_) => {
                let list = lists.as_list::<i64>();
                (list.offsets().iter().map(|offset| *offset as usize).collect(), list.values())
            }
            DataType::FixedSizeList(_, size) => {
                let list = lists.as_fixed_size_list();
                ((0..=list.len()).map(|i| i * *size as usize).collect(), list.values())
            }
            _ => {
                let list = lists.as_list::<i32>();
                (list.offsets().iter().map(|offset| *offset as usize).collect(), list.values())
            }
        };
        let elements = types::narrowed(elements).map_err(|error| error.detail())?;
        Ok(Lists { lists: lists.clone(), offsets, elements })
    }

    fn len(&self, row: usize) -> usize {
        if self.lists.is_null(row) { 0 } else { self.offsets[row + 1] - self.offsets[row] }
    }

    fn pick(&self, picks: &[Option<u32>]) -> ArrayRef {
        if let Some(picks) = picks.iter().copied().collect::<Option<Vec<u32>>>() {
            let follow = picks.windows(2).all(|pair| pair[0] + 1 == pair[1]);
            if let Some(first) = picks.first().filter(|_| follow && picks.len() >= SLICED_ROWS_MIN) {
                return self.elements.slice(*first as usize, picks.len());
            }
            return gather::take(std::slice::from_ref(&self.elements), &picks)[0].clone();
        }
        compute::take(&self.elements, &UInt32Array::from(picks.to_vec()), None).expect("picks lie inside the values")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use anabranch_batch::{Diffs, Times};
    use arrow::array::{Decimal128Array, Int64Array, ListArray};
    use arrow::buffer::OffsetBuffer;
    use arrow::datatypes::{Decimal64Type, Field, Int64Type};
    use std::sync::Arc;

    /// Rows numbered from 0 on, with two elements each; `long` is the place of an element that has
    /// too many digits.
    fn unnested(n_rows: i64, long: usize) -> Output {
        let elements = (0..2 * n_rows as usize).map(|at| if at == long { 1i128 << 70 } else { at as i128 });
        let elements = Decimal128Array::from_iter_values(elements).with_precision_and_scale(9, 2).unwrap();
        let field = Arc::new(Field::new_list_field(elements.data_type().clone(), true));
        let offsets = OffsetBuffer::from_lengths(vec![2; n_rows as usize]);
        let lists: ArrayRef = Arc::new(ListArray::new(field, offsets, Arc::new(elements), None));
        let numbers: ArrayRef = Arc::new(Int64Array::from_iter_values(0..n_rows));
        let batch = Batch::new(vec![numbers, lists], Times::Constant(3), Diffs::Constant(1));
        let mut out = Output::default();
        Unnest { columns: vec![1], outer: false }.apply(batch, &mut out);
        out
    }

    #[test]
    fn long_lists_come_in_pieces_that_are_not_copied() {
        let lengths = [3, PIECE_ROWS + 5, 0, 2 * PIECE_ROWS, 1];
        let n: usize = lengths.iter().sum();
        let elements = Int64Array::from_iter_values(0..n as i64);
        let field = Arc::new(Field::new_list_field(elements.data_type().clone(), true));
        let lists = ListArray::new(field, OffsetBuffer::from_lengths(lengths), Arc::new(elements), None);
        let short = ListArray::from_iter_primitive::<Int64Type, _, _>((0..5).map(|row| Some(vec![Some(row)])));
        let numbers: ArrayRef = Arc::new(Int64Array::from_iter_values(0..5));
        let columns: Vec<ArrayRef> = vec![numbers, Arc::new(lists), Arc::new(short)];
        let batch = Batch::new(columns, Times::Constant(3), Diffs::Constant(1));
        let mut expected = Vec::new();
        let mut element = 0;
        for (row, length) in lengths.into_iter().enumerate() {
            for at in 0..length.max(1) {
                expected.push((row as i64, (at < length).then_some(element), (at == 0).then_some(row as i64)));
                element += i64::from(at < length);
            }
        }
        let mut out = Output::default();
        Unnest { columns: vec![1, 2], outer: false }.apply(batch, &mut out);
        let rows = out.rows.iter().flat_map(|batch| {
            let [row, long, short] = [0, 1, 2].map(|column| batch.column(column).as_primitive::<Int64Type>().clone());
            (0..batch.len()).map(move |at| {
                let value = |column: &Int64Array| column.is_valid(at).then(|| column.value(at));
                (row.value(at), value(&long), value(&short))
            })
        });
        assert_eq!(rows.collect::<Vec<_>>(), expected);
        assert!(out.rows.len() > 3 && out.rows.iter().all(|batch| batch.len() <= PIECE_ROWS));
    }

    #[test]
    fn elements_of_few_digits_are_narrow_and_one_that_is_too_long_costs_its_row_only() {
        for (long, n_errors) in [(usize::MAX, 0), (7, 1)] {
            let out = unnested(9, long);
            let rows: Vec<(i64, i64)> = out
                .rows
                .iter()
                .flat_map(|batch| {
                    let numbers = batch.column(0).as_primitive::<Int64Type>().values().to_vec();
                    let elements = batch.column(1).as_primitive::<Decimal64Type>().values().to_vec();
                    numbers.into_iter().zip(elements).collect::<Vec<_>>()
                })
                .collect();
            let expected: Vec<(i64, i64)> =
                (0..18).filter(|at| long == usize::MAX || at / 2 != 3).map(|at| (at / 2, at)).collect();
            assert_eq!(rows, expected);
            assert_eq!(out.errors.iter().map(Batch::len).sum::<usize>(), n_errors);
        }
    }
}
