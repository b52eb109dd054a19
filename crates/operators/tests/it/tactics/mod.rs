//! The law of every tactic: what has come out accumulates, at every time, to what a model computes
//! from what went in, whatever the cut into batches and the order of arrival.

mod aggregate;
mod aggregate_model;
mod combine;
mod random;
mod set_operation;
mod top_k;
mod types;

use std::cmp::Ordering;
use std::collections::BTreeMap;

use anabranch_batch::order::Direction;
use anabranch_batch::{Batch, Diff, Diffs, Time, Times, hash};
use anabranch_flow::tactic::{Output, Timed};
use arrow::array::{ArrayRef, BooleanArray, Decimal128Array, Float64Array, Int32Array, Int64Array, StringViewArray};
use arrow::datatypes::DataType;
use arrow::util::display::array_value_to_string;
use random::Random;
use std::sync::Arc;

/// A row of the test data. `None` is NULL.
#[derive(Clone, Debug, PartialEq, PartialOrd)]
pub struct Row {
    pub key: Option<i64>,
    pub name: Option<&'static str>,
    pub small: Option<i32>,
    pub big: Option<i64>,
    pub price: Option<i128>,
    pub float: Option<f64>,
    pub flag: Option<bool>,
}

/// Positions of a row's columns.
pub const KEY: usize = 0;
pub const NAME: usize = 1;
pub const SMALL: usize = 2;
pub const BIG: usize = 3;
pub const PRICE: usize = 4;
pub const FLOAT: usize = 5;
pub const FLAG: usize = 6;

pub const PRICE_TYPE: DataType = DataType::Decimal128(15, 2);

pub fn types() -> Vec<DataType> {
    use DataType::*;
    vec![Int64, Utf8View, Int32, Int64, PRICE_TYPE, Float64, Boolean]
}

pub type Update = (Row, Time, Diff);

pub fn columns(rows: &[Row]) -> Vec<ArrayRef> {
    let price: Decimal128Array = rows.iter().map(|row| row.price).collect();
    vec![
        Arc::new(rows.iter().map(|row| row.key).collect::<Int64Array>()),
        Arc::new(rows.iter().map(|row| row.name).collect::<StringViewArray>()),
        Arc::new(rows.iter().map(|row| row.small).collect::<Int32Array>()),
        Arc::new(rows.iter().map(|row| row.big).collect::<Int64Array>()),
        Arc::new(price.with_precision_and_scale(15, 2).expect("a legal decimal")),
        Arc::new(rows.iter().map(|row| row.float).collect::<Float64Array>()),
        Arc::new(rows.iter().map(|row| row.flag).collect::<BooleanArray>()),
    ]
}

pub fn batch(updates: &[Update]) -> Batch {
    let rows: Vec<Row> = updates.iter().map(|(row, ..)| row.clone()).collect();
    let times = Times::Column(updates.iter().map(|&(_, time, _)| time).collect()).simplify();
    let diffs = Diffs::Column(updates.iter().map(|&(.., diff)| diff).collect()).simplify();
    Batch::new(columns(&rows), times, diffs)
}

/// Rows with their multiplicities.
pub type Bag = BTreeMap<Vec<String>, Diff>;

pub fn add(bag: &mut Bag, row: Vec<String>, diff: Diff) {
    let count = bag.entry(row.clone()).or_insert(0);
    *count += diff;
    if *count == 0 {
        bag.remove(&row);
    }
}

pub fn text(columns: &[ArrayRef], row: usize) -> Vec<String> {
    let cell = |column: &ArrayRef| match column.is_null(row) {
        true => "NULL".into(),
        false => array_value_to_string(column, row).expect("values can be shown"),
    };
    columns.iter().map(cell).collect()
}

/// Times of random updates are below this one.
pub const TIMES: Time = 12;

/// Random updates, in order of time: insertions, removals of what is there, pairs that cancel.
pub fn updates(random: &mut Random, n: usize) -> Vec<Update> {
    let mut present: Vec<Row> = Vec::new();
    let mut updates = Vec::new();
    for index in 0..n {
        let time = index as Time * TIMES / n as Time;
        match random.below(10) {
            0..=2 if !present.is_empty() => {
                let row = present.swap_remove(random.below(present.len()));
                updates.push((row, time, -1));
            }
            3 => {
                let (row, diff) = (random.row(), 1 + random.below(5) as Diff);
                updates.extend([(row.clone(), time, diff), (row, time, -diff)]);
            }
            4 => {
                let row = random.row();
                present.extend([row.clone(), row.clone(), row.clone()]);
                updates.push((row, time, 3));
            }
            _ => {
                let row = random.row();
                present.push(row.clone());
                updates.push((row, time, 1));
            }
        }
    }
    updates
}

