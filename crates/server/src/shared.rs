//! What all clients of a server share.

use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

use anabranch_engine::Database;
use rustls::ServerConfig;

use crate::config::Limits;
use crate::metrics::Metrics;
use crate::peers::Peers;
use crate::turns::Turns;
use crate::users::Users;

/// What all clients share.
pub(crate) struct ServerShared {
    pub database: Database,
    pub users: Users,
    pub limits: Limits,
    pub tls: Option<Arc<ServerConfig>>,
    /// Whether unencrypted connections are refused.
    pub tls_is_required: bool,
    pub peers: Peers,
    pub metrics: Metrics,
    pub turns: Turns,
    /// Threads of clients.
    pub n_threads: AtomicUsize,
}
