//! What row pattern recognition looks for, and what a match yields.

use anabranch_arrangement::MergeEffort;
use anabranch_batch::order::Direction;
use arrow::datatypes::DataType;

use super::program::RecognizeProgram;
use crate::expression::ExpressionRef;

/// What is looked for. Columns are positions in the input; variables are numbers.
#[derive(Clone)]
pub struct RecognizeSpec {
    /// Columns whose values have matches of their own; NULL equals NULL.
    pub partition: Vec<usize>,
    /// The order of a partition's rows.
    pub order: Vec<(usize, Direction)>,
    /// What follows what.
    pub program: RecognizeProgram,
    /// What a row must meet to be taken for a variable.
    pub variables: Vec<VariableSpec>,
    /// What conditions read, in the order of their columns.
    pub cells: Vec<CellSpec>,
    /// What a match yields beside the partition's columns.
    pub output: Vec<CellSpec>,
    /// Where the search goes on after a match.
    pub skip: Skip,
    /// The first and the last row of a match are less than so many units of the first order column
    /// apart.
    pub within: Option<u64>,
    /// Types of all input columns.
    pub input_types: Vec<DataType>,
    /// How eagerly the state is merged.
    pub effort: MergeEffort,
}

/// A variable of the pattern.
#[derive(Clone)]
pub struct VariableSpec {
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
pub struct CellSpec {
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
    pub end: EndSpec,
    /// Among the rows taken for this variable; `None` for all of the match.
    pub variable: Option<usize>,
    /// So many of these rows are skipped.
    pub skipped: usize,
    /// Then so many rows on in the partition, or back.
    pub offset: i64,
}

/// An end of a match.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum EndSpec {
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
    /// Whether it is known from the row that is looked at as a candidate for `variable`, without
    /// the match so far; then how far from that row its value is.
    pub(super) fn offset_from_row(&self, variable: usize) -> Option<i64> {
        match self {
            CellValue::Column { at: At { end: EndSpec::Last, variable: of, skipped: 0, offset }, .. }
                if of.is_none_or(|of| of == variable) =>
            {
                Some(*offset)
            }
            _ => None,
        }
    }

    /// The column that it reads.
    pub(super) fn column(&self) -> Option<usize> {
        match self {
            CellValue::Column { column, .. } => Some(*column),
            CellValue::Fold { column, .. } => *column,
            CellValue::Classifier | CellValue::MatchNumber => None,
        }
    }
}
