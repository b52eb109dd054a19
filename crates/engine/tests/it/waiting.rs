//! Statements wait for what they read, and others do not wait for them.

use std::thread;
use std::time::{Duration, Instant};

use anabranch_engine::{Connection, Database, DatabaseOptions, ErrorKind, Options, Session};

use crate::connections::{ask, run};
use crate::support::pairs;

/// What a statement may take beside an endless query, on a machine that has other things to do: the
/// longest that was measured on an idle one is in docs/semantics.md.
const ANSWER_TIME_MAX: Duration = Duration::from_secs(5);

/// Eight billion triples, each of which is looked at.
const ENDLESS: &str = "SELECT count(*) AS n FROM t a, t b, t c WHERE a.k + b.k * c.k <> -7";

fn with_rows(workers: usize, n_rows: i64) -> Database {
    let database = Database::open(DatabaseOptions { workers, ..DatabaseOptions::default() }).unwrap();
    let mut connection = database.connect().unwrap();
    run(
        &mut connection,
        "CREATE TABLE t (k bigint, v text); CREATE TABLE u (k int PRIMARY KEY, v bigint);
         CREATE MATERIALIZED VIEW sums AS SELECT count(*) AS n, sum(v) AS s FROM u",
    );
    let rows: Vec<(i64, &str)> = (0..n_rows).map(|k| (k, "x")).collect();
    connection.insert("t", &pairs(&rows)).unwrap();
    database
}

/// Runs statements of all kinds; returns the longest time that one took.
fn work(connection: &mut Connection, rounds: i32) -> Duration {
    let mut longest = Duration::ZERO;
    let first: i32 = ask(connection, "SELECT count(*) FROM u")[0].parse().unwrap();
    for k in first..first + rounds {
        let mut timed = |sql: &str, expected: &[&str]| {
            let start = Instant::now();
            let answer = match sql.starts_with("SELECT") {
                true => ask(connection, sql),
                false => run(connection, sql).iter().map(|_| String::new()).collect(),
            };
            longest = longest.max(start.elapsed());
            assert!(expected.is_empty() || answer == expected, "{sql}: {answer:?}");
        };
        timed(&format!("INSERT INTO u VALUES ({k}, 1)"), &[]);
        timed(&format!("SELECT v FROM u WHERE k = {k}"), &["1"]);
        timed("SELECT n FROM sums", &[&(k + 1).to_string()]);
        timed("SELECT count(*) FROM u WHERE v > 0", &[&(k + 1).to_string()]);
        timed(&format!("UPDATE u SET v = v + 1 WHERE k = {k}"), &[]);
        timed(&format!("UPDATE u SET v = v - 1 WHERE k = {k}"), &[]);
    }
    longest
}

#[test]
fn an_endless_query_delays_no_other_connection() {
    for workers in [1, 2] {
        let database = with_rows(workers, 2_000);
        let mut endless = database.connect().unwrap();
        let interrupt = endless.interrupt();
        let asking = thread::spawn(move || endless.query(ENDLESS).unwrap_err());
        thread::sleep(Duration::from_millis(50));
        let longest = work(&mut database.connect().unwrap(), 5);
        println!("beside an endless query, {workers} workers: {longest:?}");
        assert!(longest < ANSWER_TIME_MAX, "{longest:?}");
        assert!(!asking.is_finished());
        interrupt.trigger();
        assert_eq!(asking.join().unwrap().kind, ErrorKind::Cancelled);
        assert!(work(&mut database.connect().unwrap(), 2) < ANSWER_TIME_MAX);
    }
}

#[test]
fn an_endless_view_delays_whoever_reads_it_and_flush_alone() {
    let database = with_rows(1, 2_000);
    run(&mut database.connect().unwrap(), &format!("CREATE MATERIALIZED VIEW endless AS {ENDLESS}"));
    let waiting: Vec<_> = ["SELECT n FROM endless", "FLUSH", "INSERT INTO u SELECT n, 1 FROM endless"]
        .map(|sql| {
            let mut connection = database.connect().unwrap();
            let interrupt = connection.interrupt();
            (interrupt, thread::spawn(move || connection.execute(sql).unwrap_err()))
        })
        .into();
    let longest = work(&mut database.connect().unwrap(), 5);
    println!("beside an endless view: {longest:?}");
    assert!(longest < ANSWER_TIME_MAX, "{longest:?}");
    for (interrupt, waiting) in waiting {
        assert!(!waiting.is_finished());
        interrupt.trigger();
        assert_eq!(waiting.join().unwrap().kind, ErrorKind::Cancelled);
    }
    run(&mut database.connect().unwrap(), "DROP MATERIALIZED VIEW endless; FLUSH");
}

