//! The first messages of a connection: encryption, the user, the password.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use anabranch_engine::{Connection, Error};

use super::options::{self, Wish};
use crate::peers::Peer;
use crate::scram::{self, Exchange, Verifier};
use crate::shared::ServerShared;
use crate::wire::frames::{Broken, Frames};
use crate::wire::message::Message;
use crate::wire::reply::{self, Severity};

const CANCEL: i32 = 80_877_102;
const ENCRYPT: i32 = 80_877_103;
const ENCRYPT_GSS: i32 = 80_877_104;
/// Version 3.0.
const VERSION_MAJOR: i32 = 3;

/// What PostgreSQL calls itself; clients choose their catalog queries by it.
pub(crate) const SERVER_VERSION: &str = "15.0";

/// Who wants to come in.
pub(super) struct Login {
    pub user: String,
    /// What the client says of itself.
    pub application: String,
    /// Settings that it asks for, unless they cannot be read.
    wishes: Result<Vec<Wish>, Error>,
}

/// A number that cannot be guessed, by which a client cancels its statements.
pub(super) fn secret() -> i32 {
    scram::random::<4>().map_or(0, i32::from_be_bytes)
}

/// Reads requests up to that of a user; `None` when there is no client to be served.
pub(super) fn greet(shared: &ServerShared, frames: &mut Frames, deadline: Instant) -> Result<Option<Login>, Broken> {
    loop {
        let body = frames.first(deadline)?;
        let int = |at: usize| -> Option<i32> { Some(i32::from_be_bytes(body.get(at..at + 4)?.try_into().ok()?)) };
        match int(0) {
            Some(CANCEL) => {
                if let (Some(id), Some(secret)) = (int(4), int(8)) {
                    shared.peers.cancel(id, secret);
                }
                return Ok(None);
            }
            Some(ENCRYPT) => match &shared.tls {
                Some(config) if !frames.is_encrypted() => {
                    frames.out.push(b'S');
                    frames.flush()?;
                    frames.encrypt(config)?;
                }
                _ => {
                    frames.out.push(b'N');
                    frames.flush()?;
                }
            },
            Some(ENCRYPT_GSS) => {
                frames.out.push(b'N');
                frames.flush()?;
            }
            Some(version) if version >> 16 == VERSION_MAJOR => {
                return parameters(shared, frames, version & 0xffff, &body[4..]).map(Some);
            }
            _ => return Err(Broken::NoMessage("unsupported frontend protocol: the server speaks version 3")),
        }
    }
}

fn parameters(shared: &ServerShared, frames: &mut Frames, minor: i32, body: &[u8]) -> Result<Login, Broken> {
    if shared.tls_is_required && !frames.is_encrypted() {
        return Err(Broken::NoMessage("the server takes encrypted connections only (sslmode=require)"));
    }
    let mut texts = body.split(|byte| *byte == 0).map(std::str::from_utf8);
    let mut given: BTreeMap<String, String> = BTreeMap::new();
    while let Some(Ok(name)) = texts.next().filter(|name| name.as_ref().is_ok_and(|name| !name.is_empty())) {
        let Some(Ok(value)) = texts.next() else { return Err(Broken::NoMessage("a startup parameter has no value")) };
        given.insert(name.to_owned(), value.to_owned());
    }
    let extensions: Vec<&str> = given.keys().map(String::as_str).filter(|name| name.starts_with("_pq_.")).collect();
    if minor > 0 || !extensions.is_empty() {
        reply::negotiate(&mut frames.out, &extensions);
    }
    let user = given.get("user").filter(|user| !user.is_empty());
    let user = user.ok_or(Broken::NoMessage("no PostgreSQL user name specified in startup packet"))?.clone();
    let application = given.get("application_name").cloned().unwrap_or_default();
    Ok(Login { user, application, wishes: options::wishes(&given) })
}

