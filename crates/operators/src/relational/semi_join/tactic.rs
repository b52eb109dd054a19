//! The tactic of semi, anti and mark joins: one interval of complete times after the other, each in
//! portions.

use std::collections::VecDeque;
use std::sync::Arc;

use anabranch_arrangement::{Keys, Matches, Run, Sealed, gather_rows, probe};
use anabranch_batch::order::Nulls;
use anabranch_batch::{Batch, Columns, Diff, Diffs, Time, Times, gather, hash};
use arrow::array::{ArrayRef, BooleanArray};

use super::spec::{Keep, Residual, SemiJoinSpec};
use super::transitions::FlipLists;
use crate::stateless::filter_project::evaluate_mask;
use anabranch_flow::pending::split_at;
use anabranch_flow::tactic::Output;

/// Left rows, or right keys, that a turn takes on.
pub(super) const ROWS_PER_TURN: usize = 1 << 16;

/// Pairs evaluated at once.
const PAIRS_MAX: usize = 1 << 16;

/// The tactic; it keeps nothing between intervals.
pub struct SemiJoin {
    spec: SemiJoinSpec,
}

/// Left rows whose answer is wanted.
struct Candidates {
    rows: Batch,
    /// Index of each row's key, `u32::MAX` without one.
    key: Vec<u32>,
}

/// Output under construction: picked left rows with times, diffs and marks.
#[derive(Default)]
struct Emission {
    rows: Vec<u32>,
    times: Vec<Time>,
    diffs: Vec<Diff>,
    marks: Vec<bool>,
}

/// An interval of complete times, and what is still to be done for it.
pub(super) struct Interval {
    /// Everything before this time was answered, and the changes
    pub done: Time,
    /// before this one are now.
    pub upto: Time,
    /// Changes of the left input.
    new_left: VecDeque<Batch>,
    /// Keys of the changes of the right input.
    right_keys: Option<Keys>,
    /// So many of them are done with.
    n_right_done: usize,
    /// These hold at least everything before `upto`, and tell times before `done` from later ones.
    left_runs: Vec<Arc<Run>>,
    right_runs: Vec<Arc<Run>>,
}

impl Interval {
    /// Whether nothing is left to do.
    pub fn is_over(&self) -> bool {
        self.new_left.is_empty() && self.right_keys.as_ref().is_none_or(|keys| self.n_right_done >= keys.len())
    }
}

/// The changes of both inputs in an interval.
pub(super) struct Changed {
    pub left: Option<Batch>,
    pub right: Option<Batch>,
}

/// The updates of sealed runs in `[from, upto)`, all columns; `None` for none.
pub(crate) fn changes(runs: &[Sealed], from: Time, upto: Time) -> Option<Batch> {
    let mut parts = Vec::new();
    for sealed in runs.iter().filter(|sealed| sealed.lower < upto && sealed.upper > from) {
        for chunk in sealed.run.chunks() {
            let batch = Batch::with_len(chunk.columns(), chunk.len(), chunk.times().clone(), chunk.diffs().clone());
            let (before, _) = split_at(&batch, upto);
            let (_, wanted) = split_at(&before, from);
            if !wanted.is_empty() {
                parts.push(wanted);
            }
        }
    }
    Batch::concat(&parts)
}

impl SemiJoin {
    /// A tactic for a join.
    pub fn new(spec: SemiJoinSpec) -> SemiJoin {
        SemiJoin { spec }
    }

    /// What is joined.
    pub(super) fn spec(&self) -> &SemiJoinSpec {
        &self.spec
    }

    /// Begins an interval.
    pub(super) fn begin(&self, changed: Changed, runs: [Vec<Arc<Run>>; 2], done: Time, upto: Time) -> Interval {
        let new_left = changed.left.into_iter().flat_map(|batch| slices(&batch)).collect();
        let right_keys = changed.right.map(|batch| self.keys_of(&batch, &self.spec.right_key).0);
        let [left_runs, right_runs] = runs;
        Interval { done, upto, new_left, right_keys, n_right_done: 0, left_runs, right_runs }
    }

