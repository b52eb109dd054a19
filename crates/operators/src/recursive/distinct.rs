//! DISTINCT inside of a loop.
//!
//! Law: as that of [`super::reduce`], for the function that has each row with a positive count once.
//!
//! ```text
//!   history of a row   +1 @2, +1 @6           the row is there from round 2 on
//!   an epoch brings    -1 @2                  it puts out -1 @2, and at round 6: +1 @6
//! ```
//!
//! State: the history of each row: a count for each round that changes it, in the order of rounds.
//! Rows that an epoch is the first to bring have no other history, so they are evaluated as they come.
//! The old histories of other rows are kept beside for the epoch, and such a row is looked at again in
//! each later round of its old history (the *agenda*): that round may have changed what it says.
//!
//! Cost: a table probe an update, and the length of the row's history. Source: differential
//! dataflow's `threshold`.

use std::collections::{BTreeMap, HashMap};

use anabranch_batch::{Batch, Diff, Diffs, Time, Times, gather};
use arrow::array::ArrayRef;
use arrow::datatypes::DataType;

use super::histories::Histories;
use crate::aggregate::group_table::{GroupTable, Touched};

/// The distinct rows of all rounds of all epochs.
pub(super) struct Distinct {
    n_columns: usize,
    rows: GroupTable,
    histories: Histories,
    /// Whether the present epoch brought the row of a slot.
    is_born: Vec<bool>,
    /// The slots of these rows.
    born: Vec<u32>,
    /// Slots of rows that were there before the epoch, and that it has touched.
    touched: HashMap<u32, TouchedRow>,
    /// Which of these are to be looked at again, by round.
    agenda: BTreeMap<Time, Vec<u32>>,
    /// Where the touched rows are.
    batches: Vec<Batch>,
    /// Slots without a history, with their hashes.
    vacant: Vec<(u32, u64)>,
}

/// A row that was there before the epoch.
struct TouchedRow {
    /// The history of earlier epochs.
    old: Vec<(Time, Diff)>,
    hash: u64,
    /// A batch, and the row of it.
    place: (u32, u32),
}

impl Distinct {
    pub fn new(types: &[DataType]) -> Distinct {
        Distinct {
            n_columns: types.len(),
            rows: GroupTable::new(types),
            histories: Histories::default(),
            is_born: Vec::new(),
            born: Vec::new(),
            touched: HashMap::new(),
            agenda: BTreeMap::new(),
            batches: Vec::new(),
            vacant: Vec::new(),
        }
    }

    /// What a round changes.
    pub fn step(&mut self, batches: &[Batch], round: Time) -> Vec<Batch> {
        let mut due = self.agenda.remove(&round).unwrap_or_default();
        let batches: Vec<Batch> = batches.iter().map(|batch| batch.clone().flatten()).collect();
        let fresh = Batch::concat(&batches).filter(|batch| !batch.is_empty()).and_then(|batch| {
            let all: Vec<usize> = (0..self.n_columns).collect();
            self.take(batch.with_key(&all), round, &mut due)
        });
        due.sort_unstable();
        due.dedup();
        fresh.into_iter().chain(self.changes_of(&due, round)).collect()
    }

    /// Notes the changes of a round. Returns what they change of rows that this epoch brought; those
    /// that were there before are added to `due`.
    fn take(&mut self, batch: Batch, round: Time, due: &mut Vec<u32>) -> Option<Batch> {
        let hashes = batch.key().expect("the batch was just keyed").hashes.clone();
        let Touched { of_row, slot, first_row } = self.rows.touch(batch.columns(), &hashes);
        let mut sums: Vec<Diff> = vec![0; slot.len()];
        of_row.iter().enumerate().for_each(|(row, &index)| sums[index as usize] += batch.diffs().get(row));
        self.histories.resize(self.rows.n_slots());
        self.is_born.resize(self.rows.n_slots().max(self.is_born.len()), false);

        let (mut rows, mut diffs) = (Vec::new(), Vec::new());
        for ((&slot, &row), &sum) in slot.iter().zip(&first_row).zip(&sums) {
            let is_vacant = self.histories.is_empty(slot) && !self.touched.contains_key(&slot);
            if sum == 0 {
                if is_vacant {
                    self.vacant.push((slot, hashes[row as usize]));
                }
                continue;
            }
            if is_vacant {
                self.is_born[slot as usize] = true;
                self.born.push(slot);
            }
            if self.is_born[slot as usize] {
                let before = self.histories.total(slot);
                self.histories.push(slot, round, sum);
                let change = Diff::from(before + sum > 0) - Diff::from(before > 0);
                if change != 0 {
                    rows.push(row);
                    diffs.push(change);
                }
                continue;
            }
            let place = (self.batches.len() as u32, row);
            let (histories, agenda) = (&mut self.histories, &mut self.agenda);
            self.touched.entry(slot).or_insert_with(|| {
                let old = histories.of(slot);
                old.iter().filter(|(at, _)| *at > round).for_each(|(at, _)| agenda.entry(*at).or_default().push(slot));
                TouchedRow { old, hash: hashes[row as usize], place }
            });
            self.histories.add(slot, round, sum);
            due.push(slot);
        }
        let changes = (!rows.is_empty()).then(|| {
            let diffs = Diffs::Column(diffs.into()).simplify();
            batch.take(&rows).with_times(Times::Constant(round)).with_diffs(diffs)
        });
        if !due.is_empty() {
            self.batches.push(batch);
        }
        changes
    }

