//! Look-ups by the first columns of a key.

use anabranch_engine::Session;

use crate::support::{ask, fail, run, tag, with_workers};

/// Rows by keys of several types: `a` leads, and is a number, a text, a day, a decimal or a float.
const TYPES: [(&str, &str); 7] = [
    ("int", "i % 7"),
    ("bigint", "(i % 7) * 4294967296"),
    ("text", "'key ' || i % 7"),
    ("date", "date '2024-01-01' + (i % 7)::int"),
    ("numeric(10, 2)", "(i % 7)::numeric(10, 2) / 4"),
    ("numeric", "(i % 7)::numeric / 4"),
    ("double precision", "(i % 7)::double precision / 4"),
];

fn explained(session: &mut Session, query: &str) -> String {
    ask(session, &format!("EXPLAIN {query}")).join(" ")
}

#[test]
fn a_prefix_finds_the_rows_that_a_scan_finds() {
    with_workers(|session| {
        for (data_type, value) in TYPES {
            run(
                session,
                &format!(
                    "CREATE TABLE t (a {data_type}, b int, c int, v int, PRIMARY KEY (a, b, c));
                     INSERT INTO t SELECT {value}, i % 11, i, i FROM generate_series(0, 499) AS g(i);
                     DELETE FROM t WHERE v % 5 = 0; UPDATE t SET v = v + 1000 WHERE v % 3 = 0;"
                ),
            );
            let some = format!("(SELECT {value} FROM (SELECT 3 AS i) AS s)");
            let literal = ask(session, &format!("SELECT quote_literal(({some})::text)"))[0].clone();
            let other =
                ask(session, &format!("SELECT quote_literal(({})::text)", some.replace("3 AS", "5 AS")))[0].clone();
            for (looked_up, read) in [
                (format!("a = {literal}"), format!("a::text || '' = {literal}")),
                (format!("a = {literal} AND b = 4"), format!("a::text || '' = {literal} AND b + 0 = 4")),
                (format!("a = {literal} AND c = 59"), format!("a::text || '' = {literal} AND c + 0 = 59")),
                (format!("a IN ({literal}, {other}, {literal})"), format!("a::text || '' IN ({literal}, {other})")),
                (
                    format!("a IN ({literal}, {other}) AND b IN (1, 2, 1)"),
                    format!("a::text || '' IN ({literal}, {other}) AND b + 0 IN (1, 2)"),
                ),
                (
                    format!("a IN ({literal}, {other}) AND b IN (1, 2) AND c IN (3, 12, 24)"),
                    format!("a::text || '' IN ({literal}, {other}) AND b + 0 IN (1, 2) AND c + 0 IN (3, 12, 24)"),
                ),
            ] {
                let looked_up = format!("SELECT b, c, v FROM t WHERE {looked_up} ORDER BY c");
                let plan = explained(session, &looked_up);
                assert!(plan.contains("looks keys up "), "{data_type}: {plan}");
                let read = format!("SELECT b, c, v FROM t WHERE {read} ORDER BY c");
                assert!(explained(session, &read).contains("reads all of "), "{data_type}: {read}");
                let read = ask(session, &read);
                // (Quotients of plain numerics are spelt with more digits than literals of them.)
                assert!(!read.is_empty() || data_type == "numeric", "{data_type}: rows are compared");
                if !read.is_empty() {
                    assert_eq!(ask(session, &looked_up), read, "{data_type}: {looked_up}");
                }
            }
            run(session, "DROP TABLE t");
        }
    });
}

#[test]
fn explain_names_the_columns_that_are_looked_up() {
    with_workers(|session| {
        run(
            session,
            "CREATE TABLE lines (o int, n int, x int, PRIMARY KEY (o, n)); CREATE INDEX xno ON lines (x, n, o)",
        );
        let mut plan = |condition: &str| explained(session, &format!("SELECT n FROM lines WHERE {condition}"));
        for (condition, how) in [
            ("o = 1", "looks keys up by (o) in the arrangement of lines by (o, n)"),
            ("o = 1 AND n = 2", "looks keys up in the arrangement of lines by (o, n)"),
            ("o = 1 AND n IN (2, 3)", "looks keys up in the arrangement of lines by (o, n)"),
            ("x = 1 AND n = 2", "looks keys up by (x, n) in index xno (x, n, o)"),
            ("x = 1 AND o > 2", "looks keys up by (x) in index xno (x, n, o)"),
            ("o > 1 AND o < 5 AND n > 0", "looks a range of (o) up in the arrangement of lines by (o, n)"),
            ("x BETWEEN 1 AND 2", "looks a range of (x) up in index xno (x, n, o)"),
            ("n = 1", "reads all of"),
            ("o > 1", "reads all of"),
            ("o = NULL AND x > 1", "reads all of"),
        ] {
            let plan = plan(condition);
            assert!(plan.contains(how) || plan.contains("Constant"), "{condition}: {plan}");
        }
    });
}

