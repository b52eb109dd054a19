//! Parquet files.

use std::sync::Arc;

use anabranch_engine::{Connector, SourceSpec};
use anabranch_file::FileConnector;
use arrow::{
    array::{ArrayRef, Int64Array, RecordBatch, StringArray, TimestampNanosecondArray},
    datatypes::{DataType, Field},
};
use parquet::arrow::ArrowWriter;

use crate::support::*;

pub fn write(folder: &Folder, name: &str, rows: i64) -> String {
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("Id", Arc::new(Int64Array::from_iter_values(0..rows))),
        ("name", Arc::new(StringArray::from_iter((0..rows).map(|i| (i % 3 != 1).then(|| format!("{i}")))))),
        ("at", Arc::new(TimestampNanosecondArray::from_iter_values((0..rows).map(|i| i * 1_000_000_000)))),
    ];
    let batch = RecordBatch::try_from_iter(columns).unwrap();
    let mut bytes = Vec::new();
    let mut writer = ArrowWriter::try_new(&mut bytes, batch.schema(), None).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
    folder.write(name, bytes)
}

#[test]
fn columns_come_in_storage_types() {
    let folder = Folder::new();
    let path = write(&folder, "a.parquet", 3);
    let read = read(open(&path, &[], &[]).unwrap());
    assert_eq!(read.types, ["id Int64", "name Utf8View", "at Timestamp(µs)"]);
    assert_eq!(read.rows, ["0|0|1970-01-01T00:00:00", "1|NULL|1970-01-01T00:00:01", "2|2|1970-01-01T00:00:02"]);
}

#[test]
fn declared_columns_are_picked_and_cast() {
    let folder = Folder::new();
    let path = write(&folder, "a.parquet", 3);
    let declared = columns(&[("name", DataType::Int32), ("id", DataType::Decimal128(10, 1))]);
    assert_eq!(rows(&path, &declared, &[]), ["0|0.0", "NULL|1.0", "2|2.0"]);
    let declared = columns(&[("nmae", DataType::Int32)]);
    assert_eq!(
        problem(&folder, &path, &declared, &[]),
        "file a.parquet has no column \"nmae\" / Did you mean \"name\"?"
    );
}

#[test]
fn values_that_do_not_fit_are_faults() {
    let folder = Folder::new();
    let path = write(&folder, "a.parquet", 300);
    let declared = columns(&[("id", DataType::Int8)]);
    let failed = read(open(&path, &declared, &[]).unwrap());
    assert_eq!(failed.rows.len(), 128);
    assert_eq!(
        folder.hide(&failed.error.unwrap().message),
        "a.parquet, row 129, column \"id\": '128' is not of type tinyint"
    );
    let skipped = read_in(open(&path, &declared, &[("on_error", "skip")]).unwrap(), 50);
    assert_eq!((skipped.rows.len(), skipped.progress.skipped), (128, 172));
    let required = [Field::new("name", DataType::Utf8View, false)];
    assert!(problem(&folder, &path, &required, &[]).starts_with("a.parquet, row 2, column \"name\": NULL"));
}

#[test]
fn several_files_and_small_polls() {
    let folder = Folder::new();
    write(&folder, "1.parquet", 100);
    write(&folder, "2.parquet", 50);
    let path = folder.path().display().to_string();
    let whole = rows(&path, &[], &[]);
    assert_eq!(whole.len(), 150);
    assert_eq!(read_in(open(&path, &[], &[]).unwrap(), 7).rows, whole);
}

#[test]
fn columns_that_are_not_wanted_are_null_unless_a_value_may_not_fit() {
    let folder = Folder::new();
    write(&folder, "1.parquet", 3);
    write(&folder, "2.parquet", 1);
    let path = folder.path().display().to_string();
    let narrowed = |declared: &[Field], options: &[(&str, &str)], wanted: &[usize]| {
        let mut reader = open(&path, declared, options).unwrap();
        reader.narrow(&wanted.iter().copied().collect()).unwrap();
        read_in(reader, 2)
    };
    let all = ["1970-01-01T00:00:00", "1970-01-01T00:00:01", "1970-01-01T00:00:02", "1970-01-01T00:00:00"];
    assert_eq!(narrowed(&[], &[], &[2]).rows, all.map(|at| format!("NULL|NULL|{at}")));
    assert_eq!(narrowed(&[], &[], &[]).rows, ["0|NULL|NULL", "1|NULL|NULL", "2|NULL|NULL", "0|NULL|NULL"]);
    // Which rows come does not depend on what is wanted of them.
    let declared = [Field::new("id", DataType::Int64, true), Field::new("name", DataType::Utf8View, false)];
    let skipped = narrowed(&declared, &[("on_error", "skip")], &[0]);
    assert_eq!((skipped.rows.len(), skipped.progress.skipped), (3, 1));
}

#[test]
fn an_edition_tells_whether_files_are_those_that_were() {
    let folder = Folder::new();
    let path = write(&folder, "1.parquet", 3);
    let edition = || {
        let options = [("path".to_string(), folder.path().display().to_string())].into();
        FileConnector.edition(&SourceSpec { name: "s".to_string(), columns: vec![], options }).unwrap().unwrap()
    };
    let before = edition();
    assert_eq!(edition(), before);
    write(&folder, "2.parquet", 1);
    assert_ne!(edition(), before);
    std::fs::remove_file(folder.path().join("2.parquet")).unwrap();
    assert_eq!(edition(), before);
    std::fs::write(&path, b"something else").unwrap();
    assert_ne!(edition(), before);
}

#[test]
fn a_cut_file_is_told() {
    let folder = Folder::new();
    let path = write(&folder, "a.parquet", 1000);
    let bytes = std::fs::read(&path).unwrap();
    let path = folder.write("cut.parquet", &bytes[..bytes.len() / 2]);
    let problem = problem(&folder, &path, &[], &[]);
    assert!(problem.starts_with("file cut.parquet is damaged: its Parquet footer cannot be read"), "{problem}");
    assert!(problem.ends_with("/ The file may be cut short, or it is not a Parquet file."), "{problem}");
}

#[test]
fn a_damaged_page_is_told() {
    let folder = Folder::new();
    let path = write(&folder, "a.parquet", 1000);
    let mut bytes = std::fs::read(&path).unwrap();
    bytes[4..200].fill(0xaa);
    let path = folder.write("bad.parquet", &bytes);
    let problem = problem(&folder, &path, &[], &[]);
    assert!(problem.starts_with("file bad.parquet is damaged: after row 0: "), "{problem}");
}
