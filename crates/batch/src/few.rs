//! Which of a few known rows is each row equal to?
//!
//! Law: as [`crate::equal::rows_equal`] says. Cost: some 2 ns a row of two columns: a comparison of
//! words with each distinct value, without a branch, and nothing is hashed. Source: what databases
//! do with columns of a few values in dictionaries (Abadi, Madden, Ferreira, SIGMOD 2006), found
//! here without a dictionary.

use std::ops::Range;

use arrow::array::ArrayRef;

use crate::cells::{Cells, Views, cells, nulls};

/// How many rows may be known.
pub const KNOWN_MAX: usize = 16;

/// Rows that are looked at together.
const BLOCK_ROWS: usize = 256;

/// Texts of so many bytes are told apart by the first word of their views: there is nothing behind
/// it.
const WORD_TEXT_MAX: usize = 4;

/// In place of a known row.
const UNKNOWN: u8 = u8::MAX;

/// For each of `rows` rows the number of the row of `known` that it equals. `None` if one equals
/// none, if too many rows are known, or where it would take a closer look: at NULLs, longer texts,
/// decimals, floats, nested columns.
///
/// # Panics
/// If `columns` and `known` differ in number, or a column is shorter than `rows`.
pub fn which_of_few(columns: &[ArrayRef], rows: usize, known: &[ArrayRef]) -> Option<Vec<u8>> {
    assert_eq!(columns.len(), known.len(), "rows are compared on as many columns");
    let n_known = known.first()?.len();
    let pairs = columns.iter().zip(known);
    let columns: Vec<Column<'_>> = pairs.map(|(column, known)| Column::new(column, known)).collect::<Option<_>>()?;
    let n_codes = columns.iter().try_fold(1usize, |n_codes, column| n_codes.checked_mul(column.n_codes()))?;
    if n_known > KNOWN_MAX || n_codes > usize::from(UNKNOWN) + 1 {
        return None;
    }
    let mut known_of_code = [UNKNOWN; UNKNOWN as usize + 1];
    for row in 0..n_known {
        let code = columns.iter().fold(0, |code, column| code * column.n_codes() + column.code_of_known(row));
        known_of_code[code] = row as u8;
    }
    let mut which = Vec::with_capacity(rows);
    for start in (0..rows).step_by(BLOCK_ROWS) {
        let mut codes = [0u8; BLOCK_ROWS];
        let rows = start..rows.min(start + BLOCK_ROWS);
        let n_rows = rows.len();
        columns.iter().for_each(|column| column.add_codes(rows.clone(), &mut codes));
        which.extend(codes[..n_rows].iter().map(|&code| known_of_code[usize::from(code)]));
        if which[start..].contains(&UNKNOWN) {
            return None;
        }
    }
    Some(which)
}

/// A column, and the distinct words of the known rows.
struct Column<'a> {
    cells: Cells<'a>,
    known: Vec<u64>,
    distinct: Vec<u64>,
}

