//! Sessions: every event lasts until its session ends, a session being events of a group with small
//! gaps between them.
//!
//! ```text
//!     timeout 5:   1 a, 6 b, 10 c   ->   [1, 6) a    [6, 15) b    [10, 15) c
//! ```
//!
//! Law: an event at t becomes [t, e) where e is the end of its session: the time of the session's
//! last event plus the timeout, or the session's latest end if that is earlier. An event starts a
//! session when the gap to the last event of its group is the timeout or more, or when it is not
//! before the session's latest end. With a maximum m, the latest end of a session that a gap has
//! opened at t is t + m if m divides t, else floor(t) + 2m; of one opened because the maximum cut
//! the one before, floor(t) + m, floors on the grid of m. So cuts lie on multiples of m, and a
//! first session may last up to 2m - 1. Ends of the input's events do not matter: only starts
//! count.
//!
//! State: a group, and its events, while its session is open (and the group until a gap has passed,
//! because of cuts). Events come out at once as start edges, or as intervals when their session is
//! over by then; a session's end edges come out when time reaches its end, and the state is freed.
//! Source: Trill, `SessionTimeoutWindow`.

use anabranch_batch::{Batch, END, Time, hash};
use arrow::array::ArrayRef;
use arrow::datatypes::DataType;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::aggregate::group_table::GroupTable;
use anabranch_flow::tactic::{Output, Timed};

use super::events::{EventOutput, EventQueue, Ready};
use super::rows::RowStore;
use super::ticks::{add, floor};

/// The tactic. See the module's page.
#[derive(Debug)]
pub struct Session {
    group: Vec<usize>,
    bounds: Bounds,
    queue: EventQueue,
    table: GroupTable,
    /// By the table's slot.
    sessions: Vec<Open>,
    rows: RowStore,
    /// One a slot: a time no later than the next at which something happens to it.
    timers: BinaryHeap<Reverse<(Time, u32)>>,
}

/// How sessions end.
#[derive(Clone, Copy, Debug)]
struct Bounds {
    timeout: i64,
    maximum: Option<i64>,
}

/// What is known of a group.
#[derive(Debug, Default)]
struct Open {
    /// Time of the last event; `None` before the first.
    last: Option<Time>,
    /// The session ends no later than this.
    latest_end: Time,
    /// When it ends if no further event comes.
    end: Time,
    /// Whether there is a session. If there is none, the last one is remembered until a gap has
    /// come.
    is_open: bool,
    /// Remembered events: time, and row in the store.
    events: Vec<(Time, u32)>,
    /// Events of the batch at hand: time, and row in it.
    fresh: Vec<(Time, u32)>,
    /// Hash of the group's key.
    hash: u64,
    /// Whether the group waits for a time.
    has_timer: bool,
}

impl Session {
    /// Sessions by the columns `group`, of types `group_types`, with gaps less than `timeout`; and
    /// at most `maximum` long.
    ///
    /// # Panics
    /// If the timeout or the maximum is not positive.
    pub fn new(group: Vec<usize>, group_types: &[DataType], timeout: i64, maximum: Option<i64>) -> Session {
        assert!(timeout > 0 && maximum.is_none_or(|maximum| maximum > 0), "timeout and maximum are positive");
        Session {
            group,
            bounds: Bounds { timeout, maximum },
            queue: EventQueue::default(),
            table: GroupTable::new(group_types),
            sessions: Vec::new(),
            rows: RowStore::default(),
            timers: BinaryHeap::new(),
        }
    }

    /// Enters the events into their sessions; what ends meanwhile is put out.
    fn enter(&mut self, ready: &Ready, upto: Time, emit: &mut EventOutput, released: &mut Vec<u32>) {
        let key: Vec<ArrayRef> = self.group.iter().map(|&column| ready.batch.column(column).clone()).collect();
        let hashes = hash::hash_columns(&key, ready.len());
        let touched = self.table.touch(&key, &hashes);
        if self.sessions.len() < self.table.n_slots() {
            self.sessions.resize_with(self.table.n_slots(), Open::default);
        }
        for (&slot, &row) in touched.slot.iter().zip(&touched.first_row) {
            self.sessions[slot as usize].hash = hashes[row as usize];
        }
        for (row, &time) in ready.times.iter().enumerate() {
            let session = &mut self.sessions[touched.slot[touched.of_row[row] as usize] as usize];
            if session.is_open && time >= session.end {
                session.put_out(emit, released);
            }
            session.extend(time, self.bounds);
            session.fresh.push((time, row as u32));
        }
        for &slot in &touched.slot {
            let session = &mut self.sessions[slot as usize];
            if session.end <= upto {
                session.put_out(emit, released);
            }
            if !std::mem::replace(&mut session.has_timer, true) {
                self.timers.push(Reverse((session.next_time(self.bounds), slot)));
            }
        }
        self.remember_fresh(ready, &touched.slot, emit);
    }

    /// Events whose session is still open come out as start edges, and are remembered.
    fn remember_fresh(&mut self, ready: &Ready, slots: &[u32], emit: &mut EventOutput) {
        let fresh = slots.iter().flat_map(|&slot| &self.sessions[slot as usize].fresh);
        let rows: Vec<u32> = fresh.map(|&(_, row)| row).collect();
        let mut ids = self.rows.add(ready.batch.columns(), &rows).into_iter();
        for &slot in slots {
            let session = &mut self.sessions[slot as usize];
            for (time, row) in std::mem::take(&mut session.fresh) {
                emit.fresh(row, time, END);
                session.events.push((time, ids.next().expect("one number a row")));
            }
        }
    }

