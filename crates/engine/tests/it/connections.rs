//! A database with several connections.

use std::thread;
use std::time::Duration;

use anabranch_engine::{Changes, Connection, Database, DatabaseOptions, Error, ErrorKind, Outcome, TransactionState};

use crate::support::{batch_lines, lines, pairs, whole};

pub fn database() -> Database {
    Database::open(DatabaseOptions::default()).unwrap()
}

pub fn ask(connection: &mut Connection, sql: &str) -> Vec<String> {
    lines(&connection.query(sql).unwrap_or_else(|error| panic!("{sql}: {}", error.render(sql))))
}

pub fn run(connection: &mut Connection, script: &str) -> Vec<Outcome> {
    connection.execute(script).unwrap_or_else(|error| panic!("{script}: {}", error.render(script)))
}

pub fn fail(connection: &mut Connection, script: &str) -> Error {
    match connection.execute(script) {
        Err(error) => error,
        Ok(outcomes) => panic!("{script}: {outcomes:?}"),
    }
}

fn is_send_and_sync<T: Send + Sync>() {}
fn is_send<T: Send>() {}

#[test]
fn handles_go_where_threads_go() {
    is_send_and_sync::<Database>();
    is_send::<Connection>();
}

#[test]
fn connections_read_what_others_wrote() {
    let database = database();
    let (mut here, mut there) = (database.connect().unwrap(), database.connect().unwrap());
    run(&mut here, "CREATE TABLE t (k bigint, v text); CREATE MATERIALIZED VIEW n AS SELECT count(*) AS n FROM t");
    run(&mut there, "INSERT INTO t VALUES (1, 'a')");
    there.insert("t", &pairs(&[(2, "b")])).unwrap();
    assert_eq!(ask(&mut here, "SELECT n FROM n"), ["2"]);
    here.apply("t", &pairs(&[(1, "a")]), &[-1]).unwrap();
    assert_eq!(ask(&mut there, "SELECT * FROM t"), ["2 b"]);
    assert_eq!(there.transaction(), TransactionState::Idle);
}

#[test]
fn many_connections_count_together() {
    let database = database();
    run(
        &mut database.connect().unwrap(),
        "CREATE TABLE t (a int); CREATE MATERIALIZED VIEW n AS SELECT sum(a) AS n FROM t",
    );
    let writers: Vec<_> = (0..8)
        .map(|_| {
            let mut connection = database.connect().unwrap();
            thread::spawn(move || (0..25).for_each(|_| drop(run(&mut connection, "INSERT INTO t VALUES (1)"))))
        })
        .collect();
    writers.into_iter().for_each(|writer| writer.join().unwrap());
    assert_eq!(ask(&mut database.connect().unwrap(), "SELECT n FROM n"), ["200"]);
}

#[test]
fn a_subscription_hears_of_other_connections_and_ends_with_its_own() {
    let database = database();
    let (mut reader, mut writer) = (database.connect().unwrap(), database.connect().unwrap());
    run(&mut reader, "CREATE TABLE t (a int)");
    let Some(Outcome::Subscription(changes)) = run(&mut reader, "SUBSCRIBE t").pop() else { panic!() };
    let other = thread::spawn(move || drop(run(&mut writer, "INSERT INTO t VALUES (7)")));
    let Changes::Rows(rows) = reader.next_changes(&changes, Duration::from_secs(10)).unwrap() else { panic!() };
    let rows = whole(&rows);
    assert!(batch_lines(&rows)[0].ends_with(" 1 7"));
    other.join().unwrap();
    assert!(matches!(reader.next_changes(&changes, Duration::from_millis(20)).unwrap(), Changes::Nothing));
    reader.unsubscribe(changes.clone());
    assert_eq!(reader.next_changes(&changes, Duration::ZERO).unwrap_err().kind, ErrorKind::Closed);
}

#[test]
fn a_closed_database_says_so() {
    let database = database();
    let mut connection = database.connect().unwrap();
    run(&mut connection, "CREATE TABLE t (a int)");
    let other = database.clone();
    database.close().unwrap();
    let error = fail(&mut connection, "SELECT * FROM t");
    assert_eq!((error.kind, error.sqlstate()), (ErrorKind::Closed, "57P01"));
    assert_eq!(other.connect().unwrap_err().kind, ErrorKind::Closed);
}

