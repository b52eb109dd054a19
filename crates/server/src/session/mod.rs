//! One client, from its first byte to its last, on a thread of its own.
//!
//! Law: answers come in the order of messages. An error in the extended protocol skips what follows
//! up to Sync; an error in a simple query skips the rest of its statements. What ends the
//! connection is said before, if the client can still be told.
//!
//! Reading order: [`startup`] (who is it), this file (which message means what), [`client`],
//! [`simple`], [`extended`], [`lent`] (portals in SQL), [`pipeline`] (what statements up to Sync
//! share), [`answers`] (rows and changes), [`copy`].

mod answers;
mod client;
mod copy;
mod extended;
mod lent;
mod options;
mod pipeline;
mod simple;
mod startup;

use std::collections::HashMap;
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anabranch_engine::{Error, TransactionState};

use crate::peers::{Activity, Peer};
use crate::shared::ServerShared;
use crate::wire::frames::{Broken, Frames};
use crate::wire::message::{Message, NOT_UTF8};
use crate::wire::reply::{self, Severity};

use client::ServerClient;
use startup::Login;

/// Whether a client stays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Next {
    Stay,
    Leave,
}

/// Serves a client until it leaves.
pub(crate) fn serve(shared: &ServerShared, socket: Arc<TcpStream>, address: SocketAddr) {
    let limits = &shared.limits;
    let times = [limits.message_s, limits.write_s].map(Duration::from_secs);
    let Ok(mut frames) = Frames::new(Arc::clone(&socket), limits.message_bytes_max, times[0], times[1]) else { return };
    let deadline = Instant::now() + Duration::from_secs(limits.login_s);
    let login = match startup::greet(shared, &mut frames, deadline) {
        Ok(Some(login)) => login,
        Ok(None) => return,
        Err(broken) => return farewell(&mut frames, &broken, shared, None),
    };
    let Some(peer) = shared.peers.enter(&socket, startup::secret(), limits.connections) else {
        let (code, message) = match shared.peers.is_ending() {
            true => ("57P03", "the database system is shutting down"),
            false => ("53300", "sorry, too many clients already"),
        };
        shared.metrics.refused.inc();
        reply::plain(&mut frames.out, Severity::Fatal, code, message);
        let _ = frames.flush();
        return;
    };
    tracing::info!(client = %address, user = login.user, encrypted = frames.is_encrypted(), "connected");
    let user = login.user.clone();
    shared.metrics.connections.inc();
    let ended = run(shared, frames, login, Arc::clone(&peer), deadline);
    shared.metrics.connections.dec();
    shared.peers.leave(&peer);
    tracing::info!(client = %address, user, "disconnected: {ended}");
}

/// Runs a client's messages; says why they ended.
fn run(shared: &ServerShared, mut frames: Frames, login: Login, peer: Arc<Peer>, deadline: Instant) -> &'static str {
    let connection = match startup::log_in(shared, &mut frames, &login, &peer, deadline) {
        Ok(Some(connection)) => connection,
        Ok(None) => return "it was not let in",
        Err(broken) => {
            farewell(&mut frames, &broken, shared, Some(peer.as_ref()));
            return "it did not log in";
        }
    };
    let (statements, portals) = (HashMap::new(), HashMap::new());
    let mut client =
        ServerClient { shared, frames, peer, connection, statements, portals, is_skipping: false, pipeline: None };
    loop {
        match client.step() {
            Ok(Next::Stay) => {}
            Ok(Next::Leave) => return "it said goodbye",
            Err(broken) => {
                farewell(&mut client.frames, &broken, shared, Some(client.peer.as_ref()));
                return match broken {
                    Broken::Closed => "it has gone",
                    Broken::Idle => "it was idle",
                    Broken::Slow => "it was slow",
                    Broken::TooLong(_) | Broken::NoMessage(_) => "it broke the protocol",
                };
            }
        }
    }
}

