//! Sessions: runs of rows of a partition with small gaps between their times.

/// What sessions are made of. Columns are positions in the input's rows.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct SessionWindows {
    /// Rows with equal values in these columns have sessions of their own; NULL equals NULL.
    pub partition: Vec<usize>,
    /// Time of the rows; see [`is_instant`](crate::asof::is_instant). A row without is left out.
    pub time: usize,
    /// How far apart two rows of a session are that follow each other, at most, in units of the
    /// time's type.
    pub gap: u64,
}
