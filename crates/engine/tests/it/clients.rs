//! What each client has of its own: settings, prepared statements, cursors; and how long its
//! statements may run.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anabranch_engine::{Backend, Changes, Connection, ErrorKind, Outcome};

use crate::connections::{ask, database, fail, run};
use crate::support::{batch_lines, lines, whole};

fn names(outcome: &Outcome) -> Vec<String> {
    let Outcome::Rows(rows) = outcome else { panic!("{outcome:?}") };
    rows.schema.fields().iter().map(|field| field.name().clone()).collect()
}

/// The rows of a FETCH from a subscription, without their times.
fn fetched(connection: &mut Connection, sql: &str) -> Vec<String> {
    ask(connection, sql).iter().map(|line| line.split_once(' ').unwrap().1.to_owned()).collect()
}

#[test]
fn settings_statements_and_cursors_belong_to_a_connection() {
    let database = database();
    let (mut here, mut there) = (database.connect().unwrap(), database.connect().unwrap());
    run(&mut here, "SET application_name = 'here'; SET statement_timeout = '5s'; SET wait_for_sources = off");
    run(&mut here, "PREPARE p AS SELECT 1; DECLARE c CURSOR WITH HOLD FOR SELECT 2");
    assert_eq!(ask(&mut here, "SHOW application_name"), ["here"]);
    assert_eq!(ask(&mut there, "SHOW application_name"), [""]);
    assert_eq!(ask(&mut there, "SHOW statement_timeout"), ["0"]);
    assert_eq!(ask(&mut there, "SHOW wait_for_sources"), ["on"]);
    assert_eq!(fail(&mut there, "EXECUTE p").sqlstate(), "26000");
    assert_eq!(fail(&mut there, "FETCH c").sqlstate(), "34000");
    assert_eq!(ask(&mut here, "EXECUTE p"), ["1"]);
    assert_eq!(ask(&mut here, "FETCH c"), ["2"]);
    run(&mut here, "DISCARD ALL");
    assert_eq!(fail(&mut here, "EXECUTE p").sqlstate(), "26000");
    assert_eq!(ask(&mut here, "SHOW statement_timeout"), ["0"]);
    let all = ask(&mut here, "SHOW ALL");
    for line in ["batch_rows_max 65536", "client_encoding UTF8", "server_version 15.0", "timezone UTC"] {
        assert!(all.iter().any(|shown| shown.starts_with(line)), "{line}");
    }
}

#[test]
fn columns_are_known_before_statements_run() {
    let mut connection = database().connect().unwrap();
    run(&mut connection, "CREATE TABLE t (k int PRIMARY KEY, s text); PREPARE p AS SELECT s FROM t WHERE k = $1");
    run(&mut connection, "DECLARE c CURSOR WITH HOLD FOR SELECT k, s FROM t");
    let told = |connection: &mut Connection, sql: &str| {
        let prepared = connection.prepare(sql, &[]).unwrap();
        let columns = prepared
            .columns
            .map(|schema| schema.fields().iter().map(|field| field.name().clone()).collect::<Vec<_>>().join(","));
        (columns, prepared.tag)
    };
    assert_eq!(told(&mut connection, "EXECUTE p (1)"), (Some("s".into()), "SELECT"));
    assert_eq!(told(&mut connection, "FETCH c"), (Some("k,s".into()), "FETCH"));
    assert_eq!(told(&mut connection, "MOVE c"), (None, "MOVE"));
    assert_eq!(told(&mut connection, "SHOW statement_timeout"), (Some("statement_timeout".into()), "SHOW"));
    assert_eq!(told(&mut connection, "DECLARE d CURSOR FOR SELECT 1"), (None, "DECLARE CURSOR"));
    let upsert = "SUBSCRIBE t ENVELOPE UPSERT (KEY (k))";
    assert_eq!(told(&mut connection, upsert), (Some("time,state,k,s".into()), "SUBSCRIBE"));
}

#[test]
fn a_statement_that_takes_too_long_is_cancelled() {
    let database = database();
    let mut connection = database.connect().unwrap();
    run(&mut connection, "CREATE TABLE t (a int); INSERT INTO t SELECT unnest(generate_series(1, 20000))");
    run(&mut connection, "SET statement_timeout = 30");
    let begun = Instant::now();
    let error = fail(&mut connection, "SELECT count(*) FROM t AS x, t AS y, t AS z WHERE x.a + y.a + z.a = 7");
    assert_eq!((error.kind, error.sqlstate()), (ErrorKind::Cancelled, "57014"));
    assert!(error.message.contains("statement timeout"), "{error}");
    assert!(begun.elapsed() < Duration::from_secs(60), "{:?}", begun.elapsed());
    // The next statement has its own time.
    run(&mut connection, "SET statement_timeout = 0");
    assert_eq!(ask(&mut connection, "SELECT count(*) FROM t"), ["20000"]);
}

