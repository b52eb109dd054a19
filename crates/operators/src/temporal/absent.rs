//! Rows of one stream while the other has none with their key: the temporal anti-join.
//!
//! ```text
//!     left     [1, 20) a         right    [3, 5) a    [5, 8) a
//!     out      [1, 3) a    [8, 20) a
//! ```
//!
//! Law: a left event is in force in the result at the times at which no right event with an equal
//! key is in force; each maximal piece is an event. A right event from just its start on hides it;
//! right events that touch leave no gap. NULL keys match nothing, so such left events are never
//! hidden.
//!
//! State: the left events in force by key, and until when each key is covered by right events
//! ([`cover`](super::cover)). An event comes out as a start edge when time has passed its start,
//! and its end when that is known; when both happen in one turn, as an interval. Source: Trill 2.3
//! of its semantics (WhereNotExists).
//!
//! A left event names the stretch of cover that its key had when it began, or that has hidden it
//! since: it is shown from the end of that stretch on. So nothing has to happen to it while right
//! events come, go, and lengthen a stretch; only a stretch that begins hides what is in force then.
//! Most events come and end within one turn, and their last pieces are put out at its end in one
//! loop over columns: from the greater of the event's start and the stretch's end to the event's
//! end, if that is later. What stays in force is entered in agendas. Cost: the slot of the key,
//! some thirty instructions a row and some twenty a piece beside gathering it; a step for each left
//! event that a stretch hides.

use std::ops::Range;

use anabranch_batch::order::Nulls;
use anabranch_batch::{Batch, Diffs, END, Time, Times, Until};
use arrow::datatypes::DataType;

use super::agenda::Agenda;
use super::arrivals::Arrivals;
use super::cover::Cover;
use super::events::one_each;
use super::in_force::{InForce, NONE, keep_only, new_id};
use super::slots::Slots;
use super::turn::{Turn, TurnStep, next_step, split_null_keys};
use anabranch_flow::tactic::{Output, Timed};

/// Events and keys below which nothing is swept.
const SWEEP_MIN: usize = 1 << 12;
/// In place of a stretch: the event is shown, and its start edge is out.
const OUT: u32 = u32::MAX;

/// The tactic. See the module's page.
#[derive(Debug)]
pub struct Absent {
    left_key: Vec<usize>,
    right_key: Vec<usize>,
    nulls: Nulls,
    left: Arrivals,
    right: Arrivals,
    /// Left events that nothing hides.
    unkeyed: Arrivals,
    slots: Slots,
    in_force: InForce,
    /// By id of left events: not shown before,
    from: Vec<Time>,
    /// nor before the end of this stretch.
    stretches: Vec<u32>,
    cover: Cover,
    /// Known ends of left events that stay in force.
    left_ends: Agenda<u32>,
    /// Known ends of the cover of keys with hidden left events that stay in force: slots, at most
    /// once each,
    cover_ends: Agenda<u32>,
    /// if set here.
    is_entered: Vec<bool>,
    /// Ends and slots of the turn's right rows; scratch.
    right_rows: (Vec<Time>, Vec<u32>),
    /// Stretches of cover that begin over something in force: slots, starts, and the stretches;
    /// scratch.
    begun: Vec<(u32, Time, u32)>,
    /// Sweep when there are more rows,
    rows_max: usize,
    /// or more keys.
    keys_max: usize,
}

/// A turn.
#[derive(Debug)]
struct Doing {
    upto: Time,
    /// What ends at or before this has ended.
    last: Time,
    /// Left events from this one on came in this turn.
    first: u32,
    /// Left events from before that have ended,
    ended: Vec<u32>,
    /// or were hidden anew.
    hidden: Vec<u32>,
    /// Keys from before whose cover may have ended.
    uncovered: Vec<u32>,
    emit: AbsentOutput,
}

/// Output under construction.
#[derive(Debug, Default)]
struct AbsentOutput {
    ids: Vec<u32>,
    times: Vec<Time>,
    untils: Vec<Time>,
}

impl AbsentOutput {
    #[inline]
    fn push(&mut self, id: u32, time: Time, until: Time) {
        self.ids.push(id);
        self.times.push(time);
        self.untils.push(until);
    }
}

