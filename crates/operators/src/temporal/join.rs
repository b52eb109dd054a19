//! The temporal join: pairs of rows with equal keys, for as long as both are in force.
//!
//! ```text
//!     left     [100, 110) A1    [101, 111) B1        right    [105, 115) A2    [106, 116) B2
//!     out      [105, 110) A1 A2    [106, 111) B1 B2
//! ```
//!
//! Law: a left event [l, m) and a right event [r, s) with equal keys give the row of both in
//! [max(l, r), min(m, s)), unless that is empty: lifetimes that touch give nothing. Multiplicities
//! multiply. NULL keys match nothing. When both ends are known as the pair begins the pair is an
//! interval; otherwise a start edge, and an end edge at the first end.
//!
//! State: the events in force of both sides, by key; pairs whose end is not known. An event is
//! forgotten some time after it has ended: each pass over all of them is paid for by as many that
//! came in. Source: Trill 2.2 of its semantics (join).
//!
//! Rows of a side that come before the next of the other are a run. A run is put in force, and
//! looks for what is in force on the other side, in loops over columns: slots, times, ends. Where
//! events end in the order in which they came, the loop that looks whether there is any pair has no
//! branch that depends on the data, and only rows that have one go on to a second loop. Payload
//! columns are gathered once a turn, by row numbers. A turn ends after some [`TURN_ROWS`] pairs, or
//! after all pairs of one row. Cost: the slot of the key (its hash and a probe of the table), some
//! thirty instructions a row, and some thirty a pair beside gathering it.

use std::ops::Range;

use anabranch_batch::{Batch, Columns, Diffs, END, Time, Times, Until};
use arrow::array::ArrayRef;
use arrow::datatypes::DataType;

use super::arrivals::Arrivals;
use super::events::one_each;
use super::in_force::{InForce, NONE};
use super::open_pairs::{Ended, OpenPairs};
use super::slots::Slots;
use super::turn::{Turn, TurnStep, next_step, split_null_keys};
use anabranch_flow::paced::TURN_ROWS;
use anabranch_flow::tactic::{Output, Timed};

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
    /// Rows of a run that have a pair, and the newest event of it; scratch.
    found: Vec<(u32, u32)>,
    /// The pairs of a run: row and event; scratch.
    matched: Vec<(u32, u32)>,
    /// Rows that are taken on, if a turn ended before all were.
    merging: Option<Merging>,
    /// Sweep when there are more rows,
    rows_max: usize,
    /// or more keys.
    keys_max: usize,
}

/// Rows of both sides that are taken on, in order of time.
#[derive(Debug)]
struct Merging {
    turns: [Turn; 2],
    /// Ids of the turns' first rows.
    firsts: [u32; 2],
    /// The rest of a run of starts, and whose it is.
    run: Option<(usize, Range<usize>)>,
}

/// Output under construction: ids of both sides.
#[derive(Debug, Default)]
struct JoinOutput {
    ids: [Vec<u32>; 2],
    times: Vec<Time>,
    untils: Vec<Time>,
}

impl JoinOutput {
    #[inline]
    fn push(&mut self, ids: [u32; 2], time: Time, until: Time) {
        self.ids[0].push(ids[0]);
        self.ids[1].push(ids[1]);
        self.times.push(time);
        self.untils.push(until);
    }

    fn push_end(&mut self, Ended { ids, start, end }: Ended) {
        self.push(ids, end, start);
    }
}

impl Join {
    /// A join of left events whose columns `left_key` equal the right's `right_key`; both are of
    /// `key_types`. No columns: everything matches.
    pub fn new(left_key: Vec<usize>, right_key: Vec<usize>, key_types: &[DataType]) -> Join {
        Join {
            keys: [left_key, right_key],
            queues: Default::default(),
            slots: Slots::new(key_types),
            sides: Default::default(),
            pairs: OpenPairs::default(),
            found: Vec::new(),
            matched: Vec::new(),
            merging: None,
            rows_max: SWEEP_MIN,
            keys_max: SWEEP_MIN,
        }
    }

    /// A side's rows before `upto`, as rows of the turn and with ids from the one returned on.
    fn turn(&mut self, side: usize, upto: Time) -> (Turn, u32) {
        let (batches, in_force) = (self.queues[side].take_before(upto), &mut self.sides[side]);
        let first = in_force.next_id();
        let into = (&mut in_force.ends, &mut in_force.slots);
        let turn = Turn::new(batches, &self.keys[side], &mut self.slots, into);
        (turn, first)
    }

