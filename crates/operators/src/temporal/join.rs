//! The temporal join: pairs of rows with equal keys, for as long as both are in force.
//!
//! ```text
//!     left     [100, 110) A1    [101, 111) B1        right    [105, 115) A2    [106, 116) B2
//!     out      [105, 110) A1 A2    [106, 111) B1 B2
//! ```
//!
//! Law: a left event [l, m) and a right event [r, s) with equal keys give the row of both in [max(l, r), min(m, s)), unless that is empty:
//! lifetimes that touch give nothing. Multiplicities multiply. NULL keys match nothing. When both ends are known as the pair begins the pair is an
//! interval; otherwise a start edge, and an end edge at the first end.
//!
//! State: the events in force of both sides, by key; pairs whose end is not known. An event is forgotten some time after it has ended: each
//! pass over all of them is paid for by as many that came in. Cost: a hash probe an event, a step a pair. Source: Trill 2.2 of its semantics (join).

use anabranch_batch::{Batch, Columns, Diffs, END, Time, Times, Until};
use arrow::array::ArrayRef;
use arrow::datatypes::DataType;
use std::collections::HashMap;

use super::arrivals::Arrivals;
use super::events::one_each;
use super::in_force::{Agenda, InForce, NONE, Place};
use super::side::{Row, Side};
use super::slots::Slots;
use crate::tactic::{Output, Timed};

/// Events in force below which nothing is swept.
const SWEEP_MIN: usize = 1 << 12;

/// The tactic. See the module's page.
#[derive(Debug)]
pub struct Join {
    keys: [Vec<usize>; 2],
    queues: [Arrivals; 2],
    slots: Slots,
    sides: [InForce; 2],
    pairs: OpenPairs,
    /// Sweep when more than this are in force.
    sweep_at: usize,
}

/// Pairs of which one event has no known end.
#[derive(Debug, Default)]
struct OpenPairs {
    pairs: Vec<Pair>,
    free: Vec<u32>,
    /// The pairs of each start edge, by side and entry.
    of_entry: [HashMap<u32, Vec<u32>>; 2],
    /// Known ends.
    ends: Agenda<u32>,
}

/// A pair that is in force.
#[derive(Clone, Copy, Debug)]
struct Pair {
    start: Time,
    places: [Place; 2],
    /// Whether it has ended; then its number is free once no list names it.
    is_over: bool,
    /// Lists and agendas that name it.
    names: u8,
}

/// Output under construction.
#[derive(Debug, Default)]
struct Emit {
    places: [Vec<Place>; 2],
    times: Vec<Time>,
    untils: Vec<Time>,
}

impl Emit {
    #[inline]
    fn push(&mut self, places: [Place; 2], time: Time, until: Time) {
        self.places[0].push(places[0]);
        self.places[1].push(places[1]);
        self.times.push(time);
        self.untils.push(until);
    }
}

impl Join {
    /// A join of left events whose columns `left_key` equal the right's `right_key`; both are of `key_types`. No columns: everything matches.
    pub fn new(left_key: Vec<usize>, right_key: Vec<usize>, key_types: &[DataType]) -> Join {
        Join {
            keys: [left_key, right_key],
            queues: Default::default(),
            slots: Slots::new(key_types),
            sides: Default::default(),
            pairs: OpenPairs::default(),
            sweep_at: SWEEP_MIN,
        }
    }

    fn side(&mut self, side: usize, upto: Time) -> Side {
        let batches = self.queues[side].take_before(upto);
        Side::new(batches, &self.keys[side], &mut self.slots, &mut self.sides[side])
    }

    fn take(&mut self, side: usize, from: &Side, emit: &mut Emit) {
        let Row { row, time, until } = from.row();
        if time == until || from.has_null_key(row) {
            return;
        }
        if until < time {
            if let Some(id) = from.close(&mut self.sides[side], row, until) {
                self.end_pairs(side, id, time, emit);
                self.sides[side].remove(id);
            }
            return;
        }
        let id = from.insert(&mut self.sides[side], row, (time, until), 0);
        self.match_with_other(side, id, (from.slot(row), from.held(row)), (time, until), emit);
    }

