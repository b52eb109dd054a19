//! Row pattern recognition: `MATCH_RECOGNIZE` of SQL:2016, kept current over rows that change.
//!
//! ```text
//!     PARTITION BY k ORDER BY t, PATTERN (A B+), B AS x < PREV(x)
//!     in    (k, 1, 5) +1  (k, 2, 4) +1  (k, 3, 3) +1 @1      (k, 3, 3) -1 @2
//!     out   (k, 1 .. 3) +1 @1                                (k, 1 .. 3) -1, (k, 1 .. 2) +1 @2
//! ```
//!
//! Law: at every time, the rows of each partition are put in order (ties by the remaining columns; a row with multiplicity n comes n times). From the first row on,
//! the preferred match that begins at a row is taken: of alternatives the first, of repetitions the longest (reluctant ones: the shortest) that lets the rest
//! match. A row may be taken for a variable if the variable's condition is true, which may look at the match so far and, by physical offsets, at any row of the
//! partition. A match yields one row: the partition's columns, then the cells asked for. The search goes on where [`Skip`] says. The empty match is none.
//!
//! Where a condition fails on a row, the partition has that error in place of matches.
//!
//! State: all rows, sorted within their partition. Cost: a change costs its partition. Conditions that read no more than rows at fixed offsets are evaluated over
//! whole batches, and a search then takes each step of the pattern at most once for each row; other conditions are evaluated one row at a time, and backtrack at
//! most [`BACKTRACKS_MAX`] times in a match: more are an error of the partition.
//! Source: ISO/IEC 19075-5 (row pattern recognition in SQL); Cox, *Regular Expression Matching: the Virtual Machine Approach* (2009) for the search.
//!
//! Reading order: [`program`], `search`, `cells`, `tactic`.

mod cells;
mod fold;
pub mod program;
mod search;
mod tactic;
#[cfg(test)]
mod tests;

use anabranch_arrangement::MergeEffort;
use anabranch_batch::order::Direction;
use arrow::datatypes::DataType;

use crate::expression::ExpressionRef;
pub use program::{Program, RowPattern};
pub use search::BACKTRACKS_MAX;
pub use tactic::Recognize;

/// What is looked for. Columns are positions in the input; variables are numbers.
#[derive(Clone)]
pub struct RecognizeSpec {
    /// Columns whose values have matches of their own; NULL equals NULL.
    pub partition: Vec<usize>,
    /// The order of a partition's rows.
    pub order: Vec<(usize, Direction)>,
    /// What follows what.
    pub program: Program,
    /// What a row must meet to be taken for a variable.
    pub variables: Vec<Variable>,
    /// What conditions read, in the order of their columns.
    pub cells: Vec<Cell>,
    /// What a match yields beside the partition's columns.
    pub output: Vec<Cell>,
    /// Where the search goes on after a match.
    pub skip: Skip,
    /// The first and the last row of a match are less than so many units of the first order column apart.
    pub within: Option<u64>,
    /// Types of all input columns.
    pub input_types: Vec<DataType>,
    /// How eagerly the state is merged.
    pub effort: MergeEffort,
}

/// A variable of the pattern.
#[derive(Clone)]
pub struct Variable {
    /// As written.
    pub name: String,
    /// Over the cells; `None` is met by all rows.
    pub condition: Option<Condition>,
}

/// What a row must meet.
#[derive(Clone)]
pub struct Condition {
    /// Boolean, over the cells.
    pub expression: ExpressionRef,
    /// The cells that it reads.
    pub cells: Vec<usize>,
}

/// A value that depends on a match.
#[derive(Clone, Debug)]
pub struct Cell {
    /// What it is.
    pub value: CellValue,
    /// Its type.
    pub data_type: DataType,
}

/// What a cell is.
#[derive(Clone, Debug)]
pub enum CellValue {
    /// A column of a row; NULL where there is no such row.
    Column {
        /// The column.
        column: usize,
        /// The row.
        at: At,
    },
    /// The name of the variable that the last row was taken for.
    Classifier,
    /// The number of the match in its partition, from 1.
    MatchNumber,
    /// An aggregate of the rows taken for a variable.
    Fold {
        /// Which aggregate.
        function: Fold,
        /// Of which column; `None` counts rows.
        column: Option<usize>,
        /// Of which rows; `None` for all of the match.
        variable: Option<usize>,
    },
}

/// A row, seen from a match.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct At {
    /// From which end it is counted.
    pub end: End,
    /// Among the rows taken for this variable; `None` for all of the match.
    pub variable: Option<usize>,
    /// So many of these rows are skipped.
    pub skipped: usize,
    /// Then so many rows on in the partition, or back.
    pub offset: i64,
}

/// An end of a match.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum End {
    /// Its first row.
    First,
    /// Its last row; in a condition, the row that is looked at.
    Last,
}

/// An aggregate of a column whose type is that of the result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Fold {
    /// Values that are not NULL.
    Count,
    /// Sum of these, of 64-bit integers, floats or decimals; NULL without any.
    Sum,
    /// Least.
    Min,
    /// Greatest.
    Max,
}

/// Where the search goes on after a match.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Skip {
    /// After its last row.
    PastLastRow,
    /// After its first row.
    ToNextRow,
    /// At the first row taken for a variable.
    ToFirst(usize),
    /// At the last row taken for a variable.
    ToLast(usize),
}

impl CellValue {
    /// Whether it is known from the row that is looked at as a candidate for `variable`, without the match so far; then how far from that row its value is.
    fn offset_from_row(&self, variable: usize) -> Option<i64> {
        match self {
            CellValue::Column { at: At { end: End::Last, variable: of, skipped: 0, offset }, .. }
                if of.is_none_or(|of| of == variable) =>
            {
                Some(*offset)
            }
            _ => None,
        }
    }

    /// The column that it reads.
    fn column(&self) -> Option<usize> {
        match self {
            CellValue::Column { column, .. } => Some(*column),
            CellValue::Fold { column, .. } => *column,
            CellValue::Classifier | CellValue::MatchNumber => None,
        }
    }
}
