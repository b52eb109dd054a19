//! Snapshot aggregates of events that all last equally long: counts, exact sums and means, without
//! a queue of ends.
//!
//! ```text
//!     count, 5 ticks each, from 0, 1, 4:     [0, 1) 1    [1, 4) 2    [4, 5) 3    [5, 6) 2    [6, 9) 1
//! ```
//!
//! Law: what comes out is what [`Aggregate::snapshots`](crate::aggregate::Aggregate::snapshots)
//! puts out over the same events, edges paired. It relies on a property of the stream: every event
//! lasts `duration` ticks. Then events end in the order in which they began, so ends wait in a
//! queue and not in a heap, and of the events of one group and time only the sums wait (one entry
//! for each group and hop of a hopping window). When starts also lie on a grid no finer than the
//! duration (tumbling windows), nothing overlaps: each piece is known as a whole at its start, and
//! nothing waits at all. Where nothing overlaps or nothing ever ends, the least and the greatest
//! value are one value a group.
//!
//! State: a slot a group in force, and an entry for each group and time in force. Cost: a hash
//! probe and two additions an event; without keys, a sum over a slice for each time. Source: Trill
//! 5.2.1 (snapshot windows over constant-duration streams), 4.3 (properties choose operators).

mod custom;
mod fresh;
mod lasting;
mod pieces;
mod spec;

use std::collections::VecDeque;

use anabranch_batch::{Batch, Diffs, END, Time, hash};
use anabranch_spec::aggregate::AggregateFunction;
use arrow::array::{Array, ArrayRef, AsArray, Int64Array};
use arrow::datatypes::{DataType, Int64Type};

use self::custom::Custom;
use self::fresh::{Fresh, Sum, integers, run_end};
use self::pieces::Pieces;
pub use self::spec::SlidingSpec;
use super::arrivals::Arrivals;
use super::events::one_each;
use crate::aggregate::group_table::GroupTable;
use crate::aggregate::group_table::keys::KeyStore;
use anabranch_flow::tactic::{Output, Timed};

/// Groups below which none is given back.
const SWEEP_MIN: usize = 1 << 12;

/// The tactic. See the module's page.
pub struct Sliding {
    keys: Vec<usize>,
    /// Columns of distinct arguments.
    arguments: Vec<usize>,
    calls: Vec<SlidingCall>,
    /// Users' aggregates, in order of their calls.
    custom: Vec<Custom>,
    duration: i64,
    apart: bool,
    arrivals: Arrivals,
    /// Of events that do not last as long as the plan says.
    errors: Vec<Batch>,
    table: GroupTable,
    key_store: KeyStore,
    key_types: Vec<DataType>,
    /// By slot.
    groups: Vec<Group>,
    /// By slot and argument.
    sums: Vec<Sum>,
    /// What begins at the cut; small and apart, because every row writes here.
    fresh: Fresh,
    /// What ends, in order of time.
    ends: VecDeque<Ending>,
    /// The cut being made: everything that happens at one time.
    cut: u64,
    time: Option<Time>,
    /// Slots touched by the cut.
    touched: Vec<u32>,
    /// The turn's start: pieces that began before have been put out.
    turn: Time,
    /// Slots touched by the turn, perhaps repeated.
    turn_touched: Vec<u32>,
    pieces: Pieces,
    sweep_at: usize,
}

/// A result column.
#[derive(Clone, Copy, Debug)]
enum SlidingCall {
    Rows,
    /// Of these, the number of the argument.
    Count(usize),
    Sum(usize),
    Avg(usize),
    /// The next of the users' aggregates.
    Custom,
}

/// A group in force.
#[derive(Clone, Copy, Debug, Default)]
struct Group {
    /// The last cut that touched it.
    cut: u64,
    /// Events in force.
    rows: i64,
    /// When its present piece began.
    start: Time,
    /// Hash of its key; only meaningful while it has a key.
    hash: u64,
    has_key: bool,
}

/// What began at a time, by group, and ends `duration` later.
#[derive(Debug)]
struct Ending {
    start: Time,
    slots: Vec<u32>,
    rows: Vec<i64>,
    /// By slot and argument: total and count.
    sums: Vec<(i128, i64)>,
}

