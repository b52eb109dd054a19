//! DISTINCT inside of a loop.
//!
//! Law: what is put out, accumulated over all epochs, has each row once, from its *rank* on: a
//! round from which the row's counts are positive. Without counts there is no rank. Which round is
//! the rank depends on [`Ranks`].
//!
//! ```text
//!   history of a row   +1 @2, +1 @6           its rank is 2
//!   an epoch brings    -1 @2                  it puts out -1 @2, and at round 6: +1 @6
//!   another brings     +1 @1                  exact: +1 @1, -1 @6     sticky: nothing
//! ```
//!
//! State: the history of each row: a count for each round that changes it, in the order of rounds;
//! and a rank, if ranks are sticky. Rows of a round are absorbed in portions; what a round changes
//! is known when it is finished. A row whose presence may change in a later round of its history
//! waits in the *agenda* of that round.
//!
//! Cost: a table probe an update; a walk of the row's history where its presence may change.
//! Source: differential dataflow's `threshold`; sticky ranks are our own (decision 0075).

use std::collections::{BTreeMap, HashMap};

use anabranch_batch::{Batch, Diff, Time};
use arrow::datatypes::DataType;

use super::histories::Histories;
use super::kept::{KeptRows, Place};
use super::spec::Ranks;
use crate::aggregate::group_table::{GroupTable, Touched};

/// Rows that are looked up together: what a portion needs beside the table stays in the cache.
const PORTION_ROWS: usize = 1 << 16;

/// The distinct rows of all rounds of all epochs.
#[derive(Clone)]
pub(super) struct Distinct {
    n_columns: usize,
    rows: GroupTable,
    histories: Histories,
    presence: Presence,
    /// Rows whose presence may change in the round that is being absorbed.
    due: Vec<Due>,
    /// The same for later rounds.
    agenda: BTreeMap<Time, Vec<Due>>,
    kept: KeptRows,
    /// Slots that had no history at some moment of the epoch, with their hashes.
    vacant: Vec<(u32, u64)>,
}

/// A row that is looked at when a round is finished.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Due {
    slot: u32,
    place: Place,
}

/// From which round on rows are present.
#[derive(Clone)]
enum Presence {
    Exact(ExactRanks),
    /// The rank of each slot, or [`UNRANKED`].
    Sticky(Vec<u32>),
}

const UNRANKED: u32 = 0;

/// A rank is the first round from which the counts are positive.
#[derive(Clone, Default)]
struct ExactRanks {
    /// Whether the present epoch brought the row of a slot.
    is_born: Vec<bool>,
    /// The slots of these rows.
    born: Vec<u32>,
    /// The histories of earlier epochs, of rows that were there before and that the epoch has
    /// touched.
    old: HashMap<u32, Vec<(Time, Diff)>>,
}