pub const ASCENDING: Direction = Direction { descending: false, nulls_first: false };
pub const DESCENDING: Direction = Direction { descending: true, nulls_first: true };

/// Compares two cells as a direction says.
fn compare<T: PartialOrd>(left: &Option<T>, right: &Option<T>, direction: Direction) -> Ordering {
    match (left, right) {
        (Some(left), Some(right)) => {
            let order = left.partial_cmp(right).expect("no NaN in these tests");
            if direction.descending { order.reverse() } else { order }
        }
        (left, right) => {
            let order = left.is_none().cmp(&right.is_none());
            if direction.nulls_first { order.reverse() } else { order }
        }
    }
}

pub fn compare_column(left: &Row, right: &Row, column: usize, direction: Direction) -> Ordering {
    match column {
        KEY => compare(&left.key, &right.key, direction),
        NAME => compare(&left.name, &right.name, direction),
        SMALL => compare(&left.small, &right.small, direction),
        BIG => compare(&left.big, &right.big, direction),
        PRICE => compare(&left.price, &right.price, direction),
        FLOAT => compare(&left.float, &right.float, direction),
        _ => compare(&left.flag, &right.flag, direction),
    }
}

/// What updates accumulate to at each time.
pub fn contents(updates: &[Update], at: Time) -> Vec<(Row, Diff)> {
    let mut contents: Vec<(Row, Diff)> = Vec::new();
    for (row, _, diff) in updates.iter().filter(|&&(_, time, _)| time <= at) {
        match contents.iter_mut().find(|(other, _)| other == row) {
            Some((_, count)) => *count += diff,
            None => contents.push((row.clone(), *diff)),
        }
    }
    contents.retain(|&(_, count)| count != 0);
    contents
}

/// Rows and errors that came out, by time.
#[derive(Default)]
pub struct Collected {
    pub rows: Vec<(Vec<String>, Time, Diff)>,
    pub errors: Vec<(Vec<String>, Time, Diff)>,
}

impl Collected {
    pub fn take(&mut self, output: &mut Output) {
        collect(&mut self.rows, std::mem::take(&mut output.rows));
        collect(&mut self.errors, std::mem::take(&mut output.errors));
    }

    pub fn rows_at(&self, at: Time) -> Bag {
        bag_at(&self.rows, at)
    }

    pub fn errors_at(&self, at: Time) -> Bag {
        bag_at(&self.errors, at)
    }

    /// Nothing came out that other output of the same time cancels.
    pub fn assert_minimal(&self) {
        let mut net: BTreeMap<(&[String], Time), (Diff, Diff)> = BTreeMap::new();
        for (row, time, diff) in self.rows.iter().chain(&self.errors) {
            let (sum, size) = net.entry((row, *time)).or_default();
            *sum += diff;
            *size += diff.abs();
        }
        for ((row, time), (sum, size)) in net {
            assert_eq!(sum.abs(), size, "{row:?} at {time} is put out and taken back");
        }
    }
}

fn collect(into: &mut Vec<(Vec<String>, Time, Diff)>, batches: Vec<Batch>) {
    for batch in batches {
        assert!(!batch.is_empty() && batch.present().is_none());
        into.extend(
            (0..batch.len()).map(|row| (text(batch.columns(), row), batch.times().get(row), batch.diffs().get(row))),
        );
    }
}

fn bag_at(updates: &[(Vec<String>, Time, Diff)], at: Time) -> Bag {
    let mut bag = Bag::new();
    for (row, _, diff) in updates.iter().filter(|&&(_, time, _)| time <= at) {
        add(&mut bag, row.clone(), *diff);
    }
    bag
}

/// Pushes all updates (of each input), shuffled and cut at random, and advances at random, to the
/// end.
pub fn run(tactic: &mut dyn Timed, inputs: &[Vec<Update>], random: &mut Random) -> Collected {
    let collected = run_with(tactic, inputs, random, false);
    collected.assert_minimal();
    collected
}

