//! Memory is counted, shown and limited: what would take too much ends with an error, and all else
//! goes on.

use anabranch_engine::{Connection, Database, DatabaseOptions, ErrorKind, Options, Outcome};

use crate::connections::{ask, fail, run};
use crate::support::{self, pairs, with_workers};

const MEGABYTE: usize = 1 << 20;

fn with_rows(workers: usize, memory_limit: usize) -> Database {
    let options = DatabaseOptions {
        workers,
        engine: Options { memory_limit: Some(memory_limit), ..Options::default() },
        ..DatabaseOptions::default()
    };
    let database = Database::open(options).unwrap();
    let mut connection = database.connect().unwrap();
    run(
        &mut connection,
        "CREATE TABLE t (k bigint, v text); CREATE TABLE u (k int PRIMARY KEY, v int);
         CREATE MATERIALIZED VIEW sums AS SELECT count(*) AS n FROM u",
    );
    let text = "x".repeat(100);
    let rows: Vec<(i64, &str)> = (0..4_000).map(|k| (k, text.as_str())).collect();
    connection.insert("t", &pairs(&rows)).unwrap();
    database
}

fn goes_on(connection: &mut Connection, k: usize) {
    run(connection, &format!("INSERT INTO u VALUES ({k}, 1)"));
    assert_eq!(ask(connection, "SELECT n FROM sums"), [(k + 1).to_string()]);
    assert_eq!(ask(connection, "SELECT count(*) FROM t WHERE k >= 10"), ["3990"]);
}

/// Values that are computed of the rows of a table, and are the answer.
#[test]
fn an_answer_of_large_values_ends_and_others_go_on() {
    for workers in [1, 2] {
        let database = with_rows(workers, 200 * MEGABYTE);
        let (mut here, mut there) = (database.connect().unwrap(), database.connect().unwrap());
        for (turn, sql) in [
            "SELECT repeat(v, 10000) FROM t",
            "SELECT k, repeat(v, 1000) FROM t",
            "SELECT array_fill(k, array[100000]) FROM t",
            "INSERT INTO t SELECT k + 4000, repeat(v, 10000) FROM t",
            "SELECT repeat('x', 10000000 + x) FROM generate_series(1, 100) AS x",
        ]
        .into_iter()
        .enumerate()
        {
            let error = fail(&mut here, sql);
            assert_eq!((error.kind, error.sqlstate()), (ErrorKind::Unavailable, "53200"), "{sql}: {error:?}");
            goes_on(&mut there, turn);
        }
        assert_eq!(ask(&mut here, "SELECT sum(length(repeat(v, 1000))) FROM t"), ["400000000"]);
    }
}

#[test]
fn a_query_that_takes_too_much_ends_and_others_go_on() {
    for workers in [1, 2] {
        let database = with_rows(workers, 100 * MEGABYTE);
        let (mut here, mut there) = (database.connect().unwrap(), database.connect().unwrap());
        for (turn, sql) in [
            "SELECT a.k, b.k, c.k FROM t a, t b, t c",
            "SELECT a.k + 4000 * b.k AS pair, count(*) FROM t a, t b GROUP BY a.k + 4000 * b.k",
            // (Rounds bring rows that have come from nowhere.)
            "WITH RECURSIVE r(n) AS (SELECT 1 UNION SELECT n + 1 FROM r) SELECT count(*) FROM r",
            "WITH RECURSIVE r(n) AS (SELECT k FROM t UNION SELECT n + 4000 FROM r) SELECT count(*) FROM r",
            "SELECT x, count(*) FROM generate_series(1, 20000000) AS x GROUP BY x",
        ]
        .into_iter()
        .enumerate()
        {
            let error = fail(&mut here, sql);
            assert_eq!((error.kind, error.sqlstate()), (ErrorKind::Unavailable, "53200"), "{sql}: {error:?}");
            assert!(error.message.contains("memory_limit"), "{error:?}");
            goes_on(&mut there, turn);
        }
    }
}

#[test]
fn a_view_that_takes_too_much_fails_with_its_reason() {
    let database = with_rows(1, 100 * MEGABYTE);
    let (mut here, mut there) = (database.connect().unwrap(), database.connect().unwrap());
    run(&mut here, "CREATE MATERIALIZED VIEW large AS SELECT a.k AS a, b.k AS b FROM t a, t b");
    let error = fail(&mut here, "SELECT count(*) FROM large");
    assert!(error.message.contains("\"large\""), "{error:?}");
    assert_eq!(ask(&mut there, "SELECT failed FROM anabranch_dataflows WHERE name = 'large'"), ["true"]);
    goes_on(&mut there, 0);
    run(&mut here, "DROP MATERIALIZED VIEW large; CREATE MATERIALIZED VIEW large AS SELECT count(*) AS n FROM t");
    assert_eq!(ask(&mut here, "SELECT n FROM large"), ["4000"]);
}

