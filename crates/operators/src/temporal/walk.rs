//! The rows of a turn of one side, in order of time, with the slots of their keys.
//!
//! For verbs that look at starts alone: no row is an end edge.

use anabranch_batch::{Batch, Time};
use arrow::buffer::{NullBuffer, ScalarBuffer};

use super::lists::{Lists, Place};
use super::slots::Slots;
use super::turn::null_keys;

/// The rows of a turn, and the next of them.
pub(crate) struct EventWalk {
    parts: Vec<WalkPart>,
    /// The part that the next row lies in, and its number there.
    part: usize,
    row: usize,
}

/// A batch of them.
struct WalkPart {
    times: ScalarBuffer<i64>,
    slots: Vec<u32>,
    /// The batch's number among those held.
    batch: u32,
    nulls: Option<NullBuffer>,
}

/// A row.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Row {
    pub(crate) time: Time,
    /// Of its key.
    pub(crate) slot: u32,
    /// Among what is held.
    pub(crate) place: Place,
    /// Whether a key column is NULL.
    pub(crate) has_null: bool,
}

impl EventWalk {
    /// The rows, in order of time across batches, which are held until [`Walk::release`].
    pub(crate) fn new(batches: &[Batch], key: &[usize], slots: &mut Slots, lists: &mut Lists) -> EventWalk {
        let part = |batch: &Batch| {
            let mut of_rows = Vec::with_capacity(batch.len());
            slots.append_of(batch, key, &mut of_rows);
            WalkPart {
                times: batch.times().to_column(batch.len()),
                slots: of_rows,
                batch: lists.hold_batch(batch.columns(), batch.len()),
                nulls: null_keys(batch, key),
            }
        };
        EventWalk { parts: batches.iter().filter(|batch| !batch.is_empty()).map(part).collect(), part: 0, row: 0 }
    }

    /// The time of the next row.
    #[inline]
    pub(crate) fn next_time(&self) -> Option<Time> {
        self.parts.get(self.part).map(|part| part.times[self.row])
    }

    /// The next row, which is left behind.
    #[inline]
    pub(crate) fn take(&mut self) -> Option<Row> {
        let (part, row) = (self.parts.get(self.part)?, self.row);
        let has_null = part.nulls.as_ref().is_some_and(|nulls| nulls.is_null(row));
        let taken = Row { time: part.times[row], slot: part.slots[row], place: (part.batch, row as u32), has_null };
        self.row += 1;
        if self.row == part.times.len() {
            (self.part, self.row) = (self.part + 1, 0);
        }
        Some(taken)
    }

    /// Lets go of the rows' batches.
    pub(crate) fn release(&self, lists: &mut Lists) {
        self.parts.iter().for_each(|part| lists.release(part.batch));
    }
}
