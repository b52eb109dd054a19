//! SELECT: what it sees, and in which order.

use crate::support::{ask, fail, run, with_workers};

#[test]
fn a_select_sees_every_write_before_it_in_every_view() {
    with_workers(|session| {
        run(
            session,
            "CREATE TABLE t (g int, v int);
             CREATE VIEW positive AS SELECT g, v FROM t WHERE v > 0;
             CREATE MATERIALIZED VIEW sums AS SELECT g, sum(v) AS total FROM positive GROUP BY g;
             CREATE MATERIALIZED VIEW top AS SELECT max(total) AS best FROM sums",
        );
        for i in 1..=20 {
            run(session, &format!("INSERT INTO t VALUES ({}, {i}), (0, -1)", i % 3));
            let best: i32 = (0..3).map(|g| (1..=i).filter(|j| j % 3 == g).sum()).max().unwrap();
            assert_eq!(ask(session, "SELECT best FROM top"), [best.to_string()]);
            assert_eq!(ask(session, "SELECT count(*) FROM t"), [(2 * i).to_string()]);
        }
        run(session, "DELETE FROM t");
        assert_eq!(ask(session, "SELECT best FROM top"), ["null"]);
        assert!(ask(session, "SELECT * FROM sums").is_empty());
    });
}

#[test]
fn rows_come_in_the_order_asked_for() {
    with_workers(|session| {
        run(
            session,
            "CREATE TABLE t (a int, b text); INSERT INTO t VALUES (2, 'x'), (1, 'y'), (null, 'z'), (1, 'a'), (1, 'a')",
        );
        assert_eq!(ask(session, "SELECT a, b FROM t ORDER BY a"), ["1 a", "1 a", "1 y", "2 x", "null z"]);
        assert_eq!(ask(session, "SELECT b FROM t ORDER BY a DESC, b"), ["z", "x", "a", "a", "y"]);
        assert_eq!(ask(session, "SELECT b FROM t ORDER BY a NULLS FIRST LIMIT 2"), ["z", "a"]);
        assert_eq!(ask(session, "SELECT b FROM t ORDER BY b OFFSET 1 LIMIT 2"), ["a", "x"]);
        assert_eq!(ask(session, "SELECT b FROM t ORDER BY -a LIMIT 1"), ["x"]);
    });
}

#[test]
fn literal_rows_need_no_table() {
    with_workers(|session| {
        assert_eq!(ask(session, "SELECT 1 + 1 AS two, 'a' || 'b' AS ab"), ["2 ab"]);
        assert_eq!(ask(session, "VALUES (1, 'x'), (2, 'y')"), ["1 x", "2 y"]);
        assert_eq!(ask(session, "SELECT count(*) FROM (VALUES (1), (2)) AS v (a)"), ["2"]);
    });
}

#[test]
fn a_key_is_looked_up() {
    with_workers(|session| {
        run(session, "CREATE TABLE t (k bigint PRIMARY KEY, a text, b int); CREATE INDEX t_ab ON t (a, b)");
        run(session, "INSERT INTO t VALUES (1, 'x', 1), (2, 'x', 2), (3, 'y', 1), (4, null, 1)");
        assert_eq!(ask(session, "SELECT a FROM t WHERE k = 3"), ["y"]);
        assert_eq!(ask(session, "SELECT k FROM t WHERE k IN (1, 4, 9)"), ["1", "4"]);
        assert_eq!(ask(session, "SELECT k FROM t WHERE a = 'x' AND b = 2"), ["2"]);
        assert_eq!(ask(session, "SELECT k FROM t WHERE b = 1 AND a = 'x' AND k > 1"), Vec::<String>::new());
        assert_eq!(ask(session, "SELECT k FROM t WHERE a = 'x'"), ["1", "2"]);
        assert!(ask(session, "SELECT k FROM t WHERE k = 99").is_empty());
    });
}

#[test]
fn joins_and_subqueries_are_computed_for_the_question() {
    with_workers(|session| {
        run(session, "CREATE TABLE o (id int PRIMARY KEY, c int); CREATE TABLE c (id int PRIMARY KEY, name text)");
        run(session, "INSERT INTO c VALUES (1, 'ann'), (2, 'bob'); INSERT INTO o VALUES (10, 1), (11, 1), (12, 3)");
        assert_eq!(
            ask(session, "SELECT o.id, name FROM o LEFT JOIN c ON o.c = c.id ORDER BY 1"),
            ["10 ann", "11 ann", "12 null"]
        );
        assert_eq!(ask(session, "SELECT name FROM c WHERE id NOT IN (SELECT c FROM o)"), ["bob"]);
        assert_eq!(
            ask(session, "SELECT name, (SELECT count(*) FROM o WHERE o.c = c.id) FROM c ORDER BY 1"),
            ["ann 2", "bob 0"]
        );
        // What was installed for a question is gone after it.
        assert_eq!(ask(session, "SHOW ARRANGEMENTS").len(), 2);
    });
}

