//! What is to happen at known times.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use anabranch_batch::{END, Time};

/// Things to happen, in order of time: a queue when they are put in so, a heap for the rest.
#[derive(Debug)]
pub(crate) struct Agenda<T> {
    queue: VecDeque<(Time, T)>,
    rest: BinaryHeap<Reverse<(Time, T)>>,
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
            self.rest.push(Reverse((time, what)));
        }
    }

    /// The time of the next thing; [`END`] for none.
    #[inline]
    pub(crate) fn next_time(&self) -> Time {
        let queued = self.queue.front().map_or(END, |first| first.0);
        match self.rest.peek() {
            None => queued,
            Some(Reverse((time, _))) => queued.min(*time),
        }
    }

    /// The next thing, if it happens at or before `upto`.
    #[inline]
    pub(crate) fn pop(&mut self, upto: Time) -> Option<(Time, T)> {
        let queued = self.queue.front().map_or(END, |first| first.0);
        if let Some(Reverse((time, _))) = self.rest.peek()
            && *time < queued
        {
            return if *time <= upto { self.rest.pop().map(|Reverse(thing)| thing) } else { None };
        }
        if queued <= upto { self.queue.pop_front() } else { None }
    }

    /// Has each thing happen to what `new` makes of it; `new` keeps the order of things.
    pub(crate) fn renumber(&mut self, new: impl Fn(T) -> T) {
        self.queue.iter_mut().for_each(|(_, what)| *what = new(*what));
        let rest = std::mem::take(&mut self.rest).into_vec();
        self.rest = rest.into_iter().map(|Reverse((time, what))| Reverse((time, new(what)))).collect();
    }

    pub(crate) fn size_bytes(&self) -> usize {
        (self.queue.capacity() + self.rest.capacity()) * size_of::<(Time, T)>()
    }
}
