//! As-of join of events: each left event with the right ones that begin nearest to its start.
//!
//! ```text
//!     left       a [5, 9)              right   x [3, 4)   y [8, 9)
//!     backward   a, x [5, 6)           forward   a, y [8, 9)           nearest   a, x [7, 8)
//! ```
//!
//! Law: a left event that begins at `s` is paired with the right events of its key that begin at
//! the time, on the asked side of `s` and no further away than the tolerance, that is nearest to
//! `s`: with each of those that begin then. *Nearest* looks on both sides; of two times as far away
//! the later one, as Polars does. When events end does not matter. NULL keys match nothing. A pair
//! is a point at the first time at which no right event can come that changes it: `s` when the
//! match lies behind, the match's start when it lies ahead, and `s + d` when *nearest* finds it `d`
//! ticks behind. An outer join puts a left event without a match out alone at the last tick at
//! which one could begin: `s` (*backward*, and NULL keys), else `s + tolerance`, or the last tick
//! of time without one.
//!
//! Method: both sides are walked in order of time, as a merge join walks sorted inputs. So one
//! value is kept for each key instead of an order: the right events that began last (and those
//! before them, when events that begin together do not match). Left events are answered and
//! forgotten (*backward*), or wait, and give up in the order in which they came, a queue; *nearest*
//! gives up in another order, by a heap.
//!
//! State: of the right, the last events of each key (within the tolerance); of the left, the events
//! that wait. Cost: a hash probe an event, a step a pair. Source: the as-of joins of kdb+, pandas
//! and Polars; the times at which results are known are those of a temporal algebra (Trill 2.2, 3).

use anabranch_batch::{Batch, Columns, Diffs, END, Time, Times, Until};
use arrow::array::{ArrayRef, new_null_array};
use arrow::datatypes::DataType;

use super::agenda::Agenda;
use super::arrivals::Arrivals;
use super::events::one_each;
use super::lists::{ListEntry, Lists, NONE, Place};
use super::slots::Slots;
use super::ticks::{add, starts_only};
use super::walk::{EventWalk, Row};
use anabranch_flow::tactic::{Output, Timed};
use anabranch_spec::asof::Strategy;

/// Keys below which nothing is swept.
const SWEEP_MIN: usize = 1 << 12;
/// The last time at which an event may begin.
const LAST: Time = END - 1;

/// What to match on. Columns are positions in each side.
#[derive(Clone, Debug)]
pub struct AsofSpec {
    /// Columns of the left side,
    pub left_key: Vec<usize>,
    /// which are equal to these of the right side, pairwise of the same types.
    pub right_key: Vec<usize>,
    /// Where the match lies.
    pub strategy: Strategy,
    /// Whether events that begin together match.
    pub exact: bool,
    /// How many ticks apart the starts of a match may be; not negative.
    pub tolerance: Option<i64>,
    /// Whether left events without a match are kept, with NULLs on the right.
    pub outer: bool,
    /// Types of the key columns.
    pub key_types: Vec<DataType>,
    /// Types of the right columns.
    pub right_types: Vec<DataType>,
}

/// The tactic. See the module's page.
#[derive(Debug)]
pub struct TemporalAsof {
    spec: AsofSpec,
    arrivals: [Arrivals; 2],
    slots: Slots,
    /// Left events that wait; the mark is the ticket under which they give up.
    waiting: Lists,
    /// When those that wait give up: entry and ticket. Some have met their match since.
    given_up: Agenda<(u32, i64)>,
    /// Tickets given out.
    n_tickets: i64,
    /// Of each key, the right events that began last, the latest first; an entry ends when nothing
    /// can match it any more.
    last: Lists,
    /// Sweep when there are more keys than this.
    sweep_at: usize,
}

/// Output under construction.
#[derive(Debug, Default)]
struct AsofOutput {
    /// Left and right rows of pairs,
    pairs: [Vec<Place>; 2],
    pair_times: Vec<Time>,
    alone: Vec<Place>,
    alone_times: Vec<Time>,
    /// Keys whose right events begin at the time at hand.
    begun: Vec<u32>,
}

/// A left event that is to be put out.
#[derive(Clone, Copy, Debug)]
struct Answer {
    slot: u32,
    place: Place,
    /// When it is put out.
    time: Time,
    /// When its match begins.
    behind: Option<Time>,
}

