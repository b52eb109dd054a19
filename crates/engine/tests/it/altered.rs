//! Definitions beyond names and types: they hold for rows from everywhere, and they come back.

use std::sync::Arc;

use anabranch_engine::store::{SimulatedDisk, StoreOptions, Threads};
use anabranch_engine::{Database, DatabaseOptions, DumpOptions, Options, Session, SourceRows, dump_on};
use arrow::array::{ArrayRef, Int64Array, RecordBatch};

use crate::support::{ask, fail, run};

fn open(disk: &SimulatedDisk) -> Session {
    let keeping = StoreOptions { threads: Threads::None, ..StoreOptions::default() };
    Session::open_on(Arc::new(disk.clone()), keeping, Options::default()).unwrap()
}

const MAKE: &str = "
CREATE SCHEMA shop;
CREATE TABLE shop.items (id serial PRIMARY KEY, price int CHECK (price > 0), twice int GENERATED ALWAYS AS (price * 2) STORED);
INSERT INTO shop.items (price) VALUES (5), (7);
CREATE TABLE t (a int PRIMARY KEY, b text, gone int);
INSERT INTO t VALUES (1, 'x', 9), (2, 'y', 9);
CREATE MATERIALIZED VIEW bs AS SELECT b, count(*) AS n FROM t GROUP BY b;
CREATE INDEX t_b ON t (b);
ALTER TABLE t ADD COLUMN c int NOT NULL DEFAULT 3;
ALTER TABLE t DROP COLUMN gone;
ALTER TABLE t ALTER COLUMN c SET DEFAULT 4, ADD CONSTRAINT small CHECK (c < 100);
CREATE TABLE before (z int);
INSERT INTO before VALUES (1);
CREATE INDEX before_z ON before (z);
ALTER TABLE before RENAME COLUMN z TO zz;
ALTER TABLE before RENAME TO after;
ALTER INDEX before_z RENAME TO after_zz;
CREATE TABLE always (n bigint GENERATED ALWAYS AS IDENTITY (START WITH 10 INCREMENT BY 10), v text);
INSERT INTO always (v) VALUES ('a'), ('b');
";

fn answers(session: &mut Session) -> Vec<Vec<String>> {
    [
        "SELECT * FROM shop.items ORDER BY id",
        "SELECT * FROM t ORDER BY a",
        "SELECT * FROM bs ORDER BY b",
        "SELECT * FROM after",
        "SELECT * FROM always ORDER BY n",
        "SHOW INDEXES",
        "SELECT conname FROM pg_constraint WHERE contype = 'c' ORDER BY conname",
    ]
    .iter()
    .map(|question| ask(session, question))
    .collect()
}

/// What holds of the database after it was made, and after it was made again.
fn rules_hold(session: &mut Session) {
    assert!(fail(session, "INSERT INTO shop.items (price) VALUES (0)").message.contains("items_price_check"));
    assert!(fail(session, "INSERT INTO t VALUES (9, 'z', 100)").message.contains("small"));
    assert!(fail(session, "INSERT INTO always VALUES (1, 'c')").message.contains("non-DEFAULT"));
    assert!(fail(session, "CREATE SCHEMA shop").message.contains("already exists"));
}

#[test]
fn altered_tables_come_back() {
    let disk = SimulatedDisk::new();
    let mut session = open(&disk);
    run(&mut session, MAKE);
    let expected = answers(&mut session);
    assert_eq!(expected[0], ["1 5 10", "2 7 14"]);
    assert_eq!(expected[1], ["1 x 3", "2 y 3"]);
    assert_eq!(expected[4], ["10 a", "20 b"]);
    rules_hold(&mut session);
    for round in 0..3 {
        drop(session);
        session = open(&disk);
        assert_eq!(answers(&mut session), expected, "opening {round}");
        rules_hold(&mut session);
    }
    // Counters go on, behind the number that a row took which a CHECK refused.
    run(&mut session, "INSERT INTO always (v) VALUES ('c')");
    assert_eq!(ask(&mut session, "SELECT n FROM always WHERE v = 'c'"), ["30"]);
    run(&mut session, "INSERT INTO t (a, b) VALUES (3, 'x'); UPDATE shop.items SET price = 6 WHERE id = 1");
    assert_eq!(ask(&mut session, "SELECT c FROM t WHERE a = 3"), ["4"]);
    assert_eq!(ask(&mut session, "SELECT n FROM bs WHERE b = 'x'"), ["2"]);
    assert_eq!(ask(&mut session, "SELECT twice FROM shop.items WHERE id = 1"), ["12"]);
}

#[test]
fn a_script_makes_altered_tables_again() {
    let disk = SimulatedDisk::new();
    let mut session = open(&disk);
    run(&mut session, MAKE);
    let expected = answers(&mut session);
    drop(session);
    let mut script = Vec::new();
    dump_on(&disk, DumpOptions { sources: SourceRows::ReadAgain }, &mut script).unwrap();
    let mut again = Session::new(Options::default()).unwrap();
    run(&mut again, &String::from_utf8(script).unwrap());
    assert_eq!(answers(&mut again), expected);
    rules_hold(&mut again);
    run(&mut again, "INSERT INTO always (v) VALUES ('c')");
    assert_eq!(ask(&mut again, "SELECT n FROM always WHERE v = 'c'"), ["30"]);
}

