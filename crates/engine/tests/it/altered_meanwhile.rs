//! Definitions that other connections change while a transaction holds rows, or a subscription
//! reads.

use std::time::{Duration, Instant};

use anabranch_engine::{Changes, Connection, Database, DatabaseOptions, Error, Outcome, Subscription};

use crate::connections::{ask, fail, run};

const TABLES: &str = "CREATE TYPE mood AS ENUM ('low', 'high');
    CREATE TABLE par (id int PRIMARY KEY);
    CREATE TABLE acc (id int PRIMARY KEY, v int, m mood);
    INSERT INTO par VALUES (1), (2); INSERT INTO acc VALUES (1, 1, 'low')";

fn database(workers: usize) -> Database {
    let database = Database::open(DatabaseOptions { workers, ..DatabaseOptions::default() }).unwrap();
    run(&mut database.connect().unwrap(), TABLES);
    database
}

/// Statements by which others change what a transaction has written to.
const ALTERS: [&str; 14] = [
    "ALTER TABLE acc ADD z int",
    "ALTER TABLE acc ADD z int GENERATED ALWAYS AS (v + 1) STORED",
    "ALTER TABLE acc DROP v; ALTER TABLE acc ADD v text",
    "ALTER TABLE acc ALTER v TYPE text",
    "ALTER TABLE acc ALTER v SET NOT NULL",
    "ALTER TABLE acc ADD CHECK (v IS NOT NULL)",
    "ALTER TABLE acc ADD FOREIGN KEY (v) REFERENCES par",
    "ALTER TABLE acc RENAME COLUMN v TO w",
    "ALTER TABLE acc RENAME TO other",
    "ALTER TABLE acc RENAME TO other; CREATE TABLE acc (id int PRIMARY KEY, v int, m mood, z int)",
    "DROP TABLE acc",
    "DROP TABLE acc; CREATE TABLE acc (v int, id int, m mood)",
    "DROP TABLE acc; CREATE TABLE acc (id int, v int, m mood, w int, z int)",
    "ALTER TYPE mood RENAME VALUE 'low' TO 'down'",
];

/// Statements of the transaction that use its rows then.
const USES: [&str; 8] = [
    "SELECT * FROM acc",
    "SELECT * FROM acc WHERE id = 30",
    "UPDATE acc SET v = 3",
    "UPDATE acc SET v = 3 WHERE id = 30",
    "DELETE FROM acc WHERE id = 30",
    "INSERT INTO acc (id, v) VALUES (31, 2)",
    "SAVEPOINT s; INSERT INTO acc (id) VALUES (32); ROLLBACK TO s; SELECT count(*) FROM acc",
    "COMMIT",
];

fn is_conflict(error: &Error) -> bool {
    // (Or the statement itself names what is not there any more, or gives it a value of another
    // type.)
    matches!(error.sqlstate(), "40001" | "42703" | "42P01" | "42804")
}

#[test]
fn rows_of_a_transaction_do_not_outlive_the_definition_that_they_were_made_for() {
    for (workers, alter) in (0..ALTERS.len()).map(|at| (at % 2 + 1, ALTERS[at])) {
        for statement in USES {
            let database = database(workers);
            let (mut here, mut there) = (database.connect().unwrap(), database.connect().unwrap());
            run(&mut here, "BEGIN; INSERT INTO acc VALUES (30, NULL, 'low')");
            run(&mut there, alter);
            let error = fail(&mut here, statement);
            assert!(is_conflict(&error), "{alter}; {statement}: {error:?}");
            if statement == "COMMIT" {
                assert_eq!(error.sqlstate(), "40001", "{alter}: {error:?}");
            } else {
                run(&mut here, "ROLLBACK");
            }
            if alter == "DROP TABLE acc" {
                continue;
            }
            let left = if alter.contains("DROP TABLE") { "0" } else { "1" };
            let name = if alter.ends_with("TO other") { "other" } else { "acc" };
            let left = if alter.contains("other; ") { "0" } else { left };
            assert_eq!(ask(&mut there, &format!("SELECT count(*) FROM {name}")), [left], "{alter}; {statement}");
        }
    }
}

#[test]
fn a_transaction_that_alters_nothing_of_others_goes_on() {
    let database = database(1);
    let (mut here, mut there) = (database.connect().unwrap(), database.connect().unwrap());
    run(&mut here, "BEGIN; INSERT INTO acc VALUES (30, 7, 'high')");
    run(&mut there, "CREATE TABLE own (a int); ALTER TABLE own ADD b int; DROP TABLE own; INSERT INTO acc VALUES (31)");
    run(&mut here, "CREATE TABLE mine (id int REFERENCES acc); INSERT INTO mine VALUES (30); COMMIT");
    assert_eq!(ask(&mut there, "SELECT count(*) FROM acc, mine WHERE mine.id = acc.id"), ["1"]);
}

