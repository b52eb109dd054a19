//! What a connection answers on its own thread is what the engine would have answered.

use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anabranch_engine::{Connection, Database, DatabaseOptions, Outcome};
use datafusion_common::ScalarValue;

use crate::connections::{ask, fail, run};
use crate::support::lines;

fn database(workers: usize) -> Database {
    Database::open(DatabaseOptions { workers, ..DatabaseOptions::default() }).unwrap()
}

/// Asks until the connection answers by itself, and returns that answer.
fn ask_here(connection: &mut Connection, sql: &str) -> Vec<String> {
    let (before, deadline) = (connection.answered_here(), Instant::now() + Duration::from_secs(30));
    loop {
        let told = ask(connection, sql);
        if connection.answered_here() > before {
            return told;
        }
        assert!(Instant::now() < deadline, "{sql} is never answered here");
        thread::sleep(Duration::from_millis(1));
    }
}

const ROWS: &str = "CREATE TABLE t (k int PRIMARY KEY, g int, v text);
    CREATE MATERIALIZED VIEW n AS SELECT g, count(*) AS n, sum(k) AS s FROM t GROUP BY g;
    CREATE INDEX by_g ON t (g);
    INSERT INTO t VALUES (1, 1, 'a'), (2, 1, 'b'), (3, 2, NULL), (4, NULL, 'd')";

#[test]
fn look_ups_scans_and_conditions_are_answered_here() {
    for workers in [1, 3] {
        let database = database(workers);
        let mut reader = database.connect().unwrap();
        run(&mut reader, ROWS);
        for (sql, told) in [
            ("SELECT v FROM t WHERE k = 2", vec!["b"]),
            ("SELECT v FROM t WHERE k IN (1, 2, 9) ORDER BY v DESC", vec!["b", "a"]),
            ("SELECT k FROM t WHERE g = 1 ORDER BY k", vec!["1", "2"]),
            ("SELECT k FROM t WHERE g IS NULL", vec!["4"]),
            ("SELECT upper(v) FROM t WHERE k > 1 ORDER BY k LIMIT 2 OFFSET 1", vec!["null", "D"]),
            ("SELECT * FROM n ORDER BY g", vec!["1 2 3", "2 1 3", "null 1 4"]),
            ("SELECT n FROM n WHERE g = 7", vec![]),
        ] {
            assert_eq!(ask_here(&mut reader, sql), told, "{sql}, {workers} workers");
        }
    }
}

#[test]
fn every_commit_that_was_told_is_in_the_answer() {
    for workers in [1, 2] {
        let database = database(workers);
        run(
            &mut database.connect().unwrap(),
            "CREATE TABLE t (k int PRIMARY KEY, v bigint);
            INSERT INTO t VALUES (1, 0), (2, 0);
            CREATE MATERIALIZED VIEW total AS SELECT sum(v) AS v FROM t",
        );
        let (told, done) = (AtomicI64::new(0), AtomicBool::new(false));
        let here = thread::scope(|scope| {
            let writer = scope.spawn(|| {
                let mut writer = database.connect().unwrap();
                for n in 1..=300 {
                    run(&mut writer, &format!("UPDATE t SET v = CASE k WHEN 1 THEN {n} ELSE -{n} END"));
                    told.store(n, Ordering::SeqCst);
                }
                done.store(true, Ordering::SeqCst);
            });
            let readers: Vec<_> = (0..3)
                .map(|_| {
                    scope.spawn(|| {
                        let mut reader = database.connect().unwrap();
                        let look_up = reader.prepare("SELECT v FROM t WHERE k = $1", &[]).unwrap();
                        let mut last = 0;
                        while !done.load(Ordering::SeqCst) {
                            let before = told.load(Ordering::SeqCst);
                            let Outcome::Rows(rows) = reader.run(&look_up, &[ScalarValue::from(1)]).unwrap() else {
                                panic!()
                            };
                            let seen: i64 = lines(&rows)[0].parse().unwrap();
                            assert!(seen >= before && seen >= last, "{seen} after {before} and {last}");
                            last = seen;
                            assert_eq!(ask(&mut reader, "SELECT v FROM total"), ["0"], "the two rows cancel");
                        }
                        reader.answered_here()
                    })
                })
                .collect();
            writer.join().unwrap();
            readers.into_iter().map(|reader| reader.join().unwrap()).sum::<u64>()
        });
        assert!(here > 0, "some answers were given here");
    }
}

