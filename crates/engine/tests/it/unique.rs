//! UNIQUE: it holds for rows from everywhere, between transactions, and after a restart.

use std::sync::Arc;

use anabranch_engine::store::{SimulatedDisk, StoreOptions, Threads};
use anabranch_engine::{DumpOptions, Options, Outcome, Session, dump_on};

use crate::connections;
use crate::support::{ask, fail, run};

fn open(disk: &SimulatedDisk) -> Session {
    let keeping = StoreOptions { threads: Threads::None, ..StoreOptions::default() };
    Session::open_on(Arc::new(disk.clone()), keeping, Options::default()).unwrap()
}

const MAKE: &str = "
CREATE TABLE users (id int PRIMARY KEY, email text UNIQUE, city text, name text, CONSTRAINT one_name UNIQUE (city, name));
INSERT INTO users VALUES (1, 'a@x', 'Lund', 'Ann'), (2, NULL, NULL, 'Ann'), (3, NULL, NULL, 'Ann');
CREATE TABLE t (a int, b int);
INSERT INTO t VALUES (1, 1), (1, 2);
ALTER TABLE t ADD UNIQUE (a, b);
CREATE UNIQUE INDEX gone ON t (b);
DROP INDEX gone;
";

/// What must be refused, and what must not.
fn holds(session: &mut Session) {
    for refused in [
        "INSERT INTO users VALUES (4, 'a@x', NULL, NULL)",
        "INSERT INTO users VALUES (4, 'b@x', 'Lund', 'Ann')",
        "UPDATE users SET email = 'a@x' WHERE id = 2",
        "INSERT INTO t VALUES (1, 2)",
    ] {
        let error = fail(session, refused);
        assert_eq!(error.sqlstate(), "23505", "{refused}: {error}");
        assert!(error.detail.as_ref().is_some_and(|detail| detail.contains("already exists")), "{error:?}");
    }
    run(session, "INSERT INTO users VALUES (9, NULL, NULL, 'Ann'); DELETE FROM users WHERE id = 9");
    run(session, "INSERT INTO t VALUES (7, 2); DELETE FROM t WHERE a = 7");
}

#[test]
fn unique_keys_hold_after_a_restart_and_in_a_dump() {
    let disk = SimulatedDisk::new();
    let mut session = open(&disk);
    run(&mut session, MAKE);
    holds(&mut session);
    run(&mut session, "ALTER TABLE users RENAME COLUMN email TO mail; ALTER TABLE users RENAME COLUMN mail TO email");
    holds(&mut session);
    drop(session);
    let mut session = open(&disk);
    holds(&mut session);
    drop(session);
    let mut script = Vec::new();
    dump_on(&disk, DumpOptions::default(), &mut script).unwrap();
    let mut again = Session::new(Options::default()).unwrap();
    run(&mut again, &String::from_utf8(script).unwrap());
    holds(&mut again);
    let names = "SELECT relname FROM pg_index JOIN pg_class ON pg_class.oid = indexrelid WHERE indisunique ORDER BY 1";
    assert_eq!(ask(&mut again, names), ask(&mut open(&disk), names));
}

#[test]
fn copied_rows_are_compared_with_each_other_and_with_those_that_are_there() {
    let database = connections::database();
    let mut here = database.connect().unwrap();
    connections::run(&mut here, "CREATE TABLE k (a int UNIQUE, b int); INSERT INTO k VALUES (1, 1)");
    for (rows, fits) in [("2\t1\n2\t2\n", false), ("1\t1\n", false), ("\\N\t1\n\\N\t1\n3\t3\n", true)] {
        let Some(Outcome::Copy(_)) = here.execute("COPY k FROM STDIN").unwrap().pop() else { panic!("{rows}") };
        here.copy_data(rows.as_bytes()).unwrap();
        assert_eq!(here.copy_done().is_ok(), fits, "{rows}");
    }
    assert_eq!(connections::ask(&mut here, "SELECT count(*), count(a) FROM k"), ["4 2"]);
}

#[test]
fn of_two_transactions_that_write_one_key_the_second_conflicts() {
    let database = connections::database();
    let (mut one, mut other) = (database.connect().unwrap(), database.connect().unwrap());
    connections::run(&mut one, "CREATE TABLE k (a int UNIQUE, b int)");
    connections::run(&mut one, "BEGIN; INSERT INTO k VALUES (1, 1)");
    connections::run(&mut other, "BEGIN; INSERT INTO k VALUES (1, 2)");
    connections::run(&mut one, "COMMIT");
    assert_eq!(connections::fail(&mut other, "COMMIT").sqlstate(), "40001");
    assert_eq!(connections::ask(&mut one, "SELECT a, b FROM k"), ["1 1"]);
}
