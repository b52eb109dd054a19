//! CSV: reading, finding columns, faults.

use arrow::datatypes::{DataType, Field, TimeUnit};

use crate::support::*;

const SKIP_HINT: &str = " / Correct the line, or read with on_error = 'skip' to leave such rows out and count them.";

#[test]
fn columns_are_found_from_header_and_values() {
    let folder = Folder::new();
    let path = folder.write(
        "a.csv",
        "ID,Name,Paid,When,Day,Ok,Code\n1,ann,2.50,2013-01-01 05:15:00,2013-01-01,true,007\n2,\"b, \"\"c\"\"\",,,,f,08\n",
    );
    let read = read(open(&path, &[], &[]).unwrap());
    assert_eq!(
        read.types,
        [
            "id Int64",
            "name Utf8View",
            "paid Float64",
            "when Timestamp(µs)",
            "day Date32",
            "ok Boolean",
            "code Utf8View"
        ]
    );
    assert_eq!(read.rows, ["1|ann|2.5|2013-01-01T05:15:00|2013-01-01|true|007", "2|b, \"c\"|NULL|NULL|NULL|false|08"]);
}

#[test]
fn without_a_header_columns_are_numbered() {
    let folder = Folder::new();
    let path = folder.write("a.csv", "1,x\n2,y\n");
    let read = read(open(&path, &[], &[]).unwrap());
    assert_eq!(read.types, ["column1 Int64", "column2 Utf8View"]);
    assert_eq!(read.rows, ["1|x", "2|y"]);
}

#[test]
fn declared_columns_match_by_name_or_place() {
    let folder = Folder::new();
    let declared = columns(&[("b", DataType::Int32), ("a", DataType::Utf8View)]);
    let named = folder.write("named.csv", "\u{feff}a,x,B\r\none,0,1\r\ntwo,0,2\r\n");
    assert_eq!(rows(&named, &declared, &[]), ["1|one", "2|two"]);
    let plain = folder.write("plain.csv", "1,one\n2,two");
    assert_eq!(rows(&plain, &declared, &[]), ["1|one", "2|two"]);
    assert_eq!(
        problem(&folder, &plain, &declared, &[("header", "true")]),
        "file plain.csv has no column \"b\" / Without a header, say header = 'false': columns are then taken by position."
    );
}

#[test]
fn every_type_is_read() {
    let folder = Folder::new();
    let declared = columns(&[
        ("i", DataType::Int16),
        ("d", DataType::Decimal128(10, 2)),
        ("r", DataType::Float32),
        ("t", DataType::Time64(TimeUnit::Microsecond)),
        ("z", DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into()))),
        ("b", DataType::BinaryView),
        ("u", DataType::UInt64),
        ("v", DataType::Interval(arrow::datatypes::IntervalUnit::MonthDayNano)),
    ]);
    let path =
        folder.write("a.csv", "-5,1.005,1.5,12:30:00.5,2013-01-01 00:00:00+02,\\xff00,18446744073709551615,1 day\n");
    assert_eq!(
        rows(&path, &declared, &[]),
        ["-5|1.01|1.5|12:30:00.500|2012-12-31T22:00:00Z|ff00|18446744073709551615|1 days"]
    );
}

#[test]
fn null_and_empty_text_are_told_apart() {
    let folder = Folder::new();
    let declared = columns(&[("a", DataType::Utf8View), ("b", DataType::Utf8View)]);
    let path = folder.write("a.csv", ",\"\"\n\\N,\"\\N\"\n");
    assert_eq!(rows(&path, &declared, &[]), ["NULL|", "\\N|\\N"]);
    assert_eq!(rows(&path, &declared, &[("null", "\\N")]), ["|", "NULL|\\N"]);
}

#[test]
fn other_delimiters_and_quotes() {
    let folder = Folder::new();
    let declared = columns(&[("a", DataType::Utf8View), ("b", DataType::Int64)]);
    let path = folder.write("a.csv", "'x;''y';1\n");
    assert_eq!(rows(&path, &declared, &[("delimiter", ";"), ("quote", "'")]), ["x;'y|1"]);
    let path = folder.write("a.tsv", "\"x\t1\n");
    assert_eq!(rows(&path, &declared, &[("quote", "")]), ["\"x|1"]);
}