impl Absent {
    /// Left events whose columns `left_key` equal no right event's `right_key`; both are of
    /// `key_types`. No columns: everything matches.
    pub fn new(left_key: Vec<usize>, right_key: Vec<usize>, key_types: &[DataType], nulls: Nulls) -> Absent {
        Absent {
            left_key,
            right_key,
            nulls,
            left: Arrivals::default(),
            right: Arrivals::default(),
            unkeyed: Arrivals::default(),
            slots: Slots::new(key_types),
            in_force: InForce::default(),
            from: vec![Time::MIN],
            stretches: vec![0],
            cover: Cover::default(),
            left_ends: Agenda::default(),
            cover_ends: Agenda::default(),
            is_entered: Vec::new(),
            right_rows: Default::default(),
            begun: Vec::new(),
            rows_max: SWEEP_MIN,
            keys_max: SWEEP_MIN,
        }
    }

    /// The turn's rows: right, then left.
    fn turns(&mut self, upto: Time) -> [Turn; 2] {
        let (left, right) = (self.left.take_before(upto), self.right.take_before(upto));
        self.right_rows.0.clear();
        self.right_rows.1.clear();
        let into = (&mut self.right_rows.0, &mut self.right_rows.1);
        let right = Turn::new(right, &self.right_key, &mut self.slots, into);
        let (first, into) = (self.in_force.next_id(), (&mut self.in_force.ends, &mut self.in_force.slots));
        let left = Turn::new(left, &self.left_key, &mut self.slots, into);

        let n_slots = self.slots.n_slots();
        self.in_force.hold(&left.batches, first, n_slots);
        self.from.extend_from_slice(&left.times);
        self.stretches.resize(self.from.len(), 0);
        self.cover.resize(n_slots);
        self.is_entered.resize(n_slots, false);
        [right, left]
    }

    /// Both sides' rows in order of time; at one time ends, right starts, left starts.
    fn merge(&mut self, turns: &mut [Turn; 2], doing: &mut Doing) {
        let (right_ends, right_slots) = std::mem::take(&mut self.right_rows);
        while let Some((side, step)) = next_step(turns) {
            let turn = &turns[side];
            match (side, step) {
                (0, TurnStep::Starts(rows)) => {
                    let times = &turn.times[rows.clone()];
                    self.start_right(times, &right_ends[rows.clone()], &right_slots[rows], doing);
                }
                (0, TurnStep::End { row, .. }) => {
                    let slot = right_slots[row];
                    if self.cover.close(slot, turn.times[row]) {
                        doing.uncovered.push(slot);
                    }
                }
                (_, TurnStep::Starts(rows)) => {
                    self.start_left(rows.start + doing.first as usize..rows.end + doing.first as usize);
                    turn.open_edges(&mut self.in_force, rows, doing.first);
                }
                (_, TurnStep::End { row, start }) => {
                    let (id, hash, time) = (doing.first + row as u32, turn.hash(row), turn.times[row]);
                    let ended = self.in_force.close(start, hash, id, time);
                    doing.ended.extend(ended.filter(|id| *id < doing.first));
                }
            }
        }
        self.right_rows = (right_ends, right_slots);
    }

    fn start_left(&mut self, ids: Range<usize>) {
        self.in_force.enter(ids.clone());
        for (slot, stretch) in self.in_force.slots[ids.clone()].iter().zip(&mut self.stretches[ids]) {
            *stretch = self.cover.last(*slot);
        }
    }

    /// Right events begin, and where stretches of cover do, what is in force under the key is shown
    /// no longer.
    fn start_right(&mut self, times: &[Time], ends: &[Time], slots: &[u32], doing: &mut Doing) {
        let Absent { cover, in_force, stretches, from, begun, .. } = self;
        begun.clear();
        cover.begin(times, ends, slots, |slot, start, stretch| {
            if !in_force.has_none(slot, start) {
                begun.push((slot, start, stretch));
            }
        });
        for &(slot, start, stretch) in begun.iter() {
            in_force.each(slot, start, |id| {
                let (from, hiding) = (&mut from[id as usize], &mut stretches[id as usize]);
                let is_out = *hiding == OUT;
                if id < doing.first && (is_out || cover.is_old(*hiding)) {
                    doing.hidden.push(id);
                }
                if is_out {
                    doing.emit.push(id, start, *from);
                } else if cover.end(*hiding).max(*from) < start {
                    doing.emit.push(id, cover.end(*hiding).max(*from), start);
                }
                (*from, *hiding) = (start, stretch);
            });
        }
    }

