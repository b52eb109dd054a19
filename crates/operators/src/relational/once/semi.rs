//! Semi, anti and mark joins that are asked once.

use std::sync::Arc;

use anabranch_batch::order::Nulls;
use anabranch_batch::{Batch, Columns, Diff, Time, Times};
use anabranch_flow::tactic::{Output, Timed};
use arrow::array::{Array, BooleanArray};

use super::Waiting;
use super::index::{KeyIndex, gathered};
use super::pairs::{LookUps, Side, products};
use crate::relational::semi_join::{Keep, Residual, SemiJoinSpec};
use crate::stateless::filter_project::evaluate_mask;

/// Rows that are put out together.
const BATCH_ROWS: usize = 1 << 16;

/// The tactic. See the module's page.
pub struct OnceSemiJoin {
    spec: SemiJoinSpec,
    waiting: Waiting,
    work: Option<Work>,
    is_answered: bool,
}

/// What is looked up in what.
enum Work {
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

impl OnceSemiJoin {
    /// A join of nothing so far.
    pub fn new(spec: SemiJoinSpec) -> OnceSemiJoin {
        OnceSemiJoin { spec, waiting: Waiting::default(), work: None, is_answered: false }
    }

    fn begin(&mut self) -> Option<Work> {
        let is_left_smaller = self.waiting.smaller() == 0;
        let [left, right] = std::mem::take(&mut self.waiting).sides;
        let SemiJoinSpec { left_key, right_key, nulls, keep, residual, .. } = &self.spec;
        // (Rows whose key matches nothing are not in an index, but only a semi-join can do
        // without.)
        let is_whole = || left.iter().all(|batch| has_no_nulls(batch, left_key));
        if is_left_smaller && (*keep == Keep::Semi || *nulls == Nulls::Equal || is_whole()) {
            let index = KeyIndex::new(left, left_key, *nulls)?;
            let n_counts = if residual.is_some() { index.rows.len() } else { index.n_keys() };
            let look_ups = LookUps::new(index, right_key, right);
            return Some(Work::Counting { look_ups, counts: vec![0; n_counts] });
        }
        let Some(index) = KeyIndex::new(right, right_key, *nulls) else { return Some(Work::Unmatched { rows: left }) };
        let sums = index.sums();
        Some(Work::Asking { look_ups: LookUps::new(index, left_key, left), sums, counts: vec![] })
    }

    /// Goes on for a turn; returns what is left to do.
    fn work(&self, work: Work, out: &mut Output) -> Option<Work> {
        match work {
            Work::Counting { mut look_ups, mut counts } => {
                match &self.spec.residual {
                    None => look_ups.meet_some(|_, batch, met| {
                        for (&row, &key) in met.rows.iter().zip(&met.keys) {
                            counts[key as usize] += batch.diffs().get(row as usize);
                        }
                    }),
                    Some(residual) => look_ups.pair_some(|index, batch, pairs, _| {
                        let sides = [(&index.rows, &pairs.indexed[..]), (batch, &pairs.rows[..])];
                        self.count_pairs(residual, sides, &mut counts, out);
                    }),
                }
                if !look_ups.is_over() {
                    return Some(Work::Counting { look_ups, counts });
                }
                let index = look_ups.index;
                let counts = match self.spec.residual {
                    Some(_) => counts,
                    None => index.key_of_row().iter().map(|&key| counts[key as usize]).collect(),
                };
                Some(Work::Giving { rows: index.rows, counts, from: 0 })
            }
            Work::Asking { mut look_ups, sums, mut counts } => {
                match &self.spec.residual {
                    None => look_ups.meet_some(|_, batch, met| {
                        let mut counts = vec![0; batch.len()];
                        for (&row, &key) in met.rows.iter().zip(&met.keys) {
                            counts[row as usize] += sums[key as usize];
                        }
                        self.give(&batch, &counts, 0..batch.len(), out);
                    }),
                    Some(residual) => look_ups.pair_some(|index, batch, pairs, is_done| {
                        counts.resize(batch.len(), 0);
                        let sides = [(batch, &pairs.rows[..]), (&index.rows, &pairs.indexed[..])];
                        self.count_pairs(residual, sides, &mut counts, out);
                        if is_done {
                            self.give(batch, &counts, 0..batch.len(), out);
                            counts.clear();
                        }
                    }),
                }
                (!look_ups.is_over()).then_some(Work::Asking { look_ups, sums, counts })
            }
            Work::Giving { rows, counts, from } => {
                let upto = (from + BATCH_ROWS).min(rows.len());
                self.give(&rows, &counts, from..upto, out);
                (upto < rows.len()).then_some(Work::Giving { rows, counts, from: upto })
            }
            Work::Unmatched { mut rows } => {
                if let Some(batch) = rows.pop() {
                    self.give(&batch, &vec![0; batch.len()], 0..batch.len(), out);
                }
                (!rows.is_empty()).then_some(Work::Unmatched { rows })
            }
        }
    }

