//! How rows compare: NULL keys, and the keys of an order.

/// How NULL keys compare in a join.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Nulls {
    /// NULL matches nothing.
    Differ,
    /// NULL matches NULL.
    Equal,
}

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