    /// Since when, or from when on, an event that is not out is shown, as far as is known.
    #[inline]
    fn since(&self, id: u32) -> Time {
        self.from[id as usize].max(self.cover.end(self.stretches[id as usize]))
    }

    /// Puts out the last piece of an event that has ended.
    fn end(&mut self, id: u32, emit: &mut AbsentOutput) {
        let (end, from) = (self.in_force.ends[id as usize], self.from[id as usize]);
        if self.stretches[id as usize] == OUT {
            return emit.push(id, end, from);
        }
        let since = self.since(id);
        if since < end {
            emit.push(id, since, end);
        }
    }

    /// An event that stays in force: puts out its start edge if it is shown, else has it looked at
    /// when the cover of its key ends.
    fn stay(&mut self, id: u32, doing: &mut Doing) {
        let (since, slot) = (self.since(id), self.in_force.slots[id as usize]);
        if since < doing.upto {
            doing.emit.push(id, since, END);
            (self.from[id as usize], self.stretches[id as usize]) = (since, OUT);
        } else {
            self.stretches[id as usize] = slot;
            self.await_end_of_cover(slot);
        }
    }

    fn await_end_of_cover(&mut self, slot: u32) {
        let end = self.cover.end_of_key(slot);
        if end < END && !std::mem::replace(&mut self.is_entered[slot as usize], true) {
            self.cover_ends.push(end, slot);
        }
    }

    /// What becomes of the left events that came in this turn: those that have ended come out, the
    /// others stay.
    fn put_out_new(&mut self, doing: &mut Doing) {
        let n_ended = self.in_force.n_ended(doing.first, doing.last);
        self.put_out_ended(doing.first, n_ended, &mut doing.emit);
        for id in doing.first + n_ended as u32..self.in_force.next_id() {
            let end = self.in_force.ends[id as usize];
            if end <= doing.last {
                self.end(id, &mut doing.emit);
                continue;
            }
            if end < END {
                self.left_ends.push(end, id);
            }
            self.stay(id, doing);
        }
    }

    /// The last pieces of `n` left events from `first` on that have ended and whose start edges are
    /// not out. Which pieces are empty is for no processor to guess: there are no branches on data.
    fn put_out_ended(&mut self, first: u32, n: usize, emit: &mut AbsentOutput) {
        let ids = first as usize..first as usize + n;
        let begun = emit.ids.len();
        emit.ids.resize(begun + n, NONE);
        let mut shown = 0;
        let (from, ends) = (&mut self.from[ids.clone()], &self.in_force.ends[ids.clone()]);
        let into = &mut emit.ids[begun..];
        for (row, ((from, &end), &stretch)) in from.iter_mut().zip(ends).zip(&self.stretches[ids]).enumerate() {
            *from = self.cover.end(stretch).max(*from);
            into[shown] = first + row as u32;
            shown += usize::from(*from < end);
        }
        emit.ids.truncate(begun + shown);
        let shown = &emit.ids[begun..];
        emit.times.extend(shown.iter().map(|&id| self.from[id as usize]));
        emit.untils.extend(shown.iter().map(|&id| self.in_force.ends[id as usize]));
    }

    /// What becomes of the left events from before.
    fn put_out_old(&mut self, doing: &mut Doing) {
        while let Some((_, id)) = self.left_ends.pop(doing.last) {
            doing.ended.push(id);
        }
        for id in std::mem::take(&mut doing.ended) {
            self.end(id, &mut doing.emit);
        }
        for id in std::mem::take(&mut doing.hidden) {
            if self.in_force.ends[id as usize] > doing.last {
                self.stay(id, doing);
            }
        }
    }

    /// Shows, if their cover has ended, the left events of the keys that may be uncovered. After
    /// the others; the turn of the cover is over.
    fn put_out_uncovered(&mut self, doing: &mut Doing) {
        for slot in std::mem::take(&mut doing.uncovered) {
            let end = self.cover.end_of_key(slot);
            if end >= doing.upto {
                self.await_end_of_cover(slot);
                continue;
            }
            let Absent { in_force, from, stretches, .. } = self;
            in_force.each(slot, doing.last, |id| {
                if stretches[id as usize] != OUT {
                    let since = end.max(from[id as usize]);
                    doing.emit.push(id, since, END);
                    (from[id as usize], stretches[id as usize]) = (since, OUT);
                }
            });
        }
    }

