use super::*;
use crate::control::{Diffs, Times};
use crate::order::{Comparator, Direction};
use crate::testing::{Rng, all_types, cell, random_batch, random_column};
use crate::{equal, gather, hash};
use arrow::array::{ArrayRef, AsArray, StringViewArray};
use std::sync::Arc;

fn to_bytes(batch: &Batch) -> Vec<u8> {
    let mut bytes = Vec::new();
    write(batch, &mut bytes).unwrap();
    assert_eq!(bytes.len(), length_in_bytes(batch), "the length is exact");
    assert_eq!(bytes.len() % 8, 0, "the length is a multiple of 8");
    bytes
}

/// Everything one can see of a batch, as text.
fn rows(batch: &Batch) -> Vec<String> {
    let row = |row: usize| {
        let cells: Vec<String> = batch.columns().iter().map(|column| cell(column, row)).collect();
        let (time, diff) = (batch.times().get(row), batch.diffs().get(row));
        let (until, present) = (batch.until().get(row, time), batch.present().is_none_or(|present| present.value(row)));
        format!("{cells:?} {time} {diff} {until} {present} {:?}", batch.key().map(|key| key.hashes[row]))
    };
    (0..batch.len()).map(row).collect()
}

#[test]
fn every_type_survives_the_round_trip() {
    let mut rng = Rng::from_env(3);
    for data_type in all_types() {
        for len in [0, 1, 7, 64, 100] {
            let column = random_column(&mut rng, &data_type, len);
            let batch = Batch::new(vec![column], Times::Constant(1), Diffs::Constant(1));
            let back = read(&to_bytes(&batch)).unwrap();
            assert_eq!(back.column(0).data_type(), &data_type);
            assert_eq!(rows(&back), rows(&batch), "{data_type}");
        }
    }
}

#[test]
fn every_control_column_survives_the_round_trip() {
    let mut rng = Rng::from_env(4);
    for _ in 0..300 {
        let batch = random_batch(&mut rng);
        let back = read(&to_bytes(&batch)).unwrap();
        assert_eq!(rows(&back), rows(&batch));
        assert_eq!(back.key().map(|key| &key.columns), batch.key().map(|key| &key.columns));
    }
}

#[test]
fn a_slice_of_views_sends_only_its_own_text() {
    let text: Vec<String> = (0..1000).map(|i| format!("a long string that lies in a buffer, number {i}")).collect();
    let column: ArrayRef = Arc::new(StringViewArray::from_iter_values(&text));
    let batch = Batch::new(vec![column], Times::Constant(0), Diffs::Constant(1)).slice(500, 2);
    assert!(length_in_bytes(&batch) < 500);
    assert_eq!(rows(&read(&to_bytes(&batch)).unwrap()), rows(&batch));
}

/// Statement T3 of Trill's wire form: control columns that say nothing cost nothing.
#[test]
fn two_columns_of_numbers_cost_at_most_17_bytes_a_row() {
    let rows = 8192;
    let column =
        |factor: i64| -> ArrayRef { Arc::new((0..rows).map(|row| row * factor).collect::<arrow::array::Int64Array>()) };
    let batch = Batch::new(vec![column(1), column(-7)], Times::Constant(5), Diffs::Constant(1));
    let bytes = to_bytes(&batch).len() as i64;
    assert!((16 * rows..=17 * rows).contains(&bytes), "{bytes}");
}

/// Reading garbage gives an error, or a batch that kernels accept.
fn assert_no_panic(bytes: &[u8]) {
    let Ok(batch) = read(bytes) else { return };
    let columns = batch.columns();
    for text in columns.iter().filter_map(|column| column.as_string_view_opt()) {
        assert!(text.iter().flatten().all(|text| std::str::from_utf8(text.as_bytes()).is_ok()));
    }
    if batch.len() < 1000 {
        let rows: Vec<u32> = (0..batch.len() as u32).collect();
        hash::hash_columns(columns, batch.len());
        equal::rows_equal(columns, &rows, columns, &rows);
        gather::take(columns, &rows);
        let order = Comparator::new(columns, columns, &vec![Direction::ASCENDING; columns.len()]);
        (1..batch.len()).for_each(|row| {
            order.compare(row - 1, row);
        });
        to_bytes(&batch);
    }
}

#[test]
fn corrupted_bytes_never_panic() {
    let mut rng = Rng::from_env(5);
    for _ in 0..200 {
        let bytes = to_bytes(&random_batch(&mut rng));
        for _ in 0..30 {
            let mut corrupted = bytes.clone();
            for _ in 0..1 + rng.below(3) {
                let at = rng.below(corrupted.len());
                let byte = rng.next() as u8;
                corrupted[at] = *rng.pick(&[0, 1, 0x7f, 0x80, 0xff, byte]);
            }
            assert_no_panic(&corrupted);
        }
        let cut = rng.below(bytes.len());
        assert!(read(&bytes[..cut]).is_err(), "a batch cut short is an error");
        assert_no_panic(&(0..cut).map(|_| rng.next() as u8).collect::<Vec<_>>());
    }
}

#[test]
fn other_versions_and_other_things_are_named() {
    let batch = Batch::default();
    let bytes = to_bytes(&batch);
    let mut newer = bytes.clone();
    newer[8] = 2;
    assert_eq!(read(&newer).unwrap_err().to_string(), "batch has wire version 2, this build reads 1");
    assert_eq!(read(&[b'x'; 64]).unwrap_err().to_string(), "bytes are not a batch");
    assert_eq!(read(&[]).unwrap_err().to_string(), "batch of 32 bytes has 0 bytes");
    assert_eq!(
        read(&bytes[..bytes.len() - 8]).unwrap_err(),
        WireError::Length { expected: bytes.len() as u64, actual: bytes.len() as u64 - 8 }
    );
}
