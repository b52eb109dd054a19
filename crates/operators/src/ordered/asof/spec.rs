//! What an as-of join is asked to match.

use anabranch_arrangement::MergeEffort;
use anabranch_batch::order::{Direction, Nulls};
use anabranch_spec::asof::{AsofJoin, Strategy};
use arrow::datatypes::DataType;

/// What to match on, of rows of which types.
#[derive(Clone, Debug)]
pub struct AsofSpec {
    /// What to match on.
    pub join: AsofJoin,
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
        if self.join.strategy == Strategy::Forward { !instant } else { instant }
    }

    /// Key columns in which a NULL keeps a row from matching.
    pub(super) fn null_columns<'a>(&self, key: &'a [usize]) -> &'a [usize] {
        if self.join.nulls == Nulls::Equal { &[] } else { key }
    }

    /// The order of left rows, in the direction of the search.
    pub(super) fn onward(&self) -> Direction {
        Direction { descending: self.join.strategy == Strategy::Forward, nulls_first: false }
    }

    /// The opposite order.
    pub(super) fn backward(&self) -> Direction {
        Direction { descending: self.join.strategy != Strategy::Forward, nulls_first: false }
    }
}
