//! Joins that are asked once, against pairs in plain code.

use std::collections::BTreeMap;
use std::sync::Arc;

use anabranch_batch::order::Nulls;
use anabranch_batch::{Batch, Diff, Diffs, Times};
use anabranch_flow::tactic::{Output, Timed};
use arrow::array::{ArrayRef, AsArray, BooleanArray, Int64Array, StringViewArray};
use arrow::buffer::BooleanBuffer;
use arrow::datatypes::Int64Type;

use super::{OnceJoin, OnceSemiJoin};
use crate::expression::Expression;
use crate::relational::join::JoinSpec;
use crate::relational::semi_join::{Keep, Residual, SemiJoinSpec};
use crate::stateless::filter_project::Stage;

const AS_OF: i64 = 5;
const STAGE: Stage = Stage { filter: vec![], kept: None, project: None };

/// Numbers that look random.
struct Rng(u64);

impl Rng {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 33) as usize % n
    }
}

/// A row of (k, n): the key, and a number.
type Row = (Option<i64>, i64);

/// Whether the first number is less than the second, for one of them 13 an error.
struct IsLess;

impl Expression for IsLess {
    fn evaluate(&self, columns: &anabranch_batch::Columns, _rows: usize) -> Result<ArrayRef, String> {
        let [left, right] = [0, 1].map(|column| columns[column].as_primitive::<Int64Type>().values().to_vec());
        if left.contains(&13) {
            return Err("thirteen".to_owned());
        }
        Ok(Arc::new(left.iter().zip(right).map(|(left, right)| Some(*left < right)).collect::<BooleanArray>()))
    }
}

/// Rows of a side with their times, which may be after the one that is asked for, and diffs.
fn random_rows(rng: &mut Rng, n: usize, n_keys: usize, spread: i64) -> Vec<(Row, i64, Diff)> {
    let row = |rng: &mut Rng| {
        let key = (rng.below(10) > 0).then(|| rng.below(n_keys) as i64 * spread);
        ((key, rng.below(20) as i64), rng.below(8) as i64, if rng.below(8) == 0 { 2 } else { 1 })
    };
    let mut rows: Vec<(Row, i64, Diff)> = (0..n).map(|_| row(rng)).collect();
    // (Some are taken away again.)
    for at in 0..n / 5 {
        let (row, time, diff) = rows[at];
        rows.push((row, time.max(3), -diff));
    }
    rows
}

/// The rows in batches, of which some have absent rows. Keys are integers, texts, or both.
fn batches(rng: &mut Rng, rows: &[(Row, i64, Diff)], form: usize) -> Vec<Batch> {
    let mut batches = Vec::new();
    let mut rest = rows;
    while !rest.is_empty() {
        let (now, later) = rest.split_at((1 + rng.below(40)).min(rest.len()));
        rest = later;
        // Each row twice, of which one is absent, in some batches.
        let copies = 1 + rng.below(2);
        let each = || now.iter().flat_map(|row| std::iter::repeat_n(row, copies));
        let key = |row: &Row| row.0;
        let integers: ArrayRef = Arc::new(each().map(|row| key(&row.0)).collect::<Int64Array>());
        let texts = each().map(|row| key(&row.0).map(|key| format!("a text of key number {key}")));
        let texts: ArrayRef = Arc::new(texts.collect::<StringViewArray>());
        let numbers: ArrayRef = Arc::new(each().map(|row| row.0.1).collect::<Int64Array>());
        let keys = match form {
            0 => vec![integers],
            1 => vec![texts],
            _ => vec![integers, texts],
        };
        let columns = keys.into_iter().chain([numbers]).collect();
        let times = Times::Column(each().map(|row| row.1).collect::<Vec<i64>>().into()).simplify();
        let diffs = Diffs::Column(each().map(|row| row.2).collect::<Vec<i64>>().into()).simplify();
        let batch = Batch::new(columns, times, diffs);
        batches.push(match copies {
            1 => batch,
            _ => batch.with_present((0..2 * now.len()).map(|row| row % 2 == 1).collect::<BooleanBuffer>()),
        });
    }
    batches
}

/// What accumulates of the rows of some batches, by the columns of integers and of marks.
fn accumulated(batches: &[Batch], columns: &[usize]) -> BTreeMap<Vec<i64>, Diff> {
    let mut all = BTreeMap::new();
    for batch in batches {
        let batch = batch.clone().compact();
        assert!(matches!(batch.times(), Times::Constant(AS_OF)));
        for row in 0..batch.len() {
            let cell = |column: &usize| {
                let column = batch.column(*column);
                let mark = column.as_boolean_opt().map(|marks| i64::from(marks.value(row)));
                mark.unwrap_or_else(|| column.as_primitive::<Int64Type>().value(row))
            };
            *all.entry(columns.iter().map(cell).collect()).or_insert(0) += batch.diffs().get(row);
        }
    }
    all.retain(|_, diff| *diff != 0);
    all
}

fn run(tactic: &mut dyn Timed, sides: [Vec<Batch>; 2]) -> Output {
    let mut out = Output::default();
    for (side, batches) in sides.into_iter().enumerate() {
        batches.into_iter().for_each(|batch| tactic.push(side, batch));
    }
    tactic.advance(AS_OF, &mut out);
    assert!(out.is_empty() && !tactic.has_more());
    while tactic.pending_from().is_some() {
        tactic.advance(AS_OF + 1, &mut out);
        assert!(tactic.size_bytes() < 1 << 30);
    }
    assert!(!tactic.has_more());
    out
}

