//! Which files are read, and what is said when there are none.

use arrow::datatypes::DataType;

use crate::support::*;

#[test]
fn folders_and_patterns_are_read_in_name_order() {
    let folder = Folder::new();
    folder.write("b.csv", "a\n2\n");
    folder.write("a.csv", "a\n1\n");
    folder.write("deep/c.csv", "a\n3\n");
    folder.write(".hidden.csv", "a\n9\n");
    folder.write("notes.txt", "not data");
    let at = |rest: &str| format!("{}{rest}", folder.path().display());
    let declared = columns(&[("a", DataType::Int64)]);
    assert_eq!(rows(&at(""), &declared, &[]), ["1", "2"]);
    assert_eq!(rows(&at("/?.csv"), &declared, &[]), ["1", "2"]);
    assert_eq!(rows(&at("/**/*.csv"), &declared, &[]), ["1", "2", "3"]);
}

#[test]
fn missing_files_name_the_nearest() {
    let folder = Folder::new();
    folder.write("flights.csv", "a\n1\n");
    let path = folder.path().join("flihgts.csv").display().to_string();
    assert_eq!(problem(&folder, &path, &[], &[]), "file flihgts.csv does not exist / Did you mean flights.csv?");
    let path = folder.path().join("nowhere/x.csv").display().to_string();
    assert!(problem(&folder, &path, &[], &[]).contains("There is no folder nowhere;"));
    let path = folder.path().join("*.json").display().to_string();
    assert!(problem(&folder, &path, &[], &[]).starts_with("no file matches"));
}

#[test]
fn formats_are_told_apart() {
    let folder = Folder::new();
    let path = folder.write("a.dat", "1|2|\n");
    assert_eq!(
        problem(&folder, &path, &[], &[]),
        "cannot tell the format of file a.dat / Add format = 'csv', 'json', 'parquet' or 'tbl'."
    );
    assert_eq!(rows(&path, &[], &[("format", "tbl")]), ["1|2"]);
    assert_eq!(
        problem(&folder, &path, &[], &[("format", "jsn")]),
        "option \"format\" cannot be 'jsn' / Did you mean 'json'? It is one of: csv, json, parquet, tbl."
    );
    assert!(problem(&folder, &path, &[], &[("format", "json"), ("delimiter", ";")]).contains("means nothing"));
}
