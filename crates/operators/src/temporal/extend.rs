//! Lifetimes that end later, or earlier.
//!
//! ```text
//!     by 3:     [1, 2) a -> [1, 5) a
//!     by -10:   [1, 15) a -> [1, 5) a    [4, 14) b -> nothing
//! ```
//!
//! Law: an event [s, e) becomes [s, e + n), nothing if that is empty; an open event stays open.
//!
//! State: none to make longer. To make shorter by n: start edges of the last n ticks, because their
//! end edge may still come and leave nothing of them. Start edges come out when the time has passed
//! s + n, so the frontier is n behind; a state entry is freed then. Source: Trill,
//! `ExtendLifetime`.

use anabranch_batch::{Batch, END, Time};
use arrow::datatypes::DataType;
use std::collections::BTreeMap;

use anabranch_flow::tactic::{Output, Timed};

use super::Hold;
use super::events::{EventKind, EventOutput, EventQueue, kind, map_lifetimes};
use super::rows::RowSet;
use super::ticks::add;

/// Ends events `ticks` later.
///
/// # Panics
/// If `ticks` is negative: that takes [`Shorten`].
pub fn lengthen(batch: Batch, ticks: i64, out: &mut Output) {
    assert!(ticks >= 0, "lengthening does not shorten");
    out.give_rows(map_lifetimes(batch, |time, until| match kind(time, until)? {
        EventKind::Interval => Some((time, add(until, ticks))),
        EventKind::Start => Some((time, END)),
        EventKind::End => Some((add(time, ticks), until)).filter(|&(time, _)| time < END),
    }));
}

/// The tactic that ends events earlier. See the module's page.
#[derive(Debug)]
pub struct Shorten {
    ticks: i64,
    queue: EventQueue,
    rows: RowSet,
    /// Start edges that are not out yet: how many, by time and row.
    waiting: BTreeMap<(Time, u32), u32>,
}

impl Shorten {
    /// Events of rows of these types, each ending `ticks` (not negative) earlier.
    pub fn new(ticks: i64, types: &[DataType]) -> Shorten {
        assert!(ticks >= 0, "a shortening is given as a number of ticks");
        Shorten { ticks, queue: EventQueue::default(), rows: RowSet::new(types), waiting: BTreeMap::new() }
    }

    /// How far the output reaches back.
    pub fn hold(ticks: i64) -> Hold {
        Hold::Back(ticks)
    }

    /// The end edge of `id` that began at `start` has come.
    fn end(&mut self, id: u32, row: u32, time: Time, start: Time, emit: &mut EventOutput) {
        let end = time.saturating_sub(self.ticks);
        if end > start {
            emit.fresh(row, end, start);
        } else if let Some(count) = self.waiting.get_mut(&(start, id)) {
            *count -= 1;
            if *count == 0 {
                self.waiting.remove(&(start, id));
            }
            self.rows.release(id);
        }
    }

    /// Puts out start edges whose end, if it came, would leave something of them.
    fn release_before(&mut self, upto: Time, emit: &mut EventOutput) -> Vec<u32> {
        let mut released = Vec::new();
        while let Some(entry) = self.waiting.first_entry() {
            let (start, id) = *entry.key();
            if upto != END && start.saturating_add(self.ticks) >= upto {
                break;
            }
            for _ in 0..entry.remove() {
                emit.stored(id, start, END);
                released.push(id);
            }
        }
        released
    }
}

impl Timed for Shorten {
    fn push(&mut self, _input: usize, batch: Batch) {
        self.queue.push(batch);
    }

    fn advance(&mut self, upto: Time, out: &mut Output) {
        let ready = self.queue.take_before(upto);
        let mut emit = EventOutput::default();
        if let Some(ready) = &ready {
            let ids = self.rows.hold(ready.batch.columns(), ready.len());
            for (row, &id) in (0u32..).zip(&ids) {
                let (time, until) = (ready.times[row as usize], ready.untils[row as usize]);
                match kind(time, until) {
                    Some(EventKind::Start) => {
                        *self.waiting.entry((time, id)).or_default() += 1;
                        continue;
                    }
                    Some(EventKind::Interval) if until.saturating_sub(self.ticks) > time => {
                        emit.fresh(row, time, until - self.ticks);
                    }
                    Some(EventKind::End) => self.end(id, row, time, until, &mut emit),
                    Some(EventKind::Interval) | None => {}
                }
                self.rows.release(id);
            }
        }
        let released = self.release_before(upto, &mut emit);
        let fresh = ready.as_ref().map_or(&[][..], |ready| ready.batch.columns());
        out.give_rows(emit.finish(fresh, self.rows.store()));
        released.into_iter().for_each(|id| self.rows.release(id));
    }

    fn pending_from(&self) -> Option<Time> {
        let waiting = self.waiting.first_key_value().map(|(&(time, _), _)| time);
        self.queue.pending_from().into_iter().chain(waiting).min()
    }

    fn size_bytes(&self) -> usize {
        let waiting = self.waiting.len() * size_of::<((Time, u32), u32)>();
        self.queue.size_bytes() + self.rows.size_bytes() + waiting
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::temporal::testing::*;

    #[test]
    fn longer() {
        let input = events(&[(1, 2, 7), (1, END, 8), (5, 1, 8)]);
        assert_eq!(applied(|batch, out| lengthen(batch, 3, out), input), [(1, 5, 7), (1, END, 8), (8, 1, 8)]);
    }

    #[test]
    fn shorter_intervals_may_vanish() {
        check_held(
            Shorten::hold(10),
            || Shorten::new(10, &types()),
            &[(1, 15, 1), (4, 14, 2), (8, 19, 3)],
            &[(1, 5, 1), (8, 9, 3)],
        );
    }

    #[test]
    fn shorter_edges_may_vanish() {
        let input = [(1, END, 1), (2, END, 1), (3, END, 1), (4, END, 1), (5, 1, 1), (6, 2, 1), (17, 3, 1), (18, 4, 1)];
        check_held(Shorten::hold(10), || Shorten::new(10, &types()), &input, &[(3, 7, 1), (4, 8, 1)]);
        let input = [(1, END, 1), (2, END, 2), (5, 1, 1), (6, 2, 2), (9, END, 3)];
        check_held(Shorten::hold(3), || Shorten::new(3, &types()), &input, &[(1, 2, 1), (2, 3, 2), (9, END, 3)]);
    }
}
