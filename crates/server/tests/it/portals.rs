//! Portals in SQL, and what parts of them are told.

use std::io::Write;

use crate::support::{Raw, config, field, message, start};

fn parse(sql: &str) -> Vec<u8> {
    message(b'P', format!("s\0{sql}\0\0\0").as_bytes())
}

fn bind(portal: &str) -> Vec<u8> {
    message(b'B', format!("{portal}\0s\0\0\0\0\0\0\0").as_bytes())
}

fn execute(portal: &str, rows_max: u8) -> Vec<u8> {
    message(b'E', &[portal.as_bytes(), &[0, 0, 0, 0, rows_max]].concat())
}

/// Values of first columns and command tags up to ReadyForQuery; the code of an error.
fn told(raw: &mut Raw) -> Vec<String> {
    let mut told = Vec::new();
    while let Some((letter, body)) = raw.receive() {
        match letter {
            b'D' => told.push(String::from_utf8(body[6..].to_vec()).unwrap()),
            b'C' => told.push(String::from_utf8(body[..body.len() - 1].to_vec()).unwrap()),
            b's' => told.push("suspended".into()),
            b'E' => told.push(field(&body, b'C').unwrap()),
            b'Z' => break,
            _ => {}
        }
    }
    told
}

fn ask(raw: &mut Raw, sql: &str) -> Vec<String> {
    raw.send(b'Q', format!("{sql}\0").as_bytes());
    told(raw)
}

fn sync(raw: &mut Raw, messages: &[Vec<u8>]) -> Vec<String> {
    raw.stream.write_all(&[messages.concat(), message(b'S', b"")].concat()).unwrap();
    told(raw)
}

#[test]
fn a_portal_is_fetched_and_moved_in_sql() {
    let server = start(&config());
    let (mut raw, _) = Raw::log_in(server.address());
    ask(&mut raw, "BEGIN");
    let series = "SELECT g FROM generate_series(1, 9) AS g ORDER BY g";
    assert_eq!(sync(&mut raw, &[parse(series), bind("p")]), Vec::<String>::new());
    assert_eq!(ask(&mut raw, "MOVE FORWARD 2 FROM p"), ["MOVE 2"]);
    assert_eq!(sync(&mut raw, &[execute("p", 2)]), ["3", "4", "suspended"]);
    assert_eq!(ask(&mut raw, "FETCH 1 FROM p"), ["5", "FETCH 1"]);
    let fetch = [message(b'P', b"f\0FETCH 2 FROM p\0\0\0"), message(b'B', b"q\0f\0\0\0\0\0\0\0"), execute("q", 0)];
    assert_eq!(sync(&mut raw, &fetch), ["6", "7", "FETCH 2"]);
    assert_eq!(sync(&mut raw, &[execute("p", 2)]), ["8", "9", "suspended"]);
    assert_eq!(sync(&mut raw, &[execute("p", 2)]), ["SELECT 0"]);
    assert_eq!(ask(&mut raw, "FETCH ALL FROM p"), ["FETCH 0"]);
    assert_eq!(ask(&mut raw, "CLOSE p"), ["CLOSE CURSOR"]);
    assert_eq!(ask(&mut raw, "FETCH 1 FROM p"), ["34000"]);
    ask(&mut raw, "ROLLBACK");
}

#[test]
fn a_part_of_a_portal_is_counted_by_itself() {
    let server = start(&config());
    let (mut raw, _) = Raw::log_in(server.address());
    let series = "SELECT g FROM generate_series(1, 5) AS g ORDER BY g";
    let parts = [parse(series), bind("p"), execute("p", 2), execute("p", 0)];
    assert_eq!(sync(&mut raw, &parts), ["1", "2", "suspended", "3", "4", "5", "SELECT 3"]);
}

#[test]
fn parameters_under_casts_are_told_as_the_casts_say() {
    let server = start(&config());
    let (mut raw, _) = Raw::log_in(server.address());
    ask(&mut raw, "CREATE TABLE t (u uuid)");
    for (sql, of) in [
        ("SELECT $1::uuid", 2950),
        ("SELECT * FROM t WHERE u = ANY($1::uuid[])", 2951),
        ("SELECT $1::json", 114),
        ("SELECT $1::jsonb", 3802),
        ("SELECT $1::text", 25),
        ("SELECT $1::text, $1::uuid", 25),
        ("SELECT $1::int", 23),
    ] {
        raw.stream
            .write_all(&[parse(sql), message(b'D', b"Ss\0"), message(b'C', b"Ss\0"), message(b'S', b"")].concat())
            .unwrap();
        let mut types = None;
        while let Some((letter, body)) = raw.receive() {
            match letter {
                b't' => types = Some(u32::from_be_bytes(body[2..6].try_into().unwrap())),
                b'E' => panic!("{sql}: {}", String::from_utf8_lossy(&body)),
                b'Z' => break,
                _ => {}
            }
        }
        assert_eq!(types, Some(of), "{sql}");
    }
}

#[test]
fn statements_of_names_have_their_own_tags() {
    let server = start(&config());
    let (mut raw, _) = Raw::log_in(server.address());
    ask(&mut raw, "CREATE TABLE t (a int)");
    ask(&mut raw, "PREPARE put AS INSERT INTO t VALUES ($1) RETURNING a");
    assert_eq!(ask(&mut raw, "EXECUTE put(7)"), ["7", "INSERT 0 1"]);
    raw.send(b'Q', b"SET TRANSACTION READ ONLY\0");
    let (letter, body) = raw.receive().unwrap();
    assert_eq!(
        (letter, field(&body, b'S').as_deref(), field(&body, b'C').as_deref()),
        (b'N', Some("WARNING"), Some("25P01"))
    );
    assert_eq!(told(&mut raw), ["SET"]);
    assert_eq!(ask(&mut raw, "ALTER TABLE t ADD COLUMN a int"), ["42701"]);
}

#[test]
fn a_fetch_that_waits_ends_with_its_time() {
    let server = start(&config());
    let (mut raw, _) = Raw::log_in(server.address());
    ask(&mut raw, "CREATE TABLE t (a int)");
    ask(&mut raw, "DECLARE c CURSOR FOR SUBSCRIBE t");
    ask(&mut raw, "SET statement_timeout = '200ms'");
    assert_eq!(ask(&mut raw, "FETCH 1 FROM c"), ["57014"]);
    assert_eq!(ask(&mut raw, "FETCH 1 FROM c WITH (timeout = '10ms')"), ["FETCH 0"]);
    assert_eq!(ask(&mut raw, "INSERT INTO t VALUES (1)"), ["INSERT 0 1"]);
    assert_eq!(ask(&mut raw, "FETCH 1 FROM c").last().map(String::as_str), Some("FETCH 1"));
}
