//! Filter and project, fused into one pass.
//!
//! Law: each row that passes every predicate yields one row with the same time and diff; a row
//! whose evaluation fails yields one row error with the same time and diff instead. The output
//! depends on each row alone.
//!
//! Changelog in and out, for `filter x > 1, project x * 10` (row @time diff):
//!
//! ```text
//!     (1) @3 +1                      (nothing)
//!     (2) @3 +1                      (20) @3 +1
//!     (2) @5 -1                      (20) @5 -1
//! ```
//!
//! State: none. Cost: one vectorised evaluation per expression and batch; columns that are only
//! repeated are pointers unless rows were dropped, and columns that only the last predicate reads
//! are not copied. Where most rows pass none is: the others are absent. Hashes of a key stay if its
//! columns do. When an evaluation fails
//! the batch is halved until every failing row is found: O(log n) evaluations a failing row.
//! Source: Trill 3.3 (columnar operators over whole batches); row errors as data: DESIGN 4.

use std::sync::Arc;

use anabranch_batch::{Batch, Columns};
use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, StringViewArray};
use arrow::buffer::BooleanBuffer;

use crate::expression::{ExpressionRef, evaluate};
use anabranch_flow::account::midway;
use anabranch_flow::tactic::Output;

/// Of so many rows at most one may stay as an absent one.
const MOSTLY: usize = 8;

/// So many rows have a bit each in a word.
const VERDICT_ROWS: usize = 64;

/// A filter and a projection.
#[derive(Clone)]
pub struct Stage {
    /// Boolean expressions, in order; a row on which one is false or NULL is not shown to the next.
    pub filter: Vec<ExpressionRef>,
    /// Columns that the projection reads of the rows that pass: no others are copied. `None` keeps
    /// all.
    pub kept: Option<Vec<usize>>,
    /// One expression an output column, over the columns kept; `None` shows them as they are.
    pub project: Option<Vec<ExpressionRef>>,
}

impl Stage {
    /// Whether rows pass through unchanged.
    pub fn is_identity(&self) -> bool {
        self.filter.is_empty() && self.kept.is_none() && self.project.is_none()
    }

    /// Its filter, with the columns kept, and its projection.
    pub fn halves(&self) -> (Stage, Stage) {
        let filter = Stage { project: None, ..self.clone() };
        let project = Stage { filter: vec![], kept: None, project: self.project.clone() };
        (filter, project)
    }

    /// The columns of the input that these are as they are, if they are some.
    pub fn origins(&self, columns: &[usize]) -> Option<Vec<usize>> {
        let origin = |&column: &usize| {
            let column = match &self.project {
                Some(project) => project[column].as_column()?,
                None => column,
            };
            Some(self.kept.as_ref().map_or(column, |kept| kept[column]))
        };
        columns.iter().map(origin).collect()
    }

    /// The columns that show these of its input as they are, if all are shown.
    pub fn shown(&self, columns: &[usize]) -> Option<Vec<usize>> {
        let shown = |&column: &usize| {
            let column = match &self.kept {
                Some(kept) => kept.iter().position(|&kept| kept == column)?,
                None => column,
            };
            match &self.project {
                Some(project) => project.iter().position(|expression| expression.as_column() == Some(column)),
                None => Some(column),
            }
        };
        columns.iter().map(shown).collect()
    }

    /// The rows that pass the filter, in order; `None` if it fails for one of them. `batch` has no
    /// absent rows.
    pub fn passing(&self, batch: &Batch) -> Option<Vec<u32>> {
        let mut passed: Option<(Vec<u32>, Batch)> = None;
        for predicate in &self.filter {
            let among = passed.as_ref().map_or(batch, |(_, among)| among);
            passed = match Passing::of(predicate, among).ok()? {
                Passing::All => passed,
                Passing::None => return Some(vec![]),
                Passing::Some(mask) => {
                    let mask = mask.as_boolean();
                    let kept = trues(mask);
                    let row = |at: usize| passed.as_ref().map_or(at as u32, |(rows, _)| rows[at]);
                    Some((kept.set_indices().map(row).collect(), among.filter(mask)))
                }
            };
        }
        Some(passed.map_or_else(|| (0..batch.len() as u32).collect(), |(rows, _)| rows))
    }