#[test]
fn prepared_statements_tell_their_columns_and_tags() {
    let database = database();
    let mut connection = database.connect().unwrap();
    run(&mut connection, "CREATE TABLE t (a int, b text)");
    let tell = |connection: &mut Connection, sql: &str| {
        let prepared = connection.prepare(sql, &[]).unwrap();
        let names = |schema: &arrow::datatypes::SchemaRef| {
            schema.fields().iter().map(|field| field.name().clone()).collect::<Vec<_>>().join(",")
        };
        (prepared.columns.as_ref().map(names), prepared.tag)
    };
    assert_eq!(tell(&mut connection, "SELECT b, a + 1 AS c FROM t ORDER BY a"), (Some("b,c".into()), "SELECT"));
    assert_eq!(tell(&mut connection, "INSERT INTO t VALUES (1, 'x')"), (None, "INSERT"));
    assert_eq!(tell(&mut connection, "DELETE FROM t RETURNING a"), (Some("a".into()), "DELETE"));
    assert_eq!(tell(&mut connection, "SUBSCRIBE t"), (Some("time,diff,a,b".into()), "SUBSCRIBE"));
    assert_eq!(tell(&mut connection, "SHOW TABLES"), (Some("name,columns,primary_key".into()), "SHOW"));
    let insert = connection.prepare("INSERT INTO t VALUES (1, 'x') RETURNING a", &[]).unwrap();
    for _ in 0..2 {
        let Outcome::Rows(rows) = connection.run(&insert, &[]).unwrap() else { panic!() };
        assert_eq!(lines(&rows), ["1"]);
    }
    assert_eq!(ask(&mut connection, "SELECT count(*) FROM t"), ["2"]);
}

#[test]
fn errors_have_the_codes_of_postgresql() {
    let database = database();
    let mut connection = database.connect().unwrap();
    run(
        &mut connection,
        "CREATE TABLE t (k int PRIMARY KEY, v varchar(2) NOT NULL, n int); INSERT INTO t VALUES (1, 'a', 0)",
    );
    run(&mut connection, "CREATE VIEW w AS SELECT * FROM t");
    let mut others = vec![];
    for (sql, code) in [
        ("SELEKT 1", "42601"),
        ("SELECT * FROM nowhere", "42P01"),
        ("INSERT INTO nowhere VALUES (1)", "42P01"),
        ("SELECT x FROM t", "42703"),
        ("SELECT f(1)", "42883"),
        ("SELECT 1 / n FROM t", "22012"),
        ("INSERT INTO t VALUES (1, 'b', 1)", "23505"),
        ("INSERT INTO t VALUES (2, NULL, 1)", "23502"),
        ("INSERT INTO t VALUES (2, 'abc', 1)", "22001"),
        ("SELECT 'x'::int", "22P02"),
        ("SELECT 3000000000::int", "22003"),
        ("CREATE TABLE t (a int)", "42P07"),
        ("DROP TABLE t", "2BP01"),
        ("DROP TABLE nowhere", "42P01"),
        ("DROP INDEX nowhere", "42704"),
        ("SET nothing = 1", "42704"),
        ("SET batch_rows_max = 'x'", "22023"),
        ("SELECT count(*), v FROM t", "42803"),
        ("SELECT k FROM t AS a, t AS b", "42702"),
        ("ALTER TABLE t ADD COLUMN z int", "2BP01"),
    ] {
        let error = fail(&mut connection, sql);
        if error.sqlstate() != code {
            others.push(format!("{sql}: {} is not {code}: {}", error.sqlstate(), error.message));
        }
    }
    assert_eq!(others, Vec::<String>::new());
}

