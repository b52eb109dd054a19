//! Snapshot aggregates of events that all last equally long: counts, exact sums and means, without a queue of ends.
//!
//! ```text
//!     count, 5 ticks each, from 0, 1, 4:     [0, 1) 1    [1, 4) 2    [4, 5) 3    [5, 6) 2    [6, 9) 1
//! ```
//!
//! Law: what comes out is what [`Aggregate::snapshots`](crate::aggregate::Aggregate::snapshots) puts out over the same events, edges paired. It relies on a property of the
//! stream: every event lasts `duration` ticks. Then events end in the order in which they began, so ends wait in a queue and not in a heap, and of the
//! events of one group and time only the sums wait (one entry for each group and hop of a hopping window). When starts also lie on a grid no finer than the
//! duration (tumbling windows), nothing overlaps: each piece is known as a whole at its start, and nothing waits at all.
//!
//! State: a slot a group in force, and an entry for each group and time in force. Cost: a hash probe and two additions an event; without keys, a sum over a
//! slice for each time. Source: Trill 5.2.1 (snapshot windows over constant-duration streams), 4.3 (properties choose operators).

use std::collections::VecDeque;
use std::sync::Arc;

use anabranch_batch::{Batch, Columns, Diffs, END, Time, Times, Until, hash};
use arrow::array::{Array, ArrayRef, AsArray, Float64Array, Int64Array, StringViewArray};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Int64Type};

use super::arrivals::Arrivals;
use crate::aggregate::{AggregateSpec, Function};
use crate::group_table::GroupTable;
use crate::key_store::KeyStore;
use crate::tactic::{Output, Timed};

/// Groups below which none is given back.
const SWEEP_MIN: usize = 1 << 12;

/// What is wanted, and what is known of the stream.
#[derive(Clone, Debug)]
pub struct SlidingSpec {
    /// Keys and calls; see [`SlidingSpec::new`].
    aggregate: AggregateSpec,
    /// Ticks that every event lasts.
    duration: i64,
    /// Whether starts lie on a grid no finer than the duration.
    apart: bool,
}

impl SlidingSpec {
    /// The key columns.
    pub fn keys(&self) -> &[usize] {
        &self.aggregate.keys
    }

    /// The aggregate over events that last `duration` ticks and start on a grid of `hop` ticks, if that is known; `None` when a call is not one of those
    /// this tactic does.
    pub fn new(aggregate: &AggregateSpec, duration: i64, hop: Option<i64>) -> Option<SlidingSpec> {
        let fits = |call: &crate::aggregate::Call| {
            let argument = call.argument.map(|column| &aggregate.input_types[column]);
            let small = |data_type: &DataType| data_type.is_integer() && *data_type != DataType::UInt64;
            !call.distinct
                && call.filter.is_none()
                && match (&call.function, argument, &call.output_type) {
                    (Function::Count, _, DataType::Int64) => true,
                    (Function::Sum, Some(argument), DataType::Int64) => small(argument),
                    (Function::Avg, Some(argument), DataType::Float64) => small(argument),
                    _ => false,
                }
        };
        (duration > 0 && duration < END && aggregate.calls.iter().all(fits)).then(|| SlidingSpec {
            aggregate: aggregate.clone(),
            duration,
            apart: hop.is_some_and(|hop| hop >= duration),
        })
    }
}

