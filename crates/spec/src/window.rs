//! Window functions: what is computed for each row from the rows around it.
//!
//! Law: a call sees the rows of its frame in the window's order, and no others.

use crate::aggregate::AggregateCall;
use crate::frame::{FrameBound, WindowFrame};
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

/// How far the frames of a window reach from their rows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FrameReach {
    /// So many rows before the row,
    pub back_rows: usize,
    /// so many groups of peers before it,
    pub back_groups: usize,
    /// so many rows behind it,
    pub ahead_rows: usize,
    /// and so many groups of peers.
    pub ahead_groups: usize,
    /// Some frame begins or ends with a group: peers before the row may be in it.
    pub has_groups: bool,
    /// Columns of the values that frames begin from.
    pub from: Vec<usize>,
}

impl FrameReach {
    /// Whether no frame holds a row behind its own.
    pub fn is_back_only(&self) -> bool {
        self.ahead_rows == 0 && self.ahead_groups == 0
    }

    fn add(&mut self, bound: FrameBound) -> Option<()> {
        let size = |steps: i64| usize::try_from(steps.unsigned_abs()).ok();
        self.has_groups |= matches!(bound, FrameBound::Peers(_));
        let (place, steps) = match bound {
            FrameBound::Rows(steps) if steps < 0 => (&mut self.back_rows, size(steps)?),
            FrameBound::Rows(steps) => (&mut self.ahead_rows, size(steps)?),
            FrameBound::Peers(steps) if steps < 0 => (&mut self.back_groups, size(steps)?),
            FrameBound::Peers(steps) => (&mut self.ahead_groups, size(steps)?),
            FrameBound::First | FrameBound::Last | FrameBound::Key(_) => return None,
        };
        *place = steps.max(*place);
        Some(())
    }
}

impl Window {
    /// How far the frames of all calls reach; `None` where one reaches the first or the last row of
    /// its partition, or ends at a value.
    pub fn reach(&self) -> Option<FrameReach> {
        let mut reach = FrameReach::default();
        for WindowCall { function, frame } in &self.calls {
            if !is_of_frame(function) {
                return None;
            }
            match frame.start {
                FrameBound::Key(column) => reach.from.push(column),
                start => reach.add(start)?,
            }
            reach.add(frame.end)?;
        }
        Some(reach)
    }

    /// Whether no frame holds a row behind its own, or behind the peers of its own.
    pub fn reaches_back_only(&self) -> bool {
        let is_back = |bound: FrameBound| match bound {
            FrameBound::Rows(steps) | FrameBound::Peers(steps) => steps <= 0,
            FrameBound::First | FrameBound::Key(_) => true,
            FrameBound::Last => false,
        };
        let ends_back =
            |bound: FrameBound| matches!(bound, FrameBound::Rows(_) | FrameBound::Peers(_)) && is_back(bound);
        self.calls
            .iter()
            .all(|WindowCall { function, frame }| is_of_frame(function) && is_back(frame.start) && ends_back(frame.end))
    }
}

fn is_of_frame(function: &WindowFunction) -> bool {
    matches!(function, WindowFunction::Aggregate(_) | WindowFunction::Value { .. })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::Exclude;

    fn window(frames: &[(FrameBound, FrameBound)]) -> Window {
        let call = |&(start, end): &(FrameBound, FrameBound)| WindowCall {
            function: WindowFunction::Value { column: 0, place: Place::First },
            frame: WindowFrame { start, end, exclude: Exclude::Nothing },
        };
        Window { partition: vec![], order: vec![], calls: frames.iter().map(call).collect() }
    }

    #[test]
    fn frames_reach_as_far_as_the_furthest() {
        use FrameBound::{First, Key, Last, Peers, Rows};
        let lag_and_lead = window(&[(Rows(-3), Rows(-3)), (Rows(2), Rows(2)), (Rows(-1), Rows(0))]);
        let reach = FrameReach { back_rows: 3, ahead_rows: 2, ..FrameReach::default() };
        assert_eq!((lag_and_lead.reach(), lag_and_lead.reaches_back_only()), (Some(reach), false));
        let groups = window(&[(Peers(-2), Peers(0)), (Key(4), Peers(0))]);
        let reach = FrameReach { back_groups: 2, has_groups: true, from: vec![4], ..FrameReach::default() };
        assert_eq!((groups.reach(), groups.reaches_back_only()), (Some(reach), true));
        let running = window(&[(First, Rows(0))]);
        assert_eq!((running.reach(), running.reaches_back_only()), (None, true));
        for endless in [(Rows(0), Last), (Key(1), Key(2))] {
            assert_eq!((window(&[endless]).reach(), window(&[endless]).reaches_back_only()), (None, false));
        }
    }
}
