//! An operator that panics takes its dataflow with it, and nothing else.

use std::sync::Arc;
use std::time::Duration;

use anabranch_engine::frame::{Arrived, Event, Events, Frame, Given, Instance, UserOperator};
use anabranch_engine::{Changes, Database, DatabaseOptions, ErrorKind, Outcome, Session};
use arrow::datatypes::{DataType, Field, Schema};

use crate::support::{ask, fail, lines, run, with_workers};

const RELATIONS: &str = "CREATE TABLE t (k int, v int); INSERT INTO t VALUES (1, 10), (1, 20), (2, 30);
    CREATE MATERIALIZED VIEW sums AS SELECT k, sum(v) AS s FROM t GROUP BY k;
    CREATE MATERIALIZED VIEW most AS SELECT max(s) AS s FROM sums;
    CREATE MATERIALIZED VIEW beside AS SELECT count(*) AS n FROM t WHERE v > 10";

/// The error of reading what has failed.
fn failure_of(session: &mut Session, sql: &str) -> String {
    let error = session.query(sql).expect_err(sql);
    assert_eq!((error.kind, error.sqlstate()), (ErrorKind::Internal, "XX000"), "{error:?}");
    assert!(error.hint.as_deref().is_some_and(|hint| hint.contains("create")), "{error:?}");
    error.message
}

#[test]
fn a_view_whose_operator_panics_fails_with_its_readers_alone() {
    with_workers(|session| {
        run(session, RELATIONS);
        assert_eq!(ask(session, "SELECT s FROM most"), ["30"]);
        let Some(Outcome::Subscription(changes)) = run(session, "SUBSCRIBE sums").pop() else { panic!() };
        assert!(matches!(session.next_changes(&changes, Duration::from_secs(10)).unwrap(), Changes::Rows(_)));
        session.panic_in("sums");
        run(session, "INSERT INTO t VALUES (2, 40), (3, 1)");
        assert!(failure_of(session, "SELECT * FROM sums").contains("\"sums\" has failed: this panic is on purpose"));
        assert!(failure_of(session, "SELECT * FROM most").starts_with("\"most\" has failed: \"sums\" has failed"));
        assert!(failure_of(session, "SELECT s + 1 FROM sums WHERE k = 1").contains("\"sums\" has failed"));
        assert!(failure_of(session, "SELECT a.s FROM sums a JOIN t ON t.v = a.s").contains("\"sums\" has failed"));
        assert!(fail(session, "CREATE MATERIALIZED VIEW x AS SELECT count(*) AS n FROM sums").message.contains("sums"));
        // What does not read it goes on, what is new included.
        assert_eq!(ask(session, "SELECT n FROM beside"), ["3"]);
        assert_eq!(ask(session, "SELECT k, sum(v) FROM t GROUP BY k ORDER BY k"), ["1 30", "2 70", "3 1"]);
        run(session, "FLUSH; UPDATE t SET v = v + 1; CREATE MATERIALIZED VIEW fresh AS SELECT sum(v) AS s FROM t");
        assert_eq!(ask(session, "SELECT s FROM fresh"), ["106"]);
        let told = loop {
            match session.next_changes(&changes, Duration::from_secs(10)) {
                Ok(Changes::Rows(_)) => {}
                told => break told,
            }
        };
        assert!(told.unwrap_err().message.contains("has failed"));
        assert!(matches!(session.next_changes(&changes, Duration::ZERO).unwrap(), Changes::End));
        // The way out.
        run(session, "DROP MATERIALIZED VIEW most; DROP MATERIALIZED VIEW sums");
        run(session, "CREATE MATERIALIZED VIEW sums AS SELECT k, sum(v) AS s FROM t GROUP BY k");
        assert_eq!(ask(session, "SELECT * FROM sums ORDER BY k"), ["1 32", "2 72", "3 2"]);
        run(session, "INSERT INTO t VALUES (3, 1)");
        assert_eq!(ask(session, "SELECT s FROM sums WHERE k = 3"), ["3"]);
    });
}

#[test]
fn a_table_that_fails_takes_no_rows() {
    with_workers(|session| {
        run(session, RELATIONS);
        run(session, "CREATE TABLE u (a int)");
        session.panic_in("u");
        // (The table fails before the row comes, or by it.)
        let _ = session.execute("INSERT INTO u VALUES (1)");
        assert!(failure_of(session, "SELECT * FROM u").contains("\"u\" has failed"));
        assert!(fail(session, "INSERT INTO u VALUES (2)").message.contains("\"u\" has failed"));
        run(session, "INSERT INTO t VALUES (5, 50)");
        assert_eq!(ask(session, "SELECT s FROM most"), ["50"]);
    });
}

/// Panics at the second advance.
struct Fragile;

impl UserOperator for Fragile {
    fn name(&self) -> &str {
        "fragile"
    }

    fn output(&self, _inputs: &[Vec<DataType>]) -> Result<Vec<(String, DataType)>, String> {
        Ok(vec![("x".to_owned(), DataType::Int64)])
    }

    fn start(&self) -> Box<dyn Instance> {
        Box::new(Fragile)
    }
}

impl Instance for Fragile {
    fn advance(&mut self, upto: i64, inputs: &[Arrived<'_>], out: &mut Given) -> Result<(), String> {
        assert!(upto < 10, "fragile things break");
        let Some(rows) = inputs.first().filter(|rows| !rows.times().is_empty()) else { return Ok(()) };
        out.points(rows.columns().to_vec(), rows.times().to_vec());
        Ok(())
    }
}

#[test]
fn an_operator_of_a_user_that_panics_ends_its_frame_alone() {
    with_workers(|session| {
        run(session, RELATIONS);
        let schema = Schema::new(vec![Field::new("x", DataType::Int64, true)]);
        let frame: Frame = Events::input("x", schema).frame().operator(Fragile, []);
        let mut frame_run = session.start(&frame).unwrap();
        frame_run.push("x", vec![Event::point(4, [7i64.into()])]).unwrap();
        frame_run.advance("x", 5).unwrap();
        let error = frame_run.advance("x", 20).and_then(|()| frame_run.lifetimes().map(drop)).unwrap_err();
        assert!(error.message.contains("fragile"), "{error:?}");
        drop(frame_run);
        run(session, "INSERT INTO t VALUES (9, 90)");
        assert_eq!(ask(session, "SELECT s FROM most"), ["90"]);
    });
}

#[test]
fn other_connections_go_on_beside_a_failed_view() {
    for workers in [1, 2] {
        let database = Database::open(DatabaseOptions { workers, ..DatabaseOptions::default() }).unwrap();
        let mut here = database.connect().unwrap();
        here.execute(RELATIONS).unwrap();
        database.panic_in("sums").unwrap();
        let database = Arc::new(database);
        let writers: Vec<_> = (0..4)
            .map(|_| {
                let mut writer = database.connect().unwrap();
                std::thread::spawn(move || {
                    (0..20).for_each(|_| drop(writer.execute("INSERT INTO t VALUES (7, 70)").unwrap()));
                })
            })
            .collect();
        writers.into_iter().for_each(|writer| writer.join().unwrap());
        assert!(here.query("SELECT * FROM most").unwrap_err().message.contains("has failed"));
        assert_eq!(lines(&here.query("SELECT n FROM beside").unwrap()), ["82"]);
        assert_eq!(lines(&here.query("SELECT sum(v) FROM t").unwrap()), ["5660"]);
    }
}