    #[inline]
    fn match_with_other(
        &mut self,
        side: usize,
        id: u32,
        (slot, place): (u32, Place),
        (time, until): (Time, Time),
        emit: &mut Emit,
    ) {
        let mut other = self.sides[1 - side].first(slot);
        while other != NONE {
            let matched = *self.sides[1 - side].get(other);
            let next = self.sides[1 - side].next(other);
            if matched.end <= time {
                self.sides[1 - side].remove(other);
            } else {
                let mut places = [place, matched.place];
                let mut ids = [id, other];
                if side == 1 {
                    places.swap(0, 1);
                    ids.swap(0, 1);
                }
                if until < END && matched.end < END {
                    emit.push(places, time, until.min(matched.end));
                } else {
                    emit.push(places, time, END);
                    self.open_pair(places, ids, time, until.min(matched.end));
                }
            }
            other = next;
        }
    }

    fn open_pair(&mut self, places: [Place; 2], ids: [u32; 2], start: Time, end: Time) {
        let mut names = 0;
        let number = self.pairs.free.pop().unwrap_or(self.pairs.pairs.len() as u32);
        for side in 0..2 {
            self.sides[side].hold(places[side].0);
            if self.sides[side].get(ids[side]).end == END {
                self.pairs.of_entry[side].entry(ids[side]).or_default().push(number);
                names += 1;
            }
        }
        if end < END {
            self.pairs.ends.push(end, number);
            names += 1;
        }
        let pair = Pair { start, places, is_over: false, names };
        match self.pairs.pairs.get_mut(number as usize) {
            Some(free) => *free = pair,
            None => self.pairs.pairs.push(pair),
        }
    }

    /// Ends the pairs of a start edge.
    fn end_pairs(&mut self, side: usize, id: u32, time: Time, emit: &mut Emit) {
        for number in self.pairs.of_entry[side].remove(&id).unwrap_or_default() {
            self.end_pair(number, time, emit);
        }
    }

    /// One of a pair's names is gone: it ends, if it has not.
    fn end_pair(&mut self, number: u32, time: Time, emit: &mut Emit) {
        let pair = &mut self.pairs.pairs[number as usize];
        pair.names -= 1;
        let is_free = pair.names == 0;
        let was_over = std::mem::replace(&mut pair.is_over, true);
        let Pair { start, places, .. } = *pair;
        if !was_over {
            emit.push(places, time, start);
            (0..2).for_each(|side| self.sides[side].release(places[side].0));
        }
        if is_free {
            self.pairs.free.push(number);
        }
    }

    /// Ends pairs whose known end has come.
    fn end_due(&mut self, upto: Time, emit: &mut Emit) {
        while let Some((time, number)) = self.pairs.ends.pop(upto) {
            self.end_pair(number, time, emit);
        }
    }
}

impl Join {
    /// Both sides' rows in order of time, ends before starts.
    fn merge(&mut self, mut turn: [Side; 2], upto: Time, emit: &mut Emit) {
        loop {
            let next = match (turn[0].peek(), turn[1].peek()) {
                (None, None) => break,
                (Some(_), None) => 0,
                (None, Some(_)) => 1,
                (Some(left), Some(right)) => usize::from(right < left),
            };
            let from = &turn[next];
            let time = from.peek().map_or(END, |(time, _)| time);
            if self.pairs.ends.next_time() <= time {
                self.end_due(time, emit);
            }
            self.take(next, from, emit);
            turn[next].step();
        }
        self.end_due(upto.saturating_sub(1), emit);
        turn.iter().zip(&mut self.sides).for_each(|(turn, side)| turn.release(side));
    }

