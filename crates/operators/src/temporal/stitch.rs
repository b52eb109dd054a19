//! Events that touch become one: where an event ends and one with an equal row starts, the first
//! goes on.
//!
//! ```text
//!     in    [1, 2) a    [2, 3) a    [3, 5) a    [6, 7) a
//!     out   [1, 5) a                            [6, 7) a
//! ```
//!
//! Law: of the events of one row that end at t, as many go on as events of that row start at t, the
//! longest first. A multiset, so two equal events that overlap stay two. As a collection over time
//! nothing changes.
//!
//! State: the events in force. An end edge comes out when time has passed it. Source: Trill,
//! `Stitch`, the inverse of `Chop`.

use anabranch_batch::{Batch, END, Time};
use arrow::datatypes::DataType;
use std::collections::BTreeMap;

use anabranch_flow::tactic::{Output, Timed};

use super::events::{EventKind, EventOutput, EventQueue, kind};
use super::rows::RowSet;

/// The tactic. See the module's page.
#[derive(Debug)]
pub struct Stitch {
    queue: EventQueue,
    rows: RowSet,
    /// By row: the events in force.
    open: Vec<Vec<Piece>>,
    /// Known ends of intervals: (end, row, start of the interval), how many.
    ends: BTreeMap<(Time, u32, Time), u32>,
}

/// An event put out as begun, and where the last of its parts began.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Piece {
    begun: Time,
    part: Time,
}

/// What happens to one row at one time.
#[derive(Debug, Default)]
struct Instant {
    starts: u32,
    /// Starts of the parts that end.
    ends: Vec<Time>,
}

impl Stitch {
    /// Events of rows of these types.
    pub fn new(types: &[DataType]) -> Stitch {
        Stitch { queue: EventQueue::default(), rows: RowSet::new(types), open: Vec::new(), ends: BTreeMap::new() }
    }

    /// Settles what happens at `time`.
    fn settle(
        &mut self,
        time: Time,
        instants: &mut BTreeMap<u32, Instant>,
        emit: &mut EventOutput,
        released: &mut Vec<u32>,
    ) {
        while let Some(entry) = self.ends.first_entry() {
            let (end, id, start) = *entry.key();
            if end > time {
                break;
            }
            debug_assert_eq!(end, time, "ends are settled in order");
            let n = entry.remove() as usize;
            instants.entry(id).or_default().ends.extend(std::iter::repeat_n(start, n));
        }
        for (id, instant) in std::mem::take(instants) {
            self.settle_row(time, id, instant, emit, released);
        }
    }

    fn settle_row(&mut self, time: Time, id: u32, instant: Instant, emit: &mut EventOutput, released: &mut Vec<u32>) {
        if self.open.len() <= id as usize {
            self.open.resize(id as usize + 1, Vec::new());
        }
        let open = &mut self.open[id as usize];
        let mut ending: Vec<Piece> = instant.ends.iter().filter_map(|&part| remove_oldest(open, part)).collect();
        ending.sort_unstable();
        let n_on = ending.len().min(instant.starts as usize);
        open.extend(ending[..n_on].iter().map(|piece| Piece { part: time, ..*piece }));
        for piece in &ending[n_on..] {
            emit.stored(id, time, piece.begun);
        }
        for _ in n_on..instant.starts as usize {
            emit.stored(id, time, END);
            open.push(Piece { begun: time, part: time });
        }
        // Each part holds its row until it ends.
        released.extend(std::iter::repeat_n(id, ending.len()));
    }

    /// The next time at or before `upto` that something is known to end.
    fn next_end(&self, upto: Time) -> Option<Time> {
        self.ends.first_key_value().map(|(&(end, ..), _)| end).filter(|&end| end < upto)
    }
}

/// Removes, of the pieces whose last part began at `part`, the one that has been in force for
/// longest.
fn remove_oldest(open: &mut Vec<Piece>, part: Time) -> Option<Piece> {
    let matching = open.iter().enumerate().filter(|(_, piece)| piece.part == part);
    let (index, _) = matching.min_by_key(|(_, piece)| piece.begun)?;
    Some(open.swap_remove(index))
}

impl Timed for Stitch {
    fn push(&mut self, _input: usize, batch: Batch) {
        self.queue.push(batch);
    }

    fn advance(&mut self, upto: Time, out: &mut Output) {
        let ready = self.queue.take_before(upto);
        let mut emit = EventOutput::default();
        let mut released = Vec::new();
        let mut instants = BTreeMap::new();
        if let Some(ready) = &ready {
            let ids = self.rows.hold(ready.batch.columns(), ready.len());
            for (row, &id) in ids.iter().enumerate() {
                let (time, until) = (ready.times[row], ready.untils[row]);
                while let Some(end) = self.next_end(time) {
                    self.settle(end, &mut instants, &mut emit, &mut released);
                }
                let instant: &mut Instant = instants.entry(id).or_default();
                match kind(time, until) {
                    Some(EventKind::Start) => instant.starts += 1,
                    Some(EventKind::Interval) => {
                        instant.starts += 1;
                        *self.ends.entry((until, id, time)).or_default() += 1;
                    }
                    Some(EventKind::End) => {
                        instant.ends.push(until);
                        released.push(id);
                    }
                    None => released.push(id),
                }
                if ready.times.get(row + 1) != Some(&time) {
                    self.settle(time, &mut instants, &mut emit, &mut released);
                }
            }
        }
        while let Some(end) = self.next_end(upto) {
            self.settle(end, &mut instants, &mut emit, &mut released);
        }
        let fresh = ready.as_ref().map_or(&[][..], |ready| ready.batch.columns());
        out.give_rows(emit.finish(fresh, self.rows.store()));
        released.into_iter().for_each(|id| self.rows.release(id));
    }

    fn pending_from(&self) -> Option<Time> {
        let end = self.ends.first_key_value().map(|(&(end, ..), _)| end);
        self.queue.pending_from().into_iter().chain(end).min()
    }

    fn size_bytes(&self) -> usize {
        let pieces: usize = self.open.iter().map(|pieces| pieces.capacity() * size_of::<Piece>()).sum();
        let ends = self.ends.len() * size_of::<((Time, u32, Time), u32)>();
        self.queue.size_bytes() + self.rows.size_bytes() + pieces + ends
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::temporal::testing::*;

    #[test]
    fn touching_events_are_one() {
        let input = [(1, 2, 1), (2, 3, 1), (2, 3, 2), (3, 5, 1), (6, 7, 1)];
        check(|| Stitch::new(&types()), &input, &[(1, 5, 1), (2, 3, 2), (6, 7, 1)]);
    }

    #[test]
    fn equal_events_stay_as_many_as_they_are() {
        let input = [(1, END, 1), (1, END, 1), (2, 1, 1), (2, END, 1), (3, 2, 1), (3, END, 1), (5, 3, 1), (6, 1, 1)];
        check(|| Stitch::new(&types()), &input, &[(1, 5, 1), (1, 6, 1)]);
    }

    #[test]
    fn a_start_before_an_end_within_one_time_is_stitched() {
        let input = [(1, END, 1), (2, END, 1), (2, 1, 1), (4, 2, 1)];
        check(|| Stitch::new(&types()), &input, &[(1, 4, 1)]);
    }
}
