//! What happens to a bad row, and how its place is told.

use std::path::Path;

use anabranch_engine::Error;

/// The policy for rows that cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OnError {
    /// Rows before the bad one are delivered, then reading stops with its error.
    Fail,
    /// Bad rows are left out and counted.
    Skip,
}

/// Applies the policy and keeps the count.
#[derive(Debug)]
pub(crate) struct Faults {
    on_error: OnError,
    /// Rows left out so far.
    pub skipped: u64,
    /// Why the first one was.
    pub first: Option<String>,
    /// The error to stop with once the rows before it are delivered.
    pending: Option<Error>,
}

impl Faults {
    pub(crate) fn new(on_error: OnError) -> Faults {
        Faults { on_error, skipped: 0, first: None, pending: None }
    }

    pub(crate) fn skips(&self) -> bool {
        self.on_error == OnError::Skip
    }

    /// Notes a bad row. Under `fail` the first one noted is what reading stops with, so note them
    /// in row order.
    pub(crate) fn note(&mut self, message: impl FnOnce() -> String) {
        match self.on_error {
            OnError::Skip => {
                self.skipped += 1;
                if self.first.is_none() {
                    self.first = Some(message());
                }
            }
            OnError::Fail => {
                if self.pending.is_none() {
                    self.pending = Some(bad_row(message()));
                }
            }
        }
    }

    /// The error to stop with, if one is due. It stays: a reader that failed stays failed.
    pub(crate) fn check(&self) -> Result<(), Error> {
        match &self.pending {
            Some(error) => Err(error.clone()),
            None => Ok(()),
        }
    }

    /// Whether reading must stop.
    pub(crate) fn failed(&self) -> bool {
        self.pending.is_some()
    }
}

/// A wrong option, name or declaration.
pub(crate) fn invalid(message: impl Into<String>) -> Error {
    Error::invalid(message)
}

/// A file that cannot be read at all.
pub(crate) fn unreadable(path: &Path, problem: impl std::fmt::Display) -> Error {
    Error::unavailable(format!("cannot read file {}: {problem}", path.display()))
}

/// A file whose contents break its format beyond a single row.
pub(crate) fn malformed(path: &Path, problem: impl std::fmt::Display) -> Error {
    Error::data(format!("file {} is damaged: {problem}", path.display()))
}

fn bad_row(message: String) -> Error {
    Error::data(message)
        .with_hint("Correct the line, or read with on_error = 'skip' to leave such rows out and count them.")
}