#[test]
fn definitions_are_followed() {
    let database = database(2);
    let (mut reader, mut other) = (database.connect().unwrap(), database.connect().unwrap());
    run(&mut reader, ROWS);
    let look_up = reader.prepare("SELECT * FROM t WHERE k = $1", &[]).unwrap();
    assert_eq!(ask_here(&mut reader, "SELECT v FROM t WHERE k = 2"), ["b"]);
    run(&mut other, "DROP INDEX by_g");
    assert_eq!(ask_here(&mut reader, "SELECT k FROM t WHERE g = 1 ORDER BY k"), ["1", "2"]);
    run(&mut other, "DROP MATERIALIZED VIEW n; ALTER TABLE t ADD COLUMN w int DEFAULT 5");
    assert_eq!(ask_here(&mut reader, "SELECT w FROM t WHERE k = 2"), ["5"]);
    let Outcome::Rows(rows) = reader.run(&look_up, &[ScalarValue::from(3)]).unwrap() else { panic!() };
    assert_eq!(lines(&rows), ["3 2 null 5"]);
    run(&mut other, "DROP TABLE t; CREATE TABLE t (k int PRIMARY KEY, v text); INSERT INTO t VALUES (2, 'new')");
    assert_eq!(ask_here(&mut reader, "SELECT v FROM t WHERE k = 2"), ["new"]);
    run(&mut other, "DROP TABLE t");
    assert!(fail(&mut reader, "SELECT v FROM t WHERE k = 2").message.contains("does not exist"));
}

#[test]
fn errors_of_rows_and_of_expressions_are_told() {
    let database = database(2);
    let mut reader = database.connect().unwrap();
    run(
        &mut reader,
        "CREATE TABLE t (k int PRIMARY KEY, d int); INSERT INTO t VALUES (1, 2), (2, 0);
        CREATE MATERIALIZED VIEW q AS SELECT k, 10 / d AS q FROM t",
    );
    assert_eq!(ask_here(&mut reader, "SELECT 10 / d FROM t WHERE k = 1"), ["5"]);
    assert!(fail(&mut reader, "SELECT 10 / d FROM t WHERE k = 2").message.contains("division by zero"));
    assert!(fail(&mut reader, "SELECT * FROM q WHERE k = 1").message.contains("division by zero"));
    run(&mut reader, "DELETE FROM t WHERE k = 2");
    assert_eq!(ask_here(&mut reader, "SELECT q FROM q"), ["5"]);
}

#[test]
fn transactions_and_temporary_tables_are_left_to_the_engine() {
    let database = database(1);
    let (mut one, mut two) = (database.connect().unwrap(), database.connect().unwrap());
    run(&mut one, "CREATE TABLE t (k int PRIMARY KEY, v text); INSERT INTO t VALUES (1, 'all')");
    assert_eq!(ask_here(&mut two, "SELECT v FROM t WHERE k = 1"), ["all"]);
    run(&mut one, "BEGIN; UPDATE t SET v = 'mine' WHERE k = 1");
    assert_eq!(ask(&mut one, "SELECT v FROM t WHERE k = 1"), ["mine"]);
    assert_eq!(ask_here(&mut two, "SELECT v FROM t WHERE k = 1"), ["all"]);
    run(&mut one, "COMMIT");
    assert_eq!(ask_here(&mut two, "SELECT v FROM t WHERE k = 1"), ["mine"]);
    run(&mut two, "CREATE TEMPORARY TABLE t (k int PRIMARY KEY, v text); INSERT INTO t VALUES (1, 'own')");
    assert_eq!(ask(&mut two, "SELECT v FROM t WHERE k = 1"), ["own"]);
    assert_eq!(ask_here(&mut one, "SELECT v FROM t WHERE k = 1"), ["mine"]);
    run(&mut one, "BEGIN");
    assert!(one.execute("SELECT 1 / 0").is_err());
    assert_eq!(fail(&mut one, "SELECT v FROM t WHERE k = 1").sqlstate(), "25P02");
}

