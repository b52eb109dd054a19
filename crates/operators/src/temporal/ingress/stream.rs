//! Rows in, items out.

use std::cmp::Reverse;
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use anabranch_batch::{Batch, Columns, END, Time, Times, gather, hash};
use arrow::array::{ArrayRef, Int64Array};
use arrow::datatypes::DataType;

use super::partition::{Partition, due};
use super::waiting::{Place, WaitingEvent, WaitingEvents};
use super::{Completed, IngressCounts, Item, Late, Policy};
use crate::aggregate::group_table::GroupTable;
use crate::temporal::events::{EventKind, EventOutput, kind, untils};
use crate::temporal::rows::{RowSet, RowStore};
use crate::temporal::ticks::FIRST;

/// An input that brings rows in order. See the page of [`super`].
#[derive(Debug)]
pub struct Ingress {
    pub(super) policy: Policy,
    table: GroupTable,
    /// By the table's slot.
    partitions: Vec<Option<Partition>>,
    keys: RowStore,
    n_seen: u64,
    n_arrived: u64,
    /// Greatest time of any row.
    high: Time,
    /// The last low watermark.
    low: Option<Time>,
    /// Where periods count from before anything was promised: 0, or the first row if that is
    /// earlier.
    origin: Option<Time>,
    pub(super) waiting: WaitingEvents,
    /// Rows of late start edges.
    pub(super) rows: RowSet,
    /// By row and start: what became of late start edges, in order of arrival; `None` when dropped.
    pub(super) moved: HashMap<(u32, Time), VecDeque<Option<Time>>>,
    pub(super) counts: IngressCounts,
    pub(super) report: Vec<Batch>,
    items: Vec<Item>,
    /// Whether no row will ever come.
    is_closed: bool,
}

/// A batch on its way in.
pub(super) struct Arriving {
    pub(super) batch: Batch,
    pub(super) times: Vec<Time>,
    pub(super) untils: Vec<Time>,
    /// Slot of each row's partition.
    pub(super) slots: Vec<u32>,
    /// Numbers of rows in [`Ingress::rows`], once needed.
    pub(super) ids: Option<Vec<u32>>,
    emit: EventOutput,
    /// Stored rows that were let through, or dropped.
    pub(super) released: Vec<u32>,
    /// Entries made for rows of this batch.
    entered: Vec<u32>,
    /// Rows dropped or moved, with the ticks.
    pub(super) late: Vec<(u32, Option<i64>)>,
    /// Whether a low watermark has come meanwhile.
    is_passed: bool,
}

impl Ingress {
    /// An input of rows of these types.
    ///
    /// # Panics
    /// If a period is not positive, a latency or lag is negative, or a partition column does not
    /// exist.
    pub fn new(policy: Policy, types: &[DataType]) -> Ingress {
        assert!(policy.reorder_latency >= 0, "a latency is not negative");
        assert!(policy.punctuation_period.is_none_or(|period| period > 0), "a period is positive");
        assert!(policy.low_watermark.is_none_or(|low| low.period > 0 && low.lag >= 0), "a period is positive");
        let key_types: Vec<DataType> = policy.partition.iter().map(|&column| types[column].clone()).collect();
        Ingress {
            policy,
            table: GroupTable::new(&key_types),
            partitions: Vec::new(),
            keys: RowStore::default(),
            n_seen: 0,
            n_arrived: 0,
            high: FIRST,
            low: None,
            origin: None,
            waiting: WaitingEvents::default(),
            rows: RowSet::new(types),
            moved: HashMap::new(),
            counts: IngressCounts::default(),
            report: Vec::new(),
            items: Vec::new(),
            is_closed: false,
        }
    }

    /// Takes rows, in order of arrival.
    ///
    /// # Errors
    /// The first late row, when that is an error.
    pub fn push(&mut self, batch: Batch) -> Result<(), Late> {
        let batch = batch.compact();
        if batch.is_empty() {
            return Ok(());
        }
        if self.policy.partition.is_empty() && self.pass_through(&batch) {
            return Ok(());
        }
        let mut arriving = self.arrive(batch);
        let result = (0..arriving.times.len()).try_for_each(|row| self.take_row(row, &mut arriving));
        self.settle(arriving);
        result
    }

