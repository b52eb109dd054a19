//! Statements up to Sync are one transaction.

use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use anabranch_server::Server;

use crate::support::{Raw, config, message, start};

fn started(tables: &str) -> (Server, Raw) {
    let server = start(&config());
    let (mut raw, _) = Raw::log_in(server.address());
    assert_eq!(raw.query(tables).1, None);
    (server, raw)
}

/// The messages of statements, each parsed, bound and run.
fn pipeline(statements: &[&str]) -> Vec<u8> {
    let mut sent = Vec::new();
    for statement in statements {
        sent.extend(message(b'P', format!("\0{statement}\0\0\0").as_bytes()));
        sent.extend(message(b'B', b"\0\0\0\0\0\0\0\0"));
        sent.extend(message(b'E', b"\0\0\0\0\0"));
    }
    sent
}

/// Sends statements and Sync at once; the answer's letters, and the code of an error.
fn sync(raw: &mut Raw, statements: &[&str]) -> (String, Option<String>) {
    let mut sent = pipeline(statements);
    sent.extend(message(b'S', b""));
    raw.stream.write_all(&sent).unwrap();
    raw.letters()
}

/// The values of the first column.
fn values(raw: &mut Raw, sql: &str) -> Vec<String> {
    raw.send(b'Q', format!("{sql}\0").as_bytes());
    let mut values = Vec::new();
    while let Some((letter, body)) = raw.receive() {
        match letter {
            b'D' => values.push(String::from_utf8(body[6..].to_vec()).unwrap()),
            b'Z' => return values,
            b'E' => panic!("{sql}: {}", String::from_utf8_lossy(&body)),
            _ => {}
        }
    }
    panic!("the server has gone")
}

#[test]
fn a_pipeline_is_whole_or_not_at_all() {
    let (_server, mut raw) = started("CREATE TABLE t (a int PRIMARY KEY, v int)");
    let put = ["INSERT INTO t VALUES (1, 1)", "INSERT INTO t VALUES (2, 2)", "UPDATE t SET v = v + 10 WHERE a = 1"];
    assert_eq!(sync(&mut raw, &put), ("12C12C12CZ".into(), None));
    assert_eq!(values(&mut raw, "SELECT v FROM t ORDER BY a"), ["11", "2"]);
    // An error takes back what came before it, and skips what follows up to Sync.
    let fails = ["DELETE FROM t WHERE a = 1", "INSERT INTO t VALUES (2, 0)", "INSERT INTO t VALUES (3, 3)"];
    assert_eq!(sync(&mut raw, &fails), ("12C12EZ".into(), Some("23505".into())));
    let fails = ["INSERT INTO t VALUES (4, 4)", "SELECT x FROM nowhere"];
    assert_eq!(sync(&mut raw, &fails), ("12CEZ".into(), Some("42P01".into())));
    assert_eq!(values(&mut raw, "SELECT v FROM t ORDER BY a"), ["11", "2"]);
    // What is made is a part of it, and what it has written is read.
    let made = ["CREATE TABLE u (x int)", "INSERT INTO u VALUES (5)", "SELECT x FROM u", "SELECT 1 / (x - 5) FROM u"];
    assert_eq!(sync(&mut raw, &made), ("12C12C12DC12EZ".into(), Some("22012".into())));
    assert_eq!(raw.query("SELECT x FROM u").1.as_deref(), Some("42P01"));
    assert_eq!(sync(&mut raw, &made[..3]), ("12C12C12DCZ".into(), None));
    assert_eq!(values(&mut raw, "SELECT x FROM u"), ["5"]);
}

#[test]
fn statements_that_stand_alone_and_explicit_transactions_end_a_pipeline() {
    let (_server, mut raw) = started("CREATE TABLE t (a int PRIMARY KEY)");
    let alone = ["INSERT INTO t VALUES (1)", "ALTER TABLE t ADD COLUMN b int", "INSERT INTO t VALUES (1, 1)"];
    assert_eq!(sync(&mut raw, &alone).1.as_deref(), Some("23505"));
    assert_eq!(sync(&mut raw, &["INSERT INTO t VALUES (2)", "BEGIN", "INSERT INTO t VALUES (3)"]).1, None);
    assert_eq!(sync(&mut raw, &["INSERT INTO t VALUES (4)", "SELECT 1"]).1, None);
    assert_eq!(raw.query("ROLLBACK").0, "CZ");
    assert_eq!(values(&mut raw, "SELECT a FROM t ORDER BY a"), ["1", "2"]);
    // An explicit transaction in a pipeline is what it says.
    let own = ["BEGIN", "INSERT INTO t VALUES (5)", "ROLLBACK", "BEGIN", "INSERT INTO t VALUES (6)", "COMMIT"];
    assert_eq!(sync(&mut raw, &own), ("12C12C12C12C12C12CZ".into(), None));
    assert_eq!(values(&mut raw, "SELECT a FROM t ORDER BY a"), ["1", "2", "6"]);
}

