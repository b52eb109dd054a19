//! Sorting rows by their values, column after column.
//!
//! Law: rows come in ascending order of the first column, then of the next (NULL last), and equal
//! rows in order of their numbers: as by [`Comparator::ascending`] and a stable sort.
//!
//! Rows go by the [prefixes](super::prefixes) of the first column, which a radix sort takes. Rows
//! whose prefixes tie go by the next column where prefixes are exact. Texts go by the next eight
//! bytes behind what they have in common; all others, and few rows, are compared at once.
//!
//! Cost: some 10 ns a row where the first column tells most rows apart; a column behind it is
//! looked at only when many rows tie before it.

use std::cell::OnceCell;
use std::cmp::Ordering;

use arrow::array::{Array, ArrayRef};

use super::compare::Comparator;
use super::prefix::{ascending_prefixes, prefix_of_bytes};
use super::sort::{sort_by_hash, sort_rows_by_hash};
use crate::cells::{ByteCells, Cells, cells};

/// So few rows are compared with each other.
const COMPARED_ROWS_MAX: usize = 24;

/// So many runs are merged rather than sorted.
const RUNS_MAX: usize = 8;

/// Rows that still tie after so many columns, or so many pieces of a text, are compared, however
/// many they are: each step is a call within the one before, and the stack is a worker's.
const STEPS_MAX: usize = 32;

/// The order of the rows of some columns.
#[derive(Debug)]
pub struct ValueOrder<'a> {
    columns: &'a [ArrayRef],
    n_rows: usize,
    comparator: Comparator,
    /// Of each column, once they are asked for: prefixes, and whether equal ones are equal cells.
    prefixes: Vec<OnceCell<(Vec<u64>, bool)>>,
}

