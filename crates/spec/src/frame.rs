//! Frames: the rows around a row that a window function looks at.
//!
//! ```text
//!     ROWS BETWEEN 1 PRECEDING AND CURRENT ROW     Rows(-1) .. Rows(0)
//!     RANGE UNBOUNDED PRECEDING                    First .. Peers(0)
//!     GROUPS BETWEEN 1 PRECEDING AND 1 FOLLOWING   Peers(-1) .. Peers(1)
//!     RANGE BETWEEN 5 PRECEDING AND CURRENT ROW    Key(column of key - 5) .. Peers(0)
//! ```
//!
//! Law: over the rows of a partition in order, the start and the end of a frame never move back. So
//! the rows whose frames hold a given row lie beside each other.

/// One end of a frame, as seen from a row. Both ends belong to the frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FrameBound {
    /// The first row of the partition.
    First,
    /// So many rows on, or back.
    Rows(i64),
    /// So many groups of peers on, or back: rows that the order does not tell apart are peers. A
    /// start is the first row of its group, an end the last.
    Peers(i64),
    /// The rows whose first order key is, in the order, not before (a start) or not behind (an end)
    /// the value of this column.
    Key(usize),
    /// The last row of the partition.
    Last,
}

/// Rows that are left out of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Exclude {
    /// None.
    Nothing,
    /// The row itself.
    Row,
    /// The row and its peers.
    Peers,
    /// The peers of the row, but not the row.
    Ties,
}

/// Which rows of its partition a row looks at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct WindowFrame {
    /// The first row.
    pub start: FrameBound,
    /// The last row.
    pub end: FrameBound,
    /// Rows between them that are left out.
    pub exclude: Exclude,
}
