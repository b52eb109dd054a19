//! Finding key hashes in a sorted part of a run.
//!
//! Hashes are mostly uniform between the first and the last, so a place is guessed by
//! interpolation: among the chunks, then in the chunk, then once more from what was found there;
//! the last few rows are galloped, which also makes every answer right when hashes are not uniform
//! at all.
//!
//! Cost: for few keys, two or three cache lines a key; for about as many keys as rows, galloping
//! from one to the next, O(log gap). Memory latency, not instructions, is what a probe pays for. So
//! each step is made for a whole block of keys, and for all parts of all runs, before the next
//! step: the loads of one step do not depend on each other, and the processor waits for them
//! together.

use crate::hashes::{Ascending, HashesView, gallop, gallop_up};
use crate::run::SortedPart;

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

/// A search for ascending hashes in one part, block after block. Legal order of calls, for each
/// block: `start`, `refine`, `finish`.
#[derive(Debug)]
pub(crate) struct HashSearch<'a> {
    part: &'a SortedPart,
    /// How far wanted hashes lie apart.
    rows_per_key: usize,
    /// Where the last block ended.
    chunk: usize,
    row: usize,
    /// A guess for each hash of the block, up to the first hash after all rows.
    guesses: Vec<HashGuess<'a>>,
}

/// Where a hash may be.
#[derive(Clone, Copy, Debug)]
struct HashGuess<'a> {
    /// The hashes of the chunk.
    hashes: HashesView<'a>,
    row: usize,
    chunk: u32,
    /// Rows per unit of hash.
    density: f64,
}

impl<'a> HashSearch<'a> {
    pub fn new(part: &'a SortedPart, rows_per_key: usize) -> HashSearch<'a> {
        HashSearch { part, rows_per_key, chunk: 0, row: 0, guesses: Vec::new() }
    }

    /// Guesses where `hashes` (ascending, none before those of the last block) are.
    pub fn start(&mut self, hashes: &[u64]) {
        self.guesses.clear();
        if self.is_dense() {
            return;
        }
        for &hash in hashes {
            self.chunk = find_chunk(self.part, self.chunk, hash);
            if self.chunk == self.part.lasts.len() {
                return;
            }
            self.guesses.push(guess_in_chunk(self.part, self.chunk, hash));
        }
    }

    /// Makes the guesses better. (A second time, or counting in a window instead of galloping,
    /// costs more than it gains.)
    pub fn refine(&mut self, hashes: &[u64]) {
        for (guess, &hash) in self.guesses.iter_mut().zip(hashes) {
            guess.row = refine(guess, hash);
        }
    }

    /// Appends a hit for each of `hashes` that is there.
    pub fn finish(&mut self, hashes: &[u64], hits: &mut Vec<Hit>) {
        if self.is_dense() {
            return self.walk(hashes, hits);
        }
        for (key, (guess, &hash)) in self.guesses.iter().zip(hashes).enumerate() {
            let row = guess.hashes.gallop(guess.row, hash);
            if guess.hashes.at(row) == hash {
                hits.push(Hit { key: key as u32, chunk: guess.chunk, row: row as u32 });
            }
        }
    }

    /// Gallops from key to key.
    fn walk(&mut self, hashes: &[u64], hits: &mut Vec<Hit>) {
        let lasts = &self.part.lasts;
        for (key, &hash) in hashes.iter().enumerate() {
            if self.chunk < lasts.len() && lasts[self.chunk] < hash {
                self.chunk = gallop_up(&lasts[..], self.chunk, hash);
                self.row = 0;
            }
            let Some(rows) = self.part.hashes.get(self.chunk) else { return };
            let rows = rows.view();
            self.row = rows.gallop_up(self.row, hash);
            if rows.at(self.row) == hash {
                hits.push(Hit { key: key as u32, chunk: self.chunk as u32, row: self.row as u32 });
            }
        }
    }

    fn is_dense(&self) -> bool {
        self.rows_per_key <= GALLOP_ROWS_MAX
    }
}

/// The first chunk from `from` on that ends at or after `hash`.
fn find_chunk(part: &SortedPart, from: usize, hash: u64) -> usize {
    let lasts = &part.lasts[from..];
    match lasts.first() {
        None => return from,
        Some(&last) if hash <= last => return from,
        Some(_) => {}
    }
    // (The chunk before ends below.)
    let (before, last) = (lasts[0], lasts[lasts.len() - 1]);
    let density = lasts.len() as f64 / to_float(last.saturating_sub(before)).max(1.0);
    let guess = (to_float(hash - before) * density) as usize;
    from + gallop(lasts, guess.min(lasts.len() - 1), hash)
}

fn guess_in_chunk(part: &SortedPart, chunk: usize, hash: u64) -> HashGuess<'_> {
    let (first, last) = (part.firsts[chunk], part.lasts[chunk]);
    let hashes = part.hashes[chunk].view();
    let density = (hashes.len() - 1) as f64 / to_float(last - first).max(1.0);
    let row = (to_float(hash.saturating_sub(first)) * density) as usize;
    HashGuess { hashes, row: row.min(hashes.len() - 1), chunk: chunk as u32, density }
}

/// Half of a distance between hashes: signed integers convert in one instruction.
#[inline]
fn to_float(distance: u64) -> f64 {
    (distance >> 1).cast_signed() as f64
}

/// A better guess, from the hash found at the last one.
#[inline]
fn refine(guess: &HashGuess, hash: u64) -> usize {
    let found = guess.hashes.at(guess.row);
    let shift = (to_float(hash.abs_diff(found)) * guess.density) as usize;
    let (before, after) = (guess.row.saturating_sub(shift), (guess.row + shift).min(guess.hashes.len() - 1));
    if hash < found { before } else { after }
}
