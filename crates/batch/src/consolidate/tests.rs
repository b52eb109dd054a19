use super::*;
use crate::testing::{Rng, all_types, cell, random_column};
use crate::{END, Until};
use arrow::array::{ArrayRef, Int64Array, StringViewArray};
use arrow::buffer::BooleanBuffer;
use std::collections::BTreeMap;
use std::sync::Arc;

/// What a batch means: the sum of diffs of each row at each time, zeros left out. Plain code on cells as text.
fn meaning(batch: &Batch) -> BTreeMap<(Vec<String>, i64), i64> {
    let mut sums = BTreeMap::new();
    for row in (0..batch.len()).filter(|&row| batch.present().is_none_or(|present| present.value(row))) {
        let cells: Vec<String> = batch.columns().iter().map(|column| cell(column, row)).collect();
        let (time, diff) = (batch.times().get(row), batch.diffs().get(row));
        let until = batch.until().get(row, time);
        if until > time {
            *sums.entry((cells.clone(), time)).or_insert(0) += diff;
            if until < END {
                *sums.entry((cells, until)).or_insert(0) -= diff;
            }
        }
    }
    sums.retain(|_, sum| *sum != 0);
    sums
}

fn assert_consolidates(batch: Batch) {
    let expected = meaning(&batch);
    let result = consolidate(batch);
    assert!(matches!(result.until(), Until::Forever) && result.present().is_none());
    assert_eq!(result.len(), expected.len(), "one update a row and time");
    assert_eq!(meaning(&result), expected);
    let hashes = hash::hash_columns(result.columns(), result.len());
    let places: Vec<(u64, i64)> = hashes.iter().enumerate().map(|(row, &hash)| (hash, result.times().get(row))).collect();
    assert!(places.is_sorted(), "rows are in order of (hash, time)");
}

fn random_batch(rng: &mut Rng, columns: Vec<ArrayRef>, len: usize) -> Batch {
    let times = match rng.chance(30) {
        true => Times::Constant(5),
        false => Times::Column((0..len).map(|_| rng.below(4) as i64).collect()),
    };
    let diffs = match rng.chance(30) {
        true => Diffs::Constant(1),
        false => Diffs::Column((0..len).map(|_| rng.below(5) as i64 - 2).collect()),
    };
    let until = match rng.below(4) {
        0 => Until::Duration(rng.below(3) as i64),
        1 => Until::Column((0..len).map(|_| if rng.chance(50) { END } else { rng.below(8) as i64 }).collect()),
        _ => Until::Forever,
    };
    let batch = Batch::with_len(columns.into(), len, times, diffs).with_until(until);
    match rng.chance(30) {
        true => batch.with_present(BooleanBuffer::collect_bool(len, |_| rng.chance(60))),
        false => batch,
    }
}

#[test]
fn any_batch_keeps_its_meaning() {
    let mut rng = Rng::from_env(7);
    let types = all_types();
    for round in 0..400 {
        let len = rng.below(120);
        let n_columns = rng.below(4);
        let columns = (0..n_columns).map(|_| { let data_type = rng.pick(&types).clone(); random_column(&mut rng, &data_type, len) });
        let columns: Vec<ArrayRef> = columns.collect();
        let batch = random_batch(&mut rng, columns.clone(), len);
        println!("round {round}, {len} rows of {:?}", columns.iter().map(|c| c.data_type().to_string()).collect::<Vec<_>>());
        assert_consolidates(batch);
    }
}

#[test]
fn rows_that_collide_stay_apart() {
    // Equal key hashes for all rows: what a collision of the whole row looks like.
    let column: ArrayRef = Arc::new(Int64Array::from(vec![3, 1, 3, 2, 1, 3]));
    let key = crate::Key { columns: [0].into(), hashes: vec![9; 6].into() };
    let text: ArrayRef = Arc::new(StringViewArray::from(vec!["x", "y", "x", "x", "y", "x"]));
    for columns in [vec![text]] {
        let batch = Batch::new(columns, Times::Constant(1), Diffs::Constant(1)).with_hashes(key.clone());
        let result = consolidate(batch);
        assert_eq!(meaning(&result).into_values().collect::<Vec<_>>(), [4, 2]);
        assert_eq!(result.len(), 2);
    }
    let batch = Batch::new(vec![column.clone(), column], Times::Constant(1), Diffs::Constant(1));
    let key = crate::Key { columns: [0, 1].into(), ..key };
    let result = consolidate(batch.with_hashes(key));
    assert_eq!(meaning(&result).into_values().collect::<Vec<_>>(), [2, 1, 3]);
}

#[test]
fn updates_that_cancel_leave_nothing() {
    let column: ArrayRef = Arc::new(Int64Array::from(vec![Some(1), None]));
    let batch = Batch::new(vec![column], Times::Constant(0), Diffs::Constant(1));
    let both = Batch::concat(&[batch.clone(), batch.negate()]).unwrap();
    assert!(consolidate(both).is_empty());
}

#[test]
fn rows_without_columns_are_counted() {
    let batch = Batch::with_len(Arc::from([]), 5, Times::Constant(0), Diffs::Constant(2));
    let result = consolidate(batch);
    assert_eq!((result.len(), result.diffs().get(0)), (1, 10));
}

#[test]
fn lifetimes_are_written_out() {
    let column: ArrayRef = Arc::new(Int64Array::from(vec![1, 2]));
    let batch = Batch::new(vec![column], Times::Constant(10), Diffs::Constant(1)).with_until(Until::Duration(5));
    let expected = BTreeMap::from([((vec!["1".to_string()], 10), 1)]);
    assert_ne!(meaning(&batch), expected);
    assert_eq!(consolidate(batch).len(), 4);
}
