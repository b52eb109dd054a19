//! Events of one side of a join, by key: what is in force, and what of the turn at hand.
//!
//! Law: every row that is taken in has an id, one more than the row before it, until
//! [`InForce::keep_after`] numbers anew. Between [`InForce::enter`] and the event's end it is found
//! under its key's slot; a start edge is found by its start and its row, for its end edge, by hash.
//!
//! ```text
//!     slot     0  1  2              id        1  2  3  4  5
//!     newest   4  5  0              slot      0  1  0  0  1        (0 is no event: it ended before all time)
//!                                   older     0  0  1  3  2
//! ```
//!
//! The events of a key are a chain from the newest to the oldest, through plain columns by id. When
//! events end in the order in which they came, as those of one duration do, the first of a chain
//! that has ended is the end of the chain; otherwise those that have ended are unlinked by the
//! operator that walks past. Rows stay in the batches they came in. Every so often
//! ([`InForce::keep_after`]) those in force are copied out and the rest is forgotten, so memory is
//! in proportion to what is in force and to a turn. Cost: some twenty bytes and ten instructions a
//! row; copying is paid for by as many rows that came. Source: Trill 3.3 (state of the join, with
//! the property of one duration).

use std::collections::HashMap;
use std::ops::Range;

use anabranch_batch::equal::rows_equal;
use anabranch_batch::{Batch, Columns, END, Time, gather};
use arrow::array::{Array, ArrayRef};

/// No event.
pub(crate) const NONE: u32 = 0;

/// The events of one side. See the module's page.
#[derive(Debug)]
pub(crate) struct InForce {
    /// Batches by their first ids, which rise.
    held: Vec<Held>,
    /// By id: [`END`] while it is not known, the least time of what is no event.
    pub(crate) ends: Vec<Time>,
    /// By id: the key's slot.
    pub(crate) slots: Vec<u32>,
    /// By id: the next of its chain.
    older: Vec<u32>,
    /// By slot: the first of its chain.
    newest: Vec<u32>,
    /// Start edges in force by start and hash of their row.
    open: HashMap<(Time, u64), Vec<u32>>,
    /// Whether ends do not fall as ids rise.
    is_fifo: bool,
    /// Number of each held batch among those gathered; [`u32::MAX`] between gatherings.
    numbers: Vec<u32>,
}

/// A batch that rows lie in.
#[derive(Debug)]
struct Held {
    first: u32,
    columns: Columns,
}

impl Default for InForce {
    fn default() -> Self {
        InForce {
            held: Vec::new(),
            ends: vec![Time::MIN],
            slots: vec![u32::MAX],
            older: vec![NONE],
            newest: Vec::new(),
            open: HashMap::new(),
            is_fifo: true,
            numbers: Vec::new(),
        }
    }
}

impl InForce {
    /// The id that the next row gets.
    pub(crate) fn next_id(&self) -> u32 {
        u32::try_from(self.ends.len()).expect("a side has fewer than four billion rows")
    }

    /// Gives the rows of `batches` ids from `first` on; their ends and slots have been appended.
    /// Slots are below `n_slots`.
    pub(crate) fn hold(&mut self, batches: &[Batch], mut first: u32, n_slots: usize) {
        let new = first as usize;
        for batch in batches {
            self.held.push(Held { first, columns: batch.columns().clone() });
            first += batch.len() as u32;
        }
        assert_eq!((first, self.ends.len()), (self.next_id(), self.slots.len()), "each row has an end and a slot");
        self.is_fifo = self.is_fifo && self.ends[new - 1..].is_sorted();
        self.older.resize(self.ends.len(), NONE);
        self.numbers.resize(self.held.len(), u32::MAX);
        if self.newest.len() < n_slots {
            self.newest.resize(n_slots, NONE);
        }
    }

    /// Puts events in force.
    pub(crate) fn enter(&mut self, ids: Range<usize>) {
        let first = ids.start as u32;
        let (slots, older) = (&self.slots[ids.clone()], &mut self.older[ids]);
        for (at, (&slot, older)) in slots.iter().zip(older).enumerate() {
            *older = std::mem::replace(&mut self.newest[slot as usize], first + at as u32);
        }
    }

