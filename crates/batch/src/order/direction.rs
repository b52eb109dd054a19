//! Which way a column orders.

/// How one column orders.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Direction {
    /// Largest first.
    pub descending: bool,
    /// NULLs before all values, else after them.
    pub nulls_first: bool,
}

impl Direction {
    /// Smallest first, NULLs last: what SQL says when nothing is said.
    pub const ASCENDING: Direction = Direction { descending: false, nulls_first: false };
    /// Largest first, NULLs first, as in PostgreSQL: the exact reverse of [`Direction::ASCENDING`].
    pub const DESCENDING: Direction = Direction { descending: true, nulls_first: true };
}
