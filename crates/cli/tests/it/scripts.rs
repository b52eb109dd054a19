//! Scripts, errors and exit codes.

use crate::support::*;

#[test]
fn statements_run_in_order_and_tell_what_they_did() {
    let place = Place::new();
    place.write(
        "a.sql",
        "CREATE TABLE t (a int PRIMARY KEY, b text);\n\
         CREATE MATERIALIZED VIEW v AS SELECT b, count(*) AS n FROM t GROUP BY b;\n\
         INSERT INTO t VALUES (1, 'x'), (2, 'y'), (3, 'x'); -- three; rows\n\
         SELECT * FROM v ORDER BY b",
    );
    let expected = "CREATE TABLE\nCREATE MATERIALIZED VIEW\nINSERT 0 3\n b | n\n---+---\n x | 2\n y | 1\n(2 rows)\n";
    for workers in ["0", "1", "2"] {
        assert_eq!(place.run(&["--workers", workers, "-f", "a.sql"]).good(), expected);
    }
    let script = std::fs::read_to_string(place.path().join("a.sql")).unwrap();
    assert_eq!(place.run_with(&[], &script).good(), expected);
    assert_eq!(place.run_with(&["-f", "-"], &script).good(), expected);
    assert_eq!(
        place.run(&["--quiet", "--csv", "-f", "a.sql", "-c", "DELETE FROM t; SELECT * FROM v"]).good(),
        "b,n\nx,2\ny,1\nb,n\n"
    );
}

#[test]
fn commands_and_files_run_in_the_order_given() {
    let place = Place::new();
    place.write("b.sql", "SELECT 2 AS n");
    let out = place.run(&["--jsonl", "-c", "SELECT 1 AS n", "-f", "b.sql", "-c", "SELECT 3 AS n"]);
    assert_eq!(out.good(), "{\"n\":1}\n{\"n\":2}\n{\"n\":3}\n");
}

#[test]
fn an_error_shows_its_place_and_stops() {
    let place = Place::new();
    let ran = place.run(&["-c", "SELECT 1 AS a; SELECT\n  nothing FROM t; SELECT 2 AS b"]);
    assert_eq!(ran.code, 1);
    assert_eq!(ran.out, " a\n---\n 1\n(1 row)\n");
    assert!(ran.err.starts_with("error: "), "{}", ran.err);

    let ran = place.run(&["-c", "SELEC 1"]);
    assert_eq!(ran.code, 1);
    assert!(ran.err.contains("\nLINE 1: SELEC 1\n        ^"), "{}", ran.err);

    place.write("c.sql", "CREATE TABLE flights (id int);\n\nSELECT *\nFROM flihgts;\n");
    let ran = place.run(&["-q", "-f", "c.sql"]);
    assert_eq!((ran.code, ran.out.as_str()), (1, ""));
    assert!(ran.err.starts_with("c.sql:"), "{}", ran.err);
    assert!(ran.err.contains("flihgts") && ran.err.contains("flights\""), "{}", ran.err);
}

#[test]
fn keep_going_runs_the_rest_and_still_fails() {
    let ran = Place::new().run(&[
        "--keep-going",
        "--csv",
        "-c",
        "SELECT 1 AS a; SELEC; SELECT 2 AS b",
        "-c",
        "SELECT 3 AS c",
    ]);
    assert_eq!((ran.code, ran.out.as_str()), (1, "a\n1\nb\n2\nc\n3\n"));
}

#[test]
fn a_wrong_command_line_is_2_and_a_missing_file_1() {
    let place = Place::new();
    assert_eq!(place.run(&["--nonsense"]).code, 2);
    assert_eq!(place.run(&["--csv", "--json"]).code, 2);
    let ran = place.run(&["-f", "nowhere.sql"]);
    assert_eq!(ran.code, 1);
    assert!(ran.err.starts_with("error: cannot read nowhere.sql"), "{}", ran.err);
}

#[test]
fn a_bad_row_is_an_error_and_the_session_lives() {
    let sql = "CREATE TABLE t (a int); INSERT INTO t VALUES (1), (0); SELECT 1 / a AS x FROM t; DELETE FROM t WHERE a = 0; SELECT 1 / a AS x FROM t";
    let ran = Place::new().run(&["--keep-going", "--csv", "-c", sql]);
    assert_eq!((ran.code, ran.out.as_str()), (1, "x\n1\n"));
    assert!(ran.err.contains("division by zero"), "{}", ran.err);
}

#[test]
fn the_shells_commands_run_from_the_command_line() {
    let place = Place::new();
    let ran = place.run(&["-q", "-c", "CREATE TABLE t (a int)", "-c", ".tables", "-c", ".tabels"]);
    assert_eq!(ran.code, 1);
    assert!(ran.out.contains("t  table"), "{}", ran.out);
    assert_eq!(ran.err, "error: unknown command .tabels\nhint: Did you mean .tables?\n");
}