#[test]
fn rows_of_programs_obey_the_rules() {
    let mut session = Session::new(Options::default()).unwrap();
    run(
        &mut session,
        "CREATE TABLE r (id bigserial, a bigint CHECK (a < 10), b bigint GENERATED ALWAYS AS (a + 1) STORED)",
    );
    let batch = |values: Vec<i64>| {
        let column: ArrayRef = Arc::new(Int64Array::from(values));
        RecordBatch::try_from_iter([("a", column)]).unwrap()
    };
    session.insert("r", &batch(vec![3, 4])).unwrap();
    assert_eq!(session.insert("r", &batch(vec![5, 10])).unwrap_err().sqlstate(), "23514");
    session.apply("r", &batch(vec![6]), &[1]).unwrap();
    assert_eq!(ask(&mut session, "SELECT a, b FROM r ORDER BY a"), ["3 4", "4 5", "6 7"]);
    assert_eq!(ask(&mut session, "SELECT count(DISTINCT id), min(id) FROM r"), ["3 1"]);
}

#[test]
fn a_failed_alter_leaves_all_as_it_was() {
    let disk = SimulatedDisk::new();
    let mut session = open(&disk);
    run(&mut session, MAKE);
    let expected = answers(&mut session);
    for statement in [
        "ALTER TABLE t DROP COLUMN b",
        "ALTER TABLE t ADD COLUMN d int, ADD COLUMN c int",
        "ALTER TABLE t ADD COLUMN d int NOT NULL",
        "ALTER TABLE t ADD COLUMN d int CHECK (d IS NOT NULL)",
        "ALTER TABLE t ALTER COLUMN b TYPE int USING b::int",
        "ALTER TABLE t RENAME COLUMN b TO bb",
        "ALTER TABLE t RENAME TO u",
        "ALTER TABLE t ADD CHECK (c > 50)",
    ] {
        fail(&mut session, statement);
        assert_eq!(answers(&mut session), expected, "{statement}");
    }
    run(&mut session, "INSERT INTO t VALUES (3, 'y', 1)");
    assert_eq!(ask(&mut session, "SELECT n FROM bs WHERE b = 'y'"), ["2"]);
    assert_eq!(ask(&mut session, "SELECT a FROM t WHERE b = 'y' ORDER BY a"), ["2", "3"]);
    drop(session);
    let mut session = open(&disk);
    assert_eq!(ask(&mut session, "SELECT n FROM bs WHERE b = 'y'"), ["2"]);
}

#[test]
fn temporary_tables_are_their_clients_and_recorded_nowhere() {
    let disk = SimulatedDisk::new();
    let mut session = open(&disk);
    run(&mut session, "CREATE TABLE t (a int); INSERT INTO t VALUES (1)");
    run(&mut session, "CREATE TEMP TABLE t (b text); INSERT INTO t VALUES ('mine')");
    assert_eq!(ask(&mut session, "SELECT * FROM t"), ["mine"]);
    assert_eq!(ask(&mut session, "SELECT * FROM public.t"), ["1"]);
    assert!(fail(&mut session, "CREATE MATERIALIZED VIEW m AS SELECT * FROM t").message.contains("temporary"));
    drop(session);
    let mut session = open(&disk);
    assert_eq!(ask(&mut session, "SELECT * FROM t"), ["1"]);

    let database = Database::open(DatabaseOptions::default()).unwrap();
    let (mut one, mut other) = (database.connect().unwrap(), database.connect().unwrap());
    one.execute("CREATE TABLE t (a int); INSERT INTO t VALUES (1); CREATE TEMP TABLE t AS SELECT 7 AS b").unwrap();
    assert_eq!(one.query("SELECT b FROM t").unwrap().num_rows(), 1);
    assert!(other.query("SELECT b FROM t").is_err());
    assert_eq!(other.query("SELECT a FROM t").unwrap().num_rows(), 1);
    drop(one);
    assert_eq!(other.query("SELECT * FROM information_schema.tables WHERE table_name = 't'").unwrap().num_rows(), 1);
}

#[test]
fn numbers_are_given_once_to_concurrent_connections() {
    let database = Database::open(DatabaseOptions::default()).unwrap();
    database.connect().unwrap().execute("CREATE TABLE n (id serial PRIMARY KEY, v int)").unwrap();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            let mut connection = database.connect().unwrap();
            scope.spawn(move || {
                for v in 0..20 {
                    connection.execute(&format!("INSERT INTO n (v) VALUES ({v}), ({v})")).unwrap();
                }
            });
        }
    });
    let mut connection = database.connect().unwrap();
    let rows = connection.query("SELECT 1 FROM n WHERE id BETWEEN 1 AND 160").unwrap();
    assert_eq!(rows.num_rows(), 160);
}