#[test]
fn a_transaction_is_seen_when_it_commits_and_at_once() {
    let database = database();
    let (mut here, mut there) = (database.connect().unwrap(), database.connect().unwrap());
    run(
        &mut here,
        "CREATE TABLE a (k int PRIMARY KEY, v int); CREATE TABLE b (k int); INSERT INTO a VALUES (1, 10);
         CREATE MATERIALIZED VIEW both AS SELECT a.v, b.k FROM a JOIN b ON a.k = b.k",
    );
    let Some(Outcome::Subscription(changes)) = run(&mut there, "SUBSCRIBE both").pop() else { panic!() };
    run(&mut here, "BEGIN; INSERT INTO b VALUES (1)");
    assert_eq!(here.transaction(), TransactionState::Open);
    assert_eq!(ask(&mut here, "SELECT * FROM both"), ["10 1"]);
    assert_eq!(ask(&mut there, "SELECT * FROM both"), [""; 0]);
    run(&mut here, "UPDATE a SET v = 11 WHERE k = 1");
    assert_eq!(ask(&mut here, "SELECT * FROM both"), ["11 1"]);
    assert_eq!(ask(&mut there, "SELECT v FROM a"), ["10"]);
    run(&mut here, "COMMIT");
    assert_eq!(here.transaction(), TransactionState::Idle);
    assert_eq!(ask(&mut there, "SELECT * FROM both"), ["11 1"]);
    // One commit: the subscription has never seen the row of before the update.
    let Changes::Rows(rows) = there.next_changes(&changes, Duration::from_secs(10)).unwrap() else { panic!() };
    let rows = whole(&rows);
    let lines = batch_lines(&rows);
    assert_eq!(lines.len(), 1);
    assert!(lines[0].ends_with(" 1 11 1"), "{lines:?}");
}

#[test]
fn what_a_transaction_read_must_be_unchanged_when_it_commits() {
    let database = database();
    let (mut here, mut there) = (database.connect().unwrap(), database.connect().unwrap());
    run(
        &mut here,
        "CREATE TABLE a (k int PRIMARY KEY, v int); CREATE TABLE b (k int); INSERT INTO a VALUES (1, 10);
         CREATE MATERIALIZED VIEW total AS SELECT sum(v) AS s FROM a",
    );
    // Read through a view, changed by another, then written elsewhere.
    run(&mut here, "BEGIN; SELECT s FROM total; INSERT INTO b VALUES (1)");
    run(&mut there, "UPDATE a SET v = 20");
    assert_eq!(fail(&mut here, "COMMIT").sqlstate(), "40001");
    assert_eq!(here.transaction(), TransactionState::Idle);
    assert_eq!(ask(&mut here, "SELECT count(*) FROM b"), ["0"]);
    // Two that read and write the same row: the second is refused.
    run(&mut here, "BEGIN; UPDATE a SET v = v + 1 WHERE k = 1");
    run(&mut there, "BEGIN; UPDATE a SET v = v + 1 WHERE k = 1; COMMIT");
    assert_eq!(fail(&mut here, "SELECT v FROM a").sqlstate(), "40001");
    assert_eq!(here.transaction(), TransactionState::Failed);
    assert_eq!(fail(&mut here, "SELECT 1").sqlstate(), "25P02");
    run(&mut here, "ROLLBACK");
    assert_eq!(ask(&mut here, "SELECT v FROM a"), ["21"]);
    // The same key, put in by two that read nothing.
    run(&mut here, "BEGIN; INSERT INTO a VALUES (7, 1)");
    run(&mut there, "INSERT INTO a VALUES (7, 2)");
    assert_eq!(fail(&mut here, "COMMIT").sqlstate(), "40001");
    assert_eq!(ask(&mut here, "SELECT v FROM a WHERE k = 7"), ["2"]);
    // What it did not read may change beside it.
    run(&mut here, "BEGIN; SELECT * FROM a; INSERT INTO b VALUES (2)");
    run(&mut there, "INSERT INTO b VALUES (3)");
    run(&mut here, "COMMIT");
    assert_eq!(ask(&mut here, "SELECT k FROM b ORDER BY k"), ["2", "3"]);
}

