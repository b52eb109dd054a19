//! Semi, anti and mark joins of two collections that are not in order: the smaller one becomes an
//! index, in which the other is looked up.
//!
//! Law: each left row as the join keeps it, at the time `as_of` of the specification. Matches are
//! counted for each key, or for each row where there is a condition beyond the keys, so distinct
//! keys are not needed. Cost: a look-up a row of the larger side; nothing is sorted.

use std::sync::Arc;

use anabranch_batch::order::Nulls;
use anabranch_batch::{Batch, Columns, Diff, Times};
use anabranch_flow::tactic::Output;
use arrow::array::{Array, BooleanArray};

use super::key_index::{KeyIndex, gathered};
use super::look_ups::{LookUps, Side, products};
use super::semi_join::spec::{Keep, Residual, SemiJoinSpec};
use crate::stateless::filter_project::evaluate_mask;

/// Rows that are put out together.
const BATCH_ROWS: usize = 1 << 16;

/// What is looked up in what.
pub(crate) enum HashMatches {
    /// Right rows in the left ones.
    Counting {
        look_ups: LookUps,
        /// Matches in sum: of each left key, or of each left row if there is a residual.
        counts: Vec<Diff>,
    },
    /// Left rows in the right ones.
    Asking {
        look_ups: LookUps,
        /// Multiplicity of each right key.
        sums: Vec<Diff>,
        /// Matches in sum of each row of the batch that is looked up.
        counts: Vec<Diff>,
    },
    /// All matches are counted: left rows from this one on are to be put out.
    Giving { rows: Batch, counts: Vec<Diff>, from: usize },
    /// There is nothing on the right.
    Unmatched { rows: Vec<Batch> },
}

impl HashMatches {
    /// The matches of the left and the right rows; `None` if there is nothing to put out.
    pub fn new(spec: &SemiJoinSpec, [left, right]: [Vec<Batch>; 2]) -> Option<HashMatches> {
        let rows = |side: &[Batch]| side.iter().map(Batch::n_present).sum::<usize>();
        let is_left_smaller = rows(&left) <= rows(&right);
        let SemiJoinSpec { left_key, right_key, nulls, keep, residual, .. } = spec;
        // (Rows whose key matches nothing are not in an index, but only a semi-join can do
        // without.)
        let is_whole = || left.iter().all(|batch| has_no_nulls(batch, left_key));
        if is_left_smaller && (*keep == Keep::Semi || *nulls == Nulls::Equal || is_whole()) {
            let index = KeyIndex::new(left, left_key, *nulls)?;
            let n_counts = if residual.is_some() { index.rows.len() } else { index.n_keys() };
            let look_ups = LookUps::new(index, right_key, right);
            return Some(HashMatches::Counting { look_ups, counts: vec![0; n_counts] });
        }
        let Some(index) = KeyIndex::new(right, right_key, *nulls) else {
            return Some(HashMatches::Unmatched { rows: left });
        };
        let sums = index.sums();
        Some(HashMatches::Asking { look_ups: LookUps::new(index, left_key, left), sums, counts: vec![] })
    }

