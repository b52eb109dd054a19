//! TPC-H's `tbl`.

use arrow::datatypes::DataType;

use crate::support::*;

#[test]
fn values_come_by_place_and_quotes_mean_nothing() {
    let folder = Folder::new();
    let declared = columns(&[
        ("k", DataType::Int64),
        ("p", DataType::Decimal128(15, 2)),
        ("d", DataType::Date32),
        ("c", DataType::Utf8View),
    ]);
    let path = folder.write("lineitem.tbl", "1|21168.23|1996-03-13|\"quoted\" text|\n2|-0.5|1996-04-12||\n");
    assert_eq!(rows(&path, &declared, &[]), ["1|21168.23|1996-03-13|\"quoted\" text", "2|-0.50|1996-04-12|NULL"]);
}

#[test]
fn columns_can_be_found() {
    let folder = Folder::new();
    let path = folder.write("a.tbl", "1|x|\n2|y|\n");
    let read = read(open(&path, &[], &[]).unwrap());
    assert_eq!(read.types, ["column1 Int64", "column2 Utf8View"]);
}

#[test]
fn a_cut_line_is_told() {
    let folder = Folder::new();
    let declared = columns(&[("k", DataType::Int64), ("c", DataType::Utf8View), ("e", DataType::Utf8View)]);
    let path = folder.write("a.tbl", "1|x|y|\n2|x");
    assert!(problem(&folder, &path, &declared, &[]).starts_with("a.tbl, line 2: 2 values, where 3 were expected"));
}
