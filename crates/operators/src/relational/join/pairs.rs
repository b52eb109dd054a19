//! The pairs of one run with the runs of the other side: probe, cross, gather, in portions.

use std::sync::Arc;

use anabranch_arrangement::{Chunk, Keys, Matches, Run, gather_rows, probe};
use anabranch_batch::{Batch, Columns, Diffs, Time, Times};

use super::{JoinSpec, Side};
use crate::stateless::filter_project::Stage;
use anabranch_flow::tactic::Output;

/// Rows of one gathered batch.
const BATCH_ROWS: usize = 1 << 16;

/// A join in progress: the rows of `run` against those of `others` before a time.
pub(crate) struct RunPairs {
    run: Arc<Run>,
    side: Side,
    others: Vec<Arc<Run>>,
    other_key: Vec<usize>,
    before: Time,
    as_of: Time,
    /// A side whose times do not count.
    timeless: Option<Side>,
    keys: Keys,
    rows: RowsByKey,
    next_key: usize,
    /// Matches whose pairs are being made.
    crossing: Option<Crossing>,
    gather_run: Vec<usize>,
    gather_other: Vec<usize>,
}

/// Rows of a run, grouped by key: those of key `k` are `rows[starts[k]..starts[k + 1]]`.
struct RowsByKey {
    starts: Vec<u32>,
    /// (chunk, row).
    rows: Vec<(u32, u32)>,
}

/// Matches of some keys, and how far their pairs are made.
struct Crossing {
    matches: Matches,
    next_match: usize,
    /// Of the rows of the next match's key.
    next_row: usize,
}

impl RunPairs {
    /// The pairs of a run of `side` with the rows of `others`, of the other side, before a time.
    pub(crate) fn new(spec: &JoinSpec, side: Side, run: &Arc<Run>, others: Vec<Arc<Run>>, before: Time) -> RunPairs {
        let left = (&spec.left_key, &spec.gather_left);
        let right = (&spec.right_key, &spec.gather_right);
        let ((run_key, gather_run), (other_key, gather_other)) = match side {
            Side::Left => (left, right),
            Side::Right => (right, left),
        };
        let (keys, of_row) = Keys::from_run(run, run_key, spec.nulls);
        let rows = RowsByKey::new(&of_row, keys.len());
        RunPairs {
            run: Arc::clone(run),
            side,
            others,
            other_key: other_key.clone(),
            before,
            as_of: spec.as_of,
            timeless: None,
            keys,
            rows,
            next_key: 0,
            crossing: None,
            gather_run: gather_run.clone(),
            gather_other: gather_other.clone(),
        }
    }

    /// The same in a round of a loop: times are rounds, this one at least. The rows of a side from
    /// outside of the loop are there from its first round on, whatever their times.
    pub(crate) fn in_round(self, round: Time, timeless: Option<Side>) -> RunPairs {
        RunPairs { as_of: round, timeless, ..self }
    }

    /// Goes on until the fuel is used up; true at the end.
    pub(crate) fn work(&mut self, stage: &Stage, fuel: &mut isize, out: &mut Output) -> bool {
        loop {
            if let Some(mut crossing) = self.crossing.take()
                && !self.cross(&mut crossing, stage, fuel, out)
            {
                self.crossing = Some(crossing);
                return false;
            }
            if self.next_key == self.keys.len() {
                return true;
            }
            if *fuel <= 0 {
                return false;
            }
            let mut matches = Matches::default();
            let from = self.next_key;
            let window = (*fuel as usize).min(BATCH_ROWS);
            self.next_key = probe(&self.others, &self.other_key, &self.keys, from, self.before, window, &mut matches);
            *fuel -= (self.next_key - from) as isize;
            self.crossing = Some(Crossing { matches, next_match: 0, next_row: 0 });
        }
    }

    /// Pairs of the run's rows with the matches, gathered in batches, until the fuel is used up: a
    /// key with many rows on both sides has more pairs than one turn makes. True when all are made.
    fn cross(&self, crossing: &mut Crossing, stage: &Stage, fuel: &mut isize, out: &mut Output) -> bool {
        let matches = &crossing.matches;
        let capacity = matches.len().min(BATCH_ROWS);
        let mut run_picks: Vec<(u32, u32)> = Vec::with_capacity(capacity);
        let mut match_picks: Vec<u32> = Vec::with_capacity(capacity);
        while crossing.next_match < matches.len() {
            let key = matches.key[crossing.next_match] as usize;
            let rows = &self.rows.of(key)[crossing.next_row..];
            let taken = &rows[..rows.len().min(BATCH_ROWS - run_picks.len())];
            run_picks.extend_from_slice(taken);
            match_picks.extend(std::iter::repeat_n(crossing.next_match as u32, taken.len()));
            if taken.len() == rows.len() {
                (crossing.next_match, crossing.next_row) = (crossing.next_match + 1, 0);
            } else {
                crossing.next_row += taken.len();
            }
            if run_picks.len() == BATCH_ROWS {
                *fuel -= BATCH_ROWS as isize;
                stage.apply(self.gather(matches, &run_picks, &match_picks), out);
                run_picks.clear();
                match_picks.clear();
                if *fuel <= 0 {
                    return crossing.next_match == matches.len();
                }
            }
        }
        *fuel -= run_picks.len() as isize;
        if !run_picks.is_empty() {
            stage.apply(self.gather(matches, &run_picks, &match_picks), out);
        }
        true
    }

