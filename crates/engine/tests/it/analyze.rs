//! What operators have done: EXPLAIN ANALYZE of a query, SHOW OPERATORS of what stands.

use std::time::{Duration, Instant};

use crate::support::{ask, fail, run, session, with_workers};

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
        assert!(line(&lines, "Aggregate").contains("  -- 10 rows"), "{lines:#?}");
        assert!(line(&lines, "Aggregate").contains(" held"), "{lines:#?}");
        assert!(line(&lines, "Join").contains("  -- 4000 rows"), "{lines:#?}");
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
        assert!(aggregate.contains(" rows") && aggregate.contains("state bounded by window_end"), "{lines:#?}");
        assert!(lines.last().unwrap().contains(" held, counted since "), "{lines:#?}");
        let lines = ask(session, "EXPLAIN ANALYZE MATERIALIZED VIEW named");
        assert!(line(&lines, "Join").contains("  -- 5000 rows"), "{lines:#?}");
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

/// Each worker's part of the work is told, and the parts are the whole. Rows of a join's result
/// lie by its key; to be counted by another they move, which they need not with one worker.
#[test]
fn work_is_told_by_worker_and_so_is_what_moves() {
    for workers in [0, 1, 2, 3] {
        let mut session = session(workers);
        run(&mut session, TABLES);
        run(
            &mut session,
            "CREATE MATERIALIZED VIEW busy AS
                 SELECT x, count(*) AS n FROM (SELECT t.k, x FROM t JOIN names n ON t.k = n.k) AS j GROUP BY x;
             INSERT INTO t SELECT i % 10, i, i FROM generate_series(1, 5000) AS g(i)",
        );
        assert_eq!(ask(&mut session, "SELECT count(*) FROM busy"), ["5000"]);
        let sums = "SELECT operator, sum(rows_out), sum(state_bytes) FROM anabranch_shards
            WHERE relation = 'busy' AND rows_out IS NOT NULL GROUP BY 1 ORDER BY 1";
        let whole = "SELECT operator, rows_out, state_bytes FROM anabranch_operators
            WHERE relation = 'busy' AND rows_out IS NOT NULL ORDER BY 1";
        assert_eq!(ask(&mut session, sums), ask(&mut session, whole));
        // (All is complete that was asked for, and rows come in batches of some.)
        let of_busy = "FROM anabranch_shards WHERE relation = 'busy' AND rows_out > 0";
        let batches = format!("SELECT sum(batches_out) BETWEEN 1 AND sum(rows_out) {of_busy}");
        assert_eq!(ask(&mut session, &batches), ["true"]);
        // (Nothing is behind, also once another table has changed. What ends in an arrangement
        // tells.)
        run(&mut session, "CREATE TABLE other (x int); INSERT INTO other VALUES (1); INSERT INTO other VALUES (2)");
        assert_eq!(ask(&mut session, "SELECT count(*) FROM busy"), ["5000"]);
        let lag = format!("SELECT max(lag), count(DISTINCT worker) {of_busy} AND lag IS NOT NULL");
        assert_eq!(ask(&mut session, &lag), [format!("0 {}", workers.max(1))]);
        let of_join = "FROM anabranch_shards WHERE relation = 'busy' AND operator LIKE 'Join%'";
        let n_workers = workers.max(1).to_string();
        assert_eq!(
            ask(&mut session, &format!("SELECT count(DISTINCT worker), sum(rows_out) {of_join}")),
            [format!("{n_workers} 5000")]
        );
        let moved =
            ask(&mut session, &format!("SELECT sum(rows_moved), sum(bytes_moved) > 16 * sum(rows_moved) {of_join}"));
        let (rows, are_bytes) = moved[0].split_once(' ').unwrap();
        let rows: i64 = rows.parse().unwrap();
        let lines = ask(&mut session, "EXPLAIN ANALYZE busy");
        if workers < 2 {
            assert_eq!(rows, 0);
            assert!(!lines.iter().any(|line| line.contains("moved")), "{lines:#?}");
        } else {
            // (Of hashes that are spread evenly, all but one in so many.)
            let away = 5000 * (workers as i64 - 1) / workers as i64;
            assert!((away * 9 / 10..away * 11 / 10).contains(&rows), "{rows} of 5000 rows with {workers} workers");
            assert_eq!(are_bytes, "true");
            assert!(line(&lines, "Join").contains(&format!(", {rows} rows in ")), "{lines:#?}");
            assert!(line(&lines, "Join").contains(" moved ("), "{lines:#?}");
            for worker in 0..workers {
                assert!(line(&lines, "Join").contains(&format!(" to worker {worker}")), "{lines:#?}");
            }
            // (A worker sends nothing to itself, and what was sent is taken.)
            let sums = "bool_and(bytes_moved = (SELECT sum(b) FROM unnest(bytes_to) AS u(b))), max(rows_waiting),
                        bool_and(bytes_to[worker + 1] = 0), min(array_length(bytes_to, 1))";
            assert_eq!(ask(&mut session, &format!("SELECT {sums} {of_join}")), [format!("true 0 true {workers}")]);
        }
    }
}

