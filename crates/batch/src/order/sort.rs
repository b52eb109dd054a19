//! Sorting rows by their hash.
//!
//! Rows travel as one integer: the first half of their hash above their number. Good hashes are uniform, so their first bits say almost
//! exactly where a row belongs: a radix sort on about as many bits as the number of rows has (two stable passes, each over a part small enough for the
//! cache) leaves next to nothing to do, and each little run of equal first bits is then sorted. Hashes that are not uniform (many equal
//! rows, or a test's bad hash) leave long runs, which the standard sort takes over.
//!
//! Cost: O(n) expected on uniform hashes, O(n log n) on any; SORT_NS ns a row for 65,536 rows where the standard sort takes 31
//! (examples/kernels.rs).

/// Bits of one pass at most: write positions of all its parts stay in the first-level cache.
const PASS_BITS_MAX: u32 = 11;

/// The rows `0 .. hashes.len()` in order of (hash, row).
///
/// # Panics
/// If there are 2^32 rows or more.
pub fn sort_by_hash(hashes: &[u64]) -> Vec<u32> {
    assert!(u32::try_from(hashes.len()).is_ok(), "a batch has less than 2^32 rows");
    let keys: Vec<u64> = hashes.iter().zip(0u32..).map(|(&hash, row)| hash >> 32 << 32 | u64::from(row)).collect();
    let (mut keys, sorted_bits) = sort_first_bits(keys);
    for run in keys.chunk_by_mut(|a, b| (a ^ b).leading_zeros() >= sorted_bits) {
        if run.len() > 1 {
            run.sort_unstable();
        }
    }
    let mut rows: Vec<u32> = keys.iter().map(|&key| key as u32).collect();
    sort_second_halves(&keys, &mut rows, hashes);
    rows
}

/// Keys in order of their first bits, stably, and how many bits that is.
fn sort_first_bits(keys: Vec<u64>) -> (Vec<u64>, u32) {
    let bits = keys.len().checked_ilog2().unwrap_or(0).saturating_sub(2).div_ceil(2).min(PASS_BITS_MAX);
    if bits < 2 {
        return (keys, 0);
    }
    let keys = scatter(&keys, 64 - 2 * bits, bits);
    (scatter(&keys, 64 - bits, bits), 2 * bits)
}

/// One stable counting sort, on `bits` bits of the keys from `shift` up.
fn scatter(keys: &[u64], shift: u32, bits: u32) -> Vec<u64> {
    let part = |key: u64| (key >> shift) as usize & ((1 << bits) - 1);
    let mut next = vec![0u32; 1 << bits];
    for &key in keys {
        next[part(key)] += 1;
    }
    let mut start = 0;
    for count in &mut next {
        start += std::mem::replace(count, start);
    }
    let mut sorted = vec![0; keys.len()];
    for &key in keys {
        let place = &mut next[part(key)];
        sorted[*place as usize] = key;
        *place += 1;
    }
    sorted
}

/// Orders rows whose hashes have the same first half by (hash, row).
fn sort_second_halves(keys: &[u64], rows: &mut [u32], hashes: &[u64]) {
    let mut start = 0;
    for run in keys.chunk_by(|a, b| a >> 32 == b >> 32) {
        let ties = &mut rows[start..start + run.len()];
        start += run.len();
        if ties.len() > 1 && !ties.is_sorted_by_key(|&row| hashes[row as usize]) {
            ties.sort_unstable_by_key(|&row| (hashes[row as usize], row));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Rng;

    #[test]
    fn any_distribution_of_hashes_sorts_by_hash_then_row() {
        let mut rng = Rng::new(1);
        for mask in [!0, 0, 0xff, 0xff << 56, 1 << 63, 0xf0f0] {
            for n in [0, 1, 2, 3, 50, 1000, 40_000] {
                let hashes: Vec<u64> = (0..n).map(|_| rng.next() & mask).collect();
                let mut expected: Vec<u32> = (0..n as u32).collect();
                expected.sort_by_key(|&row| (hashes[row as usize], row));
                assert_eq!(sort_by_hash(&hashes), expected, "mask {mask:x}, {n} rows");
            }
        }
    }
}
