//! Sorting rows by their hash.
//!
//! A row travels as one integer: 32 bits of its hash, above its number. They are the first that
//! differ ([`Zoom`]). Hashes are mostly uniform between the least and the greatest, so these bits
//! say almost exactly where a row belongs: a radix sort on four times as many prefixes as there are
//! rows, in passes small enough for the first-level cache, leaves few rows out of place. Each run
//! of equal prefixes that holds one is then sorted. Where hashes crowd together (numbers, but for
//! one far away) long runs tie: they are sorted by radix again, by the bits in which they differ.
//! Hashes of which none is far from the others (the times of a batch, say) are counted instead, one
//! by one.
//!
//! Cost: O(n) where they come in order, and expected on hashes that are uniform, or are in places;
//! O(n log n) on any. 3 ns a row for 1,000 to 250,000 rows, where the standard sort of (hash, row)
//! takes 9 to 50 (examples/kernels.rs).

use crate::control::Time;
use crate::hash::hash_word;

/// Bits of one pass at most.
const PASS_BITS_MAX: u32 = 11;
/// Fewer rows than this are left to the standard sort.
const RADIX_ROWS_MIN: usize = 32;
/// Hashes within this are counted one by one: the counts stay in the second-level cache.
const DENSE_RANGE_MAX: usize = 1 << 17;

/// The rows `0 .. hashes.len()` in order of (hash, row).
///
/// # Panics
/// If there are 2^32 rows or more.
pub fn sort_by_hash(hashes: &[u64]) -> Vec<u32> {
    assert!(u32::try_from(hashes.len()).is_ok(), "a batch has less than 2^32 rows");
    if hashes.is_sorted() {
        return (0..hashes.len() as u32).collect();
    }
    let zoom = Zoom::new(hashes);
    if zoom.range < (DENSE_RANGE_MAX.min(2 * hashes.len())) as u64 {
        return sort_dense(hashes, zoom);
    }
    let mut rows: Vec<u32> = sort_zoomed(hashes, zoom).collect();
    let mut start = if zoom.is_exact() { rows.len() } else { 0 };
    while start < rows.len() {
        let hash = hashes[rows[start] as usize];
        let ties = rows[start..].iter().take_while(|&&row| zoom.ties(hash, hashes[row as usize])).count();
        sort_rows_by_hash(&mut rows[start..start + ties], hashes);
        start += ties;
    }
    rows
}

/// The rows `0 .. hashes.len()` in order of (the hash through `zoom`, row): those that tie there
/// are still in order of rows.
///
/// # Panics
/// If there are 2^32 rows or more.
pub fn sort_zoomed(hashes: &[u64], zoom: Zoom) -> impl ExactSizeIterator<Item = u32> {
    assert!(u32::try_from(hashes.len()).is_ok(), "a batch has less than 2^32 rows");
    let key = |(&hash, row): (&u64, u32)| zoom.spread(hash) >> 32 << 32 | u64::from(row);
    let mut keys: Vec<u64> = hashes.iter().zip(0u32..).map(key).collect();
    let prefix_bits = sort_prefixes(&mut keys);
    sort_misplaced(&mut keys, prefix_bits);
    keys.into_iter().map(|key| key as u32)
}

/// The rows of these times, in order of (time, row).
///
/// # Panics
/// If there are 2^32 rows or more.
pub fn sort_by_time(times: &[Time]) -> Vec<u32> {
    if times.is_sorted() {
        return (0..times.len() as u32).collect();
    }
    sort_by_hash(&times.iter().map(|&time| hash_word(time as u64)).collect::<Vec<u64>>())
}

/// The same of hashes (or numbers, or times) that are close together: a counting sort.
fn sort_dense(hashes: &[u64], zoom: Zoom) -> Vec<u32> {
    let place = |hash: u64| (hash - zoom.least) as usize;
    let mut next = vec![0u32; zoom.range as usize + 1];
    hashes.iter().for_each(|&hash| next[place(hash)] += 1);
    starts(&mut next);
    let mut rows = vec![0; hashes.len()];
    for (&hash, row) in hashes.iter().zip(0u32..) {
        let place = &mut next[place(hash)];
        rows[*place as usize] = row;
        *place += 1;
    }
    rows
}

/// Turns counts into the sums of those before.
fn starts(counts: &mut [u32]) {
    let mut start = 0;
    for count in counts {
        start += std::mem::replace(count, start);
    }
}

