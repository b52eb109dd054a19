//! The cells of matches: which rows they read, and their columns.

use anabranch_spec::recognize::{At, Cell, CellValue, End};
use std::sync::Arc;

use arrow::array::{ArrayRef, Int64Array, StringViewArray, UInt32Array};
use arrow::compute;

use super::fold::fold;
use super::spec::VariableSpec;

/// A match, complete or so far: rows of a partition that lie at `from..to` among all rows.
#[derive(Clone, Copy, Debug)]
pub(super) struct Match<'a> {
    pub(super) from: usize,
    pub(super) to: usize,
    /// Its first row.
    pub(super) start: usize,
    /// The variable of each of its rows.
    pub(super) labels: &'a [usize],
    /// From 1.
    pub(super) number: i64,
}

impl Match<'_> {
    /// The row that is meant.
    pub(super) fn row(&self, at: &At) -> Option<u32> {
        let is_of = |(_, label): &(usize, &usize)| at.variable.is_none_or(|variable| **label == variable);
        let mut labels = self.labels.iter().enumerate();
        let place = match (at.end, at.variable) {
            (End::First, _) => labels.filter(is_of).nth(at.skipped),
            (End::Last, None) => labels.nth(self.labels.len().checked_sub(at.skipped + 1)?),
            (End::Last, Some(_)) => labels.rev().filter(is_of).nth(at.skipped),
        };
        let row = (self.start + place?.0) as i64 + at.offset;
        (self.from as i64..self.to as i64).contains(&row).then_some(row as u32)
    }

    /// The rows taken for a variable.
    fn rows_of(&self, variable: Option<usize>) -> Vec<u32> {
        let labels = self.labels.iter().enumerate();
        let rows = labels.filter(|(_, label)| variable.is_none_or(|variable| **label == variable));
        rows.map(|(n, _)| (self.start + n) as u32).collect()
    }
}

/// The cell of each match. `column(c)` is a column of all rows. The numbers of matches for which it
/// fails come with it.
pub(super) fn column(
    cell: &Cell,
    matches: &[Match<'_>],
    variables: &[VariableSpec],
    column: &dyn Fn(usize) -> ArrayRef,
) -> (ArrayRef, Vec<usize>) {
    match &cell.value {
        CellValue::Column { column: of, at } => {
            let rows: UInt32Array = matches.iter().map(|found| found.row(at)).collect();
            (take(&column(*of), &rows), vec![])
        }
        CellValue::Classifier => {
            let names = matches.iter().map(|found| found.labels.last().map(|label| variables[*label].name.as_str()));
            (Arc::new(names.collect::<StringViewArray>()), vec![])
        }
        CellValue::MatchNumber => {
            let numbers: Int64Array = matches.iter().map(|found| Some(found.number)).collect();
            (Arc::new(numbers), vec![])
        }
        CellValue::Fold { function, column: of, variable } => {
            let groups: Vec<Vec<u32>> = matches.iter().map(|found| found.rows_of(*variable)).collect();
            fold(*function, of.map(column).as_ref(), &groups)
        }
    }
}

/// The rows of a column; NULL where there is none.
pub(super) fn take(column: &ArrayRef, rows: &UInt32Array) -> ArrayRef {
    compute::take(column, rows, None).expect("rows are in bounds")
}

/// What the failure of an aggregate is called.
pub(super) const SUM_OUT_OF_RANGE: &str = "a sum over the rows of a match is out of range";
