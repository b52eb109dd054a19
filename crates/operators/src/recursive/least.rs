//! The least, or the greatest, number of each key inside of a loop: shortest paths, components.
//!
//! Law: that of [`super::reduce`], for `min` and `max` over numbers.
//!
//! ```text
//!   values of a key    9 @2, 4 @5             the least is 9 from round 2 on, 4 from 5 on
//!   an epoch brings    -9 @2, +6 @3           it puts out -9 @2, +6 @3, and at round 5: -6 +9
//! ```
//!
//! State: all values of each key by rounds ([`super::values`]), and the least one by rounds
//! ([`super::steps`]). What is not below any least value from its round on changes none, so it is
//! kept and not looked at. Otherwise the key is looked at in the round, and in each later round in
//! which its least value was, or may be, another one: these wait in the *agenda*.
//!
//! Cost: a table probe for each update; a place among the key's values for each value that a round
//! changes; a walk of the values up to the least for each key and round that is looked at. Updates
//! wait, and go to their keys' values sorted by key and value: the values of a key are a fetch from
//! memory, and neighbours that propose the same value are one change.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use anabranch_batch::{Batch, Columns, Diff, Diffs, Time, Times, gather, hash};
use arrow::array::{Array, ArrayRef, AsArray, Int64Array};
use arrow::compute::{can_cast_types, cast};
use arrow::datatypes::{DataType, Decimal64Type, Int64Type};

use super::kept::{KeptRows, Place};
use super::spec::LeastSpec;
use super::steps::{Step, Steps};
use super::values::{Least as LeastAt, LoopValue, Values};
use crate::aggregate::group_table::{GroupTable, Touched};

/// Rows that are looked up together.
const PORTION_ROWS: usize = 1 << 16;
/// Rows that wait for their round, at most: for each key, and at least. (A row that waits takes a
/// few hundredths of what the values of a key take.)
const WAITING_PER_KEY: usize = 4;
const WAITING_MIN: usize = 1 << 16;
const WAITING_MAX: usize = 1 << 23;

/// The least values of all rounds of all epochs.
#[derive(Clone)]
pub(super) struct Least {
    spec: LeastSpec,
    keys: GroupTable,
    values: Vec<Values>,
    steps: Steps,
    /// Whether the present epoch brought the key of a slot.
    is_born: Vec<bool>,
    born: Vec<u32>,
    /// Keys that were there before the epoch, and whose least value it may change.
    touched: HashMap<u32, TouchedKey>,
    /// Rows of the round that are not among the values yet, with their keys.
    waiting: Vec<WaitingProposal>,
    waiting_keys: Vec<Columns>,
    /// Keys whose least value may change in the round that is being absorbed.
    due: Vec<(u32, Place)>,
    /// The same for later rounds.
    agenda: BTreeMap<Time, Vec<(u32, Place)>>,
    kept: KeptRows,
    /// Slots that had no values at some moment of the epoch, with their hashes.
    vacant: Vec<(u32, u64)>,
}

/// A row that waits; its place is one of the keys that wait.
#[derive(Clone, Copy)]
struct WaitingProposal {
    slot: u32,
    place: Place,
    value: LoopValue,
    diff: Diff,
}

/// Steps in order of rounds.
#[derive(Clone)]
struct TouchedKey {
    old: Vec<Step>,
    /// Those up to the last round that was looked at.
    new: Vec<Step>,
}

/// What a round changes: places of keys, values, and diffs.
#[derive(Default)]
struct Changes {
    places: Vec<Place>,
    values: Vec<LoopValue>,
    diffs: Vec<Diff>,
}

impl LeastSpec {
    /// Whether values of this type are compared as integers of eight bytes.
    pub fn takes(value_type: &DataType) -> bool {
        match value_type {
            DataType::Decimal64(..) => true,
            DataType::UInt64 => false,
            _ => {
                let is_number = value_type.is_integer()
                    || matches!(value_type, DataType::Date32 | DataType::Date64 | DataType::Timestamp(..));
                is_number
                    && can_cast_types(value_type, &DataType::Int64)
                    && can_cast_types(&DataType::Int64, value_type)
            }
        }
    }

    fn values_of(&self, column: &ArrayRef) -> Int64Array {
        match column.data_type() {
            DataType::Int64 => column.as_primitive::<Int64Type>().clone(),
            DataType::Decimal64(..) => column.as_primitive::<Decimal64Type>().reinterpret_cast::<Int64Type>(),
            _ => cast(column, &DataType::Int64).expect("the type was checked").as_primitive::<Int64Type>().clone(),
        }
    }

