//! Clients of a database as other clients see them: `pg_stat_activity`, `pg_cancel_backend`,
//! `pg_terminate_backend`.
//!
//! Law: a client is listed from its [`appear`](crate::Connection::appear) to the end of its
//! connection. What is told of a client is what it was doing when that was asked. Connections of
//! the embedding program are not listed.
//!
//! Cost: one lock of its own for each message that a client sends.

use std::collections::BTreeMap;
use std::fmt;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use crate::interrupt::Interrupt;

/// Bytes of a statement's text that are told, as in PostgreSQL.
const QUERY_BYTES_MAX: usize = 1024;

/// What a client is doing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BackendState {
    /// It waits for a message, outside a transaction.
    #[default]
    Idle,
    /// It waits for a message, inside a transaction.
    InTransaction,
    /// A statement runs, or an answer is sent.
    Active,
}

impl BackendState {
    /// The word of `pg_stat_activity`.
    pub(crate) fn name(self) -> &'static str {
        match self {
            BackendState::Idle => "idle",
            BackendState::InTransaction => "idle in transaction",
            BackendState::Active => "active",
        }
    }
}

/// A client of a server.
pub struct Backend {
    /// The number by which it is cancelled.
    pub(crate) pid: i32,
    pub(crate) address: Option<SocketAddr>,
    /// When it came, in microseconds since the epoch, as all times here.
    pub(crate) started: i64,
    interrupt: Interrupt,
    /// Ends the connection.
    end: Box<dyn Fn() + Send + Sync>,
    seen: Mutex<Seen>,
}

/// What a client was last seen doing.
#[derive(Clone, Debug, Default)]
pub(crate) struct Seen {
    pub user: String,
    pub application: String,
    pub state: BackendState,
    pub changed: Option<i64>,
    pub query: String,
    pub query_started: Option<i64>,
}

fn now_micros() -> i64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_micros()).unwrap_or(i64::MAX)
}

impl Backend {
    /// A client that has come now, and what ends its connection.
    pub fn new(
        pid: i32,
        address: Option<SocketAddr>,
        interrupt: Interrupt,
        end: impl Fn() + Send + Sync + 'static,
    ) -> Backend {
        Backend { pid, address, started: now_micros(), interrupt, end: Box::new(end), seen: Mutex::default() }
    }

    fn see(&self, change: impl FnOnce(&mut Seen)) {
        change(&mut self.seen.lock().unwrap_or_else(PoisonError::into_inner));
    }

    pub(crate) fn seen(&self) -> Seen {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Notes the user that has logged in.
    pub fn is_user(&self, user: &str) {
        self.see(|seen| user.clone_into(&mut seen.user));
    }

    /// Notes the name of the client's program.
    pub fn is_program(&self, application: &str) {
        self.see(|seen| application.clone_into(&mut seen.application));
    }

    /// Notes what the client is doing.
    pub fn is_now(&self, state: BackendState) {
        self.see(|seen| {
            if seen.state != state {
                seen.state = state;
                seen.changed = Some(now_micros());
            }
        });
    }

    /// Notes the text that runs from now on.
    pub fn runs(&self, query: &str) {
        let end = (0..=query.len().min(QUERY_BYTES_MAX)).rev().find(|at| query.is_char_boundary(*at));
        self.see(|seen| {
            query[..end.unwrap_or(0)].clone_into(&mut seen.query);
            seen.query_started = Some(now_micros());
        });
    }
}

impl fmt::Debug for Backend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Backend").field("pid", &self.pid).field("seen", &self.seen()).finish_non_exhaustive()
    }
}

/// All clients, by number. Clones are the same list.
#[derive(Clone, Debug, Default)]
pub(crate) struct Backends(Arc<Mutex<BTreeMap<i32, Arc<Backend>>>>);

impl Backends {
    fn all(&self) -> std::sync::MutexGuard<'_, BTreeMap<i32, Arc<Backend>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn enter(&self, backend: Arc<Backend>) {
        self.all().insert(backend.pid, backend);
    }

    pub fn leave(&self, backend: &Backend) {
        self.all().remove(&backend.pid);
    }

    /// Those that are there, by number.
    pub fn list(&self) -> Vec<Arc<Backend>> {
        self.all().values().cloned().collect()
    }

    /// The client of that number, if there is one.
    pub fn find(&self, pid: i64) -> Option<Arc<Backend>> {
        self.all().get(&i32::try_from(pid).ok()?).cloned()
    }

    /// Stops the statement of a client; whether there is one of that number.
    pub fn cancel(&self, pid: i64) -> bool {
        self.find(pid).inspect(|backend| backend.interrupt.trigger()).is_some()
    }

    /// Ends a client; whether there is one of that number.
    pub fn terminate(&self, pid: i64) -> bool {
        self.find(pid).inspect(|backend| (backend.end)()).is_some()
    }
}
