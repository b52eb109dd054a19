//! COPY of files: the line of a row that is refused.

use std::sync::Arc;

use anabranch_engine::{Options, Session};
use anabranch_file::FileConnector;

use crate::support::*;

#[test]
fn the_line_of_a_key_that_is_taken_is_told() {
    let folder = Folder::new();
    let mut session = Session::new(Options::default()).unwrap();
    session.register_connector("file", Arc::new(FileConnector));
    session.execute("CREATE TABLE t (k int PRIMARY KEY, s text UNIQUE); INSERT INTO t VALUES (5, 'old')").unwrap();
    let many: String = (10..9_000).map(|k| format!("{k},\n")).collect();
    let many = format!("k,s\n{many}5,\n");
    let cases = [
        ("a.csv", "k,s\n1,\"a\nb\"\n2,c\n2,d\n", "WITH (HEADER)", 5),
        ("b.csv", "x,a\n1,b\nx,c\n2,old\n", "WITH (on_error = 'skip')", 4),
        ("c.json", "{\"k\": 1}\n\n{\"k\": 1}\n", "", 3),
        ("d.txt", "1\ta\n1\tb\n", "", 2),
        ("e.csv", many.as_str(), "WITH (HEADER)", 8992),
        ("f.csv", "5,a\n", "", 1),
        ("g.csv", r"5,a|1,b|5,c|1,d|", "WHERE k < 5", 4),
    ];
    for (name, text, options, line) in cases {
        let path = folder.write(name, text.replace('|', "\n"));
        let error = session.execute(&format!("COPY t FROM '{path}' {options}")).unwrap_err();
        let place = format!("COPY t, line {line}");
        assert_eq!((error.sqlstate(), error.context()), ("23505", Some(place.as_str())), "{name}: {error:?}");
        assert!(error.detail.is_some(), "{error:?}");
    }
}

/// The table, what is shown of it, the options, the file, and the rows.
type ReadCase<'t> = (&'t str, &'t str, &'t str, &'t [u8], &'t [&'t str]);

/// The rows of a file are those that `COPY .. FROM STDIN` reads of the same bytes: answers are
/// PostgreSQL's, which reads both alike.
#[test]
fn csv_is_read_as_from_the_client() {
    let folder = Folder::new();
    let mut session = Session::new(Options::default()).unwrap();
    session.register_connector("file", Arc::new(FileConnector));
    session
        .execute("CREATE TABLE t (k text, s text); CREATE TABLE one (s text); CREATE TABLE n (k int, s text)")
        .unwrap();
    let cases: [ReadCase<'_>; 9] = [
        ("t", "k || '/' || s", "", b"k,s\n1,a\n", &["k/s", "1/a"]),
        ("t", "k || '/' || s", "WITH (HEADER)", b"s,k\n1,a\n", &["1/a"]),
        ("t", "k || '/' || s", "", b"1,a\"b,c\"d\n\"x\"\"y\", z \n", &["1/ab,cd", "x\"y/ z "]),
        ("t", "k || '/' || s", "", b"1,a\n\\.\n2,b\n", &["1/a"]),
        ("t", "k || '/' || s", "", b"1,\\.\n\"\\.\",b\n", &["1/\\.", "\\./b"]),
        ("one", "coalesce(s, 'null')", "", b"a\n\n\"\"\nb\n", &["a", "null", "", "b"]),
        ("t", "length(k) || '/' || s", "", b"\xef\xbb\xbf1,a\n", &["2/a"]),
        (
            "t",
            "coalesce(k, 'null') || '/' || s",
            "(DELIMITER ';', NULL 'nil', QUOTE '''', ESCAPE '\\')",
            b"nil;'it\\'s'\n'nil';\"b\"\n",
            &["null/it's", "nil/\"b\""],
        ),
        ("t", "k || '/' || s", "(HEADER MATCH)", b"k,s\n1,a\n", &["1/a"]),
    ];
    for (table, shown, options, bytes, expected) in cases {
        let path = folder.write("a.csv", bytes);
        session.execute(&format!("TRUNCATE {table}; COPY {table} FROM '{path}' {options}")).unwrap();
        let rows = rows_of(&mut session, &format!("SELECT {shown} FROM {table}"));
        let mut expected: Vec<String> = expected.iter().map(|row| (*row).to_owned()).collect();
        expected.sort();
        assert_eq!(rows, expected, "{options} {}", String::from_utf8_lossy(bytes));
    }
    let failures: [(&str, &[u8], &str, &str); 5] = [
        ("t", b"1,a\n\n2,b\n", "22P04", "COPY t, line 2: \"\""),
        ("t", b"1,a\n2,b\0\n", "22021", "COPY t, line 2"),
        ("n", b"\xef\xbb\xbf1,a\n", "22P02", "COPY n, line 1, column k: \"\u{feff}1\""),
        ("n", b"k,s\n1,a\n", "22P02", "COPY n, line 1, column k: \"k\""),
        ("n", b"1,a\nk,s\n", "22P02", "COPY n, line 2, column k: \"k\""),
    ];
    for (table, bytes, code, place) in failures {
        let path = folder.write("a.csv", bytes);
        let error = session.execute(&format!("COPY {table} FROM '{path}'")).unwrap_err();
        assert_eq!((error.sqlstate(), error.context()), (code, Some(place)), "{error:?}");
        let has_hint = error.hint.as_deref().is_some_and(|hint| hint.contains("HEADER"));
        assert_eq!(has_hint, bytes.starts_with(b"k"), "{error:?}");
    }
}

/// Files of a folder, of a pattern and packed ones are read alike, each with a header of its own.
#[test]
fn several_files_are_read_alike() {
    let folder = Folder::new();
    let mut session = Session::new(Options::default()).unwrap();
    session.register_connector("file", Arc::new(FileConnector));
    session.execute("CREATE TABLE t (k int, s text)").unwrap();
    folder.write("a.csv", "s,k\n1,a\n");
    let path = folder.write("b.csv", "s,k\n2,b\nx,c\n");
    let pattern = path.replace("b.csv", "*.csv");
    let error = session.execute(&format!("COPY t FROM '{pattern}' (HEADER)")).unwrap_err();
    assert_eq!(error.context(), Some(format!("COPY t, file {path}, line 3, column k: \"x\"").as_str()));
    for from in [pattern.as_str(), path.strip_suffix("/b.csv").unwrap()] {
        session.execute(&format!("TRUNCATE t; COPY t FROM '{from}' (HEADER, ON_ERROR ignore)")).unwrap();
        assert_eq!(rows_of(&mut session, "SELECT k || s FROM t"), ["1a", "2b"]);
    }
    let error = session.execute("COPY t FROM '/nowhere/at/all.csv'").unwrap_err();
    assert!(!error.message.contains("os error"), "{error:?}");
}

fn rows_of(session: &mut Session, sql: &str) -> Vec<String> {
    let outcome = session.execute(sql).unwrap().pop();
    let Some(anabranch_engine::Outcome::Rows(rows)) = outcome else { panic!("{sql}: {outcome:?}") };
    let mut texts: Vec<String> = Vec::new();
    for batch in &rows.batches {
        let column = arrow::compute::cast(batch.column(0), &arrow::datatypes::DataType::Utf8).unwrap();
        let column = arrow::array::AsArray::as_string::<i32>(&column).clone();
        texts.extend(column.iter().map(|value| value.unwrap_or("null").to_owned()));
    }
    texts.sort();
    texts
}
