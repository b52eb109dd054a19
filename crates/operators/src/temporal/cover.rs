//! When keys are covered: the union of the lifetimes of one side's events, by key.
//!
//! Law: events begin in order of time. A **stretch** is a maximal lifetime in which events of the key are in force without a gap; events that touch are of one
//! stretch. Its end is what is known so far: an event may lengthen it, and so may one whose end is not known yet, until it ends.
//!
//! ```text
//!     events      [3, 5)  [5, 8)  [6, 7)      [12, 14)
//!     stretches   [3, 8)                      [12, 14)
//! ```
//!
//! State: the last stretch of each key, and in a turn all that began in it, so that whatever was covered by a stretch can still ask when that ended. Cost: some ten instructions an event.

use anabranch_batch::{END, Time};

/// The stretches. See the module's page.
#[derive(Debug, Default)]
pub(crate) struct Cover {
    /// By slot: the key's last stretch.
    last: Vec<u32>,
    /// By stretch: its end so far. Between turns a key's stretch has the number of its slot; those that begin in a turn follow.
    ends: Vec<Time>,
    /// Slots of the stretches that began in this turn.
    begun: Vec<u32>,
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

    /// An event begins; returns whether a stretch does.
    #[inline]
    pub(crate) fn begin(&mut self, slot: u32, start: Time, end: Time) -> bool {
        if end == END || self.n_open_all > 0 {
            return self.begin_beside_open(slot, start, end);
        }
        let covered = &mut self.ends[self.last[slot as usize] as usize];
        if start <= *covered {
            *covered = end.max(*covered);
            return false;
        }
        self.begin_stretch(slot, end);
        true
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
    }

    /// Whether nothing can be covered by a key's stretch any more from `time` on, if nothing begins.
    pub(crate) fn is_over(&self, slot: u32, time: Time) -> bool {
        self.end_of_key(slot) <= time
    }

    pub(crate) fn size_bytes(&self) -> usize {
        let words = self.last.capacity() + self.begun.capacity() + self.n_open.capacity();
        words * size_of::<u32>() + (self.ends.capacity() + self.known.capacity()) * size_of::<Time>()
    }

    #[inline]
    fn begin_stretch(&mut self, slot: u32, end: Time) {
        self.last[slot as usize] = self.ends.len() as u32;
        self.ends.push(end);
        self.begun.push(slot);
    }

    fn begin_beside_open(&mut self, slot: u32, start: Time, end: Time) -> bool {
        let is_new = start > self.end_of_key(slot);
        if is_new {
            self.begin_stretch(slot, Time::MIN);
        }
        let at = slot as usize;
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
        is_new
    }
}