#[test]
fn flush_is_answered_before_sync() {
    let (_server, mut raw) = started("CREATE TABLE t (a int PRIMARY KEY)");
    let mut sent = pipeline(&["INSERT INTO t VALUES (1)", "INSERT INTO t VALUES (2)"]);
    sent.extend(message(b'H', b""));
    raw.stream.write_all(&sent).unwrap();
    let told: String = (0..6).map(|_| char::from(raw.receive().unwrap().0)).collect();
    assert_eq!(told, "12C12C");
    // Others see nothing before Sync; a client that leaves takes its pipeline with it.
    let (mut other, _) = Raw::log_in(_server.address());
    assert!(values(&mut other, "SELECT a FROM t").is_empty());
    drop(raw);
    assert_eq!(sync(&mut other, &["INSERT INTO t VALUES (2)"]).1, None);
    assert_eq!(values(&mut other, "SELECT a FROM t"), ["2"]);
}

#[test]
fn an_error_is_told_before_sync() {
    let (_server, mut raw) = started("CREATE TABLE t (a int PRIMARY KEY)");
    raw.stream.write_all(&pipeline(&["INSERT INTO t VALUES (1)", "SELECT a / 0 FROM t"])).unwrap();
    let told: String = (0..6).map(|_| char::from(raw.receive().unwrap().0)).collect();
    assert_eq!(told, "12C12E");
    raw.send(b'S', b"");
    assert_eq!(raw.letters().0, "Z");
    assert!(values(&mut raw, "SELECT a FROM t").is_empty());
}

#[test]
fn pipelines_that_meet_run_again() {
    let (server, mut raw) = started(
        "CREATE TABLE t (a int PRIMARY KEY, v int); INSERT INTO t SELECT i, 0 FROM generate_series(1, 4) AS g(i);
         CREATE TABLE log (n int)",
    );
    let is_over = Arc::new(AtomicBool::new(false));
    let others: Vec<_> = (0..3)
        .map(|_| {
            let (address, is_over) = (server.address(), Arc::clone(&is_over));
            thread::spawn(move || {
                let (mut raw, _) = Raw::log_in(address);
                let mut n_done = 0_i64;
                while !is_over.load(Ordering::SeqCst) {
                    let add = ["UPDATE t SET v = v + 1 WHERE a = 1", "UPDATE t SET v = v - 1 WHERE a = 2"];
                    match sync(&mut raw, &add) {
                        (letters, None) => {
                            assert_eq!(letters, "12C12CZ");
                            n_done += 1;
                        }
                        (_, code) => assert_eq!(code.as_deref(), Some("40001")),
                    }
                }
                n_done
            })
        })
        .collect();
    let mut n_done = 0_i64;
    for round in 0..200 {
        let log = format!("INSERT INTO log VALUES ({round})");
        let add = [
            "UPDATE t SET v = v + 1 WHERE a = 2",
            log.as_str(),
            "SELECT v FROM t WHERE a = 1",
            "UPDATE t SET v = v - 1 WHERE a = 1",
        ];
        match sync(&mut raw, &add) {
            (letters, None) => {
                assert_eq!(letters, "12C12C12DC12CZ");
                n_done += 1;
            }
            (_, code) => assert_eq!(code.as_deref(), Some("40001")),
        }
    }
    is_over.store(true, Ordering::SeqCst);
    let others: i64 = others.into_iter().map(|other| other.join().unwrap()).sum();
    println!("{n_done} of 200 pipelines, beside {others}");
    assert!(n_done > 100, "pipelines that meet give up: {n_done} of 200");
    let expected = [others - n_done, n_done - others].map(|v| v.to_string());
    assert_eq!(values(&mut raw, "SELECT v FROM t WHERE a <= 2 ORDER BY a"), expected);
    assert_eq!(values(&mut raw, "SELECT count(*) FROM log"), [n_done.to_string()]);
}
