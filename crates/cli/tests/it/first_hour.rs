//! What a person meets in the first hour: rows pasted behind COPY, wrong names of folders, files
//! that are no databases, and commands of psql and sqlite.

use crate::support::*;

/// Rows once went to the next prompt as statements.
#[test]
fn rows_behind_a_copy_are_its_rows() {
    let place = Place::new();
    let script = "CREATE TABLE t (a int, b text);\nCOPY t FROM STDIN; -- now\n1\tann\n2\tit's; \"x\n\\.\nSELECT count(*) AS n FROM t;\n";
    place.write("a.sql", script);
    let expected = "CREATE TABLE\nCOPY 2\n n\n---\n 2\n(1 row)\n";
    assert_eq!(place.run(&["-f", "a.sql"]).good(), expected);
    assert_eq!(place.run_with(&[], script).good(), expected);
    // Of -c the rows are on standard input.
    let command = "CREATE TABLE t (a int); COPY t FROM STDIN;\nSELECT sum(a) AS n FROM t";
    assert_eq!(place.run_with(&["-q", "--csv", "-c", command], "1\n2\n").good(), "n\n3\n");
}

#[test]
fn rows_of_a_copy_that_fails_are_left_out() {
    let place = Place::new();
    let script = "CREATE TABLE t (a int, b text);\nCOPY t FROM STDIN;\nx\tann\nSELECT 42 AS danger;\n\\.\nSELECT count(*) AS n FROM t;\n";
    place.write("a.sql", script);
    for ran in [
        place.run(&["-q", "--csv", "--keep-going", "-f", "a.sql"]),
        place.run_with(&["-q", "--csv", "--keep-going"], script),
    ] {
        assert_eq!((ran.out.as_str(), ran.code), ("n\n0\n", 1), "{}", ran.err);
        assert!(ran.err.contains("COPY t, line"), "{}", ran.err);
    }
    // Lines behind rows are counted on.
    let ran = place.run_with(&["-q"], "CREATE TABLE t (a int);\nCOPY t FROM STDIN;\n1\n\\.\nSELECT nothing FROM t;\n");
    assert!(ran.err.starts_with("stdin:5: error"), "{}", ran.err);
}

#[test]
fn files_that_copy_does_not_write_are_refused() {
    let place = Place::new();
    for name in ["o.parquet", "o.json", "o.ndjson", "o.csv.gz"] {
        let ran = place.run(&["-c", &format!("COPY (SELECT 1) TO '{name}'")]);
        assert_eq!(ran.code, 1);
        assert!(ran.err.contains("COPY TO does not write") && ran.err.contains("csv"), "{}", ran.err);
        assert!(!place.path().join(name).exists());
    }
    place.run(&["-q", "-c", "COPY (SELECT 1 AS a) TO 'o.json' (FORMAT csv); COPY (SELECT 1) TO 'o.csv'"]).good();
    assert_eq!(std::fs::read_to_string(place.path().join("o.json")).unwrap(), "1\n");
}

#[test]
fn a_timeout_is_an_error_and_no_interrupt() {
    let endless = "WITH RECURSIVE r (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r) SELECT count(*) FROM r";
    let sql = format!("SET statement_timeout = 100; {endless}");
    let ran = Place::new().run(&["-q", "-c", &sql]);
    assert_eq!(ran.code, 1);
    assert!(ran.err.contains("error: canceling statement due to statement timeout"), "{}", ran.err);
}

#[test]
fn what_does_not_end_is_told() {
    let place = Place::new();
    for (sql, message) in [
        ("SELECT 1 /* abc; SELECT 2", "unterminated /* comment"),
        ("SELECT 1; /* abc", "unterminated /* comment"),
        ("SELECT \"id FROM t", "unterminated quoted identifier"),
        ("SELECT $x$ abc", "unterminated dollar-quoted string"),
    ] {
        let ran = place.run(&["-c", sql]);
        assert_eq!(ran.code, 1, "{sql}");
        assert!(ran.err.starts_with(&format!("error: {message}\nLINE 1: ")), "{}", ran.err);
    }
}

#[test]
fn a_script_that_is_no_text_names_the_line() {
    let place = Place::new();
    place.write("a.sql", b"SELECT 1;\nSELECT '\xff';\n");
    let ran = place.run(&["-f", "a.sql"]);
    assert_eq!((ran.code, ran.out.as_str()), (1, ""));
    assert_eq!(ran.err, "a.sql:2: error: byte 0xff is not valid UTF-8 text\nhint: Save the script as UTF-8.\n");
}

#[test]
fn what_is_hardly_meant_as_a_folder_is_refused() {
    let place = Place::new();
    place.write("ok.csv", "a\n1\n");
    let ran = place.run(&["ok.csv"]);
    assert_eq!(ran.code, 1);
    assert!(ran.err.contains("ok.csv is a file") && ran.err.contains("SELECT * FROM 'ok.csv'"), "{}", ran.err);
    let ran = place.run(&["servr", "-c", "SELECT 1"]);
    assert_eq!(ran.code, 1);
    assert!(ran.err.contains("Did you mean serve?") && ran.err.contains("./servr"), "{}", ran.err);
    assert!(!place.path().join("servr").exists());
    place.run(&["./servr", "-q", "-c", "CREATE TABLE t (a int)"]).good();
    place.run(&["servr", "-q", "-c", "INSERT INTO t VALUES (1)"]).good();
    std::fs::create_dir(place.path().join("plain")).unwrap();
    place.write("plain/notes.txt", "x");
    assert!(place.run(&["plain", "-c", "SELECT 1"]).err.contains("is not a database"));
    assert!(!place.path().join("plain/LOCK").exists());
}

#[test]
fn a_csv_that_is_cut_elsewhere_gets_a_hint() {
    let place = Place::new();
    place.write("d.csv", "id;name\n1;ann\n");
    let ran = place.run(&["-c", "SELECT id FROM 'd.csv'"]);
    assert!(ran.err.contains("write read_csv('path', delim => ';')"), "{}", ran.err);
    assert_eq!(place.run(&["--csv", "-c", "SELECT id FROM read_csv('d.csv', delim => ';')"]).good(), "id\n1\n");
}

#[test]
fn commands_of_psql_and_sqlite_work() {
    let place = Place::new();
    place.write(
        "a.sql",
        "\\set n 2\n\\set who O'Hara\nSELECT :n + 1 AS a, :'who' AS b, 1::text AS c;\n\\echo n is :n\n\\pset null -\n\
         SELECT NULL AS x\\gx\n\\p\n\\unset n\n.headers off\nSELECT 5 AS five;\n\\!echo out\n.mode line\n\\q\nSELECT 6;\n",
    );
    let expected = " a | b      | c\n---+--------+---\n 3 | O'Hara | 1\n(1 row)\nn is 2\n\
                    -[ RECORD 1 ]+----\nx | -\n(1 row)\nSELECT NULL AS x\nThe line of names is off.\n    5\n(1 row)\nout\n";
    assert_eq!(place.run(&["-f", "a.sql"]).good(), expected);
    assert_eq!(place.run(&["-q", "--csv", "-c", "SELECT 1 AS a;\\q", "-c", "SELECT 2 AS b"]).good(), "a\n1\n");
    let ran = place.run(&["-c", "\\h create unique index"]);
    assert_eq!(ran.good(), "CREATE [UNIQUE] INDEX [name] ON relation (columns)\n");
}
