//! JSON lines.

use arrow::datatypes::{DataType, Field};

use crate::support::*;

const SKIP_HINT: &str = " / Correct the line, or read with on_error = 'skip' to leave such rows out and count them.";

#[test]
fn columns_are_found_in_the_order_they_appear() {
    let folder = Folder::new();
    let path = folder.write(
        "a.jsonl",
        "{\"Z\": 1, \"a\": \"x\", \"when\": \"2013-01-01T05:00:00\", \"l\": [1, 2]}\n\n{\"Z\": 2.5, \"new\": true, \"when\": null}\n",
    );
    let read = read(open(&path, &[], &[]).unwrap());
    assert_eq!(read.types[..3], ["z Float64", "a Utf8View", "when Timestamp(µs)"]);
    assert_eq!(read.rows, ["1.0|x|2013-01-01T05:00:00|[1, 2]|NULL", "2.5|NULL|NULL|NULL|true"]);
}

#[test]
fn declared_columns_are_read_as_their_types() {
    let folder = Folder::new();
    let declared = columns(&[
        ("id", DataType::Int32),
        ("price", DataType::Decimal128(10, 2)),
        ("note", DataType::Utf8View),
        ("day", DataType::Date32),
        ("missing", DataType::Int64),
    ]);
    let path =
        folder.write("a.json", "{\"ID\": 1, \"price\": 1.25, \"note\": 5, \"day\": \"2013-01-01\", \"other\": {}}\n");
    assert_eq!(rows(&path, &declared, &[]), ["1|1.25|5|2013-01-01|NULL"]);
}

#[test]
fn every_fault_is_told() {
    let folder = Folder::new();
    let declared = [Field::new("a", DataType::Int64, true), Field::new("b", DataType::Boolean, false)];
    let good = "{\"a\": 1, \"b\": true}\n";
    for (line, expected) in [
        ("{\"a\": \"x\", \"b\": true}\n", "a.json, line 2, column \"a\": 'x' is not of type bigint"),
        ("{\"a\": 1, \"b\": null}\n", "a.json, line 2, column \"b\": NULL, where the column is NOT NULL"),
        ("{\"a\": 1\n", "a.json, line 2: not valid JSON at character 7: the line ends inside a value"),
        (
            "{\"a\": 1, b: true}\n",
            "a.json, line 2: not valid JSON at character 10: the name of a member is not in double quotes",
        ),
        ("[1, true]\n", "a.json, line 2: '[1,true]' is not a JSON object"),
        (
            "{\"a\": 1, \"b\": true} {\"a\": 2}\n",
            "a.json, line 2: not valid JSON at character 21: something follows the object",
        ),
    ] {
        let path = folder.write("a.json", format!("{good}{line}{good}"));
        assert_eq!(problem(&folder, &path, &declared, &[]), format!("{expected}{SKIP_HINT}"), "{line}");
        let read = read(open(&path, &declared, &[("on_error", "skip")]).unwrap());
        assert_eq!(read.rows, ["1|true", "1|true"]);
        assert_eq!(
            (read.progress.skipped, folder.hide(&read.progress.first_skipped.unwrap())),
            (1, expected.to_string())
        );
    }
}

#[test]
fn a_file_cut_short_is_told() {
    let folder = Folder::new();
    let declared = columns(&[("a", DataType::Int64)]);
    let path = folder.write("a.json", "{\"a\": 1}\n{\"a\": ");
    assert_eq!(
        problem(&folder, &path, &declared, &[]),
        format!("a.json, line 2: the file ends inside a JSON object{SKIP_HINT}")
    );
}

#[test]
fn an_array_is_not_lines() {
    let folder = Folder::new();
    let path = folder.write("a.json", "[\n{\"a\": 1}\n]\n");
    assert_eq!(
        problem(&folder, &path, &[], &[]),
        "file a.json is damaged: it is one JSON array, where one object a line was expected / \
         Convert it first, for example with jq -c '.[]'."
    );
}

#[test]
fn large_files_are_read_the_same_in_any_polls() {
    let folder = Folder::new();
    let text: String = (0..120_000).map(|i| format!("{{\"id\": {i}, \"name\": \"name of number {i}\"}}\n")).collect();
    let path = folder.write("big.json", text);
    let whole = rows(&path, &[], &[]);
    assert_eq!((whole.len(), whole[119_999].as_str()), (120_000, "119999|name of number 119999"));
    assert_eq!(read_in(open(&path, &[], &[]).unwrap(), 999).rows, whole);
}