#[test]
fn prepared_look_ups_find_what_the_engine_finds() {
    let database = database(2);
    let (mut reader, mut writer) = (database.connect().unwrap(), database.connect().unwrap());
    run(&mut writer, "CREATE TABLE t (a int, b text, d numeric(6, 2), f float, n numeric, PRIMARY KEY (a, b));
        CREATE INDEX by_d ON t (d); CREATE INDEX by_f ON t (f); CREATE INDEX by_n ON t (n);
        INSERT INTO t VALUES (1, 'x', 1.50, 0.0, 1.0), (1, 'y', 1.50, '-0', 1), (2, 'x', NULL, 'NaN', 2), (3, '', 7, 3, 1)");
    let questions = [
        ("SELECT d, a FROM t WHERE b = $2 AND $1 = a", vec![ScalarValue::from(1), ScalarValue::from("y")]),
        ("SELECT b FROM t WHERE a = $1 AND b = 'x'", vec![ScalarValue::from(2)]),
        ("SELECT a, b FROM t WHERE d = $1 ORDER BY b DESC LIMIT 1", vec![ScalarValue::from("1.5")]),
        ("SELECT a, b FROM t WHERE f = $1 ORDER BY b", vec![ScalarValue::from(0.0)]),
        ("SELECT a FROM t WHERE f = $1", vec![ScalarValue::from(f64::NAN)]),
        ("SELECT a, b FROM t WHERE n = $1 ORDER BY a, b", vec![ScalarValue::from("1.000")]),
        ("SELECT a FROM t WHERE d = $1", vec![ScalarValue::Null]),
        ("SELECT a + 1 FROM t WHERE a = $1 AND b = $2", vec![ScalarValue::from(1), ScalarValue::from("x")]),
        ("SELECT a FROM t WHERE a = $1 AND b = $2 AND d = 9", vec![ScalarValue::from(1), ScalarValue::from("x")]),
        ("SELECT a FROM t WHERE a = $1 AND a = $2 AND b = 'x'", vec![ScalarValue::from(1), ScalarValue::from(2)]),
    ];
    for (sql, values) in &questions {
        let prepared = reader.prepare(sql, &[]).unwrap();
        // The engine answers inside a transaction.
        run(&mut reader, "BEGIN");
        let Outcome::Rows(expected) = reader.run(&prepared, values).unwrap() else { panic!() };
        run(&mut reader, "COMMIT");
        let before = reader.answered_here();
        for _ in 0..100 {
            let Outcome::Rows(rows) = reader.run(&prepared, values).unwrap() else { panic!() };
            assert_eq!(lines(&rows), lines(&expected), "{sql}");
            thread::sleep(Duration::from_millis(1));
        }
        assert!(reader.answered_here() > before, "{sql} is never answered here");
    }
    // A change of the same form is no look-up, and the past is not the present.
    let update = reader.prepare("UPDATE t SET d = d WHERE a = $1 AND b = 'x'", &[]).unwrap();
    let Outcome::Done { tag, .. } = reader.run(&update, &[ScalarValue::from(1)]).unwrap() else { panic!() };
    assert_eq!(tag, "UPDATE 1");
    run(&mut writer, "SET retain_history = '1 hour'");
    let time = ask(&mut reader, "SHOW TIME")[0].split(' ').next().unwrap().to_owned();
    run(&mut writer, "DELETE FROM t WHERE a = 2");
    let past = reader.prepare(&format!("SELECT b FROM t WHERE a = $1 AND b = 'x' AS OF {time}"), &[]).unwrap();
    for _ in 0..5 {
        let Outcome::Rows(rows) = reader.run(&past, &[ScalarValue::from(2)]).unwrap() else { panic!() };
        assert_eq!(lines(&rows), ["x"]);
    }
}