#[test]
fn changes_find_their_rows_by_prefixes() {
    with_workers(|session| {
        run(
            session,
            "CREATE TABLE t (a int, b text, v int, PRIMARY KEY (a, b)); CREATE TABLE gone (a int);
             CREATE MATERIALIZED VIEW s AS SELECT a, sum(v) AS v, count(*) AS n FROM t GROUP BY a;
             INSERT INTO t SELECT i / 10, 'b' || i % 10, i FROM generate_series(0, 99) AS g(i);
             INSERT INTO gone VALUES (1), (1), (NULL), (3), (99);",
        );
        assert_eq!(tag(session, "UPDATE t SET v = 0 WHERE a = 2"), "UPDATE 10");
        assert_eq!(tag(session, "DELETE FROM t WHERE a = 4 AND v % 2 = 0"), "DELETE 5");
        assert_eq!(tag(session, "DELETE FROM t WHERE a IN (SELECT a FROM gone)"), "DELETE 20");
        assert_eq!(tag(session, "UPDATE t SET a = a + 100 WHERE a IN (5, 6, 5)"), "UPDATE 20");
        assert_eq!(
            ask(session, "SELECT * FROM s ORDER BY a"),
            ["0 45 10", "2 0 10", "4 225 5", "7 745 10", "8 845 10", "9 945 10", "105 545 10", "106 645 10"]
        );
        assert_eq!(ask(session, "SELECT sum(v), count(*) FROM t WHERE a = 105"), ["545 10"]);
    });
}

#[test]
fn a_transaction_looks_up_what_it_wrote() {
    with_workers(|session| {
        run(
            session,
            "CREATE TABLE t (a int, b int, v int, PRIMARY KEY (a, b));
             INSERT INTO t SELECT i / 10, i % 10, i FROM generate_series(0, 99) AS g(i);
             BEGIN; INSERT INTO t VALUES (1, 10, 110), (50, 0, 1); DELETE FROM t WHERE a = 1 AND b < 8;
             UPDATE t SET v = -1 WHERE a = 2 AND b = 5;",
        );
        for query in ["SELECT b, v FROM t WHERE a = 1 ORDER BY b", "SELECT b, v FROM t WHERE a + 0 = 1 ORDER BY b"] {
            assert_eq!(ask(session, query), ["8 18", "9 19", "10 110"], "{query}");
        }
        assert!(explained(session, "SELECT v FROM t WHERE a = 1").contains("looks keys up by (a)"));
        assert_eq!(ask(session, "SELECT v FROM t WHERE a = 2 AND b IN (5, 6) ORDER BY v"), ["-1", "26"]);
        assert_eq!(ask(session, "SELECT v FROM t WHERE a = 50"), ["1"]);
        assert_eq!(tag(session, "UPDATE t SET v = 7 WHERE a = 1"), "UPDATE 3");
        assert_eq!(tag(session, "DELETE FROM t WHERE a = 50"), "DELETE 1");
        assert_eq!(ask(session, "SELECT v, count(*) FROM t WHERE a IN (1, 50) GROUP BY v"), ["7 3"]);
        run(session, "SAVEPOINT s; DELETE FROM t WHERE a = 1; ROLLBACK TO s");
        run(session, "COMMIT");
        assert_eq!(ask(session, "SELECT b, v FROM t WHERE a = 1 ORDER BY b"), ["8 7", "9 7", "10 7"]);
        assert_eq!(ask(session, "SELECT count(*) FROM t"), ["93"]);
    });
}

#[test]
fn rows_of_literals_beside_a_table_are_read_with_it() {
    with_workers(|session| {
        run(session, "CREATE TABLE t (a int, b int, PRIMARY KEY (a, b)); INSERT INTO t VALUES (1, 1), (1, 2), (2, 1)");
        let all = "SELECT * FROM (SELECT * FROM t UNION ALL VALUES (1, 2), (3, 3)) AS u";
        assert_eq!(ask(session, &format!("{all} WHERE a = 1 ORDER BY b")), ["1 1", "1 2", "1 2"]);
        assert_eq!(ask(session, &format!("{all} WHERE a = 3")), ["3 3"]);
        let less = "SELECT * FROM (SELECT * FROM t EXCEPT ALL VALUES (1, 2), (1, 2), (3, 3)) AS u";
        assert_eq!(ask(session, &format!("{less} WHERE a = 1")), ["1 1"]);
        assert_eq!(ask(session, &format!("{less} ORDER BY a, b")), ["1 1", "2 1"]);
    });
}

#[test]
fn foreign_keys_are_checked_by_the_prefix_of_an_index() {
    with_workers(|session| {
        run(
            session,
            "CREATE TABLE orders (o int PRIMARY KEY);
             CREATE TABLE lines (o int REFERENCES orders ON DELETE CASCADE, n int, PRIMARY KEY (o, n));
             CREATE TABLE notes (o int REFERENCES orders, n int, PRIMARY KEY (o, n));
             INSERT INTO orders VALUES (1), (2), (3);
             INSERT INTO lines SELECT o, n FROM orders, generate_series(1, 4) AS g(n);
             INSERT INTO notes VALUES (3, 1)",
        );
        let error = fail(session, "DELETE FROM orders WHERE o IN (2, 3)");
        assert!(error.message.contains("violates foreign key"), "{}", error.message);
        assert_eq!(tag(session, "DELETE FROM orders WHERE o = 2"), "DELETE 1");
        assert_eq!(ask(session, "SELECT o, count(*) FROM lines GROUP BY o ORDER BY o"), ["1 4", "3 4"]);
        // Within a transaction, with what it wrote.
        run(session, "BEGIN; DELETE FROM notes WHERE o = 3; INSERT INTO lines VALUES (3, 5)");
        assert_eq!(tag(session, "DELETE FROM orders WHERE o = 3"), "DELETE 1");
        run(session, "COMMIT");
        assert_eq!(ask(session, "SELECT DISTINCT o FROM lines"), ["1"]);
    });
}
