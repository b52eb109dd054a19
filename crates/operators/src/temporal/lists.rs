//! Rows by key, in lists from which any may be taken out.
//!
//! Law: a row is found under its key's slot from [`Lists::insert`] to [`Lists::remove`], the latest
//! first; both cost O(1). Rows stay in the batches they came in; when those keep alive much more
//! than is in the lists, the rows in them are copied out ([`Lists::settle`]), so memory is in
//! proportion to what is kept.

use anabranch_batch::{Columns, Time, gather};
use arrow::array::{Array, ArrayRef};

/// No entry.
pub(crate) const NONE: u32 = u32::MAX;
/// Rows that batches may keep alive for nothing.
const WASTE_MIN: usize = 1 << 16;
/// How many times as many rows as are in force batches may keep alive.
const WASTE_RATIO: usize = 4;

/// Where a row lies: the number of its batch, and its place there.
pub(crate) type Place = (u32, u32);

/// A row in a list.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ListEntry {
    pub(crate) start: Time,
    /// From when on it is of no use.
    pub(crate) end: Time,
    pub(crate) place: Place,
    pub(crate) slot: u32,
    /// For the operator that put it in.
    pub(crate) mark: Time,
    next: u32,
    previous: u32,
}

/// The rows of one side. See the module's page.
#[derive(Debug, Default)]
pub(crate) struct Lists {
    held: Vec<Held>,
    free_held: Vec<u32>,
    /// Rows of held batches.
    n_held_rows: usize,
    entries: Vec<ListEntry>,
    free: Vec<u32>,
    /// First entry of each slot.
    heads: Vec<u32>,
    /// Batches that no owner holds, until the turn is over.
    releasing: Vec<u32>,
}

/// A batch that rows lie in.
#[derive(Debug, Default)]
struct Held {
    columns: Option<Columns>,
    n_rows: usize,
    /// Entries, and its other owners.
    holds: usize,
}

impl Lists {
    /// Keeps a batch, once for the caller; returns its number.
    pub(crate) fn hold_batch(&mut self, columns: &Columns, n_rows: usize) -> u32 {
        let held = Held { columns: Some(columns.clone()), n_rows, holds: 1 };
        self.n_held_rows += n_rows;
        match self.free_held.pop() {
            Some(number) => {
                self.held[number as usize] = held;
                number
            }
            None => {
                self.held.push(held);
                self.held.len() as u32 - 1
            }
        }
    }

    #[inline]
    fn hold(&mut self, batch: u32) {
        self.held[batch as usize].holds += 1;
    }

    /// Takes a hold of a batch back. What no owner holds any more can still be gathered until the
    /// next [`Lists::settle`].
    #[inline]
    pub(crate) fn release(&mut self, batch: u32) {
        let held = &mut self.held[batch as usize];
        held.holds -= 1;
        if held.holds == 0 {
            self.releasing.push(batch);
        }
    }

    /// The turn is over: lets go of the batches that no owner holds any more, and of those that
    /// hold little.
    pub(crate) fn settle(&mut self) {
        for batch in std::mem::take(&mut self.releasing) {
            let held = &mut self.held[batch as usize];
            if held.holds == 0 && held.columns.take().is_some() {
                self.n_held_rows -= held.n_rows;
                self.free_held.push(batch);
            }
        }
        if self.n_held_rows > WASTE_MIN && self.n_held_rows > WASTE_RATIO * self.len() {
            self.compact();
        }
    }

    /// Room for slots below `n_slots`.
    pub(crate) fn resize(&mut self, n_slots: usize) {
        if self.heads.len() < n_slots {
            self.heads.resize(n_slots, NONE);
        }
    }

    /// Puts a row into its key's list, first.
    #[inline]
    pub(crate) fn insert(&mut self, slot: u32, place: Place, start: Time, end: Time, mark: Time) -> u32 {
        self.hold(place.0);
        let head = self.heads[slot as usize];
        let entry = ListEntry { start, end, place, slot, mark, next: head, previous: NONE };
        let id = match self.free.pop() {
            Some(id) => {
                self.entries[id as usize] = entry;
                id
            }
            None => {
                self.entries.push(entry);
                self.entries.len() as u32 - 1
            }
        };
        if head != NONE {
            self.entries[head as usize].previous = id;
        }
        self.heads[slot as usize] = id;
        id
    }

    /// Takes a row out.
    #[inline]
    pub(crate) fn remove(&mut self, id: u32) {
        let ListEntry { slot, place, next, previous, .. } = self.entries[id as usize];
        match previous {
            NONE => self.heads[slot as usize] = next,
            previous => self.entries[previous as usize].next = next,
        }
        if next != NONE {
            self.entries[next as usize].previous = previous;
        }
        self.entries[id as usize].slot = NONE;
        self.free.push(id);
        self.release(place.0);
    }

    /// The first entry of a slot, or [`NONE`].
    #[inline]
    pub(crate) fn first(&self, slot: u32) -> u32 {
        self.heads[slot as usize]
    }

    /// The entry after another in its slot, or [`NONE`].
    #[inline]
    pub(crate) fn next(&self, id: u32) -> u32 {
        self.entries[id as usize].next
    }

    #[inline]
    pub(crate) fn get(&self, id: u32) -> &ListEntry {
        &self.entries[id as usize]
    }

    /// Rows in the lists.
    pub(crate) fn len(&self) -> usize {
        self.entries.len() - self.free.len()
    }

    /// Takes out the rows that are of no use from `upto` on.
    pub(crate) fn remove_ended(&mut self, upto: Time) {
        for id in 0..self.entries.len() as u32 {
            let ListEntry { slot, end, .. } = self.entries[id as usize];
            if slot != NONE && end <= upto {
                self.remove(id);
            }
        }
    }

    /// Copies the rows in the lists into one batch; no other owner may hold a batch.
    fn compact(&mut self) {
        let live: Vec<u32> =
            (0..self.entries.len() as u32).filter(|&id| self.entries[id as usize].slot != NONE).collect();
        let places: Vec<Place> = live.iter().map(|&id| self.entries[id as usize].place).collect();
        let columns = (!places.is_empty()).then(|| self.gather(&places));
        self.held = columns
            .into_iter()
            .map(|columns| Held { columns: Some(columns), n_rows: places.len(), holds: places.len() })
            .collect();
        self.free_held.clear();
        self.n_held_rows = places.len();
        for (row, &id) in live.iter().enumerate() {
            self.entries[id as usize].place = (0, row as u32);
        }
    }

    /// The rows at these places.
    pub(crate) fn gather(&self, places: &[Place]) -> Columns {
        let mut dense = vec![NONE; self.held.len()];
        let mut sources: Vec<&[ArrayRef]> = Vec::new();
        let mut picks = Vec::with_capacity(places.len());
        for &(batch, row) in places {
            let number = &mut dense[batch as usize];
            if *number == NONE {
                *number = sources.len() as u32;
                sources.push(self.held[batch as usize].columns.as_ref().expect("what is gathered is held"));
            }
            picks.push((*number, row));
        }
        if let [only] = sources.as_slice() {
            let rows: Vec<u32> = picks.iter().map(|&(_, row)| row).collect();
            return gather::take(only, &rows);
        }
        gather::interleave(&sources, &picks)
    }

    pub(crate) fn size_bytes(&self) -> usize {
        let columns = self.held.iter().filter_map(|held| held.columns.as_ref());
        let columns: usize = columns.flat_map(|columns| columns.iter()).map(|c| c.get_buffer_memory_size()).sum();
        columns + self.entries.capacity() * size_of::<ListEntry>() + self.heads.capacity() * size_of::<u32>()
    }
}