    /// Promises that no row of a partition (one row of its columns) will come before `time`; rows
    /// that wait up to then are let through.
    pub fn punctuate(&mut self, key: &[ArrayRef], time: Time) {
        let mut arriving = Arriving::empty();
        let slot = self.slots(key, 1)[0];
        let low = self.low;
        let partition = self.partition(slot);
        let last = partition.punctuated.max(low);
        if last.is_some_and(|last| time <= last) {
            return;
        }
        let time = time.max(partition.current);
        self.release(slot, time, &mut arriving);
        self.promise(slot, time, &mut arriving);
        self.partition(slot).current = time;
        self.settle(arriving);
    }

    /// Promises that no row of any partition will come before `time`; rows that wait up to then are
    /// let through.
    pub fn low_watermark(&mut self, time: Time) {
        let mut arriving = Arriving::empty();
        self.pass_low_watermark(time, &mut arriving);
        self.settle(arriving);
    }

    /// The input ends.
    pub fn finish(&mut self) {
        if self.policy.completed == Completed::Nothing {
            return;
        }
        let mut arriving = Arriving::empty();
        for slot in self.slots_in_order() {
            self.release(slot, END, &mut arriving);
            if self.policy.completed == Completed::Flush {
                let time = self.partition(slot).current;
                if self.partition(slot).punctuated.max(self.low).is_none_or(|last| last < time) {
                    self.promise(slot, time, &mut arriving);
                }
            }
        }
        self.is_closed = self.policy.completed == Completed::Close;
        self.settle(arriving);
    }

    /// What was let through since the last call.
    pub fn take(&mut self) -> Vec<Item> {
        std::mem::take(&mut self.items)
    }

    /// Rows dropped and moved since the last call, at their own times, with a column that says by
    /// how many ticks they were moved (NULL: dropped).
    pub fn take_report(&mut self) -> Option<Batch> {
        Batch::concat(&std::mem::take(&mut self.report))
    }

    /// Rows dropped and moved so far.
    pub fn counts(&self) -> IngressCounts {
        self.counts
    }

    /// No row before this time will be let through.
    pub fn frontier(&self) -> Time {
        match (self.is_closed, self.policy.partition.is_empty()) {
            (true, _) => END,
            (_, true) => {
                let current = self.partitions.first().and_then(Option::as_ref).map(|only| only.current);
                current.max(self.low).unwrap_or(self.policy.begin)
            }
            (_, false) => self.low.unwrap_or(self.policy.begin),
        }
    }

    /// Bytes of rows that wait, and of clocks.
    pub fn size_bytes(&self) -> usize {
        let partitions = self.partitions.capacity() * size_of::<Option<Partition>>();
        let waiting = self.waiting.size_bytes();
        let moved = self.moved.capacity() * size_of::<((u32, Time), VecDeque<Option<Time>>)>();
        self.table.size_bytes() + self.keys.size_bytes() + partitions + waiting + self.rows.size_bytes() + moved
    }

    /// Lets a batch through as it is, if there is nothing to do but look at its times.
    fn pass_through(&mut self, batch: &Batch) -> bool {
        let policy = &self.policy;
        let is_plain =
            policy.reorder_latency == 0 && policy.punctuation_period.is_none() && policy.low_watermark.is_none();
        let is_sorted = match batch.times() {
            Times::Constant(_) => true,
            Times::Column(times) => times.is_sorted(),
        };
        if !is_plain || !is_sorted || !self.moved.is_empty() {
            return false;
        }
        let slot = self.slots(&[], 1)[0];
        let low = self.low.unwrap_or(FIRST);
        let partition = self.partition(slot);
        if batch.times().get(0) < partition.current.max(low) {
            return false;
        }
        partition.current = batch.times().get(batch.len() - 1);
        self.items.push(Item::Rows(batch.clone()));
        true
    }

    fn arrive(&mut self, batch: Batch) -> Arriving {
        let key: Vec<ArrayRef> = self.policy.partition.iter().map(|&column| batch.column(column).clone()).collect();
        let slots = self.slots(&key, batch.len());
        let times = batch.times().to_column(batch.len()).to_vec();
        let untils = untils(&batch).to_vec();
        Arriving { batch, times, untils, slots, ..Arriving::empty() }
    }

