//! Rows of one stream while the other has none with their key: the temporal anti-join.
//!
//! ```text
//!     left     [1, 20) a         right    [3, 5) a    [5, 8) a
//!     out      [1, 3) a    [8, 20) a
//! ```
//!
//! Law: a left event is in force in the result at the times at which no right event with an equal key is in force; each maximal stretch is an event. A right
//! event from just its start on hides it; right events that touch leave no gap. NULL keys match nothing, so such left events are never hidden.
//!
//! State: the left events in force by key, and how many right events are in force by key. An event comes out as a start edge when time has passed
//! its start, and its end when time has passed that; when both happen at once, as an interval. Cost: a hash probe and two steps of an agenda an event; a
//! step for each left event that is hidden or shown. Source: Trill 2.3 of its semantics (WhereNotExists).

use anabranch_arrangement::NullKeys;
use anabranch_batch::{Batch, Diffs, END, Time, Times, Until};
use arrow::datatypes::DataType;

use super::arrivals::Arrivals;
use super::events::one_each;
use super::in_force::{Agenda, InForce, NONE, Place};
use super::side::{Row, Side};
use super::slots::Slots;
use crate::tactic::{Output, Timed};

/// Keys below which nothing is swept.
const SWEEP_MIN: usize = 1 << 12;
/// Mark of a left event that is hidden.
const HIDDEN: Time = END;

/// The tactic. See the module's page.
#[derive(Debug)]
pub struct Absent {
    left_key: Vec<usize>,
    right_key: Vec<usize>,
    nulls: NullKeys,
    left: Arrivals,
    right: Arrivals,
    slots: Slots,
    /// Left events; the mark is since when the event is shown.
    in_force: InForce,
    /// Right events in force, by slot.
    n_right: Vec<u32>,
    /// What ends, when: left entries and slots of right events.
    left_ends: Agenda<u32>,
    right_ends: Agenda<u32>,
    /// Sweep when there are more keys than this.
    sweep_at: usize,
    /// The turn's start: what is shown since then is not out yet.
    turn: Time,
}

/// Output under construction.
#[derive(Debug, Default)]
struct Emit {
    /// Left entries that were shown in this turn, perhaps more than once, perhaps gone.
    shown: Vec<u32>,
    places: Vec<Place>,
    times: Vec<Time>,
    untils: Vec<Time>,
}

impl Emit {
    #[inline]
    fn push(&mut self, place: Place, time: Time, until: Time) {
        self.places.push(place);
        self.times.push(time);
        self.untils.push(until);
    }
}

impl Absent {
    /// Left events whose columns `left_key` equal no right event's `right_key`; both are of `key_types`. No columns: everything matches.
    pub fn new(left_key: Vec<usize>, right_key: Vec<usize>, key_types: &[DataType], nulls: NullKeys) -> Absent {
        Absent {
            left_key,
            right_key,
            nulls,
            left: Arrivals::default(),
            right: Arrivals::default(),
            slots: Slots::new(key_types),
            in_force: InForce::default(),
            n_right: Vec::new(),
            left_ends: Agenda::default(),
            right_ends: Agenda::default(),
            sweep_at: SWEEP_MIN,
            turn: Time::MIN,
        }
    }

    /// Everything that was to happen at or before `time`, in order.
    #[inline]
    fn happen(&mut self, time: Time, emit: &mut Emit) {
        loop {
            let (left, right) = (self.left_ends.next_time(), self.right_ends.next_time());
            if left.min(right) > time || left.min(right) == END {
                return;
            }
            if left <= right {
                let Some((end, id)) = self.left_ends.pop(time) else { return };
                self.end_left(id, end, emit);
            } else {
                let Some((end, slot)) = self.right_ends.pop(time) else { return };
                self.end_right(slot, end, emit);
            }
        }
    }

    fn end_left(&mut self, id: u32, end: Time, emit: &mut Emit) {
        self.hide(id, end, emit);
        self.in_force.remove(id);
    }

    /// The stretch in which the event is shown ends.
    #[inline]
    fn hide(&mut self, id: u32, time: Time, emit: &mut Emit) {
        let entry = self.in_force.get(id);
        let (since, place) = (entry.mark, entry.place);
        if since != HIDDEN && since < time {
            // What began in this turn comes out whole; the start of the others is out.
            match since >= self.turn {
                true => emit.push(place, since, time),
                false => emit.push(place, time, since),
            }
        }
    }

    fn begin_right(&mut self, slot: u32, time: Time, emit: &mut Emit) {
        self.n_right[slot as usize] += 1;
        if self.n_right[slot as usize] > 1 {
            return;
        }
        let mut id = self.in_force.first(slot);
        while id != NONE {
            self.hide(id, time, emit);
            self.in_force.mark(id, HIDDEN);
            id = self.in_force.next(id);
        }
    }

    fn end_right(&mut self, slot: u32, time: Time, emit: &mut Emit) {
        let n_right = &mut self.n_right[slot as usize];
        *n_right = n_right.saturating_sub(1);
        if *n_right > 0 {
            return;
        }
        let mut id = self.in_force.first(slot);
        while id != NONE {
            self.in_force.mark(id, time);
            emit.shown.push(id);
            id = self.in_force.next(id);
        }
    }