impl TemporalAsof {
    /// The join of nothing with nothing.
    ///
    /// # Panics
    /// If keys differ in number, or the tolerance is negative.
    pub fn new(spec: AsofSpec) -> TemporalAsof {
        assert_eq!(spec.left_key.len(), spec.right_key.len(), "keys have as many columns on both sides");
        assert!(spec.tolerance.is_none_or(|ticks| ticks >= 0), "a tolerance is not negative");
        TemporalAsof {
            arrivals: Default::default(),
            slots: Slots::new(&spec.key_types),
            waiting: Lists::default(),
            given_up: Agenda::default(),
            n_tickets: 0,
            last: Lists::default(),
            sweep_at: SWEEP_MIN,
            spec,
        }
    }

    /// Both sides' rows, time by time: what gives up before, what begins on the right, what that
    /// answers, what begins on the left.
    fn merge(&mut self, mut left: EventWalk, mut right: EventWalk, upto: Time, emit: &mut AsofOutput) {
        while let Some(time) = left.next_time().into_iter().chain(right.next_time()).min() {
            self.give_up(time.saturating_sub(1), emit);
            while right.next_time() == Some(time)
                && let Some(row) = right.take()
            {
                self.take_right(row, emit);
            }
            self.answer_waiting(time, emit);
            while left.next_time() == Some(time)
                && let Some(row) = left.take()
            {
                self.take_left(row, emit);
            }
        }
        self.give_up(upto.saturating_sub(1), emit);
        if upto == END {
            self.give_up_all(emit);
        }
        left.release(&mut self.waiting);
        right.release(&mut self.last);
    }

    /// A right event becomes the last of its key.
    #[inline]
    fn take_right(&mut self, Row { time, slot, place, has_null }: Row, emit: &mut AsofOutput) {
        if has_null {
            return;
        }
        let head = self.last.first(slot);
        if head == NONE || self.last.get(head).start < time {
            self.forget_but(head);
            emit.begun.push(slot);
        }
        self.last.insert(slot, place, time, self.useless_from(time), 0);
    }

    /// From when on nothing can match a right event that began at `time`.
    #[inline]
    fn useless_from(&self, time: Time) -> Time {
        let reach = match self.spec.strategy {
            Strategy::Backward => self.spec.tolerance,
            Strategy::Forward => Some(0),
            // (What is as far away as the tolerance waits as long again.)
            Strategy::Nearest => self.spec.tolerance.map(|ticks| ticks.saturating_mul(2)),
        };
        reach.map_or(END, |ticks| add(time, ticks.saturating_add(1)))
    }

    /// Forgets the right events of a key, of which this is the first entry, but for those that
    /// began last when those that begin now do not match what begins now.
    fn forget_but(&mut self, head: u32) {
        let latest = if self.spec.exact || head == NONE { END } else { self.last.get(head).start };
        let mut id = head;
        while id != NONE {
            let next = self.last.next(id);
            if self.last.get(id).start != latest {
                self.last.remove(id);
            }
            id = next;
        }
    }

    /// Those that wait for the right events that begin now.
    fn answer_waiting(&mut self, time: Time, emit: &mut AsofOutput) {
        while let Some(slot) = emit.begun.pop() {
            let mut id = self.waiting.first(slot);
            while id != NONE {
                let next = self.waiting.next(id);
                let place = self.waiting.get(id).place;
                self.put_out(Answer { slot, place, time, behind: Some(time) }, emit);
                self.waiting.remove(id);
                id = next;
            }
        }
    }

    /// A left event is answered, or waits.
    #[inline]
    fn take_left(&mut self, Row { time, slot, place, has_null }: Row, emit: &mut AsofOutput) {
        if has_null {
            return self.put_out(Answer { slot, place, time, behind: None }, emit);
        }
        let behind = self.behind(slot, time);
        if self.spec.strategy == Strategy::Backward || behind == Some(time) {
            return self.put_out(Answer { slot, place, time, behind }, emit);
        }
        let patience = behind.map(|start| time.saturating_sub(start)).or(self.spec.tolerance);
        let until = patience.map_or(LAST, |ticks| time.saturating_add(ticks).min(LAST));
        self.n_tickets += 1;
        let id = self.waiting.insert(slot, place, time, END, self.n_tickets);
        if until < LAST {
            self.given_up.push(until, (id, self.n_tickets));
        }
    }

