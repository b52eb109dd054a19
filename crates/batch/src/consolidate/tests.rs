use super::*;
use crate::control::Until;
use crate::testing::{Rng, meaning, random_batch};
use arrow::array::{ArrayRef, Int64Array, StringViewArray};
use std::sync::Arc;

fn assert_consolidates(batch: Batch) {
    let expected = meaning(&batch);
    let by_time = consolidate_in_time_order(batch.clone());
    assert!(matches!(by_time.until(), Until::Forever) && by_time.present().is_none());
    assert_eq!((by_time.len(), meaning(&by_time)), (expected.len(), expected.clone()));
    let order = Comparator::ascending(by_time.columns());
    let is_after = |row: usize| {
        let time = |row: usize| by_time.times().get(row);
        let is_gain = |row: usize| by_time.diffs().get(row) > 0;
        let times = time(row - 1).cmp(&time(row));
        times.then(is_gain(row - 1).cmp(&is_gain(row))).then_with(|| order.compare(row - 1, row)).is_lt()
    };
    assert!((1..by_time.len()).all(is_after), "rows are in order of time, losses first, then of their columns");
    let result = consolidate(batch);
    assert!(matches!(result.until(), Until::Forever) && result.present().is_none());
    assert_eq!(result.len(), expected.len(), "one update a row and time");
    assert_eq!(meaning(&result), expected);
    let hashes = hash::hash_columns(result.columns(), result.len());
    let places: Vec<(u64, i64)> =
        hashes.iter().enumerate().map(|(row, &hash)| (hash, result.times().get(row))).collect();
    assert!(places.is_sorted(), "rows are in order of (hash, time)");
}

#[test]
fn any_batch_keeps_its_meaning() {
    let mut rng = Rng::from_env(7);
    for _ in 0..400 {
        assert_consolidates(random_batch(&mut rng));
    }
}

#[test]
fn rows_that_collide_stay_apart() {
    // Equal key hashes for all rows: what a collision of the whole row looks like.
    let column: ArrayRef = Arc::new(Int64Array::from(vec![3, 1, 3, 2, 1, 3]));
    let key = crate::Key::new([0], vec![9; 6]);
    let text: ArrayRef = Arc::new(StringViewArray::from(vec!["x", "y", "x", "x", "y", "x"]));
    let batch = Batch::new(vec![text], Times::Constant(1), Diffs::Constant(1));
    let result = consolidate(batch.with_hashes(key.clone()));
    assert_eq!((result.len(), meaning(&result).into_values().collect::<Vec<_>>()), (2, vec![4, 2]));

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
    let column: ArrayRef = Arc::new(Int64Array::from(vec![1, 1]));
    let times = Times::Column(vec![10, 15].into());
    let batch = Batch::new(vec![column], times, Diffs::Constant(1)).with_until(Until::Duration(5));
    let result = consolidate(batch);
    let updates: Vec<(i64, i64)> =
        (0..result.len()).map(|row| (result.times().get(row), result.diffs().get(row))).collect();
    assert_eq!(updates, [(10, 1), (20, -1)], "the end of the first cancels the start of the second");
}
