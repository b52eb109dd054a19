//! Histories of rows by slot: a count for each round that changes it.
//!
//! Law: the counts of a slot ascend by round, each round once, none is zero. Cost: 16 bytes a round
//! of a slot, 8 a slot.

use anabranch_batch::{Diff, Time};

const NONE: u32 = u32::MAX;

/// The histories of all slots, as lists in one vector.
#[derive(Clone, Default)]
pub(super) struct Histories {
    /// The latest round of each slot.
    last: Vec<u32>,
    entries: Vec<HistoryEntry>,
    /// An entry that is free, and leads to the others.
    free: Option<u32>,
}

#[derive(Clone, Copy)]
struct HistoryEntry {
    count: Diff,
    round: u32,
    /// The round before, of the same slot.
    before: u32,
}

impl Histories {
    /// Makes room for so many slots.
    pub fn resize(&mut self, n_slots: usize) {
        if self.last.len() < n_slots {
            self.last.resize(n_slots, NONE);
        }
    }

    pub fn size_bytes(&self) -> usize {
        self.last.capacity() * size_of::<u32>() + self.entries.capacity() * size_of::<HistoryEntry>()
    }

    pub fn is_empty(&self, slot: u32) -> bool {
        self.last[slot as usize] == NONE
    }

    /// The sum of all counts.
    pub fn total(&self, slot: u32) -> Diff {
        self.entries(slot).map(|entry| entry.count).sum()
    }

    /// The sum of the counts of all rounds up to this one.
    pub fn total_until(&self, slot: u32, round: Time) -> Diff {
        self.entries(slot).filter(|entry| Time::from(entry.round) <= round).map(|entry| entry.count).sum()
    }

    /// The first round after this one that has a count.
    pub fn next_after(&self, slot: u32, round: Time) -> Option<Time> {
        let rounds = self.entries(slot).map(|entry| Time::from(entry.round));
        rounds.take_while(|at| *at > round).last()
    }

    /// Rounds and counts, the earliest first.
    pub fn of(&self, slot: u32) -> Vec<(Time, Diff)> {
        let mut all: Vec<(Time, Diff)> =
            self.entries(slot).map(|entry| (Time::from(entry.round), entry.count)).collect();
        all.reverse();
        all
    }

    fn entries(&self, slot: u32) -> impl Iterator<Item = HistoryEntry> + '_ {
        let entry = |at: u32| (at != NONE).then(|| self.entries[at as usize]);
        std::iter::successors(entry(self.last[slot as usize]), move |last| entry(last.before))
    }

    /// Adds to the count of a round.
    pub fn add(&mut self, slot: u32, round: Time, count: Diff) {
        let round = number(round);
        let (mut later, mut at) = (NONE, self.last[slot as usize]);
        while at != NONE && self.entries[at as usize].round > round {
            (later, at) = (at, self.entries[at as usize].before);
        }
        if at == NONE || self.entries[at as usize].round < round {
            let new = self.make(HistoryEntry { count, round, before: at });
            return self.link(slot, later, new);
        }
        let HistoryEntry { count: now, before, .. } = &mut self.entries[at as usize];
        *now += count;
        if *now == 0 {
            let before = *before;
            self.link(slot, later, before);
            self.entries[at as usize].before = self.free.unwrap_or(NONE);
            self.free = Some(at);
        }
    }

    /// Slots have other numbers.
    pub fn renumber(&mut self, old_of_new: &[u32]) {
        self.last = old_of_new.iter().map(|&old| self.last[old as usize]).collect();
    }

    /// `at` comes before the entry `later`, or is the slot's latest.
    fn link(&mut self, slot: u32, later: u32, at: u32) {
        match later {
            NONE => self.last[slot as usize] = at,
            later => self.entries[later as usize].before = at,
        }
    }

    fn make(&mut self, entry: HistoryEntry) -> u32 {
        if let Some(at) = self.free {
            let next = self.entries[at as usize].before;
            self.free = (next != NONE).then_some(next);
            self.entries[at as usize] = entry;
            return at;
        }
        self.entries.push(entry);
        u32::try_from(self.entries.len() - 1).expect("a loop has fewer than four billion updates")
    }
}

pub(super) fn number(round: Time) -> u32 {
    u32::try_from(round).expect("a loop has fewer than four billion rounds")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_by_round_and_gone_when_zero() {
        let mut histories = Histories::default();
        histories.resize(2);
        histories.add(0, 3, 1);
        histories.add(0, 7, 2);
        histories.add(1, 5, 1);
        histories.add(0, 5, -4);
        histories.add(0, 1, 1);
        assert_eq!(histories.of(0), [(1, 1), (3, 1), (5, -4), (7, 2)]);
        assert_eq!((histories.total(0), histories.total(1)), (0, 1));
        assert_eq!((histories.total_until(0, 4), histories.total_until(0, 5)), (2, -2));
        assert_eq!((histories.next_after(0, 3), histories.next_after(0, 7)), (Some(5), None));
        for (round, count) in [(3, -1), (7, -2), (1, -1)] {
            histories.add(0, round, count);
        }
        assert_eq!(histories.of(0), [(5, -4)]);
        histories.add(1, 6, 9);
        histories.add(0, 5, 4);
        assert!(histories.is_empty(0));
        assert_eq!((histories.of(1), histories.entries.len()), (vec![(5, 1), (6, 9)], 5));
        histories.renumber(&[1]);
        assert_eq!(histories.of(0), [(5, 1), (6, 9)]);
    }
}
