//! Tests of the operators through their public API.

mod tactics;

/// Bits of hashes that count in this process: all.
pub fn hash_mask() -> u64 {
    !0
}
