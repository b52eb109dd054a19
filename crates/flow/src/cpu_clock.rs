//! CPU time of what a thread does, mostly without asking the system for it.
//!
//! Law: a stretch of work is never told longer than it lasted, and one that lasted for a
//! [`PAUSE_MIN`] or more is told at most the CPU time that the thread has used since it was last
//! asked, less what other stretches were told. So pauses, in which the system runs other threads,
//! are not told as work.
//!
//! Cost: the system is asked once for a long stretch, and before a stretch once a millisecond, at
//! some 250 nanoseconds; a short stretch is its wall time. Where the system has no such clock, so
//! is a long one.

use std::cell::Cell;
use std::time::{Duration, Instant};

/// A thread that the system pauses, pauses for longer.
const PAUSE_MIN: Duration = Duration::from_micros(200);

/// What was asked so long ago is asked anew before work begins.
const FRESH_MAX: Duration = Duration::from_millis(1);

/// The clock of one thread.
#[derive(Debug, Default)]
pub(crate) struct CpuClock {
    read: Cell<Option<Reading>>,
    /// CPU time that was told since.
    told: Cell<Duration>,
}

/// CPU time of the thread at a moment.
#[derive(Clone, Copy, Debug)]
struct Reading {
    at: Instant,
    used: Duration,
}

impl CpuClock {
    /// Work begins.
    pub fn begin(&self, now: Instant) {
        if self.read.get().is_none_or(|read| now.duration_since(read.at) > FRESH_MAX) {
            self.read_at(now);
        }
    }

    /// CPU time of a stretch of work that ends now and lasted so long.
    pub fn spent(&self, now: Instant, lasted: Duration) -> Duration {
        if lasted < PAUSE_MIN {
            self.told.set(self.told.get() + lasted);
            return lasted;
        }
        let (before, told) = (self.read.get(), self.told.get());
        match (before, self.read_at(now)) {
            (Some(before), Some(used)) => used.saturating_sub(before.used).saturating_sub(told).min(lasted),
            _ => lasted,
        }
    }

    fn read_at(&self, at: Instant) -> Option<Duration> {
        let used = used_by_this_thread();
        self.read.set(used.map(|used| Reading { at, used }));
        self.told.set(Duration::ZERO);
        used
    }
}

#[cfg(target_os = "linux")]
fn used_by_this_thread() -> Option<Duration> {
    let used = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Some(Duration::new(u64::try_from(used.tv_sec).ok()?, u32::try_from(used.tv_nsec).ok()?))
}

#[cfg(not(target_os = "linux"))]
fn used_by_this_thread() -> Option<Duration> {
    None
}

#[cfg(target_os = "linux")]
#[cfg(test)]
mod tests {
    use super::*;

    fn told(work: impl FnOnce()) -> (Duration, Duration) {
        let (clock, start) = (CpuClock::default(), Instant::now());
        clock.begin(start);
        work();
        let end = Instant::now();
        (clock.spent(end, end.duration_since(start)), end.duration_since(start))
    }

    #[test]
    fn pauses_are_no_work() {
        let (spent, lasted) = told(|| std::thread::sleep(Duration::from_millis(50)));
        assert!(spent < Duration::from_millis(20) && lasted >= Duration::from_millis(50), "{spent:?} of {lasted:?}");
    }

    #[test]
    fn work_is_told() {
        let (spent, lasted) = told(|| {
            let before = used_by_this_thread().expect("Linux has clocks of threads");
            while used_by_this_thread().is_some_and(|used| used - before < Duration::from_millis(20)) {}
        });
        assert!(spent >= Duration::from_millis(20) && spent <= lasted, "{spent:?} of {lasted:?}");
    }

    #[test]
    fn what_was_told_is_not_told_again() {
        let (clock, start) = (CpuClock::default(), Instant::now());
        clock.begin(start);
        let short = PAUSE_MIN / 2;
        assert_eq!(clock.spent(start + short, short), short);
        let before = used_by_this_thread().expect("Linux has clocks of threads");
        std::thread::sleep(Duration::from_millis(10));
        let spent = clock.spent(Instant::now(), Duration::from_millis(10));
        let used = used_by_this_thread().expect("Linux has clocks of threads") - before;
        assert!(spent <= used + Duration::from_millis(5), "{spent:?} of {used:?}");
    }
}
