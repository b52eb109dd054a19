//! Users' types in databases in folders.

use std::sync::Arc;

use anabranch_engine::store::{SimulatedDisk, StoreOptions, Threads};
use anabranch_engine::{Options, Session};

use crate::support::{ask, fail, run};

/// A database on this disk, whose store has no threads of its own.
fn open(disk: &SimulatedDisk) -> Session {
    let keeping = StoreOptions { threads: Threads::None, ..StoreOptions::default() };
    Session::open_on(Arc::new(disk.clone()), keeping, Options::default()).unwrap()
}

#[test]
fn domains_and_enumerations_come_back() {
    let disk = SimulatedDisk::new();
    let mut session = open(&disk);
    run(&mut session, "CREATE TYPE mood AS ENUM ('sad', 'ok', 'happy'); CREATE DOMAIN posint AS int CHECK (value > 0)");
    run(
        &mut session,
        "CREATE TABLE p (n text, m mood, k posint); CREATE MATERIALIZED VIEW v AS SELECT max(m) AS m FROM p",
    );
    run(&mut session, "CREATE MATERIALIZED VIEW n AS SELECT m, count(*) AS n FROM p GROUP BY m");
    run(&mut session, "INSERT INTO p VALUES ('a', 'happy', 1), ('b', 'sad', 2)");
    // (The plan of a view that goes by the order has the labels.)
    let refused = fail(&mut session, "ALTER TYPE mood ADD VALUE 'odd' AFTER 'sad'");
    assert_eq!(refused.sqlstate(), "2BP01");
    assert!(refused.detail.as_deref().is_some_and(|detail| detail.contains("\"v\"")), "{refused:?}");
    run(&mut session, "DROP MATERIALIZED VIEW v; ALTER TYPE mood ADD VALUE 'odd' AFTER 'sad'");
    run(&mut session, "CREATE MATERIALIZED VIEW v AS SELECT max(m) AS m FROM p");
    run(&mut session, "INSERT INTO p VALUES ('c', 'odd', 3); ALTER TABLE p ADD COLUMN l posint DEFAULT 4");
    drop(session);
    let mut session = open(&disk);
    assert_eq!(
        ask(&mut session, "SELECT n FROM (SELECT n, row_number() OVER (ORDER BY m) AS r FROM p) q WHERE r = 2"),
        ["c"]
    );
    assert_eq!(ask(&mut session, "SELECT m FROM v"), ["happy"]);
    assert_eq!(ask(&mut session, "SELECT m FROM n ORDER BY m"), ["sad", "odd", "happy"]);
    assert_eq!(fail(&mut session, "INSERT INTO p VALUES ('d', 'none', 1, 1)").sqlstate(), "22P02");
    assert_eq!(fail(&mut session, "INSERT INTO p VALUES ('d', 'ok', 0, 1)").sqlstate(), "23514");
    assert_eq!(fail(&mut session, "UPDATE p SET l = -1").sqlstate(), "23514");
    assert_eq!(fail(&mut session, "DROP TYPE mood").sqlstate(), "2BP01");
    run(&mut session, "DROP TABLE p CASCADE; DROP TYPE mood; DROP DOMAIN posint");
    drop(session);
    let mut session = open(&disk);
    assert_eq!(fail(&mut session, "CREATE TABLE p (m mood)").sqlstate(), "42704");
}