    /// Applies the stage to a batch. Rows that do not pass may be there as absent ones, if they are
    /// few.
    pub fn apply(&self, batch: Batch, out: &mut Output) {
        if batch.is_empty() {
            return;
        }
        match self.try_apply(&batch, true) {
            Ok(rows) => out.give_rows(rows),
            // (It may be an absent row that fails.)
            Err(_) => self.apply_in_parts(batch.compact(), out),
        }
    }

    /// Applies the stage to rows that are all present, in smaller and smaller parts where one of
    /// them fails.
    fn apply_in_parts(&self, batch: Batch, out: &mut Output) {
        // (Parts may fail because their values would be too large together, and take long.)
        midway::look();
        match self.try_apply(&batch, false) {
            _ if batch.is_empty() => {}
            Ok(rows) => out.give_rows(rows),
            Err(message) if batch.len() == 1 => out.give_errors(error_rows(&batch, &message)),
            Err(_) => {
                let half = batch.len() / 2;
                self.apply_in_parts(batch.slice(0, half), out);
                self.apply_in_parts(batch.slice(half, batch.len() - half), out);
            }
        }
    }

    fn try_apply(&self, batch: &Batch, is_absent_left: bool) -> Result<Batch, String> {
        let kept = self.pass(batch, is_absent_left)?;
        if kept.is_empty() {
            return Ok(kept);
        }
        let Some(project) = &self.project else {
            return Ok(kept);
        };
        if let Some(columns) = project.iter().map(|e| e.as_column()).collect::<Option<Vec<_>>>() {
            return Ok(kept.project(&columns));
        }
        let columns = project.iter().map(|e| evaluate(e, &kept)).collect::<Result<Vec<ArrayRef>, _>>()?;
        let key = kept.key().and_then(|key| {
            let shown = |column: &usize| project.iter().position(|e| e.as_column() == Some(*column));
            let columns = key.columns.iter().map(shown).collect::<Option<Arc<[usize]>>>()?;
            Some(key.at(columns))
        });
        let made = kept.with_columns(Columns::from(columns));
        Ok(match key {
            Some(key) => made.with_hashes(key),
            None => made,
        })
    }

    /// The rows that pass, with the columns kept. If it may be, a few others are left among them as
    /// absent ones.
    fn pass(&self, batch: &Batch, is_absent_left: bool) -> Result<Batch, String> {
        let Some((last, others)) = self.filter.split_last() else { return Ok(self.narrow(batch.clone())) };
        let mut passed = batch.clone();
        for predicate in others {
            passed = match Passing::of(predicate, &passed)? {
                Passing::All => passed,
                Passing::None => return Ok(Batch::default()),
                Passing::Some(mask) => passed.filter(mask.as_boolean()),
            };
        }
        Ok(match Passing::of(last, &passed)? {
            Passing::All => self.narrow(passed),
            Passing::None => Batch::default(),
            Passing::Some(mask) => {
                let mask = mask.as_boolean();
                match is_absent_left && is_mostly_true(mask) {
                    true => self.narrow(passed).with_present(trues(mask)),
                    false => self.narrow(passed).filter(mask),
                }
            }
        })
    }

    fn narrow(&self, batch: Batch) -> Batch {
        match &self.kept {
            Some(columns) => batch.project(columns),
            None => batch,
        }
    }
}

/// Which rows a predicate lets through.
enum Passing {
    All,
    None,
    /// Those where this column is true: at least one, and not all.
    Some(ArrayRef),
}

impl Passing {
    fn of(predicate: &ExpressionRef, batch: &Batch) -> Result<Passing, String> {
        let n_rows = batch.len();
        // (Of few rows a column of answers would cost more than the answers.)
        let verdict = if n_rows <= VERDICT_ROWS { predicate.verdict(batch.columns(), n_rows) } else { None };
        if let Some(verdict) = verdict {
            return Ok(match verdict.count_ones() as usize {
                0 => Passing::None,
                n if n == n_rows => Passing::All,
                _ => {
                    let passes = BooleanBuffer::collect_bool(n_rows, |row| verdict >> row & 1 == 1);
                    Passing::Some(Arc::new(BooleanArray::new(passes, None)))
                }
            });
        }
        let mask = evaluate(predicate, batch)?;
        Ok(match mask.as_boolean().true_count() {
            0 => Passing::None,
            n if n == n_rows => Passing::All,
            _ => Passing::Some(mask),
        })
    }
}