    /// Makes a start edge findable by its start and the hash of its row.
    pub(crate) fn open(&mut self, id: u32, start: Time, hash: u64) {
        self.open.entry((start, hash)).or_default().push(id);
    }

    /// Ends, at `time`, the start edge that began at `start` with a row as that of `id`, whose hash
    /// this is.
    pub(crate) fn close(&mut self, start: Time, hash: u64, id: u32, time: Time) -> Option<u32> {
        let ids = self.open.get(&(start, hash))?;
        let ended = self.place(id);
        let is_equal = |other: &u32| {
            let stored = self.place(*other);
            rows_equal(stored.0, &[stored.1], ended.0, &[ended.1])[0]
        };
        let at = ids.iter().position(is_equal)?;
        let ids = self.open.get_mut(&(start, hash))?;
        let id = ids.remove(at);
        if ids.is_empty() {
            self.open.remove(&(start, hash));
        }
        self.ends[id as usize] = time;
        self.is_fifo = false;
        Some(id)
    }

    /// Whether start edges are in force.
    pub(crate) fn has_open(&self) -> bool {
        !self.open.is_empty()
    }

    /// Whether what is said of the newest event of a key is said of all of them: when it has ended,
    /// all have.
    pub(crate) fn is_fifo(&self) -> bool {
        self.is_fifo
    }

    /// The newest event of a slot, in force or not.
    pub(crate) fn newest(&self, slot: u32) -> u32 {
        self.newest[slot as usize]
    }

    /// Of rows with these slots and times, those that find an event in force here, and its id: into
    /// `found`. Returns how many. All is [in order](InForce::is_fifo). There are no branches on
    /// data, since no processor would guess them.
    pub(crate) fn find_newest(&self, slots: &[u32], times: &[Time], found: &mut [(u32, u32)]) -> usize {
        assert!(slots.len() == times.len() && slots.len() <= found.len(), "there is room for every row");
        let mut n = 0;
        for (row, (&slot, &time)) in slots.iter().zip(times).enumerate() {
            let newest = self.newest[slot as usize];
            found[n] = (row as u32, newest);
            n += usize::from(self.ends[newest as usize] > time);
        }
        n
    }

    /// Whether it is plain that nothing of a slot is in force at `time`.
    #[inline]
    pub(crate) fn has_none(&self, slot: u32, time: Time) -> bool {
        let newest = self.newest[slot as usize];
        newest == NONE || (self.is_fifo && self.ends[newest as usize] <= time)
    }

    /// How many of the events from `first` on have ended at `upto`, if those are the first of them;
    /// else none.
    pub(crate) fn n_ended(&self, first: u32, upto: Time) -> usize {
        if self.is_fifo { self.ends[first as usize..].partition_point(|&end| end <= upto) } else { 0 }
    }

    /// Visits `id`, and what is older under its key, if in force at `time`. All is [in
    /// order](InForce::is_fifo).
    #[inline]
    pub(crate) fn each_from(&self, mut id: u32, time: Time, mut visit: impl FnMut(u32)) {
        while self.ends[id as usize] > time {
            visit(id);
            id = self.older[id as usize];
        }
    }

    /// Visits the events of a slot that are in force at `time`.
    #[inline]
    pub(crate) fn each(&mut self, slot: u32, time: Time, mut visit: impl FnMut(u32)) {
        if self.is_fifo {
            return self.each_from(self.newest[slot as usize], time, visit);
        }
        let (mut kept, mut id) = (NONE, self.newest[slot as usize]);
        while id != NONE {
            let older = self.older[id as usize];
            if self.ends[id as usize] > time {
                visit(id);
                kept = id;
            } else if kept == NONE {
                self.newest[slot as usize] = older;
            } else {
                self.older[kept as usize] = older;
            }
            id = older;
        }
    }

    /// Rows that have ids.
    pub(crate) fn len(&self) -> usize {
        self.ends.len() - 1
    }

