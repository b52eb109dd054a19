//! Subscribers that do not take their changes: what is held for them is bounded, and delays no
//! other client.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use anabranch_engine::{Changes, Connection, Database, DatabaseOptions, Outcome, Subscription};
use arrow::array::AsArray;
use arrow::datatypes::Int64Type;

use crate::connections::{ask, fail, run};
use crate::support::{session, whole, with_workers};

fn database(workers: usize) -> Database {
    Database::open(DatabaseOptions { workers, ..DatabaseOptions::default() }).unwrap()
}

fn subscribe(connection: &mut Connection, sql: &str) -> Subscription {
    match run(connection, sql).pop() {
        Some(Outcome::Subscription(subscription)) => subscription,
        other => panic!("{sql}: {other:?}"),
    }
}

/// What has been told of a relation (k, v): rows with their diffs, and how many changes it took.
#[derive(Default)]
struct Told {
    rows: BTreeMap<(i64, i64), i64>,
    n_changes: usize,
    times: Vec<i64>,
    progress: i64,
}

impl Told {
    /// Takes what is there.
    fn take(&mut self, connection: &mut Connection, subscription: &Subscription) {
        loop {
            match connection.next_changes(subscription, Duration::from_millis(30)).unwrap() {
                Changes::Rows(batch) => {
                    let batch = whole(&batch);
                    let column = |at: usize| batch.column(at).as_primitive::<Int64Type>();
                    for row in 0..batch.num_rows() {
                        let key = (column(2).value(row), column(3).value(row));
                        *self.rows.entry(key).or_default() += column(1).value(row);
                        self.n_changes += 1;
                        let time = column(0).value(row);
                        assert!(self.times.last().is_none_or(|last| *last <= time));
                        assert!(time >= self.progress, "a change at {time} after progress to {}", self.progress);
                        self.times.push(time);
                    }
                    self.rows.retain(|_, diff| *diff != 0);
                }
                Changes::Progress(time) => {
                    assert!(time > self.progress);
                    self.progress = time;
                }
                Changes::Nothing | Changes::End => return,
            }
        }
    }

    fn lines(&self) -> Vec<String> {
        assert!(self.rows.values().all(|diff| *diff == 1));
        self.rows.keys().map(|(k, v)| format!("{k} {v}")).collect()
    }
}

