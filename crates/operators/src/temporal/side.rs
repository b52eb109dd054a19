//! One side of a verb with two inputs: the rows of a turn, in order of time, ends before starts.

use anabranch_batch::{END, Time};
use arrow::buffer::NullBuffer;

use super::events::Ready;
use super::in_force::{InForce, NONE};
use super::slots::{Slots, edge_hashes, null_keys};

/// The rows of a turn.
pub(crate) struct Side {
    ready: Option<Ready>,
    /// The order of rows; as they are without end edges.
    order: Option<Vec<u32>>,
    slots: Vec<u32>,
    /// The batch's number among those held.
    batch: u32,
    /// Hashes of whole rows, when there are edges.
    hashes: Vec<u64>,
    nulls: Option<NullBuffer>,
    /// Rows done.
    at: usize,
}

/// A row's place and times.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Row {
    pub(crate) row: usize,
    pub(crate) time: Time,
    pub(crate) until: Time,
}

impl Side {
    /// The rows, their keys' slots, and their batch held.
    pub(crate) fn new(ready: Option<Ready>, key: &[usize], slots: &mut Slots, in_force: &mut InForce) -> Side {
        let mut side =
            Side { ready: None, order: None, slots: vec![], batch: NONE, hashes: vec![], nulls: None, at: 0 };
        let Some(ready) = ready else { return side };
        side.slots = slots.of(&ready, key);
        side.nulls = null_keys(&ready.batch, key);
        side.hashes = edge_hashes(&ready);
        side.batch = in_force.hold_batch(ready.batch.columns(), ready.len());
        let ends = |row: usize| ready.untils[row] < ready.times[row];
        if (0..ready.len()).any(ends) {
            let mut order: Vec<u32> = (0..ready.len() as u32).collect();
            order.sort_by_key(|&row| (ready.times[row as usize], !ends(row as usize)));
            side.order = Some(order);
        }
        side.ready = Some(ready);
        side
    }

    /// The time of the next row, and whether something starts there.
    #[inline]
    pub(crate) fn peek(&self) -> Option<(Time, bool)> {
        let ready = self.ready.as_ref().filter(|ready| self.at < ready.len())?;
        let row = self.place();
        Some((ready.times[row], ready.untils[row] > ready.times[row]))
    }

    /// The next row.
    #[inline]
    pub(crate) fn row(&self) -> Row {
        let ready = self.ready.as_ref().expect("there is a next row");
        let row = self.place();
        Row { row, time: ready.times[row], until: ready.untils[row] }
    }

    /// On to the row after.
    #[inline]
    pub(crate) fn step(&mut self) {
        self.at += 1;
    }

    #[inline]
    pub(crate) fn slot(&self, row: usize) -> u32 {
        self.slots[row]
    }

    /// Where a row lies among what is held.
    #[inline]
    pub(crate) fn held(&self, row: usize) -> (u32, u32) {
        (self.batch, row as u32)
    }

    #[inline]
    pub(crate) fn has_null_key(&self, row: usize) -> bool {
        self.nulls.as_ref().is_some_and(|nulls| nulls.is_null(row))
    }

    /// Puts a row in force.
    #[inline]
    pub(crate) fn insert(&self, in_force: &mut InForce, row: usize, (time, until): (Time, Time), mark: Time) -> u32 {
        let id = in_force.insert(self.slots[row], self.held(row), time, until, mark);
        if until == END {
            in_force.open(id, self.hashes[row]);
        }
        id
    }

    /// The start edge, begun at `start`, that the end edge in `row` ends.
    pub(crate) fn close(&self, in_force: &mut InForce, row: usize, start: Time) -> Option<u32> {
        let ready = self.ready.as_ref().expect("there is a row");
        in_force.close(start, self.hashes[row], ready.batch.columns(), row as u32)
    }

    /// Lets go of the rows' batch.
    pub(crate) fn release(&self, in_force: &mut InForce) {
        if self.batch != NONE {
            in_force.release(self.batch);
        }
    }

    #[inline]
    fn place(&self) -> usize {
        self.order.as_ref().map_or(self.at, |order| order[self.at] as usize)
    }
}