    fn column_of(&self, values: Int64Array) -> ArrayRef {
        let value_type = &self.types[self.value];
        match value_type {
            DataType::Decimal64(..) => {
                let decimals = values.reinterpret_cast::<Decimal64Type>();
                Arc::new(decimals.with_data_type(value_type.clone()))
            }
            _ => {
                let values: ArrayRef = Arc::new(values);
                cast(&values, value_type).expect("the type was checked, and so was each value")
            }
        }
    }

    /// A number whose order is the wanted one: complements descend.
    fn ordered(&self, number: i64) -> i64 {
        if self.is_greatest { !number } else { number }
    }
}

impl Least {
    pub fn new(spec: LeastSpec) -> Least {
        let key_types: Vec<DataType> = spec.key.iter().map(|&column| spec.types[column].clone()).collect();
        Least {
            spec,
            keys: GroupTable::new(&key_types),
            values: Vec::new(),
            steps: Steps::default(),
            is_born: Vec::new(),
            born: Vec::new(),
            touched: HashMap::new(),
            waiting: Vec::new(),
            waiting_keys: Vec::new(),
            due: Vec::new(),
            agenda: BTreeMap::new(),
            kept: KeptRows::default(),
            vacant: Vec::new(),
        }
    }

    /// Takes some of the changes of a round.
    pub fn absorb(&mut self, batch: &Batch, round: Time) {
        for from in (0..batch.len()).step_by(PORTION_ROWS) {
            let rows = batch.slice(from, PORTION_ROWS.min(batch.len() - from)).flatten();
            if !rows.is_empty() {
                self.absorb_portion(rows, round);
            }
        }
    }

    fn absorb_portion(&mut self, batch: Batch, round: Time) {
        let batch = batch.with_key(&self.spec.key);
        let hashes = &batch.key().expect("the batch was just keyed").hashes;
        let keys: Columns = self.spec.key.iter().map(|&column| batch.column(column).clone()).collect();
        let Touched { of_row, slot, .. } = self.keys.touch(&keys, hashes);
        let n_slots = self.keys.n_slots().max(self.values.len());
        self.values.resize_with(n_slots, Values::new);
        self.is_born.resize(n_slots, false);
        self.steps.resize(n_slots);

        let values = self.spec.values_of(batch.column(self.spec.value));
        let block = self.waiting_keys.len() as u32;
        self.waiting.extend(of_row.iter().enumerate().map(|(row, &index)| {
            let value = match values.is_null(row) {
                true => LoopValue { is_null: true, number: 0 },
                false => LoopValue { is_null: false, number: self.spec.ordered(values.value(row)) },
            };
            let (slot, diff) = (slot[index as usize], batch.diffs().get(row));
            WaitingProposal { slot, place: (block, row as u32), value, diff }
        }));
        self.waiting_keys.push(keys);
        if self.waiting.len() >= (WAITING_PER_KEY * n_slots).clamp(WAITING_MIN, WAITING_MAX) {
            self.settle(round);
        }
    }

    /// Puts the rows that wait among the values of their keys.
    fn settle(&mut self, round: Time) {
        let mut waiting = std::mem::take(&mut self.waiting);
        waiting.sort_unstable_by_key(|row| (row.slot, row.value));
        let (mut due, mut empty) = (Vec::new(), Vec::new());
        for rows in waiting.chunk_by(|a, b| a.slot == b.slot) {
            let WaitingProposal { slot, place, .. } = rows[0];
            let mut is_due = false;
            for equal in rows.chunk_by(|a, b| a.value == b.value) {
                let diff: Diff = equal.iter().map(|row| row.diff).sum();
                is_due |= diff != 0 && self.take(slot, equal[0].value, round, diff);
            }
            if is_due {
                due.push((slot, place));
            }
            if self.values[slot as usize].is_empty() {
                empty.push((slot, place));
            }
        }
        if let Some(keys) = self.keys_of(&empty) {
            let hashes = hash::hash_columns(&keys, empty.len());
            self.vacant.extend(empty.iter().map(|(slot, _)| *slot).zip(hashes));
        }
        if let Some(keys) = self.keys_of(&due) {
            let rows: Vec<u32> = (0..due.len() as u32).collect();
            let block = self.kept.keep(&keys, &rows);
            self.due.extend(due.iter().zip(rows).map(|((slot, _), row)| (*slot, (block, row))));
        }
        self.waiting_keys.clear();
        waiting.clear();
        self.waiting = waiting;
    }

    /// The keys of some of the rows that wait; `None` without rows.
    fn keys_of(&self, rows: &[(u32, Place)]) -> Option<Columns> {
        let sources: Vec<&[ArrayRef]> = self.waiting_keys.iter().map(|keys| &**keys).collect();
        let places: Vec<Place> = rows.iter().map(|(_, place)| *place).collect();
        (!places.is_empty()).then(|| gather::interleave(&sources, &places))
    }