#[test]
fn a_row_that_is_referred_to_meanwhile_stays() {
    for refer in [
        "CREATE TABLE child (id int REFERENCES par); INSERT INTO child VALUES (2)",
        "CREATE TABLE child (id int); INSERT INTO child VALUES (2); ALTER TABLE child ADD FOREIGN KEY (id) REFERENCES par",
    ] {
        let database = database(1);
        let (mut here, mut there) = (database.connect().unwrap(), database.connect().unwrap());
        run(&mut here, "BEGIN; DELETE FROM par WHERE id = 2");
        run(&mut there, refer);
        assert_eq!(fail(&mut here, "COMMIT").sqlstate(), "40001", "{refer}");
        assert_eq!(ask(&mut there, "SELECT count(*) FROM par"), ["2"]);
    }
}

fn subscribe(connection: &mut Connection, sql: &str) -> Subscription {
    match run(connection, sql).pop() {
        Some(Outcome::Subscription(subscription)) => subscription,
        other => panic!("{sql}: {other:?}"),
    }
}

/// Rows that are told until the subscription ends with an error, and the error.
fn until_error(connection: &mut Connection, subscription: &Subscription) -> (usize, Error) {
    let (mut n_rows, deadline) = (0, Instant::now() + Duration::from_secs(20));
    while Instant::now() < deadline {
        match connection.next_changes(subscription, Duration::from_millis(200)) {
            Ok(Changes::Rows(batch)) => n_rows += crate::support::whole(&batch).num_rows(),
            Ok(Changes::End) => panic!("it ends as if all were told"),
            Ok(_) => {}
            Err(error) => return (n_rows, error),
        }
    }
    panic!("{n_rows} rows, and no end")
}

#[test]
fn subscriptions_to_what_goes_or_is_made_anew_end_with_an_error() {
    for (alter, reads, n_rows) in [
        ("ALTER TABLE acc ADD z int", "acc", 2),
        ("ALTER TABLE acc ALTER v TYPE text", "(SELECT count(*) FROM acc) WITH (PROGRESS)", 3),
        ("ALTER TABLE acc DROP v", "sums", 3),
        ("DROP TABLE acc CASCADE", "acc WITH (PROGRESS)", 2),
        ("DROP TABLE acc CASCADE", "(SELECT par.id FROM par, acc WHERE par.id = acc.id)", 2),
        ("ALTER TABLE acc DROP v", "(SELECT id FROM plain)", 2),
    ] {
        for workers in [1, 2] {
            let database = database(workers);
            let (mut here, mut there) = (database.connect().unwrap(), database.connect().unwrap());
            run(
                &mut there,
                "CREATE VIEW plain AS SELECT id FROM acc; CREATE MATERIALIZED VIEW sums AS SELECT count(*) FROM acc",
            );
            let subscription = subscribe(&mut here, &format!("SUBSCRIBE {reads}"));
            run(&mut there, "INSERT INTO acc VALUES (2, 2, 'low')");
            let waiting = std::thread::spawn(move || {
                let told = until_error(&mut here, &subscription);
                assert!(matches!(here.next_changes(&subscription, Duration::ZERO).unwrap(), Changes::End));
                told
            });
            std::thread::sleep(Duration::from_millis(100));
            let started = Instant::now();
            run(&mut there, alter);
            let (told, error) = waiting.join().unwrap();
            assert!(started.elapsed() < Duration::from_secs(4), "a client that waits is woken");
            assert_eq!((told, error.sqlstate()), (n_rows, "42P01"), "{alter}, {reads}: {error:?}");
            assert!(error.message.contains("was dropped, altered or made anew"), "{error:?}");
        }
    }
}

#[test]
fn subscriptions_outlive_what_leaves_their_rows() {
    let database = database(1);
    let (mut here, mut there) = (database.connect().unwrap(), database.connect().unwrap());
    run(&mut there, "CREATE VIEW plain AS SELECT * FROM acc");
    let subscription = subscribe(&mut here, "SUBSCRIBE plain");
    run(&mut there, "DROP VIEW plain; ALTER TABLE acc ALTER v SET DEFAULT 3; ALTER TABLE acc RENAME TO other");
    // (It fails, and puts back what it took down.)
    fail(&mut there, "ALTER TABLE other ALTER m TYPE int");
    run(&mut there, "INSERT INTO other (id) VALUES (5)");
    let mut rows = 0;
    let deadline = Instant::now() + Duration::from_secs(10);
    while rows < 2 && Instant::now() < deadline {
        if let Changes::Rows(batch) = here.next_changes(&subscription, Duration::from_millis(100)).unwrap() {
            let batch = crate::support::whole(&batch);
            rows += batch.num_rows();
        }
    }
    assert_eq!(rows, 2);
    run(&mut there, "DROP TABLE other");
    assert_eq!(until_error(&mut here, &subscription).1.sqlstate(), "42P01");
}
