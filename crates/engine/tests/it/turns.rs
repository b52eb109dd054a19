//! Commits of several connections that the engine takes in one turn: workers get them as one batch
//! and, where no reader tells them apart, as one time. Readers see commits all the same.

use std::collections::{BTreeMap, BTreeSet};
use std::thread;
use std::time::Duration;

use anabranch_engine::{Changes, Connection, Database, DatabaseOptions, Outcome, Subscription};
use arrow::array::AsArray;
use arrow::datatypes::Int64Type;

use crate::connections::{ask, run};

const CONNECTIONS: i64 = 16;
const COMMITS_EACH: i64 = 60;

const TABLES: &str = "CREATE TABLE t (k bigint, v bigint);
    CREATE MATERIALIZED VIEW sums AS SELECT k % 3 AS g, count(*) AS n, sum(v) AS s FROM t GROUP BY k % 3;
    CREATE MATERIALIZED VIEW pairs AS SELECT a.k AS k, b.v AS v FROM t a JOIN t b ON a.k = b.k + 1";

/// A database, and a connection to it.
fn open(workers: usize) -> (Database, Connection) {
    let database = Database::open(DatabaseOptions { workers, ..DatabaseOptions::default() }).unwrap();
    let connection = database.connect().unwrap();
    (database, connection)
}

/// Has connections work side by side, so that the engine finds requests of several in its queue.
fn side_by_side<T: Send + 'static>(
    database: &Database,
    work: impl Fn(&mut Connection, i64) -> T + Clone + Send + 'static,
) -> Vec<T> {
    let start = |writer| {
        let (mut connection, work) = (database.connect().unwrap(), work.clone());
        thread::spawn(move || work(&mut connection, writer))
    };
    let threads: Vec<_> = (0..CONNECTIONS).map(start).collect();
    threads.into_iter().map(|thread| thread.join().unwrap()).collect()
}

fn subscribe(connection: &mut Connection, sql: &str) -> Subscription {
    match run(connection, sql).pop() {
        Some(Outcome::Subscription(subscription)) => subscription,
        other => panic!("{sql}: {other:?}"),
    }
}

/// Changes by time, until nothing has come for a while: first and second column, and the diff.
fn told(connection: &mut Connection, subscription: &Subscription) -> BTreeMap<i64, Vec<(i64, i64, i64)>> {
    let mut by_time: BTreeMap<i64, Vec<(i64, i64, i64)>> = BTreeMap::new();
    while let Changes::Rows(batch) = connection.next_changes(subscription, Duration::from_millis(500)).unwrap() {
        let batch = crate::support::whole(&batch);
        let column = |at: usize| batch.column(at).as_primitive::<Int64Type>().values();
        let last = by_time.last_key_value().map(|(time, _)| *time);
        let first = column(0)[0];
        assert!(last.is_none_or(|last| last < first), "changes at {first} after those at {last:?}");
        assert!(column(0).is_sorted());
        for row in 0..batch.num_rows() {
            by_time.entry(column(0)[row]).or_default().push((column(2)[row], column(3)[row], column(1)[row]));
        }
    }
    by_time
}

fn insert_pairs(connection: &mut Connection, writer: i64) {
    for commit in 0..COMMITS_EACH {
        let k = writer * 1_000 + 2 * commit;
        run(connection, &format!("INSERT INTO t VALUES ({k}, 1), ({}, 1)", k + 1));
    }
}

/// Each commit brings two neighbours, so that every pair of a commit is there or nothing of it.
#[test]
fn subscribers_see_each_commit_at_a_time_of_its_own() {
    for workers in [1, 2] {
        let (database, mut reader) = open(workers);
        run(&mut reader, TABLES);
        let changes = subscribe(&mut reader, "SUBSCRIBE t");
        side_by_side(&database, insert_pairs);
        let by_time = told(&mut reader, &changes);
        assert_eq!(by_time.len() as i64, CONNECTIONS * COMMITS_EACH, "{workers} workers");
        for (time, rows) in by_time {
            let keys: BTreeSet<i64> = rows.iter().map(|(k, _, _)| *k).collect();
            let first = *keys.first().unwrap();
            assert_eq!(keys, BTreeSet::from([first, first + 1]), "the commit at {time}");
            assert!(first % 2 == 0 && rows.iter().all(|(_, _, diff)| *diff == 1));
        }
    }
}