    /// The partitions of rows; those seen for the first time get a clock.
    fn slots(&mut self, key: &[ArrayRef], n_rows: usize) -> Vec<u32> {
        let hashes = hash::hash_columns(key, n_rows);
        let touched = self.table.touch(key, &hashes);
        if self.partitions.len() < self.table.n_slots() {
            self.partitions.resize_with(self.table.n_slots(), || None);
        }
        let is_new = |slot: u32| self.partitions[slot as usize].is_none();
        let new: Vec<(u32, u32)> = touched
            .slot
            .iter()
            .copied()
            .zip(touched.first_row.iter().copied())
            .filter(|&(slot, _)| is_new(slot))
            .collect();
        let rows: Vec<u32> = new.iter().map(|&(_, row)| row).collect();
        for ((slot, row), key) in new.into_iter().zip(self.keys.add(key, &rows)) {
            self.partitions[slot as usize] =
                Some(Partition::new(self.n_seen, hashes[row as usize], key, self.policy.begin));
            self.n_seen += 1;
        }
        touched.of_row.iter().map(|&index| touched.slot[index as usize]).collect()
    }

    pub(super) fn partition(&mut self, slot: u32) -> &mut Partition {
        self.partitions[slot as usize].as_mut().expect("a partition that was seen has a clock")
    }

    /// Slots of all partitions, in the order in which they were first seen.
    fn slots_in_order(&self) -> Vec<u32> {
        let seen = (0u32..).zip(&self.partitions);
        let mut slots: Vec<(u64, u32)> =
            seen.filter_map(|(slot, partition)| Some((partition.as_ref()?.seen, slot))).collect();
        slots.sort_unstable();
        slots.into_iter().map(|(_, slot)| slot).collect()
    }

    fn take_row(&mut self, row: usize, arriving: &mut Arriving) -> Result<(), Late> {
        let (slot, time, until) = (arriving.slots[row], arriving.times[row], arriving.untils[row]);
        self.high = self.high.max(time);
        let origin =
            *self.origin.get_or_insert(if self.policy.begin == FIRST { time.min(0) } else { self.policy.begin });
        if let Some(low) = self.policy.low_watermark
            && let Some(due) = due(self.low.unwrap_or(origin), self.high.saturating_sub(low.lag), low.period)
        {
            self.pass_low_watermark(due, arriving);
        }
        let low = self.low.unwrap_or(FIRST);
        let latency = self.policy.reorder_latency;
        let partition = self.partition(slot);
        partition.is_silent = false;
        partition.current = partition.current.max(low);
        if time < partition.current {
            return self.take_late(row, arriving);
        }
        let entry = WaitingEvent::fresh(row, time, until);
        let is_end = kind(time, until) == Some(EventKind::End);
        if latency == 0 || time == partition.current {
            let start = if is_end { self.moved_start(row, until, arriving) } else { Some(until) };
            match start {
                Some(start) if is_end => self.let_through(slot, time, entry.ending(start), arriving),
                Some(_) => self.let_through(slot, time, entry, arriving),
                None => self.drop_row(row, arriving),
            }
            return Ok(());
        }
        let entry = if is_end { self.awaits_start(row, entry, arriving) } else { entry };
        let partition = self.partition(slot);
        if time > partition.high {
            partition.high = time;
            let bound = time.saturating_sub(latency).max(partition.current);
            self.release(slot, bound, arriving);
            self.partition(slot).current = bound;
        }
        self.wait(slot, time, entry, arriving);
        Ok(())
    }

    /// Lets a row wait.
    fn wait(&mut self, slot: u32, time: Time, entry: WaitingEvent, arriving: &mut Arriving) {
        let number = self.waiting.enter(entry);
        arriving.entered.push(number);
        let arrived = self.n_arrived;
        self.n_arrived += 1;
        self.partition(slot).waiting.push(Reverse((time, arrived, number)));
    }

    /// Lets rows through that wait up to `upto`.
    fn release(&mut self, slot: u32, upto: Time, arriving: &mut Arriving) {
        while let Some((clock, number)) = self.partition(slot).pop_upto(upto) {
            let entry = self.waiting.leave(number);
            if let Some(entry) = self.settled(entry, arriving) {
                self.let_through(slot, clock, entry, arriving);
            }
        }
    }