#[test]
fn cursors_follow_changes() {
    let database = database();
    let (mut here, mut there) = (database.connect().unwrap(), database.connect().unwrap());
    run(&mut here, "CREATE TABLE t (k int, s text); INSERT INTO t VALUES (1, 'a'), (2, 'b')");
    run(&mut here, "BEGIN; DECLARE c CURSOR FOR SUBSCRIBE t");
    assert_eq!(fetched(&mut here, "FETCH 1 c").len(), 1);
    assert_eq!(fetched(&mut here, "FETCH ALL c").len(), 1);
    assert_eq!(ask(&mut here, "FETCH ALL c WITH (timeout = '0s')"), [""; 0]);
    let begun = Instant::now();
    assert_eq!(ask(&mut here, "FETCH ALL c WITH (timeout = '50ms')"), [""; 0]);
    assert!(begun.elapsed() >= Duration::from_millis(50));
    // A FETCH that waits delays no other.
    let writer = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(30));
        run(&mut there, "INSERT INTO t VALUES (3, 'c')");
        there
    });
    assert_eq!(fetched(&mut here, "FETCH ALL c"), ["1 3 c"]);
    let mut there = writer.join().unwrap();
    assert_eq!(fail(&mut here, "FETCH PRIOR c").sqlstate(), "55000");
    run(&mut here, "COMMIT");
    assert_eq!(fail(&mut here, "FETCH c").sqlstate(), "34000");
    // Outside of a transaction it stays until it is closed.
    run(&mut here, "DECLARE c CURSOR FOR SUBSCRIBE (SELECT k FROM t WHERE k > 2) WITH (SNAPSHOT = false)");
    run(&mut there, "DELETE FROM t WHERE k = 3");
    assert_eq!(fetched(&mut here, "FETCH 10 c WITH (timeout = '5s')"), ["-1 3"]);
    run(&mut here, "CLOSE c");
    assert_eq!(fail(&mut here, "CLOSE c").sqlstate(), "34000");
}

#[test]
fn progress_comes_as_rows_of_its_own() {
    let mut connection = database().connect().unwrap();
    run(&mut connection, "CREATE TABLE t (k int); INSERT INTO t VALUES (1)");
    run(&mut connection, "DECLARE c CURSOR FOR SUBSCRIBE t WITH (PROGRESS)");
    let outcome = run(&mut connection, "FETCH 1 c").pop().unwrap();
    assert_eq!(names(&outcome), ["time", "progressed", "diff", "k"]);
    let mut seen = fetched(&mut connection, "FETCH ALL c WITH (timeout = '1s')");
    let Outcome::Rows(first) = outcome else { panic!() };
    seen.extend(lines(&first).iter().map(|line| line.split_once(' ').unwrap().1.to_owned()));
    assert!(seen.contains(&"false 1 1".to_owned()), "{seen:?}");
    assert!(seen.contains(&"true null null".to_owned()), "{seen:?}");
}

#[test]
fn an_envelope_tells_keys_by_their_new_rows() {
    let mut connection = database().connect().unwrap();
    run(&mut connection, "CREATE TABLE t (k int, s text, n int); INSERT INTO t VALUES (1, 'a', 10), (2, 'b', 20)");
    let subscribe = "SUBSCRIBE t ENVELOPE UPSERT (KEY (s, k))";
    let Some(Outcome::Subscription(changes)) = run(&mut connection, subscribe).pop() else { panic!() };
    let next = |connection: &mut Connection| match connection.next_changes(&changes, Duration::from_secs(10)).unwrap() {
        Changes::Rows(rows) => {
            let rows = whole(&rows);
            let mut lines: Vec<String> =
                batch_lines(&rows).iter().map(|line| line.split_once(' ').unwrap().1.to_owned()).collect();
            lines.sort();
            lines
        }
        other => panic!("{other:?}"),
    };
    assert_eq!(next(&mut connection), ["upsert a 1 10", "upsert b 2 20"]);
    run(&mut connection, "UPDATE t SET n = n + 1 WHERE k = 1");
    assert_eq!(next(&mut connection), ["upsert a 1 11"]);
    run(&mut connection, "DELETE FROM t WHERE k = 2");
    assert_eq!(next(&mut connection), ["delete b 2 null"]);
    run(&mut connection, "INSERT INTO t VALUES (1, 'a', 12), (1, 'a', 13)");
    assert_eq!(next(&mut connection), ["key_violation a 1 null"]);
    assert_eq!(fail(&mut connection, "SUBSCRIBE t ENVELOPE UPSERT (KEY (z))").sqlstate(), "42703");
    assert_eq!(fail(&mut connection, "SUBSCRIBE t ENVELOPE DEBEZIUM (KEY (k))").sqlstate(), "0A000");
}

