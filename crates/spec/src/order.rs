//! The keys of an order, and how NULL keys compare.

use anabranch_batch::order::Direction;
pub use anabranch_batch::order::Nulls;

/// Position in an order: a column, its direction, and where its NULLs go.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SortKey {
    /// Position in the input.
    pub column: usize,
    /// Whether greater values come first.
    pub descending: bool,
    /// Whether NULLs come before all values, whatever the direction.
    pub nulls_first: bool,
}

impl SortKey {
    /// A column in a direction.
    pub fn new(column: usize, direction: Direction) -> SortKey {
        SortKey { column, descending: direction.descending, nulls_first: direction.nulls_first }
    }

    /// The column, and how it orders.
    pub fn pair(&self) -> (usize, Direction) {
        (self.column, self.direction())
    }

    /// How the column orders.
    pub fn direction(&self) -> Direction {
        Direction { descending: self.descending, nulls_first: self.nulls_first }
    }
}
