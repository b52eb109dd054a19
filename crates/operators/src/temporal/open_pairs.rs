//! Pairs of a join of which one event has no known end.
//!
//! Law: a pair that [`OpenPairs::open`] names ends once: when its known end has come, or when an
//! event of it is ended, whichever comes first. State: the pairs in force, and those that are over
//! until everything that names them has come.

use std::collections::HashMap;

use anabranch_batch::{END, Time};

use super::agenda::Agenda;
use super::in_force::new_id;

/// The pairs. See the module's page.
#[derive(Debug, Default)]
pub(crate) struct OpenPairs {
    pairs: Vec<Pair>,
    free: Vec<u32>,
    /// The pairs of each start edge, by side and id.
    of_event: [HashMap<u32, Vec<u32>>; 2],
    /// Known ends.
    ends: Agenda<u32>,
    /// Pairs in force.
    n_in_force: usize,
}

/// A pair, in force or over.
#[derive(Clone, Copy, Debug)]
struct Pair {
    start: Time,
    ids: [u32; 2],
    /// Whether it has ended; then its number is free once nothing names it.
    is_over: bool,
    /// Events and agendas that name it.
    names: u8,
}

/// A pair that ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ended {
    pub(crate) ids: [u32; 2],
    pub(crate) start: Time,
    pub(crate) end: Time,
}

impl OpenPairs {
    /// A pair of events that end at `ends` is in force from `start` on; one of the ends is not
    /// known.
    pub(crate) fn open(&mut self, ids: [u32; 2], start: Time, ends: [Time; 2]) {
        let mut pair = Pair { start, ids, is_over: false, names: 0 };
        let number = self.free.pop().unwrap_or(self.pairs.len() as u32);
        for side in 0..2 {
            if ends[side] == END {
                self.of_event[side].entry(ids[side]).or_default().push(number);
                pair.names += 1;
            }
        }
        let end = ends[0].min(ends[1]);
        if end < END {
            self.ends.push(end, number);
            pair.names += 1;
        }
        match self.pairs.get_mut(number as usize) {
            Some(free) => *free = pair,
            None => self.pairs.push(pair),
        }
        self.n_in_force += 1;
    }

    /// Ends, at `time`, the pairs of a start edge.
    pub(crate) fn end_all_of(&mut self, side: usize, id: u32, time: Time, mut ended: impl FnMut(Ended)) {
        for number in self.of_event[side].remove(&id).unwrap_or_default() {
            self.end(number, time, &mut ended);
        }
    }

    /// Ends the pairs whose known end is at or before `upto`.
    pub(crate) fn end_due(&mut self, upto: Time, mut ended: impl FnMut(Ended)) {
        while let Some((time, number)) = self.ends.pop(upto) {
            self.end(number, time, &mut ended);
        }
    }

    /// The first of the known ends; [`END`] for none.
    pub(crate) fn next_end(&self) -> Time {
        self.ends.next_time()
    }

    /// Pairs in force.
    pub(crate) fn len(&self) -> usize {
        self.n_in_force
    }

    /// The events of a side have new ids: those that were kept, in order.
    pub(crate) fn renumber(&mut self, side: usize, kept: &[u32]) {
        let live = self.pairs.iter_mut().filter(|pair| !pair.is_over && pair.names > 0);
        live.for_each(|pair| pair.ids[side] = new_id(kept, pair.ids[side]));
        let of_event = std::mem::take(&mut self.of_event[side]);
        self.of_event[side] = of_event.into_iter().map(|(id, pairs)| (new_id(kept, id), pairs)).collect();
    }

    pub(crate) fn size_bytes(&self) -> usize {
        let names = self.of_event.iter().flat_map(|pairs| pairs.values());
        let names: usize = names.map(|pairs| size_of::<(u32, Vec<u32>)>() + pairs.capacity() * size_of::<u32>()).sum();
        names + self.pairs.capacity() * size_of::<Pair>() + self.free.capacity() * 4 + self.ends.size_bytes()
    }

    /// One of a pair's names is gone: it ends, if it has not.
    fn end(&mut self, number: u32, end: Time, ended: &mut impl FnMut(Ended)) {
        let pair = &mut self.pairs[number as usize];
        pair.names -= 1;
        if !std::mem::replace(&mut pair.is_over, true) {
            ended(Ended { ids: pair.ids, start: pair.start, end });
            self.n_in_force -= 1;
        }
        if pair.names == 0 {
            self.free.push(number);
        }
    }
}