/// Authenticates a user and opens a connection; `None` when the user was refused, and told so.
pub(super) fn log_in(
    shared: &ServerShared,
    frames: &mut Frames,
    login: &Login,
    peer: &Arc<Peer>,
    deadline: Instant,
) -> Result<Option<Connection>, Broken> {
    let known = shared.users.find(&login.user);
    if !shared.users.is_empty() {
        let verifier = known.map(|known| known.verifier.clone());
        let verifier = verifier.unwrap_or_else(|| Verifier::of_nobody(&login.user, &shared.users.secret));
        if !authenticate(frames, verifier, deadline)? || known.is_none() {
            tracing::warn!(user = login.user, "password authentication failed");
            let message = format!("password authentication failed for user \"{}\"", login.user);
            reply::plain(&mut frames.out, Severity::Fatal, "28P01", &message);
            frames.flush()?;
            return Ok(None);
        }
    }
    let mut connection = match shared.database.connect() {
        Ok(connection) => connection,
        Err(error) => {
            reply::plain(&mut frames.out, Severity::Fatal, error.sqlstate(), &error.message);
            frames.flush()?;
            return Ok(None);
        }
    };
    let backend = peer.as_backend(connection.interrupt());
    backend.is_program(&login.application);
    connection.appear(backend);
    if let Err(error) = connection.log_in(&login.user) {
        reply::plain(&mut frames.out, Severity::Fatal, error.sqlstate(), &error.message);
        frames.flush()?;
        return Ok(None);
    }
    if known.is_some_and(|known| known.read_only) {
        connection.forbid_writes();
    }
    peer.stopped_by(connection.interrupt());
    let mut warnings = Vec::new();
    let fulfilled = match &login.wishes {
        Ok(wishes) => options::fulfil(&mut connection, wishes, &mut warnings),
        Err(error) => Err(error.clone()),
    };
    if let Err(error) = fulfilled {
        reply::plain(&mut frames.out, Severity::Fatal, error.sqlstate(), &error.message);
        frames.flush()?;
        return Ok(None);
    }
    welcome(frames, login, peer, &warnings);
    Ok(Some(connection))
}

/// SCRAM; whether the password was right.
fn authenticate(frames: &mut Frames, verifier: Verifier, deadline: Instant) -> Result<bool, Broken> {
    let mut mechanisms = Vec::new();
    reply::text(&mut mechanisms, scram::MECHANISM);
    mechanisms.push(0);
    reply::authentication(&mut frames.out, 10, &mechanisms);
    let chosen = password(frames, deadline)?;
    let malformed = Broken::NoMessage("malformed SASL message");
    let end = chosen.iter().position(|byte| *byte == 0).ok_or(Broken::NoMessage("malformed SASL message"))?;
    let (mechanism, rest) = (&chosen[..end], chosen.get(end + 5..));
    let first = rest.and_then(|rest| std::str::from_utf8(rest).ok());
    let Some(first) = first.filter(|_| mechanism == scram::MECHANISM.as_bytes()) else { return Err(malformed) };
    let Ok((exchange, answer)) = Exchange::begin(verifier, first) else { return Err(malformed) };
    reply::authentication(&mut frames.out, 11, answer.as_bytes());
    let last = password(frames, deadline)?;
    let Ok(last) = std::str::from_utf8(&last) else { return Err(malformed) };
    let Ok(answer) = exchange.finish(last) else { return Err(malformed) };
    let Some(answer) = answer else { return Ok(false) };
    reply::authentication(&mut frames.out, 12, answer.as_bytes());
    Ok(true)
}

fn password(frames: &mut Frames, deadline: Instant) -> Result<Vec<u8>, Broken> {
    frames.flush()?;
    match frames.next_before(deadline)? {
        Ok(Message::Password(bytes)) => Ok(bytes),
        _ => Err(Broken::NoMessage("expected a password")),
    }
}

/// What a client is told at first.
fn welcome(frames: &mut Frames, login: &Login, peer: &Peer, warnings: &[u8]) {
    let out = &mut frames.out;
    reply::authentication(out, 0, &[]);
    let version = format!("{SERVER_VERSION} (Anabranch {})", env!("CARGO_PKG_VERSION"));
    for (name, value) in [
        ("server_version", version.as_str()),
        ("server_encoding", "UTF8"),
        ("client_encoding", "UTF8"),
        ("DateStyle", "ISO, MDY"),
        ("IntervalStyle", "postgres"),
        ("TimeZone", "UTC"),
        ("integer_datetimes", "on"),
        ("standard_conforming_strings", "on"),
        ("in_hot_standby", "off"),
        ("default_transaction_read_only", "off"),
        ("is_superuser", "off"),
        ("session_authorization", login.user.as_str()),
        ("application_name", login.application.as_str()),
    ] {
        reply::parameter_status(out, name, value);
    }
    reply::key_data(out, peer.id, peer.secret);
    out.extend_from_slice(warnings);
    reply::ready(out, anabranch_engine::TransactionState::Idle);
}