#[test]
fn a_domain_over_another_keeps_its_own_checks() {
    let disk = SimulatedDisk::new();
    let mut session = open(&disk);
    run(&mut session, "CREATE TYPE mood AS ENUM ('sad', 'ok'); CREATE DOMAIN calm AS mood CHECK (value <> 'sad')");
    run(&mut session, "CREATE DOMAIN a AS int CHECK (value > 0); CREATE DOMAIN b AS a NOT NULL CHECK (value < 100)");
    run(&mut session, "CREATE TABLE t (id int PRIMARY KEY, x b, m calm); ALTER TABLE t ADD COLUMN y int");
    run(&mut session, "CREATE TABLE u (LIKE t)");
    drop(session);
    let mut session = open(&disk);
    for table in ["t", "u"] {
        let refuses = |session: &mut Session, values: &str| {
            fail(session, &format!("INSERT INTO {table} (id, x, m) VALUES {values}")).sqlstate().to_owned()
        };
        let states = ["(1, 500, 'ok')", "(1, -1, 'ok')", "(1, null, 'ok')", "(1, 5, 'sad')", "(1, 5, 'odd')"]
            .map(|values| refuses(&mut session, values));
        assert_eq!(states, ["23514", "23514", "23502", "23514", "22P02"], "{table}");
        run(&mut session, &format!("INSERT INTO {table} (id, x, m) VALUES (1, 99, 'ok')"));
    }
}

#[test]
fn labels_that_get_other_names_keep_them() {
    let disk = SimulatedDisk::new();
    let mut session = open(&disk);
    run(&mut session, "CREATE TYPE mood AS ENUM ('sad', 'ok'); CREATE DOMAIN humour AS mood");
    run(&mut session, "CREATE TABLE p (n int PRIMARY KEY, m humour, ms mood[])");
    run(&mut session, "CREATE MATERIALIZED VIEW n AS SELECT m, count(*) AS n FROM p GROUP BY m");
    run(&mut session, "INSERT INTO p VALUES (1, 'sad', '{sad,ok}'), (2, 'ok', '{}'), (3, 'sad', NULL)");
    run(&mut session, "ALTER TYPE mood RENAME VALUE 'sad' TO 'blue'");
    let rows = ["1 blue {blue,ok}", "2 ok {}", "3 blue null"];
    let check = |session: &mut Session| {
        assert_eq!(ask(session, "SELECT n, m, ms::text FROM p ORDER BY n"), rows);
        assert_eq!(ask(session, "SELECT m, n FROM n ORDER BY m"), ["blue 2", "ok 1"]);
        assert_eq!(ask(session, "SELECT n FROM p WHERE m < 'ok' ORDER BY n"), ["1", "3"]);
        assert_eq!(fail(session, "INSERT INTO p VALUES (4, 'sad', NULL)").sqlstate(), "22P02");
    };
    check(&mut session);
    drop(session);
    let mut session = open(&disk);
    check(&mut session);
    // What names a label in its text would name another, or none.
    for (named, gone) in [
        ("CREATE VIEW v AS SELECT n FROM p WHERE m = 'blue'", "DROP VIEW v"),
        ("CREATE VIEW v AS SELECT 'blue'::mood AS m", "DROP VIEW v"),
        ("ALTER TABLE p ALTER COLUMN m SET DEFAULT 'blue'", "ALTER TABLE p ALTER COLUMN m DROP DEFAULT"),
        ("CREATE MATERIALIZED VIEW v AS SELECT max(m) AS m FROM p", "DROP MATERIALIZED VIEW v"),
        ("CREATE DOMAIN calm AS mood CHECK (value <> 'blue')", "DROP DOMAIN calm"),
    ] {
        run(&mut session, named);
        let refused = fail(&mut session, "ALTER TYPE mood RENAME VALUE 'blue' TO 'low'");
        assert_eq!(refused.sqlstate(), "2BP01", "{named}: {refused:?}");
        run(&mut session, gone);
    }
    run(&mut session, "CREATE TABLE a (m mood) APPEND ONLY");
    assert_eq!(fail(&mut session, "ALTER TYPE mood RENAME VALUE 'blue' TO 'low'").sqlstate(), "0A000");
    run(&mut session, "DROP TABLE a; BEGIN; INSERT INTO p VALUES (5, 'blue', NULL)");
    assert_eq!(fail(&mut session, "ALTER TYPE mood RENAME VALUE 'blue' TO 'low'").sqlstate(), "55006");
    run(&mut session, "ROLLBACK; ALTER TYPE mood RENAME VALUE 'blue' TO 'low'");
    assert_eq!(ask(&mut session, "SELECT m, n FROM n ORDER BY m"), ["low 2", "ok 1"]);
}
