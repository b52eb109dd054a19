//! What operators have done: EXPLAIN ANALYZE of a query, SHOW OPERATORS of what stands.

use std::time::{Duration, Instant};

use crate::support::{ask, fail, run, with_workers};

const TABLES: &str = "CREATE TABLE t (k bigint, x bigint, ts bigint, WATERMARK FOR ts AS ts - 5) APPEND ONLY;
     CREATE TABLE names (k bigint, name text);
     INSERT INTO names SELECT i, 'name ' || i FROM generate_series(0, 9) AS g(i);";

/// The line of a plan that begins so, without spaces before it.
fn line(lines: &[String], begins: &str) -> String {
    let found = lines.iter().map(|line| line.trim_start()).find(|line| line.starts_with(begins));
    found.unwrap_or_else(|| panic!("no line begins with {begins}: {lines:#?}")).to_owned()
}

#[test]
fn explain_analyze_tells_rows_and_time_of_each_node() {
    with_workers(|session| {
        run(session, TABLES);
        run(session, "INSERT INTO t SELECT i % 10, i, i FROM generate_series(1, 5000) AS g(i)");
        let query =
            "SELECT n.name, sum(t.x) FROM t JOIN names n ON t.k = n.k WHERE t.x > 1000 GROUP BY n.name ORDER BY 2";
        let lines = ask(session, &format!("EXPLAIN ANALYZE {query}"));
        assert!(line(&lines, "Aggregate").contains("  -- 10 rows, "), "{lines:#?}");
        assert!(line(&lines, "Aggregate").contains(" held"), "{lines:#?}");
        assert!(line(&lines, "Join").contains("  -- 4000 rows, "), "{lines:#?}");
        assert!(line(&lines, "Finish").contains("order by"), "{lines:#?}");
        assert!(lines.last().unwrap().starts_with("10 rows in "), "{lines:#?}");
        // The query leaves nothing behind, and what is only read is read.
        assert!(!ask(session, "SHOW OPERATORS").iter().any(|row| row.contains("analysed")));
        let lines = ask(session, "EXPLAIN (ANALYZE) SELECT * FROM names WHERE k < 3");
        assert!(lines.last().unwrap().starts_with("3 rows in "), "{lines:#?}");
    });
}

#[test]
fn show_operators_finds_the_view_whose_state_grows() {
    with_workers(|session| {
        run(session, TABLES);
        run(
            session,
            "CREATE MATERIALIZED VIEW bounded AS SELECT sum(s) AS n FROM (
                 SELECT window_end, k, sum(x) AS s FROM TUMBLE(t, ts, 10) GROUP BY window_end, k) AS w;
             CREATE MATERIALIZED VIEW growing AS SELECT sum(s) AS n FROM (SELECT x, sum(k) AS s FROM t GROUP BY x) AS w;",
        );
        let bytes_of = |session: &mut _, operator: &str| -> (i64, String) {
            let rows = session_rows(session);
            let row = rows.into_iter().find(|row| row.0.starts_with(operator));
            let (_, bytes, state) = row.unwrap_or_else(|| panic!("there is no operator {operator}"));
            (bytes, state)
        };
        let mut seen = Vec::new();
        for part in 0..8 {
            for commit in 0..4 {
                let from = (part * 4 + commit) * 1_000;
                run(
                    session,
                    &format!("INSERT INTO t SELECT i % 10, i, i FROM generate_series({from}, {}) AS g(i)", from + 999),
                );
            }
            let (growing, state) = bytes_of(session, "Aggregate by x [");
            assert!(state.contains("state kept"), "{state}");
            let (bounded, state) = bytes_of(session, "Aggregate by window_end, k [");
            assert!(state.contains("state bounded by window_end (watermark of t)"), "{state}");
            seen.push((growing, bounded));
        }
        let (first, last) = (seen[0], seen[7]);
        // (What is freed goes as runs merge, so what is kept rises and falls by half.)
        assert!(last.0 > 4 * first.0, "the state of the growing view is seen to grow: {seen:?}");
        assert!(last.1 <= 2 * first.1, "the state of the bounded view is not: {seen:?}");
    });
}