impl Sliding {
    /// An aggregate over nothing.
    pub fn new(spec: SlidingSpec) -> Sliding {
        let SlidingSpec { aggregate, duration, apart, .. } = spec;
        let mut arguments: Vec<usize> = Vec::new();
        let custom = aggregate.calls.iter().filter_map(Custom::new).collect();
        let calls: Vec<SlidingCall> = aggregate
            .calls
            .iter()
            .map(|call| {
                if matches!(call.function, AggregateFunction::Custom(..)) {
                    return SlidingCall::Custom;
                }
                let Some(column) = call.argument else { return SlidingCall::Rows };
                let at = arguments.iter().position(|known| *known == column).unwrap_or_else(|| {
                    arguments.push(column);
                    arguments.len() - 1
                });
                match call.function {
                    AggregateFunction::Count => SlidingCall::Count(at),
                    AggregateFunction::Sum => SlidingCall::Sum(at),
                    _ => SlidingCall::Avg(at),
                }
            })
            .collect();
        let key_types: Vec<DataType> = aggregate.keys.iter().map(|&key| aggregate.input_types[key].clone()).collect();
        let n_calls = calls.len();
        Sliding {
            keys: aggregate.keys,
            arguments,
            calls,
            custom,
            duration,
            apart,
            arrivals: Arrivals::default(),
            errors: Vec::new(),
            table: GroupTable::new(&key_types),
            key_store: KeyStore::default(),
            key_types,
            groups: Vec::new(),
            sums: Vec::new(),
            fresh: Fresh::default(),
            ends: VecDeque::new(),
            cut: 0,
            time: None,
            touched: Vec::new(),
            turn: Time::MIN,
            turn_touched: Vec::new(),
            pieces: Pieces::new(n_calls),
            sweep_at: SWEEP_MIN,
        }
    }

    /// Takes the rows of a batch, which are in order of time and all last as long as they should.
    fn take(&mut self, batch: &Batch) {
        let slots = self.slots(batch);
        let inputs = self.custom_inputs(batch);
        let arguments: Vec<ArrayRef> = self.arguments.iter().map(|&column| integers(batch.column(column))).collect();
        let arguments: Vec<&Int64Array> = arguments.iter().map(|array| array.as_primitive::<Int64Type>()).collect();
        // The usual case: one argument without NULLs.
        let whole = match arguments.as_slice() {
            [argument] if argument.null_count() == 0 => Some(&argument.values()[..]),
            _ => None,
        };
        let mut row = 0;
        while row < batch.len() {
            let time = batch.times().get(row);
            let end = run_end(batch.times(), row, batch.len());
            self.begin(time);
            match (&slots, batch.diffs()) {
                (None, Diffs::Constant(1)) => self.fresh.add_run(row..end, &arguments),
                (None, diffs) => (row..end).for_each(|row| self.fresh.add(0, row, diffs.get(row), &arguments)),
                (Some(slots), Diffs::Constant(1)) if whole.is_some() => {
                    let values = whole.map_or(&[][..], |values| &values[row..end]);
                    self.fresh.add_values(&slots[row..end], values);
                }
                (Some(slots), diffs) => {
                    (row..end).for_each(|row| self.fresh.add(slots[row], row, diffs.get(row), &arguments));
                }
            }
            self.custom_add(&inputs, slots.as_deref(), row..end);
            row = end;
        }
    }

    /// The slot of each row; `None` when there is only slot 0.
    fn slots(&mut self, batch: &Batch) -> Option<Vec<u32>> {
        if self.keys.is_empty() {
            self.room(1);
            return None;
        }
        let columns: Vec<ArrayRef> = self.keys.iter().map(|&key| batch.column(key).clone()).collect();
        let computed;
        let hashes: &[u64] = match batch.key() {
            Some(known) if *known.columns == *self.keys => &known.hashes,
            _ => {
                computed = hash::hash_columns(&columns, batch.len());
                &computed
            }
        };
        let touched = self.table.touch(&columns, hashes);
        self.room(self.table.n_slots());
        let (mut new, mut rows) = (Vec::new(), Vec::new());
        for (&slot, &row) in touched.slot.iter().zip(&touched.first_row) {
            let group = &mut self.groups[slot as usize];
            if !group.has_key {
                *group = Group { has_key: true, hash: hashes[row as usize], ..Group::default() };
                new.push(slot);
                rows.push(row);
            }
        }
        self.key_store.append(&new, &columns, &rows);
        let slot_of = |&index: &u32| touched.slot[index as usize];
        Some(touched.of_row.iter().map(slot_of).collect())
    }