    /// Takes on the rows before `upto`.
    fn begin(&mut self, upto: Time) -> Merging {
        let ((left, first_left), (right, first_right)) = (self.turn(0, upto), self.turn(1, upto));
        let n_slots = self.slots.n_slots();
        self.sides[0].hold(&left.batches, first_left, n_slots);
        self.sides[1].hold(&right.batches, first_right, n_slots);
        Merging { turns: [left, right], firsts: [first_left, first_right], run: None }
    }

    /// Both sides' rows in order of time, ends before starts, until a turn is over. Returns whether
    /// all were taken on.
    fn merge(&mut self, merging: &mut Merging, upto: Time, emit: &mut JoinOutput) -> bool {
        loop {
            let step = match merging.run.take() {
                Some((side, rows)) => Some((side, TurnStep::Starts(rows))),
                None => next_step(&mut merging.turns),
            };
            let Some((side, step)) = step else { break };
            let (turn, first) = (&merging.turns[side], merging.firsts[side]);
            match step {
                TurnStep::Starts(rows) => {
                    // (Each row has at most as many pairs as rows are in force on the other side.)
                    let left = TURN_ROWS.saturating_sub(emit.times.len());
                    let n_rows = (left / self.sides[1 - side].len().max(1)).max(1);
                    let cut = rows.end.min(rows.start + n_rows);
                    if cut < rows.end {
                        merging.run = Some((side, cut..rows.end));
                    }
                    self.end_due(turn.times[rows.start], emit);
                    self.start(side, turn, rows.start..cut, first, emit);
                }
                TurnStep::End { row, start } => {
                    let (time, hash) = (turn.times[row], turn.hash(row));
                    self.end_due(time, emit);
                    if let Some(id) = self.sides[side].close(start, hash, first + row as u32, time) {
                        self.pairs.end_all_of(side, id, time, |ended| emit.push_end(ended));
                    }
                }
            }
            if emit.times.len() >= TURN_ROWS {
                return false;
            }
        }
        self.end_due(upto.saturating_sub(1), emit);
        true
    }

    /// Ends pairs whose known end has come.
    #[inline]
    fn end_due(&mut self, upto: Time, emit: &mut JoinOutput) {
        if self.pairs.next_end() <= upto {
            self.pairs.end_due(upto, |ended| emit.push_end(ended));
        }
    }

    /// Puts a run of a side in force, and puts out its pairs with what is in force on the other.
    fn start(&mut self, side: usize, turn: &Turn, rows: Range<usize>, first: u32, emit: &mut JoinOutput) {
        let ids = first as usize + rows.start..first as usize + rows.end;
        let [left, right] = &mut self.sides;
        let (own, other) = if side == 0 { (left, right) } else { (right, left) };
        own.enter(ids.clone());
        turn.open_edges(own, rows.clone(), first);
        let begun = emit.times.len();
        let times = &turn.times[rows.clone()];
        self.matched.clear();
        if other.is_fifo() {
            self.found.resize(self.found.len().max(rows.len()), (0, NONE));
            let n_found = other.find_newest(&own.slots[ids.clone()], times, &mut self.found);
            for &(row, newest) in &self.found[..n_found] {
                other.each_from(newest, times[row as usize], |found| self.matched.push((row, found)));
            }
        } else {
            for (row, (&slot, &time)) in own.slots[ids.clone()].iter().zip(times).enumerate() {
                other.each(slot, time, |found| self.matched.push((row as u32, found)));
            }
        }
        let own_ends = &own.ends[ids.clone()];
        emit.ids[side].extend(self.matched.iter().map(|&(row, _)| ids.start as u32 + row));
        emit.ids[1 - side].extend(self.matched.iter().map(|&(_, found)| found));
        emit.times.extend(self.matched.iter().map(|&(row, _)| times[row as usize]));
        let ends = self.matched.iter().map(|&(row, found)| own_ends[row as usize].min(other.ends[found as usize]));
        emit.untils.extend(ends);
        if self.sides.iter().any(InForce::has_open) {
            self.open_pairs(emit, begun);
        }
    }

    /// Of the pairs put out from place `begun` on, those with an event whose end is not known are
    /// open.
    fn open_pairs(&mut self, emit: &mut JoinOutput, begun: usize) {
        for at in begun..emit.times.len() {
            let ids = [emit.ids[0][at], emit.ids[1][at]];
            let ends = [self.sides[0].ends[ids[0] as usize], self.sides[1].ends[ids[1] as usize]];
            if ends.contains(&END) {
                emit.untils[at] = END;
                self.pairs.open(ids, emit.times[at], ends);
            }
        }
    }

