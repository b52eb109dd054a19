//! Pipelines that run again after a conflict take turns.
//!
//! There is one turn. Pipelines that begin let the one pass that has it, so that it does not meet
//! them once more. None waits long: a statement may take any time.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// How long a pipeline waits for one that runs again.
const TURN_MAX: Duration = Duration::from_millis(20);

/// The turn of pipelines that run again.
#[derive(Debug, Default)]
pub(crate) struct Turns(AtomicBool);

/// A turn that was taken.
pub(crate) struct Turn<'a>(&'a Turns);

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.0.0.store(false, Ordering::Release);
    }
}

impl Turns {
    /// Waits until none has the turn.
    pub(crate) fn wait(&self) {
        let deadline = Instant::now() + TURN_MAX;
        while self.0.load(Ordering::Acquire) && Instant::now() < deadline {
            thread::sleep(Duration::from_micros(100));
        }
    }

    /// The turn, unless another keeps it for long.
    pub(crate) fn take(&self) -> Option<Turn<'_>> {
        self.wait();
        self.0.compare_exchange(false, true, Ordering::Acquire, Ordering::Relaxed).is_ok().then_some(Turn(self))
    }
}