    /// Adds the right diffs of the pairs that pass to the counts of their left rows.
    fn count_pairs(&self, residual: &Residual, sides: [Side<'_>; 2], counts: &mut [Diff], out: &mut Output) {
        let [left, right] = sides;
        if left.1.is_empty() {
            return;
        }
        let from_left = gathered(left.0, &residual.gather_left, left.1);
        let from_right = gathered(right.0, &residual.gather_right, right.1);
        let columns: Columns = from_left.iter().chain(from_right.iter()).cloned().collect();
        let rows = Batch::with_len(columns, left.1.len(), Times::Constant(self.spec.as_of), products(sides));
        let (mask, errors) = evaluate_mask(&residual.predicate, &rows);
        errors.into_iter().for_each(|error| out.give_errors(error));
        for pair in mask.values().set_indices() {
            counts[left.1[pair] as usize] += right.0.diffs().get(right.1[pair] as usize);
        }
    }

    /// Puts out some left rows, by their counts.
    fn give(&self, rows: &Batch, counts: &[Diff], range: std::ops::Range<usize>, out: &mut Output) {
        let SemiJoinSpec { keep, gather, stage, as_of, .. } = &self.spec;
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
}

fn has_no_nulls(batch: &Batch, key: &[usize]) -> bool {
    key.iter().all(|&column| batch.column(column).logical_null_count() == 0)
}

impl Timed for OnceSemiJoin {
    fn push(&mut self, input: usize, batch: Batch) {
        if !self.is_answered {
            self.waiting.push(input, batch, self.spec.as_of);
        }
    }

    fn takes_absent(&self) -> bool {
        true
    }

    fn advance(&mut self, upto: Time, out: &mut Output) {
        if upto <= self.spec.as_of {
            return;
        }
        if !self.is_answered {
            self.is_answered = true;
            self.work = self.begin();
        }
        if let Some(work) = self.work.take() {
            self.work = self.work(work, out);
        }
    }

    fn has_more(&self) -> bool {
        self.work.is_some()
    }

    fn pending_from(&self) -> Option<Time> {
        (self.waiting.is_due || self.work.is_some()).then_some(self.spec.as_of)
    }

    fn size_bytes(&self) -> usize {
        let counts = |counts: &Vec<Diff>| counts.capacity() * size_of::<Diff>();
        let work = match &self.work {
            None => 0,
            Some(Work::Counting { look_ups, counts: of }) => look_ups.size_bytes() + counts(of),
            Some(Work::Asking { look_ups, sums, counts: of }) => look_ups.size_bytes() + counts(sums) + counts(of),
            Some(Work::Giving { rows, counts: of, .. }) => rows.size_bytes() + counts(of),
            Some(Work::Unmatched { rows }) => rows.iter().map(Batch::size_bytes).sum(),
        };
        self.waiting.size_bytes() + work
    }
}
