//! A connection to a server: messages there and back, and how one gets in.
//!
//! The messages are those of `postgres-protocol`; reading blocks.

use std::io::{self, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::time::Duration;

use anabranch_engine::{Error, ErrorKind};
use bytes::BytesMut;
use fallible_iterator::FallibleIterator;
use postgres_protocol::authentication::sasl::{ChannelBinding, SCRAM_SHA_256, ScramSha256};
use postgres_protocol::message::backend::{ErrorFields, Message};
use postgres_protocol::message::frontend;
use rustls::{ClientConnection, StreamOwned};

use super::address::{Address, Encryption};
use super::tls;

/// How long a server may take to answer a knock.
const CONNECT_TIME: Duration = Duration::from_secs(10);
const CHUNK_BYTES: usize = 1 << 14;

/// See the module.
pub(super) struct Wire {
    stream: Stream,
    input: BytesMut,
    /// A message that was looked at ahead.
    ahead: Option<Message>,
    /// By which a statement is cancelled.
    pub key: Key,
}

/// By which a client cancels its statements.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Key {
    id: i32,
    secret: i32,
}

enum Stream {
    Plain(TcpStream),
    Encrypted(Box<StreamOwned<ClientConnection, TcpStream>>),
}

impl Stream {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        match self {
            Stream::Plain(socket) => socket.read(bytes),
            Stream::Encrypted(stream) => stream.read(bytes),
        }
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        match self {
            Stream::Plain(socket) => socket.write_all(bytes),
            Stream::Encrypted(stream) => stream.write_all(bytes).and_then(|()| stream.flush()),
        }
    }
}

impl Wire {
    /// Connects and logs in. `ask` is asked for a password if the server wants one and none is
    /// known.
    ///
    /// # Errors
    /// `Unavailable` when no server answers, or the server does not let the user in.
    pub(super) fn connect(address: &Address, ask: &dyn Fn() -> Result<String, Error>) -> Result<Wire, Error> {
        let socket = knock(address)?;
        let stream = match address.encryption {
            Encryption::Never => Stream::Plain(socket),
            _ => encrypted(socket, address)?,
        };
        let mut wire = Wire { stream, input: BytesMut::new(), ahead: None, key: Key::default() };
        wire.log_in(address, ask)?;
        Ok(wire)
    }

    /// Sends what `write` writes.
    ///
    /// # Errors
    /// `Unavailable` when the connection is lost.
    pub(super) fn send(&mut self, write: impl FnOnce(&mut BytesMut) -> io::Result<()>) -> Result<(), Error> {
        let mut out = BytesMut::new();
        write(&mut out).map_err(|error| Error::invalid(format!("the statement cannot be sent: {error}")))?;
        self.stream.write(&out).map_err(|error| lost(&error))
    }

    /// The next message.
    ///
    /// # Errors
    /// `Unavailable` when the connection is lost.
    pub(super) fn next(&mut self) -> Result<Message, Error> {
        if let Some(message) = self.ahead.take() {
            return Ok(message);
        }
        loop {
            if let Some(message) = Message::parse(&mut self.input).map_err(|error| lost(&error))? {
                return Ok(message);
            }
            let mut chunk = [0; CHUNK_BYTES];
            match self.stream.read(&mut chunk) {
                Ok(0) => return Err(Error::unavailable("the server has closed the connection")),
                Ok(n) => self.input.extend_from_slice(&chunk[..n]),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(lost(&error)),
            }
        }
    }

    /// Whether the next message is here already.
    pub(super) fn has_more(&mut self) -> bool {
        if self.ahead.is_none() {
            // (What is no message is told by the next one that is asked for.)
            self.ahead = Message::parse(&mut self.input).unwrap_or(None);
        }
        self.ahead.is_some()
    }

    fn log_in(&mut self, address: &Address, ask: &dyn Fn() -> Result<String, Error>) -> Result<(), Error> {
        let parameters = [
            ("user", address.user.as_str()),
            ("database", address.database.as_str()),
            ("application_name", "anabranch"),
            ("client_encoding", "UTF8"),
        ];
        self.send(|out| frontend::startup_message(parameters, out))?;
        let password = || address.password.clone().map_or_else(ask, Ok);
        let mut scram = None;
        loop {
            match self.next()? {
                Message::AuthenticationOk | Message::ParameterStatus(_) | Message::NoticeResponse(_) => {}
                Message::AuthenticationCleartextPassword => {
                    let password = password()?;
                    self.send(|out| frontend::password_message(password.as_bytes(), out))?;
                }
                Message::AuthenticationSasl(_) => {
                    let begun = ScramSha256::new(password()?.as_bytes(), ChannelBinding::unsupported());
                    self.send(|out| frontend::sasl_initial_response(SCRAM_SHA_256, begun.message(), out))?;
                    scram = Some(begun);
                }
                Message::AuthenticationSaslContinue(body) => {
                    let scram: &mut ScramSha256 = scram.as_mut().ok_or_else(|| unasked("SASL"))?;
                    scram.update(body.data()).map_err(|error| not_let_in(&error))?;
                    let answer = scram.message().to_vec();
                    self.send(|out| frontend::sasl_response(&answer, out))?;
                }
                Message::AuthenticationSaslFinal(body) => {
                    let scram: &mut ScramSha256 = scram.as_mut().ok_or_else(|| unasked("SASL"))?;
                    scram.finish(body.data()).map_err(|error| not_let_in(&error))?;
                }
                Message::BackendKeyData(body) => self.key = Key { id: body.process_id(), secret: body.secret_key() },
                Message::ReadyForQuery(_) => return Ok(()),
                Message::ErrorResponse(body) => return Err(told(body.fields(), "")),
                _ => return Err(unasked("a way to log in that is not known here")),
            }
        }
    }
}

