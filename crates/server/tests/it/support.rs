//! Servers and clients for tests.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use anabranch_engine::{Database, DatabaseOptions};
use anabranch_server::{Config, Limits, Server};

pub fn config() -> Config {
    Config {
        listen: SocketAddr::from(([127, 0, 0, 1], 0)),
        limits: Limits { drain_s: 2, ..Limits::default() },
        ..Config::default()
    }
}

pub fn start(config: &Config) -> Server {
    let database = Database::open(DatabaseOptions::default()).expect("a database in memory opens");
    Server::start(database, config).expect("the server starts")
}

/// A client that speaks the protocol by hand.
pub struct Raw {
    pub stream: TcpStream,
}

impl Raw {
    pub fn connect(address: SocketAddr) -> Raw {
        let stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        stream.set_write_timeout(Some(Duration::from_secs(20))).unwrap();
        Raw { stream }
    }

    /// Connects and logs in; gives the key data.
    pub fn log_in(address: SocketAddr) -> (Raw, Vec<u8>) {
        let mut raw = Raw::connect(address);
        raw.first(196_608, b"user\0ann\0\0");
        let mut key = Vec::new();
        loop {
            let (letter, body) = raw.receive().expect("the server answers");
            match letter {
                b'K' => key = body,
                b'Z' => return (raw, key),
                b'E' => panic!("{}", String::from_utf8_lossy(&body)),
                _ => {}
            }
        }
    }

    pub fn first(&mut self, code: i32, body: &[u8]) {
        let mut message = ((body.len() + 8) as i32).to_be_bytes().to_vec();
        message.extend_from_slice(&code.to_be_bytes());
        message.extend_from_slice(body);
        self.stream.write_all(&message).unwrap();
    }

    pub fn send(&mut self, letter: u8, body: &[u8]) {
        self.stream.write_all(&message(letter, body)).unwrap();
    }

    /// The next message; `None` at the end of the connection.
    pub fn receive(&mut self) -> Option<(u8, Vec<u8>)> {
        let mut head = [0; 5];
        self.stream.read_exact(&mut head).ok()?;
        let length = u32::from_be_bytes(head[1..].try_into().unwrap()) as usize;
        let mut body = vec![0; length - 4];
        self.stream.read_exact(&mut body).ok()?;
        Some((head[0], body))
    }

    /// Letters of the messages up to ReadyForQuery, and the SQLSTATE of the first error.
    pub fn letters(&mut self) -> (String, Option<String>) {
        let (mut letters, mut code) = (String::new(), None);
        while let Some((letter, body)) = self.receive() {
            letters.push(char::from(letter));
            if letter == b'E' && code.is_none() {
                code = field(&body, b'C');
            }
            if letter == b'Z' {
                break;
            }
        }
        (letters, code)
    }

    pub fn query(&mut self, sql: &str) -> (String, Option<String>) {
        self.send(b'Q', format!("{sql}\0").as_bytes());
        self.letters()
    }
}

pub fn message(letter: u8, body: &[u8]) -> Vec<u8> {
    let mut message = vec![letter];
    message.extend_from_slice(&((body.len() + 4) as u32).to_be_bytes());
    message.extend_from_slice(body);
    message
}

/// A field of an error.
pub fn field(body: &[u8], letter: u8) -> Option<String> {
    let mut fields = body.split(|byte| *byte == 0);
    let found = fields.find(|field| field.first() == Some(&letter))?;
    Some(String::from_utf8_lossy(&found[1..]).into_owned())
}
