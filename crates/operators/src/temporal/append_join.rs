//! The temporal join of events that never end; of sorted inputs it is a merge join.
//!
//! ```text
//!     left     (1, a) [10, ∞)   (2, b) [20, ∞)        right    (1, x) [11, ∞)   (2, y) [15, ∞)
//!     out      (1, a, 1, x) [11, ∞)    (2, b, 2, y) [20, ∞)
//!     sorted   both sides have reached 2 at 20: the rows of 1 are forgotten
//! ```
//!
//! Law: what comes out is what [`Join`](super::join::Join) puts out over the same events. It relies
//! on a property of both streams: their events never end. So no pair ends, and none is remembered.
//! If besides a key column rises on both sides (an event that begins later has no lesser value
//! there, and none is NULL), a row whose value the other side has passed meets nothing any more and
//! is forgotten, as in the merge of two sorted inputs.
//!
//! State: with a key that rises, the rows that the other side has not passed; without, all rows.
//! Cost: a hash probe an event, a step a pair; rows are forgotten in the order in which they came,
//! from a queue. Source: Trill 4.3 (joins of start edges, and of inputs in order of the join key);
//! sort-merge join.

use std::collections::VecDeque;

use anabranch_batch::{Batch, Columns, Diffs, END, Time, Times, Until};
use arrow::datatypes::DataType;

use super::arrivals::Arrivals;
use super::events::one_each;
use super::lists::{Lists, NONE, Place};
use super::slots::Slots;
use super::ticks::starts_only;
use super::walk::{EventWalk, Row};
use crate::ordered::instants::Instants;
use anabranch_flow::tactic::{Output, Timed};

/// Keys below which nothing is swept.
const SWEEP_MIN: usize = 1 << 12;

/// The tactic. See the module's page.
#[derive(Debug)]
pub struct AppendJoin {
    keys: [Vec<usize>; 2],
    /// The place, among the keys, of the one that rises: whole numbers with a sign, dates or times.
    rising: Option<usize>,
    arrivals: [Arrivals; 2],
    slots: Slots,
    sides: [Lists; 2],
    passing: [Passing; 2],
    /// Sweep when there are more keys than this.
    sweep_at: usize,
}

/// How far a side has come, by the key that rises.
#[derive(Debug)]
struct Passing {
    /// Rows in order of start, with their values.
    rows: VecDeque<(i64, u32)>,
    /// The greatest value so far: later events have no lesser one.
    reached: i64,
}

/// Rows of a turn, with their values of the key that rises.
struct AppendTurn {
    rows: EventWalk,
    /// In the order of the rows; none without such a key.
    values: Vec<i64>,
    at: usize,
}

impl Default for Passing {
    fn default() -> Self {
        Passing { rows: VecDeque::new(), reached: i64::MIN }
    }
}

impl AppendJoin {
    /// A join of left events whose columns `left_key` equal the right's `right_key`; both are of
    /// `key_types`. No columns: everything matches. If `rising` says so, the columns at this place
    /// among the keys rise on both sides.
    pub fn new(
        left_key: Vec<usize>,
        right_key: Vec<usize>,
        key_types: &[DataType],
        rising: Option<usize>,
    ) -> AppendJoin {
        assert!(rising.is_none_or(|at| at < left_key.len()), "what rises is one of the keys");
        AppendJoin {
            keys: [left_key, right_key],
            rising,
            arrivals: Default::default(),
            slots: Slots::new(key_types),
            sides: Default::default(),
            passing: Default::default(),
            sweep_at: SWEEP_MIN,
        }
    }

    fn turn(&mut self, side: usize, upto: Time) -> AppendTurn {
        let batches = self.arrivals[side].take_before(upto);
        let mut values = Vec::new();
        if let Some(rising) = self.rising {
            let column = self.keys[side][rising];
            for batch in &batches {
                let instants = Instants::of(batch.column(column));
                values.extend((0..batch.len()).map(|row| instants.at(row)));
            }
        }
        AppendTurn {
            rows: EventWalk::new(&batches, &self.keys[side], &mut self.slots, &mut self.sides[side]),
            values,
            at: 0,
        }
    }

    /// The next row of a side meets those of the other, and stays for those to come.
    #[inline]
    fn take(&mut self, side: usize, turn: &mut AppendTurn, emit: &mut AppendOutput) {
        let Some(Row { time, slot, place, has_null }) = turn.rows.take() else { return };
        let value = turn.values.get(turn.at).copied();
        turn.at += 1;
        if has_null {
            return;
        }
        let id = self.sides[side].insert(slot, place, time, END, 0);
        if let Some(value) = value {
            self.passing[side].rows.push_back((value, id));
            self.passing[side].reached = self.passing[side].reached.max(value);
        }
        let others = &self.sides[1 - side];
        let mut other = others.first(slot);
        while other != NONE {
            emit.places[side].push(place);
            emit.places[1 - side].push(others.get(other).place);
            emit.times.push(time);
            other = others.next(other);
        }
    }

