//! Sorting rows by their hash.
//!
//! Good hashes are uniform, so the first bits of a hash say almost exactly where its row belongs: one counting sort on those bits leaves
//! a few rows a bucket, and an insertion sort ends it. Hashes that are not uniform (many equal rows, or a test's bad hash) make large
//! buckets, which the standard sort takes over. Expected O(n) on uniform hashes, O(n log n) on any.

/// Rows a bucket has on average.
const BUCKET_ROWS: usize = 2;
/// Buckets at most: their counters and write positions stay in the second-level cache.
const BUCKET_BITS_MAX: u32 = 14;
/// Above this many rows a bucket is left to the standard sort.
const INSERTION_ROWS_MAX: usize = 24;

/// The rows `0 .. hashes.len()` in order of (hash, row).
pub fn sort_by_hash(hashes: &[u64]) -> Vec<u32> {
    assert!(u32::try_from(hashes.len()).is_ok(), "a batch has less than 2^32 rows");
    let bits = (hashes.len() / BUCKET_ROWS).checked_ilog2().unwrap_or(0).min(BUCKET_BITS_MAX);
    let (mut pairs, bounds) = scatter(hashes, bits);
    for bucket in bounds.windows(2) {
        sort_bucket(&mut pairs[bucket[0] as usize..bucket[1] as usize]);
    }
    pairs.into_iter().map(|(_, row)| row).collect()
}

/// The hashes with their rows, ordered by the first `bits` bits and then by row; and the bounds of the `1 << bits` buckets.
fn scatter(hashes: &[u64], bits: u32) -> (Vec<(u64, u32)>, Vec<u32>) {
    let bucket = |hash: u64| (hash.unbounded_shr(64 - bits)) as usize;
    let mut bounds = vec![0u32; (1 << bits) + 1];
    for &hash in hashes {
        bounds[bucket(hash) + 1] += 1;
    }
    for i in 1..bounds.len() {
        bounds[i] += bounds[i - 1];
    }
    let mut next = bounds.clone();
    let mut pairs = vec![(0, 0); hashes.len()];
    for (row, &hash) in hashes.iter().enumerate() {
        let slot = &mut next[bucket(hash)];
        pairs[*slot as usize] = (hash, row as u32);
        *slot += 1;
    }
    (pairs, bounds)
}

/// Sorts by (hash, row) what is in order of row already.
#[inline]
fn sort_bucket(bucket: &mut [(u64, u32)]) {
    if bucket.len() > INSERTION_ROWS_MAX {
        return bucket.sort_unstable();
    }
    for i in 1..bucket.len() {
        let pair = bucket[i];
        let mut at = i;
        while at > 0 && bucket[at - 1].0 > pair.0 {
            bucket[at] = bucket[at - 1];
            at -= 1;
        }
        bucket[at] = pair;
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