    fn put_out(&mut self, doing: &mut Doing, out: &mut Output) {
        while let Some((_, slot)) = self.cover_ends.pop(doing.upto.saturating_sub(1)) {
            self.is_entered[slot as usize] = false;
            doing.uncovered.push(slot);
        }
        self.put_out_old(doing);
        self.put_out_new(doing);
        self.cover.end_turn();
        self.put_out_uncovered(doing);
        let AbsentOutput { ids, times, untils } = std::mem::take(&mut doing.emit);
        if !ids.is_empty() {
            let columns = self.in_force.gather(&ids);
            let rows = Batch::with_len(columns, ids.len(), Times::Column(times.into()), Diffs::Constant(1));
            out.give_rows(rows.with_until(Until::Column(untils.into())));
        }
    }

    /// Forgets what has ended, and keys that nothing in force needs.
    fn sweep(&mut self, upto: Time) {
        let n_rows = self.in_force.len();
        if n_rows <= self.rows_max && self.slots.len() <= self.keys_max {
            return;
        }
        let kept = self.in_force.keep_after(upto);
        keep_only(&mut self.from, &kept);
        keep_only(&mut self.stretches, &kept);
        self.left_ends.renumber(|id| new_id(&kept, id));
        self.rows_max = SWEEP_MIN + 2 * self.in_force.len();
        if self.slots.len() > self.keys_max {
            let (in_force, cover) = (&self.in_force, &self.cover);
            self.slots.release_where(|slot| in_force.newest(slot) == NONE && cover.is_over(slot, upto));
            self.keys_max = SWEEP_MIN + n_rows.max(2 * self.slots.len());
        }
    }
}

impl Timed for Absent {
    fn push(&mut self, input: usize, batch: Batch) {
        let key = if input == 0 { &self.left_key } else { &self.right_key };
        let (keyed, unkeyed) = match self.nulls {
            Nulls::Equal => (batch, None),
            _ => split_null_keys(batch, key),
        };
        match input {
            0 => self.left.push(one_each(keyed)),
            _ => self.right.push(one_each(keyed)),
        }
        if let Some(unkeyed) = unkeyed.filter(|_| input == 0) {
            self.unkeyed.push(one_each(unkeyed));
        }
    }

    fn advance(&mut self, upto: Time, out: &mut Output) {
        self.unkeyed.take_before(upto).into_iter().for_each(|batch| out.give_rows(batch));
        let mut turns = self.turns(upto);
        // (Left rows have the last ids.)
        let first = self.in_force.next_id() - turns[1].times.len() as u32;
        // (What has no known end has not ended at the end of time.)
        let last = upto.min(END - 1);
        let (ended, hidden, uncovered) = Default::default();
        let mut doing = Doing { upto, last, first, ended, hidden, uncovered, emit: AbsentOutput::default() };
        self.merge(&mut turns, &mut doing);
        self.put_out(&mut doing, out);
        self.sweep(upto);
    }

    fn pending_from(&self) -> Option<Time> {
        let ends = Some(self.left_ends.next_time().min(self.cover_ends.next_time())).filter(|time| *time < END);
        let queues = [&self.left, &self.right, &self.unkeyed].map(Arrivals::pending_from);
        queues.into_iter().chain([ends]).flatten().min()
    }

    fn size_bytes(&self) -> usize {
        let queues = self.left.size_bytes() + self.right.size_bytes() + self.unkeyed.size_bytes();
        let agendas = self.left_ends.size_bytes() + self.cover_ends.size_bytes();
        let times = self.from.capacity() + self.right_rows.0.capacity();
        let words = self.stretches.capacity() + self.right_rows.1.capacity();
        let rows = times * size_of::<Time>() + words * size_of::<u32>() + self.is_entered.capacity();
        queues + agendas + rows + self.in_force.size_bytes() + self.slots.size_bytes() + self.cover.size_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::temporal::Hold;
    use crate::temporal::testing::*;

    fn absent() -> Absent {
        Absent::new(vec![0], vec![0], &types(), Nulls::Differ)
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