    /// Forgets the rows that the other side has passed.
    fn forget_passed(&mut self) {
        for side in 0..2 {
            let reached = self.passing[1 - side].reached;
            let rows = &mut self.passing[side].rows;
            while let Some((_, id)) = rows.pop_front_if(|(value, _)| *value < reached) {
                self.sides[side].remove(id);
            }
        }
    }

    fn sweep(&mut self) {
        if self.slots.len() > self.sweep_at {
            let [left, right] = &self.sides;
            self.slots.release_where(|slot| left.first(slot) == NONE && right.first(slot) == NONE);
            self.sweep_at = (2 * self.slots.len()).max(SWEEP_MIN);
        }
        self.sides.iter_mut().for_each(Lists::settle);
    }
}

/// Output under construction.
#[derive(Debug, Default)]
struct AppendOutput {
    places: [Vec<Place>; 2],
    times: Vec<Time>,
}

impl Timed for AppendJoin {
    fn push(&mut self, input: usize, batch: Batch) {
        // (Without edges, no rows are hashed.)
        self.arrivals[input].push(one_each(starts_only(batch)).with_until(Until::Duration(1)));
    }

    fn advance(&mut self, upto: Time, out: &mut Output) {
        let mut turns = [self.turn(0, upto), self.turn(1, upto)];
        self.sides.iter_mut().for_each(|side| side.resize(self.slots.n_slots()));
        let mut emit = AppendOutput::default();
        loop {
            let next = match (turns[0].rows.next_time(), turns[1].rows.next_time()) {
                (None, None) => break,
                (Some(_), None) => 0,
                (None, Some(_)) => 1,
                (Some(left), Some(right)) => usize::from(right < left),
            };
            self.take(next, &mut turns[next], &mut emit);
        }
        if !emit.times.is_empty() {
            let rows = [0, 1].map(|side| self.sides[side].gather(&emit.places[side])).concat();
            let len = emit.times.len();
            let times = Times::Column(emit.times.into());
            out.give_rows(Batch::with_len(Columns::from(rows), len, times, Diffs::Constant(1)));
        }
        turns.iter().zip(&mut self.sides).for_each(|(turn, side)| turn.rows.release(side));
        self.forget_passed();
        self.sweep();
    }

    fn pending_from(&self) -> Option<Time> {
        self.arrivals.iter().filter_map(Arrivals::pending_from).min()
    }

    fn size_bytes(&self) -> usize {
        let arrivals: usize = self.arrivals.iter().map(Arrivals::size_bytes).sum();
        let sides: usize = self.sides.iter().map(Lists::size_bytes).sum();
        let passing: usize = self.passing.iter().map(|side| side.rows.capacity() * size_of::<(i64, u32)>()).sum();
        arrivals + sides + passing + self.slots.size_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::temporal::Hold;
    use crate::temporal::testing::*;

    /// Values that rise with time.
    fn rising(seed: i64) -> Vec<Event> {
        (0..40).map(|at| (at * 3 + (seed * at) % 3, END, (at * (1 + seed % 2)) / 2)).collect()
    }

    #[test]
    fn pairs_are_those_of_the_join() {
        for seed in 0..6 {
            let (left, right) = (rising(seed), rising(seed + 1));
            let mut expected = Vec::new();
            for l in &left {
                expected.extend(right.iter().filter(|r| r.2 == l.2).map(|r| (l.0.max(r.0), END, l.2)));
            }
            for by in [None, Some(0)] {
                let join = || AppendJoin::new(vec![0], vec![0], &types(), by);
                let stops: [&[Time]; 3] = [&[END], &[7, 30, 31, 90, END], &[50, END]];
                for stops in stops {
                    let mut out = run(join(), Hold::Same, &[&left, &right], stops, false);
                    out.sort_unstable();
                    expected.sort_unstable();
                    assert_eq!(out, expected, "seed {seed} rising {by:?}");
                }
            }
        }
    }

    #[test]
    fn sorted_inputs_need_no_memory() {
        let mut join = AppendJoin::new(vec![0], vec![0], &types(), Some(0));
        for time in 0..60_000i64 {
            join.push(0, events(&[(time, END, time / 2)]));
            join.push(1, events(&[(time, END, time.saturating_sub(7).max(0) / 2)]));
            join.advance(time + 1, &mut Output::default());
            assert!(
                join.sides[0].len() + join.sides[1].len() < 20,
                "at {time} more is kept than lies between the sides"
            );
        }
        assert!(join.size_bytes() < 1 << 21, "{} bytes", join.size_bytes());
    }
}
