//! Where sources stand, for other threads.

use std::sync::{Arc, Mutex, PoisonError};

use crate::session::outcome::SourceStatus;

/// Where the sources stand, to be looked at from another thread while the session is busy. Clones
/// show the same.
#[derive(Clone, Debug, Default)]
pub struct Progress(Arc<Mutex<Vec<SourceStatus>>>);

impl Progress {
    /// The sources, and a running `COPY`, as of the last turn.
    pub fn sources(&self) -> Vec<SourceStatus> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn publish(&self, statuses: Vec<SourceStatus>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = statuses;
    }
}