    /// Takes a change of a value. Returns whether the key must be looked at.
    fn take(&mut self, slot: u32, value: LoopValue, round: Time, diff: Diff) -> bool {
        let at = slot as usize;
        if !self.is_born[at] && self.steps.backward(slot).next().is_none() && !self.touched.contains_key(&slot) {
            self.is_born[at] = true;
            self.born.push(slot);
        }
        self.values[at].add(value, round, diff);
        if self.touched.contains_key(&slot) {
            return true;
        }
        let greatest = self.steps.greatest_from(slot, round);
        let changes = match greatest {
            Some(greatest) if diff > 0 => value < greatest,
            Some(greatest) => value <= greatest,
            None => true,
        };
        if changes && !self.is_born[at] {
            let mut old: Vec<Step> = self.steps.backward(slot).collect();
            old.reverse();
            let new = old.iter().copied().filter(|(from, _)| *from < round).collect();
            self.touched.insert(slot, TouchedKey { old, new });
        }
        changes
    }

    /// All changes of the round are absorbed. Returns what the round changes.
    pub fn finish(&mut self, round: Time) -> Option<Batch> {
        self.settle(round);
        let mut due = std::mem::take(&mut self.due);
        due.extend(self.agenda.remove(&round).unwrap_or_default());
        due.sort_unstable();
        due.dedup_by_key(|(slot, _)| *slot);
        let mut changes = Changes::default();
        for (slot, place) in due {
            let LeastAt { value: now, until } = self.values[slot as usize].least(round);
            let Some(touched) = self.touched.get_mut(&slot) else {
                // (A key that this epoch brought has no changes in rounds to come.)
                let before = self.steps.last(slot);
                if now != before {
                    changes.add(place, &[(before, -1), (now, 1)]);
                    self.steps.push(slot, (round, now));
                }
                continue;
            };
            let before = touched.new.last().and_then(|(_, value)| *value);
            if now != before {
                touched.new.push((round, now));
            }
            let (old_before, old_now, old_until) = around(&touched.old, round);
            changes.add(place, &[(before, -1), (now, 1), (old_before, 1), (old_now, -1)]);
            if let Some(again) = until.into_iter().chain(old_until).min() {
                self.agenda.entry(again).or_default().push((slot, place));
            }
        }
        let changes = changes.into_batch(&self.spec, &self.kept, round);
        if self.agenda.is_empty() {
            self.kept.clear();
        }
        changes
    }

    pub fn size_bytes(&self) -> usize {
        let values = self.values.iter().map(Values::size_bytes).sum::<usize>();
        let slots = self.values.capacity() * size_of::<Values>() + self.is_born.capacity();
        let waiting = self.waiting.capacity() * size_of::<WaitingProposal>();
        self.keys.size_bytes() + values + slots + self.steps.size_bytes() + waiting
    }

    /// The next round in which something may change.
    pub fn next_round(&self) -> Option<Time> {
        self.agenda.keys().next().copied()
    }

    /// The epoch is over: keys without values are given back.
    pub fn close(&mut self) {
        self.agenda.clear();
        self.kept.clear();
        // (The most rows of a round wait in the first epoch.)
        self.waiting.shrink_to(WAITING_MIN);
        std::mem::take(&mut self.born).into_iter().for_each(|slot| self.is_born[slot as usize] = false);
        for (slot, touched) in self.touched.drain() {
            if touched.new != touched.old {
                self.steps.replace(slot, &touched.new);
            }
        }
        let mut vacant = std::mem::take(&mut self.vacant);
        vacant.sort_unstable();
        vacant.dedup();
        for (slot, hash) in vacant {
            if self.values[slot as usize].is_empty() {
                self.steps.replace(slot, &[]);
                self.keys.release(slot, hash);
            }
        }
        if let Some(old_of_new) = self.keys.shrink() {
            let mut values = std::mem::take(&mut self.values);
            let mut moved = |old: &u32| std::mem::replace(&mut values[*old as usize], Values::new());
            self.values = old_of_new.iter().map(&mut moved).collect();
            self.steps.renumber(&old_of_new);
            self.is_born = vec![false; old_of_new.len()];
        }
    }
}

/// The value before a round, that from it on, and the first later round with another one.
fn around(steps: &[Step], round: Time) -> (Option<LoopValue>, Option<LoopValue>, Option<Time>) {
    let value_before = |at: usize| at.checked_sub(1).and_then(|at| steps[at].1);
    let before = steps.partition_point(|(from, _)| *from < round);
    let upto = steps.partition_point(|(from, _)| *from <= round);
    (value_before(before), value_before(upto), steps.get(upto).map(|(from, _)| *from))
}