impl Distinct {
    pub fn new(types: &[DataType], ranks: Ranks) -> Distinct {
        Distinct {
            n_columns: types.len(),
            rows: GroupTable::new(types),
            histories: Histories::default(),
            presence: match ranks {
                Ranks::Exact => Presence::Exact(ExactRanks::default()),
                Ranks::Sticky => Presence::Sticky(Vec::new()),
            },
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
        let all: Vec<usize> = (0..self.n_columns).collect();
        let batch = batch.with_key(&all);
        let hashes = &batch.key().expect("the batch was just keyed").hashes;
        let Touched { of_row, slot, first_row } = self.rows.touch(batch.columns(), hashes);
        let mut sums: Vec<Diff> = vec![0; slot.len()];
        of_row.iter().enumerate().for_each(|(row, &index)| sums[index as usize] += batch.diffs().get(row));
        self.histories.resize(self.rows.n_slots());
        self.presence.resize(self.rows.n_slots());

        let (mut rows, mut rounds) = (Vec::new(), Vec::new());
        let mut waiting: Vec<(Time, u32, u32)> = Vec::new();
        for ((&slot, &row), &sum) in slot.iter().zip(&first_row).zip(&sums) {
            if sum != 0 {
                self.presence.rounds_due(slot, round, sum, &self.histories, &mut rounds);
                self.histories.add(slot, round, sum);
            }
            if sum <= 0 && self.histories.is_empty(slot) {
                self.vacant.push((slot, hashes[row as usize]));
            }
            if !rounds.is_empty() {
                waiting.extend(rounds.drain(..).map(|at| (at, slot, rows.len() as u32)));
                rows.push(row);
            }
        }
        if rows.is_empty() {
            return;
        }
        let block = self.kept.keep(batch.columns(), &rows);
        for (at, slot, row) in waiting {
            let due = Due { slot, place: (block, row) };
            match at == round {
                true => self.due.push(due),
                false => self.agenda.entry(at).or_default().push(due),
            }
        }
    }

    /// All changes of the round are absorbed. Returns what the round changes.
    pub fn finish(&mut self, round: Time) -> Option<Batch> {
        let mut due = std::mem::take(&mut self.due);
        due.extend(self.agenda.remove(&round).unwrap_or_default());
        due.sort_unstable();
        due.dedup_by_key(|due| due.slot);
        let (mut places, mut diffs) = (Vec::with_capacity(due.len()), Vec::with_capacity(due.len()));
        for due in due {
            let (change, again) = self.presence.change(due.slot, round, &self.histories);
            if let Some(again) = again {
                self.agenda.entry(again).or_default().push(due);
            }
            if change != 0 {
                places.push(due.place);
                diffs.push(change);
            }
        }
        let changes = self.kept.changes(&places, diffs, round);
        if self.agenda.is_empty() {
            self.kept.clear();
        }
        changes
    }

    pub fn size_bytes(&self) -> usize {
        self.rows.size_bytes() + self.histories.size_bytes() + self.presence.size_bytes()
    }

    /// The next round in which something may change.
    pub fn next_round(&self) -> Option<Time> {
        self.agenda.keys().next().copied()
    }

    /// The epoch is over: rows without a history are given back.
    pub fn close(&mut self) {
        self.agenda.clear();
        self.kept.clear();
        self.presence.close();
        let mut vacant = std::mem::take(&mut self.vacant);
        vacant.sort_unstable();
        vacant.dedup();
        for (slot, hash) in vacant {
            if self.histories.is_empty(slot) {
                self.rows.release(slot, hash);
            }
        }
        if let Some(old_of_new) = self.rows.shrink() {
            self.histories.renumber(&old_of_new);
            self.presence.renumber(&old_of_new);
        }
    }
}

impl Presence {
    fn size_bytes(&self) -> usize {
        match self {
            Presence::Exact(ranks) => ranks.is_born.capacity(),
            Presence::Sticky(ranks) => ranks.capacity() * size_of::<u32>(),
        }
    }

    fn resize(&mut self, n_slots: usize) {
        match self {
            Presence::Exact(ranks) => ranks.is_born.resize(n_slots.max(ranks.is_born.len()), false),
            Presence::Sticky(ranks) => ranks.resize(n_slots.max(ranks.len()), UNRANKED),
        }
    }

    /// The rounds in which the presence of a row may change, since its count changes by `sum` in a
    /// round. The history is that before this change.
    fn rounds_due(&mut self, slot: u32, round: Time, sum: Diff, histories: &Histories, rounds: &mut Vec<Time>) {
        match self {
            Presence::Exact(ranks) => ranks.rounds_due(slot, round, sum, histories, rounds),
            Presence::Sticky(ranks) => match Time::from(ranks[slot as usize]) {
                0 => rounds.push(round),
                // (What comes later than the rank, or is one more reason, changes nothing.)
                rank if rank >= round && sum < 0 => rounds.push(rank),
                _ => {}
            },
        }
    }

    /// By how much a round changes the presence of a row, and the next round in which it may change
    /// of itself.
    fn change(&mut self, slot: u32, round: Time, histories: &Histories) -> (Diff, Option<Time>) {
        let ranks = match self {
            Presence::Exact(ranks) => return (ranks.change(slot, round, histories), None),
            Presence::Sticky(ranks) => ranks,
        };
        let rank = &mut ranks[slot as usize];
        let is_supported = histories.total_until(slot, round) > 0;
        match Time::from(*rank) {
            0 if is_supported => {
                *rank = round as u32;
                (1, None)
            }
            0 => (0, histories.next_after(slot, round)),
            at if at == round && !is_supported => {
                *rank = UNRANKED;
                (-1, histories.next_after(slot, round))
            }
            _ => (0, None),
        }
    }

    fn close(&mut self) {
        if let Presence::Exact(ranks) = self {
            ranks.old.clear();
            std::mem::take(&mut ranks.born).into_iter().for_each(|slot| ranks.is_born[slot as usize] = false);
        }
    }

    fn renumber(&mut self, old_of_new: &[u32]) {
        match self {
            Presence::Exact(ranks) => ranks.is_born = vec![false; old_of_new.len()],
            Presence::Sticky(ranks) => *ranks = old_of_new.iter().map(|old| ranks[*old as usize]).collect(),
        }
    }
}

impl ExactRanks {
    fn rounds_due(&mut self, slot: u32, round: Time, sum: Diff, histories: &Histories, rounds: &mut Vec<Time>) {
        if !self.is_born[slot as usize] && histories.is_empty(slot) && !self.old.contains_key(&slot) {
            self.is_born[slot as usize] = true;
            self.born.push(slot);
        }
        if self.is_born[slot as usize] {
            // (The rounds of an epoch ascend, so this one is the last of the history.)
            if sum < 0 || histories.total(slot) <= 0 {
                rounds.push(round);
            }
            return;
        }
        rounds.push(round);
        self.old.entry(slot).or_insert_with(|| {
            let old = histories.of(slot);
            rounds.extend(old.iter().map(|(at, _)| *at).filter(|at| *at > round));
            old
        });
    }

