//! The least value of each key by rounds: a step for each round from which on it is another one.
//!
//! Law: the steps of a slot ascend by round, and neighbours differ. Cost: 16 bytes a step, 4 a
//! slot.

use anabranch_batch::Time;

use super::histories::number;
use super::values::LoopValue;

const NONE: u32 = u32::MAX;
const NULL_BIT: u32 = 1 << 31;
const ABSENT_BIT: u32 = 1 << 30;
const ROUND_MAX: u32 = ABSENT_BIT - 1;

/// The steps of all slots, as lists in one vector, the latest step first.
#[derive(Clone, Default)]
pub(super) struct Steps {
    last: Vec<u32>,
    entries: Vec<StepEntry>,
    /// An entry that is free, and leads to the others.
    free: Option<u32>,
}

/// A value from a round on; `None` where the key has none.
pub(super) type Step = (Time, Option<LoopValue>);

#[derive(Clone, Copy)]
struct StepEntry {
    number: i64,
    /// A round; and bits of the value.
    round: u32,
    before: u32,
}

impl Steps {
    /// Makes room for so many slots.
    pub fn resize(&mut self, n_slots: usize) {
        self.last.resize(n_slots.max(self.last.len()), NONE);
    }

    pub fn size_bytes(&self) -> usize {
        self.last.capacity() * size_of::<u32>() + self.entries.capacity() * size_of::<StepEntry>()
    }

    /// The steps of a slot, the latest first.
    pub fn backward(&self, slot: u32) -> impl Iterator<Item = Step> + '_ {
        let entry = |at: u32| (at != NONE).then(|| self.entries[at as usize]);
        std::iter::successors(entry(self.last[slot as usize]), move |last| entry(last.before)).map(StepEntry::step)
    }

    /// The value in the end.
    pub fn last(&self, slot: u32) -> Option<LoopValue> {
        self.backward(slot).next().and_then(|(_, value)| value)
    }

    /// The greatest value of all rounds from this one on; `None` if there is a round without a
    /// value.
    pub fn greatest_from(&self, slot: u32, round: Time) -> Option<LoopValue> {
        let mut greatest: Option<LoopValue> = None;
        for (from, value) in self.backward(slot) {
            greatest = greatest.max(Some(value?));
            if from <= round {
                return greatest;
            }
        }
        None
    }

    /// Adds a step behind all others.
    pub fn push(&mut self, slot: u32, (round, value): Step) {
        let round = number(round);
        assert!(round <= ROUND_MAX, "a loop with aggregates has fewer than a billion rounds");
        let bits = match value {
            None => ABSENT_BIT,
            Some(LoopValue { is_null, .. }) => NULL_BIT * u32::from(is_null),
        };
        let number = value.map_or(0, |value| value.number);
        let entry = StepEntry { number, round: round | bits, before: self.last[slot as usize] };
        self.last[slot as usize] = self.make(entry);
    }

    /// Replaces the steps of a slot.
    pub fn replace(&mut self, slot: u32, steps: &[Step]) {
        let mut at = std::mem::replace(&mut self.last[slot as usize], NONE);
        while at != NONE {
            let before = std::mem::replace(&mut self.entries[at as usize].before, self.free.unwrap_or(NONE));
            self.free = Some(at);
            at = before;
        }
        steps.iter().for_each(|step| self.push(slot, *step));
    }

    /// Slots have other numbers.
    pub fn renumber(&mut self, old_of_new: &[u32]) {
        self.last = old_of_new.iter().map(|&old| self.last[old as usize]).collect();
    }

    fn make(&mut self, entry: StepEntry) -> u32 {
        if let Some(at) = self.free {
            let next = std::mem::replace(&mut self.entries[at as usize], entry).before;
            self.free = (next != NONE).then_some(next);
            return at;
        }
        self.entries.push(entry);
        u32::try_from(self.entries.len() - 1).expect("a loop has fewer than four billion updates")
    }
}

impl StepEntry {
    fn step(self) -> Step {
        let value = LoopValue { is_null: self.round & NULL_BIT != 0, number: self.number };
        (Time::from(self.round & ROUND_MAX), (self.round & ABSENT_BIT == 0).then_some(value))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_found_by_round_and_replaced() {
        let value = |number| Some(LoopValue { is_null: false, number });
        let null = Some(LoopValue { is_null: true, number: 0 });
        let mut steps = Steps::default();
        steps.resize(1);
        [(1, null), (3, value(9)), (6, value(4))].into_iter().for_each(|step| steps.push(0, step));
        assert_eq!([1, 2, 3, 7].map(|round| steps.greatest_from(0, round)), [null, null, value(9), value(4)]);
        assert_eq!((steps.greatest_from(0, 0), steps.last(0)), (None, value(4)));
        steps.replace(0, &[(2, value(5)), (4, None)]);
        assert_eq!(steps.backward(0).collect::<Vec<_>>(), [(4, None), (2, value(5))]);
        assert_eq!((steps.greatest_from(0, 2), steps.entries.len()), (None, 3));
    }
}
