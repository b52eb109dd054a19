//! Rows that wait for their latency.
//!
//! Law: an entry keeps its number from [`Waiting::enter`] to [`Waiting::leave`]. Cost: a row is
//! copied only if it still waits when its batch has been worked off ([`Waiting::keep`]), all such
//! rows of a batch at once.

use anabranch_batch::{Columns, Time};

use crate::temporal::rows::RowStore;

/// Rows that wait for their latency.
#[derive(Debug, Default)]
pub(super) struct WaitingEvents {
    pub(super) store: RowStore,
    entries: Vec<WaitingEvent>,
    free: Vec<u32>,
}

/// A row that waits.
#[derive(Clone, Copy, Debug)]
pub(super) struct WaitingEvent {
    pub(super) place: Place,
    pub(super) time: Time,
    pub(super) until: Time,
    /// Of an end edge: the number of its contents, held, by which its start edge is found if that
    /// came late meanwhile.
    pub(super) contents: Option<u32>,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Place {
    /// In the batch at hand.
    Fresh(u32),
    /// In the store.
    Stored(u32),
    /// Let through.
    Gone,
}

impl WaitingEvents {
    /// Keeps an entry; its number.
    pub(super) fn enter(&mut self, entry: WaitingEvent) -> u32 {
        match self.free.pop() {
            Some(number) => {
                self.entries[number as usize] = entry;
                number
            }
            None => {
                self.entries.push(entry);
                self.entries.len() as u32 - 1
            }
        }
    }

    /// Takes an entry out.
    pub(super) fn leave(&mut self, number: u32) -> WaitingEvent {
        self.free.push(number);
        let entry = self.entries[number as usize];
        self.entries[number as usize].place = Place::Gone;
        entry
    }

    pub(super) fn size_bytes(&self) -> usize {
        self.store.size_bytes() + self.entries.capacity() * size_of::<WaitingEvent>()
    }

    /// Copies the rows of a batch that still wait, of those that `entered` with it.
    pub(super) fn keep(&mut self, columns: &Columns, entered: &[u32]) {
        let mut numbers = entered.to_vec();
        numbers.sort_unstable();
        numbers.dedup();
        let row_of = |number: u32| match self.entries[number as usize].place {
            Place::Fresh(row) => Some((number, row)),
            Place::Stored(_) | Place::Gone => None,
        };
        let fresh: Vec<(u32, u32)> = numbers.into_iter().filter_map(row_of).collect();
        let rows: Vec<u32> = fresh.iter().map(|&(_, row)| row).collect();
        for ((number, _), id) in fresh.iter().zip(self.store.add(columns, &rows)) {
            self.entries[*number as usize].place = Place::Stored(id);
        }
    }
}

impl WaitingEvent {
    /// A row of the batch at hand.
    pub(super) fn fresh(row: usize, time: Time, until: Time) -> WaitingEvent {
        WaitingEvent { place: Place::Fresh(row as u32), time, until, contents: None }
    }

    /// The end of an event that begins at `start`, and one tick later at the earliest.
    pub(super) fn ending(self, start: Time) -> WaitingEvent {
        WaitingEvent { time: self.time.max(start.saturating_add(1)), until: start, ..self }
    }
}
