//! Subscriptions over system relations: read again every second, and the differences told.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anabranch_engine::{
    Changes, Database, DatabaseOptions, ManualClock, Options, Outcome, Session, StepStatus, Subscription,
};
use arrow::array::AsArray;
use arrow::datatypes::Int64Type;

use crate::connections;
use crate::support::{ask, batch_lines, fail, lines, run, whole};

const LONG: Duration = Duration::from_secs(20);
const SHORT: Duration = Duration::from_millis(30);
const SECOND: i64 = 1_000_000;

fn with_clock(test: impl Fn(&mut Session, &ManualClock)) {
    for workers in 0..3 {
        let clock = Arc::new(ManualClock::new(SECOND));
        let options = Options { workers, clock: clock.clone(), ..Options::default() };
        test(&mut Session::new(options).unwrap(), &clock);
    }
}

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

fn drain(session: &mut Session, subscription: &Subscription) {
    while !matches!(session.next_changes(subscription, SHORT).unwrap(), Changes::Nothing) {}
}

fn settle(session: &mut Session) {
    while session.step().unwrap() == StepStatus::Working {}
}

#[test]
fn differences_are_told_once_a_second() {
    with_clock(|session, clock| {
        run(session, "CREATE TABLE a (x int)");
        let tables = subscribe(session, "SUBSCRIBE (SELECT relname FROM pg_class WHERE relkind = 'r')");
        assert_eq!(next(session, &tables), ["1 a"]);
        run(session, "CREATE TABLE b (x int); DROP TABLE a; CREATE TABLE c (x int); DROP TABLE c");
        assert!(matches!(session.next_changes(&tables, SHORT).unwrap(), Changes::Nothing));
        clock.set(2 * SECOND);
        assert_eq!(next(session, &tables), ["-1 a", "1 b"]);
        clock.set(3 * SECOND);
        assert!(matches!(session.next_changes(&tables, SHORT).unwrap(), Changes::Nothing));
    });
}

#[test]
fn system_relations_join_each_other_and_tables() {
    with_clock(|session, clock| {
        run(
            session,
            "CREATE TABLE owners (name text, owner text); INSERT INTO owners VALUES ('sums', 'Ada'), ('u', 'Bo');
             CREATE TABLE t (v int); CREATE MATERIALIZED VIEW sums AS SELECT sum(v) AS s FROM t",
        );
        let owned = subscribe(
            session,
            "SUBSCRIBE (SELECT d.name, o.owner, count(m.bytes) > 0 AS known
                FROM anabranch_dataflows d JOIN owners o USING (name)
                JOIN anabranch_memory m ON m.dataflow = d.id GROUP BY d.name, o.owner)",
        );
        assert_eq!(next(session, &owned), ["1 sums Ada true"]);
        run(session, "UPDATE owners SET owner = 'Cy' WHERE name = 'sums'");
        assert_eq!(next(session, &owned), ["-1 sums Ada true", "1 sums Cy true"]);
        run(session, "DROP MATERIALIZED VIEW sums; CREATE TABLE u (v int)");
        clock.set(2 * SECOND);
        assert_eq!(next(session, &owned), ["-1 sums Cy true", "1 u Bo true"]);
    });
}

#[test]
fn progress_limits_and_keys_are_as_for_tables() {
    with_clock(|session, clock| {
        run(session, "CREATE TABLE a (x int)");
        let told = "SELECT relname, relnatts FROM pg_class WHERE relkind = 'r'";
        let ended = subscribe(session, &format!("SUBSCRIBE ({told}) UP TO {}", 3 * SECOND));
        let later = subscribe(session, &format!("SUBSCRIBE ({told}) WITH (SNAPSHOT = false, PROGRESS)"));
        let keyed = subscribe(session, &format!("SUBSCRIBE ({told}) ENVELOPE UPSERT (KEY (relname))"));
        assert_eq!(next(session, &ended), ["1 a 1"]);
        assert_eq!(next(session, &keyed), ["upsert a 1"]);
        run(session, "ALTER TABLE a ADD COLUMN y int");
        // (A reading that finds nothing new tells so, too.)
        for second in 2..5 {
            clock.set(second * SECOND);
            drain(session, &keyed);
        }
        assert_eq!(next(session, &ended), ["-1 a 1", "1 a 2"]);
        assert!(matches!(session.next_changes(&ended, LONG).unwrap(), Changes::End));
        let mut seen = Vec::new();
        let mut progress = 0;
        while progress <= 4 * SECOND {
            match session.next_changes(&later, LONG).unwrap() {
                Changes::Progress(time) => progress = time,
                Changes::Rows(batch) => {
                    let batch = whole(&batch);
                    assert!(batch.column(0).as_primitive::<Int64Type>().values().iter().all(|time| *time >= progress));
                    seen.extend(batch_lines(&batch.project(&[1, 2, 3]).unwrap()));
                }
                other => panic!("{other:?}"),
            }
        }
        assert_eq!(seen, ["-1 a 1", "1 a 2"]);
    });
}