/// The 32 bits that tell some hashes apart best: what all of them have in common is left out.
#[derive(Clone, Copy, Debug)]
pub struct Zoom {
    least: u64,
    /// The greatest less the least.
    range: u64,
    /// First bits in which no two differ by more than a carry.
    in_common: u32,
}

impl Zoom {
    /// That of these hashes. O(hashes).
    pub fn new(hashes: &[u64]) -> Zoom {
        let (least, most) = hashes.iter().fold((u64::MAX, 0), |(least, most), &hash| (hash.min(least), hash.max(most)));
        let range = most.saturating_sub(least);
        Zoom { least, range, in_common: range.leading_zeros() }
    }

    #[inline]
    fn spread(self, hash: u64) -> u64 {
        (hash - self.least).unbounded_shl(self.in_common)
    }

    /// Whether two of the hashes are equal as far as is seen.
    #[inline]
    pub fn ties(self, a: u64, b: u64) -> bool {
        (self.spread(a) ^ self.spread(b)) >> 32 == 0
    }

    /// Whether hashes that tie are equal.
    #[inline]
    pub fn is_exact(self) -> bool {
        self.in_common >= 32
    }
}

/// Brings keys in order of their first bits, and tells how many bits those are.
fn sort_prefixes(keys: &mut Vec<u64>) -> u32 {
    if keys.len() < RADIX_ROWS_MIN {
        return 0;
    }
    let n_passes = (keys.len().ilog2() + 2).div_ceil(PASS_BITS_MAX);
    let bits = (keys.len().ilog2() + 2).div_ceil(n_passes);
    let mut other = vec![0; keys.len()];
    for pass in (1..=n_passes).rev() {
        scatter(keys, &mut other, 64 - pass * bits, bits);
        std::mem::swap(keys, &mut other);
    }
    n_passes * bits
}

/// One stable counting sort, on `bits` bits of the keys from bit `shift` up.
fn scatter(keys: &[u64], sorted: &mut [u64], shift: u32, bits: u32) {
    let part = |key: u64| (key >> shift) as usize & ((1 << bits) - 1);
    let mut next = vec![0u32; 1 << bits];
    for &key in keys {
        next[part(key)] += 1;
    }
    starts(&mut next);
    for &key in keys {
        let place = &mut next[part(key)];
        sorted[*place as usize] = key;
        *place += 1;
    }
}

/// Sorts keys that are in order of their first `prefix_bits` bits: each run of one prefix in which
/// a key stands after a larger one.
fn sort_misplaced(keys: &mut [u64], prefix_bits: u32) {
    let same_prefix = |a: u64, b: u64| (a ^ b).unbounded_shr(64 - prefix_bits) == 0;
    let mut at = 1;
    while at < keys.len() {
        if keys[at - 1] > keys[at] {
            let key = keys[at];
            let before = keys[..at].iter().rev().take_while(|&&other| same_prefix(other, key)).count();
            let after = keys[at..].iter().take_while(|&&other| same_prefix(other, key)).count();
            keys[at - before..at + after].sort_unstable();
            at += after;
        }
        at += 1;
    }
}

/// Sorts some rows, which come in ascending order, by (hash, row).
pub fn sort_rows_by_hash(rows: &mut [u32], hashes: &[u64]) {
    if rows.len() < 2 || rows.is_sorted_by_key(|&row| hashes[row as usize]) {
        return;
    }
    if rows.len() < RADIX_ROWS_MIN {
        return rows.sort_by_key(|&row| hashes[row as usize]);
    }
    // (Those that tied in a zoom have more bits in common than those around them, so this comes to
    // an end.)
    let tied: Vec<u64> = rows.iter().map(|&row| hashes[row as usize]).collect();
    let sorted: Vec<u32> = sort_by_hash(&tied).into_iter().map(|at| rows[at as usize]).collect();
    rows.copy_from_slice(&sorted);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Rng;

    #[test]
    fn any_distribution_of_hashes_sorts_by_hash_then_row() {
        let mut rng = Rng::new(1);
        for mask in
            [!0, 0, 0xff, 0xff << 56, 1 << 63, 0xf0f0, 0xffff << 24, 0x8000_0000_0000_ffff, 0x8000_0100_0000_0fff]
        {
            for n in [0, 1, 2, 3, 31, 32, 50, 1000, 40_000] {
                let hashes: Vec<u64> = (0..n).map(|_| rng.next() & mask).collect();
                let mut expected: Vec<u32> = (0..n as u32).collect();
                expected.sort_by_key(|&row| (hashes[row as usize], row));
                assert_eq!(sort_by_hash(&hashes), expected, "mask {mask:x}, {n} rows");
            }
        }
    }
}