    /// Forgets, between turns, all rows but those in force after `upto`. Returns the old ids of the
    /// new ones, which rise; the first is none's.
    pub(crate) fn keep_after(&mut self, upto: Time) -> Vec<u32> {
        let kept = self.ids_after(upto.min(END - 1));
        let n = kept.len();
        let columns = (n > 1).then(|| gather::compact_views(self.gather(&kept[1..])));
        self.held = columns.map(|columns| Held { first: 1, columns }).into_iter().collect();
        self.numbers.truncate(self.held.len());
        keep_only(&mut self.ends, &kept);
        keep_only(&mut self.slots, &kept);
        keep_only(&mut self.older, &kept);
        self.newest.fill(NONE);
        self.enter(1..n);
        self.open.values_mut().flatten().for_each(|id| *id = new_id(&kept, *id));
        self.is_fifo = self.ends.is_sorted();
        kept
    }

    /// The ids of events that end after `upto`, behind none's.
    fn ids_after(&self, upto: Time) -> Vec<u32> {
        if self.is_fifo {
            let from = self.ends.partition_point(|&end| end <= upto);
            return [NONE].into_iter().chain(from as u32..self.next_id()).collect();
        }
        let mut ids = vec![NONE; self.ends.len()];
        let mut n = 1;
        for (id, &end) in self.ends.iter().enumerate().skip(1) {
            ids[n] = id as u32;
            n += usize::from(end > upto);
        }
        ids.truncate(n);
        ids
    }

    /// The rows of these ids.
    pub(crate) fn gather(&mut self, ids: &[u32]) -> Columns {
        let mut sources: Vec<&[ArrayRef]> = Vec::new();
        let mut used = Vec::new();
        let mut picks = Vec::with_capacity(ids.len());
        // The batch that the last row lies in, and its number among the sources.
        let (mut batch, mut number) = (0..0, 0);
        for &id in ids {
            if !batch.contains(&id) {
                let at = self.held.partition_point(|held| held.first <= id) - 1;
                batch = self.held[at].first..self.held.get(at + 1).map_or(u32::MAX, |next| next.first);
                if self.numbers[at] == u32::MAX {
                    self.numbers[at] = sources.len() as u32;
                    sources.push(&self.held[at].columns);
                    used.push(at);
                }
                number = self.numbers[at];
            }
            picks.push((number, id - batch.start));
        }
        used.into_iter().for_each(|at| self.numbers[at] = u32::MAX);
        if let [only] = sources.as_slice() {
            let rows: Vec<u32> = picks.iter().map(|&(_, row)| row).collect();
            return gather::take(only, &rows);
        }
        gather::interleave(&sources, &picks)
    }

    pub(crate) fn size_bytes(&self) -> usize {
        let columns = self.held.iter().flat_map(|held| held.columns.iter());
        let columns: usize = columns.map(|column| column.get_buffer_memory_size()).sum();
        let open = self.open.len() * size_of::<((Time, u64), Vec<u32>)>();
        let words = self.slots.capacity() + self.older.capacity() + self.newest.capacity() + self.numbers.capacity();
        columns + open + self.ends.capacity() * size_of::<Time>() + words * size_of::<u32>()
    }

    /// Where a row lies.
    fn place(&self, id: u32) -> (&[ArrayRef], u32) {
        let held = &self.held[self.held.partition_point(|held| held.first <= id) - 1];
        (&held.columns, id - held.first)
    }
}

/// Entry `i` is from now on what `kept[i]` was; `kept` rises. Room is kept for about as many as
/// there were.
pub(crate) fn keep_only<T: Copy>(column: &mut Vec<T>, kept: &[u32]) {
    for (new, &old) in kept.iter().enumerate() {
        column[new] = column[old as usize];
    }
    if column.capacity() > 2 * column.len() {
        column.shrink_to(column.len());
    }
    column.truncate(kept.len());
}

/// What an id that was kept is now.
pub(crate) fn new_id(kept: &[u32], old: u32) -> u32 {
    kept.binary_search(&old).expect("what is still named is kept") as u32
}
