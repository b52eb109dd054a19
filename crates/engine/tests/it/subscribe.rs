//! SUBSCRIBE: snapshot, changes, ends.

use std::sync::Arc;
use std::time::Duration;

use anabranch_engine::{Changes, ErrorKind, Outcome, Poll, Session, Subscription};

use crate::support::{Scripted, batch_lines, fail, pairs, run, with_workers};

const LONG: Duration = Duration::from_secs(20);
const SHORT: Duration = Duration::from_millis(30);

fn subscribe(session: &mut Session, sql: &str) -> Subscription {
    match run(session, sql).pop() {
        Some(Outcome::Subscription(subscription)) => subscription,
        other => panic!("{other:?}"),
    }
}

/// The next changes without their times.
fn next(session: &mut Session, subscription: &Subscription) -> Vec<String> {
    match session.next_changes(subscription, LONG).unwrap() {
        Changes::Rows(batch) => {
            let columns: Vec<usize> = (1..batch.num_columns()).collect();
            batch_lines(&batch.project(&columns).unwrap())
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_snapshot_comes_first_then_each_change() {
    with_workers(|session| {
        run(session, "CREATE TABLE t (g text, v int); INSERT INTO t VALUES ('a', 1), ('a', 2), ('b', 5)");
        let sums = subscribe(session, "SUBSCRIBE (SELECT g, sum(v) AS s FROM t GROUP BY g)");
        assert_eq!(
            sums.schema().fields().iter().map(|f| f.name().as_str()).collect::<Vec<_>>(),
            ["time", "diff", "g", "s"]
        );
        assert_eq!(next(session, &sums), ["1 a 3", "1 b 5"]);
        run(session, "INSERT INTO t VALUES ('a', 10)");
        assert_eq!(next(session, &sums), ["-1 a 3", "1 a 13"]);
        run(session, "DELETE FROM t WHERE g = 'b'");
        assert_eq!(next(session, &sums), ["-1 b 5"]);
        assert!(matches!(session.next_changes(&sums, SHORT).unwrap(), Changes::Nothing));
        let copy = sums.clone();
        session.unsubscribe(sums);
        assert_eq!(session.next_changes(&copy, SHORT).unwrap_err().kind, ErrorKind::Closed);
    });
}

#[test]
fn times_increase_and_a_commit_is_whole() {
    with_workers(|session| {
        run(session, "CREATE TABLE t (a int)");
        let all = subscribe(session, "SUBSCRIBE t");
        for i in 0..10 {
            run(session, &format!("INSERT INTO t VALUES ({i}), ({i})"));
        }
        let mut seen: Vec<(i64, i64)> = Vec::new();
        while seen.len() < 10 {
            let Changes::Rows(batch) = session.next_changes(&all, LONG).unwrap() else { panic!() };
            for line in batch_lines(&batch) {
                let cells: Vec<i64> = line.split(' ').map(|cell| cell.parse().unwrap()).collect();
                assert_eq!(cells[1], 2);
                seen.push((cells[0], cells[2]));
            }
        }
        assert!(seen.windows(2).all(|pair| pair[0].0 < pair[1].0 && pair[0].1 < pair[1].1), "{seen:?}");
    });
}

/// Rows that only come stay on the worker that has them; the session sums up those of all.
#[test]
fn equal_rows_of_several_workers_are_told_once() {
    with_workers(|session| {
        run(session, "CREATE TABLE t (a bigint, g text) APPEND ONLY");
        let all = subscribe(session, "SUBSCRIBE (SELECT a, g FROM t WHERE a >= 0)");
        run(session, "INSERT INTO t SELECT n % 5000, 'g' || n % 7 FROM generate_series(0, 69999) AS s(n)");
        let Changes::Rows(batch) = session.next_changes(&all, LONG).unwrap() else { panic!() };
        let lines = batch_lines(&batch);
        let mut rows: Vec<(i64, String)> = Vec::new();
        for line in &lines {
            let mut cells = line.split(' ').skip(1);
            assert_eq!(cells.next(), Some("2"), "{line}");
            rows.push((cells.next().unwrap().parse().unwrap(), cells.next().unwrap().to_owned()));
        }
        assert!(rows.len() == 35_000 && rows.is_sorted());
        rows.dedup();
        assert_eq!(rows.len(), 35_000);
    });
}

#[test]
fn a_subscription_ends_with_its_sources() {
    with_workers(|session| {
        let polls = (0..3).map(|i| Ok(Poll::Rows(pairs(&[(i, "a")])))).collect();
        session.register_connector("test", Arc::new(Scripted::new(polls)));
        run(session, "CREATE SOURCE s WITH (connector = 'test')");
        let all = subscribe(session, "SUBSCRIBE s");
        let mut rows = 0;
        loop {
            match session.next_changes(&all, LONG).unwrap() {
                Changes::Rows(batch) => rows += batch.num_rows(),
                Changes::End => break,
                other => panic!("{other:?}"),
            }
        }
        assert_eq!(rows, 3);
    });
}

#[test]
fn a_view_dropped_under_a_subscription_goes_on_and_a_table_ends_it() {
    with_workers(|session| {
        run(session, "CREATE TABLE t (a int); CREATE MATERIALIZED VIEW m AS SELECT a + 1 AS a FROM t");
        let all = subscribe(session, "SUBSCRIBE m");
        run(session, "DROP MATERIALIZED VIEW m; INSERT INTO t VALUES (1)");
        assert_eq!(next(session, &all), ["1 2"]);
        run(session, "DROP TABLE t");
        assert_eq!(session.next_changes(&all, LONG).unwrap_err().sqlstate(), "42P01");
        assert!(matches!(session.next_changes(&all, LONG).unwrap(), Changes::End));
        session.unsubscribe(all);
    });
}

#[test]
fn row_errors_are_told_once() {
    with_workers(|session| {
        run(session, "CREATE TABLE t (a int)");
        let all = subscribe(session, "SUBSCRIBE (SELECT 10 / a AS q FROM t)");
        run(session, "INSERT INTO t VALUES (0), (5)");
        let error = loop {
            match session.next_changes(&all, LONG) {
                Err(error) => break error,
                Ok(Changes::Rows(batch)) => assert_eq!(batch.num_rows(), 1),
                Ok(other) => panic!("{other:?}"),
            }
        };
        assert!(error.message.starts_with("division by zero"), "{error}");
        assert!(fail(session, "SUBSCRIBE nothing").message.contains("nothing"));
    });
}

/// A reader was told of an error before, and often in place of, what had been right until then; and
/// of errors of several times as if they were in force together.
#[test]
fn changes_before_an_error_come_before_it() {
    with_workers(|session| {
        run(session, "SET retain_history = '1 hour'");
        run(session, "CREATE TABLE t (k int, x bigint)");
        run(session, "CREATE MATERIALIZED VIEW sums AS SELECT k, sum(x) AS s FROM t GROUP BY k");
        run(session, "INSERT INTO t VALUES (1, 1)");
        let start = session.time();
        run(session, "INSERT INTO t VALUES (2, 5)");
        for k in [3, 4] {
            run(session, &format!("INSERT INTO t VALUES ({k}, 9223372036854775807), ({k}, 1)"));
            run(session, &format!("DELETE FROM t WHERE k = {k}"));
        }
        run(session, "INSERT INTO t VALUES (5, 7)");
        let end = session.time() + 1;
        let all = subscribe(session, &format!("SUBSCRIBE sums AS OF {start} UP TO {end}"));
        let mut given: Vec<String> = Vec::new();
        loop {
            match session.next_changes(&all, LONG) {
                Err(error) => {
                    assert_eq!(error.detail, None);
                    given.push(error.message);
                }
                Ok(Changes::Rows(batch)) => {
                    let columns: Vec<usize> = (1..batch.num_columns()).collect();
                    given.extend(batch_lines(&batch.project(&columns).unwrap()));
                }
                Ok(Changes::End) => break,
                Ok(other) => panic!("{other:?}"),
            }
        }
        let error = |group: usize| format!("bigint out of range in sum (group {group})");
        assert_eq!(given, ["1 1 1".into(), "1 2 5".into(), error(3), error(4), "1 5 7".into()]);
    });
}

#[test]
fn an_interrupt_ends_the_wait() {
    with_workers(|session| {
        run(session, "CREATE TABLE t (a int)");
        let all = subscribe(session, "SUBSCRIBE t");
        session.interrupt().trigger();
        assert_eq!(session.next_changes(&all, LONG).unwrap_err().kind, ErrorKind::Cancelled);
        run(session, "INSERT INTO t VALUES (1)");
        assert_eq!(next(session, &all), ["1 1"]);
    });
}