#[test]
fn when_little_is_left_rows_and_queries_are_refused_and_deletes_make_room() {
    let database = with_rows(1, 100 * MEGABYTE);
    let mut connection = database.connect().unwrap();
    // (Rows are counted once workers have taken them in.)
    assert_eq!(ask(&mut connection, "SELECT count(*) FROM t"), ["4000"]);
    run(&mut connection, "SET memory_limit = '100kB'");
    assert_eq!(ask(&mut connection, "SHOW memory_limit"), ["102400"]);
    for sql in ["SELECT a.k FROM t a JOIN t b ON a.k = b.k", "INSERT INTO u VALUES (1, 1)"] {
        assert_eq!(fail(&mut connection, sql).sqlstate(), "53200", "{sql}");
    }
    assert_eq!(ask(&mut connection, "SELECT k FROM t WHERE k = 7"), ["7"]);
    let largest = "SELECT name FROM anabranch_memory ORDER BY bytes DESC LIMIT 1";
    assert_eq!(ask(&mut connection, largest), ["t"]);
    // (The one who looks for what is large may go on looking.)
    run(
        &mut connection,
        "DECLARE c CURSOR FOR SUBSCRIBE (SELECT name, sum(bytes) FROM anabranch_memory GROUP BY name)",
    );
    let Some(Outcome::Rows(first)) = run(&mut connection, "FETCH ALL c").pop() else { panic!("no rows") };
    assert!(first.num_rows() > 2);
    run(&mut connection, "CLOSE c");
    run(&mut connection, "SET memory_limit = off");
    goes_on(&mut connection, 0);
    run(&mut connection, "SET memory_limit = '100kB'; DELETE FROM t WHERE k >= 10");
    assert_eq!(ask(&mut connection, "SELECT k FROM t WHERE k > 8"), ["9"]);
    assert_eq!(fail(&mut connection, "SET memory_limit = 'much'").sqlstate(), "22023");
}

#[test]
fn what_a_connection_holds_is_counted_and_refused_beyond_the_limit() {
    let database = with_rows(1, 100 * MEGABYTE);
    let (mut here, mut there) = (database.connect().unwrap(), database.connect().unwrap());
    let held = "SELECT connection, part FROM anabranch_memory
                WHERE bytes > 100000 AND part IN ('results', 'held') ORDER BY 1, 2";
    let rows = here.query("SELECT * FROM t").unwrap();
    assert_eq!(ask(&mut there, held).len(), 1);
    drop(rows);
    assert_eq!(ask(&mut there, held), [""; 0]);
    // Cursors, and rows that a transaction or a COPY has set aside.
    for (begin, end) in [
        ("BEGIN; DECLARE c CURSOR FOR SELECT * FROM t", "ROLLBACK"),
        ("BEGIN; INSERT INTO t SELECT k + 10000, v FROM t", "ROLLBACK"),
    ] {
        run(&mut here, begin);
        assert_eq!(ask(&mut there, held).len(), 1, "{begin}");
        run(&mut here, end);
        assert_eq!(ask(&mut there, held), [""; 0], "{end}");
    }
    run(&mut here, "COPY t FROM STDIN");
    let text = "x".repeat(100);
    let lines: String = (0..8_192).map(|k| format!("{k}\t{text}\n")).collect();
    here.copy_data(lines.as_bytes()).unwrap();
    assert_eq!(ask(&mut there, held).len(), 1);
    here.copy_stop();
    run(&mut here, "SELECT 1");
    assert_eq!(ask(&mut there, held), [""; 0]);
    // What does not fit is refused, and ends nothing else.
    let total: usize = ask(&mut there, "SELECT sum(bytes) FROM anabranch_memory")[0].parse().unwrap();
    run(&mut there, &format!("SET memory_limit = {}", total + 300_000));
    for sql in ["SELECT * FROM t", "BEGIN; DECLARE c CURSOR FOR SELECT * FROM t"] {
        assert_eq!(fail(&mut here, sql).sqlstate(), "53200", "{sql}");
        run(&mut here, "ROLLBACK");
    }
    assert_eq!(ask(&mut here, "SELECT k FROM t WHERE k = 7"), ["7"]);
    assert_eq!(ask(&mut here, "SELECT n FROM sums"), ["0"]);
}

#[test]
fn what_is_held_is_told_by_relations() {
    with_workers(|session| {
        support::run(
            session,
            "CREATE TABLE t (k int, v text); INSERT INTO t VALUES (1, 'a'), (2, 'b');
             CREATE MATERIALIZED VIEW n AS SELECT v, count(*) AS n FROM t GROUP BY v; SUBSCRIBE n; FLUSH",
        );
        let dataflows =
            "SELECT name, kind, failed, failure FROM anabranch_dataflows WHERE name IN ('t', 'n') ORDER BY 1";
        assert_eq!(support::ask(session, dataflows), ["n standing false null", "t rows false null"]);
        let held = "SELECT d.name, m.part FROM anabranch_dataflows d JOIN anabranch_memory m ON m.dataflow = d.id
             WHERE m.bytes > 0 AND d.name = 't'";
        assert_eq!(support::ask(session, held), ["t arrangements"]);
        assert_eq!(support::ask(session, "SELECT ended FROM anabranch_subscriptions"), ["false"]);
        assert_eq!(support::ask(session, "SELECT count(*) FROM anabranch_arrangements WHERE name = 'n'"), ["1"]);
        assert_eq!(support::ask(session, "SELECT count(*) FROM anabranch_sources"), ["0"]);
        let view = "CREATE MATERIALIZED VIEW m AS SELECT * FROM anabranch_memory";
        assert_eq!(support::fail(session, view).sqlstate(), "0A000");
    });
}

#[test]
fn a_limit_that_is_reset_is_the_one_at_first() {
    let database = with_rows(1, 64 * MEGABYTE);
    let mut connection = database.connect().unwrap();
    run(&mut connection, "SET memory_limit = off");
    assert_eq!(ask(&mut connection, "SHOW memory_limit"), ["off"]);
    run(&mut connection, "RESET memory_limit");
    assert_eq!(ask(&mut connection, "SHOW memory_limit"), [(64 * MEGABYTE).to_string()]);
}