/// Looks at dataflows, of which one is endless; tells how far that one is.
fn look(ask: &mut dyn FnMut(&str) -> Vec<String>) -> Vec<String> {
    let start = Instant::now();
    let looks = ["SHOW OPERATORS", "SHOW ARRANGEMENTS", "EXPLAIN SELECT count(*) FROM u", "EXPLAIN ANALYZE SELECT 1"];
    for sql in looks {
        assert!(!ask(sql).is_empty(), "{sql}");
    }
    let views = ask("SHOW MATERIALIZED VIEWS");
    let took = start.elapsed();
    assert!(took < 5 * ANSWER_TIME_MAX, "{took:?}");
    views
}

#[test]
fn an_endless_view_is_told_to_be_behind_and_hinders_no_look() {
    let database = with_rows(1, 2_000);
    let mut connection = database.connect().unwrap();
    run(&mut connection, &format!("CREATE MATERIALIZED VIEW endless AS {ENDLESS}"));
    let views = look(&mut |sql| ask(&mut connection, sql));
    assert!(views[0].contains("behind, "), "{views:?}");
    assert!(views[1].ends_with(" current"), "{views:?}");
    run(&mut connection, "DROP MATERIALIZED VIEW endless; FLUSH");
    assert!(ask(&mut connection, "SHOW MATERIALIZED VIEWS")[0].ends_with(" current"));
}

#[test]
fn a_session_of_its_own_looks_at_an_endless_view() {
    let mut session = Session::new(Options { workers: 1, ..Options::default() }).unwrap();
    crate::support::run(&mut session, "CREATE TABLE t (k bigint); CREATE TABLE u (k bigint)");
    crate::support::run(&mut session, "INSERT INTO t SELECT k FROM unnest(generate_series(1, 2000)) AS s(k)");
    crate::support::run(&mut session, &format!("CREATE MATERIALIZED VIEW endless AS {ENDLESS}"));
    let views = look(&mut |sql| crate::support::ask(&mut session, sql));
    assert!(views[0].contains("behind, "), "{views:?}");
    crate::support::run(&mut session, "DROP MATERIALIZED VIEW endless");
    session.wait().unwrap();
}

/// The root of a square.
fn root(text: &str) -> i64 {
    let square: i64 = text.parse().unwrap();
    let root = (square as f64).sqrt().round() as i64;
    assert_eq!(root * root, square, "it is the count of no commit's pairs");
    root
}

#[test]
fn what_waits_is_as_of_one_commit_while_others_write() {
    for workers in [1, 2] {
        let database = with_rows(workers, 1_200);
        run(&mut database.connect().unwrap(), "INSERT INTO u VALUES (0, 0)");
        let mut writer = database.connect().unwrap();
        let (stop, stopped) = std::sync::mpsc::channel::<()>();
        let writing = thread::spawn(move || {
            while stopped.try_recv().is_err() {
                writer.insert("t", &pairs(&[(-1, "y")])).unwrap();
                thread::sleep(Duration::from_millis(1));
            }
        });
        let mut reader = database.connect().unwrap();
        let count = |reader: &mut Connection| ask(reader, "SELECT count(*) FROM t")[0].parse::<i64>().unwrap();
        for _ in 0..3 {
            let before = count(&mut reader);
            let n_read = root(&ask(&mut reader, "SELECT count(*) FROM t a, t b WHERE a.k + 3 * b.k <> -7")[0]);
            let after = count(&mut reader);
            assert!((before..=after).contains(&n_read), "{before} {n_read} {after}");
            // A statement that writes what it has read is overtaken by the writer, and comes to its
            // end.
            run(&mut reader, "UPDATE u SET v = (SELECT count(*) FROM t a, t b WHERE a.k + 3 * b.k <> -7)");
            let n_written = root(&ask(&mut reader, "SELECT v FROM u")[0]);
            assert!((after..=count(&mut reader)).contains(&n_written), "{after} {n_written}");
        }
        stop.send(()).unwrap();
        writing.join().unwrap();
    }
}
