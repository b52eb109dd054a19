//! The memory that this process may use.
//!
//! Sources: the Linux kernel's documentation of `memory.max` (control groups, version 2) and of
//! `memory.limit_in_bytes` (version 1), and proc(5) of `MemTotal`.

use std::fs::read_to_string;

/// Where a limit of a container is told, in bytes; `max`, or more than there is, where none is set.
const LIMITS: [&str; 2] = ["/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"];

/// Two thirds of the bytes that the machine has, or that its container may use: what programs that
/// run for long set as [`memory_limit`](super::options::Options::memory_limit). The rest is for
/// what is not counted: programs' text, threads, and what the allocator keeps in hand.
///
/// `None` where the system does not tell (it is asked on Linux only).
pub fn memory_for_state() -> Option<usize> {
    let told = LIMITS.iter().filter_map(|file| read_to_string(file).ok()?.trim().parse::<usize>().ok());
    let all = told.chain(memory_of_machine(&read_to_string("/proc/meminfo").ok()?)).min()?;
    Some(all / 3 * 2)
}

/// The bytes of the line `MemTotal: 24684084 kB`.
fn memory_of_machine(told: &str) -> Option<usize> {
    let line = told.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kilobytes: usize = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kilobytes.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_read_of_what_the_kernel_tells() {
        assert_eq!(memory_of_machine("MemTotal:       24684084 kB\nMemFree: 1 kB\n"), Some(24_684_084 * 1024));
        assert_eq!(memory_of_machine("MemFree: 1 kB\n"), None);
    }
}
