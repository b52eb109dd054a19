//! Snapshots in an object store that is in memory, and fails at any request.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod faulty;

use std::io;
use std::sync::Arc;

use anabranch_batch::{Batch, Diffs, Times};
use anabranch_bucket::{BLOCK_BYTES, Buckets, PART_BYTES, place_on};
use anabranch_store::{
    Commit, Contents, Created, Disk, SimulatedDisk, SnapshotPlaces, Snapshots, Store, StoreError, StoreOptions, Threads,
};
use arrow::array::{ArrayRef, AsArray, Int64Array, StringViewArray};
use arrow::datatypes::Int64Type;
use object_store::memory::InMemory;

use faulty::Faulty;

/// Places of one store.
#[derive(Clone)]
struct Places(Faulty);

impl SnapshotPlaces for Places {
    fn open(&self, url: &str) -> io::Result<Arc<dyn Disk>> {
        Ok(Arc::new(place_on(Arc::new(self.0.clone()), url)?))
    }

    fn folders(&self, url: &str) -> io::Result<Vec<String>> {
        place_on(Arc::new(self.0.clone()), url)?.folders()
    }
}

fn options(store: &Faulty) -> StoreOptions {
    let places = Arc::new(Places(store.clone()));
    let snapshots = Snapshots { place: Some("s3://test".to_string()), places, told: None };
    StoreOptions { threads: Threads::None, snapshots, ..StoreOptions::default() }
}

/// A commit of so many rows from `first` on; the first one makes the relation.
fn rows(first: i64, n_rows: i64) -> Commit {
    let a: ArrayRef = Arc::new(Int64Array::from_iter_values(first..first + n_rows));
    let b: ArrayRef = Arc::new(StringViewArray::from_iter_values((0..n_rows).map(|n| format!("a longer text {n}"))));
    let batch = Batch::new(vec![a, b], Times::Constant(first + 1), Diffs::Constant(1));
    let created = (first == 0).then(|| Created { id: 1, text: "CREATE TABLE t (a bigint, b text)".to_string() });
    Commit { time: first + 1, created: created.into_iter().collect(), rows: vec![(1, batch)], ..Commit::default() }
}

/// Rows of the relation, and the sum of their first column.
fn sum_of(contents: &Contents) -> (i64, i64) {
    let (mut n_rows, mut sum) = (0, 0);
    let read = contents.rows(1, |batch| {
        n_rows += batch.len() as i64;
        let column = batch.column(0).as_primitive::<Int64Type>();
        sum += (0..column.len()).map(|row| column.value(row)).sum::<i64>();
        Ok::<(), StoreError>(())
    });
    read.unwrap();
    (n_rows, sum)
}

fn sum_to(n_rows: i64) -> (i64, i64) {
    (n_rows, n_rows * (n_rows - 1) / 2)
}

#[test]
fn a_snapshot_of_several_parts_is_read_as_it_was_written() {
    let (disk, store) = (SimulatedDisk::new(), Faulty::new());
    let n_rows = 600_000;
    let (open, _) = Store::open(Arc::new(disk.clone()), options(&store)).unwrap();
    open.append(&rows(0, n_rows)).unwrap().wait().unwrap();
    open.snapshot().unwrap();
    open.append(&rows(n_rows, 5)).unwrap().wait().unwrap();
    open.close().unwrap();
    let sizes = store.sizes();
    assert_eq!(sizes.len(), 1, "{sizes:?}");
    assert!(sizes[0].1 > PART_BYTES as u64 && sizes[0].1 > 3 * BLOCK_BYTES, "{sizes:?}");
    let (_, contents) = Store::open(Arc::new(disk), options(&store)).unwrap();
    assert_eq!(sum_of(&contents), sum_to(n_rows + 5));
}

#[test]
fn a_store_that_fails_at_any_request_loses_nothing() {
    let mut n_failed = 0;
    for fails_at in 0..40 {
        for n_failures in [1, u64::MAX] {
            let (disk, store) = (SimulatedDisk::new(), Faulty::new());
            let (open, _) = Store::open(Arc::new(disk.clone()), options(&store)).unwrap();
            let mut n_rows = 0;
            let mut add = |open: &Store| {
                open.append(&rows(n_rows, 100)).unwrap().wait().unwrap();
                n_rows += 100;
            };
            add(&open);
            open.snapshot().unwrap();
            add(&open);
            store.fail(fails_at, n_failures);
            n_failed += i64::from(open.snapshot().is_err());
            add(&open);
            n_failed += i64::from(open.snapshot().is_err());
            add(&open);
            let crashed = disk.crash(|bound| bound - 1);
            store.fail(0, 0);
            drop(open);
            for disk in [crashed, disk] {
                let (open, contents) = Store::open(Arc::new(disk), options(&store)).unwrap();
                assert_eq!(sum_of(&contents), sum_to(400), "{n_failures} failures from request {fails_at} on");
                drop((open, contents));
            }
        }
    }
    assert!(n_failed > 20, "{n_failed}");
}

#[test]
fn old_snapshots_are_removed_and_so_is_what_was_left_over() {
    let (disk, store) = (SimulatedDisk::new(), Faulty::new());
    let (open, _) = Store::open(Arc::new(disk.clone()), options(&store)).unwrap();
    for first in 0..4 {
        open.append(&rows(first * 10, 10)).unwrap().wait().unwrap();
        open.snapshot().unwrap();
    }
    let sizes = store.sizes();
    assert_eq!(sizes.len(), 1);
    assert!(sizes[0].0.ends_with("000004.snapshot"), "{sizes:?}");
    assert!(!disk.names().unwrap().iter().any(|name| name.ends_with(".snapshot")));
}

#[test]
fn urls_that_are_none_are_told() {
    for (url, says) in [
        ("backups", "places are s3://bucket/prefix"),
        ("gs://bucket", "places are s3://bucket/prefix"),
        ("s3://", "the name of a bucket is wanted"),
        ("s3://bucket/a//x", "a part of the prefix is empty"),
        ("file://relative", "an absolute path is wanted"),
    ] {
        let error = Buckets.open(url).map(drop).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidInput, "{url}");
        assert!(error.to_string().contains(says), "{url}: {error}");
    }
}

#[test]
fn a_file_that_is_not_synced_is_not_there() {
    let store = Faulty::on(InMemory::new());
    let place = place_on(Arc::new(store.clone()), "s3://test").unwrap();
    let file = place.create("000001.snapshot").unwrap();
    file.write_at(0, b"abc").unwrap();
    assert_eq!(place.names().unwrap(), Vec::<String>::new());
    file.sync().unwrap();
    assert_eq!(place.names().unwrap(), ["000001.snapshot"]);
    drop(place.create("000002.snapshot").unwrap());
    assert_eq!(place.names().unwrap(), ["000001.snapshot"]);
    let read = place.open("000001.snapshot").unwrap();
    let mut bytes = [0; 2];
    read.read_at(1, &mut bytes).unwrap();
    assert_eq!(&bytes, b"bc");
    assert_eq!(read.read_at(2, &mut bytes).unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
    assert_eq!(place.open("000009.snapshot").map(drop).unwrap_err().kind(), io::ErrorKind::NotFound);
}
