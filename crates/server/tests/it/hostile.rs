//! Clients that send what they should not, or do not read: no other client notices.
//!
//! Random messages come from a generator of our own: it knows the messages, needs no library and no
//! instrumented build, and `SEED` replays a run. `ROUNDS=n` runs n times as many (`make soak`).

use std::io::{Read, Write};
use std::time::{Duration, Instant};

use anabranch_server::{Config, Limits};

use crate::support::{Raw, config, field, message, start};

/// A generator of numbers (splitmix64); `SEED` in the environment replays a run.
struct Random(u64);

impl Random {
    fn new() -> Random {
        let seed = std::env::var("SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(1);
        eprintln!("SEED={seed}");
        Random(seed)
    }

    fn next(&mut self, below: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) % below as u64) as usize
    }

    fn bytes(&mut self, n_max: usize) -> Vec<u8> {
        let n_bytes = self.next(n_max);
        (0..n_bytes).map(|_| self.next(256) as u8).collect()
    }
}

/// How many times as much is tried.
fn rounds() -> usize {
    std::env::var("ROUNDS").ok().and_then(|rounds| rounds.parse().ok()).unwrap_or(1)
}

/// Messages as a client would send them.
fn proper(random: &mut Random) -> Vec<u8> {
    match random.next(9) {
        0 => message(b'Q', b"SELECT 1\0"),
        1 => message(b'P', b"s\0SELECT 1\0\0\0"),
        2 => message(b'B', b"\0s\0\0\0\0\0\0\0"),
        3 => message(b'D', b"Ss\0"),
        4 => message(b'E', b"\0\0\0\0\0"),
        5 => message(b'C', b"Ss\0"),
        6 => message(b'S', b""),
        7 => message(b'H', b""),
        _ => message(b'd', b"1\tx\n"),
    }
}

/// Messages with some bytes changed, cut off, or made up.
fn improper(random: &mut Random) -> Vec<u8> {
    let mut bytes: Vec<u8> = (0..random.next(6) + 1).flat_map(|_| proper(random)).collect();
    match random.next(4) {
        0 => bytes.truncate(random.next(bytes.len())),
        1 => {
            let at = random.next(bytes.len());
            bytes[at] = random.next(256) as u8;
        }
        2 => bytes.extend(random.bytes(64)),
        _ => {
            let letter = b"QPBDECSHXdcfpF"[random.next(14)];
            let body = random.bytes(64);
            bytes.extend(message(letter, &body));
        }
    }
    bytes
}