    fn put_out(&mut self, emit: JoinOutput, out: &mut Output) {
        if emit.times.is_empty() {
            return;
        }
        let left = self.sides[0].gather(&emit.ids[0]);
        let right = self.sides[1].gather(&emit.ids[1]);
        let columns: Vec<ArrayRef> = left.iter().chain(right.iter()).cloned().collect();
        let len = emit.times.len();
        let rows = Batch::with_len(Columns::from(columns), len, Times::Column(emit.times.into()), Diffs::Constant(1));
        out.give_rows(rows.with_until(Until::Column(emit.untils.into())));
    }

    /// Forgets what has ended, and keys that nothing in force needs.
    fn sweep(&mut self, upto: Time) {
        let n_rows = self.sides[0].len() + self.sides[1].len();
        if n_rows <= self.rows_max && self.slots.len() <= self.keys_max {
            return;
        }
        // (A pair that ends just now is not out: its rows are needed.)
        let upto = if self.pairs.len() > 0 { upto.saturating_sub(1) } else { upto };
        for side in 0..2 {
            let kept = self.sides[side].keep_after(upto);
            self.pairs.renumber(side, &kept);
        }
        let [left, right] = &self.sides;
        self.rows_max = SWEEP_MIN + 2 * (left.len() + right.len() + self.pairs.len());
        if self.slots.len() > self.keys_max {
            self.slots.release_where(|slot| left.newest(slot) == NONE && right.newest(slot) == NONE);
            self.keys_max = SWEEP_MIN + n_rows.max(2 * self.slots.len());
        }
    }
}

impl Timed for Join {
    fn push(&mut self, input: usize, batch: Batch) {
        let (known, _) = split_null_keys(batch, &self.keys[input]);
        self.queues[input].push(one_each(known));
    }

    fn advance(&mut self, upto: Time, out: &mut Output) {
        let mut merging = match self.merging.take() {
            Some(merging) => merging,
            None => self.begin(upto),
        };
        let mut emit = JoinOutput::default();
        let is_all = self.merge(&mut merging, upto, &mut emit);
        self.put_out(emit, out);
        match is_all {
            true => self.sweep(upto),
            false => self.merging = Some(merging),
        }
    }

    fn has_more(&self) -> bool {
        self.merging.is_some()
    }

    fn pending_from(&self) -> Option<Time> {
        let ends = Some(self.pairs.next_end()).filter(|time| *time < END);
        let taken_on = self.merging.as_ref().and_then(|merging| {
            let starts = merging.turns.iter().filter_map(|turn| turn.times.first().copied());
            starts.min()
        });
        let waiting = [self.queues[0].pending_from(), self.queues[1].pending_from(), ends, taken_on];
        waiting.into_iter().flatten().min()
    }

    fn size_bytes(&self) -> usize {
        let queues: usize = self.queues.iter().map(Arrivals::size_bytes).sum();
        let sides: usize = self.sides.iter().map(InForce::size_bytes).sum();
        let found = (self.found.capacity() + self.matched.capacity()) * size_of::<(u32, u32)>();
        queues + sides + self.slots.size_bytes() + self.pairs.size_bytes() + found
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
    fn many_pairs_are_put_out_in_several_turns() {
        let n_rows = 2_000;
        let mut join = join();
        for (input, first) in [(0, 0), (1, 10_000)] {
            let rows: Vec<(Time, Time, i64)> = (0..n_rows).map(|at| (first + at % 7, 20_000, 1)).collect();
            join.push(input, events(&rows));
        }
        let (mut n_turns, mut n_pairs) = (0, 0);
        while n_turns == 0 || join.has_more() {
            let mut out = Output::default();
            join.advance(30_000, &mut out);
            let n_now: usize = out.rows.iter().map(Batch::len).sum();
            assert!(n_now <= TURN_ROWS + n_rows as usize, "{n_now} pairs in a turn");
            (n_turns, n_pairs) = (n_turns + 1, n_pairs + n_now);
        }
        assert_eq!(n_pairs, 4_000_000);
        assert!(n_turns >= 15 && join.pending_from().is_none());
    }

    #[test]
    fn end_edges_end_pairs() {
        let left = [(1, END, 1), (9, 1, 1), (2, END, 2)];
        let right = [(3, END, 1), (12, 3, 1), (4, 20, 1), (5, END, 2), (7, 5, 2)];
        check_inputs(Hold::Same, join, &[&left, &right], &[(3, 9, 1), (4, 9, 1), (5, 7, 2)]);
    }
}