/// The tactic. See the module's page.
#[derive(Debug)]
pub struct Sliding {
    keys: Vec<usize>,
    /// Columns of distinct arguments.
    arguments: Vec<usize>,
    calls: Vec<Call>,
    duration: i64,
    apart: bool,
    arrivals: Arrivals,
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
enum Call {
    Rows,
    /// Of these, the number of the argument.
    Count(usize),
    Sum(usize),
    Avg(usize),
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

/// Sum and number of an argument's values that are not NULL.
#[derive(Clone, Copy, Debug, Default)]
struct Sum {
    total: i128,
    count: i64,
}

/// What begins at a cut.
#[derive(Debug, Default)]
struct Fresh {
    /// By slot; zero for slots that nothing begins in.
    rows: Vec<i64>,
    /// By slot and argument.
    totals: Vec<i128>,
    counts: Vec<i64>,
    /// Slots that something begins in.
    slots: Vec<u32>,
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

/// Output under construction.
#[derive(Debug, Default)]
struct Pieces {
    slots: Vec<u32>,
    times: Vec<Time>,
    untils: Vec<Time>,
    /// A vector for each call: its value, or what its mean is made of.
    values: Vec<Vec<Option<i64>>>,
    means: Vec<Vec<Option<f64>>>,
    /// Pieces of which a sum does not fit.
    failed: Vec<(Time, Time)>,
}

impl Sliding {
    /// An aggregate over nothing.
    pub fn new(spec: SlidingSpec) -> Sliding {
        let SlidingSpec { aggregate, duration, apart } = spec;
        let mut arguments: Vec<usize> = Vec::new();
        let calls: Vec<Call> = aggregate
            .calls
            .iter()
            .map(|call| {
                let Some(column) = call.argument else { return Call::Rows };
                let at = arguments.iter().position(|known| *known == column).unwrap_or_else(|| {
                    arguments.push(column);
                    arguments.len() - 1
                });
                match call.function {
                    Function::Count => Call::Count(at),
                    Function::Sum => Call::Sum(at),
                    _ => Call::Avg(at),
                }
            })
            .collect();
        let key_types: Vec<DataType> = aggregate.keys.iter().map(|&key| aggregate.input_types[key].clone()).collect();
        let n_calls = calls.len();
        Sliding {
            keys: aggregate.keys,
            arguments,
            calls,
            duration,
            apart,
            arrivals: Arrivals::default(),
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
            self.fresh.rows.resize(n_slots, 0);
            self.fresh.totals.resize(n, 0);
            self.fresh.counts.resize(n, 0);
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
        // (What would end beyond the end of time never does.)
        if !ending.slots.is_empty() && time.checked_add(self.duration).is_some_and(|end| end < END) {
            self.ends.push_back(ending);
        }
    }

    fn put_out(&mut self, slot: u32, time: Time, until: Time) {
        let n = self.arguments.len();
        let rows = self.groups[slot as usize].rows;
        let sums = &self.sums[slot as usize * n..][..n];
        let total = |at: usize| (sums[at].count > 0).then_some(sums[at].total);
        let fits =
            |call: &Call| !matches!(call, Call::Sum(at) if total(*at).is_some_and(|t| i64::try_from(t).is_err()));
        if !self.calls.iter().all(fits) {
            return self.pieces.failed.push((time, until));
        }
        for (at, call) in self.calls.iter().enumerate() {
            match call {
                Call::Rows => self.pieces.values[at].push(Some(rows)),
                Call::Count(argument) => self.pieces.values[at].push(Some(sums[*argument].count)),
                Call::Sum(argument) => self.pieces.values[at].push(total(*argument).map(|total| total as i64)),
                Call::Avg(argument) => {
                    let count = sums[*argument].count;
                    self.pieces.means[at].push(total(*argument).map(|total| total as f64 / count as f64));
                }
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
        let lasts = |row: usize| {
            let time = batch.times().get(row);
            batch.until().get(row, time) == time.saturating_add(self.duration)
        };
        let is_known = matches!(batch.until(), Until::Duration(ticks) if *ticks == self.duration);
        assert!(is_known || (0..batch.len()).all(lasts), "every event lasts as long as the plan says");
        self.arrivals.push(batch);
    }

    fn advance(&mut self, upto: Time, out: &mut Output) {
        for batch in self.arrivals.take_before(upto) {
            self.take(&batch);
        }
        self.finish();
        self.end_before(upto);
        self.put_out_starts();
        let pieces = std::mem::replace(&mut self.pieces, Pieces::new(self.calls.len()));
        pieces.give(self, out);
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
        ends + groups + self.arrivals.size_bytes() + self.table.size_bytes() + self.key_store.size_bytes()
    }
}

impl Fresh {
    #[inline]
    fn begin(&mut self, slot: u32, rows: i64) {
        let count = &mut self.rows[slot as usize];
        if *count == 0 {
            self.slots.push(slot);
        }
        *count += rows;
    }

    /// A row, so many times.
    #[inline]
    fn add(&mut self, slot: u32, row: usize, diff: i64, arguments: &[&Int64Array]) {
        self.begin(slot, diff);
        let first = slot as usize * arguments.len();
        for (at, argument) in (first..).zip(arguments).filter(|(_, argument)| argument.is_valid(row)) {
            self.totals[at] += i128::from(argument.value(row)) * i128::from(diff);
            self.counts[at] += diff;
        }
    }

    /// Rows with one argument each.
    fn add_values(&mut self, slots: &[u32], values: &[i64]) {
        for (&slot, &value) in slots.iter().zip(values) {
            self.begin(slot, 1);
            self.totals[slot as usize] += i128::from(value);
            self.counts[slot as usize] += 1;
        }
    }

    /// Rows of the one group, once each.
    fn add_run(&mut self, rows: std::ops::Range<usize>, arguments: &[&Int64Array]) {
        self.begin(0, rows.len() as i64);
        for (at, argument) in arguments.iter().enumerate() {
            if argument.null_count() == 0 {
                self.totals[at] += sum_slice(&argument.values()[rows.clone()]);
                self.counts[at] += rows.len() as i64;
            } else {
                for row in rows.clone().filter(|&row| argument.is_valid(row)) {
                    self.totals[at] += i128::from(argument.value(row));
                    self.counts[at] += 1;
                }
            }
        }
    }

    /// What begins in a slot, which is nothing from now on: adds to `sums`, returns the rows.
    fn take(&mut self, slot: u32, n: usize, sums: &mut [Sum]) -> i64 {
        for (at, sum) in (slot as usize * n..).zip(sums) {
            sum.total += std::mem::take(&mut self.totals[at]);
            sum.count += std::mem::take(&mut self.counts[at]);
        }
        std::mem::take(&mut self.rows[slot as usize])
    }
}

impl Pieces {
    fn new(n_calls: usize) -> Pieces {
        Pieces { values: vec![Vec::new(); n_calls], means: vec![Vec::new(); n_calls], ..Pieces::default() }
    }

    fn give(self, tactic: &Sliding, out: &mut Output) {
        if !self.failed.is_empty() {
            let messages = std::iter::repeat_n("bigint out of range in sum", self.failed.len());
            let messages: ArrayRef = Arc::new(StringViewArray::from_iter_values(messages));
            let times = Times::Column(self.failed.iter().map(|(time, _)| *time).collect());
            let until = Until::Column(self.failed.iter().map(|(_, until)| *until).collect());
            out.give_errors(Batch::new(vec![messages], times, Diffs::Constant(1)).with_until(until));
        }
        let len = self.slots.len();
        if len == 0 {
            return;
        }
        let mut columns: Vec<ArrayRef> = Vec::new();
        if !tactic.key_types.is_empty() {
            let places: Vec<(u32, u32)> = self.slots.iter().map(|&slot| tactic.key_store.place(slot)).collect();
            columns.extend(anabranch_batch::gather::interleave(&tactic.key_store.sources(), &places).iter().cloned());
        }
        for (call, (values, means)) in tactic.calls.iter().zip(self.values.into_iter().zip(self.means)) {
            columns.push(match call {
                Call::Avg(_) => Arc::new(Float64Array::from(means)),
                Call::Rows | Call::Count(_) | Call::Sum(_) => Arc::new(Int64Array::from(values)),
            });
        }
        let until = match tactic.apart {
            true => Until::Duration(tactic.duration),
            false => Until::Column(self.untils.into()),
        };
        let times = Times::Column(self.times.into());
        let rows = Batch::with_len(Columns::from(columns), len, times, Diffs::Constant(1));
        out.give_rows(rows.with_until(until));
    }
}

/// The end of the run of equal times that begins at `row`: by doubling steps, then by halving.
fn run_end(times: &Times, row: usize, len: usize) -> usize {
    let Times::Column(times) = times else { return len };
    let time = times[row];
    let mut step = 1;
    while row + step < len && times[row + step] == time {
        step *= 2;
    }
    let (low, high) = (row + step / 2, (row + step).min(len));
    low + times[low..high].partition_point(|&other| other == time)
}

/// The exact sum: high and low halves apart, so that the loop is vectorised.
fn sum_slice(values: &[i64]) -> i128 {
    let mut total = 0i128;
    for chunk in values.chunks(1 << 20) {
        let (mut high, mut low) = (0i64, 0i64);
        for &value in chunk {
            high += value >> 32;
            low += value & 0xffff_ffff;
        }
        total += (i128::from(high) << 32) + i128::from(low);
    }
    total
}

fn integers(column: &ArrayRef) -> ArrayRef {
    if *column.data_type() == DataType::Int64 {
        return column.clone();
    }
    cast(column, &DataType::Int64).expect("narrower integers become 64-bit ones")
}
