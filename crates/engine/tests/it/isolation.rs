//! An operator that panics takes its dataflow with it, and nothing else.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::time::Duration;

use anabranch_engine::frame::{Arrived, Event, Events, Frame, Given, Instance, UserOperator, col};
use anabranch_engine::functions::{Function, UserFunction};
use anabranch_engine::{Changes, Database, DatabaseOptions, ErrorKind, Outcome, Session};
use arrow::array::ArrayRef;
use arrow::datatypes::{DataType, Field, Schema};
use datafusion_common::ScalarValue;

use crate::support::{ask, fail, lines, run, session, with_workers};

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

/// Cannot be started, by the worker that comes to it as the n-th.
struct Unbuildable {
    /// Starts until one panics.
    left: AtomicI64,
}

impl Unbuildable {
    fn after(starts: i64) -> Unbuildable {
        Unbuildable { left: AtomicI64::new(starts) }
    }
}

impl UserOperator for Unbuildable {
    fn name(&self) -> &str {
        "unbuildable"
    }

    fn output(&self, _inputs: &[Vec<DataType>]) -> Result<Vec<(String, DataType)>, String> {
        Ok(vec![("x".to_owned(), DataType::Int64)])
    }

    fn start(&self) -> Box<dyn Instance> {
        assert!(self.left.fetch_sub(1, Ordering::Relaxed) > 0, "no instance can be had");
        Box::new(Fragile)
    }
}

/// A worker once unwound to its end, and the session failed. With several workers, those that have
/// built their part and those that have not must agree on the channels of all that is built later.
#[test]
fn a_dataflow_that_cannot_be_built_fails_alone() {
    for starts in 0..2 {
        for workers in [0, 1, 2] {
            let session = &mut session(workers);
            run(session, RELATIONS);
            run(session, "CREATE TABLE e (x bigint, at bigint, WATERMARK FOR at AS at) APPEND ONLY");
            let fails = starts < workers.max(1) as i64;
            for _ in 0..3 {
                let frame = session.events("e").unwrap().frame().select([col("x")]);
                let frame = frame.operator(Unbuildable::after(starts), [col("x")]);
                // (Told at once where the session's own thread builds, or refused by what reads
                // it.)
                let made = session.create_view("odd", &frame);
                let above = session.execute("CREATE MATERIALIZED VIEW above AS SELECT count(*) AS n FROM odd");
                run(session, "INSERT INTO t VALUES (7, 1)");
                if let Err(error) = &made {
                    assert!(fails && error.message.contains("no instance can be had"), "{error:?}");
                } else if fails {
                    assert!(failure_of(session, "SELECT * FROM odd").contains("\"odd\" has failed: no instance"));
                    if above.is_ok() {
                        assert!(failure_of(session, "SELECT n FROM above").contains("\"odd\" has failed"));
                    }
                }
                // What exchanges rows is built, and right.
                run(session, "CREATE MATERIALIZED VIEW fresh AS SELECT k, count(*) AS n FROM t GROUP BY k");
                let (kept, asked) =
                    ("SELECT * FROM fresh ORDER BY k", "SELECT k, count(*) FROM t GROUP BY k ORDER BY k");
                assert_eq!(ask(session, kept), ask(session, asked));
                assert_eq!(ask(session, "SELECT s FROM sums WHERE k = 1"), ["30"]);
                if above.is_ok() {
                    run(session, "DROP MATERIALIZED VIEW above");
                }
                run(session, "DROP MATERIALIZED VIEW IF EXISTS odd; DROP MATERIALIZED VIEW fresh");
            }
        }
    }
}

/// A function of values that is well until it is told otherwise.
struct Moody(Arc<AtomicBool>);

impl UserFunction for Moody {
    fn name(&self) -> &str {
        "moody"
    }

    fn arguments(&self) -> &[DataType] {
        &[DataType::Int64]
    }

    fn output_type(&self) -> &DataType {
        // (A panic in `call` is caught where the function is called. This one is the engine's.)
        assert!(!self.0.load(Ordering::Relaxed), "not in the mood");
        &DataType::Int64
    }

    fn call(&self, columns: &[ArrayRef], _rows: usize) -> Result<ArrayRef, String> {
        Ok(Arc::clone(&columns[0]))
    }
}

#[test]
fn a_panic_in_an_answer_fails_the_statement_alone() {
    for workers in [1, 2] {
        let database = Database::open(DatabaseOptions { workers, ..DatabaseOptions::default() }).unwrap();
        let is_bad = Arc::new(AtomicBool::new(false));
        database.register_function("moody", Function::scalar(Moody(Arc::clone(&is_bad)))).unwrap();
        let (mut here, mut beside) = (database.connect().unwrap(), database.connect().unwrap());
        here.execute(RELATIONS).unwrap();
        let asked = here.prepare("SELECT moody(v) FROM t WHERE k = $1", &[]).unwrap();
        let values = [ScalarValue::from(2)];
        here.run(&asked, &values).unwrap();
        here.execute("BEGIN").unwrap();
        is_bad.store(true, Ordering::Relaxed);
        for error in [
            // On the engine's thread, for there is a transaction; then on the connection's.
            here.run(&asked, &values).unwrap_err(),
            here.execute("ROLLBACK").and_then(|_| here.run(&asked, &values)).unwrap_err(),
            here.query("SELECT moody(s) FROM sums").unwrap_err(),
            here.execute("UPDATE t SET v = moody(v)").unwrap_err(),
            here.execute("INSERT INTO t SELECT 4, moody(4)").unwrap_err(),
        ] {
            assert_eq!((error.kind, error.sqlstate()), (ErrorKind::Internal, "XX000"), "{error:?}");
            assert!(error.message.contains("not in the mood"), "{error:?}");
        }
        assert_eq!(lines(&beside.query("SELECT sum(v) FROM t").unwrap()), ["60"]);
        is_bad.store(false, Ordering::Relaxed);
        here.execute("INSERT INTO t SELECT 4, moody(4)").unwrap();
        assert_eq!(lines(&here.query("SELECT moody(s) FROM sums WHERE k = 4").unwrap()), ["4"]);
    }
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
