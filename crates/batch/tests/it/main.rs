//! With a hash that has four values in all, everything that rests on hashes still gives right
//! answers.
//!
//! A process of its own: the mask counts for the whole process.

use anabranch_batch::{Batch, Diffs, Times, consolidate::consolidate, hash, partition};
use arrow::array::{ArrayRef, AsArray, Int64Array, StringViewArray};
use arrow::datatypes::Int64Type;
use std::collections::BTreeMap;
use std::sync::Arc;

const ROWS: i64 = 3_000;

/// Rows (i % 50, text of i % 7) at times 0 .. 3 with diffs -1 .. 2.
fn batch() -> Batch {
    hash::set_mask_for_tests(0x8000_0000_8000_0000);
    let numbers: ArrayRef = Arc::new(Int64Array::from_iter_values((0..ROWS).map(|i| i % 50)));
    let texts: ArrayRef = Arc::new(StringViewArray::from_iter_values((0..ROWS).map(|i| format!("text {}", i % 7))));
    let times = Times::Column((0..ROWS).map(|i| i % 3).collect());
    Batch::new(vec![numbers, texts], times, Diffs::Column((0..ROWS).map(|i| i / 7 % 4 - 1).collect()))
}

fn sums(batch: &Batch) -> BTreeMap<(i64, String, i64), i64> {
    let (numbers, texts) = (batch.column(0).as_primitive::<Int64Type>(), batch.column(1).as_string_view());
    let mut sums = BTreeMap::new();
    for row in 0..batch.len() {
        let update = (numbers.value(row), texts.value(row).to_string(), batch.times().get(row));
        *sums.entry(update).or_insert(0) += batch.diffs().get(row);
    }
    sums.retain(|_, sum| *sum != 0);
    sums
}

#[test]
fn consolidation_keeps_colliding_rows_apart() {
    let batch = batch();
    let expected = sums(&batch);
    let result = consolidate(batch.clone());
    assert_eq!((result.len(), sums(&result)), (expected.len(), expected));

    let numbers = batch.project(&[0]);
    let result = consolidate(numbers.clone());
    assert!(result.len() <= 150, "50 numbers at 3 times");
    assert!(!hash::is_exact(numbers.columns()), "a masked hash is not exact, not even of one integer column");
}

#[test]
fn shards_hold_whole_keys() {
    let parts = partition(&batch().with_key(&[0]), 3);
    let numbers = |part: &Batch| part.column(0).as_primitive::<Int64Type>().values().to_vec();
    for number in 0..50 {
        assert_eq!(parts.iter().filter(|part| numbers(part).contains(&number)).count(), 1, "{number} is in one shard");
    }
    assert_eq!(parts.iter().map(Batch::len).sum::<usize>() as i64, ROWS);
}
