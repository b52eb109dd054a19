//! The first rows of each group.

use crate::order::SortKey;

/// The first rows of each group. Ties beyond the order are broken by the remaining columns,
/// ascending, so that the answer is a function of the contents.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct TopK {
    /// Grouping columns; empty means one group.
    pub group: Vec<usize>,
    /// Most significant key first.
    pub order: Vec<SortKey>,
    /// Rows skipped in each group.
    pub offset: usize,
    /// Rows kept in each group after `offset`; `None` keeps all.
    pub limit: Option<usize>,
    /// Whether a last column holds the row's number in its group, from 1, unsigned 64-bit.
    pub row_number: bool,
}
