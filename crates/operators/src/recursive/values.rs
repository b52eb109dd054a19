//! The values of one key in order, each with a count for every round that changes it.
//!
//! Law: values ascend, NULL last; of equal values rounds ascend; each (value, round) is there once,
//! with a count that is not zero. Cost: 16 bytes an entry and a move of the entries behind, for up
//! to [`FEW_MAX`] of them; a search tree beyond.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use anabranch_batch::{Diff, Time};

use super::histories::number;

/// So many entries lie in one vector at most: moving them costs less than a step in a tree.
const FEW_MAX: usize = 256;

/// A value that is ordered as a number; NULL comes after all others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct LoopValue {
    pub is_null: bool,
    pub number: i64,
}

/// See the module's page.
#[derive(Clone)]
pub(super) enum Values {
    Few(Vec<ValueEntry>),
    Many(BTreeMap<(LoopValue, u32), Diff>),
}

#[derive(Clone, Copy)]
pub(super) struct ValueEntry {
    number: i64,
    /// A round; and [`NULL_BIT`].
    round: u32,
    count: i32,
}

const NULL_BIT: u32 = 1 << 31;

/// The least value at a round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Least {
    /// `None` if no value has a positive count.
    pub value: Option<LoopValue>,
    /// The first later round in which this may be another one.
    pub until: Option<Time>,
}

impl Values {
    pub fn new() -> Values {
        Values::Few(Vec::new())
    }

    /// Bytes beside the value itself; those of a tree are an estimate.
    pub fn size_bytes(&self) -> usize {
        match self {
            Values::Few(entries) => entries.capacity() * size_of::<ValueEntry>(),
            Values::Many(entries) => entries.len() * 2 * size_of::<((LoopValue, u32), Diff)>(),
        }
    }

    pub fn is_empty(&self) -> bool {
        match self {
            Values::Few(entries) => entries.is_empty(),
            Values::Many(entries) => entries.is_empty(),
        }
    }

    /// Adds to the count of a value in a round.
    pub fn add(&mut self, value: LoopValue, round: Time, count: Diff) {
        let round = number(round);
        match self {
            Values::Few(entries) => {
                if !add_to_few(entries, value, round, count) {
                    let many = entries.iter().map(|entry| ((entry.value(), entry.round()), Diff::from(entry.count)));
                    *self = Values::Many(many.collect());
                    self.add(value, Time::from(round), count);
                }
            }
            Values::Many(entries) => {
                let sum = entries.entry((value, round)).or_insert(0);
                *sum += count;
                if *sum == 0 {
                    entries.remove(&(value, round));
                }
                if entries.is_empty() {
                    *self = Values::new();
                }
            }
        }
    }

    /// The least value at a round.
    pub fn least(&self, round: Time) -> Least {
        let round = number(round);
        match self {
            Values::Few(entries) => {
                least_of(entries.iter().map(|entry| (entry.value(), entry.round(), Diff::from(entry.count))), round)
            }
            Values::Many(entries) => {
                least_of(entries.iter().map(|((value, round), count)| (*value, *round, *count)), round)
            }
        }
    }
}

/// Returns whether the entries have room for it.
fn add_to_few(entries: &mut Vec<ValueEntry>, value: LoopValue, round: u32, count: Diff) -> bool {
    match entries.binary_search_by(|entry| entry.compare(value, round)) {
        Ok(at) => {
            let Ok(sum) = i32::try_from(Diff::from(entries[at].count) + count) else { return false };
            entries[at].count = sum;
            if sum == 0 {
                entries.remove(at);
            }
        }
        Err(at) => {
            let Ok(count) = i32::try_from(count) else { return false };
            if entries.len() == FEW_MAX {
                return false;
            }
            if entries.len() == entries.capacity() {
                // (Doubling would leave a quarter of all memory unused.)
                entries.reserve_exact(entries.len() / 4 + 1);
            }
            let null = if value.is_null { NULL_BIT } else { 0 };
            entries.insert(at, ValueEntry { number: value.number, round: round | null, count });
        }
    }
    true
}

/// The first value with a positive count. A change of it, or of one before it, may come later.
fn least_of(entries: impl Iterator<Item = (LoopValue, u32, Diff)>, round: u32) -> Least {
    let (mut value, mut sum, mut until) = (None, 0, None);
    for (next, at, count) in entries {
        if value != Some(next) {
            if sum > 0 {
                break;
            }
            (value, sum) = (Some(next), 0);
        }
        match at <= round {
            true => sum += count,
            false => until = Some(until.map_or(at, |first: u32| first.min(at))),
        }
    }
    Least { value: value.filter(|_| sum > 0), until: until.map(Time::from) }
}

impl ValueEntry {
    fn value(&self) -> LoopValue {
        LoopValue { is_null: self.round & NULL_BIT != 0, number: self.number }
    }

    fn round(&self) -> u32 {
        self.round & !NULL_BIT
    }

    fn compare(&self, value: LoopValue, round: u32) -> Ordering {
        (self.value(), self.round()).cmp(&(value, round))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(number: i64) -> LoopValue {
        LoopValue { is_null: false, number }
    }

    const NULL: LoopValue = LoopValue { is_null: true, number: 0 };

    #[test]
    fn the_least_value_of_a_round_is_the_first_with_a_positive_count() {
        let mut values = Values::new();
        assert_eq!(values.least(9), Least { value: None, until: None });
        values.add(NULL, 1, 1);
        values.add(value(5), 2, 1);
        values.add(value(3), 4, 1);
        values.add(value(3), 6, -1);
        let least = |round| values.least(round);
        assert_eq!(least(1), Least { value: Some(NULL), until: Some(2) });
        assert_eq!(least(2), Least { value: Some(value(5)), until: Some(4) });
        assert_eq!(least(4), Least { value: Some(value(3)), until: Some(6) });
        assert_eq!(least(6), Least { value: Some(value(5)), until: None });
    }

    #[test]
    fn many_values_and_great_counts_are_kept_as_few_are() {
        let (mut few, mut great) = (Values::new(), Values::new());
        for number in (0..600).rev() {
            few.add(value(number), 1, 1);
        }
        great.add(value(7), 1, 1 << 40);
        great.add(value(7), 1, 1 - (1 << 40));
        assert!(matches!((&few, &great), (Values::Many(_), Values::Many(_))));
        assert_eq!((few.least(1).value, great.least(1).value), (Some(value(0)), Some(value(7))));
        (0..600).for_each(|number| few.add(value(number), 1, -1));
        assert!(matches!(few, Values::Few(_)) && few.is_empty());
    }
}
