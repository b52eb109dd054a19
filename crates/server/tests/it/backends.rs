//! Clients as other clients see them.

use std::time::{Duration, Instant};

use crate::support::{Raw, config, field, start};

/// The first column of an answer.
fn values(raw: &mut Raw, sql: &str) -> Vec<String> {
    raw.send(b'Q', format!("{sql}\0").as_bytes());
    let mut values = Vec::new();
    while let Some((letter, body)) = raw.receive() {
        match letter {
            b'D' => values.push(String::from_utf8(body[6..].to_vec()).unwrap()),
            b'E' => panic!("{sql}: {}", String::from_utf8_lossy(&body)),
            b'Z' => break,
            _ => {}
        }
    }
    values
}

#[test]
fn clients_are_listed_cancelled_and_ended() {
    let server = start(&config());
    let (mut one, key) = Raw::log_in(server.address());
    let (mut other, _) = Raw::log_in(server.address());
    let pid = i32::from_be_bytes(key[..4].try_into().unwrap());
    assert_eq!(values(&mut one, "SELECT pg_backend_pid()"), [pid.to_string()]);
    let told =
        "usename || '|' || datname || '|' || state || '|' || query || '|' || application_name || '|' || client_addr";
    one.query("SET application_name = 'counter'");
    let listed = values(&mut other, &format!("SELECT {told} FROM pg_stat_activity WHERE pid = {pid}"));
    assert_eq!(listed, ["ann|anabranch|idle|SET application_name = 'counter'|counter|127.0.0.1"]);
    let times = "backend_start <= query_start AND query_start <= now() + interval '1 min'";
    assert_eq!(values(&mut other, &format!("SELECT {times} FROM pg_stat_activity WHERE pid = {pid}")), ["t"]);
    // A subscription waits until it is cancelled.
    one.query("CREATE TABLE t (a int)");
    one.send(b'Q', b"SUBSCRIBE t\0");
    assert_eq!(one.receive().unwrap().0, b'T');
    let deadline = Instant::now() + Duration::from_secs(10);
    let active = format!("SELECT state FROM pg_stat_activity WHERE pid = {pid}");
    while values(&mut other, &active) != ["active"] {
        assert!(Instant::now() < deadline);
    }
    assert_eq!(values(&mut other, &format!("SELECT pg_cancel_backend({pid})")), ["t"]);
    assert_eq!(one.letters(), ("EZ".into(), Some("57014".into())));
    assert_eq!(values(&mut other, "SELECT pg_cancel_backend(-5)"), ["f"]);
    assert_eq!(values(&mut other, &format!("SELECT pg_terminate_backend({pid})")), ["t"]);
    let (letter, body) = one.receive().unwrap();
    assert_eq!((letter, field(&body, b'C').as_deref()), (b'E', Some("57P01")));
    assert!(one.receive().is_none());
    while !values(&mut other, &active).is_empty() {
        assert!(Instant::now() < deadline);
    }
    // One that works is ended as well.
    let (mut third, key) = Raw::log_in(server.address());
    let pid = i32::from_be_bytes(key[..4].try_into().unwrap());
    third.send(b'Q', b"SUBSCRIBE t\0");
    assert_eq!(third.receive().unwrap().0, b'T');
    assert_eq!(values(&mut other, &format!("SELECT pg_terminate_backend({pid})")), ["t"]);
    while third.receive().is_some() {}
}
