//! Definitions inside transactions: what was made goes with what ends without a commit.

use anabranch_engine::{Connection, Outcome};

use crate::connections::{ask, database, fail, run};

fn notice(connection: &mut Connection, statement: &str) -> Option<String> {
    match run(connection, statement).pop() {
        Some(Outcome::Done { detail, .. }) => detail,
        other => panic!("{statement}: {other:?}"),
    }
}

#[test]
fn what_was_made_goes_with_its_connection() {
    let database = database();
    let mut other = database.connect().unwrap();
    let mut one = database.connect().unwrap();
    run(&mut one, "BEGIN; CREATE TABLE t (a int); INSERT INTO t VALUES (1)");
    assert_eq!(ask(&mut one, "SELECT a FROM t"), ["1"]);
    // Others see the table, without the rows of the transaction.
    assert_eq!(ask(&mut other, "SELECT count(*) FROM t"), ["0"]);
    drop(one);
    assert_eq!(fail(&mut other, "SELECT a FROM t").sqlstate(), "42P01");
    run(&mut other, "CREATE TABLE t (b text)");
}

#[test]
fn what_a_commit_in_conflict_had_made_goes() {
    let database = database();
    let (mut one, mut other) = (database.connect().unwrap(), database.connect().unwrap());
    run(&mut one, "CREATE TABLE read (a int)");
    run(&mut one, "BEGIN; SELECT count(*) FROM read; CREATE TABLE made (a int); INSERT INTO made VALUES (1)");
    run(&mut other, "INSERT INTO read VALUES (1)");
    assert_eq!(fail(&mut one, "COMMIT").sqlstate(), "40001");
    assert_eq!(fail(&mut one, "SELECT * FROM made").sqlstate(), "42P01");
}

#[test]
fn a_definition_is_a_conflict_when_what_was_read_has_changed() {
    let database = database();
    let (mut one, mut other) = (database.connect().unwrap(), database.connect().unwrap());
    run(&mut one, "CREATE TABLE read (a int)");
    run(&mut one, "BEGIN; SELECT count(*) FROM read");
    run(&mut other, "INSERT INTO read VALUES (1)");
    assert_eq!(fail(&mut one, "CREATE TABLE made (a int)").sqlstate(), "40001");
    run(&mut one, "ROLLBACK");
    assert_eq!(fail(&mut one, "SELECT * FROM made").sqlstate(), "42P01");
}

#[test]
fn what_others_have_built_upon_stays_and_is_named() {
    let database = database();
    let (mut one, mut other) = (database.connect().unwrap(), database.connect().unwrap());
    run(&mut one, "BEGIN; CREATE TABLE base (a int); CREATE TABLE own (a int)");
    run(&mut other, "CREATE VIEW over AS SELECT a FROM base");
    assert_eq!(notice(&mut one, "ROLLBACK").as_deref(), Some("\"base\" stays, since others have used it"));
    assert_eq!(ask(&mut other, "SELECT count(*) FROM over"), ["0"]);
    assert_eq!(fail(&mut one, "SELECT * FROM own").sqlstate(), "42P01");
}

#[test]
fn rows_that_others_wrote_stay() {
    let database = database();
    let (mut one, mut other) = (database.connect().unwrap(), database.connect().unwrap());
    run(&mut one, "BEGIN; CREATE TABLE t (a int); CREATE TABLE u (a int); INSERT INTO t VALUES (1)");
    run(&mut other, "INSERT INTO t VALUES (2)");
    assert_eq!(notice(&mut one, "ROLLBACK").as_deref(), Some("\"t\" stays, since others have used it"));
    assert_eq!(ask(&mut other, "SELECT a FROM t"), ["2"]);
    assert_eq!(fail(&mut other, "SELECT a FROM u").sqlstate(), "42P01");
}