    fn take_left(&mut self, from: &Side, emit: &mut Emit) {
        let Row { row, time, until } = from.row();
        if time == until {
            return;
        }
        if self.nulls != NullKeys::Match && from.has_null_key(row) {
            return emit.push(from.held(row), time, until);
        }
        if until < time {
            if let Some(id) = from.close(&mut self.in_force, row, until) {
                self.end_left(id, time, emit);
            }
            return;
        }
        let is_hidden = self.n_right[from.slot(row) as usize] > 0;
        let id = from.insert(&mut self.in_force, row, (time, until), if is_hidden { HIDDEN } else { time });
        if !is_hidden {
            emit.shown.push(id);
        }
        if until < END {
            self.left_ends.push(until, id);
        }
    }

    fn take_right(&mut self, from: &Side, emit: &mut Emit) {
        let Row { row, time, until } = from.row();
        if time == until || (self.nulls != NullKeys::Match && from.has_null_key(row)) {
            return;
        }
        let slot = from.slot(row);
        if until < time {
            return self.end_right(slot, time, emit);
        }
        self.begin_right(slot, time, emit);
        if until < END {
            self.right_ends.push(until, slot);
        }
    }

    /// Start edges of what is shown since this turn.
    fn put_out_starts(&mut self, emit: &mut Emit) {
        let mut shown = std::mem::take(&mut emit.shown);
        shown.sort_unstable();
        shown.dedup();
        for id in shown {
            let entry = self.in_force.get(id);
            if entry.slot != NONE && entry.mark != HIDDEN && entry.mark >= self.turn {
                emit.push(entry.place, entry.mark, END);
            }
        }
    }

    fn sweep(&mut self) {
        self.in_force.settle();
        if self.slots.len() > self.sweep_at {
            let (in_force, n_right) = (&self.in_force, &self.n_right);
            self.slots.release_where(|slot| in_force.first(slot) == NONE && n_right[slot as usize] == 0);
            self.sweep_at = (2 * self.slots.len()).max(SWEEP_MIN);
        }
        if self.in_force.is_wasteful() {
            self.in_force.compact(&[]);
        }
    }
}

impl Timed for Absent {
    fn push(&mut self, input: usize, batch: Batch) {
        match input {
            0 => self.left.push(one_each(batch)),
            _ => self.right.push(one_each(batch)),
        }
    }

    fn advance(&mut self, upto: Time, out: &mut Output) {
        let (left, right) = (self.left.take_before(upto), self.right.take_before(upto));
        let mut left = Side::new(left, &self.left_key, &mut self.slots, &mut self.in_force);
        // (Of right events nothing is kept but their number; their batch lets itself be held for a turn.)
        let mut right = Side::new(right, &self.right_key, &mut self.slots, &mut self.in_force);
        self.in_force.resize(self.slots.n_slots());
        self.n_right.resize(self.n_right.len().max(self.slots.n_slots()), 0);

        let mut emit = Emit::default();
        loop {
            // At one time: left ends, right starts and ends, left starts.
            let is_left = match (left.peek(), right.peek()) {
                (None, None) => break,
                (Some(_), None) => true,
                (None, Some(_)) => false,
                (Some((time, starts)), Some((other, _))) => (time, starts) < (other, true),
            };
            let time = if is_left { left.row().time } else { right.row().time };
            self.happen(time, &mut emit);
            if is_left {
                self.take_left(&left, &mut emit);
                left.step();
            } else {
                self.take_right(&right, &mut emit);
                right.step();
            }
        }
        self.happen(upto.saturating_sub(1), &mut emit);
        self.put_out_starts(&mut emit);
        if !emit.times.is_empty() {
            let (columns, len) = (self.in_force.gather(&emit.places), emit.times.len());
            let rows = Batch::with_len(columns, len, Times::Column(emit.times.into()), Diffs::Constant(1));
            out.give_rows(rows.with_until(Until::Column(emit.untils.into())));
        }
        left.release(&mut self.in_force);
        right.release(&mut self.in_force);
        self.turn = upto;
        self.sweep();
    }

    fn pending_from(&self) -> Option<Time> {
        let ends = Some(self.left_ends.next_time().min(self.right_ends.next_time())).filter(|time| *time < END);
        [self.left.pending_from(), self.right.pending_from(), ends].into_iter().flatten().min()
    }

    fn size_bytes(&self) -> usize {
        let queues = self.left.size_bytes() + self.right.size_bytes();
        let agendas = self.left_ends.size_bytes() + self.right_ends.size_bytes();
        queues + agendas + self.in_force.size_bytes() + self.slots.size_bytes() + self.n_right.capacity() * 4
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::temporal::Hold;
    use crate::temporal::testing::*;

    fn absent() -> Absent {
        Absent::new(vec![0], vec![0], &types(), NullKeys::Skip)
    }

    #[test]
    fn a_left_event_is_shown_while_no_right_one_is_in_force() {
        let left = [(1, 20, 1), (5, 8, 2), (9, END, 3)];
        let right = [(3, 5, 1), (5, 8, 1), (5, 6, 2), (1, 9, 3), (30, END, 3), (40, 30, 3)];
        let expected = [(1, 3, 1), (8, 20, 1), (6, 8, 2), (9, 30, 3), (40, END, 3)];
        check_inputs(Hold::Same, absent, &[&left, &right], &expected);
    }

    #[test]
    fn end_edges_end_what_is_shown() {
        let left = [(1, END, 1), (12, 1, 1), (2, END, 2), (4, 2, 2)];
        let right = [(3, END, 2), (9, 3, 2), (5, 7, 1), (6, 8, 1)];
        check_inputs(Hold::Same, absent, &[&left, &right], &[(1, 5, 1), (8, 12, 1), (2, 3, 2)]);
    }
}
