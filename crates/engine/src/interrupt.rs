//! Stopping the statement that runs, from another thread.
//!
//! Law: an interrupt ends the running statement with [`ErrorKind::Cancelled`](crate::ErrorKind::Cancelled) and nothing
//! else: data, views and subscriptions go on. One that arrives while no statement runs is forgotten when the next
//! one starts. Cost: one relaxed load a check.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::error::Error;

/// A handle to stop the running statement of one session. Clones are the same handle.
#[derive(Clone, Debug, Default)]
pub struct Interrupt(Arc<AtomicBool>);

impl Interrupt {
    /// A handle of its own, not triggered.
    pub fn new() -> Interrupt {
        Interrupt::default()
    }

    /// Asks the running statement to stop. Returns at once.
    pub fn trigger(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Whether a stop was asked for.
    pub fn is_triggered(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// Forgets an earlier trigger.
    pub fn clear(&self) {
        self.0.store(false, Ordering::Relaxed);
    }

    /// An error of kind `Cancelled` when a stop was asked for.
    ///
    /// # Errors
    /// Exactly when [`is_triggered`](Self::is_triggered).
    pub fn check(&self) -> Result<(), Error> {
        if self.is_triggered() { Err(Error::cancelled()) } else { Ok(()) }
    }
}
