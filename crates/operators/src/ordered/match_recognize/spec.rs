//! What row pattern recognition looks for, and what a match yields.

use anabranch_arrangement::MergeEffort;
use anabranch_spec::order::SortKey;
use anabranch_spec::recognize::{At, Cell, CellValue, End, Skip};
use arrow::datatypes::DataType;

use super::program::RecognizeProgram;
use crate::expression::ExpressionRef;

/// What is looked for. Columns are positions in the input; variables are numbers.
#[derive(Clone)]
pub struct RecognizeSpec {
    /// Columns whose values have matches of their own; NULL equals NULL.
    pub partition: Vec<usize>,
    /// The order of a partition's rows.
    pub order: Vec<SortKey>,
    /// What follows what.
    pub program: RecognizeProgram,
    /// What a row must meet to be taken for a variable.
    pub variables: Vec<VariableSpec>,
    /// What conditions read, in the order of their columns.
    pub cells: Vec<Cell>,
    /// What a match yields beside the partition's columns.
    pub output: Vec<Cell>,
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

/// Whether a cell is known from the row that is looked at as a candidate for `variable`, without
/// the match so far; then how far from that row its value is.
pub(super) fn offset_from_row(cell: &CellValue, variable: usize) -> Option<i64> {
    match cell {
        CellValue::Column { column: _, at: At { end: End::Last, variable: of, skipped: 0, offset } }
            if of.is_none_or(|of| of == variable) =>
        {
            Some(*offset)
        }
        _ => None,
    }
}
