//! SUBSCRIBE: snapshot, changes, ends.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use anabranch_engine::{Changes, ErrorKind, Outcome, Poll, Session, Subscription};
use arrow::array::{ArrayRef, AsArray, Int64Array, RecordBatch, StringArray};
use arrow::datatypes::{DataType, Field, Int64Type, Schema};

use crate::support::{Scripted, batch_lines, fail, pairs, run, session, whole, with_workers};

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
            let batch = whole(&batch);
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
            let batch = whole(&batch);
            for line in batch_lines(&batch) {
                let cells: Vec<i64> = line.split(' ').map(|cell| cell.parse().unwrap()).collect();
                assert_eq!(cells[1], 2);
                seen.push((cells[0], cells[2]));
            }
        }
        assert!(seen.windows(2).all(|pair| pair[0].0 < pair[1].0 && pair[0].1 < pair[1].1), "{seen:?}");
    });
}

/// Some changes of one commit, in the order in which they are told: diff and cells.
fn told(session: &mut Session, subscription: &Subscription, n_rows: usize) -> Vec<(i64, String)> {
    let changes = session.next_changes(subscription, LONG).unwrap();
    let Changes::Rows(batch) = changes else { panic!("{changes:?}") };
    let batch = whole(&batch);
    let (mut all, mut times) = (Vec::new(), BTreeSet::new());
    for line in batch_lines(&batch) {
        let (time, change) = line.split_once(' ').unwrap();
        let (diff, cells) = change.split_once(' ').unwrap();
        times.insert(time.to_owned());
        all.push((diff.parse().unwrap(), cells.to_owned()));
    }
    assert_eq!((all.len(), times.len()), (n_rows, 1), "the changes of a commit come together");
    all
}

/// Nothing can cancel, so they are neither summed up nor brought into another order.
#[test]
fn rows_that_only_come_are_told_as_they_come() {
    for workers in 0..3 {
        let session = &mut session(workers);
        run(session, "CREATE TABLE t (a bigint, g text) APPEND ONLY");
        let all = subscribe(session, "SUBSCRIBE (SELECT a, g FROM t WHERE a >= 0)");
        let by_key = subscribe(session, "SUBSCRIBE (SELECT a, g FROM t) ENVELOPE UPSERT (KEY (a))");
        let keys: Vec<i64> = (0..30_000).map(|n| n * 7 % 15_000).collect();
        let schema = [("a", DataType::Int64), ("g", DataType::Utf8)].map(|(name, of)| Field::new(name, of, false));
        let schema = Arc::new(Schema::new(schema.to_vec()));
        // (A commit of several batches comes together.)
        for keys in keys.chunks(6_000) {
            let texts = StringArray::from_iter_values(keys.iter().map(|key| format!("g{}", key % 7)));
            let columns: Vec<ArrayRef> = vec![Arc::new(Int64Array::from(keys.to_vec())), Arc::new(texts)];
            let batch = RecordBatch::try_new(Arc::clone(&schema), columns).unwrap();
            session.ingest("t", &batch, None, None).unwrap();
        }
        session.commit().unwrap();
        let mut wanted: Vec<(i64, String)> = keys.iter().map(|key| (1, format!("{key} g{}", key % 7))).collect();
        let mut got = told(session, &all, 30_000);
        // (One worker gives them in the order of arrival; several have a piece of each batch.)
        assert!(workers > 1 || got == wanted);
        got.sort_unstable();
        wanted.sort_unstable();
        assert!(got == wanted);
        // (A key is told once, with what is wrong with it.)
        let Changes::Rows(keys) = session.next_changes(&by_key, LONG).unwrap() else { panic!() };
        let keys = whole(&keys);
        assert_eq!(keys.num_rows(), 15_000);
        assert!(batch_lines(&keys).iter().all(|line| line.contains("key_violation")));
    }
}

/// The rows of each worker are in order. What leaves comes first, on whatever worker it is.
#[test]
fn many_changes_of_a_commit_are_told_once_and_losses_first() {
    with_workers(|session| {
        run(
            session,
            "CREATE TABLE t (k bigint, n bigint); INSERT INTO t SELECT n, 0 FROM generate_series(1, 9000) AS s(n)",
        );
        let sums = subscribe(
            session,
            "SUBSCRIBE (SELECT k % 4500 AS g, sum(n) AS s FROM t GROUP BY 1) WITH (SNAPSHOT = false)",
        );
        run(session, "UPDATE t SET n = k");
        let changes = told(session, &sums, 9_000);
        let (losses, gains) = changes.split_at(4_500);
        assert!(losses.iter().all(|(diff, _)| *diff == -1) && gains.iter().all(|(diff, _)| *diff == 1));
        let sum = |g: i64| if g == 0 { 4_500 + 9_000 } else { 2 * g + 4_500 };
        let distinct = |part: &[(i64, String)]| part.iter().map(|(_, cells)| cells.clone()).collect::<BTreeSet<_>>();
        assert_eq!(distinct(losses), (0..4_500).map(|g| format!("{g} 0")).collect());
        assert_eq!(distinct(gains), (0..4_500).map(|g| format!("{g} {}", sum(g))).collect());
        // (Few are in the order of the columns, on whatever workers they are.)
        run(session, "UPDATE t SET n = 0 WHERE k <= 2000");
        let few = told(session, &sums, 4_000);
        let order = |cells: &str| cells.split(' ').map(|cell| cell.parse::<i64>().unwrap()).collect::<Vec<_>>();
        assert!(few.is_sorted_by_key(|(diff, cells)| (*diff, order(cells))));
    });
}

/// The changes of several workers stay apart, and an error of their time comes before all of them.
#[test]
fn an_error_comes_before_the_many_changes_of_its_time() {
    for workers in 0..3 {
        let session = &mut session(workers);
        run(session, "CREATE TABLE t (k bigint, n bigint)");
        let by_group = "SELECT k % 6000 AS g, sum(60 / n) AS s FROM t GROUP BY 1";
        let as_they_come = "SELECT k AS g, 60 / n AS s FROM t";
        for query in [by_group, as_they_come] {
            let changes = subscribe(session, &format!("SUBSCRIBE ({query})"));
            run(session, "INSERT INTO t SELECT k, 1 + k % 3 FROM generate_series(1, 9000) AS s(k); COMMIT");
            let n_rows = if query == by_group { 6_000 } else { 9_000 };
            assert_eq!(told(session, &changes, n_rows).len(), n_rows);
            // (One commit, some rows of which are in error.)
            run(session, "INSERT INTO t SELECT k, k % 10 FROM generate_series(10001, 19000) AS s(k)");
            let error = session.next_changes(&changes, LONG).unwrap_err();
            assert!(error.message.starts_with("division by zero"), "{error}");
            let Changes::Rows(batches) = session.next_changes(&changes, LONG).unwrap() else { panic!() };
            assert!(batches.iter().all(|batch| batch.num_rows() > 0));
            let of_each: BTreeSet<i64> = batches
                .iter()
                .flat_map(|batch| batch.column(0).as_primitive::<Int64Type>().values().to_vec())
                .collect();
            assert_eq!(of_each.len(), 1, "all of the time, and of no other");
            assert!(matches!(session.next_changes(&changes, Duration::ZERO).unwrap(), Changes::Nothing));
            session.unsubscribe(changes);
            run(session, "DELETE FROM t");
        }
    }
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
                Changes::Rows(batch) => rows += whole(&batch).num_rows(),
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
                Ok(Changes::Rows(batch)) => assert_eq!(whole(&batch).num_rows(), 1),
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
                    let batch = whole(&batch);
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
