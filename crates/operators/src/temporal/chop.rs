//! Lifetimes cut at every boundary of a grid.
//!
//! ```text
//!     period 10:   [3, 25) a   ->   [3, 10) a    [10, 20) a    [20, 25) a
//! ```
//!
//! Law: an event becomes its pieces between the boundaries strictly inside of its lifetime. As a
//! collection over time nothing changes. An event that never ends is cut up to the last boundary
//! that a frontier, or the time of a later event, has passed.
//!
//! State: the events in force. A piece comes out when time reaches its start, so a long event does
//! not come out all at once. Cost: one row out for each piece (two for those of start edges). Many
//! pieces are put out in several turns. Source: Trill, `Chop`.

use anabranch_batch::{Batch, END, Time};
use arrow::datatypes::DataType;
use std::collections::BTreeMap;

use anabranch_flow::paced::TURN_ROWS;
use anabranch_flow::tactic::{Output, Timed};

use super::events::{EventKind, EventOutput, EventQueue, Ready, kind};
use super::rows::RowSet;
use super::ticks::{FIRST, ceil};

/// The tactic. See the module's page.
#[derive(Debug)]
pub struct Chop {
    period: i64,
    offset: i64,
    queue: EventQueue,
    rows: RowSet,
    /// Intervals with pieces to come, all from the boundary `next`: end and row.
    intervals: Vec<(Time, u32)>,
    /// Start edges whose end is not known: start and row, how many, and where the last piece began.
    edges: BTreeMap<(Time, u32), Edge>,
    /// The first boundary that has not been cut at.
    next: Time,
    /// Rows that begin or end events, if a turn ended before all were taken on.
    entering: Option<Entering>,
    /// Whether the last turn ended before the time that was asked for.
    has_more: bool,
}

/// Rows that are taken on, in order of time.
#[derive(Debug)]
struct Entering {
    ready: Ready,
    /// Of each row, in `rows`.
    ids: Vec<u32>,
    /// Rows to come, the last first.
    left: Vec<u32>,
}

/// What a turn puts out.
#[derive(Debug, Default)]
struct ChopTurn {
    emit: EventOutput,
    released: Vec<u32>,
}

impl ChopTurn {
    fn is_over(&self) -> bool {
        self.emit.len() >= TURN_ROWS
    }
}

#[derive(Clone, Copy, Debug)]
struct Edge {
    count: u32,
    piece: Time,
}

impl Chop {
    /// Cuts events of rows of these types at `offset + k * period`.
    ///
    /// # Panics
    /// If the period is not positive.
    pub fn new(period: i64, offset: i64, types: &[DataType]) -> Chop {
        assert!(period > 0, "a period is positive");
        Chop {
            period,
            offset,
            queue: EventQueue::default(),
            rows: RowSet::new(types),
            intervals: Vec::new(),
            edges: BTreeMap::new(),
            next: ceil(FIRST, period, offset),
            entering: None,
            has_more: false,
        }
    }

    /// Takes rows on until the turn is over.
    fn enter(&mut self, entering: &mut Entering, turn: &mut ChopTurn) {
        let Entering { ready, ids, left } = entering;
        while let Some(&row) = left.last() {
            let (id, time, until) = (ids[row as usize], ready.times[row as usize], ready.untils[row as usize]);
            let kind = kind(time, until);
            // What ends at a boundary is not cut there; what starts there starts after the cut.
            self.cut_before(if kind == Some(EventKind::End) { time } else { time + 1 }, turn);
            if turn.is_over() {
                return;
            }
            left.pop();
            match kind {
                Some(EventKind::Interval) => {
                    let cut = self.boundary_from(time + 1);
                    turn.emit.fresh(row, time, until.min(cut));
                    if cut < until {
                        self.intervals.push((until, id));
                    } else {
                        turn.released.push(id);
                    }
                }
                Some(EventKind::Start) => {
                    turn.emit.fresh(row, time, END);
                    self.edges.entry((time, id)).or_insert(Edge { count: 0, piece: time }).count += 1;
                }
                Some(EventKind::End) => {
                    turn.released.push(id);
                    if let Some(edge) = self.edges.get_mut(&(until, id)) {
                        turn.emit.fresh(row, time, edge.piece);
                        turn.released.push(id);
                        edge.count -= 1;
                        if edge.count == 0 {
                            self.edges.remove(&(until, id));
                        }
                    }
                }
                None => turn.released.push(id),
            }
        }
    }

    /// The first boundary at or after `time`.
    fn boundary_from(&self, time: Time) -> Time {
        ceil(time, self.period, self.offset)
    }