#[test]
fn every_system_relation_can_be_followed() {
    let mut session = crate::support::session(1);
    run(&mut session, "CREATE TABLE t (a int PRIMARY KEY, b text[]); CREATE INDEX i ON t (b); CREATE SCHEMA s");
    for name in [
        "anabranch_arrangements",
        "anabranch_dataflows",
        "anabranch_memory",
        "anabranch_sources",
        "anabranch_subscriptions",
        "anabranch_operators",
        "pg_class",
        "pg_attribute",
        "pg_index",
        "pg_constraint",
        "pg_type",
        "pg_namespace",
        "pg_settings",
        "pg_proc",
        "information_schema.columns",
        "information_schema.tables",
    ] {
        let n: usize = ask(&mut session, &format!("SELECT count(*) FROM {name}"))[0].parse().unwrap();
        let followed = subscribe(&mut session, &format!("SUBSCRIBE {name}"));
        if n > 0 {
            assert!(next(&mut session, &followed).len() >= n, "{name}");
        }
        session.unsubscribe(followed);
    }
}

#[test]
fn cursors_and_copies_follow_them() {
    with_clock(|session, clock| {
        run(session, "CREATE TABLE a (x int)");
        run(session, "DECLARE c CURSOR FOR SUBSCRIBE (SELECT relname FROM pg_class WHERE relkind = 'r')");
        let fetch = |session: &mut Session| match run(session, "FETCH ALL c").pop() {
            Some(Outcome::Rows(rows)) => {
                lines(&rows).iter().map(|line| line.split_once(' ').unwrap().1.to_owned()).collect()
            }
            other => panic!("{other:?}"),
        };
        let first: Vec<String> = fetch(session);
        assert_eq!(first, ["1 a"]);
        run(session, "CREATE TABLE b (x int)");
        clock.set(3 * SECOND);
        let second: Vec<String> = fetch(session);
        assert_eq!(second, ["1 b"]);
        run(session, "CLOSE c");
    });
}

#[test]
fn inputs_go_with_their_readers() {
    with_clock(|session, clock| {
        let inputs = "SELECT name FROM anabranch_dataflows WHERE name LIKE 'rows of%' ORDER BY name";
        assert!(ask(session, inputs).is_empty());
        let one = subscribe(session, "SUBSCRIBE anabranch_memory");
        let two = subscribe(
            session,
            "SUBSCRIBE (SELECT d.name, m.bytes FROM anabranch_memory m JOIN anabranch_dataflows d ON m.dataflow = d.id)",
        );
        assert_eq!(ask(session, inputs), ["rows of anabranch_dataflows", "rows of anabranch_memory"]);
        session.unsubscribe(two);
        clock.set(3 * SECOND);
        session.step().unwrap();
        drain(session, &one);
        assert_eq!(ask(session, inputs), ["rows of anabranch_memory"]);
        session.unsubscribe(one);
        clock.set(6 * SECOND);
        settle(session);
        assert!(ask(session, inputs).is_empty());
        let time = session.time();
        clock.set(9 * SECOND);
        settle(session);
        assert_eq!(session.time(), time, "a session without subscriptions reads nothing");
    });
}

#[test]
fn what_cannot_be_followed_says_what_can() {
    let mut session = crate::support::session(0);
    let error = fail(&mut session, "CREATE MATERIALIZED VIEW v AS SELECT * FROM anabranch_memory");
    assert_eq!(error.sqlstate(), "0A000");
    assert!(error.hint.as_ref().unwrap().contains("SUBSCRIBE"), "{error:?}");
    let error = fail(&mut session, "SUBSCRIBE anabranch_memory AS OF 5");
    assert_eq!(error.sqlstate(), "0A000");
    assert!(error.hint.as_ref().unwrap().contains("AS OF"), "{error:?}");
}

#[test]
fn connections_follow_while_others_have_transactions() {
    let database = Database::open(DatabaseOptions { workers: 1, ..DatabaseOptions::default() }).unwrap();
    let (mut here, mut there) = (database.connect().unwrap(), database.connect().unwrap());
    connections::run(&mut there, "CREATE TABLE t (k int PRIMARY KEY); BEGIN; INSERT INTO t VALUES (1)");
    let sql = "SUBSCRIBE (SELECT count(*) AS n FROM anabranch_subscriptions)";
    let Some(Outcome::Subscription(watched)) = connections::run(&mut here, sql).pop() else { panic!("{sql}") };
    // (Its own subscription is there with the reading after it began.)
    let started = Instant::now();
    let mut last = String::new();
    while last != "1 1" {
        assert!(started.elapsed() < LONG);
        if let Changes::Rows(batch) = here.next_changes(&watched, LONG).unwrap() {
            let batch = whole(&batch);
            last = batch_lines(&batch.project(&[1, 2]).unwrap()).pop().unwrap();
        }
    }
    here.unsubscribe(watched);
    std::thread::sleep(Duration::from_millis(2_500));
    connections::run(&mut there, "INSERT INTO t VALUES (2); COMMIT");
    assert_eq!(connections::ask(&mut there, "SELECT count(*) FROM t"), ["2"]);
}