    fn gather(&self, matches: &Matches, run_picks: &[(u32, u32)], match_picks: &[u32]) -> Batch {
        let chunks = self.run.chunks();
        let run_columns = gather_rows(chunks, &self.gather_run, run_picks);
        let other_picks: Vec<(u32, u32)> =
            match_picks.iter().map(|m| (matches.source[*m as usize], matches.row[*m as usize])).collect();
        let other_columns = gather_rows(&matches.chunks, &self.gather_other, &other_picks);

        let counts = |side: Side| self.timeless != Some(side);
        let (is_mine, is_other) = (counts(self.side), counts(self.side.other()));
        let time_of =
            |chunk: &Chunk, row: u32, counts| if counts { chunk.times().get(row as usize) } else { Time::MIN };
        let mut times = Vec::with_capacity(run_picks.len());
        let mut diffs = Vec::with_capacity(run_picks.len());
        for ((chunk, row), (source, other_row)) in run_picks.iter().zip(&other_picks) {
            let mine = &chunks[*chunk as usize];
            let other = &matches.chunks[*source as usize];
            let time = time_of(mine, *row, is_mine).max(time_of(other, *other_row, is_other));
            times.push(time.max(self.as_of));
            diffs.push(mine.diffs().get(*row as usize) * other.diffs().get(*other_row as usize));
        }
        let (left, right) = match self.side {
            Side::Left => (run_columns, other_columns),
            Side::Right => (other_columns, run_columns),
        };
        let columns: Columns = left.iter().chain(right.iter()).cloned().collect();
        let times = Times::Column(times.into()).simplify();
        let diffs = Diffs::Column(diffs.into()).simplify();
        Batch::with_len(columns, run_picks.len(), times, diffs)
    }
}

impl RowsByKey {
    /// Groups the rows of a run by key index, one a row and chunk; rows without a key are left out.
    fn new(of_row: &[Vec<u32>], n_keys: usize) -> RowsByKey {
        if let Some(rows) = RowsByKey::in_order(of_row, n_keys) {
            return rows;
        }
        let mut starts = vec![0u32; n_keys + 1];
        for key in of_row.iter().flatten().filter(|key| **key != u32::MAX) {
            starts[*key as usize + 1] += 1;
        }
        for key in 0..n_keys {
            starts[key + 1] += starts[key];
        }
        let mut next = starts.clone();
        let mut rows = vec![(0u32, 0u32); starts[n_keys] as usize];
        for (chunk, keys) in of_row.iter().enumerate() {
            for (row, key) in keys.iter().enumerate().filter(|(_, key)| **key != u32::MAX) {
                rows[next[*key as usize] as usize] = (chunk as u32, row as u32);
                next[*key as usize] += 1;
            }
        }
        RowsByKey { starts, rows }
    }

    /// The same where every row has a key and they come in order, as those of a run that is sorted
    /// by them.
    fn in_order(of_row: &[Vec<u32>], n_keys: usize) -> Option<RowsByKey> {
        let mut starts = vec![0u32; n_keys + 1];
        let mut rows = Vec::with_capacity(of_row.iter().map(Vec::len).sum());
        let mut last = 0;
        for (chunk, keys) in (0..).zip(of_row) {
            for (row, &key) in (0..).zip(keys) {
                // (A row without a key has a greater one than all.)
                if key < last || key > last + 1 || key as usize >= n_keys {
                    return None;
                }
                last = key;
                rows.push((chunk, row));
                starts[key as usize + 1] = rows.len() as u32;
            }
        }
        (last as usize + 1 >= n_keys).then_some(RowsByKey { starts, rows })
    }

    fn of(&self, key: usize) -> &[(u32, u32)] {
        &self.rows[self.starts[key] as usize..self.starts[key + 1] as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_found_by_key_in_whatever_order_they_come() {
        const NONE: u32 = u32::MAX;
        for (of_row, n_keys) in [
            (vec![], 0),
            (vec![vec![0, 0, 1], vec![1, 2], vec![2]], 3),
            (vec![vec![2, 0], vec![1, 0]], 3),
            (vec![vec![0, NONE], vec![1, 1]], 2),
            (vec![vec![NONE]], 0),
        ] {
            let rows = RowsByKey::new(&of_row, n_keys);
            assert_eq!(rows.starts.len(), n_keys + 1);
            for key in 0..n_keys {
                let places = (0..)
                    .zip(&of_row)
                    .flat_map(|(chunk, keys)| (0..).zip(keys).map(move |(row, of)| (chunk, row, *of)));
                let expected: Vec<(u32, u32)> =
                    places.filter(|place| place.2 == key as u32).map(|(chunk, row, _)| (chunk, row)).collect();
                assert_eq!(rows.of(key), expected);
            }
        }
    }
}