#[test]
fn a_bad_value_is_named_and_rows_before_it_are_kept() {
    let folder = Folder::new();
    let declared = columns(&[("a", DataType::Int64), ("b", DataType::Int32)]);
    let path = folder.write("a.csv", "a,b\n1,\"1\"\n\n\"2\",2x\n3,3\n");
    let read = read(open(&path, &declared, &[]).unwrap());
    assert_eq!(read.rows, ["1|1"]);
    assert_eq!(folder.hide(&read.error.unwrap().message), "a.csv, line 4, column \"b\": '2x' is not of type integer");
}

#[test]
fn skipping_counts_and_keeps_the_first_reason() {
    let folder = Folder::new();
    let declared = columns(&[("a", DataType::Int64), ("b", DataType::Date32)]);
    let path = folder.write("a.csv", "1,2013-01-01\n2\n3,2013-02-30\nx,2013-01-02\n4,\"2013\"-01-02\n5,2013-01-03\n");
    for rows_max in [1, 2, 3, 100] {
        let read = read_in(open(&path, &declared, &[("on_error", "skip")]).unwrap(), rows_max);
        assert_eq!(read.rows, ["1|2013-01-01", "5|2013-01-03"]);
        assert_eq!(read.progress.skipped, 4);
        assert_eq!(folder.hide(&read.progress.first_skipped.unwrap()), "a.csv, line 2: 1 value, where 2 were expected");
    }
}

#[test]
fn every_fault_is_told() {
    let folder = Folder::new();
    let declared = columns(&[("a", DataType::Int64), ("b", DataType::Utf8View)]);
    for (contents, expected) in [
        ("1,x\n2,y,z\n", "a.csv, line 2: 3 values, where 2 were expected"),
        ("1,\"x\"y\n", "a.csv, line 1, column \"b\": text after the closing quote in '\\\"x\\\"y'"),
        ("1,x\n2,\"open\n3,z\n", "a.csv, line 2: the file ends inside a quoted value that begins here"),
        ("9223372036854775808,x\n", "a.csv, line 1, column \"a\": '9223372036854775808' is not of type bigint"),
    ] {
        let path = folder.write("a.csv", contents);
        assert_eq!(problem(&folder, &path, &declared, &[]), format!("{expected}{SKIP_HINT}"), "{contents}");
    }
    let path = folder.write("a.csv", b"1,x\n2,\xff\xfe\n3,z\n");
    assert_eq!(
        problem(&folder, &path, &declared, &[]),
        format!("a.csv, line 2, column \"b\": '\u{fffd}\u{fffd}' is not valid UTF-8 text{SKIP_HINT}")
    );
    assert_eq!(rows(&path, &declared, &[("on_error", "skip")]), ["1|x", "3|z"]);
}

#[test]
fn an_open_quote_costs_one_line_when_skipping() {
    let folder = Folder::new();
    let declared = columns(&[("a", DataType::Int64), ("b", DataType::Utf8View)]);
    let path = folder.write("a.csv", "1,x\n2,\"open\n3,z\n");
    let read = read(open(&path, &declared, &[("on_error", "skip")]).unwrap());
    assert_eq!(read.rows, ["1|x", "3|z"]);
    assert_eq!(read.progress.skipped, 1);
}

#[test]
fn not_null_columns_refuse_null() {
    let folder = Folder::new();
    let declared = [Field::new("a", DataType::Int64, false), Field::new("b", DataType::Utf8View, false)];
    let path = folder.write("a.csv", "1,x\n,y\n3,\n4,z\n");
    assert_eq!(
        problem(&folder, &path, &declared, &[]),
        format!("a.csv, line 2, column \"a\": NULL, where the column is NOT NULL{SKIP_HINT}")
    );
    assert_eq!(rows(&path, &declared, &[("on_error", "skip")]), ["1|x", "4|z"]);
}

#[test]
fn other_kinds_of_files_are_recognised() {
    let folder = Folder::new();
    let path = folder.write("a.csv", [0x28, 0xb5, 0x2f, 0xfd, 0]);
    assert_eq!(
        problem(&folder, &path, &[], &[]),
        "file a.csv is damaged: it is zstd-compressed, where plain UTF-8 text was expected / Unpack it first."
    );
    let path = folder.write("a.csv.gz", [0x1f, 0x8b, 8, 0, 0]);
    let told = problem(&folder, &path, &[], &[]);
    assert!(told.contains("a.csv.gz"), "{told}");
    let path = folder.write("b.csv", "");
    assert_eq!(
        problem(&folder, &path, &[], &[]),
        "file b.csv is damaged: it is empty, so its columns cannot be found / \
         Declare the columns: CREATE SOURCE name (column type, ..) WITH (..)."
    );
    assert!(rows(&path, &columns(&[("a", DataType::Int64)]), &[]).is_empty());
}

