//! Imports that deal rows out by a key: answers of several workers are those of one, whether
//! batches have few values of the key or many, a few rows or many, and whatever is filtered before.

use anabranch_engine::Session;

use crate::support::{ask, run, session};

const TABLES: &str = "CREATE TABLE a (k BIGINT, g INT, x BIGINT, t TEXT);
    CREATE TABLE b (k BIGINT PRIMARY KEY, j INT, y BIGINT);
    CREATE TABLE f (k BIGINT, z BIGINT) WITH (retain = 'none');
    CREATE TABLE n (k BIGINT, j INT, z BIGINT) WITH (retain = 'none')";

/// Each begins with an import, as often as it names a table.
const QUERIES: [&str; 20] = [
    // Arranged by a key: as it is, behind a filter, behind columns that are computed, renamed,
    // lost.
    "SELECT n.z, a.x FROM n JOIN a ON n.k = a.k WHERE n.z < 40",
    "SELECT n.z + 1 AS z, b.y FROM n JOIN b ON n.k = b.k WHERE n.j <> 3",
    "SELECT p.z, b.y FROM (SELECT z * 2 AS z, j AS k, k AS j FROM n WHERE z > 2) AS p JOIN b ON p.j = b.k AND p.k = b.j",
    "SELECT p.y, n.z FROM (SELECT k % 10 AS k, y FROM b) AS p JOIN n ON p.k = n.k",
    "SELECT n.z, a.x FROM n LEFT JOIN a ON n.k = a.k AND a.t LIKE 'r%' WHERE n.z % 3 = 1",
    // One import of several users, who want several keys, or none.
    "SELECT l.k, l.z, r.z AS s FROM n AS l JOIN n AS r ON l.k = r.k WHERE l.z < r.z",
    "SELECT l.k, count(*) AS c FROM n AS l JOIN n AS r ON l.z = r.k GROUP BY l.k",
    "SELECT k, sum(z) AS s FROM n GROUP BY k UNION ALL SELECT z, count(*) FROM n GROUP BY z",
    "SELECT z FROM n WHERE k IN (SELECT x FROM a) UNION ALL SELECT k FROM n",
    // Groups that rows are combined for before they move, or not.
    "SELECT k, sum(z) AS s, count(*) AS c FROM n GROUP BY k",
    "SELECT k, sum(z) AS s, count(*) AS c FROM f GROUP BY k",
    "SELECT k, sum(z) AS s, count(j) AS c FROM n WHERE z BETWEEN 3 AND 50 GROUP BY k",
    "SELECT k, sum(z * 2) AS s, max(j) AS m FROM n GROUP BY k",
    "SELECT k, j, max(z) AS m FROM n GROUP BY k, j",
    "SELECT j, avg(z) AS m, count(*) AS c FROM n GROUP BY j",
    "SELECT DISTINCT k FROM n WHERE z > 5",
    "SELECT DISTINCT j, k FROM a JOIN n USING (k)",
    // Filters of two steps, one of which most rows pass; the same import with another filter.
    "SELECT n.z, b.y FROM n JOIN b ON n.k = b.k WHERE n.z < 60 AND n.j > 1 UNION ALL
     SELECT n.z, b.y FROM n JOIN b ON n.k = b.k WHERE n.z < 30",
    // Extremes of all rows, which each worker has of its own first.
    "SELECT max(x) AS m, min(t) AS n FROM a UNION ALL SELECT min(x), max(t) FROM a",
    "SELECT max(s) AS m, min(s) FILTER (WHERE k > 5) AS n FROM (SELECT k, sum(z) AS s FROM n GROUP BY k) AS p
     UNION ALL SELECT max(y), min(y) FROM b WHERE y < 3",
];

fn changed(session: &mut Session, round: i64) {
    let null = |k: &str| format!("CASE WHEN i % 17 = 0 THEN NULL ELSE {k} END");
    // (Batches of more rows are cut into pieces; of few rows no sample is taken.)
    // (Batches of more than 8,192 rows are dealt out in parts.)
    let count = [20_000, 9, 500, 5_000][round as usize % 4];
    let rows = |table: &str, columns: &str| {
        let first = round * 1_000;
        format!("INSERT INTO {table} SELECT {columns} FROM generate_series({first}, {}) AS g(i)", first + count - 1)
    };
    run(session, &rows("n", &format!("{}, i % 5, i % 61", null("i * 7 % 3001"))));
    run(session, &rows("f", "i % 3, i % 7"));
    run(session, &format!("INSERT INTO n SELECT 3, i % 2, i % 7 FROM generate_series(1, {}) AS g(i)", count / 50));
    run(session, &rows("a", &format!("{}, i % 4, i % 13, 'row' || i % 3", null("i % 977"))));
    run(
        session,
        &format!("INSERT INTO b SELECT i + {round} * 500, i % 5, i % 11 FROM generate_series(1, 500) AS g(i)"),
    );
    run(session, &format!("DELETE FROM a WHERE x = {round}; DELETE FROM b WHERE y = {}", round + 1));
    run(session, &format!("UPDATE a SET k = k + 1 WHERE x = {}", round + 2));
}

