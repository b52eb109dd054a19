//! Events in force, by key: what joins remember of a side.
//!
//! Law: an event is found under its key's slot from [`InForce::insert`] to [`InForce::remove`]; both cost O(1). A start edge is found by its start and its row,
//! for its end edge, by hash. Rows stay in the batches they came in; when those keep alive much more than is in force, the rows in force are
//! copied out ([`InForce::compact`]), so memory is in proportion to what is in force.

use std::collections::HashMap;

use anabranch_batch::equal::rows_equal;
use anabranch_batch::{Columns, END, Time, gather};
use arrow::array::{Array, ArrayRef};

/// No entry.
pub(crate) const NONE: u32 = u32::MAX;
/// Rows that batches may keep alive for nothing.
const WASTE_MIN: usize = 1 << 16;
/// How many times as many rows as are in force batches may keep alive.
const WASTE_RATIO: usize = 4;

/// Where a row lies: the number of its batch, and its place there.
pub(crate) type Place = (u32, u32);

/// An event in force.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Entry {
    pub(crate) start: Time,
    /// [`END`] while it is not known.
    pub(crate) end: Time,
    pub(crate) place: Place,
    pub(crate) slot: u32,
    /// For whoever put it in.
    pub(crate) mark: Time,
    next: u32,
    previous: u32,
}

/// The events of one side. See the module's page.
#[derive(Debug, Default)]
pub(crate) struct InForce {
    held: Vec<Held>,
    free_held: Vec<u32>,
    /// Rows of held batches.
    n_held_rows: usize,
    entries: Vec<Entry>,
    free: Vec<u32>,
    /// First entry of each slot.
    heads: Vec<u32>,
    /// Start edges by start and hash of their row.
    open: HashMap<(Time, u64), Vec<u32>>,
    /// Batches that nobody holds, until the turn is over.
    releasing: Vec<u32>,
}

/// A batch that rows in force lie in.
#[derive(Debug, Default)]
struct Held {
    columns: Option<Columns>,
    n_rows: usize,
    /// Entries, and whoever else holds it.
    holds: usize,
}

impl InForce {
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

    /// Holds a batch once more.
    #[inline]
    pub(crate) fn hold(&mut self, batch: u32) {
        self.held[batch as usize].holds += 1;
    }

    /// Takes a hold of a batch back. What nobody holds any more can still be gathered until the next [`InForce::settle`].
    #[inline]
    pub(crate) fn release(&mut self, batch: u32) {
        let held = &mut self.held[batch as usize];
        held.holds -= 1;
        if held.holds == 0 {
            self.releasing.push(batch);
        }
    }

    /// Lets go of the batches that nobody holds any more.
    pub(crate) fn settle(&mut self) {
        for batch in std::mem::take(&mut self.releasing) {
            let held = &mut self.held[batch as usize];
            if held.holds == 0 && held.columns.take().is_some() {
                self.n_held_rows -= held.n_rows;
                self.free_held.push(batch);
            }
        }
    }

    /// Room for slots below `n_slots`.
    pub(crate) fn resize(&mut self, n_slots: usize) {
        if self.heads.len() < n_slots {
            self.heads.resize(n_slots, NONE);
        }
    }

