//! Stopping the statement that runs: from another thread, or when its time is over.
//!
//! Law: an interrupt ends the running statement with
//! [`ErrorKind::Cancelled`](crate::ErrorKind::Cancelled) and nothing else: data, views and
//! subscriptions go on. One that arrives while no statement runs is forgotten when the next one
//! starts; one between two waits of a subscription ends the next wait. Cost: two relaxed loads a
//! check, and a look at the clock while there is a limit.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use crate::error::Error;

/// A handle to stop the running statement of one session. Clones are the same handle.
#[derive(Clone, Debug, Default)]
pub struct Interrupt(Arc<State>);

#[derive(Debug, Default)]
struct State {
    is_triggered: AtomicBool,
    /// When the statement's time is over, in microseconds since the process first asked; 0 is
    /// never.
    deadline: AtomicU64,
    /// What wakes the statement while it waits.
    bell: Mutex<Option<Sender<()>>>,
}

/// Microseconds since the process first asked.
fn now_micros() -> u64 {
    static START: OnceLock<Instant> = OnceLock::new();
    START.get_or_init(Instant::now).elapsed().as_micros() as u64
}

impl Interrupt {
    /// A handle of its own, not triggered.
    pub fn new() -> Interrupt {
        Interrupt::default()
    }

    /// Asks the running statement to stop. Returns at once.
    pub fn trigger(&self) {
        self.0.is_triggered.store(true, Ordering::SeqCst);
        self.wake();
    }

    /// Ends the wait of a statement that waits for changes: it looks around and waits again.
    pub fn wake(&self) {
        if let Some(bell) = &*self.0.bell.lock().unwrap_or_else(PoisonError::into_inner) {
            // (A caller that does not wait any more needs no waking.)
            let _ = bell.send(());
        }
    }

    /// What wakes the statement from now on.
    pub(crate) fn ring_with(&self, bell: Option<Sender<()>>) {
        *self.0.bell.lock().unwrap_or_else(PoisonError::into_inner) = bell;
    }

    /// Whether a stop was asked for.
    pub fn is_triggered(&self) -> bool {
        self.0.is_triggered.load(Ordering::Relaxed)
    }

    /// Forgets an earlier trigger.
    pub fn clear(&self) {
        self.0.is_triggered.store(false, Ordering::Relaxed);
    }

    /// Gives the statement that runs so much time from now on; `None` for ever. Tells whether it
    /// had a limit before, which then stays: that of the statement around this one.
    pub(crate) fn limit(&self, timeout: Option<Duration>) -> bool {
        if self.0.deadline.load(Ordering::Relaxed) != 0 {
            return true;
        }
        if let Some(timeout) = timeout {
            let deadline = now_micros().saturating_add(timeout.as_micros() as u64).max(1);
            self.0.deadline.store(deadline, Ordering::Relaxed);
        }
        false
    }

    /// Takes the limit away.
    pub(crate) fn unlimit(&self) {
        self.0.deadline.store(0, Ordering::Relaxed);
    }

    /// An error of kind `Cancelled` when a stop was asked for, or the statement's time is over.
    ///
    /// # Errors
    /// Exactly then.
    pub fn check(&self) -> Result<(), Error> {
        if self.is_triggered() {
            return Err(Error::cancelled());
        }
        match self.0.deadline.load(Ordering::Relaxed) {
            0 => Ok(()),
            deadline if now_micros() < deadline => Ok(()),
            _ => Err(Error::timed_out()),
        }
    }
}