impl Changes {
    /// Adds changes of one key, those of equal values summed up.
    fn add(&mut self, place: Place, changes: &[(Option<LoopValue>, Diff)]) {
        for (at, (value, _)) in changes.iter().enumerate() {
            let Some(number) = value else { continue };
            if changes[..at].iter().any(|(other, _)| other == value) {
                continue;
            }
            let sum: Diff = changes.iter().filter(|(other, _)| other == value).map(|(_, diff)| diff).sum();
            if sum != 0 {
                self.places.push(place);
                self.values.push(*number);
                self.diffs.push(sum);
            }
        }
    }

    fn into_batch(self, spec: &LeastSpec, kept: &KeptRows, round: Time) -> Option<Batch> {
        if self.places.is_empty() {
            return None;
        }
        let number = |value: &LoopValue| (!value.is_null).then(|| spec.ordered(value.number));
        let values = spec.column_of(self.values.iter().map(number).collect());
        let keys = kept.gather(&self.places);
        let columns: Columns = keys.iter().cloned().chain([values]).collect();
        let diffs = Diffs::Column(self.diffs.into()).simplify();
        Some(Batch::with_len(columns, self.places.len(), Times::Constant(round), diffs))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec(is_greatest: bool) -> LeastSpec {
        LeastSpec { key: vec![0], value: 1, is_greatest, types: vec![DataType::Int64, DataType::Int32] }
    }

    fn step(least: &mut Least, rows: &[(i64, Option<i32>, Diff)], round: Time) -> Vec<(i64, Option<i32>, Diff)> {
        let keys: ArrayRef = Arc::new(Int64Array::from_iter_values(rows.iter().map(|row| row.0)));
        let values: ArrayRef = Arc::new(rows.iter().map(|row| row.1).collect::<arrow::array::Int32Array>());
        let diffs = Diffs::Column(rows.iter().map(|row| row.2).collect::<Vec<_>>().into());
        if !rows.is_empty() {
            least.absorb(&Batch::new(vec![keys, values], Times::Constant(round), diffs), round);
        }
        let row = |batch: &Batch, at: usize| {
            let value = batch.column(1).as_primitive::<arrow::datatypes::Int32Type>();
            let key = batch.column(0).as_primitive::<Int64Type>().value(at);
            (key, value.is_valid(at).then(|| value.value(at)), batch.diffs().get(at))
        };
        let changes = least.finish(round);
        let mut all: Vec<_> =
            changes.iter().flat_map(|batch| (0..batch.len()).map(|at| row(batch, at)).collect::<Vec<_>>()).collect();
        all.sort_unstable();
        all
    }

    #[test]
    fn a_value_that_goes_leaves_the_next_one_of_each_round() {
        let mut least = Least::new(spec(false));
        assert_eq!(step(&mut least, &[(1, Some(9), 1), (2, None, 1)], 2), [(1, Some(9), 1), (2, None, 1)]);
        assert_eq!(step(&mut least, &[(1, Some(4), 1), (1, Some(9), 1)], 5), [(1, Some(4), 1), (1, Some(9), -1)]);
        least.close();
        // 9 has a reason at 5 as well, which is hidden by 4.
        assert_eq!(step(&mut least, &[(1, Some(9), -1)], 2), [(1, Some(9), -1)]);
        assert_eq!(step(&mut least, &[(1, Some(6), 1)], 3), [(1, Some(6), 1)]);
        assert_eq!(least.next_round(), Some(5));
        assert_eq!(step(&mut least, &[], 5), [(1, Some(6), -1), (1, Some(9), 1)]);
        assert_eq!(least.next_round(), None);
        least.close();
        // A value that loses from its round on is kept, and changes nothing.
        assert_eq!(step(&mut least, &[(1, Some(6), 1)], 4), []);
        assert!(least.touched.is_empty());
        least.close();
        assert_eq!(step(&mut least, &[(1, Some(6), -1)], 3), [(1, Some(6), -1)]);
        assert_eq!(least.next_round(), Some(4));
        assert_eq!(step(&mut least, &[], 4), [(1, Some(6), 1)]);
    }

    #[test]
    fn keys_whose_values_all_go_are_given_back() {
        let mut least = Least::new(spec(true));
        assert_eq!(step(&mut least, &[(1, Some(9), 1), (1, Some(12), 1), (2, None, 1)], 2).len(), 2);
        least.close();
        let gone = step(&mut least, &[(1, Some(9), -1), (1, Some(12), -1), (2, None, -1)], 2);
        assert_eq!(gone, [(1, Some(12), -1), (2, None, -1)]);
        least.close();
        assert!(least.keys.is_empty());
        assert_eq!(step(&mut least, &[(3, Some(1), 1)], 1), [(3, Some(1), 1)]);
    }
}
