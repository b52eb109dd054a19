//! What waits in the engine, and how fast the log is written: for those who watch a server.

use anabranch_store::Statistics;

use super::connection::Connection;
use crate::error::Error;

/// The engine's load at one time.
#[derive(Clone, Copy, Debug, Default)]
pub struct EngineLoad {
    /// Requests of connections that the engine has not begun.
    pub requests_waiting: usize,
    /// Bytes of rows that are committed, and that no dataflow has taken in yet.
    pub backlog_bytes: usize,
    /// What the log has done since the database was opened; `None` in memory.
    pub log: Option<Statistics>,
}

impl Connection {
    /// The engine's load. The request that asks for it does not count.
    ///
    /// # Errors
    /// `Closed` when the database was closed.
    pub fn load(&self) -> Result<EngineLoad, Error> {
        let requests_waiting = self.engine.n_waiting();
        self.engine.call(move |session| EngineLoad { requests_waiting, ..session.load() })
    }
}
