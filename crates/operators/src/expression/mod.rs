//! What operators ask of expressions: a column for a batch.
//!
//! Expressions come from the planner; this crate knows no planner, so it names only this trait. One
//! dynamic call a batch.

pub mod arithmetic;
pub mod condition;

use std::sync::Arc;

use anabranch_batch::{Batch, Columns};
use arrow::array::ArrayRef;

use crate::made::note_made;

/// A computation over the columns of a batch, one value a row.
pub trait Expression: Send + Sync {
    /// The value of each of the `rows` rows.
    ///
    /// # Errors
    /// The message of the error that some row caused. When that happens the operator evaluates
    /// smaller parts until it has found each row in error, so the message must depend on the row
    /// alone.
    fn evaluate(&self, columns: &Columns, rows: usize) -> Result<ArrayRef, String>;

    /// Where this condition is true, a bit for each of at most 64 rows, if it can tell that without
    /// making a column; rows beyond have no bit.
    fn verdict(&self, _columns: &Columns, _rows: usize) -> Option<u64> {
        None
    }

    /// The input column that this expression merely repeats, if it does.
    fn as_column(&self) -> Option<usize> {
        None
    }

    /// Whether to evaluate it for a row costs less than to move the row to another worker.
    fn is_quick(&self) -> bool {
        self.as_column().is_some()
    }
}

/// Shared by the dataflows of one worker thread.
pub type ExpressionRef = Arc<dyn Expression>;

/// An input column as it is.
#[derive(Clone, Copy, Debug)]
pub struct Column(pub usize);

impl Expression for Column {
    fn evaluate(&self, columns: &Columns, _rows: usize) -> Result<ArrayRef, String> {
        Ok(columns[self.0].clone())
    }

    fn as_column(&self) -> Option<usize> {
        Some(self.0)
    }
}

/// The same value in every row.
pub struct Constant {
    one: ArrayRef,
    general: ExpressionRef,
}

impl Constant {
    /// What `general` always is, which is also in `one`, an array of one row: for that nothing is
    /// made.
    pub fn new(one: ArrayRef, general: ExpressionRef) -> Constant {
        Constant { one, general }
    }
}

impl Expression for Constant {
    fn evaluate(&self, columns: &Columns, rows: usize) -> Result<ArrayRef, String> {
        if rows == 1 { Ok(Arc::clone(&self.one)) } else { self.general.evaluate(columns, rows) }
    }
}

/// Evaluates over a whole batch. The turn ends here if its dataflow has ended.
pub fn evaluate(expression: &ExpressionRef, batch: &Batch) -> Result<ArrayRef, String> {
    let values = expression.evaluate(batch.columns(), batch.len())?;
    if expression.as_column().is_none() {
        note_made(&values);
    }
    Ok(values)
}