#[test]
fn packed_files_are_read_as_what_they_hold() {
    let folder = Folder::new();
    let path = folder.write("a.csv.gz", packed("a,b\n1,x\n2,y\n"));
    assert_eq!(rows(&path, &[], &[]), ["1|x", "2|y"]);
    let path = folder.write("named.csv", packed("a\n1\n"));
    assert_eq!(rows(&path, &[], &[]), ["1"]);
    let members = [packed("a\tb\n1\tx\n"), packed("2\ty\n")].concat();
    let path = folder.write("a.tsv.GZ", members);
    assert_eq!(rows(&path, &[], &[]), ["1|x", "2|y"]);
    folder.write("many/a.jsonl.gz", packed("{\"n\": 1}\n{\"n\": 2}\n"));
    folder.write("many/b.jsonl", "{\"n\": 3}\n");
    assert_eq!(rows(&folder.path().join("many").display().to_string(), &[], &[]), ["1", "2", "3"]);
}

#[test]
fn large_files_are_read_the_same_in_any_polls() {
    let folder = Folder::new();
    let mut text = String::from("id,name,price\n");
    for i in 0..200_000 {
        text.push_str(&format!("{i},\"name, {i}\nof a long one\",{}.25\n", i % 1000));
    }
    let path = folder.write("big.csv", &text);
    let whole = rows(&path, &[], &[]);
    assert_eq!(whole.len(), 200_000);
    assert_eq!(whole[199_999], "199999|name, 199999\nof a long one|999.25");
    assert_eq!(read_in(open(&path, &[], &[]).unwrap(), 777).rows, whole);
}

/// A cell that was no number once made two entries of its column.
#[test]
fn plain_numerics_that_cannot_be_read_are_named_and_left_out() {
    let folder = Folder::new();
    let declared = columns(&[("id", DataType::Int32), ("amt", DataType::LargeBinary)]);
    let path = folder.write("b.csv", "id,amt\n1,2.5\n2,x\n3,\n4,1e2\n");
    assert_eq!(
        problem(&folder, &path, &declared, &[]),
        format!("b.csv, line 3, column \"amt\": 'x' is not of type numeric{SKIP_HINT}")
    );
    let skipping = read(open(&path, &declared, &[("on_error", "skip")]).unwrap());
    assert_eq!((skipping.rows.len(), skipping.progress.skipped, skipping.error), (3, 1, None));
}

#[test]
fn a_header_without_a_declared_column_is_told() {
    let folder = Folder::new();
    let declared = columns(&[("id", DataType::Int32), ("nme", DataType::Utf8View), ("amt", DataType::LargeBinary)]);
    let path = folder.write("b.csv", "id,name,amt\n1,ann,2.5\n");
    let expected = "b.csv, line 1, column \"id\": 'id' is not of type integer; if this line is a header, it has no \
                    column \"nme\"";
    assert_eq!(problem(&folder, &path, &declared, &[]), format!("{expected}{SKIP_HINT}"));
}

#[test]
fn values_cut_by_another_delimiter_get_a_hint() {
    let folder = Folder::new();
    let declared = columns(&[("id", DataType::Int32), ("name", DataType::Utf8View)]);
    let hint = "Are the values separated by ';'? Then say delimiter = ';'.";
    let path = folder.write("a.csv", "1;ann\n");
    let expected = format!("a.csv, line 1: 1 value, where 2 were expected ({hint}){SKIP_HINT}");
    assert_eq!(problem(&folder, &path, &declared, &[]), expected);
    let path = folder.write("b.csv", "id;name\n1;ann\n");
    let expected = format!("file b.csv has no column \"id\" / {hint}");
    assert_eq!(problem(&folder, &path, &declared, &[("header", "true")]), expected);
    // Columns that were found in such a header.
    let path = folder.write("c.csv", "id;price\n1;2,5\n");
    let expected = format!("c.csv, line 2: 2 values, where 1 were expected ({hint}){SKIP_HINT}");
    let found = columns(&[("id;price", DataType::Utf8View)]);
    assert_eq!(problem(&folder, &path, &found, &[("header", "true")]), expected);
}
