//! Row patterns (`MATCH_RECOGNIZE`), as data: what follows what, what a row must meet, and what a
//! match yields.
//!
//! Conditions are expressions over [`Recognize::schema`]: cells, values that depend on the match so
//! far. A match yields cells too; what is computed from them is a stage above. What it all means is
//! on the page of the operator.

use std::sync::Arc;

use arrow::datatypes::{DataType, Field};
use datafusion_common::{DFSchema, Result as DfResult};
use datafusion_expr::Expr;

use crate::order::SortKey;

/// A row pattern. Columns are positions in the input, variables are numbers.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Recognize {
    /// Columns whose values have matches of their own.
    pub partition: Vec<usize>,
    /// The order of a partition's rows; ties are broken by the remaining columns, ascending.
    pub order: Vec<SortKey>,
    /// What follows what.
    pub pattern: RowPattern,
    /// What the pattern's numbers stand for.
    pub variables: Vec<Variable>,
    /// What conditions read.
    pub cells: Vec<Cell>,
    /// What a match yields after the partition's columns.
    pub output: Vec<Cell>,
    /// Where the search goes on.
    pub skip: Skip,
    /// The first and the last row of a match are less than so many units of the first order column
    /// apart.
    pub within: Option<u64>,
}

/// A regular expression over variables. The order of alternatives says which is preferred.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum RowPattern {
    /// One row.
    Variable(usize),
    /// One after another.
    Sequence(Vec<RowPattern>),
    /// Any one of these, preferably the first.
    Alternatives(Vec<RowPattern>),
    /// At least so often, and at most so often.
    Repeat {
        /// What is repeated.
        part: Box<RowPattern>,
        /// At least so often.
        min: usize,
        /// At most so often; `None` for any number.
        max: Option<usize>,
        /// Whether fewer times are preferred.
        is_reluctant: bool,
    },
}

/// A variable of the pattern.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Variable {
    /// Its name.
    pub name: String,
    /// What a row must meet to be taken for it; `None` is met by all.
    pub condition: Option<Expr>,
}

/// A value that depends on a match.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Cell {
    /// What expressions call it; a name of its own.
    pub name: String,
    /// What it is.
    pub value: CellValue,
    /// Its type.
    pub data_type: DataType,
}

/// What a cell is.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
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
        /// Of which column, of the cell's type unless it is counted; `None` counts rows.
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

/// An aggregate of the rows of a match.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Fold {
    /// Values that are not NULL.
    Count,
    /// Their sum, of 64-bit integers, floats or decimals.
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

impl Recognize {
    /// What conditions are written against.
    ///
    /// # Errors
    /// When two cells have the same name.
    pub fn schema(&self) -> DfResult<DFSchema> {
        let fields =
            self.cells.iter().map(|cell| (None, Arc::new(Field::new(&cell.name, cell.data_type.clone(), true))));
        DFSchema::new_with_metadata(fields.collect(), Default::default())
    }

    /// The pattern as it is written.
    pub fn pattern_text(&self) -> String {
        self.text(&self.pattern, false)
    }

    fn text(&self, pattern: &RowPattern, is_part: bool) -> String {
        let all = |parts: &[RowPattern], between: &str, is_part| {
            parts.iter().map(|part| self.text(part, is_part)).collect::<Vec<_>>().join(between)
        };
        let (text, is_one) = match pattern {
            RowPattern::Variable(variable) => (self.variables[*variable].name.clone(), true),
            RowPattern::Sequence(parts) => (all(parts, " ", parts.len() > 1), parts.len() == 1),
            RowPattern::Alternatives(parts) => (all(parts, " | ", true), parts.len() == 1),
            RowPattern::Repeat { part, min, max, is_reluctant } => {
                let times = match (min, max) {
                    (0, None) => "*".to_owned(),
                    (1, None) => "+".to_owned(),
                    (0, Some(1)) => "?".to_owned(),
                    (min, None) => format!("{{{min},}}"),
                    (min, Some(max)) if min == max => format!("{{{min}}}"),
                    (min, Some(max)) => format!("{{{min},{max}}}"),
                };
                let reluctant = if *is_reluctant { "?" } else { "" };
                (format!("{}{times}{reluctant}", self.text(part, true)), true)
            }
        };
        if is_part && !is_one { format!("({text})") } else { text }
    }
}
