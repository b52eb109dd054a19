//! Unnest: one row for each element of a list, or of several lists side by side.
//!
//! Law: stateless; each output row has the time and diff of the row it came from. Of several lists the first elements make a row,
//! then the second ones; a shorter list is filled up with NULL. A row whose lists are all empty or NULL yields nothing, or with
//! `outer` one row with NULLs. Cost: one gather for each list and one for the other columns.

use anabranch_batch::{Batch, Columns, gather, types};
use arrow::array::{Array, ArrayRef, AsArray, UInt32Array};
use arrow::compute;
use arrow::datatypes::DataType;

use crate::stage::error_rows;
use crate::tactic::Output;

/// Replaces list columns by their elements.
#[derive(Clone, Debug)]
pub struct Unnest {
    /// Positions of the list columns, at least one.
    pub columns: Vec<usize>,
    /// Whether a row without elements yields one row with NULLs.
    pub outer: bool,
}

impl Unnest {
    /// Applies the verb to a batch.
    pub fn apply(&self, batch: Batch, out: &mut Output) {
        let lists: Result<Vec<Lists>, String> =
            self.columns.iter().map(|column| Lists::of(batch.column(*column))).collect();
        let lists = match lists {
            Ok(lists) => lists,
            Err(message) => return out.give_errors(error_rows(&batch, &message)),
        };
        let mut rows: Vec<u32> = Vec::new();
        let mut picks: Vec<Vec<Option<u32>>> = vec![Vec::new(); lists.len()];
        for row in 0..batch.len() {
            let longest = lists.iter().map(|list| list.len(row)).max().unwrap_or(0);
            let n_rows = if self.outer { longest.max(1) } else { longest };
            rows.extend(std::iter::repeat_n(row as u32, n_rows));
            for (list, picks) in lists.iter().zip(&mut picks) {
                let (first, len) = (list.offsets[row], list.len(row));
                picks.extend((0..n_rows).map(|at| (at < len).then_some((first + at) as u32)));
            }
        }
        // The lists are left out first: repeated for each of its elements a list would grow with their square.
        let n_columns = batch.columns().len();
        let others: Vec<usize> = (0..n_columns).filter(|column| !self.columns.contains(column)).collect();
        let repeated = batch.project(&others).take(&rows);
        let mut rest = repeated.columns().iter();
        let columns = (0..n_columns).map(|column| match self.columns.iter().position(|list| *list == column) {
            Some(at) => lists[at].pick(&picks[at]),
            None => ArrayRef::clone(rest.next().expect("every column that is no list was repeated")),
        });
        let columns: Vec<ArrayRef> = columns.collect();
        out.give_rows(repeated.with_columns(Columns::from(columns)));
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
            return gather::take(std::slice::from_ref(&self.elements), &picks)[0].clone();
        }
        compute::take(&self.elements, &UInt32Array::from(picks.to_vec()), None).expect("picks lie inside the values")
    }
}
