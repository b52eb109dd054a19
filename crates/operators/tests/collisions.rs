//! The tests of the tactics again, in a process whose hash function is deliberately bad: a
//! collision may cost time, never an answer.

#[path = "it/tactics/mod.rs"]
mod tactics;

/// Bits of hashes that count in this process: three.
pub fn hash_mask() -> u64 {
    0x8000_0000_0000_0005
}
