//! CREATE, DROP, SHOW, EXPLAIN.

use crate::support::{ask, fail, run, tag, with_workers};

#[test]
fn objects_are_made_shown_and_dropped() {
    with_workers(|session| {
        assert_eq!(
            tag(session, "CREATE TABLE t (k bigint PRIMARY KEY, v text NOT NULL, w int DEFAULT 7)"),
            "CREATE TABLE"
        );
        assert_eq!(tag(session, "CREATE VIEW p AS SELECT k, v FROM t WHERE w > 1"), "CREATE VIEW");
        assert_eq!(
            tag(session, "CREATE MATERIALIZED VIEW m AS SELECT v, count(*) AS n FROM p GROUP BY v"),
            "CREATE MATERIALIZED VIEW"
        );
        assert_eq!(tag(session, "CREATE INDEX t_v ON t (v)"), "CREATE INDEX");
        assert_eq!(ask(session, "SHOW TABLES"), ["t k, v, w k"]);
        assert_eq!(ask(session, "SHOW VIEWS"), ["p k, v t"]);
        assert_eq!(ask(session, "SHOW MATERIALIZED VIEWS"), ["m v, n p, t current"]);
        assert_eq!(ask(session, "SHOW INDEXES"), ["t_v t v"]);
        assert_eq!(
            ask(session, "DESCRIBE t"),
            ["k bigint no primary null", "v text no null null", "w integer yes null 7"]
        );
        assert_eq!(ask(session, "SHOW CREATE VIEW p"), ["p CREATE VIEW p AS SELECT k, v FROM t WHERE w > 1"]);
        assert_eq!(tag(session, "TRUNCATE t"), "TRUNCATE TABLE");
        assert_eq!(tag(session, "DROP MATERIALIZED VIEW m"), "DROP MATERIALIZED VIEW");
        assert_eq!(tag(session, "DROP VIEW p"), "DROP VIEW");
        assert_eq!(tag(session, "DROP INDEX t_v"), "DROP INDEX");
        assert_eq!(tag(session, "DROP TABLE t"), "DROP TABLE");
        assert!(ask(session, "SHOW TABLES").is_empty());
        assert!(ask(session, "SHOW ARRANGEMENTS").is_empty());
    });
}

#[test]
fn names_are_unique_and_if_not_exists_says_so() {
    with_workers(|session| {
        run(session, "CREATE TABLE t (a int)");
        let error = fail(session, "CREATE VIEW t AS SELECT 1 AS a");
        assert_eq!(error.message, "table \"t\" already exists");
        run(session, "CREATE TABLE IF NOT EXISTS t (b text)");
        assert_eq!(ask(session, "DESCRIBE t").len(), 1);
    });
}

#[test]
fn dropping_what_others_read_is_refused_unless_cascaded() {
    with_workers(|session| {
        run(
            session,
            "CREATE TABLE t (a int); CREATE VIEW v AS SELECT a FROM t; CREATE MATERIALIZED VIEW m AS SELECT a FROM v",
        );
        let error = fail(session, "DROP TABLE t");
        assert_eq!(error.message, "table \"t\" cannot be dropped because others depend on it");
        assert_eq!(error.detail.as_deref(), Some("Dependent: materialized view \"m\", view \"v\"."));
        assert_eq!(ask(session, "SELECT count(*) FROM m"), ["0"]);
        run(session, "DROP TABLE t CASCADE");
        assert!(ask(session, "SHOW VIEWS").is_empty());
        assert!(ask(session, "SHOW MATERIALIZED VIEWS").is_empty());
    });
}

#[test]
fn the_wrong_kind_and_unknown_names_are_named() {
    with_workers(|session| {
        run(session, "CREATE TABLE orders (a int)");
        assert_eq!(fail(session, "DROP VIEW orders").message, "\"orders\" is a table, not a view");
        let error = fail(session, "DROP TABLE order_s");
        assert_eq!(error.message, "table \"order_s\" does not exist");
        assert_eq!(error.hint.as_deref(), Some("Did you mean \"orders\"?"));
        assert_eq!(tag(session, "DROP TABLE IF EXISTS nothing"), "DROP TABLE");
    });
}