    /// Puts an event in force.
    #[inline]
    pub(crate) fn insert(&mut self, slot: u32, place: Place, start: Time, end: Time, mark: Time) -> u32 {
        self.hold(place.0);
        let head = self.heads[slot as usize];
        let entry = Entry { start, end, place, slot, mark, next: head, previous: NONE };
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

    /// Makes a start edge findable by its row, whose hash this is.
    pub(crate) fn open(&mut self, id: u32, hash: u64) {
        self.open.entry((self.entries[id as usize].start, hash)).or_default().push(id);
    }

    /// The start edge that began at `start` with the row at `row` of `columns`; it is no longer findable.
    pub(crate) fn close(&mut self, start: Time, hash: u64, columns: &[ArrayRef], row: u32) -> Option<u32> {
        let ids = self.open.get_mut(&(start, hash))?;
        let is_equal = |id: &u32| {
            let (batch, place) = self.entries[*id as usize].place;
            let stored = self.held[batch as usize].columns.as_ref().expect("entries hold their batches");
            rows_equal(stored, &[place], columns, &[row])[0]
        };
        let at = ids.iter().position(is_equal)?;
        let id = ids.remove(at);
        if ids.is_empty() {
            self.open.remove(&(start, hash));
        }
        Some(id)
    }

    /// Takes an event out of force. A start edge has been closed.
    #[inline]
    pub(crate) fn remove(&mut self, id: u32) {
        let Entry { slot, place, next, previous, .. } = self.entries[id as usize];
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
    pub(crate) fn get(&self, id: u32) -> &Entry {
        &self.entries[id as usize]
    }

    #[inline]
    pub(crate) fn mark(&mut self, id: u32, mark: Time) {
        self.entries[id as usize].mark = mark;
    }

    /// Events in force.
    pub(crate) fn len(&self) -> usize {
        self.entries.len() - self.free.len()
    }

    /// Removes the events that ended at or before `upto`.
    pub(crate) fn remove_ended(&mut self, upto: Time) {
        for id in 0..self.entries.len() as u32 {
            let Entry { slot, end, .. } = self.entries[id as usize];
            if slot != NONE && end <= upto {
                self.remove(id);
            }
        }
    }

    /// Whether batches keep much more alive than is in force.
    pub(crate) fn is_wasteful(&self) -> bool {
        self.n_held_rows > WASTE_MIN && self.n_held_rows > WASTE_RATIO * self.len()
    }

    /// Copies, between turns, the rows in force, and those at `others`, into one batch; returns the new places of `others`. Holds of `others` move along; nobody else may hold a batch.
    pub(crate) fn compact(&mut self, others: &[Place]) -> Vec<Place> {
        let live: Vec<u32> =
            (0..self.entries.len() as u32).filter(|&id| self.entries[id as usize].slot != NONE).collect();
        let places: Vec<Place> =
            live.iter().map(|&id| self.entries[id as usize].place).chain(others.iter().copied()).collect();
        if places.is_empty() {
            self.held.clear();
            self.free_held.clear();
            self.n_held_rows = 0;
            return vec![];
        }
        let columns = self.gather(&places);
        self.held = vec![Held { columns: Some(columns), n_rows: places.len(), holds: places.len() }];
        self.free_held.clear();
        self.n_held_rows = places.len();
        for (row, &id) in live.iter().enumerate() {
            self.entries[id as usize].place = (0, row as u32);
        }
        (live.len()..places.len()).map(|row| (0, row as u32)).collect()
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
        let open = self.open.len() * size_of::<((Time, u64), Vec<u32>)>();
        columns + self.entries.capacity() * size_of::<Entry>() + self.heads.capacity() * size_of::<u32>() + open
    }
}

/// Things to happen, in order of time: a queue when they are put in so, a heap for the rest.
#[derive(Debug)]
pub(crate) struct Agenda<T> {
    queue: std::collections::VecDeque<(Time, T)>,
    rest: std::collections::BinaryHeap<std::cmp::Reverse<(Time, T)>>,
}

impl<T: Ord> Default for Agenda<T> {
    fn default() -> Self {
        Agenda { queue: Default::default(), rest: Default::default() }
    }
}

impl<T: Ord + Copy> Agenda<T> {
    /// Has something happen at `time`; not for [`END`].
    #[inline]
    pub(crate) fn push(&mut self, time: Time, what: T) {
        debug_assert!(time < END);
        if self.queue.back().is_none_or(|last| last.0 <= time) {
            self.queue.push_back((time, what));
        } else {
            self.rest.push(std::cmp::Reverse((time, what)));
        }
    }

    /// The time of the next thing; [`END`] for none.
    #[inline]
    pub(crate) fn next_time(&self) -> Time {
        let queued = self.queue.front().map_or(END, |first| first.0);
        match self.rest.peek() {
            None => queued,
            Some(std::cmp::Reverse((time, _))) => queued.min(*time),
        }
    }

    /// The next thing, if it happens at or before `upto`.
    #[inline]
    pub(crate) fn pop(&mut self, upto: Time) -> Option<(Time, T)> {
        let queued = self.queue.front().map_or(END, |first| first.0);
        if let Some(std::cmp::Reverse((time, _))) = self.rest.peek()
            && *time < queued
        {
            return if *time <= upto { self.rest.pop().map(|std::cmp::Reverse(thing)| thing) } else { None };
        }
        if queued <= upto { self.queue.pop_front() } else { None }
    }

    pub(crate) fn size_bytes(&self) -> usize {
        (self.queue.capacity() + self.rest.capacity()) * size_of::<(Time, T)>()
    }
}