#[test]
fn a_transaction_that_only_reads_is_as_of_one_commit() {
    let database = database();
    let (mut here, mut there) = (database.connect().unwrap(), database.connect().unwrap());
    run(
        &mut here,
        "CREATE TABLE a (k int PRIMARY KEY, v int); CREATE TABLE b (k int PRIMARY KEY, v int);
         INSERT INTO a SELECT i, 1 FROM generate_series(1, 50) AS g(i); INSERT INTO b SELECT k, v FROM a;
         CREATE MATERIALIZED VIEW total AS SELECT a.k % 5 AS g, sum(a.v + b.v) AS s FROM a JOIN b USING (k) GROUP BY 1",
    );
    let change = |there: &mut Connection, rounds: usize| {
        for round in 0..rounds {
            let k = 1 + round % 50;
            run(
                there,
                &format!("BEGIN; UPDATE a SET v = v + 1 WHERE k = {k}; UPDATE b SET v = v - 1 WHERE k = {k}; COMMIT"),
            );
        }
    };
    for begin in ["BEGIN READ ONLY", "BEGIN"] {
        change(&mut there, 3);
        run(&mut here, begin);
        let first = ask(&mut here, "SELECT sum(v) FROM a");
        let whole: i64 = first[0].parse().unwrap();
        // (Enough commits for what is not held to be forgotten.)
        change(&mut there, 300);
        assert_eq!(ask(&mut here, "SELECT sum(v) FROM a"), first);
        assert_eq!(ask(&mut here, "SELECT sum(v) FROM b"), [(100 - whole).to_string()]);
        assert_eq!(ask(&mut here, "SELECT sum(s) FROM total"), ["100"]);
        assert_eq!(ask(&mut here, "SELECT s FROM total WHERE g = 3"), ["20"]);
        assert_eq!(ask(&mut here, "SELECT v FROM a WHERE k = 50"), ["1"]);
        let joined = "SELECT count(*) FROM a JOIN b USING (k) WHERE a.v + b.v = 2";
        assert_eq!(ask(&mut here, joined), ["50"]);
        change(&mut there, 20);
        assert_eq!(ask(&mut here, "SELECT sum(v) FROM a"), first);
        run(&mut here, "COMMIT");
        assert_ne!(ask(&mut here, "SELECT sum(v) FROM a"), first);
        run(&mut there, "UPDATE a SET v = 1; UPDATE b SET v = 1");
    }
    // What reads the past cannot write.
    run(&mut here, "BEGIN; SELECT v FROM a WHERE k = 1");
    run(&mut there, "UPDATE a SET v = 7 WHERE k = 1");
    assert_eq!(ask(&mut here, "SELECT v FROM a WHERE k = 1"), ["1"]);
    assert_eq!(fail(&mut here, "UPDATE b SET v = 0 WHERE k = 2").sqlstate(), "40001");
    run(&mut here, "ROLLBACK; BEGIN; SELECT v FROM a WHERE k = 1");
    run(&mut there, "UPDATE a SET v = 8 WHERE k = 1");
    assert_eq!(ask(&mut here, "SELECT v FROM a WHERE k = 1"), ["7"]);
    assert_eq!(fail(&mut here, "INSERT INTO b VALUES (100, 0)").sqlstate(), "40001");
    run(&mut here, "ROLLBACK");
    // A single read never fails.
    run(&mut here, "BEGIN; SELECT v FROM a WHERE k = 1");
    run(&mut there, "UPDATE a SET v = 9 WHERE k = 1");
    run(&mut here, "COMMIT");
    assert_eq!(ask(&mut here, "SELECT v FROM a WHERE k = 1"), ["9"]);
}