    /// Puts out some more of the changes of the result in an interval; all of them are out once it
    /// [is over](Interval::is_over).
    pub(super) fn work(&self, interval: &mut Interval, out: &mut Output) {
        let Interval { done, upto, ref left_runs, ref right_runs, .. } = *interval;
        let mut n_rows = 0;
        while let Some(left) = interval.new_left.pop_front() {
            n_rows += left.len();
            let (keys, of_row) = self.keys_of(&left, &self.spec.left_key);
            let candidates = Candidates { rows: left, key: of_row };
            self.answer(candidates, &keys, right_runs, upto, Time::MIN, out);
            if n_rows >= ROWS_PER_TURN {
                return;
            }
        }
        let Some(keys) = &interval.right_keys else { return };
        let from = interval.n_right_done;
        interval.n_right_done = (from + ROWS_PER_TURN).min(keys.len());
        let range: Vec<u32> = (from as u32..interval.n_right_done as u32).collect();
        let keys = if range.len() == keys.len() { keys.clone() } else { some_keys(keys, &range) };
        let (keys, candidates) = self.old_left_rows(keys, left_runs, right_runs, done, upto);
        if !candidates.rows.is_empty() {
            self.answer(candidates, &keys, right_runs, upto, done, out);
        }
    }

    fn keys_of(&self, batch: &Batch, key: &[usize]) -> (Keys, Vec<u32>) {
        let columns: Vec<ArrayRef> = key.iter().map(|column| batch.column(*column).clone()).collect();
        let hashes = hash::hash_columns(&columns, batch.len());
        Keys::from_columns(&columns, &hashes, self.spec.nulls)
    }

    /// Left rows from before `done` under the keys, of which only those are kept that may flip in
    /// the interval.
    fn old_left_rows(
        &self,
        keys: Keys,
        left_runs: &[Arc<Run>],
        right_runs: &[Arc<Run>],
        done: Time,
        upto: Time,
    ) -> (Keys, Candidates) {
        let keys = if self.spec.residual.is_some() { keys } else { self.flipping(keys, right_runs, done, upto) };
        let matches = probe_all(left_runs, &self.spec.left_key, &keys, done);
        let all: Vec<usize> = matches.chunks.first().map_or(vec![], |chunk| (0..chunk.n_columns()).collect());
        let picks: Vec<(u32, u32)> = matches.source.iter().copied().zip(matches.row.iter().copied()).collect();
        let needed = self.needed_left_columns();
        let columns = if picks.is_empty() {
            Columns::from(vec![])
        } else {
            // Columns no reader asks for are stood in for by a needed one (or the first), so that
            // positions stay.
            let gathered = gather_rows(&matches.chunks, &needed, &picks);
            let mut columns: Vec<ArrayRef> = Vec::with_capacity(all.len());
            for column in all {
                let place = needed.iter().position(|needed| *needed == column);
                columns.push(match place {
                    Some(place) => gathered[place].clone(),
                    None => Arc::new(arrow::array::NullArray::new(picks.len())),
                });
            }
            Columns::from(columns)
        };
        let times = Times::Column(matches.times().into()).simplify();
        let diffs = Diffs::Column(matches.diffs().into()).simplify();
        let rows = Batch::with_len(columns, picks.len(), times, diffs);
        (keys, Candidates { rows, key: matches.key })
    }

    fn needed_left_columns(&self) -> Vec<usize> {
        let mut needed = self.spec.gather.clone();
        if let Some(residual) = &self.spec.residual {
            needed.extend(&residual.gather_left);
        }
        needed.sort_unstable();
        needed.dedup();
        needed
    }

    /// The keys whose answer flips at or after `done`; for joins without a residual.
    fn flipping(&self, keys: Keys, right_runs: &[Arc<Run>], done: Time, upto: Time) -> Keys {
        let matches = probe_all(right_runs, &self.spec.right_key, &keys, upto);
        let lists = key_flips(&matches, keys.len());
        let keep: Vec<u32> = (0..keys.len() as u32)
            .filter(|key| lists.of(*key as usize).last().is_some_and(|(time, _)| *time >= done))
            .collect();
        if keep.len() == keys.len() {
            return keys;
        }
        some_keys(&keys, &keep)
    }

