//! What a process used: CPU seconds of all its threads, and resident memory. Linux only; elsewhere
//! zeros.

use std::fs;

use nix::time::{ClockId, clock_gettime};

/// CPU time of this thread so far, in seconds.
pub fn thread_seconds() -> f64 {
    let time = clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).expect("every Unix has clocks of threads");
    time.tv_sec() as f64 + time.tv_nsec() as f64 * 1e-9
}

/// CPU time of the process so far, in seconds (user and system, all threads).
pub fn cpu_seconds() -> f64 {
    let time = clock_gettime(ClockId::CLOCK_PROCESS_CPUTIME_ID).expect("every Unix has clocks of processes");
    time.tv_sec() as f64 + time.tv_nsec() as f64 * 1e-9
}

/// Resident memory now, in megabytes.
pub fn resident_mb() -> f64 {
    status_kb("VmRSS:") / 1024.0
}

/// The most resident memory since the last [`reset_peak`], in megabytes.
pub fn peak_mb() -> f64 {
    status_kb("VmHWM:") / 1024.0
}

/// Starts measuring the peak anew.
pub fn reset_peak() {
    // Where it cannot be reset the peak includes what came before: larger, never smaller.
    let _ = fs::write("/proc/self/clear_refs", "5");
}

fn status_kb(field: &str) -> f64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix(field)).unwrap_or_default();
    line.split_whitespace().next().and_then(|kb| kb.parse().ok()).unwrap_or_default()
}

/// Makes an allocator that keeps what it is given back hold so many megabytes that the system has
/// cleared already. What a program grows by comes from them then, and a run does not measure what a
/// page costs that the machine had given to others meanwhile: some ten microseconds on a virtual
/// one.
pub fn warm(megabytes: usize) {
    let touched = |_| {
        let mut block = vec![0u8; 1 << 20];
        block.iter_mut().step_by(1 << 12).for_each(|byte| *std::hint::black_box(byte) = 1);
        block
    };
    drop(std::hint::black_box((0..megabytes).map(touched).collect::<Vec<_>>()));
}