    fn room(&mut self, n_slots: usize) {
        if self.groups.len() < n_slots {
            self.groups.resize(n_slots, Group::default());
            let n = n_slots * self.arguments.len();
            self.sums.resize(n, Sum::default());
            self.fresh.room(n_slots, self.arguments.len());
            self.custom.iter_mut().for_each(|custom| custom.states.resize(n_slots));
        }
    }

    /// Everything from here on happens at `time`, what was to end before has ended.
    fn begin(&mut self, time: Time) {
        if self.time == Some(time) {
            return;
        }
        self.finish();
        self.end_before(time);
        self.open(time);
        while self.ends.front().is_some_and(|ending| ending.start.saturating_add(self.duration) == time) {
            self.end_next();
        }
    }

    fn open(&mut self, time: Time) {
        self.cut += 1;
        self.time = Some(time);
    }

    /// Makes the cuts at which only something ends.
    fn end_before(&mut self, time: Time) {
        while let Some(end) = self.ends.front().map(|ending| ending.start.saturating_add(self.duration))
            && end < time
        {
            self.open(end);
            self.end_next();
            self.finish();
        }
    }

    fn end_next(&mut self) {
        let Some(ending) = self.ends.pop_front() else { return };
        let n = self.arguments.len();
        for (at, (&slot, &rows)) in ending.slots.iter().zip(&ending.rows).enumerate() {
            self.touch(slot).rows -= rows;
            let sums = &mut self.sums[slot as usize * n..][..n];
            for (sum, (total, count)) in sums.iter_mut().zip(&ending.sums[at * n..][..n]) {
                sum.total -= total;
                sum.count -= count;
            }
        }
        self.custom_keep();
        self.custom.iter_mut().for_each(|custom| custom.states.leave(&ending.slots));
    }

    /// The group, whose present piece ends at the cut.
    #[inline]
    fn touch(&mut self, slot: u32) -> &mut Group {
        if self.groups[slot as usize].cut != self.cut {
            self.touch_first(slot);
        }
        &mut self.groups[slot as usize]
    }

    fn touch_first(&mut self, slot: u32) {
        let time = self.time.expect("a cut has a time");
        self.groups[slot as usize].cut = self.cut;
        self.touched.push(slot);
        let Group { rows, start, .. } = self.groups[slot as usize];
        if rows > 0 {
            // The start of a piece that began before this turn is out.
            let (time, until) = if start < self.turn { (time, start) } else { (start, time) };
            self.put_out(slot, time, until);
        }
    }

    /// The cut is done: new pieces begin.
    fn finish(&mut self) {
        let Some(time) = self.time else { return };
        // (Nothing of what begins is in the groups yet: their present pieces end first.)
        let mut fresh = std::mem::take(&mut self.fresh.slots);
        if self.apart {
            self.finish_apart(time, &fresh);
        } else {
            fresh.iter().for_each(|&slot| _ = self.touch(slot));
            self.custom_keep();
        }
        fresh.clear();
        self.fresh.slots = fresh;
        self.time = None;
        let mut touched = std::mem::take(&mut self.touched);
        if !self.apart {
            self.finish_overlapping(time, &touched);
            self.turn_touched.extend_from_slice(&touched);
        }
        touched.clear();
        self.touched = touched;
    }

    /// Pieces that are known as a whole.
    fn finish_apart(&mut self, time: Time, slots: &[u32]) {
        let n = self.arguments.len();
        for &slot in slots {
            self.groups[slot as usize].rows = self.fresh.take(slot, n, &mut self.sums[slot as usize * n..][..n]);
            if self.groups[slot as usize].rows > 0 {
                self.put_out(slot, time, time.saturating_add(self.duration));
            }
            self.groups[slot as usize].rows = 0;
            self.sums[slot as usize * n..][..n].fill(Sum::default());
        }
        self.custom_take(slots);
    }

    fn finish_overlapping(&mut self, time: Time, touched: &[u32]) {
        let n = self.arguments.len();
        let mut ending = Ending { start: time, slots: Vec::new(), rows: Vec::new(), sums: Vec::new() };
        let mut begun = vec![Sum::default(); n];
        for &slot in touched {
            self.groups[slot as usize].start = time;
            begun.fill(Sum::default());
            let rows = self.fresh.take(slot, n, &mut begun);
            if rows == 0 {
                continue;
            }
            self.groups[slot as usize].rows += rows;
            ending.slots.push(slot);
            ending.rows.push(rows);
            for (sum, begun) in self.sums[slot as usize * n..][..n].iter_mut().zip(&begun) {
                sum.total += begun.total;
                sum.count += begun.count;
                ending.sums.push((begun.total, begun.count));
            }
        }
        self.custom_enter(&ending.slots, touched);
        // (What would end beyond the end of time never does.)
        let never_ends = self.duration == END || time.checked_add(self.duration).is_none_or(|end| end == END);
        if ending.slots.is_empty() {
            return;
        }
        match never_ends {
            true => self.custom.iter_mut().for_each(|custom| custom.states.stay()),
            false => self.ends.push_back(ending),
        }
    }