fn current(rows: &[(Row, i64, Diff)]) -> BTreeMap<Row, Diff> {
    let mut all = BTreeMap::new();
    rows.iter().filter(|row| row.1 <= AS_OF).for_each(|(row, _, diff)| *all.entry(*row).or_insert(0) += diff);
    all.retain(|_, diff| *diff != 0);
    all
}

#[test]
fn random_sides_join_as_in_plain_code() {
    let mut rng = Rng(77);
    for _ in 0..300 {
        let form = rng.below(3);
        let n_keys = [1, 5, 60][rng.below(3)];
        let spread = [1, 1_000_003][rng.below(2)];
        let sizes = [0, 3, 50, 200];
        let rows = [(); 2].map(|()| {
            let n = sizes[rng.below(4)];
            random_rows(&mut rng, n, n_keys, spread)
        });
        let nulls = if rng.below(2) == 0 { Nulls::Equal } else { Nulls::Differ };
        let n_key_columns = if form == 2 { 2 } else { 1 };
        let key: Vec<usize> = (0..n_key_columns).collect();
        let sides = rows.each_ref().map(|rows| batches(&mut rng, rows, form));
        let [left, right] = rows.each_ref().map(|rows| current(rows));
        let do_match = |left: &Row, right: &Row| left.0 == right.0 && (left.0.is_some() || nulls == Nulls::Equal);

        let spec = JoinSpec {
            left_key: key.clone(),
            right_key: key.clone(),
            nulls,
            gather_left: vec![n_key_columns],
            gather_right: vec![n_key_columns],
            stage: STAGE,
            as_of: AS_OF,
        };
        let mut expected = BTreeMap::new();
        for (a, a_diff) in &left {
            for (b, b_diff) in right.iter().filter(|(b, _)| do_match(a, b)) {
                *expected.entry(vec![a.1, b.1]).or_insert(0) += a_diff * b_diff;
            }
        }
        expected.retain(|_, diff| *diff != 0);
        let out = run(&mut OnceJoin::new(spec), sides.clone());
        assert_eq!(accumulated(&out.rows, &[0, 1]), expected);

        let has_residual = rng.below(2) == 0;
        let residual = has_residual.then(|| Residual {
            gather_left: vec![n_key_columns],
            gather_right: vec![n_key_columns],
            predicate: Arc::new(IsLess),
        });
        for keep in [Keep::Semi, Keep::Anti, Keep::Mark] {
            let spec = SemiJoinSpec {
                left_key: key.clone(),
                right_key: key.clone(),
                nulls,
                keep,
                residual: residual.clone(),
                gather: vec![n_key_columns],
                stage: STAGE,
                as_of: AS_OF,
            };
            let mut expected = BTreeMap::new();
            let mut n_errors = 0;
            for (a, a_diff) in &left {
                let matches = right.iter().filter(|(b, _)| do_match(a, b));
                let passes = |b: &Row| !has_residual || a.1 != 13 && a.1 < b.1;
                let sum: Diff = matches.clone().filter(|(b, _)| passes(b)).map(|(_, diff)| diff).sum();
                if has_residual && a.1 == 13 {
                    n_errors += matches.map(|(_, diff)| diff * a_diff).sum::<Diff>();
                }
                let row = match keep {
                    Keep::Semi if sum <= 0 => continue,
                    Keep::Anti if sum > 0 => continue,
                    Keep::Mark => vec![a.1, i64::from(sum > 0)],
                    _ => vec![a.1],
                };
                *expected.entry(row).or_insert(0) += a_diff;
            }
            expected.retain(|_, diff| *diff != 0);
            let out = run(&mut OnceSemiJoin::new(spec), sides.clone());
            let columns: &[usize] = if keep == Keep::Mark { &[0, 1] } else { &[0] };
            assert_eq!(accumulated(&out.rows, columns), expected, "{keep:?}");
            let errors = out.errors.iter().flat_map(|batch| (0..batch.len()).map(|row| batch.diffs().get(row)));
            assert_eq!(errors.sum::<Diff>(), n_errors);
        }
    }
}

#[test]
fn many_pairs_of_one_key_come_in_several_turns() {
    let rows = |n: i64| {
        let keys: ArrayRef = Arc::new(Int64Array::from(vec![7; n as usize]));
        let numbers: ArrayRef = Arc::new((0..n).collect::<Int64Array>());
        vec![Batch::new(vec![keys, numbers], Times::Constant(1), Diffs::Constant(1))]
    };
    let spec = JoinSpec {
        left_key: vec![0],
        right_key: vec![0],
        nulls: Nulls::Differ,
        gather_left: vec![1],
        gather_right: vec![1],
        stage: STAGE,
        as_of: AS_OF,
    };
    let mut join = OnceJoin::new(spec);
    let (mut out, mut n_turns) = (Output::default(), 0);
    join.push(0, rows(700).remove(0));
    join.push(1, rows(900).remove(0));
    while join.pending_from().is_some() {
        join.advance(AS_OF + 1, &mut out);
        n_turns += 1;
    }
    assert!(n_turns > 1 && out.rows.iter().all(|batch| batch.len() < 1 << 17));
    assert_eq!(out.rows.iter().map(Batch::len).sum::<usize>(), 630_000);
    assert_eq!(accumulated(&out.rows, &[0, 1]).len(), 630_000);
}
