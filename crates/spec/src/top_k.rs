//! The first rows of each group.

use crate::order::SortKey;

/// What a row's place in its group is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RankedBy {
    /// The number of rows up to it: `row_number()`. Ties beyond the order are broken by the
    /// remaining columns, ascending, so that the answer is a function of the contents.
    Row,
    /// One more than the rows before its peers: `rank()`.
    Rank,
    /// The number of groups of peers up to its own: `dense_rank()`.
    DenseRank,
}

/// The first rows of each group.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct TopK {
    /// Grouping columns; empty means one group.
    pub group: Vec<usize>,
    /// Most significant key first.
    pub order: Vec<SortKey>,
    /// What a row's place is. Rows whose place is the same are kept together.
    pub ranked: RankedBy,
    /// Places skipped in each group; 0 unless places are those of rows.
    pub offset: usize,
    /// Places kept in each group after `offset`; `None` keeps all.
    pub limit: Option<usize>,
    /// Whether a last column holds the row's place in its group, from 1, unsigned 64-bit.
    pub numbered: bool,
}