    /// Puts out sessions that are over when time reaches `upto`, and forgets groups of which
    /// nothing matters any more.
    fn wake(&mut self, upto: Time, emit: &mut EventOutput, released: &mut Vec<u32>) {
        while let Some(Reverse((_, slot))) = self.timers.peek().copied().filter(|Reverse((time, _))| *time <= upto) {
            self.timers.pop();
            let session = &mut self.sessions[slot as usize];
            if session.is_open && session.end <= upto {
                session.put_out(emit, released);
            }
            let next = session.next_time(self.bounds);
            if session.is_open || next > upto {
                self.timers.push(Reverse((next, slot)));
                continue;
            }
            let session = std::mem::take(session);
            self.table.release(slot, session.hash);
        }
    }
}

impl Open {
    /// Takes an event at `time`, opening a session if there is none.
    fn extend(&mut self, time: Time, bounds: Bounds) {
        if !self.is_open {
            let is_cut = self.last.is_some_and(|last| last.saturating_add(bounds.timeout) > time);
            self.latest_end = bounds.latest_end(time, is_cut);
            self.is_open = true;
        }
        self.last = Some(time);
        self.end = time.saturating_add(bounds.timeout).min(self.latest_end);
    }

    /// When something happens if no further event comes: the session ends, or what it was is of no
    /// more interest.
    fn next_time(&self, bounds: Bounds) -> Time {
        let last = self.last.expect("a group has had an event");
        if self.is_open { self.end } else { last.saturating_add(bounds.timeout) }
    }

    /// Gives every event its end. The session is over.
    fn put_out(&mut self, emit: &mut EventOutput, released: &mut Vec<u32>) {
        for (time, id) in self.events.drain(..) {
            if self.end < END {
                emit.stored(id, self.end, time);
            }
            released.push(id);
        }
        for (time, row) in self.fresh.drain(..) {
            emit.fresh(row, time, self.end);
        }
        self.is_open = false;
    }
}

impl Bounds {
    /// The latest end of a session that starts at `time`, after a cut or after a gap.
    fn latest_end(self, time: Time, after_cut: bool) -> Time {
        let Some(maximum) = self.maximum else { return END };
        let floor = floor(time, maximum, 0);
        let first = add(floor, maximum);
        if after_cut || floor == time { first } else { add(first, maximum) }
    }
}

impl Timed for Session {
    fn push(&mut self, _input: usize, batch: Batch) {
        self.queue.push_starts(batch);
    }

    fn advance(&mut self, upto: Time, out: &mut Output) {
        let ready = self.queue.take_before(upto);
        let (mut emit, mut released) = (EventOutput::default(), Vec::new());
        if let Some(ready) = &ready {
            self.enter(ready, upto, &mut emit, &mut released);
        }
        self.wake(upto, &mut emit, &mut released);
        let fresh = ready.as_ref().map_or(&[][..], |ready| ready.batch.columns());
        out.give_rows(emit.finish(fresh, &self.rows));
        released.into_iter().for_each(|id| self.rows.release(id));
    }

    fn pending_from(&self) -> Option<Time> {
        let timer = self.timers.peek().map(|Reverse((time, _))| *time);
        self.queue.pending_from().into_iter().chain(timer).min()
    }

    fn size_bytes(&self) -> usize {
        let events: usize = self.sessions.iter().map(|session| session.events.capacity()).sum();
        let sessions = self.sessions.capacity() * size_of::<Open>() + events * size_of::<(Time, u32)>();
        let timers = self.timers.len() * size_of::<(Time, u32)>();
        self.queue.size_bytes() + self.table.size_bytes() + self.rows.size_bytes() + sessions + timers
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::temporal::testing::*;

    fn points(times: &[Time]) -> Vec<Event> {
        times.iter().map(|&time| (time, time + 1, 1)).collect()
    }

    fn check_sessions(timeout: i64, maximum: Option<i64>, times: &[Time], ends: &[Time]) {
        let expected: Vec<Event> = times.iter().zip(ends).map(|(&time, &end)| (time, end, 1)).collect();
        check(|| Session::new(vec![], &[], timeout, maximum), &points(times), &expected);
    }

    #[test]
    fn a_gap_of_the_timeout_starts_a_session() {
        check_sessions(5, None, &[1, 6, 10], &[6, 15, 15]);
    }

    #[test]
    fn the_maximum_cuts_at_its_multiples() {
        let times = [11, 12, 21, 25, 31, 32, 41, 45, 51, 62, 71, 75];
        check_sessions(10, Some(20), &times, &[40, 40, 40, 40, 40, 40, 60, 60, 60, 85, 85, 85]);
        check_sessions(10, Some(20), &[0, 5, 11, 12, 21], &[20, 20, 20, 20, 31]);
    }

    #[test]
    fn groups_have_sessions_of_their_own() {
        let input = [(1, 2, 1), (2, 3, 2), (4, 9, 1), (20, END, 1), (21, 20, 1), (22, 24, 2)];
        let expected = [(1, 9, 1), (2, 7, 2), (4, 9, 1), (20, 25, 1), (22, 27, 2)];
        check(|| Session::new(vec![0], &types(), 5, None), &input, &expected);
    }

    #[test]
    fn groups_without_a_session_are_forgotten() {
        let mut session = Session::new(vec![0], &types(), 5, Some(7));
        for key in 0..10_000 {
            session.push(0, events(&[(key * 3, END, key)]));
            session.advance(key * 3 + 1, &mut Output::default());
        }
        assert!(session.table.len() <= 3 && session.timers.len() <= 3, "{} groups", session.table.len());
        session.advance(END, &mut Output::default());
        assert_eq!((session.table.len(), session.pending_from()), (0, None));
    }
}
