//! Window functions: what is computed for each row from the rows around it.
//!
//! Law: a call sees the rows of its frame in the window's order, and no others.

use crate::aggregate::AggregateCall;
use crate::frame::WindowFrame;
use crate::order::SortKey;

/// What is computed for each row. Columns are positions in the input.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Window {
    /// Rows look at the rows of their partition only; NULL equals NULL.
    pub partition: Vec<usize>,
    /// The order of a partition's rows. Rows that it does not tell apart are peers, in the order of
    /// the remaining columns.
    pub order: Vec<SortKey>,
    /// The functions, one output column each, after the input's columns.
    pub calls: Vec<WindowCall>,
}

/// A function over the frame of each row.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct WindowCall {
    /// What is computed.
    pub function: WindowFunction,
    /// Over which rows; the distribution functions look at the whole partition.
    pub frame: WindowFrame,
}

/// The window functions that look at a frame or at the whole partition.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum WindowFunction {
    /// An aggregate of the frame's rows. Its own order is empty: elements come in the window's
    /// order.
    Aggregate(AggregateCall),
    /// A column of one of the frame's rows; NULL where there is no such row.
    Value {
        /// The column.
        column: usize,
        /// Of which row.
        place: Place,
    },
    /// Rows before the peers, of all rows but one; 0 for a single row.
    PercentRank,
    /// Rows up to the last peer, of all rows.
    CumeDist,
}

/// A row of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Place {
    /// The first.
    First,
    /// The last.
    Last,
    /// This one, counted from 1.
    Nth(usize),
}
