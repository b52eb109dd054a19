//! Lifetimes of at most so many ticks.
//!
//! ```text
//!     limit 10:   [1, 15) a -> [1, 11) a    [2, 5) b -> [2, 5) b    start 3 c, no end -> [3, 13) c
//! ```
//!
//! Law: an event [s, e) becomes [s, min(e, s + limit)). Open events get an end.
//!
//! State: start edges of the last `limit` ticks; freed when their end edge comes or time passes s +
//! limit, when the end edge goes out. Source: Trill, `ClipEventDuration(limit)`.

use anabranch_batch::{Batch, END, Time};
use arrow::datatypes::DataType;
use std::collections::BTreeMap;

use anabranch_flow::tactic::{Output, Timed};

use super::events::{EventKind, EventOutput, EventQueue, kind};
use super::rows::RowSet;

/// The tactic. See the module's page.
#[derive(Debug)]
pub struct ClipDuration {
    limit: i64,
    queue: EventQueue,
    rows: RowSet,
    /// Open events: how many, by start and row.
    open: BTreeMap<(Time, u32), u32>,
}

impl ClipDuration {
    /// Events of rows of these types, none longer than `limit` (positive).
    pub fn new(limit: i64, types: &[DataType]) -> ClipDuration {
        assert!(limit > 0, "a limit is positive");
        ClipDuration { limit, queue: EventQueue::default(), rows: RowSet::new(types), open: BTreeMap::new() }
    }

    /// Ends the open events whose limit is at or before `upto`, or only notes it for those that
    /// were ended by an edge.
    fn expire(&mut self, upto: Time, emit: &mut EventOutput) -> Vec<u32> {
        let mut released = Vec::new();
        while let Some(entry) = self.open.first_entry() {
            let (start, id) = *entry.key();
            let end = start.saturating_add(self.limit);
            if end > upto {
                break;
            }
            for _ in 0..entry.remove() {
                if end < END {
                    emit.stored(id, end, start);
                }
                released.push(id);
            }
        }
        released
    }

    /// Whether an open event of row `id` began at `start`; it is open no more.
    fn close(&mut self, id: u32, start: Time) -> bool {
        let Some(count) = self.open.get_mut(&(start, id)) else { return false };
        *count -= 1;
        if *count == 0 {
            self.open.remove(&(start, id));
        }
        true
    }
}

impl Timed for ClipDuration {
    fn push(&mut self, _input: usize, batch: Batch) {
        self.queue.push(batch);
    }

    fn advance(&mut self, upto: Time, out: &mut Output) {
        let ready = self.queue.take_before(upto);
        let mut emit = EventOutput::default();
        let mut released = Vec::new();
        if let Some(ready) = &ready {
            let ids = self.rows.hold(ready.batch.columns(), ready.len());
            for (row, &id) in (0u32..).zip(&ids) {
                let (time, until) = (ready.times[row as usize], ready.untils[row as usize]);
                match kind(time, until) {
                    Some(EventKind::Start) => {
                        emit.fresh(row, time, END);
                        *self.open.entry((time, id)).or_default() += 1;
                        continue;
                    }
                    Some(EventKind::Interval) => emit.fresh(row, time, until.min(time.saturating_add(self.limit))),
                    Some(EventKind::End) if time < until.saturating_add(self.limit) => {
                        if self.close(id, until) {
                            emit.fresh(row, time, until);
                            released.push(id);
                        }
                    }
                    Some(EventKind::End) | None => {}
                }
                released.push(id);
            }
        }
        released.extend(self.expire(upto, &mut emit));
        let fresh = ready.as_ref().map_or(&[][..], |ready| ready.batch.columns());
        out.give_rows(emit.finish(fresh, self.rows.store()));
        released.into_iter().for_each(|id| self.rows.release(id));
    }

    fn pending_from(&self) -> Option<Time> {
        let open = self.open.first_key_value().map(|(&(start, _), _)| start.saturating_add(self.limit));
        self.queue.pending_from().into_iter().chain(open).min()
    }

    fn size_bytes(&self) -> usize {
        let open = self.open.len() * size_of::<((Time, u32), u32)>();
        self.queue.size_bytes() + self.rows.size_bytes() + open
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::temporal::testing::*;

    #[test]
    fn long_events_end_at_the_limit() {
        let input = [(1, 15, 1), (2, 5, 2), (3, END, 3), (4, END, 4), (6, 4, 4), (40, 3, 3), (41, END, 3)];
        let expected = [(1, 11, 1), (2, 5, 2), (3, 13, 3), (4, 6, 4), (41, 51, 3)];
        check(|| ClipDuration::new(10, &types()), &input, &expected);
    }

    #[test]
    fn limits_beyond_the_end_of_time_do_nothing() {
        check(|| ClipDuration::new(END, &types()), &[(5, END, 1), (6, END, 2), (8, 6, 2)], &[(5, END, 1), (6, 8, 2)]);
    }
}