#[test]
fn transactions_of_different_rows_do_not_meet() {
    let database = database();
    let (mut here, mut there) = (database.connect().unwrap(), database.connect().unwrap());
    run(
        &mut here,
        "CREATE TABLE a (k int PRIMARY KEY, g text, v int); CREATE INDEX a_g ON a (g);
         CREATE TABLE c (k int PRIMARY KEY, a int REFERENCES a ON DELETE CASCADE); CREATE INDEX c_a ON c (a);
         CREATE TABLE listed (k int); INSERT INTO listed VALUES (1);
         INSERT INTO a SELECT i, 'g' || i % 3, i FROM generate_series(0, 9) AS g(i);
         CREATE MATERIALIZED VIEW total AS SELECT sum(v) AS s FROM a",
    );
    // Each pair of other rows, in any way that looks keys up.
    let others = [
        ("SELECT v FROM a WHERE k = 1", "UPDATE a SET v = v + 1 WHERE k = 2"),
        ("SELECT v FROM a WHERE k IN (1, 3)", "UPDATE a SET k = 12 WHERE k = 2; UPDATE a SET k = 2 WHERE k = 12"),
        ("UPDATE a SET v = v + 1 WHERE k = 1; UPDATE a SET v = v + 1 WHERE k = 1", "DELETE FROM a WHERE k = 8"),
        ("SELECT count(*) FROM a WHERE g = 'g1'", "INSERT INTO a VALUES (20, 'g2', 0)"),
        (
            "INSERT INTO a VALUES (1, 'g1', 7) ON CONFLICT (k) DO UPDATE SET v = a.v + 1",
            "INSERT INTO a VALUES (21, 'g2', 0)",
        ),
        ("INSERT INTO a VALUES (1, 'g1', 7) ON CONFLICT DO NOTHING", "INSERT INTO a VALUES (22, 'g2', 0)"),
        ("UPDATE a SET v = 0 WHERE k IN (SELECT k FROM listed)", "UPDATE a SET v = 1 WHERE k = 2"),
        ("INSERT INTO c VALUES (1, 1)", "UPDATE a SET v = v + 1 WHERE k = 2"),
        ("DELETE FROM a WHERE k = 7", "INSERT INTO c VALUES (2, 2)"),
    ];
    for (one, other) in others {
        run(&mut here, &format!("BEGIN; {one}"));
        run(&mut there, other);
        println!("{one} beside {other}");
        run(&mut here, "SELECT v FROM a WHERE k = 3; INSERT INTO listed VALUES (100); COMMIT");
    }
    // Each pair that meets: the row changes, goes, comes, gets the key or loses it.
    let same = [
        ("SELECT v FROM a WHERE k = 1", "UPDATE a SET v = v + 1 WHERE k = 1"),
        ("SELECT v FROM a WHERE k = 30", "INSERT INTO a VALUES (30, 'g0', 1)"),
        ("SELECT v FROM a WHERE k IN (1, 31)", "UPDATE a SET k = 31 WHERE k = 30"),
        ("UPDATE a SET v = v + 1 WHERE k = 31", "DELETE FROM a WHERE k = 31"),
        ("SELECT count(*) FROM a WHERE g = 'g1'", "UPDATE a SET g = 'g1' WHERE k = 2"),
        ("SELECT count(*) FROM a WHERE g = 'g1'", "UPDATE a SET g = 'g2' WHERE k = 2"),
        ("INSERT INTO a VALUES (1, '', 0) ON CONFLICT (k) DO UPDATE SET v = a.v + 1", "UPDATE a SET v = 5 WHERE k = 1"),
        (
            "INSERT INTO a VALUES (4, '', 0) ON CONFLICT (k) DO UPDATE SET v = (SELECT max(v) FROM a)",
            "UPDATE a SET v = 5 WHERE k = 5",
        ),
        ("INSERT INTO a VALUES (1, '', 0) ON CONFLICT DO NOTHING", "DELETE FROM c; DELETE FROM a WHERE k = 1"),
        ("UPDATE a SET v = 0 WHERE k IN (SELECT k FROM listed)", "DELETE FROM listed WHERE k = 1"),
        ("UPDATE a SET v = 0 WHERE k IN (SELECT k + 4 FROM listed WHERE k = 2)", "INSERT INTO listed VALUES (2)"),
        ("UPDATE a SET v = 0 WHERE k IN (SELECT k + 4 FROM listed WHERE k = 2)", "UPDATE a SET v = 1 WHERE k = 6"),
        ("INSERT INTO c VALUES (5, 5)", "DELETE FROM a WHERE k = 5"),
        ("DELETE FROM a WHERE k = 3", "INSERT INTO c VALUES (3, 3)"),
        ("SELECT s FROM total", "UPDATE a SET v = v + 1 WHERE k = 4"),
        ("SELECT v FROM a WHERE k = 4 OR v = 0", "UPDATE a SET v = v + 1 WHERE k = 6"),
    ];
    for (one, other) in same {
        run(&mut here, &format!("BEGIN; {one}; INSERT INTO listed VALUES (200)"));
        run(&mut there, other);
        assert_eq!(fail(&mut here, "COMMIT").sqlstate(), "40001", "{one} beside {other}");
        assert_eq!(ask(&mut here, "SELECT count(*) FROM listed WHERE k = 200"), ["0"]);
    }
}