#[test]
fn the_timer_is_told_apart_from_answers() {
    let ran = Place::new().run(&["--timer", "--csv", "-c", "SELECT 1 AS a"]);
    assert_eq!((ran.code, ran.out.as_str()), (0, "a\n1\n"));
    assert!(ran.err.starts_with("Time: "), "{}", ran.err);
}

#[test]
fn a_command_may_begin_with_a_comment() {
    assert_eq!(Place::new().run(&["--csv", "-c", "-- one\nSELECT 1 AS n"]).good(), "n\n1\n");
    assert_eq!(Place::new().run(&["-c", "-- nothing"]).good(), "");
}

#[test]
fn too_many_workers_are_refused() {
    let ran = Place::new().run(&["--workers", "2000", "-c", "SELECT 1"]);
    assert_eq!(ran.code, 2);
    assert!(ran.err.contains("a number of threads from 0 to 256"), "{}", ran.err);
}

#[test]
fn a_long_series_is_unnested_quickly() {
    let sql = "SELECT count(*) AS n, sum(x) AS s FROM (SELECT unnest(generate_series(1, 1000000)) AS x) AS series";
    let started = std::time::Instant::now();
    assert_eq!(Place::new().run(&["--csv", "--workers", "0", "-c", sql]).good(), "n,s\n1000000,500000500000\n");
    // (A second at most; a list repeated for each element would take hours.)
    assert!(started.elapsed().as_secs() < 60, "{:?}", started.elapsed());
}

#[test]
fn deep_statements_do_not_end_the_program() {
    for workers in ["0", "2"] {
        for sql in [
            format!("SELECT 1{}", "::int".repeat(600)),
            format!("SELECT 1{}", "+1".repeat(600)),
            format!("SELECT 1{}", " UNION ALL SELECT 1".repeat(600)),
            format!("SELECT 1 WHERE 1 = 0{}", " OR 1 = 1".repeat(2000)),
            format!("SELECT {}1{}", "(".repeat(2000), ")".repeat(2000)),
        ] {
            let ran = Place::new().run(&["--csv", "--workers", workers, "-c", &sql]);
            assert!(
                ran.code == 0 || ran.code == 1 && ran.err.contains("nested too deeply"),
                "{} {}",
                ran.code,
                ran.err
            );
        }
    }
}

#[test]
fn statements_of_a_pipe_run_as_they_arrive_and_tell_their_end() {
    use std::io::{BufRead, BufReader, Write};
    use std::process::Stdio;

    let place = Place::new();
    let mut command = place.command(&["--jsonl", "--ends", "--workers", "0", "--keep-going"]);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
    // The input stays open: each answer comes before the next statement is sent.
    input.write_all(b"\xef\xbb\xbfCREATE TABLE t (a int);\n").unwrap();
    assert_eq!(lines.next().unwrap(), r#"{"done":"CREATE TABLE"}"#);
    input.write_all(b"INSERT INTO t\nVALUES (1), (2);\n").unwrap();
    assert_eq!(lines.next().unwrap(), r#"{"done":"INSERT 0 2"}"#);
    input.write_all(b"SELECT sum(a) AS n FROM t;\n").unwrap();
    assert_eq!(lines.next().unwrap(), r#"{"n":3}"#);
    assert_eq!(lines.next().unwrap(), r#"{"done":"SELECT 1"}"#);
    input.write_all(b"SELECT b FROM t;\n").unwrap();
    assert!(lines.next().unwrap().starts_with(r#"{"error":"column \"b\" does not exist""#));
    // A command ends with its line; the last statement needs no semicolon.
    input.write_all(b".mode csv\nSELECT 7 AS n").unwrap();
    drop(input);
    assert_eq!(lines.collect::<Vec<_>>(), ["n", "7", r#"{"done":"SELECT 1"}"#]);
    assert_eq!(child.wait().unwrap().code(), Some(1));
}

#[test]
fn the_shells_words_and_displays_work_in_scripts() {
    let place = Place::new();
    place.write(
        "a.sql",
        "\u{feff}.expanded on\nSELECT 1 AS a, 'x' AS b;\n.output out.txt\nSELECT 2 AS c;\n.output\n\\! echo done\n",
    );
    let ran = place.run(&["-f", "a.sql"]);
    assert_eq!(ran.good(), "The expanded display is on.\n-[ RECORD 1 ]+----\na | 1\nb | x\n(1 row)\ndone\n");
    assert_eq!(std::fs::read_to_string(place.path().join("out.txt")).unwrap(), "-[ RECORD 1 ]+----\nc | 2\n(1 row)\n");
}
