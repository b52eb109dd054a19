//! Sorting rows by two words: one scatter by the leading bits of the hash, small sorts by the hash, and the second word where hashes tie.
//!
//! Hashes are uniform, so one pass puts nearly every row within a few places of where it belongs, and the small sorts that
//! follow stay in the first-level cache. What moves is a hash and a row number; value words are fetched when the order of hashes stands.
//! Skewed keys (or a bad hash) only make some of the small sorts larger: O(n log n) in the worst case.

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

/// A row on its way.
#[derive(Clone, Copy, Default)]
struct Hashed {
    hash: u64,
    row: u32,
}

/// Rows that a bucket of the scatter aims for.
const BUCKET_ROWS: usize = 8;

/// Buckets of one scatter, at most: more of them would not stay in the second-level cache while they are written.
const BUCKET_BITS_MAX: u32 = 14;

/// Buckets of more rows than this are sorted by the library, smaller ones by insertion.
const INSERTION_ROWS_MAX: usize = 24;

/// The rows with these hashes, and the word that each has, in order of (hash, word). Not stable.
pub(crate) fn sort_entries(hashes: &[u64], word: impl Fn(u32) -> u64) -> Vec<Entry> {
    let bits = (hashes.len() / BUCKET_ROWS).checked_ilog2().unwrap_or(0).min(BUCKET_BITS_MAX);
    let sorted = if bits == 0 { sort_unscattered(hashes) } else { sort_scattered(hashes, bits) };
    let entry = |hashed: &Hashed| Entry { hash: hashed.hash, word: word(hashed.row), row: hashed.row };
    let mut entries: Vec<Entry> = sorted.iter().map(entry).collect();
    sort_ties(&mut entries);
    entries
}

fn sort_unscattered(hashes: &[u64]) -> Vec<Hashed> {
    let mut rows: Vec<Hashed> = hashes.iter().zip(0..).map(|(&hash, row)| Hashed { hash, row }).collect();
    sort_small(&mut rows);
    rows
}

fn sort_scattered(hashes: &[u64], bits: u32) -> Vec<Hashed> {
    let (mut rows, starts) = scatter(hashes, bits);
    for bounds in starts.windows(2) {
        sort_small(&mut rows[bounds[0]..bounds[1]]);
    }
    rows
}

/// Moves rows into buckets by the leading `bits` bits of their hash. Returns where the buckets start (and the last ends).
fn scatter(hashes: &[u64], bits: u32) -> (Vec<Hashed>, Vec<usize>) {
    let bucket_of = |hash: u64| (hash >> (64 - bits)) as usize;
    let mut starts = vec![0; (1 << bits) + 1];
    for &hash in hashes {
        starts[bucket_of(hash) + 1] += 1;
    }
    for bucket in 0..1 << bits {
        starts[bucket + 1] += starts[bucket];
    }
    let mut next = starts.clone();
    let mut sorted = vec![Hashed::default(); hashes.len()];
    for (&hash, row) in hashes.iter().zip(0..) {
        let place = &mut next[bucket_of(hash)];
        sorted[*place] = Hashed { hash, row };
        *place += 1;
    }
    (sorted, starts)
}

fn sort_small(rows: &mut [Hashed]) {
    if rows.len() > INSERTION_ROWS_MAX {
        return rows.sort_unstable_by_key(|row| row.hash);
    }
    for end in 1..rows.len() {
        let row = rows[end];
        let mut place = end;
        while place > 0 && rows[place - 1].hash > row.hash {
            rows[place] = rows[place - 1];
            place -= 1;
        }
        rows[place] = row;
    }
}

/// Sorts entries of one hash, which lie side by side, by their words.
fn sort_ties(entries: &mut [Entry]) {
    let mut start = 0;
    while start + 1 < entries.len() {
        let hash = entries[start].hash;
        let mut end = start + 1;
        while end < entries.len() && entries[end].hash == hash {
            end += 1;
        }
        if end - start > 1 {
            entries[start..end].sort_unstable_by_key(|entry| entry.word);
        }
        start = end;
    }
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
                let hashes: Vec<u64> = entries.iter().map(|entry| entry.hash).collect();
                let words: Vec<u64> = entries.iter().map(|entry| entry.word).collect();
                let sorted = sort_entries(&hashes, |row| words[row as usize]);
                assert!(sorted.iter().zip(&expected).all(|(a, b)| (a.hash, a.word) == (b.hash, b.word)));
                let mut rows: Vec<u32> = sorted.iter().map(|entry| entry.row).collect();
                rows.sort_unstable();
                assert!(rows.iter().enumerate().all(|(i, &row)| i == row as usize));
            }
        }
    }
}