#[test]
fn answers_do_not_depend_on_how_rows_are_dealt_out() {
    let answers = |workers: usize| {
        let mut session = session(workers);
        run(&mut session, TABLES);
        for (at, query) in QUERIES.iter().enumerate() {
            run(&mut session, &format!("CREATE MATERIALIZED VIEW v{at} AS {query}"));
        }
        let mut answers = Vec::new();
        for round in 0..4 {
            changed(&mut session, round);
            if round == 1 {
                // What is there already is where its own key is.
                run(&mut session, "CREATE MATERIALIZED VIEW late_a AS SELECT g, k, max(x) AS m FROM a GROUP BY g, k");
                run(&mut session, "CREATE MATERIALIZED VIEW late_b AS SELECT b.k, y, x FROM b JOIN a ON b.k = a.k");
                run(&mut session, "CREATE MATERIALIZED VIEW late_j AS SELECT j, max(y) AS m FROM b GROUP BY j");
            }
            let views = (0..QUERIES.len()).map(|at| format!("v{at}"));
            let late = ["late_a", "late_b", "late_j"].into_iter().filter(|_| round > 0).map(str::to_owned);
            for view in views.chain(late) {
                let mut rows = ask(&mut session, &format!("SELECT * FROM {view}"));
                rows.sort();
                answers.push((view, round, rows));
            }
        }
        answers
    };
    let one = answers(0);
    for (view, _, rows) in &one {
        assert!(rows.len() > 1, "{view} tells something");
    }
    for workers in [2, 3, 8] {
        for (one, several) in one.iter().zip(answers(workers)) {
            assert!(*one == several, "{workers} workers, round {}: {}", one.1, one.0);
        }
    }
}

/// A worker without rows has no extremes, and the last of them to go leaves one row of NULL.
#[test]
fn extremes_of_nothing_are_null() {
    for workers in [0, 2, 8] {
        let mut session = session(workers);
        run(&mut session, TABLES);
        run(
            &mut session,
            "CREATE MATERIALIZED VIEW v AS SELECT min(y) AS l, max(y) AS m, max(y) FILTER (WHERE j = 1) AS f FROM b",
        );
        let now = |session: &mut Session| ask(session, "SELECT * FROM v");
        assert_eq!(now(&mut session), ["null null null"]);
        run(&mut session, "INSERT INTO b VALUES (1, 2, 7)");
        assert_eq!(now(&mut session), ["7 7 null"]);
        run(&mut session, "INSERT INTO b SELECT i, 1, NULL FROM generate_series(2, 40) AS g(i)");
        assert_eq!(now(&mut session), ["7 7 null"]);
        run(&mut session, "UPDATE b SET y = k WHERE k > 1");
        assert_eq!(now(&mut session), ["2 40 40"]);
        run(&mut session, "DELETE FROM b WHERE k = 40 OR k = 2");
        assert_eq!(now(&mut session), ["3 39 39"]);
        run(&mut session, "DELETE FROM b");
        assert_eq!(now(&mut session), ["null null null"]);
    }
}

/// Every worker looks at all rows before they are dealt out, and each finds those that fail.
#[test]
fn rows_that_fail_fail_once() {
    for workers in [0, 2, 3] {
        let mut session = session(workers);
        run(&mut session, TABLES);
        run(&mut session, "CREATE MATERIALIZED VIEW v AS SELECT k, max(100 / z) AS m FROM n GROUP BY k");
        run(&mut session, "CREATE MATERIALIZED VIEW w AS SELECT k, max(100 / x) AS m FROM a GROUP BY k");
        run(
            &mut session,
            "INSERT INTO n VALUES (1, 1, 5), (2, 2, 4); INSERT INTO a VALUES (1, 1, 0, 'x'), (2, 1, 4, 'y')",
        );
        assert_eq!(ask(&mut session, "SELECT * FROM v ORDER BY k"), ["1 20", "2 25"]);
        let failed = session.query("SELECT * FROM w").unwrap_err();
        assert!(failed.message.starts_with("division by zero"), "{failed:?}");
        run(&mut session, "DELETE FROM a WHERE x = 0");
        assert_eq!(ask(&mut session, "SELECT * FROM w ORDER BY k"), ["2 25"]);
        run(&mut session, "INSERT INTO n VALUES (1, 1, 0)");
        let failed = session.query("SELECT * FROM v").unwrap_err();
        assert!(failed.message.starts_with("division by zero"), "{failed:?}");
    }
}