/// Asks a server to stop the statement of a connection.
pub(super) fn cancel(address: &Address, key: Key) {
    // (A server that does not answer has nothing to stop.)
    let Ok(mut socket) = knock(address) else { return };
    let mut out = BytesMut::new();
    frontend::cancel_request(key.id, key.secret, &mut out);
    let _ = socket.write_all(&out);
    // The server closes the connection when it has done so.
    let _ = socket.set_read_timeout(Some(CONNECT_TIME));
    let _ = socket.read(&mut [0]);
}

fn knock(address: &Address) -> Result<TcpStream, Error> {
    let unreachable = |problem: String| {
        Error::unavailable(format!("cannot connect to {}:{}: {problem}", address.host, address.port))
            .with_hint("Start a server with anabranch serve, or name another with --connect.")
    };
    let found =
        (address.host.as_str(), address.port).to_socket_addrs().map_err(|error| unreachable(error.to_string()))?;
    let mut problem = "the name has no address".to_owned();
    for place in found {
        match TcpStream::connect_timeout(&place, CONNECT_TIME) {
            Ok(socket) => {
                // (Without it the connection is slower, and no less right.)
                let _ = socket.set_nodelay(true);
                return Ok(socket);
            }
            Err(error) => problem = error.to_string(),
        }
    }
    Err(unreachable(problem))
}

/// Asks the server to encrypt.
fn encrypted(mut socket: TcpStream, address: &Address) -> Result<Stream, Error> {
    let mut out = BytesMut::new();
    frontend::ssl_request(&mut out);
    socket.write_all(&out).map_err(|error| lost(&error))?;
    let mut answer = [0];
    socket.read_exact(&mut answer).map_err(|error| lost(&error))?;
    match (answer[0], address.encryption) {
        (b'S', _) => Ok(Stream::Encrypted(Box::new(tls::encrypt(socket, address)?))),
        (_, Encryption::IfOffered) => Ok(Stream::Plain(socket)),
        _ => Err(Error::unavailable("the server does not encrypt connections").with_hint("Use sslmode=disable.")),
    }
}

fn lost(error: &io::Error) -> Error {
    Error::unavailable(format!("the connection to the server is lost: {error}"))
}

fn not_let_in(error: &io::Error) -> Error {
    Error::unavailable(format!("the server does not know the password: {error}"))
}

fn unasked(what: &str) -> Error {
    Error::unavailable(format!("the server asks for {what}"))
}

/// An error as the server tells it. Positions are characters there, bytes here.
pub(super) fn told(mut fields: ErrorFields<'_>, text: &str) -> Error {
    let mut error = Error::new(ErrorKind::Invalid, "the server tells an error without words");
    while let Ok(Some(field)) = fields.next() {
        let value = String::from_utf8_lossy(field.value_bytes()).into_owned();
        match field.type_() {
            b'M' => error.message = value,
            b'D' => error.detail = Some(value),
            b'H' => error.hint = Some(value),
            b'W' => error = error.with_context(value),
            b'C' => error.kind = kind(&value),
            b'P' => {
                let nth = value.parse().ok().and_then(|nth: usize| nth.checked_sub(1));
                error.position = nth.map(|nth| text.char_indices().nth(nth).map_or(text.len(), |(at, _)| at));
            }
            _ => {}
        }
    }
    error
}

/// Who must act, by SQLSTATE.
fn kind(sqlstate: &str) -> ErrorKind {
    match sqlstate.get(..2).unwrap_or_default() {
        _ if sqlstate == "57014" => ErrorKind::Cancelled,
        "22" | "23" => ErrorKind::Data,
        "08" | "40" | "53" | "55" | "57" | "58" => ErrorKind::Unavailable,
        "XX" => ErrorKind::Internal,
        _ => ErrorKind::Invalid,
    }
}