    /// Forgets what has ended, and keys and batches that nothing in force needs.
    fn sweep(&mut self, upto: Time) {
        let in_force = self.sides[0].len() + self.sides[1].len();
        if in_force > self.sweep_at || self.slots.len() > self.sweep_at {
            let [left, right] = &mut self.sides;
            left.remove_ended(upto);
            right.remove_ended(upto);
            left.settle();
            right.settle();
            self.slots.release_where(|slot| left.first(slot) == NONE && right.first(slot) == NONE);
            self.sweep_at = 2 * (left.len() + right.len()).max(SWEEP_MIN);
        }
        for side in 0..2 {
            if self.sides[side].is_wasteful() {
                let live = self.pairs.pairs.iter_mut().filter(|pair| !pair.is_over && pair.names > 0);
                let mut live: Vec<&mut Pair> = live.collect();
                let places: Vec<Place> = live.iter().map(|pair| pair.places[side]).collect();
                let moved = self.sides[side].compact(&places);
                live.iter_mut().zip(moved).for_each(|(pair, place)| pair.places[side] = place);
            }
        }
    }
}

impl Timed for Join {
    fn push(&mut self, input: usize, batch: Batch) {
        self.queues[input].push(one_each(batch));
    }

    fn advance(&mut self, upto: Time, out: &mut Output) {
        let turn = [self.side(0, upto), self.side(1, upto)];
        self.sides.iter_mut().for_each(|side| side.resize(self.slots.n_slots()));
        let mut emit = Emit::default();
        self.merge(turn, upto, &mut emit);
        if !emit.times.is_empty() {
            let left = self.sides[0].gather(&emit.places[0]);
            let right = self.sides[1].gather(&emit.places[1]);
            let columns: Vec<ArrayRef> = left.iter().chain(right.iter()).cloned().collect();
            let len = emit.times.len();
            let times = Times::Column(emit.times.into());
            let rows = Batch::with_len(Columns::from(columns), len, times, Diffs::Constant(1));
            out.give_rows(rows.with_until(Until::Column(emit.untils.into())));
        }
        self.sides.iter_mut().for_each(InForce::settle);
        self.sweep(upto);
    }

    fn pending_from(&self) -> Option<Time> {
        let ends = Some(self.pairs.ends.next_time()).filter(|time| *time < END);
        [self.queues[0].pending_from(), self.queues[1].pending_from(), ends].into_iter().flatten().min()
    }

    fn size_bytes(&self) -> usize {
        let queues: usize = self.queues.iter().map(Arrivals::size_bytes).sum();
        let sides: usize = self.sides.iter().map(InForce::size_bytes).sum();
        let pairs = self.pairs.pairs.capacity() * size_of::<Pair>() + self.pairs.ends.size_bytes();
        queues + sides + self.slots.size_bytes() + pairs
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::temporal::Hold;
    use crate::temporal::testing::*;

    fn join() -> Join {
        Join::new(vec![0], vec![0], &types())
    }

    fn left_only(events: &[(Time, Time, i64)]) -> Vec<(Time, Time, i64)> {
        events.to_vec()
    }

    #[test]
    fn pairs_are_in_force_while_both_are() {
        let left = [(100, 110, 1), (101, 111, 2), (5, 6, 3), (5, 6, 3), (200, END, 4)];
        let right = [(105, 115, 1), (106, 116, 2), (5, 6, 3), (6, 9, 3), (205, 230, 4)];
        let expected = [(105, 110, 1), (106, 111, 2), (5, 6, 3), (5, 6, 3), (205, 230, 4)];
        check_inputs(Hold::Same, join, &[&left, &right], &left_only(&expected));
    }

    #[test]
    fn end_edges_end_pairs() {
        let left = [(1, END, 1), (9, 1, 1), (2, END, 2)];
        let right = [(3, END, 1), (12, 3, 1), (4, 20, 1), (5, END, 2), (7, 5, 2)];
        check_inputs(Hold::Same, join, &[&left, &right], &[(3, 9, 1), (4, 9, 1), (5, 7, 2)]);
    }
}