#[test]
fn a_replaced_view_means_the_new_query() {
    with_workers(|session| {
        run(session, "CREATE TABLE t (a int); INSERT INTO t VALUES (1), (2)");
        run(session, "CREATE VIEW v AS SELECT a FROM t; CREATE OR REPLACE VIEW v AS SELECT a * 10 AS a, 1 AS b FROM t");
        assert_eq!(ask(session, "SELECT a FROM v"), ["10", "20"]);
        run(session, "CREATE MATERIALIZED VIEW m AS SELECT a FROM v");
        assert!(fail(session, "CREATE OR REPLACE VIEW v AS SELECT a FROM t").message.contains("cannot be replaced"));
    });
}

#[test]
fn an_index_on_a_plain_view_keeps_it_current() {
    with_workers(|session| {
        run(session, "CREATE TABLE t (a int, b int); INSERT INTO t VALUES (1, 10), (2, 20), (1, 30)");
        run(session, "CREATE VIEW sums AS SELECT a, sum(b) AS b FROM t GROUP BY a; CREATE INDEX sums_a ON sums (a)");
        assert_eq!(ask(session, "SELECT b FROM sums WHERE a = 1"), ["40"]);
        run(
            session,
            "CREATE MATERIALIZED VIEW big AS SELECT a FROM sums WHERE b > 35; CREATE INDEX sums_b ON sums (b)",
        );
        run(session, "DROP INDEX sums_a");
        run(session, "INSERT INTO t VALUES (2, 30)");
        assert_eq!(ask(session, "SELECT a FROM big"), ["1", "2"]);
        run(session, "DROP INDEX sums_b");
        assert_eq!(ask(session, "SELECT a, b FROM sums"), ["1 40", "2 50"]);
        run(session, "DROP TABLE t CASCADE");
        assert!(ask(session, "SHOW ARRANGEMENTS").is_empty());
    });
}

#[test]
fn a_dropped_view_frees_its_state() {
    with_workers(|session| {
        run(session, "CREATE TABLE t (a bigint)");
        run(session, "CREATE MATERIALIZED VIEW m AS SELECT a, count(*) AS n FROM t GROUP BY a");
        let values: Vec<String> = (0..2000).map(|i| format!("({i})")).collect();
        run(session, &format!("INSERT INTO t VALUES {}", values.join(", ")));
        assert_eq!(ask(session, "SELECT count(*) FROM m"), ["2000"]);
        let rows = |session: &mut anabranch_engine::Session| -> usize {
            session.arrangements().iter().map(|stats| stats.rows).sum()
        };
        let with_view = rows(session);
        run(session, "DROP MATERIALIZED VIEW m");
        assert!(rows(session) + 2000 <= with_view);
    });
}

#[test]
fn explain_tells_which_index_is_used() {
    with_workers(|session| {
        run(session, "CREATE TABLE t (k int PRIMARY KEY, v int); CREATE INDEX t_v ON t (v); CREATE TABLE s (v int)");
        let lookup = ask(session, "EXPLAIN SELECT k FROM t WHERE v = 3 ORDER BY k LIMIT 2").join("\n");
        assert!(lookup.starts_with("Finish order by k limit 2"), "{lookup}");
        assert!(lookup.contains("looks keys up in index t_v (v)"), "{lookup}");
        let join = ask(session, "EXPLAIN SELECT t.k FROM t JOIN s ON t.v = s.v").join("\n");
        assert!(join.contains("uses index t_v (v)"), "{join}");
    });
}

#[test]
fn explain_shows_each_rewrite() {
    with_workers(|session| {
        run(session, "CREATE TABLE t (k int, v int); CREATE TABLE s (v int, w int)");
        let query = "EXPLAIN (REWRITES) SELECT k FROM t WHERE v IN (SELECT v FROM s)";
        let told = ask(session, query);
        let steps: Vec<&str> = told.iter().map(String::as_str).filter(|line| line.starts_with("-- ")).collect();
        assert_eq!(steps, ["-- as written", "-- keys once"]);
        run(session, "CREATE INDEX s_v ON s (v)");
        let steps = ask(session, query).into_iter().filter(|line| line.starts_with("-- ")).count();
        assert_eq!(steps, 1, "an index by the keys serves");
        let same = ask(session, "EXPLAIN (REWRITES false) SELECT k FROM t WHERE v IN (SELECT v FROM s)");
        assert_eq!(same, ask(session, "EXPLAIN SELECT k FROM t WHERE v IN (SELECT v FROM s)"));
    });
}