/// Numbers below a limit, by a seed (splitmix64).
pub fn numbers(seed: u64) -> impl FnMut(u64) -> u64 {
    let mut state = seed;
    move |limit| {
        state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (state ^ (state >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (mixed ^ (mixed >> 31)) % limit
    }
}

const TABLE: &str = "CREATE TABLE t (k bigint PRIMARY KEY, v bigint);
    INSERT INTO t SELECT k, 0 FROM generate_series(0, 9) AS g(k)";

#[test]
fn changes_that_nobody_takes_are_summed_up() {
    for workers in [1, 2] {
        let database = database(workers);
        let (mut writer, mut stalled, mut quick) =
            (database.connect().unwrap(), database.connect().unwrap(), database.connect().unwrap());
        run(&mut writer, TABLE);
        run(&mut stalled, "SET subscribe_buffer = '4kB'");
        let subscriptions = [
            subscribe(&mut stalled, "SUBSCRIBE t"),
            subscribe(&mut stalled, "SUBSCRIBE t WITH (SNAPSHOT = false)"),
            subscribe(&mut stalled, "SUBSCRIBE t WITH (PROGRESS)"),
        ];
        let all = subscribe(&mut quick, "SUBSCRIBE t");
        let mut seen = Told::default();
        for turn in 1..=300 {
            run(&mut writer, &format!("UPDATE t SET v = {turn} WHERE k = {}", turn % 10));
            if turn % 50 == 0 {
                seen.take(&mut quick, &all);
            }
        }
        let rows = ask(&mut writer, "SELECT * FROM t ORDER BY k, v");
        assert_eq!((seen.lines(), seen.n_changes), (rows.clone(), 610));
        for (at, subscription) in subscriptions.iter().enumerate() {
            let mut told = Told::default();
            told.take(&mut stalled, subscription);
            match at {
                // (Without the rows of the start, what has left them is told alone.)
                1 => assert_eq!(told.rows.iter().filter(|(_, diff)| **diff == -1).count(), 10),
                _ => assert_eq!(told.lines(), rows),
            }
            assert!(told.n_changes < 300, "{} changes", told.n_changes);
        }
        // From then on each change is told again.
        let mut told = Told::default();
        run(&mut writer, "UPDATE t SET v = 1000 WHERE k = 1; UPDATE t SET v = 1001 WHERE k = 1");
        told.take(&mut stalled, &subscriptions[0]);
        assert_eq!(told.n_changes, 4);
    }
}

#[test]
fn progress_is_told_of_times_that_add_up_only() {
    for seed in 0..3 {
        let mut random = numbers(seed);
        let database = database(2);
        let (mut writer, mut reader) = (database.connect().unwrap(), database.connect().unwrap());
        run(&mut writer, &format!("SET retain_history = '1 h'; {TABLE}"));
        run(&mut reader, "SET subscribe_buffer = '1kB'");
        let subscription = subscribe(&mut reader, "SUBSCRIBE t WITH (PROGRESS)");
        let mut told = Told::default();
        for _ in 0..20 {
            for _ in 0..random(29) + 1 {
                let (k, v) = (random(10), random(1_000));
                run(&mut writer, &format!("UPDATE t SET v = {v} WHERE k = {k}"));
            }
            told.take(&mut reader, &subscription);
            let at = told.progress - 1;
            assert!(at > 0);
            let then = ask(&mut writer, &format!("SELECT * FROM t ORDER BY k, v AS OF {at}"));
            assert_eq!(told.lines(), then, "seed {seed}");
        }
    }
}

#[test]
fn changes_after_the_end_of_a_subscription_are_not_summed_into_it() {
    with_workers(|session| {
        crate::support::run(session, &format!("SET subscribe_buffer = '1kB'; {TABLE}"));
        let start = session.insert("t", &values(&[(100, 0)])).unwrap();
        let end = start + 3_600_000_000;
        let Some(Outcome::Subscription(subscription)) =
            crate::support::run(session, &format!("SUBSCRIBE t UP TO {end}")).pop()
        else {
            panic!()
        };
        for turn in 1..100 {
            crate::support::run(session, &format!("UPDATE t SET v = {turn} WHERE k = 5"));
        }
        let mut sum = 0;
        loop {
            match session.next_changes(&subscription, Duration::from_millis(50)).unwrap() {
                Changes::Rows(batch) => {
                    let batch = whole(&batch);
                    let diffs = batch.column(1).as_primitive::<Int64Type>();
                    let times = batch.column(0).as_primitive::<Int64Type>();
                    assert!(times.values().iter().all(|time| *time < end));
                    sum += diffs.values().iter().sum::<i64>();
                }
                Changes::Progress(_) => {}
                Changes::Nothing | Changes::End => break,
            }
        }
        assert_eq!(sum, 11);
    });
}

fn values(rows: &[(i64, i64)]) -> arrow::array::RecordBatch {
    use arrow::array::{ArrayRef, Int64Array, RecordBatch};
    let column = |at: fn(&(i64, i64)) -> i64| -> ArrayRef {
        std::sync::Arc::new(Int64Array::from(rows.iter().map(at).collect::<Vec<_>>()))
    };
    RecordBatch::try_from_iter([("k", column(|row| row.0)), ("v", column(|row| row.1))]).unwrap()
}

#[test]
fn what_cannot_be_held_ends_its_subscription_alone() {
    for (workers, overflow) in [(1, "error"), (2, "error"), (1, "coalesce"), (2, "coalesce")] {
        let database = database(workers);
        let (mut writer, mut stalled, mut quick) =
            (database.connect().unwrap(), database.connect().unwrap(), database.connect().unwrap());
        run(&mut writer, "CREATE TABLE t (k bigint, v bigint)");
        run(&mut stalled, &format!("SET subscribe_buffer = '4kB'; SET subscribe_overflow = '{overflow}'"));
        let subscription = subscribe(&mut stalled, "SUBSCRIBE t");
        let all = subscribe(&mut quick, "SUBSCRIBE t");
        // Rows that stay cannot be summed up.
        for turn in 0..1_000 {
            run(&mut writer, &format!("INSERT INTO t VALUES ({turn}, {turn})"));
        }
        let started = Instant::now();
        let error = loop {
            match stalled.next_changes(&subscription, Duration::from_millis(100)) {
                Err(error) => break error,
                Ok(_) => assert!(started.elapsed() < Duration::from_secs(20)),
            }
        };
        assert_eq!(error.sqlstate(), "53400", "{error:?}");
        assert!(error.hint.as_ref().is_some_and(|hint| hint.contains("subscribe_buffer")), "{error:?}");
        let mut told = Told::default();
        told.take(&mut quick, &all);
        assert_eq!(told.n_changes, 1_000);
        assert_eq!(ask(&mut stalled, "SELECT count(*) FROM t"), ["1000"]);
    }
}

#[test]
fn buffers_are_set_and_shown() {
    let mut here = database(1).connect().unwrap();
    assert_eq!(ask(&mut here, "SHOW subscribe_buffer"), ["67108864"]);
    run(&mut here, "SET subscribe_buffer = '1MB'; SET subscribe_overflow = error");
    assert_eq!(ask(&mut here, "SHOW subscribe_buffer"), ["1048576"]);
    assert_eq!(ask(&mut here, "SHOW subscribe_overflow"), ["error"]);
    for sql in ["SET subscribe_overflow = 'drop'", "SET subscribe_buffer = 'much'"] {
        assert_eq!(fail(&mut here, sql).sqlstate(), "22023", "{sql}");
    }
    run(&mut here, "RESET ALL");
    assert_eq!(ask(&mut here, "SHOW subscribe_overflow"), ["coalesce"]);
    let mut alone = session(0);
    crate::support::run(&mut alone, "SET subscribe_buffer = off");
    assert_eq!(crate::support::ask(&mut alone, "SHOW subscribe_buffer"), ["off"]);
}