#[test]
fn what_changed_too_much_meanwhile_is_a_conflict() {
    let database = database();
    let (mut here, mut there) = (database.connect().unwrap(), database.connect().unwrap());
    run(&mut here, "CREATE TABLE a (k int PRIMARY KEY, v int); INSERT INTO a VALUES (1, 1)");
    // (More rows than are followed, at once and one by one.)
    for change in
        ["INSERT INTO a SELECT i, i FROM generate_series(10, 20000) AS g(i)", "UPDATE a SET v = 0 WHERE k = 10"]
    {
        run(&mut here, "BEGIN; UPDATE a SET v = v + 1 WHERE k = 1");
        run(&mut there, change);
        match change.starts_with("INSERT") {
            true => assert_eq!(fail(&mut here, "COMMIT").sqlstate(), "40001"),
            false => drop(run(&mut here, "COMMIT")),
        }
    }
    assert_eq!(ask(&mut here, "SELECT v FROM a WHERE k = 1"), ["2"]);
}

#[test]
fn a_bank_keeps_its_total_under_transactions_that_conflict() {
    let database = database();
    run(
        &mut database.connect().unwrap(),
        "CREATE TABLE acc (id int PRIMARY KEY, v int); INSERT INTO acc VALUES (0, 100), (1, 100), (2, 100), (3, 100);
         CREATE MATERIALIZED VIEW total AS SELECT sum(v) AS s FROM acc",
    );
    let clerks: Vec<_> = (0..4_u32)
        .map(|clerk| {
            let mut connection = database.connect().unwrap();
            thread::spawn(move || {
                let mut n_done = 0;
                for turn in 0..12_u32 {
                    let (from, to) = ((clerk + turn) % 4, (clerk + turn * 3 + 1) % 4);
                    assert_eq!(ask(&mut connection, "SELECT s FROM total"), ["400"]);
                    // Read, computed here, written back: only a check of reads keeps the total.
                    let script = || -> Result<(), Error> {
                        connection.execute("BEGIN")?;
                        for (account, change) in [(from, -5), (to, 5)] {
                            let rows = connection.query(&format!("SELECT v FROM acc WHERE id = {account}"))?;
                            let value: i32 = lines(&rows)[0].parse().unwrap();
                            let set = format!("UPDATE acc SET v = {} WHERE id = {account}", value + change);
                            connection.execute(&set)?;
                        }
                        connection.execute("COMMIT").map(drop)
                    };
                    let mut script = script;
                    match script() {
                        Ok(()) => n_done += 1,
                        Err(error) => {
                            assert_eq!(error.sqlstate(), "40001", "{error:?}");
                            run(&mut connection, "ROLLBACK");
                        }
                    }
                }
                n_done
            })
        })
        .collect();
    let n_done: u32 = clerks.into_iter().map(|clerk| clerk.join().unwrap()).sum();
    assert!(n_done > 0, "no transaction ever commits");
    assert_eq!(ask(&mut database.connect().unwrap(), "SELECT s FROM total"), ["400"]);
}

#[test]
fn a_connection_that_goes_away_takes_its_transaction_with_it() {
    let database = database();
    let (mut here, mut there) = (database.connect().unwrap(), database.connect().unwrap());
    run(&mut here, "CREATE TABLE t (a int); BEGIN; INSERT INTO t VALUES (1)");
    drop(here);
    assert_eq!(ask(&mut there, "SELECT count(*) FROM t"), ["0"]);
}
