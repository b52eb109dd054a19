//! Row patterns: what follows what, the values that depend on a match, and where the search goes
//! on.
//!
//! Law: of several ways to read the same rows, the order of the pattern's parts says which is
//! taken: of alternatives the first, of a repetition one more time, or, if it is reluctant, no
//! more.

use arrow::datatypes::DataType;

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

impl CellValue {
    /// The column that it reads.
    pub fn column(&self) -> Option<usize> {
        match self {
            CellValue::Column { column, .. } => Some(*column),
            CellValue::Fold { column, .. } => *column,
            CellValue::Classifier | CellValue::MatchNumber => None,
        }
    }
}

impl RowPattern {
    /// Whether no row at all is a match.
    pub fn accepts_nothing_at_all(&self) -> bool {
        match self {
            RowPattern::Variable(_) => false,
            RowPattern::Sequence(parts) => parts.iter().all(RowPattern::accepts_nothing_at_all),
            RowPattern::Alternatives(parts) => parts.iter().any(RowPattern::accepts_nothing_at_all),
            RowPattern::Repeat { part, min, .. } => *min == 0 || part.accepts_nothing_at_all(),
        }
    }

    /// The same pattern without the empty match; `None` if that was the only one.
    pub fn without_empty(&self) -> Option<RowPattern> {
        if !self.accepts_nothing_at_all() {
            return Some(self.clone());
        }
        match self {
            RowPattern::Variable(_) => Some(self.clone()),
            // Some part is the first that takes a row.
            RowPattern::Sequence(parts) => {
                let first = |at: usize| {
                    let rest = parts[at + 1..].iter().cloned();
                    Some(RowPattern::Sequence(std::iter::once(parts[at].without_empty()?).chain(rest).collect()))
                };
                alternatives((0..parts.len()).filter_map(first).collect())
            }
            RowPattern::Alternatives(parts) => {
                alternatives(parts.iter().filter_map(RowPattern::without_empty).collect())
            }
            RowPattern::Repeat { max: Some(0), .. } => None,
            RowPattern::Repeat { part, max, is_reluctant, .. } => {
                let part = Box::new(part.without_empty()?);
                Some(RowPattern::Repeat { part, min: 1, max: *max, is_reluctant: *is_reluctant })
            }
        }
    }
}

fn alternatives(mut parts: Vec<RowPattern>) -> Option<RowPattern> {
    match parts.len() {
        0 | 1 => parts.pop(),
        _ => Some(RowPattern::Alternatives(parts)),
    }
}
