//! Finding key hashes in a sorted part of a run.
//!
//! Hashes are uniform, so a place is guessed by interpolation: among the chunks, then in the chunk, then once more from what was
//! found there; the last few rows are galloped, which also makes every answer right when hashes are not uniform at all. Guesses for a block
//! of keys are made side by side, so that the processor waits for memory once, not once a key.
//!
//! Cost: for few keys, two or three cache lines a key; for about as many keys as rows, galloping from one to the next, O(log gap).

use crate::run::Part;

/// Keys whose searches overlap.
pub(crate) const BLOCK_KEYS: usize = 64;

/// With fewer rows per key than this, one gallops from key to key instead of guessing.
const GALLOP_ROWS_MAX: usize = 24;

/// The first row with a wanted hash.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Hit {
    /// Index of the hash in its block.
    pub key: u32,
    /// Chunk of the part.
    pub chunk: u32,
    /// Row of the chunk.
    pub row: u32,
}

/// Where a walk through a part stands.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Place {
    chunk: usize,
    row: usize,
}

/// A guess under way.
#[derive(Clone, Copy, Default)]
struct Guess {
    chunk: usize,
    row: usize,
    /// Rows per unit of hash.
    density: f64,
}

/// Finds the first row of each of `hashes` (ascending, at most [`BLOCK_KEYS`]) in `part`; `place` is where the last
/// block ended. Appends a hit for each hash that is there. `rows_per_key` says how far keys lie apart.
pub(crate) fn locate(part: &Part, hashes: &[u64], rows_per_key: usize, place: &mut Place, hits: &mut Vec<Hit>) {
    if rows_per_key <= GALLOP_ROWS_MAX {
        locate_near(part, hashes, place, hits);
    } else {
        locate_far(part, hashes, place, hits);
    }
}

/// Finds the first row with `hash`.
pub(crate) fn locate_one(part: &Part, hash: u64) -> Option<Hit> {
    let mut hits = Vec::with_capacity(1);
    locate_far(part, &[hash], &mut Place::default(), &mut hits);
    hits.pop()
}

/// Gallops from key to key.
fn locate_near(part: &Part, hashes: &[u64], place: &mut Place, hits: &mut Vec<Hit>) {
    for (key, &hash) in hashes.iter().enumerate() {
        while place.chunk < part.lasts.len() && part.lasts[place.chunk] < hash {
            *place = Place { chunk: place.chunk + gallop_up(&part.lasts[place.chunk..], hash), row: 0 };
        }
        let Some(rows) = part.hashes.get(place.chunk) else { return };
        place.row += gallop_up(&rows[place.row..], hash);
        if rows[place.row] == hash {
            hits.push(Hit { key: key as u32, chunk: place.chunk as u32, row: place.row as u32 });
        }
    }
}

/// Interpolates, for all keys at a time.
fn locate_far(part: &Part, hashes: &[u64], place: &mut Place, hits: &mut Vec<Hit>) {
    assert!(hashes.len() <= BLOCK_KEYS, "a block of keys is bounded");
    let mut guesses = [Guess::default(); BLOCK_KEYS];
    let mut n = 0;
    for (guess, &hash) in guesses.iter_mut().zip(hashes) {
        let chunk = find_chunk(part, place.chunk, hash);
        if chunk == part.lasts.len() {
            break;
        }
        *guess = guess_in_chunk(part, chunk, hash);
        place.chunk = chunk;
        n += 1;
    }
    for (guess, &hash) in guesses[..n].iter_mut().zip(hashes) {
        guess.row = refine(&part.hashes[guess.chunk], guess, hash);
    }
    for (key, (guess, &hash)) in guesses[..n].iter().zip(hashes).enumerate() {
        let rows = &part.hashes[guess.chunk];
        let row = gallop(rows, guess.row, hash);
        if rows[row] == hash {
            hits.push(Hit { key: key as u32, chunk: guess.chunk as u32, row: row as u32 });
        }
    }
    place.row = 0;
}

/// The first chunk from `from` on that ends at or after `hash`.
fn find_chunk(part: &Part, from: usize, hash: u64) -> usize {
    let lasts = &part.lasts[from..];
    match lasts.first() {
        None => return from,
        Some(&last) if hash <= last => return from,
        Some(_) => {}
    }
    let guess = ((u128::from(hash) * part.lasts.len() as u128) >> 64) as usize;
    from + gallop(lasts, guess.saturating_sub(from).min(lasts.len() - 1), hash)
}

fn guess_in_chunk(part: &Part, chunk: usize, hash: u64) -> Guess {
    let (first, last) = (part.firsts[chunk], part.lasts[chunk]);
    let rows = part.hashes[chunk].len();
    let density = (rows - 1) as f64 / ((last - first) as f64).max(1.0);
    let row = (hash.saturating_sub(first) as f64 * density) as usize;
    Guess { chunk, row: row.min(rows - 1), density }
}

/// A better guess, from the hash found at the first one.
#[inline]
fn refine(rows: &[u64], guess: &Guess, hash: u64) -> usize {
    let found = rows[guess.row];
    let shift = (hash.abs_diff(found) as f64 * guess.density) as usize;
    match hash < found {
        true => guess.row.saturating_sub(shift),
        false => (guess.row + shift).min(rows.len() - 1),
    }
}

/// Index of the first of `sorted` that is at least `wanted`, looking around `guess`. O(log distance).
pub(crate) fn gallop(sorted: &[u64], guess: usize, wanted: u64) -> usize {
    if sorted[guess] < wanted {
        return guess + gallop_up(&sorted[guess..], wanted);
    }
    let mut step = 1;
    let mut high = guess;
    while step <= high && sorted[high - step] >= wanted {
        high -= step;
        step *= 2;
    }
    let low = high.saturating_sub(step);
    low + sorted[low..high].partition_point(|&hash| hash < wanted)
}

/// Index of the first of `sorted` that is at least `wanted`, looking from the start. O(log result).
pub(crate) fn gallop_up(sorted: &[u64], wanted: u64) -> usize {
    let mut step = 1;
    let mut low = 0;
    while low + step <= sorted.len() && sorted[low + step - 1] < wanted {
        low += step;
        step *= 2;
    }
    let high = sorted.len().min(low + step);
    low + sorted[low..high].partition_point(|&hash| hash < wanted)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn galloping_finds_the_lower_bound_from_everywhere() {
        let sorted: Vec<u64> = (0..100).map(|i| i / 3 * 5).collect();
        for wanted in 0..180 {
            let expected = sorted.partition_point(|&hash| hash < wanted);
            assert_eq!(gallop_up(&sorted, wanted), expected);
            for guess in 0..sorted.len() {
                assert_eq!(gallop(&sorted, guess, wanted), expected);
            }
        }
    }
}
