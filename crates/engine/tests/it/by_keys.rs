//! Changes of rows whose keys a subquery lists: they are looked up.

use crate::support::{ask, run, tag, with_workers};

const TABLES: &str = "CREATE TABLE t (a int, b int, v int, PRIMARY KEY (a, b)); CREATE INDEX t_v ON t (v);
     CREATE TABLE gone (a int, b bigint, v int);
     INSERT INTO t SELECT i / 10, i % 10, i % 7 FROM generate_series(0, 99) AS g(i);
     INSERT INTO gone VALUES (1, 1, 5), (1, 1, 5), (NULL, 2, NULL), (3, NULL, 6), (99, 99, 99), (2, 5, 5);";

#[test]
fn deleted_rows_are_those_of_the_listed_keys() {
    with_workers(|session| {
        run(session, TABLES);
        assert_eq!(tag(session, "DELETE FROM t WHERE (b, a) IN (SELECT b, a FROM gone)"), "DELETE 2");
        assert_eq!(ask(session, "SELECT count(*) FROM t WHERE a = 1 AND b = 1 OR a = 2 AND b = 5"), ["0"]);
        // By another index, with a condition on the rows.
        let expected = ask(session, "SELECT count(*) FROM t WHERE v IN (5, 6) AND a < 4");
        let deleted = tag(session, "DELETE FROM t WHERE a < 4 AND v IN (SELECT v FROM gone)");
        assert_eq!(deleted, format!("DELETE {}", expected[0]));
        assert_eq!(tag(session, "DELETE FROM t WHERE v IN (SELECT v FROM gone WHERE v > 100)"), "DELETE 0");
        assert_eq!(ask(session, "SELECT count(*) FROM t WHERE v IN (5, 6) AND a < 4"), ["0"]);
        assert_eq!(ask(session, "SELECT count(*) FROM t WHERE v IN (5, 6) AND a >= 4").len(), 1);
    });
}

#[test]
fn updated_rows_are_those_of_the_listed_keys() {
    with_workers(|session| {
        run(session, TABLES);
        run(session, "CREATE MATERIALIZED VIEW s AS SELECT sum(v) AS s FROM t");
        let before: i64 = ask(session, "SELECT * FROM s")[0].parse().unwrap();
        let n: i64 = ask(session, "SELECT count(*) FROM t WHERE v IN (5, 6)")[0].parse().unwrap();
        assert_eq!(tag(session, "UPDATE t SET v = v + 100 WHERE v IN (SELECT v FROM gone)"), format!("UPDATE {n}"));
        assert_eq!(ask(session, "SELECT * FROM s"), [(before + 100 * n).to_string()]);
    });
}

#[test]
fn a_transaction_sees_the_rows_that_it_wrote() {
    with_workers(|session| {
        run(session, TABLES);
        run(session, "BEGIN; INSERT INTO t VALUES (50, 1, 5); DELETE FROM t WHERE a = 0 AND b = 5");
        let n = ask(session, "SELECT count(*) FROM t WHERE v = 5")[0].clone();
        assert_eq!(tag(session, "DELETE FROM t WHERE v IN (SELECT v FROM gone WHERE v = 5)"), format!("DELETE {n}"));
        run(session, "COMMIT");
        assert_eq!(ask(session, "SELECT count(*) FROM t WHERE v = 5"), ["0"]);
    });
}

/// A table that is locked counts as read, whatever of it was read.
#[test]
fn a_commit_of_others_to_a_locked_table_ends_in_a_conflict() {
    let database = crate::connections::database();
    let (mut here, mut there) = (database.connect().unwrap(), database.connect().unwrap());
    let run = crate::connections::run;
    run(&mut here, "CREATE TABLE t (k int PRIMARY KEY); CREATE TABLE u (k int); CREATE VIEW v AS SELECT k FROM t");
    for (lock, is_conflict) in [
        ("LOCK t", true),
        ("LOCK v IN SHARE MODE", true),
        ("LOCK t IN SHARE UPDATE EXCLUSIVE MODE", false),
        ("LOCK u", false),
    ] {
        run(&mut here, "BEGIN");
        run(&mut here, lock);
        run(&mut here, "INSERT INTO u VALUES (1)");
        run(&mut there, "INSERT INTO t SELECT coalesce(max(k), 0) + 1 FROM t");
        let ended = here.execute("COMMIT").map(|_| ()).map_err(|error| error.sqlstate());
        assert_eq!(ended, if is_conflict { Err("40001") } else { Ok(()) }, "{lock}");
        let _ = here.execute("ROLLBACK");
    }
}