#[test]
fn one_select_finds_the_operator_that_keeps_most() {
    with_workers(|session| {
        run(session, TABLES);
        run(
            session,
            "CREATE MATERIALIZED VIEW bounded AS SELECT sum(s) AS n FROM (
                 SELECT window_end, k, sum(x) AS s FROM TUMBLE(t, ts, 10) GROUP BY window_end, k) AS w;
             CREATE MATERIALIZED VIEW growing AS SELECT sum(s) AS n FROM (SELECT x, sum(k) AS s FROM t GROUP BY x) AS w;
             INSERT INTO t SELECT i % 10, i, i FROM generate_series(1, 5000) AS g(i)",
        );
        let kept = "SELECT relation, operator, state_bytes > 5000 * 8, since <= now() FROM anabranch_operators
                    WHERE bound LIKE 'state kept%' ORDER BY state_bytes DESC LIMIT 1";
        // (A worker tells its bytes after a turn, which may be after the commit is answered.)
        let (until, mut found) = (Instant::now() + Duration::from_secs(20), ask(session, kept));
        while !found[0].ends_with(" true true") && Instant::now() < until {
            found = ask(session, kept);
        }
        // (Another view may use the same groups, so they are a part by themselves.)
        assert!(found[0].contains(" Aggregate by x ["), "{found:?}");
        assert!(found[0].ends_with(" true true"), "{found:?}");
        // An operator without state has none, though it stands behind one that has.
        let of_stages = "SELECT count(*) FROM anabranch_operators WHERE operator LIKE 'Stage%' AND state_bytes > 0";
        assert_eq!(ask(session, of_stages), ["0"]);
        let rows =
            "SELECT count(*) FROM anabranch_operators WHERE operator LIKE 'Aggregate by x [%' AND state_rows > 0";
        assert_eq!(ask(session, rows), ["1"]);
        // All that SHOW OPERATORS tells is told, and joins and tables take it.
        let n_shown = ask(session, "SHOW OPERATORS").len();
        assert_eq!(ask(session, "SELECT count(*) FROM anabranch_operators"), [n_shown.to_string()]);
        run(
            session,
            "CREATE TABLE noted AS SELECT relation, sum(state_bytes) AS bytes FROM anabranch_operators GROUP BY relation",
        );
        let same = "SELECT count(*) FROM noted n JOIN anabranch_operators o ON o.relation = n.relation WHERE n.relation = 'growing'";
        assert_ne!(ask(session, same), ["0"]);
        let error = fail(session, "CREATE MATERIALIZED VIEW v AS SELECT * FROM anabranch_operators");
        assert!(error.message.contains("not supported in a standing query"), "{}", error.message);
        assert!(!ask(session, "EXPLAIN SELECT * FROM anabranch_operators").is_empty());
    });
}

/// Operator, bytes and what bounds the state, of all operators.
fn session_rows(session: &mut anabranch_engine::Session) -> Vec<(String, i64, String)> {
    use arrow::array::{Array, AsArray};
    use arrow::datatypes::Int64Type;
    let rows = session.query("SHOW OPERATORS").unwrap();
    let batch = &rows.batches[0];
    let column = |name: &str| batch.column_by_name(name).unwrap().clone();
    let (operators, bytes, states) = (column("operator"), column("state_bytes"), column("state"));
    let row = |row: usize| {
        let state = if states.is_valid(row) { states.as_string_view().value(row) } else { "" };
        let bytes = bytes.as_primitive::<Int64Type>().value(row);
        (operators.as_string_view().value(row).to_owned(), bytes, state.to_owned())
    };
    (0..batch.num_rows()).map(row).collect()
}

#[test]
fn a_view_that_stands_tells_what_its_operators_have_done() {
    with_workers(|session| {
        run(session, TABLES);
        run(
            session,
            "CREATE MATERIALIZED VIEW by_window AS
                 SELECT window_end, k, sum(x) AS s FROM TUMBLE(t, ts, 10) GROUP BY window_end, k;
             CREATE MATERIALIZED VIEW named AS
                 SELECT n.name, max(t.x) AS x FROM t JOIN names n ON t.k = n.k GROUP BY n.name;
             INSERT INTO t SELECT i % 10, i, i FROM generate_series(1, 5000) AS g(i);",
        );
        let lines = ask(session, "EXPLAIN ANALYZE by_window");
        let aggregate = line(&lines, "Aggregate");
        assert!(aggregate.contains(" rows, ") && aggregate.contains("state bounded by window_end"), "{lines:#?}");
        assert!(lines.last().unwrap().contains(" held, counted since "), "{lines:#?}");
        let lines = ask(session, "EXPLAIN ANALYZE MATERIALIZED VIEW named");
        assert!(line(&lines, "Join").contains("  -- 5000 rows, "), "{lines:#?}");
        assert!(line(&lines, "Aggregate").contains("state kept"), "{lines:#?}");
        // Without ANALYZE, the plan alone.
        let lines = ask(session, "EXPLAIN named");
        assert!(line(&lines, "Join inner on k = k").contains("state kept"), "{lines:#?}");
        assert!(!lines.iter().any(|line| line.contains("counted since")), "{lines:#?}");
        // What is no view is asked once.
        assert!(line(&ask(session, "EXPLAIN names"), "Scan names").contains("reads all of"));
    });
}

#[test]
fn explain_shows_how_the_rows_of_a_change_are_found() {
    with_workers(|session| {
        run(
            session,
            "CREATE TABLE t (k bigint PRIMARY KEY, x bigint); CREATE TABLE gone (k bigint);
             INSERT INTO t VALUES (1, 2), (2, 3)",
        );
        let lines = ask(session, "EXPLAIN UPDATE t SET x = x + 1 WHERE k = 2");
        assert_eq!(lines[0], "Update t");
        assert!(line(&lines, "Scan t").contains("looks keys up in the arrangement of t by (k)"), "{lines:#?}");
        let lines = ask(session, "EXPLAIN DELETE FROM t WHERE k IN (SELECT k FROM gone)");
        assert_eq!(lines[0], "Delete from t  -- looks the listed keys up in the arrangement of t by (k)");
        let lines = ask(session, "EXPLAIN INSERT INTO t SELECT k + 10, x FROM t");
        assert_eq!(lines[0], "Insert into t");
        assert!(fail(session, "EXPLAIN ANALYZE DELETE FROM t").to_string().contains("EXPLAIN of a change"));
        assert!(fail(session, "EXPLAIN UPDATE nosuch SET x = 1").to_string().contains("nosuch"));
        // Nothing was changed.
        assert_eq!(ask(session, "SELECT * FROM t ORDER BY k"), ["1 2", "2 3"]);
    });
}
