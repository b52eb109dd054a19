//! What an as-of join is asked to match.

use anabranch_arrangement::{MergeEffort, NullKeys};
use anabranch_batch::order::Direction;
use arrow::datatypes::DataType;

/// Where the match of a row lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Strategy {
    /// The latest row that is not later.
    Backward,
    /// The earliest row that is not earlier.
    Forward,
    /// The row whose time differs least; of two that differ alike, the later one (as Polars).
    Nearest,
}

/// What to match on. Columns are positions in each side.
#[derive(Clone, Debug)]
pub struct AsofSpec {
    /// Columns of the left side,
    pub left_key: Vec<usize>,
    /// which are equal to these of the right side, pairwise of the same types.
    pub right_key: Vec<usize>,
    /// Whether NULL keys match each other.
    pub nulls: NullKeys,
    /// Time of the left rows: a column of whole numbers with a sign, dates or times.
    pub left_time: usize,
    /// Time of the right rows, of the same type.
    pub right_time: usize,
    /// Where the match lies.
    pub strategy: Strategy,
    /// Whether rows of the same time match.
    pub exact: bool,
    /// How far apart the times of a match may be, in units of their type.
    pub tolerance: Option<u64>,
    /// Whether left rows without a match are kept, with NULLs on the right.
    pub outer: bool,
    /// Types of the left columns.
    pub left_types: Vec<DataType>,
    /// Types of the right columns.
    pub right_types: Vec<DataType>,
    /// How eagerly the state is merged.
    pub effort: MergeEffort,
}

impl AsofSpec {
    /// An instant as the search sees it: with *forward*, time runs backward. The same function
    /// leads back.
    pub(super) fn turned(&self, instant: i64) -> i64 {
        if self.strategy == Strategy::Forward { !instant } else { instant }
    }

    /// Key columns in which a NULL keeps a row from matching.
    pub(super) fn null_columns<'a>(&self, key: &'a [usize]) -> &'a [usize] {
        if self.nulls == NullKeys::Match { &[] } else { key }
    }

    /// The order of left rows, in the direction of the search.
    pub(super) fn onward(&self) -> Direction {
        Direction { descending: self.strategy == Strategy::Forward, nulls_first: false }
    }

    /// The opposite order.
    pub(super) fn backward(&self) -> Direction {
        Direction { descending: self.strategy != Strategy::Forward, nulls_first: false }
    }
}