    /// Lets a row through at `clock`, after the punctuation that is due.
    pub(super) fn let_through(&mut self, slot: u32, clock: Time, entry: WaitingEvent, arriving: &mut Arriving) {
        if let Some(period) = self.policy.punctuation_period {
            let last = self.partition(slot).punctuated.max(self.low).max(self.origin).unwrap_or(clock);
            if let Some(due) = due(last, clock, period) {
                self.promise(slot, due, arriving);
            }
        }
        let partition = self.partition(slot);
        partition.current = partition.current.max(clock);
        match entry.place {
            Place::Fresh(row) => arriving.emit.fresh(row, entry.time, entry.until),
            Place::Stored(id) => {
                arriving.emit.stored(id, entry.time, entry.until);
                arriving.released.push(id);
            }
            Place::Gone => unreachable!("a row is let through once"),
        }
    }

    /// Puts out a punctuation.
    fn promise(&mut self, slot: u32, time: Time, arriving: &mut Arriving) {
        self.put_out_rows(arriving);
        self.partition(slot).punctuated = Some(time);
        let key = self.partition(slot).key;
        let key = gather::interleave(&self.keys.sources(), &[self.keys.place(key)]);
        self.items.push(Item::Punctuation(key, time));
    }

    fn pass_low_watermark(&mut self, time: Time, arriving: &mut Arriving) {
        // (That time begins no earlier need not be said.)
        let is_known = self.policy.begin > FIRST && time <= self.policy.begin;
        if is_known || self.low.is_some_and(|low| time <= low) {
            return;
        }
        for slot in self.slots_in_order() {
            self.release(slot, time, arriving);
        }
        self.put_out_rows(arriving);
        self.low = Some(time);
        self.items.push(Item::LowWatermark(time));
        arriving.is_passed = true;
    }

    /// Forgets the clocks of partitions that the low watermark has passed, and that have been
    /// silent since the one before.
    fn forget_passed(&mut self) {
        let Some(low) = self.low.filter(|_| !self.policy.partition.is_empty()) else { return };
        let is_passed = |partition: &mut Partition| {
            let was_silent = std::mem::replace(&mut partition.is_silent, true);
            was_silent && partition.waiting.is_empty() && partition.current <= low
        };
        for slot in 0..self.partitions.len() as u32 {
            if let Some(passed) = self.partitions[slot as usize].take_if(is_passed) {
                self.table.release(slot, passed.hash);
                self.keys.release(passed.key);
            }
        }
    }

    /// Rows let through so far become an item.
    fn put_out_rows(&mut self, arriving: &mut Arriving) {
        let emit = std::mem::take(&mut arriving.emit);
        let batch = emit.finish(arriving.batch.columns(), &self.waiting.store);
        if !batch.is_empty() {
            self.items.push(Item::Rows(batch));
        }
        arriving.released.drain(..).for_each(|id| self.waiting.store.release(id));
    }

    /// What is left to do with a batch: rows that wait are copied out of it.
    fn settle(&mut self, mut arriving: Arriving) {
        self.put_out_rows(&mut arriving);
        self.waiting.keep(arriving.batch.columns(), &arriving.entered);
        if arriving.is_passed {
            self.forget_passed();
        }
        if let Some(ids) = arriving.ids.take() {
            ids.into_iter().for_each(|id| self.rows.release(id));
        }
        if !arriving.late.is_empty() {
            let rows: Vec<u32> = arriving.late.iter().map(|&(row, _)| row).collect();
            let moved: Int64Array = arriving.late.iter().map(|&(_, ticks)| ticks).collect();
            let late = arriving.batch.take(&rows);
            let columns: Vec<ArrayRef> = late.columns().iter().cloned().chain([Arc::new(moved) as ArrayRef]).collect();
            self.report.push(late.with_columns(Columns::from(columns)));
        }
    }
}

impl Arriving {
    /// No rows.
    fn empty() -> Arriving {
        Arriving {
            batch: Batch::default(),
            times: Vec::new(),
            untils: Vec::new(),
            slots: Vec::new(),
            ids: None,
            emit: EventOutput::default(),
            released: Vec::new(),
            entered: Vec::new(),
            late: Vec::new(),
            is_passed: false,
        }
    }
}