/// While commits come, a view's groups are those of a whole number of commits; at the end all are
/// there.
#[test]
fn readers_beside_see_prefixes_of_commits() {
    for workers in [1, 2] {
        let (database, mut reader) = open(workers);
        run(&mut reader, TABLES);
        side_by_side(&database, |connection, writer| {
            let mut seen = 0;
            for commit in 0..COMMITS_EACH {
                let k = writer * 1_000 + 2 * commit;
                run(connection, &format!("INSERT INTO t VALUES ({k}, 1), ({}, 1)", k + 1));
                let rows = ask(connection, "SELECT n, s FROM sums");
                let numbers = |row: &String| row.split(' ').map(|n| n.parse().unwrap()).collect::<Vec<i64>>();
                let rows: Vec<Vec<i64>> = rows.iter().map(numbers).collect();
                let n: i64 = rows.iter().map(|row| row[0]).sum();
                assert!(rows.iter().all(|row| row[0] == row[1]));
                assert!(n % 2 == 0, "{n} rows are no whole number of commits");
                assert!(n >= seen + 2, "{n} rows after {seen}: the own commit is there");
                seen = n;
            }
        });
        let all = 2 * CONNECTIONS * COMMITS_EACH;
        assert_eq!(ask(&mut reader, "SELECT sum(n), sum(s) FROM sums"), [format!("{all} {all}")]);
        // (Inside a writer's range each key but the first follows another.)
        let n_pairs = CONNECTIONS * (2 * COMMITS_EACH - 1);
        assert_eq!(ask(&mut reader, "SELECT count(*) FROM pairs"), [n_pairs.to_string()]);
    }
}

#[test]
fn of_equal_keys_in_one_turn_one_is_taken() {
    for workers in [1, 2] {
        let (database, mut reader) = open(workers);
        run(&mut reader, "CREATE TABLE u (k bigint PRIMARY KEY, v bigint)");
        run(&mut reader, "CREATE MATERIALIZED VIEW n AS SELECT count(*) AS n, max(k) AS k FROM u");
        let taken = side_by_side(&database, |connection, writer| {
            let insert = |k| connection.execute(&format!("INSERT INTO u VALUES ({k}, {writer})")).is_ok() as i64;
            (0..COMMITS_EACH).map(insert).sum::<i64>()
        });
        assert_eq!(taken.iter().sum::<i64>(), COMMITS_EACH);
        assert_eq!(ask(&mut reader, "SELECT n, k FROM n"), [format!("{COMMITS_EACH} {}", COMMITS_EACH - 1)]);
    }
}

/// Each adds one to the same row: what a transaction has read may not have changed when it commits.
#[test]
fn transactions_in_one_turn_conflict() {
    let (database, mut reader) = open(2);
    run(&mut reader, "CREATE TABLE c (k bigint PRIMARY KEY, v bigint); INSERT INTO c VALUES (1, 0)");
    run(&mut reader, "CREATE MATERIALIZED VIEW total AS SELECT sum(v) AS v FROM c");
    let counts = side_by_side(&database, |connection, _| {
        let (mut added, mut refused) = (0, 0);
        for _ in 0..10 {
            let script = "BEGIN; UPDATE c SET v = v + 1 WHERE k = 1; COMMIT";
            match connection.execute(script) {
                Ok(_) => added += 1,
                Err(error) => {
                    assert_eq!(error.sqlstate(), "40001", "{error}");
                    refused += 1;
                    let _ = connection.execute("ROLLBACK");
                }
            }
        }
        (added, refused)
    });
    let added: i64 = counts.iter().map(|(added, _)| added).sum();
    assert!(added > 0);
    assert_eq!(ask(&mut reader, "SELECT v FROM total"), [added.to_string()]);
}

#[test]
fn kept_history_is_read_at_each_commit_of_a_turn() {
    let (database, mut reader) = open(2);
    run(&mut reader, "SET retain_history = '1 hour'");
    run(&mut reader, TABLES);
    let changes = subscribe(&mut reader, "SUBSCRIBE (SELECT k, v FROM t)");
    side_by_side(&database, insert_pairs);
    let times: Vec<i64> = told(&mut reader, &changes).into_keys().collect();
    for at in (0..times.len()).step_by(97) {
        let of_view = ask(&mut reader, &format!("SELECT n FROM sums AS OF {}", times[at]));
        let n: usize = of_view.iter().map(|n| n.parse::<usize>().unwrap()).sum();
        assert_eq!(n, 2 * (at + 1), "as of the commit {at}");
    }
}