    /// What a round changes of rows that were there before.
    fn changes_of(&self, due: &[u32], round: Time) -> Option<Batch> {
        let (mut picks, mut diffs) = (Vec::new(), Vec::new());
        for slot in due {
            let touched = &self.touched[slot];
            let change = step_at(&self.histories.of(*slot), round) - step_at(&touched.old, round);
            if change != 0 {
                picks.push(touched.place);
                diffs.push(change);
            }
        }
        if picks.is_empty() {
            return None;
        }
        // (A round of a long chain has few rows, and the epoch a batch for each of its rounds.)
        let mut used: Vec<u32> = picks.iter().map(|(batch, _)| *batch).collect();
        used.sort_unstable();
        used.dedup();
        let sources: Vec<&[ArrayRef]> = used.iter().map(|batch| &**self.batches[*batch as usize].columns()).collect();
        for (batch, _) in &mut picks {
            *batch = used.binary_search(batch).expect("the batch is used") as u32;
        }
        let diffs = Diffs::Column(diffs.into()).simplify();
        let columns = gather::interleave(&sources, &picks);
        Some(Batch::with_len(columns, picks.len(), Times::Constant(round), diffs))
    }

    /// The next round in which something may change.
    pub fn next_round(&self) -> Option<Time> {
        self.agenda.keys().next().copied()
    }

    /// The epoch is over: rows without a history are given back.
    pub fn close(&mut self) {
        self.agenda.clear();
        self.batches.clear();
        std::mem::take(&mut self.born).into_iter().for_each(|slot| self.is_born[slot as usize] = false);
        let touched = self.touched.drain().map(|(slot, row)| (slot, row.hash));
        let mut vacant: Vec<(u32, u64)> = touched.chain(self.vacant.drain(..)).collect();
        vacant.sort_unstable();
        vacant.dedup();
        for (slot, hash) in vacant {
            if self.histories.is_empty(slot) {
                self.rows.release(slot, hash);
            }
        }
        if let Some(old_of_new) = self.rows.shrink() {
            self.histories.renumber(&old_of_new);
            self.is_born = vec![false; old_of_new.len()];
        }
    }
}

/// By how much the presence of a row changes at a round.
fn step_at(history: &[(Time, Diff)], round: Time) -> Diff {
    let sum = |keep: &dyn Fn(Time) -> bool| history.iter().filter(|(at, _)| keep(*at)).map(|(_, n)| n).sum::<Diff>();
    let (before, after) = (sum(&|at| at < round), sum(&|at| at <= round));
    Diff::from(after > 0) - Diff::from(before > 0)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::Int64Array;

    use super::*;

    fn rows(values: &[i64], diff: Diff, round: Time) -> Batch {
        let column = Arc::new(Int64Array::from(values.to_vec()));
        Batch::new(vec![column], Times::Constant(round), Diffs::Constant(diff))
    }

    fn shown(batches: &[Batch]) -> Vec<(i64, Diff)> {
        let row = |batch: &Batch, at| {
            (batch.column(0).as_any().downcast_ref::<Int64Array>().unwrap().value(at), batch.diffs().get(at))
        };
        let mut all: Vec<_> = batches.iter().flat_map(|batch| (0..batch.len()).map(|at| row(batch, at))).collect();
        all.sort_unstable();
        all
    }

    #[test]
    fn a_row_whose_first_reason_goes_is_there_again_in_the_round_of_its_next() {
        let mut distinct = Distinct::new(&[DataType::Int64]);
        assert_eq!(shown(&distinct.step(&[rows(&[7, 8], 1, 2)], 2)), [(7, 1), (8, 1)]);
        assert_eq!(shown(&distinct.step(&[rows(&[7], 1, 6)], 6)), []);
        distinct.close();
        assert_eq!(shown(&distinct.step(&[rows(&[7], -1, 2)], 2)), [(7, -1)]);
        assert_eq!(distinct.next_round(), Some(6));
        assert_eq!(shown(&distinct.step(&[], 6)), [(7, 1)]);
        assert_eq!(distinct.next_round(), None);
        distinct.close();
        assert_eq!(shown(&distinct.step(&[rows(&[7], -1, 6)], 6)), [(7, -1)]);
        distinct.close();
        assert_eq!(distinct.rows.len(), 1);
        // An earlier reason: the row is there earlier, and no longer comes in the later round.
        assert_eq!(shown(&distinct.step(&[rows(&[8], 1, 1)], 1)), [(8, 1)]);
        assert_eq!(shown(&distinct.step(&[], 2)), [(8, -1)]);
    }
}