/// Extremes of all rows, which each worker has of its own first: its values are the operator's
/// state, and little moves.
#[test]
fn what_each_worker_holds_of_extremes_is_told() {
    for workers in [0, 1, 2, 3] {
        let mut session = session(workers);
        run(&mut session, TABLES);
        let query = "SELECT max(s) AS m, min(x) AS l FROM (SELECT x, sum(k) AS s FROM t GROUP BY x) AS a";
        let told = ask(&mut session, &format!("EXPLAIN {query}"));
        let is_told = told.iter().any(|line| line.contains("is combined and moves to one worker"));
        assert_eq!(is_told, workers > 1, "{told:#?}");
        run(&mut session, &format!("CREATE MATERIALIZED VIEW v AS {query}"));
        run(&mut session, "INSERT INTO t SELECT i % 10, i, i FROM generate_series(1, 5000) AS g(i)");
        assert_eq!(ask(&mut session, "SELECT * FROM v"), ["9 1"]);
        let of_extremes = "relation = 'v' AND operator LIKE 'Aggregate%max%'";
        let held = format!("SELECT sum(state_bytes) > 5000 * 8 FROM anabranch_operators WHERE {of_extremes}");
        assert_eq!(ask(&mut session, &held), ["true"], "{workers} workers");
        let rows = format!("SELECT sum(rows_out) < 10 FROM anabranch_operators WHERE {of_extremes}");
        assert_eq!(ask(&mut session, &rows), ["true"], "{workers} workers");
        let moved = "SELECT coalesce(sum(rows_moved), 0) < 10 FROM anabranch_shards WHERE relation = 'v' AND
                     operator LIKE 'Aggregate by x%'";
        assert_eq!(ask(&mut session, moved), ["true"], "{workers} workers");
    }
}

/// EXPLAIN tells beforehand which rows move: those that move when the view stands, and no others.
#[test]
fn explain_tells_what_will_move() {
    const QUERIES: [&str; 13] = [
        "SELECT k, sum(x) FROM t GROUP BY k",
        "SELECT x, count(*) FROM (SELECT t.k, x FROM t JOIN names n ON t.k = n.k) AS j GROUP BY x",
        "SELECT k, count(*) FROM (SELECT t.k, x FROM t JOIN names n ON t.k = n.k) AS j GROUP BY k",
        "SELECT k, x, count(*) FROM (SELECT t.k, x FROM t JOIN names n ON t.k = n.k) AS j GROUP BY k, x",
        "SELECT count(*) FROM (SELECT DISTINCT x % 100 AS y FROM t) AS d",
        "SELECT s, count(*) FROM (SELECT k, x % 50 AS y, sum(x) AS s FROM t GROUP BY 1, 2) AS a GROUP BY s",
        "SELECT y, max(s) FROM (SELECT k, x % 50 AS y, sum(x) AS s FROM t GROUP BY 1, 2) AS a GROUP BY y",
        "SELECT * FROM (SELECT x % 70 AS y FROM t) AS p WHERE EXISTS (SELECT FROM t AS o WHERE o.x = p.y)",
        "SELECT x % 300 AS y FROM t EXCEPT SELECT x % 200 FROM t",
        "SELECT k, x, row_number() OVER (PARTITION BY x % 9 ORDER BY x) FROM t",
        "SELECT DISTINCT ON (x % 90) x % 90, x FROM t ORDER BY 1, 2",
        "SELECT n.name, sum(t.x) FROM t JOIN names n ON t.k = n.k GROUP BY n.name",
        "SELECT max(s), min(x) FROM (SELECT x, sum(k) AS s FROM t GROUP BY x) AS a",
    ];
    for workers in [1, 2, 3] {
        let mut session = session(workers);
        run(&mut session, TABLES);
        run(&mut session, "INSERT INTO t SELECT i % 10, i, i FROM generate_series(1, 3000) AS g(i)");
        let (mut n_moved, mut n_kept) = (0, 0);
        for query in QUERIES {
            let told = ask(&mut session, &format!("EXPLAIN {query}"));
            run(&mut session, &format!("CREATE MATERIALIZED VIEW v AS {query}"));
            ask(&mut session, "SELECT count(*) FROM v");
            let shards = ask(
                &mut session,
                "SELECT operator, sum(rows_moved) FROM anabranch_shards WHERE relation IN ('v', 'shared v') OR
                     relation LIKE 'shared%' GROUP BY operator",
            );
            for shard in shards {
                let (operator, moved) = shard.rsplit_once(' ').unwrap();
                // (The first line is the view's rows, which are arranged behind what is explained.)
                let lines: Vec<&String> =
                    told.iter().skip(1).filter(|line| line.trim_start().starts_with(operator)).collect();
                let [line] = lines[..] else { continue };
                let remark = line.split_once("--").map_or("", |(_, remark)| remark);
                let is_told = remark.contains("moves ");
                // (Rows that are dealt out may be where they belong.)
                if !remark.contains("dealt out") {
                    assert_eq!(is_told, moved != "0", "{workers} workers, {query}: {operator}: {moved}\n{told:#?}");
                }
                n_moved += i32::from(is_told);
                n_kept += i32::from(!is_told);
            }
            run(&mut session, "DROP MATERIALIZED VIEW v");
        }
        assert_eq!(n_moved > 0, workers > 1, "{n_moved} moved, {n_kept} kept");
        assert!(n_kept > 5, "{n_moved} moved, {n_kept} kept");
    }
}