    /// Left events that no right event can come for any more.
    #[inline]
    fn give_up(&mut self, upto: Time, emit: &mut AsofOutput) {
        while let Some((time, (id, ticket))) = self.given_up.pop(upto) {
            let ListEntry { slot, place, start, mark, .. } = *self.waiting.get(id);
            if slot != NONE && mark == ticket {
                let behind = self.behind(slot, start);
                self.put_out(Answer { slot, place, time, behind }, emit);
                self.waiting.remove(id);
            }
        }
    }

    /// Time is over: so is waiting for ever.
    fn give_up_all(&mut self, emit: &mut AsofOutput) {
        for slot in 0..self.slots.n_slots() as u32 {
            while self.waiting.first(slot) != NONE {
                let id = self.waiting.first(slot);
                let ListEntry { place, start, .. } = *self.waiting.get(id);
                self.put_out(Answer { slot, place, time: LAST, behind: self.behind(slot, start) }, emit);
                self.waiting.remove(id);
            }
        }
    }

    /// When the events begin that match a left event's start from behind, or with it.
    #[inline]
    fn behind(&self, slot: u32, start: Time) -> Option<Time> {
        let mut id = self.last.first(slot);
        while id != NONE {
            let other = self.last.get(id).start;
            if other < start || (self.spec.exact && other == start) {
                let reach = if self.spec.strategy == Strategy::Forward { Some(0) } else { self.spec.tolerance };
                let is_near = reach.is_none_or(|ticks| start.saturating_sub(other) <= ticks);
                return is_near.then_some(other);
            }
            id = self.last.next(id);
        }
        None
    }

    /// A left event with the right ones that begin at a time, or alone.
    #[inline]
    fn put_out(&self, Answer { slot, place, time, behind }: Answer, emit: &mut AsofOutput) {
        let Some(behind) = behind else {
            if self.spec.outer {
                emit.alone.push(place);
                emit.alone_times.push(time);
            }
            return;
        };
        let mut id = self.last.first(slot);
        while id != NONE {
            let other = self.last.get(id);
            if other.start == behind {
                emit.pairs[0].push(place);
                emit.pairs[1].push(other.place);
                emit.pair_times.push(time);
            }
            id = self.last.next(id);
        }
    }

    /// Forgets what nothing can match any more, and keys and batches that nothing needs.
    fn sweep(&mut self, upto: Time) {
        if self.slots.len() > self.sweep_at || self.last.len() > self.sweep_at {
            self.last.remove_ended(upto);
            let (waiting, last) = (&self.waiting, &self.last);
            self.slots.release_where(|slot| waiting.first(slot) == NONE && last.first(slot) == NONE);
            self.sweep_at = 2 * self.slots.len().max(self.last.len()).max(SWEEP_MIN);
        }
        self.waiting.settle();
        self.last.settle();
    }
}

impl AsofOutput {
    fn finish(self, left: &Lists, right: &Lists, right_types: &[DataType], out: &mut Output) {
        if !self.pair_times.is_empty() {
            let rows = [left.gather(&self.pairs[0]), right.gather(&self.pairs[1])];
            out.give_rows(points(rows.concat(), self.pair_times));
        }
        if !self.alone_times.is_empty() {
            let nulls = right_types.iter().map(|data_type| new_null_array(data_type, self.alone.len()));
            let rows = left.gather(&self.alone).iter().cloned().chain(nulls).collect();
            out.give_rows(points(rows, self.alone_times));
        }
    }
}

fn points(columns: Vec<ArrayRef>, times: Vec<Time>) -> Batch {
    let len = times.len();
    let batch = Batch::with_len(Columns::from(columns), len, Times::Column(times.into()), Diffs::Constant(1));
    batch.with_until(Until::Duration(1))
}

impl Timed for TemporalAsof {
    fn push(&mut self, input: usize, batch: Batch) {
        // (When events end does not matter: without edges, no rows are hashed.)
        self.arrivals[input].push(one_each(starts_only(batch)).with_until(Until::Duration(1)));
    }