/// The last word to a client, if there is one.
fn farewell(frames: &mut Frames, broken: &Broken, shared: &ServerShared, peer: Option<&Peer>) {
    let long;
    let is_ended = shared.peers.is_ending() || peer.is_some_and(Peer::is_terminated);
    let (code, message) = match broken {
        Broken::Closed if is_ended => ("57P01", "terminating connection due to administrator command"),
        Broken::Closed => return,
        Broken::Idle => ("57P05", "terminating connection due to idle timeout"),
        Broken::Slow => ("08006", "terminating connection: a message did not come, or was not taken, in time"),
        Broken::NoMessage(what) => ("08P01", *what),
        Broken::TooLong(length) => {
            long = format!(
                "a message of {length} bytes is longer than the limit of {} (limits.message_bytes_max)",
                shared.limits.message_bytes_max
            );
            ("54000", long.as_str())
        }
    };
    frames.out.clear();
    reply::plain(&mut frames.out, Severity::Fatal, code, message);
    frames.close();
}

/// The error of a message that cannot be read.
fn unread(why: &str) -> Error {
    let is_of_bytes = why.starts_with(NOT_UTF8);
    Error::invalid(why).with_sqlstate(if is_of_bytes { "22021" } else { "08P01" })
}

impl ServerClient<'_> {
    /// Waits for a message and obeys it.
    fn step(&mut self) -> Result<Next, Broken> {
        let rest = match self.connection.transaction() {
            TransactionState::Idle => Activity::Idle,
            _ => Activity::InTransaction,
        };
        if !self.frames.has_message() {
            self.peer.is_shown(rest);
            // (A server that ends waits for the answer: the client is busy until it is sent.)
            self.flush_before_wait()?;
        }
        self.peer.is_now(rest);
        if self.peer.is_terminated() {
            return Err(Broken::Closed);
        }
        if self.shared.peers.is_ending() && self.connection.transaction() == TransactionState::Idle {
            return Err(Broken::Closed);
        }
        let came = self.frames.next(self.shared.limits.idle())?;
        self.peer.is_now(Activity::Busy);
        match came {
            Ok(message) => self.obey(message),
            Err(what) => {
                self.fail(&unread(what), "");
                Ok(Next::Stay)
            }
        }
    }

    fn obey(&mut self, message: Message) -> Result<Next, Broken> {
        match message {
            Message::Terminate => return Ok(Next::Leave),
            Message::Sync => {
                let has_failed = std::mem::take(&mut self.is_skipping);
                self.end_pipeline(has_failed)?;
                self.end_portals();
                self.ready();
            }
            Message::Query(text) => {
                let has_failed = std::mem::take(&mut self.is_skipping);
                self.end_pipeline(has_failed)?;
                self.peer.runs(&text);
                self.query(&text)?;
            }
            Message::UnreadQuery(why) => {
                let has_failed = std::mem::take(&mut self.is_skipping);
                self.end_pipeline(has_failed)?;
                self.tell(&unread(why), "");
                self.ready();
            }
            // What is left of a COPY that failed.
            Message::CopyData(_) | Message::CopyDone | Message::CopyFail(_) => {}
            _ if self.is_skipping => {}
            Message::Parse { name, sql, types } => self.parse(name, &sql, types)?,
            Message::Bind(bind) => self.bind(bind),
            Message::Describe(named) => self.describe(&named),
            Message::Execute { portal, rows_max } => self.execute(&portal, rows_max)?,
            Message::Close(named) => self.close(&named),
            Message::Flush => self.frames.flush()?,
            Message::FunctionCall => {
                let error = Error::invalid("calls of functions by number are not supported").with_sqlstate("0A000");
                self.fail(&error.with_hint("Write SELECT function(..)."), "");
                self.is_skipping = false;
                self.ready();
            }
            Message::Password(_) => return Err(Broken::NoMessage("a password was not asked for")),
            Message::Unknown(_) => return Err(Broken::NoMessage("invalid frontend message type")),
        }
        Ok(Next::Stay)
    }
}
