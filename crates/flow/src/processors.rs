//! The processor that a worker runs on, or a shard.
//!
//! Law: where a process has as many workers as processors, each worker has one of its own. Which
//! thread runs where changes no answer.
//!
//! The system alone places threads worse: a caller who gives a command to two workers keeps one
//! processor busy while both wake, so both wake on the other one, and take turns there. A short
//! commit is over before the system looks again
//! ([0117](../../../docs/decisions/0117-a-processor-a-worker.md)). With fewer workers than
//! processors it finds a free one for each.

/// Keeps the thread of worker `index` of `n` on a processor of its own, if there are as many
/// processors as workers. Where the system refuses, the thread stays free.
#[cfg(target_os = "linux")]
pub fn take_own(index: usize, n: usize) {
    use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
    // (A quota of time, as containers have, counts as fewer processors than the set shows.)
    let quota = std::thread::available_parallelism().map_or(1, usize::from);
    let Ok(allowed) = sched_getaffinity(None) else { return };
    let mut processors = (0..CpuSet::MAX_CPU).filter(|processor| allowed.is_set(*processor));
    if n < 2 || quota != n || allowed.count() as usize != n {
        return;
    }
    if let Some(processor) = processors.nth(index) {
        let mut own = CpuSet::new();
        own.set(processor);
        // Without it the worker is slower at most.
        let _ = sched_setaffinity(None, &own);
    }
}

/// Other systems place threads by themselves.
#[cfg(not(target_os = "linux"))]
pub fn take_own(_index: usize, _n: usize) {}