#[test]
fn what_was_there_before_is_not_taken_back_and_a_notice_says_so() {
    let database = database();
    let mut one = database.connect().unwrap();
    run(&mut one, "CREATE TABLE t (a int); INSERT INTO t VALUES (1); CREATE TABLE u (a int); BEGIN");
    let told = |of: &str| Some(format!("{of} took effect by itself; ROLLBACK does not take it back"));
    assert_eq!(notice(&mut one, "ALTER TABLE t ADD COLUMN b int DEFAULT 7"), told("ALTER TABLE"));
    assert_eq!(notice(&mut one, "DROP TABLE u"), told("DROP TABLE"));
    run(&mut one, "CREATE TABLE made (a int)");
    assert_eq!(notice(&mut one, "ALTER TABLE made ADD COLUMN b int"), None);
    assert_eq!(notice(&mut one, "DROP TABLE made"), None);
    run(&mut one, "ROLLBACK");
    // (An altered table is made anew; it must not go with what the transaction has made.)
    assert_eq!(ask(&mut one, "SELECT a, b FROM t"), ["1 7"]);
    assert_eq!(fail(&mut one, "SELECT * FROM u").sqlstate(), "42P01");
}

#[test]
fn a_replaced_view_stays_as_it_was_replaced() {
    let database = database();
    let mut one = database.connect().unwrap();
    run(&mut one, "CREATE VIEW v AS SELECT 1 AS a; BEGIN");
    assert!(notice(&mut one, "CREATE OR REPLACE VIEW v AS SELECT 2 AS a").is_some());
    run(&mut one, "ROLLBACK");
    assert_eq!(ask(&mut one, "SELECT a FROM v"), ["2"]);
}

#[test]
fn what_others_make_is_no_conflict_and_what_they_replace_is() {
    let database = database();
    let (mut one, mut other) = (database.connect().unwrap(), database.connect().unwrap());
    run(&mut one, "CREATE TABLE t (a int); CREATE VIEW v AS SELECT a FROM t; INSERT INTO t VALUES (1)");
    run(&mut one, "BEGIN; SELECT * FROM v");
    run(&mut other, "CREATE TEMP TABLE z (i int); CREATE INDEX ON t (a); CREATE TABLE u (a int); DROP TABLE z");
    assert_eq!(ask(&mut one, "SELECT a FROM v"), ["1"]);
    run(&mut one, "COMMIT; BEGIN; SELECT * FROM v");
    run(&mut other, "CREATE OR REPLACE VIEW v AS SELECT a + 1 AS a FROM t");
    assert_eq!(fail(&mut one, "SELECT a FROM v").sqlstate(), "40001");
}

#[test]
fn a_unique_index_sees_the_rows_of_its_transaction() {
    let database = database();
    let mut one = database.connect().unwrap();
    run(&mut one, "BEGIN; CREATE TABLE t (a int); INSERT INTO t VALUES (1), (1)");
    assert_eq!(fail(&mut one, "CREATE UNIQUE INDEX ON t (a)").sqlstate(), "23505");
    run(&mut one, "ROLLBACK; BEGIN; CREATE TABLE t (a int); INSERT INTO t VALUES (1), (2)");
    run(&mut one, "CREATE UNIQUE INDEX ON t (a); COMMIT");
    assert_eq!(fail(&mut one, "INSERT INTO t VALUES (1)").sqlstate(), "23505");
}

#[test]
fn a_column_that_cannot_be_unique_is_not_added() {
    let database = database();
    let mut one = database.connect().unwrap();
    run(&mut one, "CREATE TABLE t (a int); INSERT INTO t VALUES (1), (2)");
    assert_eq!(fail(&mut one, "ALTER TABLE t ADD COLUMN b int DEFAULT 7 UNIQUE").sqlstate(), "23505");
    assert_eq!(fail(&mut one, "SELECT b FROM t").sqlstate(), "42703");
    run(&mut one, "ALTER TABLE t ADD COLUMN b int UNIQUE");
}

#[test]
fn rows_that_wait_for_commit_have_labels_that_are_there() {
    let database = database();
    let (mut one, mut other) = (database.connect().unwrap(), database.connect().unwrap());
    run(&mut one, "CREATE TYPE mood AS ENUM ('sad', 'ok'); CREATE TABLE p (m mood)");
    run(&mut one, "BEGIN; INSERT INTO p VALUES ('sad')");
    run(&mut other, "ALTER TYPE mood RENAME VALUE 'sad' TO 'blue'");
    assert!(matches!(fail(&mut one, "COMMIT").sqlstate(), "22P02" | "40001"));
    assert!(ask(&mut other, "SELECT m FROM p").is_empty());
}
