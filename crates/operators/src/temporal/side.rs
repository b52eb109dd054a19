//! One side of a verb with two inputs: the rows of a turn, in order of time, ends before starts.
//!
//! Batches that come in order are walked as they are; only with end edges among them are they put together and sorted.

use anabranch_batch::{Batch, END, Time};
use arrow::array::ArrayRef;
use arrow::buffer::{NullBuffer, ScalarBuffer};

use super::events::untils;
use super::in_force::InForce;
use super::slots::{Slots, edge_hashes, null_keys};

/// The rows of a turn.
#[derive(Default)]
pub(crate) struct Side {
    parts: Vec<Part>,
    /// The part that the next row lies in, and its number there.
    part: usize,
    at: usize,
    /// Time of the next row, and whether something starts there.
    next: Option<(Time, bool)>,
}

/// A batch of them.
struct Part {
    columns: Vec<ArrayRef>,
    times: ScalarBuffer<i64>,
    untils: ScalarBuffer<i64>,
    /// The order of rows; as they are without end edges.
    order: Option<Vec<u32>>,
    slots: Vec<u32>,
    /// The batch's number among those held.
    batch: u32,
    /// Hashes of whole rows, when there are edges.
    hashes: Vec<u64>,
    nulls: Option<NullBuffer>,
}

/// A row's place and times.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Row {
    pub(crate) row: usize,
    pub(crate) time: Time,
    pub(crate) until: Time,
}

impl Side {
    /// The rows, in order of time across batches, their keys' slots, and their batches held.
    pub(crate) fn new(batches: Vec<Batch>, key: &[usize], slots: &mut Slots, in_force: &mut InForce) -> Side {
        let has_ends = |batch: &Batch| {
            let untils = untils(batch);
            (0..batch.len()).any(|row| untils[row] < batch.times().get(row))
        };
        let is_sorted_by_kind = !batches.iter().any(may_have_ends) || !batches.iter().any(has_ends);
        let batches = match is_sorted_by_kind {
            true => batches,
            false => Batch::concat(&batches).into_iter().collect(),
        };
        let parts = batches.into_iter().filter(|batch| !batch.is_empty());
        let parts = parts.map(|batch| Part::new(batch, !is_sorted_by_kind, key, slots, in_force)).collect();
        let mut side = Side { parts, ..Side::default() };
        side.find_next();
        side
    }

    /// The time of the next row, and whether something starts there.
    #[inline]
    pub(crate) fn peek(&self) -> Option<(Time, bool)> {
        self.next
    }

    /// The next row.
    #[inline]
    pub(crate) fn row(&self) -> Row {
        let part = &self.parts[self.part];
        let row = part.place(self.at);
        Row { row, time: part.times[row], until: part.untils[row] }
    }

    /// On to the row after.
    #[inline]
    pub(crate) fn step(&mut self) {
        self.at += 1;
        self.find_next();
    }

    /// The key's slot of a row of the part at hand.
    #[inline]
    pub(crate) fn slot(&self, row: usize) -> u32 {
        self.parts[self.part].slots[row]
    }

    /// Where a row of the part at hand lies among what is held.
    #[inline]
    pub(crate) fn held(&self, row: usize) -> (u32, u32) {
        (self.parts[self.part].batch, row as u32)
    }

    #[inline]
    pub(crate) fn has_null_key(&self, row: usize) -> bool {
        self.parts[self.part].nulls.as_ref().is_some_and(|nulls| nulls.is_null(row))
    }

    /// Puts a row in force.
    #[inline]
    pub(crate) fn insert(&self, in_force: &mut InForce, row: usize, (time, until): (Time, Time), mark: Time) -> u32 {
        let part = &self.parts[self.part];
        let id = in_force.insert(part.slots[row], (part.batch, row as u32), time, until, mark);
        if until == END {
            in_force.open(id, part.hashes[row]);
        }
        id
    }

    /// The start edge, begun at `start`, that the end edge in `row` ends.
    pub(crate) fn close(&self, in_force: &mut InForce, row: usize, start: Time) -> Option<u32> {
        let part = &self.parts[self.part];
        in_force.close(start, part.hashes[row], &part.columns, row as u32)
    }

    /// Lets go of the rows' batches.
    pub(crate) fn release(&self, in_force: &mut InForce) {
        self.parts.iter().for_each(|part| in_force.release(part.batch));
    }

    #[inline]
    fn find_next(&mut self) {
        while let Some(part) = self.parts.get(self.part) {
            if self.at < part.times.len() {
                let row = part.place(self.at);
                self.next = Some((part.times[row], part.untils[row] > part.times[row]));
                return;
            }
            self.part += 1;
            self.at = 0;
        }
        self.next = None;
    }
}

impl Part {
    fn new(batch: Batch, has_ends: bool, key: &[usize], slots: &mut Slots, in_force: &mut InForce) -> Part {
        let times = batch.times().to_column(batch.len());
        let untils = untils(&batch);
        let order = has_ends.then(|| {
            let mut order: Vec<u32> = (0..batch.len() as u32).collect();
            order.sort_by_key(|&row| (times[row as usize], untils[row as usize] > times[row as usize]));
            order
        });
        Part {
            slots: slots.of(&batch, key),
            nulls: null_keys(&batch, key),
            hashes: edge_hashes(&batch, &times, &untils),
            batch: in_force.hold_batch(batch.columns(), batch.len()),
            columns: batch.columns().to_vec(),
            times,
            untils,
            order,
        }
    }

    #[inline]
    fn place(&self, at: usize) -> usize {
        match &self.order {
            None => at,
            Some(order) => order[at] as usize,
        }
    }
}

/// Whether a look at each row is needed to know that there are no end edges.
fn may_have_ends(batch: &Batch) -> bool {
    matches!(batch.until(), anabranch_batch::Until::Column(_))
}
