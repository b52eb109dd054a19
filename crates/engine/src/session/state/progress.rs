//! Where sources and dataflows stand, for other threads.

use std::sync::{Arc, Mutex, PoisonError};

use anabranch_flow::account::Accounts;

use crate::session::outcome::SourceStatus;

/// Where the sources and the dataflows stand, to be looked at from another thread while the session
/// is busy. Clones show the same.
#[derive(Clone, Debug)]
pub struct Progress {
    sources: Arc<Mutex<Vec<SourceStatus>>>,
    accounts: Accounts,
}

impl Progress {
    /// Of the dataflows that have these accounts.
    pub(crate) fn new(accounts: Accounts) -> Progress {
        Progress { sources: Arc::default(), accounts }
    }

    /// The sources, and a running `COPY`, as of the last turn.
    pub fn sources(&self) -> Vec<SourceStatus> {
        self.sources.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Rows that the operators of all dataflows have put out so far.
    pub fn rows_put_out(&self) -> u64 {
        let counts = self.accounts.all().into_iter().flat_map(|account| account.operators().into_values());
        counts.map(|counts| counts.rows).sum()
    }

    pub(crate) fn publish(&self, statuses: Vec<SourceStatus>) {
        *self.sources.lock().unwrap_or_else(PoisonError::into_inner) = statuses;
    }
}