/// Whether so many rows pass that copying them costs more than what follows does for the others.
fn is_mostly_true(mask: &BooleanArray) -> bool {
    let n_true = mask.true_count();
    n_true < mask.len() && n_true * MOSTLY >= mask.len() * (MOSTLY - 1)
}

/// Where the mask is true, NULL being false.
fn trues(mask: &BooleanArray) -> BooleanBuffer {
    match mask.nulls() {
        Some(nulls) => mask.values() & nulls.inner(),
        None => mask.values().clone(),
    }
}

/// Where the predicate is true (never NULL), and the errors of the rows on which it fails (false in
/// the mask).
pub(crate) fn evaluate_mask(predicate: &ExpressionRef, batch: &Batch) -> (BooleanArray, Vec<Batch>) {
    let mut errors = Vec::new();
    let mut mask = Vec::with_capacity(batch.len());
    evaluate_mask_part(predicate, batch, &mut mask, &mut errors);
    (BooleanArray::from(mask), errors)
}

fn evaluate_mask_part(predicate: &ExpressionRef, batch: &Batch, mask: &mut Vec<bool>, errors: &mut Vec<Batch>) {
    midway::look();
    if batch.is_empty() {
        return;
    }
    match evaluate(predicate, batch) {
        Ok(keep) => {
            let keep = keep.as_boolean();
            mask.extend((0..keep.len()).map(|i| keep.is_valid(i) && keep.value(i)));
        }
        Err(message) if batch.len() == 1 => {
            mask.push(false);
            errors.push(error_rows(batch, &message));
        }
        Err(_) => {
            let half = batch.len() / 2;
            evaluate_mask_part(predicate, &batch.slice(0, half), mask, errors);
            evaluate_mask_part(predicate, &batch.slice(half, batch.len() - half), mask, errors);
        }
    }
}

/// One error row for each row of `batch`, at its time, for its lifetime and with its diff.
pub(crate) fn error_rows(batch: &Batch, message: &str) -> Batch {
    let messages: ArrayRef = Arc::new(StringViewArray::from_iter_values(std::iter::repeat_n(message, batch.len())));
    Batch::new(vec![messages], batch.times().clone(), batch.diffs().clone()).with_until(batch.until().clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn most_are_seven_of_eight() {
        let mask = |n_true: usize, n: usize| BooleanArray::from((0..n).map(|row| row < n_true).collect::<Vec<bool>>());
        for (n_true, n, is_so) in [(0, 1, false), (1, 1, false), (6, 7, false), (7, 8, true), (8, 8, false)] {
            assert_eq!(is_mostly_true(&mask(n_true, n)), is_so, "{n_true} of {n}");
        }
    }

    #[test]
    fn columns_are_shown_where_nothing_is_done_to_them() {
        let column = |at: usize| -> ExpressionRef { Arc::new(crate::expression::Column(at)) };
        let stage =
            |kept: Option<Vec<usize>>, project: Option<Vec<ExpressionRef>>| Stage { filter: vec![], kept, project };
        assert_eq!(stage(None, None).shown(&[2, 0]), Some(vec![2, 0]));
        assert_eq!(stage(None, None).origins(&[2, 0]), Some(vec![2, 0]));
        let kept = stage(Some(vec![3, 1]), None);
        assert_eq!((kept.shown(&[1, 3]), kept.shown(&[0])), (Some(vec![1, 0]), None));
        let swapped = stage(Some(vec![3, 1]), Some(vec![column(1), column(0), column(1)]));
        assert_eq!((swapped.shown(&[3]), swapped.shown(&[1, 3])), (Some(vec![1]), Some(vec![0, 1])));
        assert_eq!(swapped.origins(&[2, 1]), Some(vec![1, 3]));
        assert_eq!(stage(None, Some(vec![column(1)])).shown(&[0]), None, "column 0 is not shown");
    }
}