/// As [`run`]. If it `folds`, the tactic is asked to take in what there is of a time that is not
/// complete.
pub fn run_with(tactic: &mut dyn Timed, inputs: &[Vec<Update>], random: &mut Random, folds: bool) -> Collected {
    let mut collected = Collected::default();
    let mut frontier = 0;
    while frontier < TIMES {
        let next = frontier + 1 + random.below(5) as Time;
        for (input, updates) in inputs.iter().enumerate() {
            let due: Vec<Update> =
                updates.iter().filter(|&&(_, time, _)| (frontier..next).contains(&time)).cloned().collect();
            let (early, late): (Vec<Update>, Vec<Update>) =
                due.into_iter().partition(|&(_, time, _)| folds && time == frontier && random.below(2) == 0);
            push_shuffled(tactic, input, early, random);
            if folds {
                let mut output = Output::default();
                tactic.fold(frontier, &mut output);
                let batches = output.rows.iter().chain(&output.errors);
                batches.for_each(|batch| assert_eq!((batch.times().min(), batch.times().max()), (frontier, frontier)));
                collected.take(&mut output);
                check_recall(tactic, &collected);
            }
            push_shuffled(tactic, input, late, random);
        }
        assert!(tactic.pending_from().is_none_or(|time| time >= frontier));
        // Perhaps in two steps: some updates are ahead of the frontier then.
        for upto in [frontier + 1, next] {
            let mut output = Output::default();
            tactic.advance(upto, &mut output);
            let times =
                output.rows.iter().chain(&output.errors).map(|batch| (batch.times().min(), batch.times().max()));
            times.for_each(|(from, to)| assert!(from >= frontier && to < upto, "output times lie in the interval"));
            collected.take(&mut output);
            check_recall(tactic, &collected);
        }
        frontier = next;
    }
    assert_eq!(tactic.pending_from(), None);
    collected
}

/// What a tactic tells of its rows is what has come out.
fn check_recall(tactic: &mut dyn Timed, collected: &Collected) {
    if tactic.recalls() {
        let mut told = Vec::new();
        collect(&mut told, tactic.recall().into_iter().filter(|batch| !batch.is_empty()).collect());
        assert!(told.len() <= tactic.n_recalled());
        assert_eq!(bag_at(&told, Time::MAX), collected.rows_at(Time::MAX), "what is recalled");
    }
}

/// Retracts all that is left, after the last time.
pub fn retract(tactic: &mut dyn Timed, inputs: &[Vec<Update>]) -> Output {
    for (input, updates) in inputs.iter().enumerate() {
        let rest: Vec<Update> =
            contents(updates, TIMES).into_iter().map(|(row, count)| (row, TIMES + 20, -count)).collect();
        tactic.push(input, batch(&rest));
    }
    let mut output = Output::default();
    tactic.advance(TIMES + 21, &mut output);
    output
}

fn push_shuffled(tactic: &mut dyn Timed, input: usize, mut updates: Vec<Update>, random: &mut Random) {
    // (In order of time now and then, as rows mostly come.)
    if random.below(3) > 0 {
        for index in (1..updates.len()).rev() {
            updates.swap(index, random.below(index + 1));
        }
    }
    let mut rest = updates.as_slice();
    while !rest.is_empty() {
        let (some, others) = rest.split_at(1 + random.below(rest.len()));
        let batch = if tactic.takes_absent() { batch_with_absent(some, random) } else { batch(some) };
        tactic.push(input, batch);
        rest = others;
    }
}

/// The updates, and rows between them that are absent.
pub fn batch_with_absent(updates: &[Update], random: &mut Random) -> Batch {
    let mut all: Vec<Update> = Vec::new();
    let mut present: Vec<bool> = Vec::new();
    for update in updates {
        if random.below(4) == 0 {
            all.push((random.row(), update.1, 1));
            present.push(false);
        }
        all.push(update.clone());
        present.push(true);
    }
    batch(&all).with_present(present.into())
}

/// Runs `test` with several seeds; a failure names the seed. `SEED=n` runs that one only.
pub fn with_seeds(mut test: impl FnMut(&mut Random)) {
    hash::set_mask_for_tests(crate::hash_mask());
    let seeds = match std::env::var("SEED") {
        Ok(seed) => vec![seed.parse().expect("SEED is a number")],
        Err(_) => (0..25).collect(),
    };
    for seed in seeds {
        let guard = NameSeed(seed);
        test(&mut Random::new(seed));
        std::mem::forget(guard);
    }
}

struct NameSeed(u64);

impl Drop for NameSeed {
    fn drop(&mut self) {
        eprintln!("failed with SEED={}", self.0);
    }
}
