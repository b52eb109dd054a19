//! Recursive queries that have no end, beside others.

use std::time::Duration;

use crate::support::{ask, fail, run, with_workers};

/// Counts on from every number in `starts`.
const ENDLESS: &str = "WITH RECURSIVE n (x) AS (SELECT x FROM starts UNION SELECT x + 1 FROM n) SELECT x FROM n";

#[test]
fn an_endless_view_leaves_others_readable_and_can_be_dropped() {
    with_workers(|session| {
        run(session, "CREATE TABLE starts (x bigint)");
        run(session, "CREATE MATERIALIZED VIEW counted AS SELECT count(*) AS n FROM starts");
        run(session, &format!("CREATE MATERIALIZED VIEW endless AS {ENDLESS}"));
        for n in 1..4 {
            run(session, &format!("INSERT INTO starts VALUES ({})", n * 1_000_000));
            assert_eq!(ask(session, "SELECT * FROM counted"), [n.to_string()]);
            assert_eq!(ask(session, "SELECT count(*) FROM starts"), [n.to_string()]);
        }
        // Ctrl-C ends a read that waits for the view, and nothing else.
        let interrupt = session.interrupt();
        let stop = std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(100));
            interrupt.trigger();
        });
        assert_eq!(fail(session, "SELECT count(*) FROM endless").sqlstate(), "57014");
        stop.join().unwrap();
        assert_eq!(ask(session, "SELECT * FROM counted"), ["3"]);
        run(session, "DROP MATERIALIZED VIEW endless");
        run(session, "INSERT INTO starts VALUES (9)");
        session.wait().unwrap();
        assert_eq!(ask(session, "SELECT * FROM counted"), ["4"]);
    });
}

#[test]
fn an_endless_question_ends_with_an_interrupt_or_a_limit() {
    with_workers(|session| {
        run(session, "CREATE TABLE starts (x bigint); INSERT INTO starts VALUES (1)");
        let interrupt = session.interrupt();
        let stop = std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(100));
            interrupt.trigger();
        });
        assert_eq!(fail(session, ENDLESS).sqlstate(), "57014");
        stop.join().unwrap();
        run(session, "SET recursion_limit = 50");
        let error = fail(session, ENDLESS);
        assert_eq!(error.to_string(), "the recursion does not reach a fixed point within 50 rounds");
        run(session, "SET recursion_limit = off");
        assert_eq!(ask(session, "SELECT * FROM starts"), ["1"]);
    });
}

#[test]
fn a_view_at_its_limit_fails_alone_and_recovers() {
    with_workers(|session| {
        run(
            session,
            "CREATE TABLE edges (a bigint, b bigint); INSERT INTO edges VALUES (1, 2), (2, 3), (3, 4), (4, 5)",
        );
        run(
            session,
            "CREATE MATERIALIZED VIEW near AS WITH MUTUALLY RECURSIVE (ERROR AT RECURSION LIMIT 4)
               r (x bigint) AS (SELECT 1 UNION SELECT e.b FROM r JOIN edges e ON e.a = r.x) SELECT x FROM r",
        );
        run(session, "CREATE MATERIALIZED VIEW other AS SELECT count(*) AS n FROM edges");
        let error = fail(session, "SELECT * FROM near");
        assert_eq!(error.to_string(), "the recursion does not reach a fixed point within 4 rounds");
        assert_eq!(ask(session, "SELECT * FROM other"), ["4"]);
        run(session, "DELETE FROM edges WHERE a = 3");
        assert_eq!(ask(session, "SELECT * FROM near ORDER BY x"), ["1", "2", "3"]);
    });
}