    /// Emits what the candidates contribute at times from `from` on.
    fn answer(
        &self,
        candidates: Candidates,
        keys: &Keys,
        right_runs: &[Arc<Run>],
        upto: Time,
        from: Time,
        out: &mut Output,
    ) {
        let matches = probe_all(right_runs, &self.spec.right_key, keys, upto);
        let mut emission = Emission::default();
        match &self.spec.residual {
            None => {
                let lists = key_flips(&matches, keys.len());
                for row in 0..candidates.rows.len() {
                    let key = candidates.key[row];
                    let flips = if key == u32::MAX { &[] } else { lists.of(key as usize) };
                    self.emit(&candidates.rows, row, flips, from, &mut emission);
                }
            }
            Some(residual) => self.answer_pairs(residual, &candidates, &matches, from, &mut emission, out),
        }
        self.give(&candidates.rows, emission, out);
    }

    /// With a residual: flips of each candidate, from the pairs that pass.
    fn answer_pairs(
        &self,
        residual: &Residual,
        candidates: &Candidates,
        matches: &Matches,
        from: Time,
        emission: &mut Emission,
        out: &mut Output,
    ) {
        let ranges = match_ranges(matches);
        let range_of = |row: usize| match candidates.key[row] {
            u32::MAX => 0..0,
            key => ranges.get(key as usize).cloned().unwrap_or(0..0),
        };
        let (match_times, match_diffs) = (matches.times(), matches.diffs());
        let mut first = 0;
        while first < candidates.rows.len() {
            let (mut left, mut right) = (Vec::new(), Vec::new());
            let mut last = first;
            while last < candidates.rows.len() && (left.is_empty() || left.len() + range_of(last).len() <= PAIRS_MAX) {
                for index in range_of(last) {
                    left.push(last as u32);
                    right.push(index as u32);
                }
                last += 1;
            }
            let pairs = pair_batch(residual, &candidates.rows, matches, &left, &right);
            let (mask, errors) = if left.is_empty() {
                (BooleanArray::from(Vec::<bool>::new()), vec![])
            } else {
                evaluate_mask(&residual.predicate, &pairs)
            };
            for error in errors {
                give_pair_errors(error, from, self.spec.as_of, out);
            }
            let passed = (0..left.len()).filter(|pair| mask.value(*pair)).map(|pair| {
                let index = right[pair] as usize;
                (left[pair] - first as u32, match_times[index], match_diffs[index])
            });
            let lists = FlipLists::new(last - first, passed);
            for row in first..last {
                self.emit(&candidates.rows, row, lists.of(row - first), from, emission);
            }
            first = last;
        }
    }

    /// The join of one left update with the flips of its answer, at times from `from` on.
    fn emit(&self, rows: &Batch, row: usize, flips: &[(Time, Diff)], from: Time, emission: &mut Emission) {
        let (time, diff) = (rows.times().get(row), rows.diffs().get(row));
        let keep = self.spec.keep;
        if keep != Keep::Semi && time >= from {
            emission.push(row, time, diff, false);
        }
        for (flip, sign) in flips {
            let at = time.max(*flip);
            if at < from {
                continue;
            }
            if keep != Keep::Anti {
                emission.push(row, at, diff * sign, true);
            }
            if keep != Keep::Semi {
                emission.push(row, at, -diff * sign, false);
            }
        }
    }

    fn give(&self, rows: &Batch, emission: Emission, out: &mut Output) {
        if emission.rows.is_empty() {
            return;
        }
        let wanted: Vec<ArrayRef> = self.spec.gather.iter().map(|column| rows.column(*column).clone()).collect();
        let mut columns = gather::take(&wanted, &emission.rows).to_vec();
        if self.spec.keep == Keep::Mark {
            columns.push(Arc::new(BooleanArray::from(emission.marks)));
        }
        let times: Vec<Time> = emission.times.into_iter().map(|time| time.max(self.spec.as_of)).collect();
        let times = Times::Column(times.into()).simplify();
        let diffs = Diffs::Column(emission.diffs.into()).simplify();
        let batch = Batch::with_len(Columns::from(columns), emission.rows.len(), times, diffs);
        self.spec.stage.apply(batch, out);
    }
}

