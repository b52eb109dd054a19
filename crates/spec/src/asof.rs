//! As-of joins: each row of the left side with the one row of the right side whose time is nearest,
//! on one side of it.

use arrow::datatypes::DataType;

use crate::order::Nulls;

/// What an as-of join matches on. Columns are positions in each side.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct AsofJoin {
    /// Columns of the left side,
    pub left_key: Vec<usize>,
    /// which are equal to these of the right side, pairwise of the same types.
    pub right_key: Vec<usize>,
    /// Whether NULL keys are equal. A NULL time matches nothing.
    pub nulls: Nulls,
    /// Time of the left rows; see [`is_instant`].
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
}

/// Where the match of a row lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Strategy {
    /// The latest row that is not later.
    Backward,
    /// The earliest row that is not earlier.
    Forward,
    /// The row whose time differs least; of two that differ alike, the later one (as Polars).
    Nearest,
}

/// Whether values of this type are times that rows can be matched on: whole numbers with a sign,
/// dates, times and timestamps.
pub fn is_instant(data_type: &DataType) -> bool {
    use DataType::{Date32, Date64, Int8, Int16, Int32, Int64, Time32, Time64, Timestamp};
    matches!(data_type, Int8 | Int16 | Int32 | Int64 | Date32 | Date64 | Time32(_) | Time64(_) | Timestamp(..))
}
