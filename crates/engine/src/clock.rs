//! Where commit times come from.
//!
//! A session's times are microseconds since the Unix epoch, taken from a [`Clock`] and pushed
//! forward when the clock stands still or goes back: times of commits always increase.

use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

/// Tells the time, in microseconds since the Unix epoch.
pub trait Clock: Send + Sync {
    /// Now. May repeat and may go back.
    fn now_micros(&self) -> i64;
}

/// The machine's clock.
#[derive(Clone, Copy, Debug, Default)]
pub struct WallClock;

impl Clock for WallClock {
    fn now_micros(&self) -> i64 {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        i64::try_from(since.as_micros()).unwrap_or(i64::MAX / 2)
    }
}

/// A clock that moves only when told to, for tests that must repeat exactly.
#[derive(Debug, Default)]
pub struct ManualClock(AtomicI64);

impl ManualClock {
    /// A clock that stands at `micros`.
    pub fn new(micros: i64) -> ManualClock {
        ManualClock(AtomicI64::new(micros))
    }

    /// Sets the clock.
    pub fn set(&self, micros: i64) {
        self.0.store(micros, Ordering::Relaxed);
    }
}

impl Clock for ManualClock {
    fn now_micros(&self) -> i64 {
        self.0.load(Ordering::Relaxed)
    }
}