    fn change(&self, slot: u32, round: Time, histories: &Histories) -> Diff {
        let is_present = |upto| Diff::from(histories.total_until(slot, upto) > 0);
        let old = self.old.get(&slot).map_or(0, |old| step_at(old, round));
        is_present(round) - is_present(round - 1) - old
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

    use anabranch_batch::{Diffs, Times};
    use arrow::array::Int64Array;

    use super::*;

    fn rows(values: &[i64], diff: Diff, round: Time) -> Batch {
        let column = Arc::new(Int64Array::from(values.to_vec()));
        Batch::new(vec![column], Times::Constant(round), Diffs::Constant(diff))
    }

    fn step(distinct: &mut Distinct, batches: &[Batch], round: Time) -> Vec<(i64, Diff)> {
        batches.iter().for_each(|batch| distinct.absorb(batch, round));
        let row = |batch: &Batch, at| {
            (batch.column(0).as_any().downcast_ref::<Int64Array>().unwrap().value(at), batch.diffs().get(at))
        };
        let changes = distinct.finish(round);
        let mut all: Vec<_> =
            changes.iter().flat_map(|batch| (0..batch.len()).map(|at| row(batch, at)).collect::<Vec<_>>()).collect();
        all.sort_unstable();
        all
    }

    #[test]
    fn a_row_whose_first_reason_goes_is_there_again_in_the_round_of_its_next() {
        for ranks in [Ranks::Exact, Ranks::Sticky] {
            let mut distinct = Distinct::new(&[DataType::Int64], ranks);
            assert_eq!(step(&mut distinct, &[rows(&[7], 1, 2), rows(&[8, 7], 1, 2)], 2), [(7, 1), (8, 1)]);
            assert_eq!(step(&mut distinct, &[rows(&[7], 1, 6)], 6), []);
            distinct.close();
            assert_eq!(step(&mut distinct, &[rows(&[7], -2, 2)], 2), [(7, -1)]);
            assert_eq!(distinct.next_round(), Some(6));
            assert_eq!(step(&mut distinct, &[], 6), [(7, 1)]);
            assert_eq!(distinct.next_round(), None);
            distinct.close();
            assert_eq!(step(&mut distinct, &[rows(&[7], -1, 6)], 6), [(7, -1)]);
            distinct.close();
            assert_eq!(distinct.rows.len(), 1);
        }
    }

    #[test]
    fn an_earlier_reason_moves_a_row_only_where_ranks_are_exact() {
        let mut exact = Distinct::new(&[DataType::Int64], Ranks::Exact);
        step(&mut exact, &[rows(&[8], 1, 2)], 2);
        exact.close();
        assert_eq!(step(&mut exact, &[rows(&[8], 1, 1)], 1), [(8, 1)]);
        assert_eq!(step(&mut exact, &[], 2), [(8, -1)]);

        let mut sticky = Distinct::new(&[DataType::Int64], Ranks::Sticky);
        step(&mut sticky, &[rows(&[8], 1, 2)], 2);
        sticky.close();
        assert_eq!(step(&mut sticky, &[rows(&[8], 1, 1)], 1), []);
        sticky.close();
        // The first reason goes: the other one carries the row, at the rank that it has.
        assert_eq!(step(&mut sticky, &[rows(&[8], -1, 2)], 2), []);
        sticky.close();
        // Without any the row goes, in the round of its rank.
        assert_eq!(step(&mut sticky, &[rows(&[8], -1, 1)], 1), []);
        assert_eq!(sticky.next_round(), Some(2));
        assert_eq!(step(&mut sticky, &[], 2), [(8, -1)]);
        sticky.close();
        assert!(sticky.rows.is_empty());
    }

    #[test]
    fn rows_that_cancel_within_a_round_are_not_put_out() {
        for ranks in [Ranks::Exact, Ranks::Sticky] {
            let mut distinct = Distinct::new(&[DataType::Int64], ranks);
            assert_eq!(step(&mut distinct, &[rows(&[1, 2], 1, 3), rows(&[1], -1, 3)], 3), [(2, 1)]);
            distinct.close();
            assert_eq!(distinct.rows.len(), 1);
        }
    }
}