    fn put_out(&mut self, slot: u32, time: Time, until: Time) {
        let n = self.arguments.len();
        let rows = self.groups[slot as usize].rows;
        let sums = &self.sums[slot as usize * n..][..n];
        let total = |at: usize| (sums[at].count > 0).then_some(sums[at].total);
        let fits = |call: &SlidingCall| !matches!(call, SlidingCall::Sum(at) if total(*at).is_some_and(|t| i64::try_from(t).is_err()));
        if !self.calls.iter().all(fits) {
            return self.pieces.failed.push((time, until));
        }
        for (at, call) in self.calls.iter().enumerate() {
            match call {
                SlidingCall::Rows => self.pieces.values[at].push(Some(rows)),
                SlidingCall::Count(argument) => self.pieces.values[at].push(Some(sums[*argument].count)),
                SlidingCall::Sum(argument) => self.pieces.values[at].push(total(*argument).map(|total| total as i64)),
                SlidingCall::Avg(argument) => {
                    let count = sums[*argument].count;
                    self.pieces.means[at].push(total(*argument).map(|total| total as f64 / count as f64));
                }
                SlidingCall::Custom => {}
            }
        }
        self.pieces.slots.push(slot);
        self.pieces.times.push(time);
        self.pieces.untils.push(until);
    }

    /// Start edges of the pieces that began in this turn and go on.
    fn put_out_starts(&mut self) {
        let mut touched = std::mem::take(&mut self.turn_touched);
        self.cut += 1;
        for &slot in &touched {
            let group = &mut self.groups[slot as usize];
            if group.cut != self.cut && group.rows > 0 && group.start >= self.turn {
                group.cut = self.cut;
                let start = group.start;
                self.put_out(slot, start, END);
            }
        }
        self.custom_keep();
        touched.clear();
        self.turn_touched = touched;
    }

    /// Gives back the groups without events, when there are many.
    fn sweep(&mut self) {
        if self.table.len() <= self.sweep_at {
            return;
        }
        for slot in 0..self.groups.len() as u32 {
            let group = &mut self.groups[slot as usize];
            if group.has_key && group.rows == 0 {
                group.has_key = false;
                self.table.release(slot, group.hash);
                self.key_store.release(slot);
            }
        }
        self.sweep_at = (2 * self.table.len()).max(SWEEP_MIN);
    }
}

impl Timed for Sliding {
    fn push(&mut self, input: usize, batch: Batch) {
        assert_eq!(input, 0, "an aggregate has one input");
        let (batch, errors) = lasting::split(batch, self.duration);
        self.errors.extend(errors);
        self.arrivals.push(batch);
    }

    fn advance(&mut self, upto: Time, out: &mut Output) {
        out.errors.append(&mut self.errors);
        for batch in self.arrivals.take_before(upto) {
            match self.custom.is_empty() {
                true => self.take(&batch),
                false => self.take(&one_each(batch)),
            }
        }
        self.finish();
        self.end_before(upto);
        self.put_out_starts();
        let custom = self.custom_results();
        let pieces = std::mem::replace(&mut self.pieces, Pieces::new(self.calls.len()));
        pieces.give(self, custom, out);
        self.turn = upto;
        self.sweep();
    }

    fn pending_from(&self) -> Option<Time> {
        let end = self.ends.front().map(|ending| ending.start.saturating_add(self.duration));
        self.arrivals.pending_from().into_iter().chain(end).min()
    }

    fn size_bytes(&self) -> usize {
        let ending = |ending: &Ending| {
            ending.slots.capacity() * 12 + ending.sums.capacity() * size_of::<(i128, i64)>() + size_of::<Ending>()
        };
        let ends: usize = self.ends.iter().map(ending).sum();
        let groups = self.groups.capacity() * size_of::<Group>() + self.sums.capacity() * size_of::<Sum>();
        let custom: usize = self.custom.iter().map(|custom| custom.states.size_bytes()).sum();
        ends + groups + custom + self.arrivals.size_bytes() + self.table.size_bytes() + self.key_store.size_bytes()
    }
}