    /// Cuts at all boundaries before `upto`, until the turn is over.
    fn cut_before(&mut self, upto: Time, turn: &mut ChopTurn) {
        while self.next < upto && !turn.is_over() {
            if self.intervals.is_empty() && (self.edges.is_empty() || upto == END) {
                self.next = self.boundary_from(upto);
                return;
            }
            self.cut(turn);
        }
    }

    /// Cuts at `next`.
    fn cut(&mut self, turn: &mut ChopTurn) {
        let ChopTurn { emit, released } = turn;
        let boundary = self.next;
        self.next = self.boundary_from(boundary + 1);
        let end = self.next;
        self.intervals.retain(|&(until, id)| {
            emit.stored(id, boundary, until.min(end));
            if until <= end {
                released.push(id);
            }
            until > end
        });
        for (&(_, id), edge) in &mut self.edges {
            for _ in 0..edge.count {
                emit.stored(id, boundary, edge.piece);
                emit.stored(id, boundary, END);
            }
            edge.piece = boundary;
        }
    }
}

/// Rows in order of time, the last first; end edges are before the others of their time.
fn left_of(ready: &Ready) -> Vec<u32> {
    let is_end = |row: u32| ready.untils[row as usize] < ready.times[row as usize];
    let mut rows: Vec<u32> = (0..ready.len() as u32).collect();
    if rows.iter().any(|&row| is_end(row)) {
        rows.sort_by_key(|&row| (ready.times[row as usize], !is_end(row)));
    }
    rows.reverse();
    rows
}

impl Timed for Chop {
    fn push(&mut self, _input: usize, batch: Batch) {
        self.queue.push(batch);
    }

    fn advance(&mut self, upto: Time, out: &mut Output) {
        let mut entering = self.entering.take().or_else(|| {
            let ready = self.queue.take_before(upto)?;
            let ids = self.rows.hold(ready.batch.columns(), ready.len());
            Some(Entering { left: left_of(&ready), ids, ready })
        });
        let mut turn = ChopTurn::default();
        if let Some(entering) = &mut entering {
            self.enter(entering, &mut turn);
        }
        self.cut_before(upto, &mut turn);
        // (A turn may end with the last piece: then the next one has nothing to do.)
        self.has_more = turn.is_over();
        let ChopTurn { emit, released } = turn;
        let fresh = entering.as_ref().map_or(&[][..], |entering| entering.ready.batch.columns());
        out.give_rows(emit.finish(fresh, self.rows.store()));
        released.into_iter().for_each(|id| self.rows.release(id));
        self.entering = entering.filter(|entering| !entering.left.is_empty());
    }

    fn has_more(&self) -> bool {
        self.has_more
    }

    fn pending_from(&self) -> Option<Time> {
        let is_open = !self.intervals.is_empty() || !self.edges.is_empty();
        let entering = self
            .entering
            .iter()
            .filter_map(|Entering { ready, left, .. }| left.last().map(|&row| ready.times[row as usize]));
        self.queue.pending_from().into_iter().chain(is_open.then_some(self.next)).chain(entering).min()
    }

    fn size_bytes(&self) -> usize {
        let intervals = self.intervals.capacity() * size_of::<(Time, u32)>();
        let edges = self.edges.len() * size_of::<((Time, u32), Edge)>();
        let entering = self.entering.as_ref().map_or(0, |entering| {
            entering.ready.batch.size_bytes() + (entering.ids.len() + entering.left.len()) * size_of::<u32>()
        });
        self.queue.size_bytes() + self.rows.size_bytes() + intervals + edges + entering
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::temporal::Hold;
    use crate::temporal::testing::*;

    #[test]
    fn lifetimes_are_cut_at_boundaries() {
        let input = [(3, 25, 1), (5, 10, 2), (10, 20, 3), (11, 12, 4), (-5, 5, 5)];
        let expected =
            [(3, 10, 1), (10, 20, 1), (20, 25, 1), (5, 10, 2), (10, 20, 3), (11, 12, 4), (-5, 0, 5), (0, 5, 5)];
        check(|| Chop::new(10, 0, &types()), &input, &expected);
    }

    #[test]
    fn equal_edges_are_cut_alike() {
        let input = [(3, END, 1), (3, END, 1), (25, 3, 1), (31, 3, 1)];
        let expected = [(3, 12, 1), (12, 22, 1), (22, 25, 1), (3, 12, 1), (12, 22, 1), (22, 31, 1)];
        check(|| Chop::new(10, 2, &types()), &input, &expected);
    }

    #[test]
    fn an_event_that_never_ends_is_cut_as_far_as_time_went() {
        let stops = [5, 27, END];
        let result = intervals(&run(Chop::new(10, 0, &types()), Hold::Same, &[&[(3, END, 1)]], &stops, false));
        assert_eq!(result, [(3, 10, 1), (10, 20, 1), (20, END, 1)]);
    }
}