impl Emission {
    fn push(&mut self, row: usize, time: Time, diff: Diff, mark: bool) {
        self.rows.push(row as u32);
        self.times.push(time);
        self.diffs.push(diff);
        self.marks.push(mark);
    }
}

/// The rows of a batch, so many at a time as a turn takes on.
fn slices(batch: &Batch) -> Vec<Batch> {
    let starts = (0..batch.len()).step_by(ROWS_PER_TURN);
    starts.map(|start| batch.slice(start, ROWS_PER_TURN.min(batch.len() - start))).collect()
}

/// The keys at these places.
fn some_keys(keys: &Keys, places: &[u32]) -> Keys {
    let columns = gather::take(keys.columns(), places);
    let hashes: Vec<u64> = places.iter().map(|key| keys.hashes()[*key as usize]).collect();
    Keys::from_columns(&columns, &hashes, Nulls::Equal).0
}

fn probe_all(runs: &[Arc<Run>], key: &[usize], keys: &Keys, before: Time) -> Matches {
    let mut matches = Matches::default();
    let mut from = 0;
    while from < keys.len() {
        from = probe(runs, key, keys, from, before, usize::MAX, &mut matches);
    }
    matches
}

fn key_flips(matches: &Matches, n_keys: usize) -> FlipLists {
    let (times, diffs) = (matches.times(), matches.diffs());
    FlipLists::new(n_keys, matches.key.iter().zip(times).zip(diffs).map(|((key, time), diff)| (*key, time, diff)))
}

/// Where the matches of each key lie; keys beyond the last match are left out.
fn match_ranges(matches: &Matches) -> Vec<std::ops::Range<usize>> {
    let n_keys = matches.key.last().map_or(0, |key| *key as usize + 1);
    let mut ranges = vec![0..0; n_keys];
    let mut start = 0;
    while start < matches.key.len() {
        let key = matches.key[start];
        let end = start + matches.key[start..].iter().take_while(|other| **other == key).count();
        ranges[key as usize] = start..end;
        start = end;
    }
    ranges
}

/// The pairs as rows for the predicate, at the later of the two times and with the product of the
/// diffs.
fn pair_batch(residual: &Residual, rows: &Batch, matches: &Matches, left: &[u32], right: &[u32]) -> Batch {
    let left_columns: Vec<ArrayRef> = residual.gather_left.iter().map(|column| rows.column(*column).clone()).collect();
    let left_columns = gather::take(&left_columns, left);
    let picks: Vec<(u32, u32)> =
        right.iter().map(|index| (matches.source[*index as usize], matches.row[*index as usize])).collect();
    let right_columns = gather_rows(&matches.chunks, &residual.gather_right, &picks);
    let columns: Columns = left_columns.iter().chain(right_columns.iter()).cloned().collect();
    let mut times = Vec::with_capacity(left.len());
    let mut diffs = Vec::with_capacity(left.len());
    for (row, (source, index)) in left.iter().zip(&picks) {
        let chunk = &matches.chunks[*source as usize];
        times.push(rows.times().get(*row as usize).max(chunk.times().get(*index as usize)));
        diffs.push(rows.diffs().get(*row as usize) * chunk.diffs().get(*index as usize));
    }
    Batch::with_len(columns, left.len(), Times::Column(times.into()), Diffs::Column(diffs.into()))
}

/// Errors of pairs, each once: those from before `from` were given when their pair was first met.
fn give_pair_errors(errors: Batch, from: Time, as_of: Time, out: &mut Output) {
    let (_, new) = split_at(&errors, from);
    out.give_errors(anabranch_flow::drive::advanced_to(new, as_of));
}
