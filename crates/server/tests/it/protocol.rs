//! What messages are answered with, message by message.

use std::time::{Duration, Instant};

use anabranch_server::{Config, Limits, Server};

use crate::support::{Raw, config, field, message, start};

fn started() -> Server {
    start(&config())
}

#[test]
fn a_simple_query_is_answered_in_order() {
    let server = started();
    let (mut raw, _) = Raw::log_in(server.address());
    assert_eq!(raw.query("CREATE TABLE t (a int)").0, "CZ");
    assert_eq!(raw.query("INSERT INTO t VALUES (1), (2)").0, "CZ");
    assert_eq!(raw.query("SELECT a FROM t").0, "TDDCZ");
    assert_eq!(raw.query("").0, "IZ");
    assert_eq!(raw.query("SELECT 1; SELECT 2").0, "TDCTDCZ");
    assert_eq!(raw.query("COMMIT").0, "NCZ");
}

#[test]
fn an_error_skips_the_rest_of_a_simple_query() {
    let server = started();
    let (mut raw, _) = Raw::log_in(server.address());
    assert_eq!(raw.query("SELECT 1; SELECT 1 / 0; SELECT 2"), ("TDCEZ".into(), Some("22012".into())));
    assert_eq!(raw.query("SELECT x FROM nowhere").1.as_deref(), Some("42P01"));
    assert_eq!(raw.query("SELEC 1").1.as_deref(), Some("42601"));
}

#[test]
fn statements_of_one_simple_query_are_one_transaction() {
    let server = started();
    let (mut raw, _) = Raw::log_in(server.address());
    raw.query("CREATE TABLE t (a int PRIMARY KEY)");
    assert_eq!(raw.query("INSERT INTO t VALUES (1); SELECT 1 / 0").1.as_deref(), Some("22012"));
    assert_eq!(raw.query("SELECT a FROM t").0, "TCZ");
    assert_eq!(raw.query("INSERT INTO t VALUES (1); INSERT INTO t VALUES (2)").0, "CCZ");
    assert_eq!(raw.query("SELECT a FROM t").0, "TDDCZ");
}

#[test]
fn the_state_of_the_transaction_is_told() {
    let server = started();
    let (mut raw, _) = Raw::log_in(server.address());
    let state = |raw: &mut Raw, sql: &str| {
        raw.send(b'Q', format!("{sql}\0").as_bytes());
        loop {
            let (letter, body) = raw.receive().unwrap();
            if letter == b'Z' {
                return body[0];
            }
        }
    };
    assert_eq!(state(&mut raw, "BEGIN"), b'T');
    assert_eq!(state(&mut raw, "SELECT 1 / 0"), b'E');
    assert_eq!(raw.query("SELECT 1").1.as_deref(), Some("25P02"));
    assert_eq!(state(&mut raw, "ROLLBACK"), b'I');
}

#[test]
fn a_portal_gives_its_rows_in_parts() {
    let server = started();
    let (mut raw, _) = Raw::log_in(server.address());
    let mut sent = message(b'P', b"s\0SELECT * FROM (VALUES (1), (2), (3)) AS v(a)\0\0\0");
    sent.extend(message(b'D', b"Ss\0"));
    sent.extend(message(b'B', b"p\0s\0\0\0\0\0\0\0"));
    for _ in 0..3 {
        sent.extend(message(b'E', b"p\0\0\0\0\x02"));
    }
    sent.extend(message(b'C', b"Pp\0"));
    sent.extend(message(b'S', b""));
    use std::io::Write;
    raw.stream.write_all(&sent).unwrap();
    assert_eq!(raw.letters().0, "1tT2DDsDCC3Z");
}

#[test]
fn an_error_skips_up_to_sync() {
    let server = started();
    let (mut raw, _) = Raw::log_in(server.address());
    raw.send(b'P', b"\0SELECT x FROM nowhere\0\0\0");
    raw.send(b'B', b"\0\0\0\0\0\0\0\0");
    raw.send(b'E', b"\0\0\0\0\0");
    raw.send(b'S', b"");
    assert_eq!(raw.letters(), ("EZ".into(), Some("42P01".into())));
    assert_eq!(raw.query("SELECT 1").0, "TDCZ");
    raw.send(b'B', b"\0unknown\0\0\0\0\0\0\0");
    raw.send(b'S', b"");
    assert_eq!(raw.letters(), ("EZ".into(), Some("26000".into())));
}

#[test]
fn a_cancel_request_stops_a_subscription() {
    let server = started();
    let (mut raw, key) = Raw::log_in(server.address());
    raw.query("CREATE TABLE t (a int)");
    raw.query("INSERT INTO t VALUES (7)");
    raw.send(b'Q', b"SUBSCRIBE t\0");
    assert_eq!(raw.receive().unwrap().0, b'T');
    assert_eq!(raw.receive().unwrap().0, b'D');
    let mut wrong = key.clone();
    wrong[7] ^= 1;
    Raw::connect(server.address()).first(80_877_102, &wrong);
    std::thread::sleep(Duration::from_millis(100));
    Raw::connect(server.address()).first(80_877_102, &key);
    let (letters, code) = raw.letters();
    assert_eq!((letters.as_str(), code.as_deref()), ("EZ", Some("57014")));
    assert_eq!(raw.query("SELECT a FROM t").0, "TDCZ");
}