    fn advance(&mut self, upto: Time, out: &mut Output) {
        let [left, right] = &mut self.arrivals;
        let (left, right) = (left.take_before(upto), right.take_before(upto));
        let left = EventWalk::new(&left, &self.spec.left_key, &mut self.slots, &mut self.waiting);
        let right = EventWalk::new(&right, &self.spec.right_key, &mut self.slots, &mut self.last);
        self.waiting.resize(self.slots.n_slots());
        self.last.resize(self.slots.n_slots());
        let mut emit = AsofOutput::default();
        self.merge(left, right, upto, &mut emit);
        emit.finish(&self.waiting, &self.last, &self.spec.right_types, out);
        self.sweep(upto);
    }

    fn pending_from(&self) -> Option<Time> {
        let gives_up = Some(self.given_up.next_time()).filter(|time| *time < END);
        [self.arrivals[0].pending_from(), self.arrivals[1].pending_from(), gives_up].into_iter().flatten().min()
    }

    fn size_bytes(&self) -> usize {
        let arrivals: usize = self.arrivals.iter().map(Arrivals::size_bytes).sum();
        let sides = self.waiting.size_bytes() + self.last.size_bytes() + self.given_up.size_bytes();
        arrivals + sides + self.slots.size_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::temporal::Hold;
    use crate::temporal::testing::*;

    fn asof(strategy: Strategy, tolerance: Option<i64>, outer: bool) -> impl Fn() -> TemporalAsof {
        move || {
            let (left_key, right_key) = (vec![], vec![]);
            let right_types = types().to_vec();
            TemporalAsof::new(AsofSpec {
                left_key,
                right_key,
                strategy,
                exact: true,
                tolerance,
                outer,
                key_types: vec![],
                right_types,
            })
        }
    }

    #[test]
    fn pairs_come_when_they_are_known() {
        let left = [(5, 9, 1), (20, END, 2), (31, 32, 3)];
        let right = [(3, 4, 7), (8, 9, 8), (20, 30, 9), (42, 43, 10)];
        let check = |make, expected: &[Event]| check_inputs(Hold::Same, make, &[&left, &right], expected);
        check(asof(Strategy::Backward, None, false), &[(5, 6, 1), (20, 21, 2), (31, 32, 3)]);
        check(asof(Strategy::Forward, None, false), &[(8, 9, 1), (20, 21, 2), (42, 43, 3)]);
        // 31 is as far from 20 as from 42: the later one, at the same time at which the earlier
        // would have been known.
        check(asof(Strategy::Nearest, None, false), &[(7, 8, 1), (20, 21, 2), (42, 43, 3)]);
        check(asof(Strategy::Forward, Some(2), true), &[(7, 8, 1), (20, 21, 2), (33, 34, 3)]);
        check(asof(Strategy::Forward, Some(2), false), &[(20, 21, 2)]);
    }

    #[test]
    fn rows_that_wait_for_ever_come_at_the_end_of_time() {
        let left = [(5, 9, 1)];
        check_inputs(Hold::Same, asof(Strategy::Forward, None, true), &[&left, &[]], &[(LAST, END, 1)]);
        check_inputs(Hold::Same, asof(Strategy::Nearest, Some(i64::MAX), true), &[&left, &[]], &[(LAST, END, 1)]);
    }

    #[test]
    fn state_does_not_grow_with_time() {
        for strategy in [Strategy::Backward, Strategy::Forward, Strategy::Nearest] {
            for tolerance in [Some(5), None] {
                let key = vec![0];
                let mut asof = TemporalAsof::new(AsofSpec {
                    left_key: key.clone(),
                    right_key: key,
                    strategy,
                    exact: false,
                    tolerance,
                    outer: true,
                    key_types: types().to_vec(),
                    right_types: types().to_vec(),
                });
                let mut greatest = [0; 2];
                for time in 0..40_000i64 {
                    // With a tolerance keys need not come back.
                    let key = if tolerance.is_some() { time } else { time % 100 };
                    asof.push(0, events(&[(time, time + 1, key)]));
                    asof.push(1, events(&[(time, END, if time % 3 == 0 { key + 1 } else { key })]));
                    asof.advance(time + 1, &mut Output::default());
                    let half = &mut greatest[usize::from(time >= 20_000)];
                    *half = (*half).max(asof.size_bytes());
                }
                assert!(greatest[1] <= 2 * greatest[0], "{strategy:?} {tolerance:?}: {greatest:?} bytes");
            }
        }
    }
}