#[test]
fn who_may_only_read_sets_what_is_its_own() {
    let database = database();
    let mut connection = database.connect().unwrap();
    connection.forbid_writes();
    for sql in ["SET memory_limit = '1MB'", "SET Sharing = off", "RESET retain_history", "SET batch_rows_max = 10"] {
        assert_eq!(fail(&mut connection, sql).sqlstate(), "42501", "{sql}");
    }
    assert_eq!(ask(&mut connection, "SHOW memory_limit"), ["off"]);
    run(&mut connection, "SET statement_timeout = '5s'; SET subscribe_overflow = 'error'");
    assert_eq!(ask(&mut connection, "SHOW subscribe_overflow"), ["error"]);
}

#[test]
fn who_may_only_read_moves_no_sequence() {
    let database = database();
    let (mut writer, mut reader) = (database.connect().unwrap(), database.connect().unwrap());
    run(&mut writer, "CREATE SEQUENCE s; CREATE TABLE t (a int)");
    reader.forbid_writes();
    let moving = [
        "SELECT nextval('s')",
        "SELECT a FROM t WHERE a < (SELECT pg_catalog.setval('s', 5))",
        "PREPARE p AS SELECT nextval('s')",
        "COPY (SELECT nextval('s')) TO STDOUT",
    ];
    for sql in moving {
        assert_eq!(fail(&mut reader, sql).sqlstate(), "25006", "{sql}");
        let sql = if sql.starts_with("PREPARE") { format!("{sql}; EXECUTE p") } else { sql.to_owned() };
        assert_eq!(fail(&mut writer, &format!("BEGIN READ ONLY; {sql}")).sqlstate(), "25006", "{sql}");
        run(&mut writer, "ROLLBACK");
    }
    assert_eq!(ask(&mut writer, "SELECT nextval('s')"), ["1"]);
    assert_eq!(ask(&mut reader, "SELECT last_value FROM s"), ["1"]);
}

#[test]
fn one_who_may_only_read_ends_clients_of_its_own_user() {
    let database = database();
    let client = |pid: i32, user: &str| {
        let mut connection = database.connect().unwrap();
        let backend = Backend::new(pid, None, connection.interrupt(), || ());
        backend.is_user(user);
        connection.appear(Arc::new(backend));
        connection
    };
    let (mut reader, _twin, mut other) = (client(1, "ann"), client(2, "ann"), client(3, "ben"));
    reader.forbid_writes();
    for refused in ["SELECT pg_cancel_backend(3)", "SELECT pg_terminate_backend(3)"] {
        assert_eq!(fail(&mut reader, refused).sqlstate(), "42501");
    }
    assert_eq!(ask(&mut reader, "SELECT pg_terminate_backend(2), pg_cancel_backend(9)"), ["true false"]);
    assert_eq!(ask(&mut other, "SELECT pg_cancel_backend(1)"), ["true"]);
}

/// A server looks at a subscription again and again: to the client that cancels, that is one wait.
#[test]
fn an_interrupt_between_two_waits_ends_the_next_one() {
    let database = database();
    let (mut one, mut other) = (database.connect().unwrap(), database.connect().unwrap());
    run(&mut other, "CREATE TABLE t (a bigint)");
    let Some(Outcome::Subscription(changes)) = run(&mut one, "SUBSCRIBE t").pop() else { panic!("it subscribes") };
    let soon = Duration::from_millis(10);
    assert!(matches!(one.next_changes(&changes, soon), Ok(Changes::Nothing)));
    one.interrupt().trigger();
    assert_eq!(one.next_changes(&changes, Duration::from_secs(10)).unwrap_err().kind, ErrorKind::Cancelled);
    // The subscription goes on.
    assert!(matches!(one.next_changes(&changes, soon), Ok(Changes::Nothing)));
    run(&mut other, "INSERT INTO t VALUES (7)");
    let Ok(Changes::Rows(rows)) = one.next_changes(&changes, Duration::from_secs(10)) else { panic!("a row came") };
    let rows = whole(&rows);
    assert_eq!(batch_lines(&rows).len(), 1);
}