#[test]
fn system_relations_are_subscribed_to() {
    let server = started();
    let (mut reader, _) = Raw::log_in(server.address());
    let (mut writer, _) = Raw::log_in(server.address());
    reader.send(b'Q', b"SUBSCRIBE (SELECT relname FROM pg_class WHERE relkind = 'r')\0");
    assert_eq!(reader.receive().unwrap().0, b'T');
    writer.query("CREATE TABLE t (a int)");
    let (letter, row) = reader.receive().unwrap();
    assert_eq!((letter, row.ends_with(b"\0\0\0\x01t")), (b'D', true));
    writer.query("DECLARE c CURSOR FOR SUBSCRIBE (SELECT relname FROM pg_class WHERE relkind = 'r')");
    assert_eq!(writer.query("FETCH 1 c WITH (timeout = '5s')").0, "TDCZ");
}

#[test]
fn others_go_on_while_one_subscribes() {
    let server = started();
    let (mut reader, _) = Raw::log_in(server.address());
    let (mut writer, _) = Raw::log_in(server.address());
    writer.query("CREATE TABLE t (a int)");
    reader.send(b'Q', b"SUBSCRIBE t\0");
    assert_eq!(reader.receive().unwrap().0, b'T');
    for n in 0..20 {
        let started = Instant::now();
        assert_eq!(writer.query(&format!("INSERT INTO t VALUES ({n})")).0, "CZ");
        assert!(started.elapsed() < Duration::from_secs(5));
        assert_eq!(reader.receive().unwrap().0, b'D');
    }
}

#[test]
fn too_many_clients_are_turned_away() {
    let server = start(&Config { limits: Limits { connections: 2, drain_s: 1, ..Limits::default() }, ..config() });
    let (mut first, _) = Raw::log_in(server.address());
    let _second = Raw::log_in(server.address());
    let mut third = Raw::connect(server.address());
    third.first(196_608, b"user\0ann\0\0");
    let (letter, body) = third.receive().unwrap();
    assert_eq!((letter, field(&body, b'C').as_deref()), (b'E', Some("53300")));
    assert_eq!(first.query("SELECT 1").0, "TDCZ");
}

#[test]
fn an_idle_client_is_told_and_ended() {
    let server = start(&Config { limits: Limits { idle_s: 1, ..Limits::default() }, ..config() });
    let (mut raw, _) = Raw::log_in(server.address());
    let (letter, body) = raw.receive().unwrap();
    assert_eq!((letter, field(&body, b'C').as_deref()), (b'E', Some("57P05")));
    assert_eq!(raw.receive(), None);
}

#[test]
fn the_end_of_the_server_is_told() {
    let server = started();
    let (mut idle, _) = Raw::log_in(server.address());
    let (mut busy, _) = Raw::log_in(server.address());
    busy.query("CREATE TABLE t (a int)");
    busy.query("BEGIN");
    let (mut follows, _) = Raw::log_in(server.address());
    follows.send(b'Q', b"SUBSCRIBE t\0");
    assert_eq!(follows.receive().unwrap().0, b'T');
    let address = server.address();
    let ending = std::thread::spawn(move || server.stop());
    let (letter, body) = idle.receive().unwrap();
    assert_eq!((letter, field(&body, b'C').as_deref()), (b'E', Some("57P01")));
    assert_eq!(busy.query("SELECT 1").0, "TDCZ");
    assert_eq!(busy.query("COMMIT").0, "CZ");
    assert_eq!(busy.receive().map(|(letter, _)| letter), Some(b'E'));
    while follows.receive().is_some() {}
    ending.join().unwrap();
    assert!(std::net::TcpStream::connect(address).is_err());
}

#[test]
fn settings_are_asked_for_in_the_first_message() {
    let server = start(&config());
    let begin = |parameters: &[u8]| {
        let mut raw = Raw::connect(server.address());
        raw.first(196_608, &[b"user\0ann\0", parameters, b"\0"].concat());
        let (letters, code) = raw.letters();
        (raw, letters, code)
    };
    let shown = |raw: &mut Raw, name: &str| {
        raw.send(b'Q', format!("SHOW {name}\0").as_bytes());
        assert_eq!(raw.receive().unwrap().0, b'T');
        let (_, row) = raw.receive().unwrap();
        raw.letters();
        String::from_utf8_lossy(&row[6..]).into_owned()
    };
    let (mut raw, letters, _) = begin(b"options\0-c statement_timeout=5s\0application_name\0tests\0");
    assert!(letters.ends_with('Z') && !letters.contains('N'), "{letters}");
    assert_eq!(
        (shown(&mut raw, "statement_timeout").as_str(), shown(&mut raw, "application_name").as_str()),
        ("5s", "tests")
    );
    // What a client says of its machine is not an error.
    let (mut raw, letters, code) = begin(b"TimeZone\0Europe/Berlin\0statement_timeout\x002s\0");
    assert!(letters.ends_with('Z') && letters.contains('N') && code.is_none(), "{letters} {code:?}");
    assert_eq!(shown(&mut raw, "statement_timeout"), "2s");
    for wrong in [&b"options\0-c nothing=1\0"[..], b"options\0-c statement_timeout=abc\0", b"options\0-x\0"] {
        let (_, letters, code) = begin(wrong);
        assert!(letters.ends_with('E') && code.is_some(), "{letters}");
    }
}