impl<'a> ValueOrder<'a> {
    /// That of the first `n_rows` rows.
    ///
    /// # Panics
    /// If a column's type cannot be compared.
    pub fn new(columns: &'a [ArrayRef], n_rows: usize) -> ValueOrder<'a> {
        let prefixes = columns.iter().map(|_| OnceCell::new()).collect();
        ValueOrder { columns, n_rows, comparator: Comparator::ascending(columns), prefixes }
    }

    /// Order of two rows.
    #[inline]
    pub fn compare(&self, a: u32, b: u32) -> Ordering {
        self.comparator.compare(a as usize, b as usize)
    }

    /// Whether two rows are equal.
    #[inline]
    pub fn is_equal(&self, a: u32, b: u32) -> bool {
        let first = self.prefixes.first().and_then(OnceCell::get);
        first.is_none_or(|(prefixes, _)| prefixes[a as usize] == prefixes[b as usize]) && self.compare(a, b).is_eq()
    }

    /// Sorts rows, which come in ascending order of their numbers. A few runs that are in order, as
    /// several workers give them, are merged.
    pub fn sort(&self, rows: &mut [u32]) {
        match self.runs(rows) {
            Some(ends) => self.merge(rows, ends),
            None => self.sort_from(0, rows),
        }
    }

    /// The ends of the runs that are in order, if there are few.
    fn runs(&self, rows: &[u32]) -> Option<Vec<usize>> {
        if rows.len() <= COMPARED_ROWS_MAX || self.columns.is_empty() {
            return None;
        }
        let mut ends = Vec::with_capacity(RUNS_MAX + 1);
        for (at, pair) in rows.windows(2).enumerate() {
            if self.order_of(pair[0], pair[1]).is_gt() {
                if ends.len() + 1 == RUNS_MAX {
                    return None;
                }
                ends.push(at + 1);
            }
        }
        ends.push(rows.len());
        Some(ends)
    }

    /// Order of two rows, by the prefixes of the first column where these tell it.
    #[inline]
    fn order_of(&self, a: u32, b: u32) -> Ordering {
        let (prefixes, exact) = self.prefixes(0);
        let behind = || self.comparator.compare_from(usize::from(*exact), a as usize, b as usize);
        prefixes[a as usize].cmp(&prefixes[b as usize]).then_with(behind)
    }

    fn prefixes(&self, column: usize) -> &(Vec<u64>, bool) {
        self.prefixes[column].get_or_init(|| ascending_prefixes(&self.columns[column], self.n_rows))
    }

    /// Merges neighbouring runs, until there is one.
    fn merge(&self, rows: &mut [u32], mut ends: Vec<usize>) {
        let mut merged = Vec::with_capacity(if ends.len() > 1 { rows.len() } else { 0 });
        while ends.len() > 1 {
            let (mut start, mut joined) = (0, Vec::with_capacity(ends.len().div_ceil(2)));
            for pair in ends.chunks(2) {
                let (middle, end) = (pair[0], pair[pair.len() - 1]);
                self.merge_two(&rows[start..middle], &rows[middle..end], &mut merged);
                joined.push(end);
                start = end;
            }
            rows.copy_from_slice(&merged);
            merged.clear();
            ends = joined;
        }
    }

    /// Appends two runs as one; of equal rows those of the first come first.
    fn merge_two(&self, mut first: &[u32], mut second: &[u32], out: &mut Vec<u32>) {
        while let ([a, first_rest @ ..], [b, second_rest @ ..]) = (first, second) {
            if self.order_of(*a, *b).is_le() {
                out.push(*a);
                first = first_rest;
            } else {
                out.push(*b);
                second = second_rest;
            }
        }
        out.extend_from_slice(first);
        out.extend_from_slice(second);
    }

    /// Sorts rows that are equal in the columns before `first`.
    fn sort_from(&self, first: usize, rows: &mut [u32]) {
        if rows.len() < 2 || first == self.columns.len() {
            return;
        }
        if rows.len() <= COMPARED_ROWS_MAX || first >= STEPS_MAX {
            return self.compare_all(first, rows);
        }
        let (prefixes, exact) = self.prefixes(first);
        sort_rows_by_hash(rows, prefixes);
        for ties in rows.chunk_by_mut(|&a, &b| prefixes[a as usize] == prefixes[b as usize]) {
            match (exact, cells(&self.columns[first])) {
                (true, _) => self.sort_from(first + 1, ties),
                // (NULL ties with NULL alone.)
                _ if self.columns[first].is_null(ties[0] as usize) => self.sort_from(first + 1, ties),
                (_, Cells::Bytes(texts)) => self.sort_texts(first, texts, TextStep::FIRST, ties),
                (_, Cells::LargeBytes(texts)) => self.sort_texts(first, texts, TextStep::FIRST, ties),
                (_, Cells::Views(texts)) => self.sort_texts(first, texts, TextStep::FIRST, ties),
                _ => self.compare_all(first, ties),
            }
        }
    }

    /// Sorts rows whose texts in the column `first` begin alike, as far as `step` says.
    fn sort_texts(&self, first: usize, texts: impl ByteCells, step: TextStep, rows: &mut [u32]) {
        if rows.len() <= COMPARED_ROWS_MAX || step.number >= STEPS_MAX {
            return self.compare_all(first, rows);
        }
        let text = |row: u32| texts.bytes(row as usize);
        let head = &text(rows[0])[step.common..];
        let common =
            rows[1..].iter().fold(head.len(), |common, &row| common_bytes(&head[..common], &text(row)[step.common..]));
        let common = step.common + common;
        let behind: Vec<u64> = rows.iter().map(|&row| prefix_of_bytes(&text(row)[common..])).collect();
        let places = sort_by_hash(&behind);
        let sorted: Vec<u32> = places.iter().map(|&place| rows[place as usize]).collect();
        rows.copy_from_slice(&sorted);
        let mut start = 0;
        for ties in places.chunk_by(|&a, &b| behind[a as usize] == behind[b as usize]) {
            let ties = &mut rows[start..start + ties.len()];
            start += ties.len();
            let len = |row: &u32| text(*row).len();
            let (least, most) = ties.iter().map(len).fold((usize::MAX, 0), |(l, m), len| (l.min(len), m.max(len)));
            match common + size_of::<u64>() {
                // (Where texts end, the prefix is filled up with zeros.)
                seen if most <= seen && least == most => self.sort_from(first + 1, ties),
                seen if least > seen => {
                    self.sort_texts(first, texts, TextStep { common: seen, number: step.number + 1 }, ties);
                }
                _ => self.compare_all(first, ties),
            }
        }
    }

    fn compare_all(&self, first: usize, rows: &mut [u32]) {
        rows.sort_by(|&a, &b| self.comparator.compare_from(first, a as usize, b as usize));
    }
}

/// How far a sort of texts has come.
#[derive(Clone, Copy)]
struct TextStep {
    /// Bytes with which all texts begin.
    common: usize,
    /// Steps before this one.
    number: usize,
}

impl TextStep {
    /// (A prefix that ties may be one that is filled up: nothing is known to be common.)
    const FIRST: TextStep = TextStep { common: 0, number: 0 };
}

/// How many bytes two texts begin with alike.
fn common_bytes(a: &[u8], b: &[u8]) -> usize {
    a.iter().zip(b).take_while(|(a, b)| a == b).count()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{BooleanArray, Float64Array, Int64Array, StringViewArray};

    use super::*;
    use crate::testing::Rng;

    #[test]
    fn rows_come_as_by_comparison() {
        let mut rng = Rng::from_env(11);
        let below = |rng: &mut Rng, n: usize| rng.below(n) as i64;
        for round in 0..60 {
            let n = 1 + below(&mut rng, 1_500) as usize;
            let few = 1 + rng.below(400);
            let whole = Int64Array::from_iter((0..n).map(|_| Some(below(&mut rng, few))));
            let open = Int64Array::from_iter((0..n).map(|_| Some(below(&mut rng, few) - 3).filter(|&at| at > 0)));
            let texts = (0..n).map(|_| {
                let start =
                    ["a common start, and more", "a common start, and much more than that, up to "][rng.below(2)];
                let end = below(&mut rng, few);
                [
                    format!("{start}{end}"),
                    start[..12 + end as usize % 12].to_owned() + "\0",
                    "a common start\0".to_owned(),
                ][rng.below(8).min(2) * usize::from(rng.below(4) == 0)]
                .clone()
            });
            let texts = texts.collect::<Vec<_>>();
            let float = Float64Array::from_iter((0..n).map(|_| Some([0.0, -0.0, f64::NAN, 2.5][rng.below(4)])));
            let flag = BooleanArray::from_iter((0..n).map(|_| Some(below(&mut rng, 2) > 0)));
            let all: [ArrayRef; 5] = [
                Arc::new(whole),
                Arc::new(open),
                Arc::new(StringViewArray::from_iter_values(texts)),
                Arc::new(float),
                Arc::new(flag),
            ];
            // (From no column to all of them, and each of them first.)
            let columns: Vec<ArrayRef> = (0..round % 6).map(|at| all[(at + round / 6) % 5].clone()).collect();
            let order = ValueOrder::new(&columns, n);
            let mut rows: Vec<u32> = (0..n as u32).filter(|_| rng.below(10) > 0).collect();
            let mut expected = rows.clone();
            order.sort(&mut rows);
            expected.sort_by(|&a, &b| order.compare(a, b));
            assert_eq!(rows, expected);
            let equal = rows.windows(2).filter(|pair| order.is_equal(pair[0], pair[1])).count();
            let wanted = rows.windows(2).filter(|pair| order.compare(pair[0], pair[1]).is_eq()).count();
            assert_eq!(equal, wanted);
            // Runs that are in order, of several workers.
            let n_runs = 1 + rng.below(RUNS_MAX + 2);
            let cut: Vec<Vec<u32>> = rows.chunks(rows.len().div_ceil(n_runs).max(1)).map(<[u32]>::to_vec).collect();
            let mut cut: Vec<u32> = cut.into_iter().rev().flatten().collect();
            let mut expected = cut.clone();
            order.sort(&mut cut);
            expected.sort_by(|&a, &b| order.compare(a, b));
            let same = |(a, b): (&u32, &u32)| order.compare(*a, *b).is_eq();
            assert!(cut.iter().zip(&expected).all(same) && cut.is_sorted_by(|&a, &b| order.compare(a, b).is_le()));
        }
    }

    #[test]
    fn many_rows_that_tie_in_all_columns_or_pieces_are_sorted_on_a_small_stack() {
        let n = 400;
        let equal: ArrayRef = Arc::new(Int64Array::from(vec![7; n]));
        let last: ArrayRef = Arc::new(Int64Array::from_iter_values((0..n as i64).rev()));
        let wide: Vec<ArrayRef> = (0..5_000).map(|_| equal.clone()).chain([last]).collect();
        // Each text differs from the next one nine bytes later.
        let texts = (0..n).map(|row| format!("{}b{}", "a".repeat(9 * row), "c".repeat(20)));
        let long: Vec<ArrayRef> = vec![Arc::new(StringViewArray::from_iter_values(texts))];
        let sorted = move || {
            [&wide, &long].map(|columns| {
                let order = ValueOrder::new(columns, n);
                let mut rows: Vec<u32> = (0..n as u32).collect();
                order.sort(&mut rows);
                rows.is_sorted_by(|&a, &b| order.compare(a, b).is_le())
            })
        };
        let thread = std::thread::Builder::new().stack_size(256 << 10).spawn(sorted).unwrap();
        assert_eq!(thread.join().unwrap(), [true, true]);
    }
}
