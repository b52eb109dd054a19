//! A reader goes on where another one was: each row is given once.

use anabranch_engine::{Poll, SourceReader};
use arrow::array::RecordBatch;
use arrow::datatypes::Field;

use crate::parquet;
use crate::support::*;

/// Polls that many times; the rows that came, and where the reader is.
fn polled(reader: &mut dyn SourceReader, n_polls: usize, rows_max: usize) -> (usize, Option<String>) {
    let mut n_rows = 0;
    for _ in 0..n_polls {
        match reader.poll(rows_max) {
            Ok(Poll::Rows(batch)) => n_rows += RecordBatch::num_rows(&batch),
            _ => break,
        }
    }
    (n_rows, reader.position())
}

/// Stops after every number of polls, and goes on with polls of another size.
fn stop_everywhere(path: &str, options: &[(&str, &str)]) {
    let all = read(open(path, &[], options).unwrap());
    assert!(all.rows.len() > 8 && all.error.is_none(), "{:?}", all.error);
    let mut n_stops = 0;
    for n_polls in 0.. {
        let mut first = open(path, &[], options).unwrap();
        let columns: Vec<Field> = first.schema().fields().iter().map(|field| field.as_ref().clone()).collect();
        let (n_rows, position) = polled(first.as_mut(), n_polls, 3);
        let Some(position) = position else { break };
        n_stops += 1;
        for rows_max in [1, 2, 100] {
            let rest = read_in(resume(path, &columns, options, &position).unwrap(), rows_max);
            assert_eq!(rest.error, None);
            assert_eq!(rest.rows, all.rows[n_rows..], "{path} after {n_rows} rows, {position}");
            assert_eq!(rest.progress, all.progress, "{path} after {n_rows} rows");
        }
    }
    assert!(n_stops > 3);
}

#[test]
fn texts_go_on_behind_what_was_given() {
    let folder = Folder::new();
    let part = |first: usize| {
        let lines: Vec<String> = (first..first + 7).map(|n| format!("{n},\"line\n of {n}\"")).collect();
        format!("\u{feff}id,name\n{}\n\n", lines.join("\n"))
    };
    folder.write("csv/a.csv", part(0));
    folder.write("csv/b.csv", part(7));
    folder.write("csv/c.csv", part(14));
    stop_everywhere(&folder.path().join("csv").display().to_string(), &[]);
    let lines: Vec<String> = (0..9).map(|n| format!("{n}|name {n}|")).collect();
    stop_everywhere(&folder.write("a.tbl", lines.join("\n")), &[]);
    let lines: Vec<String> = (0..20).map(|n| format!("{{\"n\": {n}, \"t\": \"{n}\"}}\n")).collect();
    folder.write("json/a.json", lines[..9].concat());
    folder.write("json/b.json", lines[9..].concat());
    stop_everywhere(&folder.path().join("json").display().to_string(), &[]);
    let twice = part(0) + part(7).split_once('\n').map_or("", |(_, rows)| rows);
    stop_everywhere(&folder.write("a.csv.gz", packed(&twice)), &[]);
    stop_everywhere(&folder.write("b.jsonl.gz", packed(&lines.concat())), &[]);
}

#[test]
fn tables_of_columns_go_on_behind_what_was_given() {
    let folder = Folder::new();
    parquet::write(&folder, "parts/a.parquet", 10);
    parquet::write(&folder, "parts/b.parquet", 5);
    stop_everywhere(&folder.path().join("parts").display().to_string(), &[]);
}

#[test]
fn reading_goes_on_once_the_bad_row_is_repaired() {
    let folder = Folder::new();
    for (name, bad, good) in [
        ("a.csv", "id,x\n1,1\n2,2\n3,x\n4,4\n", "id,x\n1,1\n2,2\n3,3\n4,4\n"),
        (
            "a.json",
            "{\"id\":1,\"x\":1}\n{\"id\":2,\"x\":2}\n{\"id\":3,\"x\":\"x\"}\n{\"id\":4,\"x\":4}\n",
            "{\"id\":1,\"x\":1}\n{\"id\":2,\"x\":2}\n{\"id\":3,\"x\":3}\n{\"id\":4,\"x\":4}\n",
        ),
    ] {
        let declared = columns(&[("id", arrow::datatypes::DataType::Int64), ("x", arrow::datatypes::DataType::Int64)]);
        let path = folder.write(name, bad);
        let mut first = open(&path, &declared, &[]).unwrap();
        let (n_rows, position) = polled(first.as_mut(), 9, 100);
        assert_eq!(n_rows, 2, "{name}");
        folder.write(name, good);
        let rest = read(resume(&path, &declared, &[], &position.unwrap()).unwrap());
        assert_eq!((rest.rows, rest.error), (vec!["3|3".to_string(), "4|4".to_string()], None));
    }
}

#[test]
fn files_that_have_changed_are_refused() {
    let folder = Folder::new();
    let path = folder.write("part/b.csv", "id\n1\n2\n3\n4\n");
    let parts = folder.path().join("part").display().to_string();
    let mut first = open(&parts, &[], &[]).unwrap();
    let columns: Vec<Field> = first.schema().fields().iter().map(|field| field.as_ref().clone()).collect();
    let position = polled(first.as_mut(), 1, 2).1.unwrap();
    let refused = || resume(&parts, &columns, &[], &position).err().expect("refused").message;
    folder.write("part/b.csv", "id\n1\n");
    assert!(refused().ends_with("it is shorter"), "{}", refused());
    folder.write("part/b.csv", "id\n1\n9\n3\n4\n");
    assert!(refused().ends_with("other bytes stand where reading stopped"), "{}", refused());
    folder.write("part/b.csv", "id\n1\n2\n3\n4\n5\n");
    folder.write("part/a.csv", "id\n7\n");
    assert!(refused().ends_with("files in front of it have come or gone"), "{}", refused());
    std::fs::remove_file(folder.path().join("part/a.csv")).unwrap();
    folder.write("part/c.csv", "id\n6\n");
    assert_eq!(read(resume(&parts, &columns, &[], &position).unwrap()).rows, ["3", "4", "5", "6"]);
    std::fs::remove_file(path).unwrap();
    assert!(refused().ends_with("it is gone"), "{}", refused());
}