#[test]
fn random_messages_harm_nobody() {
    let server = start(&config());
    let (mut other, _) = Raw::log_in(server.address());
    let mut random = Random::new();
    for round in 0..300 * rounds() {
        let mut raw = match random.next(5) {
            0 => Raw::connect(server.address()),
            _ => Raw::log_in(server.address()).0,
        };
        let bytes = improper(&mut random);
        // (The server may have hung up meanwhile.)
        let _ = raw.stream.write_all(&bytes);
        let _ = raw.stream.shutdown(std::net::Shutdown::Write);
        let mut rest = Vec::new();
        let _ = raw.stream.read_to_end(&mut rest);
        if round % 20 == 0 {
            assert_eq!(other.query("SELECT 1").0, "TDCZ", "after round {round}");
        }
    }
    drop(other);
    let deadline = Instant::now() + Duration::from_secs(10);
    while server.clients() > 0 {
        assert!(Instant::now() < deadline, "{} clients hang", server.clients());
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn a_long_message_is_refused_before_it_comes() {
    let server = start(&Config { limits: Limits { message_bytes_max: 1000, ..Limits::default() }, ..config() });
    let (mut raw, _) = Raw::log_in(server.address());
    raw.stream.write_all(&[b'Q', 0x7f, 0xff, 0xff, 0xff]).unwrap();
    let (letter, body) = raw.receive().unwrap();
    assert_eq!((letter, field(&body, b'C').as_deref()), (b'E', Some("54000")));
    assert_eq!(raw.receive(), None);
}

#[test]
fn a_client_that_says_nothing_is_ended() {
    let limits = Limits { login_s: 1, message_s: 1, ..Limits::default() };
    let server = start(&Config { limits, ..config() });
    let mut silent = Raw::connect(server.address());
    let (mut half, _) = Raw::log_in(server.address());
    half.stream.write_all(b"Q\0\0").unwrap();
    assert_eq!(field(&silent.receive().unwrap().1, b'C').as_deref(), Some("08006"));
    assert_eq!(field(&half.receive().unwrap().1, b'C').as_deref(), Some("08006"));
}

#[test]
fn a_client_that_does_not_read_is_ended() {
    let server = start(&Config { limits: Limits { write_s: 1, ..Limits::default() }, ..config() });
    let (mut other, _) = Raw::log_in(server.address());
    let (mut slow, _) = Raw::log_in(server.address());
    slow.send(b'Q', b"SELECT repeat('x', 1000) FROM generate_series(1, 50000)\0");
    let deadline = Instant::now() + Duration::from_secs(30);
    while server.clients() > 1 {
        assert!(Instant::now() < deadline, "the slow client is still there");
        assert_eq!(other.query("SELECT 1").0, "TDCZ");
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn prepared_statements_are_bounded() {
    let server = start(&Config { limits: Limits { statements_max: 10, ..Limits::default() }, ..config() });
    let (mut raw, _) = Raw::log_in(server.address());
    for n in 0..11 {
        raw.send(b'P', format!("s{n}\0SELECT {n}\0\0\0").as_bytes());
    }
    raw.send(b'S', b"");
    assert_eq!(raw.letters(), ("1111111111EZ".into(), Some("54000".into())));
    raw.send(b'C', b"Ss0\0");
    raw.send(b'P', b"again\0SELECT 1\0\0\0");
    raw.send(b'S', b"");
    assert_eq!(raw.letters().0, "31Z");
}

#[test]
fn many_prepared_statements_are_kept_apart() {
    let server = start(&config());
    let (mut raw, _) = Raw::log_in(server.address());
    let n_statements = (500 * rounds()).min(100_000);
    for from in (0..n_statements).step_by(100) {
        for n in from..from + 100 {
            raw.send(b'P', format!("s{n}\0SELECT {n}\0\0\0").as_bytes());
        }
        raw.send(b'S', b"");
        assert_eq!(raw.letters().1, None);
    }
    for n in [0, n_statements / 2, n_statements - 1] {
        raw.send(b'B', format!("\0s{n}\0\0\0\0\0\0\0").as_bytes());
        raw.send(b'E', b"\0\0\0\0\0");
        raw.send(b'S', b"");
        assert_eq!(raw.receive().unwrap().0, b'2');
        let (_, row) = raw.receive().unwrap();
        assert!(row.ends_with(n.to_string().as_bytes()), "statement {n} gave {row:?}");
        assert_eq!(raw.letters().0, "CZ");
    }
}

#[test]
fn half_open_clients_are_ended_and_others_served() {
    let server = start(&Config { limits: Limits { login_s: 1, ..Limits::default() }, ..config() });
    let silent: Vec<Raw> = (0..100).map(|_| Raw::connect(server.address())).collect();
    let (mut raw, _) = Raw::log_in(server.address());
    assert_eq!(raw.query("SELECT 1").0, "TDCZ");
    for mut raw in silent {
        assert_eq!(field(&raw.receive().unwrap().1, b'C').as_deref(), Some("08006"));
    }
}

#[test]
fn a_subscription_of_an_idle_table_is_cancelled_at_once() {
    let server = start(&config());
    let (mut raw, key) = Raw::log_in(server.address());
    raw.query("CREATE TABLE t (a int)");
    raw.send(b'Q', b"SUBSCRIBE t\0");
    assert_eq!(raw.receive().unwrap().0, b'T');
    std::thread::sleep(Duration::from_millis(300));
    let asked = Instant::now();
    Raw::connect(server.address()).first(80_877_102, &key);
    assert_eq!(raw.letters().1.as_deref(), Some("57014"));
    // (A wait without a wake lasts a second.)
    assert!(asked.elapsed() < Duration::from_millis(700), "{:?}", asked.elapsed());
}

#[test]
fn many_idle_clients_are_served_beside_each_other() {
    let server = start(&config());
    let mut clients: Vec<Raw> = (0..100).map(|_| Raw::log_in(server.address()).0).collect();
    assert_eq!(server.clients(), 100);
    for raw in clients.iter_mut().step_by(10) {
        assert_eq!(raw.query("SELECT 1").0, "TDCZ");
    }
}

#[test]
fn a_query_that_cannot_be_read_is_answered_as_any_other() {
    let server = start(&config());
    let (mut raw, _) = Raw::log_in(server.address());
    for bytes in [&b"SELECT '\xff\xfe'\0"[..], b"SELECT 1\0 AND MORE\0", b"SELECT 1"] {
        raw.send(b'Q', bytes);
        let (letters, state) = raw.letters();
        assert_eq!((letters.as_str(), state.is_some()), ("EZ", true), "{bytes:?}");
    }
    assert_eq!(raw.query("SELECT 1").0, "TDCZ");
}

#[test]
fn an_error_fails_the_transaction_wherever_it_comes_from() {
    let server = start(&config());
    let (mut raw, _) = Raw::log_in(server.address());
    raw.query("CREATE TABLE t (a int)");
    // A text that does not parse; a statement that cannot be prepared; one that was never.
    let parse: &dyn Fn(&mut Raw) = &|raw| raw.send(b'P', b"\0SELECT nothing FROM t\0\0\0");
    let bind: &dyn Fn(&mut Raw) = &|raw| raw.send(b'B', b"\0never\0\0\0\0\0\0\0");
    for goes_wrong in [None, Some(parse), Some(bind)] {
        assert_eq!(raw.query("BEGIN").0, "CZ");
        assert_eq!(raw.query("INSERT INTO t VALUES (1)").0, "CZ");
        match goes_wrong {
            None => assert_eq!(raw.query("SELEC 1").0, "EZ"),
            Some(send) => {
                send(&mut raw);
                raw.send(b'S', b"");
                assert_eq!(raw.letters().0, "EZ");
            }
        }
        assert_eq!(raw.query("SELECT 1").1.as_deref(), Some("25P02"));
        // (A notice says that it was rolled back.)
        assert_eq!(raw.query("COMMIT").0, "NCZ");
        assert_eq!(raw.query("SELECT a FROM t").0, "TCZ");
    }
}

#[test]
#[cfg(target_os = "linux")]
fn a_statement_ends_with_its_client() {
    let server = start(&config());
    let (mut raw, _) = Raw::log_in(server.address());
    let (mut gone, _) = Raw::log_in(server.address());
    gone.send(b'Q', b"WITH RECURSIVE r(n) AS (SELECT 1 UNION SELECT n + 1 FROM r) SELECT count(*) FROM r\0");
    std::thread::sleep(Duration::from_millis(200));
    drop(gone);
    let asked = Instant::now();
    while server.clients() > 1 && asked.elapsed() < Duration::from_secs(20) {
        std::thread::sleep(Duration::from_millis(50));
    }
    assert_eq!(server.clients(), 1);
    assert_eq!(raw.query("SELECT 1").0, "TDCZ");
}
