//! Sorting rows by two words: one scatter by the leading bits of the hash, then small sorts.
//!
//! Hashes are uniform, so one pass puts nearly every row within a few places of where it belongs, and the small sorts that
//! follow stay in the first-level cache. Skewed keys (or a bad hash) only make some of the small sorts larger: O(n log n) in the worst case.

/// A row and the two words that (nearly) decide its place.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub(crate) struct Entry {
    /// Hash of the key.
    pub hash: u64,
    /// The value word.
    pub word: u64,
    /// The row.
    pub row: u32,
}

/// Rows that a bucket of the scatter aims for.
const BUCKET_ROWS: usize = 16;

/// Buckets of one scatter, at most: more of them would not stay in the second-level cache while they are written.
const BUCKET_BITS_MAX: u32 = 12;

/// Sorts by (hash, word). Not stable.
pub(crate) fn sort_entries(entries: Vec<Entry>) -> Vec<Entry> {
    let bits = (entries.len() / BUCKET_ROWS).checked_ilog2().unwrap_or(0).min(BUCKET_BITS_MAX);
    if bits == 0 {
        let mut entries = entries;
        sort_small(&mut entries);
        return entries;
    }
    let (mut sorted, starts) = scatter(&entries, bits);
    for bounds in starts.windows(2) {
        sort_small(&mut sorted[bounds[0]..bounds[1]]);
    }
    sorted
}

/// Moves entries into buckets by the leading `bits` bits of their hash. Returns where the buckets start (and the last ends).
fn scatter(entries: &[Entry], bits: u32) -> (Vec<Entry>, Vec<usize>) {
    let bucket_of = |entry: &Entry| (entry.hash >> (64 - bits)) as usize;
    let mut starts = vec![0; (1 << bits) + 1];
    for entry in entries {
        starts[bucket_of(entry) + 1] += 1;
    }
    for bucket in 0..1 << bits {
        starts[bucket + 1] += starts[bucket];
    }
    let mut next = starts.clone();
    let mut sorted = vec![Entry::default(); entries.len()];
    for entry in entries {
        let place = &mut next[bucket_of(entry)];
        sorted[*place] = *entry;
        *place += 1;
    }
    (sorted, starts)
}

fn sort_small(entries: &mut [Entry]) {
    entries.sort_unstable_by_key(|entry| (u128::from(entry.hash) << 64) | u128::from(entry.word));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_come_out_in_order() {
        for n in [0, 1, 5, 100, 10_000] {
            for mask in [!0, 0xFF, 0xF << 60] {
                let hash = |row: u64| row.wrapping_mul(0x9E37_79B9_7F4A_7C15) & mask;
                let entries: Vec<Entry> =
                    (0..n).map(|row| Entry { hash: hash(row), word: row % 3, row: row as u32 }).collect();
                let mut expected = entries.clone();
                expected.sort_by_key(|entry| (entry.hash, entry.word));
                let sorted = sort_entries(entries);
                assert!(sorted.iter().zip(&expected).all(|(a, b)| (a.hash, a.word) == (b.hash, b.word)));
                let mut rows: Vec<u32> = sorted.iter().map(|entry| entry.row).collect();
                rows.sort_unstable();
                assert!(rows.iter().enumerate().all(|(i, &row)| i == row as usize));
            }
        }
    }
}