    /// Goes through some `rows_max` rows and pairs; returns what is left to do.
    pub fn work(self, spec: &SemiJoinSpec, rows_max: usize, out: &mut Output) -> Option<HashMatches> {
        match self {
            HashMatches::Counting { mut look_ups, mut counts } => {
                match &spec.residual {
                    None => look_ups.meet_some(rows_max, |_, batch, met| {
                        for (&row, &key) in met.rows.iter().zip(&met.keys) {
                            counts[key as usize] += batch.diffs().get(row as usize);
                        }
                    }),
                    Some(residual) => look_ups.pair_some(rows_max, |index, batch, pairs, _| {
                        let sides = [(&index.rows, &pairs.indexed[..]), (batch, &pairs.rows[..])];
                        count_pairs(spec, residual, sides, &mut counts, out);
                    }),
                }
                if !look_ups.is_over() {
                    return Some(HashMatches::Counting { look_ups, counts });
                }
                let index = look_ups.index;
                let counts = match spec.residual {
                    Some(_) => counts,
                    None => index.key_of_row().iter().map(|&key| counts[key as usize]).collect(),
                };
                Some(HashMatches::Giving { rows: index.rows, counts, from: 0 })
            }
            HashMatches::Asking { mut look_ups, sums, mut counts } => {
                match &spec.residual {
                    None => look_ups.meet_some(rows_max, |_, batch, met| {
                        let mut counts = vec![0; batch.len()];
                        for (&row, &key) in met.rows.iter().zip(&met.keys) {
                            counts[row as usize] += sums[key as usize];
                        }
                        give(spec, &batch, &counts, 0..batch.len(), out);
                    }),
                    Some(residual) => look_ups.pair_some(rows_max, |index, batch, pairs, is_done| {
                        counts.resize(batch.len(), 0);
                        let sides = [(batch, &pairs.rows[..]), (&index.rows, &pairs.indexed[..])];
                        count_pairs(spec, residual, sides, &mut counts, out);
                        if is_done {
                            give(spec, batch, &counts, 0..batch.len(), out);
                            counts.clear();
                        }
                    }),
                }
                (!look_ups.is_over()).then_some(HashMatches::Asking { look_ups, sums, counts })
            }
            HashMatches::Giving { rows, counts, from } => {
                let upto = (from + BATCH_ROWS).min(rows.len());
                give(spec, &rows, &counts, from..upto, out);
                (upto < rows.len()).then_some(HashMatches::Giving { rows, counts, from: upto })
            }
            HashMatches::Unmatched { mut rows } => {
                if let Some(batch) = rows.pop() {
                    give(spec, &batch, &vec![0; batch.len()], 0..batch.len(), out);
                }
                (!rows.is_empty()).then_some(HashMatches::Unmatched { rows })
            }
        }
    }

    pub fn size_bytes(&self) -> usize {
        let counts = |counts: &Vec<Diff>| counts.capacity() * size_of::<Diff>();
        match self {
            HashMatches::Counting { look_ups, counts: of } => look_ups.size_bytes() + counts(of),
            HashMatches::Asking { look_ups, sums, counts: of } => look_ups.size_bytes() + counts(sums) + counts(of),
            HashMatches::Giving { rows, counts: of, .. } => rows.size_bytes() + counts(of),
            HashMatches::Unmatched { rows } => rows.iter().map(Batch::size_bytes).sum(),
        }
    }
}

/// Adds the right diffs of the pairs that pass to the counts of their left rows.
fn count_pairs(spec: &SemiJoinSpec, residual: &Residual, sides: [Side<'_>; 2], counts: &mut [Diff], out: &mut Output) {
    let [left, right] = sides;
    if left.1.is_empty() {
        return;
    }
    let from_left = gathered(left.0, &residual.gather_left, left.1);
    let from_right = gathered(right.0, &residual.gather_right, right.1);
    let columns: Columns = from_left.iter().chain(from_right.iter()).cloned().collect();
    let rows = Batch::with_len(columns, left.1.len(), Times::Constant(spec.as_of), products(sides));
    let (mask, errors) = evaluate_mask(&residual.predicate, &rows);
    errors.into_iter().for_each(|error| out.give_errors(error));
    for pair in mask.values().set_indices() {
        counts[left.1[pair] as usize] += right.0.diffs().get(right.1[pair] as usize);
    }
}

/// Puts out some left rows, by their counts.
fn give(spec: &SemiJoinSpec, rows: &Batch, counts: &[Diff], range: std::ops::Range<usize>, out: &mut Output) {
    let SemiJoinSpec { keep, gather, stage, as_of, .. } = spec;
    let is_present = |row: usize| rows.present().is_none_or(|present| present.value(row));
    let is_given = |row: &usize| match keep {
        Keep::Semi => counts[*row] > 0,
        Keep::Anti => counts[*row] <= 0,
        Keep::Mark => true,
    };
    let given: Vec<u32> = range.filter(|row| is_present(*row)).filter(is_given).map(|row| row as u32).collect();
    if given.is_empty() {
        return;
    }
    let mut columns = gathered(rows, gather, &given).to_vec();
    if *keep == Keep::Mark {
        let marks = given.iter().map(|&row| Some(counts[row as usize] > 0));
        columns.push(Arc::new(marks.collect::<BooleanArray>()));
    }
    let diffs = rows.diffs().take(&given);
    stage.apply(Batch::with_len(columns.into(), given.len(), Times::Constant(*as_of), diffs), out);
}

fn has_no_nulls(batch: &Batch, key: &[usize]) -> bool {
    key.iter().all(|&column| batch.column(column).logical_null_count() == 0)
}