impl<'a> Column<'a> {
    fn new(column: &'a ArrayRef, known: &ArrayRef) -> Option<Column<'a>> {
        if nulls(column).is_some() || nulls(known).is_some() || column.data_type() != known.data_type() {
            return None;
        }
        let known_cells = cells(known);
        if let Cells::Views(Views { views, .. }) = known_cells
            && views.iter().any(|&view| view as u32 as usize > WORD_TEXT_MAX)
        {
            return None;
        }
        let mut words = vec![0; known.len()];
        read_words(&known_cells, 0..known.len(), &mut words)?;
        let mut distinct = words.clone();
        distinct.sort_unstable();
        distinct.dedup();
        Some(Column { cells: cells(column), known: words, distinct })
    }

    /// One for each distinct value, and 0 for all others.
    fn n_codes(&self) -> usize {
        self.distinct.len() + 1
    }

    fn code_of_known(&self, row: usize) -> usize {
        self.distinct.partition_point(|&word| word < self.known[row]) + 1
    }

    /// Puts the column's code behind each row's code so far.
    fn add_codes(&self, rows: Range<usize>, codes: &mut [u8; BLOCK_ROWS]) {
        let mut words = [0u64; BLOCK_ROWS];
        read_words(&self.cells, rows, &mut words).expect("a column has the type of the known rows'");
        let mut own = [0u8; BLOCK_ROWS];
        for (number, value) in (1u8..).zip(&self.distinct) {
            own.iter_mut().zip(&words).for_each(|(own, word)| *own |= u8::from(word == value) * number);
        }
        let n_codes = self.n_codes() as u8;
        codes.iter_mut().zip(own).for_each(|(code, own)| *code = code.wrapping_mul(n_codes).wrapping_add(own));
    }
}

/// Reads cells as words: integers, or the first half of views. `None` if they are something else.
fn read_words(cells: &Cells<'_>, rows: Range<usize>, words: &mut [u64]) -> Option<()> {
    fn each<T: Copy>(values: &[T], words: &mut [u64], word: impl Fn(T) -> u64) -> Option<()> {
        words.iter_mut().zip(values).for_each(|(slot, &value)| *slot = word(value));
        Some(())
    }
    match cells {
        Cells::I8(values) => each(&values[rows], words, |value| value as u64),
        Cells::I16(values) => each(&values[rows], words, |value| value as u64),
        Cells::I32(values) => each(&values[rows], words, |value| value as u64),
        Cells::I64(values) => each(&values[rows], words, |value| value as u64),
        Cells::U8(values) => each(&values[rows], words, u64::from),
        Cells::U16(values) => each(&values[rows], words, u64::from),
        Cells::U32(values) => each(&values[rows], words, u64::from),
        Cells::U64(values) => each(&values[rows], words, |value| value),
        Cells::Views(Views { views, .. }) => each(&views[rows], words, |view| view as u64),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::array::{Float64Array, Int32Array, StringViewArray};
    use std::sync::Arc;

    fn texts(texts: &[&str]) -> ArrayRef {
        Arc::new(StringViewArray::from_iter_values(texts))
    }

    fn numbers(numbers: &[i32]) -> ArrayRef {
        Arc::new(Int32Array::from(numbers.to_vec()))
    }

    #[test]
    fn rows_are_those_that_they_equal() {
        let known = [texts(&["A", "N", "", "A"]), numbers(&[-1, 7, 7, 7])];
        let rows: Vec<usize> = (0..1000).map(|row| row * 7919 % 4).collect();
        let cell = |of: &dyn Fn(usize) -> &'static str| texts(&rows.iter().map(|&row| of(row)).collect::<Vec<_>>());
        let columns = [
            cell(&|row| ["A", "N", "", "A"][row]),
            numbers(&rows.iter().map(|&row| [-1, 7, 7, 7][row]).collect::<Vec<_>>()),
        ];
        let expected: Vec<u8> = rows.iter().map(|&row| row as u8).collect();
        assert_eq!(which_of_few(&columns, 1000, &known), Some(expected));
    }

    #[test]
    fn what_is_not_known_or_takes_a_closer_look_is_left_to_others() {
        let known = [texts(&["A", "N"])];
        let check = |texts_of: &[&str]| which_of_few(&[texts(texts_of)], texts_of.len(), &known);
        assert_eq!(check(&["N", "A"]), Some(vec![1, 0]));
        assert_eq!(check(&[]), Some(vec![]));
        // Neither known: beginning alike, with a zero behind, longer than a view.
        for other in ["B", "", "NN", "N\0", "A text that lies outside of its view"] {
            assert_eq!(check(&["N", other]), None, "{other:?}");
        }
        assert_eq!(which_of_few(&[texts(&["ABCDE"])], 1, &[texts(&["ABCDE"])]), None);
        assert_eq!(which_of_few(&[texts(&["ABCDE"])], 1, &[texts(&["ABCD"])]), None);
        let null: ArrayRef = Arc::new(StringViewArray::from_iter([Some("N"), None]));
        assert_eq!(which_of_few(std::slice::from_ref(&null), 2, &known), None);
        assert_eq!(which_of_few(&[texts(&["N"])], 1, &[null]), None);
        let float: ArrayRef = Arc::new(Float64Array::from(vec![1.0]));
        assert_eq!(which_of_few(std::slice::from_ref(&float), 1, std::slice::from_ref(&float)), None);
        let many = numbers(&(0..17).collect::<Vec<_>>());
        assert_eq!(which_of_few(std::slice::from_ref(&many), 17, std::slice::from_ref(&many)), None);
    }

    #[test]
    fn codes_of_several_columns_do_not_meet() {
        // Two columns of five and four values have 6 * 5 codes; one of sixteen beside two others
        // has too many.
        for (n_values, fits) in [(5, true), (6, false)] {
            let column = |step: i32| numbers(&(0..16).map(|row| row / step % n_values).collect::<Vec<_>>());
            let known = [numbers(&(0..16).collect::<Vec<_>>()), column(1), column(2)];
            let known = &known[usize::from(fits)..];
            let which = which_of_few(known, 16, known);
            assert_eq!(which.is_some(), fits);
            for (row, which) in which.into_iter().flatten().enumerate() {
                let equals = |column: &ArrayRef| column.slice(row, 1) == column.slice(which.into(), 1);
                assert!(known.iter().all(equals));
            }
        }
    }
}
