//! Recursive queries that have no end, beside others.

use std::sync::Arc;
use std::time::Duration;

use anabranch_engine::frame::{GroupRows, UserAggregate};
use anabranch_engine::functions::Function;
use arrow::array::{Array, ArrayRef, AsArray, Int64Array};
use arrow::datatypes::{DataType, Int64Type};

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

#[test]
fn a_chain_of_many_rounds_is_cut_and_mended() {
    with_workers(|session| {
        run(session, "CREATE TABLE edges (a bigint, b bigint)");
        run(
            session,
            "CREATE MATERIALIZED VIEW ends AS WITH RECURSIVE r (x) AS (
               SELECT 0::bigint UNION SELECT e.b FROM r JOIN edges e ON e.a = r.x) SELECT count(*) AS n, max(x) AS last FROM r",
        );
        run(
            session,
            "INSERT INTO edges SELECT n, n + 1 FROM (SELECT unnest(generate_series(0, 99999)) AS n) AS numbers",
        );
        for (change, answer) in [
            ("INSERT INTO edges VALUES (100000, 100001)", "100002 100001"),
            ("DELETE FROM edges WHERE a = 99990", "99991 99990"),
            ("INSERT INTO edges VALUES (5, 99991)", "100002 100001"),
            ("DELETE FROM edges WHERE a = 3", "4 3"),
        ] {
            run(session, change);
            assert_eq!(ask(session, "SELECT * FROM ends"), [answer], "{change}");
        }
    });
}

/// What the shell of a new user types from docs/graphs.md: labels of components that are strongly
/// connected, under single changes.
#[test]
fn a_loop_in_a_loop_follows_single_changes() {
    let text = std::fs::read_to_string("../../docs/graphs.md").unwrap();
    let part = text.split("## Strongly connected components").nth(1).expect("the page has the query");
    let query = part.split("```sql").nth(1).and_then(|rest| rest.split("```").next()).expect("it is SQL");
    with_workers(|session| {
        run(session, "CREATE TABLE edges (src bigint, dst bigint, weight bigint)");
        run(session, &format!("CREATE MATERIALIZED VIEW strong AS {query}"));
        // Rings of ten nodes; each hangs on the one before.
        run(
            session,
            "INSERT INTO edges SELECT n, CASE WHEN n % 10 = 9 THEN n - 9 ELSE n + 1 END, 1
               FROM (SELECT unnest(generate_series(0, 399)) AS n) AS numbers
             UNION ALL SELECT n * 10 + 3, n * 10 + 10, 1 FROM (SELECT unnest(generate_series(0, 38)) AS n) AS rings",
        );
        let sizes = "SELECT n, count(*) FROM (SELECT component, count(*) AS n FROM strong GROUP BY component) AS c
                     GROUP BY n ORDER BY n";
        assert_eq!(ask(session, sizes), ["10 40"]);
        for (change, answer) in [
            ("DELETE FROM edges WHERE src = 204 AND dst = 205", vec!["1 10", "10 39"]),
            ("INSERT INTO edges VALUES (209, 180, 1)", vec!["1 10", "10 39"]),
            ("INSERT INTO edges VALUES (204, 205, 1)", vec!["10 37", "30 1"]),
            ("DELETE FROM edges WHERE src = 193 AND dst = 200", vec!["10 40"]),
            ("INSERT INTO edges VALUES (399, 200, 1)", vec!["10 20", "200 1"]),
        ] {
            run(session, change);
            let mut found = ask(session, sizes);
            found.sort();
            let mut answer: Vec<String> = answer.into_iter().map(ToOwned::to_owned).collect();
            answer.sort();
            assert_eq!(found, answer, "{change}");
        }
    });
}

/// The least of whole numbers, as a user would write it.
struct Nearest;

impl UserAggregate for Nearest {
    type State = Option<i64>;

    fn name(&self) -> &str {
        "nearest"
    }

    fn output_type(&self, _arguments: &[DataType]) -> Result<DataType, String> {
        Ok(DataType::Int64)
    }

    fn initial(&self) -> Option<i64> {
        None
    }

    fn accumulate(&self, states: &mut [Option<i64>], rows: &GroupRows<'_>) -> Result<(), String> {
        let values = rows.column(0).as_primitive::<Int64Type>();
        for (state, row) in rows.iter().filter(|(_, row)| values.is_valid(*row)) {
            let value = values.value(row);
            states[state] = Some(states[state].map_or(value, |least| least.min(value)));
        }
        Ok(())
    }

    fn compute(&self, states: &[&Option<i64>]) -> Result<ArrayRef, String> {
        Ok(Arc::new(states.iter().map(|state| **state).collect::<Int64Array>()))
    }
}

#[test]
fn aggregates_of_users_and_the_first_rows_of_groups_stand_in_loops() {
    with_workers(|session| {
        session.register_function("nearest", Function::aggregate(Nearest, 1));
        run(session, "CREATE TABLE edges (a bigint, b bigint, w bigint)");
        let ways = |view: &str, chosen: &str| {
            format!(
                "CREATE MATERIALIZED VIEW {view} AS WITH MUTUALLY RECURSIVE d (node bigint, cost bigint) AS (
                     WITH c AS (SELECT 0::bigint AS node, 0::bigint AS cost
                         UNION ALL SELECT e.b, d.cost + e.w FROM d JOIN edges e ON e.a = d.node)
                     {chosen}) SELECT node, cost FROM d"
            )
        };
        run(session, &ways("by_min", "SELECT node, min(cost) FROM c GROUP BY node"));
        run(session, &ways("by_user", "SELECT node, nearest(cost) FROM c GROUP BY node"));
        run(session, &ways("by_first", "SELECT DISTINCT ON (node) node, cost FROM c ORDER BY node, cost"));
        let mut seed = 7u64;
        for turn in 0..25 {
            let mut below = |n: u64| {
                seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                (seed >> 33) % n
            };
            run(session, &format!("INSERT INTO edges VALUES ({}, {}, {})", below(8), below(8), 1 + below(9)));
            if turn % 3 == 2 {
                run(session, &format!("DELETE FROM edges WHERE a = {} AND w > {}", below(8), below(6)));
            }
            let expected = ask(session, "SELECT * FROM by_min ORDER BY node");
            for view in ["by_user", "by_first"] {
                assert_eq!(
                    ask(session, &format!("SELECT * FROM {view} ORDER BY node")),
                    expected,
                    "{view}, turn {turn}"
                );
            }
        }
    });
}

/// A user's aggregate hides a function that SQL writes with others.
#[test]
fn a_users_name_comes_before_a_rewritten_function() {
    with_workers(|session| {
        run(session, "CREATE TABLE far (g bigint, d bigint); INSERT INTO far VALUES (1, 5), (1, 3), (2, 4)");
        assert_eq!(ask(session, "SELECT trim_scale(1.50)"), ["1.5"]);
        session.register_function("trim_scale", Function::aggregate(Nearest, 1));
        assert_eq!(ask(session, "SELECT g, trim_scale(d) FROM far GROUP BY g ORDER BY g"), ["1 3", "2 4"]);
    });
}
