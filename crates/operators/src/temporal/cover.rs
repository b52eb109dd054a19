//! When keys are covered: the union of the lifetimes of one side's events, by key.
//!
//! Law: events begin in order of time. A **stretch** is a maximal lifetime in which events of the
//! key are in force without a gap; events that touch are of one stretch. Its end is what is known
//! so far: an event may lengthen it, and so may one whose end is not known yet, until it ends.
//!
//! ```text
//!     events      [3, 5)  [5, 8)  [6, 7)      [12, 14)
//!     stretches   [3, 8)                      [12, 14)
//! ```
//!
//! State: the last stretch of each key, and in a turn all that began in it, so that whatever was
//! covered by a stretch can still ask when that ended. Cost: some twenty instructions an event.

use anabranch_batch::{END, Time};

/// The stretches. See the module's page.
#[derive(Debug, Default)]
pub(crate) struct Cover {
    /// By slot: the key's last stretch.
    last: Vec<u32>,
    /// By stretch: its end so far. Between turns a key's stretch has the number of its slot; those
    /// that begin in a turn follow.
    ends: Vec<Time>,
    /// Slots of the stretches that began in this turn,
    begun: Vec<u32>,
    /// and when they did.
    starts: Vec<Time>,
    /// By slot: events in force without a known end,
    n_open: Vec<u32>,
    /// and while there are some, when the others will have ended.
    known: Vec<Time>,
    /// Events in force without a known end.
    n_open_all: usize,
}

impl Cover {
    /// Between turns: room for slots below `n_slots`.
    pub(crate) fn resize(&mut self, n_slots: usize) {
        let n = self.last.len();
        if n < n_slots {
            self.last.extend(n as u32..n_slots as u32);
            self.ends.resize(n_slots, Time::MIN);
            self.n_open.resize(n_slots, 0);
            self.known.resize(n_slots, Time::MIN);
        }
    }

    /// Events begin, in order of `starts`. Calls `begun` with the slot, the start, and the number
    /// of each stretch that begins: after all have begun, in order.
    pub(crate) fn begin(
        &mut self,
        starts: &[Time],
        ends: &[Time],
        slots: &[u32],
        mut begun: impl FnMut(u32, Time, u32),
    ) {
        let first = self.ends.len();
        if self.n_open_all > 0 || ends.contains(&END) {
            for ((&start, &end), &slot) in starts.iter().zip(ends).zip(slots) {
                self.begin_beside_open(slot, start, end);
            }
        } else {
            self.begin_known(starts, ends, slots);
        }
        let n_slots = self.last.len();
        for stretch in first..self.ends.len() {
            begun(self.begun[stretch - n_slots], self.starts[stretch - n_slots], stretch as u32);
        }
    }

    /// An event without a known end ends; returns whether the stretch then has an end.
    pub(crate) fn close(&mut self, slot: u32, time: Time) -> bool {
        let n_open = &mut self.n_open[slot as usize];
        if *n_open == 0 {
            return false;
        }
        *n_open -= 1;
        self.n_open_all -= 1;
        if *n_open == 0 {
            self.ends[self.last[slot as usize] as usize] = self.known[slot as usize].max(time);
        }
        *n_open == 0
    }

    /// The last stretch of a key.
    #[inline]
    pub(crate) fn last(&self, slot: u32) -> u32 {
        self.last[slot as usize]
    }

    /// When a stretch ends, as far as is known.
    #[inline]
    pub(crate) fn end(&self, stretch: u32) -> Time {
        self.ends[stretch as usize]
    }

    /// When the last stretch of a key ends, as far as is known.
    #[inline]
    pub(crate) fn end_of_key(&self, slot: u32) -> Time {
        self.end(self.last(slot))
    }

    /// Whether a stretch was there before the turn.
    #[inline]
    pub(crate) fn is_old(&self, stretch: u32) -> bool {
        (stretch as usize) < self.last.len()
    }

    /// Only the last stretch of each key is remembered, by the number of its slot.
    pub(crate) fn end_turn(&mut self) {
        let n_slots = self.last.len();
        for (stretch, &slot) in (n_slots..).zip(&self.begun) {
            if self.last[slot as usize] as usize == stretch {
                self.ends[slot as usize] = self.ends[stretch];
                self.last[slot as usize] = slot;
            }
        }
        self.ends.truncate(n_slots);
        self.begun.clear();
        self.starts.clear();
    }

    /// Whether nothing can be covered by a key's stretch any more from `time` on, if nothing
    /// begins.
    pub(crate) fn is_over(&self, slot: u32, time: Time) -> bool {
        self.end_of_key(slot) <= time
    }

    pub(crate) fn size_bytes(&self) -> usize {
        let words = self.last.capacity() + self.begun.capacity() + self.n_open.capacity();
        words * size_of::<u32>()
            + (self.ends.capacity() + self.starts.capacity() + self.known.capacity()) * size_of::<Time>()
    }

    /// Events begin, all with known ends. Whether a stretch does is for no processor to guess:
    /// there are no branches on data.
    fn begin_known(&mut self, starts: &[Time], ends: &[Time], slots: &[u32]) {
        let (n_slots, room) = (self.last.len(), self.ends.len() + slots.len());
        let mut next = self.ends.len();
        self.ends.resize(room, Time::MIN);
        self.begun.resize(room - n_slots, 0);
        self.starts.resize(room - n_slots, 0);
        for ((&start, &end), &slot) in starts.iter().zip(ends).zip(slots) {
            let last = &mut self.last[slot as usize];
            let covered = self.ends[*last as usize];
            let is_new = start > covered;
            (self.begun[next - n_slots], self.starts[next - n_slots]) = (slot, start);
            *last = if is_new { next as u32 } else { *last };
            self.ends[*last as usize] = if is_new { end } else { covered.max(end) };
            next += usize::from(is_new);
        }
        self.ends.truncate(next);
        self.begun.truncate(next - n_slots);
        self.starts.truncate(next - n_slots);
    }

    fn begin_beside_open(&mut self, slot: u32, start: Time, end: Time) {
        let at = slot as usize;
        if start > self.end_of_key(slot) {
            self.last[at] = self.ends.len() as u32;
            self.ends.push(Time::MIN);
            self.begun.push(slot);
            self.starts.push(start);
        }
        let covered = &mut self.ends[self.last[at] as usize];
        if self.n_open[at] == 0 {
            self.known[at] = *covered;
        }
        if end == END {
            self.n_open[at] += 1;
            self.n_open_all += 1;
        } else {
            self.known[at] = self.known[at].max(end);
        }
        *covered = if self.n_open[at] > 0 { END } else { self.known[at] };
    }
}
