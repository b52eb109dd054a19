//! Rows that are together already do not move: answers of several workers are those of one, where
//! the columns that rows are placed by are kept, renamed, swapped, computed anew or lost.

use anabranch_engine::Session;

use crate::support::{ask, run, session};

const TABLES: &str = "CREATE TABLE a (k BIGINT, j BIGINT, x BIGINT);
    CREATE TABLE b (k BIGINT, j BIGINT, y BIGINT);
    CREATE TABLE c (j BIGINT, z BIGINT)";

/// Each reads what a join or an aggregate has placed.
const QUERIES: [&str; 17] = [
    // Placed by a part of the key, in another order, under other names.
    "SELECT a.k, a.j, count(*) AS n, sum(y) AS s FROM a JOIN b ON a.k = b.k GROUP BY a.k, a.j",
    "SELECT a.j, b.k, max(y) AS m FROM a JOIN b ON a.k = b.k GROUP BY a.j, b.k",
    "SELECT j2, k2, count(*) AS n FROM (SELECT a.j AS j2, a.k AS k2, x FROM a JOIN b USING (k)) AS p GROUP BY j2, k2",
    // A column takes the place and the name of the one that rows are placed by.
    "SELECT k, count(*) AS n FROM (SELECT a.j AS k, a.k AS j FROM a JOIN b ON a.k = b.k) AS p GROUP BY k",
    "SELECT k, count(*) AS n FROM (SELECT a.k % 3 AS k FROM a JOIN b ON a.k = b.k) AS p GROUP BY k",
    "SELECT x, count(*) AS n, sum(y) AS s FROM a JOIN b ON a.k = b.k GROUP BY x",
    // Of two columns one is lost.
    "SELECT a.k, count(*) AS n FROM a JOIN b ON a.k = b.k AND a.j = b.j GROUP BY a.k",
    "SELECT a.k, a.j, a.x, count(*) AS n FROM a JOIN b ON a.k = b.j AND a.j = b.k GROUP BY a.k, a.j, a.x",
    // Unions of rows that are placed and rows that are not, or by another column.
    "SELECT k, count(*) AS n FROM (SELECT a.k FROM a JOIN b ON a.k = b.k UNION ALL SELECT k FROM a) AS p GROUP BY k",
    "SELECT k, count(*) AS n FROM (SELECT a.k FROM a JOIN b ON a.k = b.k UNION ALL SELECT a.k FROM a JOIN c ON a.j = c.j) AS p
     GROUP BY k",
    "SELECT k, j, count(*) AS n FROM (SELECT k, j, count(*) FROM a GROUP BY k, j UNION ALL SELECT k, j, 1 FROM b) AS p
     GROUP BY k, j",
    // Outer, half and negated joins.
    "SELECT a.k, b.y, count(*) AS n FROM a LEFT JOIN b ON a.k = b.k GROUP BY a.k, b.y",
    "SELECT b.k, a.x, count(*) AS n FROM a FULL JOIN b ON a.k = b.k GROUP BY b.k, a.x",
    "SELECT k, x, count(*) AS n FROM a WHERE k IN (SELECT k FROM b) GROUP BY k, x",
    "SELECT DISTINCT j, k FROM a WHERE NOT EXISTS (SELECT 1 FROM b WHERE b.k = a.k AND b.y > a.x)",
    // Aggregates of aggregates, and the first rows of each key.
    "SELECT k, max(n) AS m, sum(n) AS s FROM (SELECT k, j, count(*) AS n FROM a GROUP BY k, j) AS p GROUP BY k",
    "SELECT k, j, z FROM (SELECT a.k, c.j, c.z, row_number() OVER (PARTITION BY a.k, c.j ORDER BY c.z, a.x) AS r
     FROM a JOIN c ON a.j = c.j) AS p WHERE r = 1",
];

fn changed(session: &mut Session, round: i64) {
    let rows = |table: &str, columns: &str, seed: i64, count: i64| {
        format!("INSERT INTO {table} SELECT {columns} FROM generate_series({seed}, {}) AS g(i)", seed + count - 1)
    };
    let null = |k: &str| format!("CASE WHEN i % 17 = 0 THEN NULL ELSE {k} END");
    run(session, &rows("a", &format!("{}, i * 5 % 7, i % 13", null("i * 7 % 23")), round * 100, 150));
    run(session, &rows("b", &format!("{}, i * 3 % 7, i % 11", null("i * 11 % 23")), round * 90, 40));
    run(session, &rows("c", "i % 7, i % 5", round * 10, 12));
    run(session, &format!("DELETE FROM a WHERE x = {round}; DELETE FROM b WHERE y = {}", round + 1));
    run(session, &format!("UPDATE a SET k = k + 1 WHERE x = {}; DELETE FROM c WHERE z = {round}", round + 2));
}

#[test]
fn answers_do_not_depend_on_where_rows_are() {
    let answers = |workers: usize| {
        let mut session = session(workers);
        run(&mut session, TABLES);
        changed(&mut session, 0);
        for (at, query) in QUERIES.iter().enumerate() {
            run(&mut session, &format!("CREATE MATERIALIZED VIEW v{at} AS {query}"));
        }
        (1..4)
            .map(|round| {
                changed(&mut session, round);
                let read = |at: usize| {
                    let mut rows = ask(&mut session, &format!("SELECT * FROM v{at}"));
                    rows.sort();
                    rows
                };
                (0..QUERIES.len()).map(read).collect::<Vec<_>>()
            })
            .collect::<Vec<_>>()
    };
    let expected = answers(0);
    for (at, query) in QUERIES.iter().enumerate() {
        assert!(expected.last().unwrap()[at].len() > 2, "it tells something: {query}");
    }
    for workers in [1, 2, 3, 5] {
        for (round, found) in answers(workers).into_iter().enumerate() {
            for (at, rows) in found.into_iter().enumerate() {
                assert_eq!(rows, expected[round][at], "{workers} workers, round {round}: {}", QUERIES[at]);
            }
        }
    }
}