#[test]
fn a_table_that_keeps_nothing_feeds_only_what_was_there_before() {
    with_workers(|session| {
        run(
            session,
            "CREATE TABLE t (a int) WITH (retain = 'none'); CREATE MATERIALIZED VIEW s AS SELECT sum(a) AS a FROM t",
        );
        run(session, "INSERT INTO t VALUES (1), (2)");
        assert_eq!(ask(session, "SELECT a FROM s"), ["3"]);
        assert!(fail(session, "SELECT * FROM t").message.contains("keeps no rows"));
        assert!(
            fail(session, "CREATE MATERIALIZED VIEW n AS SELECT count(*) AS n FROM t")
                .message
                .contains("passed already")
        );
    });
}

/// Sums over few groups, or none, take in what there is of a time before all of it is: also pairs
/// of a join.
#[test]
fn sums_over_few_groups_take_a_large_history_in_as_it_comes() {
    with_workers(|session| {
        run(session, "create table t (k int not null, g int not null)");
        run(session, "insert into t select k, k % 3 from unnest(generate_series(1, 400000)) as s(k)");
        run(
            session,
            "create materialized view groups as
               select g, count(*) as n, sum(k) as sum, avg(k) as mean, count(distinct k % 5) as kinds,
                      count(*) filter (where k > 399000) as late from t group by g;
             create materialized view whole as select count(*) as n, sum(k) as sum from t;
             create materialized view none as select count(*) as n, sum(k) as sum from t where k < 0;
             create materialized view pairs as
               select count(*) as n, sum(a.k) as sum from t as a join t as b on a.k / 1000 = b.k / 1000",
        );
        let groups = "select g, n, sum, mean, kinds, late from groups order by g";
        assert_eq!(
            ask(session, groups),
            [
                "0 133333 26666733333 200001 5 333",
                "1 133334 26666866667 200000.5 5 334",
                "2 133333 26666600000 200000 5 333"
            ]
        );
        assert_eq!(ask(session, "select n, sum from whole"), ["400000 80000200000"]);
        assert_eq!(ask(session, "select n, sum from none"), ["0 null"]);
        // (399 thousands, the first without 0, and 400000 alone.)
        assert_eq!(ask(session, "select n from pairs"), ["399998002"]);
        run(session, "delete from t where k > 5");
        assert_eq!(
            ask(session, "select g, n, sum, kinds, late from groups order by g"),
            ["0 1 3 1 0", "1 2 5 2 0", "2 2 7 2 0"]
        );
        assert_eq!(ask(session, "select n, sum from whole"), ["5 15"]);
        assert_eq!(ask(session, "select n, sum from pairs"), ["25 75"]);
    });
}

#[test]
fn aggregates_take_a_large_history_in() {
    with_workers(|session| {
        run(session, "create table t (k int not null, g int not null)");
        run(session, "insert into t select k, k % 7 from unnest(generate_series(1, 300000)) as s(k)");
        run(
            session,
            "create materialized view ends as select g, min(k) as least, max(k) as most, count(*) as n, sum(k) as sum from t group by g;
             create materialized view sums as select k % 50000 as h, count(*) as n, sum(k) as sum from t group by k % 50000;
             create materialized view once as select distinct k % 60000 as h from t",
        );
        assert_eq!(
            ask(session, "select g, least, most, n from ends where g in (0, 6) order by g"),
            ["0 7 299999 42857", "6 6 299998 42857"]
        );
        assert_eq!(ask(session, "select count(*), min(n), max(n), sum(sum) from sums"), ["50000 6 6 45000150000"]);
        assert_eq!(ask(session, "select count(*) from once"), ["60000"]);
        run(session, "delete from t where k > 7");
        assert_eq!(
            ask(session, "select g, least, most, n from ends where g in (0, 6) order by g"),
            ["0 7 7 1", "6 6 6 1"]
        );
        assert_eq!(ask(session, "select count(*) from once"), ["7"]);
    });
}

#[test]
fn a_rounded_numeric_is_shown_with_its_places() {
    with_workers(|session| {
        run(session, "create table t (k int, m numeric, p numeric(8,2))");
        run(session, "insert into t values (1, 1.5, 1.50), (2, 7, null), (3, null, 2)");
        run(session, "create materialized view means as select round(avg(m), 2) as a from t");
        assert_eq!(
            ask(session, "select k, round(m, 2), m from t order by k"),
            ["1 1.50 1.5", "2 7.00 7", "3 null null"]
        );
        assert_eq!(ask(session, "select a, a + 1 from means where a > 1"), ["4.25 5.25"]);
        assert_eq!(
            ask(
                session,
                "select sum(round(m, 1)), max(trunc(m, 3)), round(m, 2)::text || '%' from t where k = 2 group by m"
            ),
            ["7.0 7.000 7.00%"]
        );
        // Branches of other places have none.
        assert_eq!(ask(session, "select a from means union all select m from t where k = 2 order by 1"), ["4.25", "7"]);
        // A table shows what it is given.
        run(session, "create table kept as select a from means; insert into kept values (5)");
        assert_eq!(ask(session, "select a from kept order by a"), ["4.25", "5"]);
    });
}
