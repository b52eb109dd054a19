//! What goes wrong, and that the session outlives it.

use anabranch_engine::ErrorKind;

use crate::support::{ask, fail, run, session, with_workers};

#[test]
fn row_errors_come_and_go_with_their_rows() {
    with_workers(|session| {
        run(session, "CREATE TABLE t (a int, b int); CREATE MATERIALIZED VIEW q AS SELECT a / b AS q FROM t");
        run(session, "INSERT INTO t VALUES (6, 2), (1, 0), (2, 0)");
        let error = fail(session, "SELECT * FROM q");
        assert_eq!(error.kind, ErrorKind::Data);
        assert!(error.message.starts_with("division by zero"), "{error}");
        assert_eq!(error.detail.as_deref(), Some("2 rows have errors."));
        assert_eq!(ask(session, "SELECT count(*) FROM t"), ["3"]);
        run(session, "DELETE FROM t WHERE b = 0");
        assert_eq!(ask(session, "SELECT * FROM q"), ["3"]);
    });
}

#[test]
fn a_question_with_a_row_error_is_an_error_once() {
    with_workers(|session| {
        run(session, "CREATE TABLE t (a int, b int); INSERT INTO t VALUES (6, 2), (1, 0)");
        assert!(fail(session, "SELECT a / b FROM t").message.starts_with("division by zero"));
        assert_eq!(ask(session, "SELECT a / b FROM t WHERE b <> 0"), ["3"]);
        assert!(fail(session, "INSERT INTO t SELECT a, 1 / b FROM t").message.starts_with("division by zero"));
        assert_eq!(ask(session, "SELECT count(*) FROM t"), ["2"]);
    });
}

#[test]
fn wrong_statements_change_nothing() {
    with_workers(|session| {
        run(session, "CREATE TABLE t (a int); INSERT INTO t VALUES (1)");
        let script = "INSERT INTO t VALUES (2);\nSELECT b FROM t";
        let error = fail(session, script);
        assert_eq!(error.kind, ErrorKind::Invalid);
        assert!(error.render(script).contains("LINE 2: SELECT b FROM t\n               ^"), "{}", error.render(script));
        assert_eq!(ask(session, "SELECT count(*) FROM t"), ["2"]);
        assert_eq!(fail(session, "INSERT INTO t VALUES (3); SELEC 1").kind, ErrorKind::Invalid);
        assert_eq!(ask(session, "SELECT count(*) FROM t"), ["2"]);
        for (value, problem) in [("'x'", "invalid input syntax"), ("9999999999", "out of range")] {
            let error = fail(session, &format!("INSERT INTO t VALUES ({value})"));
            assert!(error.message.contains(problem), "{error}");
            assert_eq!(error.detail.as_deref(), Some("This is the value for column \"a\"."));
        }
        let error = fail(session, "SELECT a FROM t TABLESAMPLE BERNOULLI (10)");
        assert!(error.message.contains("not supported"), "{error}");
        assert!(fail(session, "CREATE MATERIALIZED VIEW m AS SELECT c FROM t").message.contains('c'));
        assert!(fail(session, "CREATE INDEX i ON t (b)").message.contains("column \"b\""));
        assert!(fail(session, "SET wait_for_source = on").hint.is_some());
        assert!(fail(session, "CREATE SOURCE s WITH (connector = 'kafka')").message.contains("kafka"));
    });
}

#[test]
fn an_interrupt_stops_the_statement_and_nothing_else() {
    for workers in 0..2 {
        let mut session = session(workers);
        run(&mut session, "CREATE TABLE t (a bigint)");
        let values: Vec<String> = (0..3000).map(|i| format!("({i})")).collect();
        run(&mut session, &format!("INSERT INTO t VALUES {}", values.join(", ")));
        let interrupt = session.interrupt();
        let stopper = std::thread::spawn(move || {
            for _ in 0..200 {
                std::thread::sleep(std::time::Duration::from_millis(50));
                interrupt.trigger();
            }
        });
        // Twenty-seven billion pairs: no test waits for that.
        let error = fail(&mut session, "SELECT count(*) FROM t x, t y, t z WHERE x.a + y.a + z.a = 17");
        assert_eq!(error.kind, ErrorKind::Cancelled);
        drop(stopper);
        let mut answer = session.query("SELECT count(*) FROM t");
        for _ in 0..100 {
            match answer {
                Ok(_) => break,
                Err(error) => assert_eq!(error.kind, ErrorKind::Cancelled),
            }
            answer = session.query("SELECT count(*) FROM t");
        }
        assert!(answer.is_ok());
    }
}

#[test]
fn an_interrupted_join_leaves_the_workers_to_others() {
    for workers in 0..3 {
        let mut session = session(workers);
        run(&mut session, "CREATE TABLE m (id bigint); INSERT INTO m SELECT unnest(generate_series(1, 100000))");
        run(&mut session, "CREATE TABLE t (a int); CREATE MATERIALIZED VIEW v AS SELECT sum(a) AS s FROM t");
        let interrupt = session.interrupt();
        let stopper = std::thread::spawn(move || {
            std::thread::sleep(std::time::Duration::from_millis(300));
            interrupt.trigger();
        });
        let error = fail(&mut session, "SELECT count(*) FROM m a JOIN m b ON a.id < b.id");
        assert_eq!(error.kind, ErrorKind::Cancelled);
        stopper.join().unwrap();
        let started = std::time::Instant::now();
        run(&mut session, "INSERT INTO t VALUES (7)");
        assert_eq!(ask(&mut session, "SELECT * FROM v"), ["7"]);
        // (The join has ten billion pairs: minutes.)
        assert!(started.elapsed().as_secs() < 10, "{workers} workers: {:?}", started.elapsed());
    }
}

/// The values that an error shows are written as the shell writes them.
#[test]
fn a_plain_numeric_in_an_error_is_a_number() {
    let mut session = super::support::session(0);
    super::support::run(&mut session, "CREATE TABLE c (p numeric); INSERT INTO c VALUES (1.50)");
    let error = session.query("SELECT p / 0 FROM c").unwrap_err();
    assert!(error.message.contains("(where p = 1.5)"), "{}", error.message);
}
