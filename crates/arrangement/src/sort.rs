//! Sorting rows by two words: by the hash first, by radix; then by the second word where hashes
//! tie.
//!
//! Cost: O(rows) on hashes that come in order, or are uniform, also in a narrow range, as those of
//! a block of a merge are; see `order::sort_zoomed`. Rows that tie are few, or come as a few sorted
//! lists one after the other, which the standard sort notices; or they are many, then they are
//! sorted by radix again.

use std::cmp::Ordering;
use std::ops::Range;

use anabranch_batch::order::{Zoom, sort_by_hash, sort_zoomed};

use network::{NETWORK_ROWS_MAX, group_starts, sort_group};

mod network;

/// A row and the two words that (nearly) decide its place.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub(crate) struct HashEntry {
    /// Hash of the key.
    pub hash: u64,
    /// The value word.
    pub word: u64,
    /// The row.
    pub row: u32,
}

/// Fewer ties than this are left to the standard sort, also where their hashes differ.
const RADIX_ROWS_MIN: usize = 64;

/// Rows in order, as parallel lists.
pub(crate) struct Sorted {
    pub hashes: Vec<u64>,
    pub words: Vec<u64>,
    pub rows: Vec<u32>,
    /// Some have the same hash.
    pub hashes_tie: bool,
    /// Some have the same hash and the same word.
    pub words_tie: bool,
}

/// What two rows may have in common.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Tie {
    Hash,
    /// Hash and word.
    Words,
}

/// The rows with these hashes, and these words (zero if there are none), in order of (hash, word,
/// row).
pub(crate) fn sort_rows(hashes: &[u64], words: Option<&[u64]>) -> Sorted {
    if hashes.is_sorted() {
        let mut sorted = Sorted {
            hashes: hashes.to_vec(),
            words: words.map_or_else(|| vec![0; hashes.len()], <[u64]>::to_vec),
            rows: (0..hashes.len() as u32).collect(),
            hashes_tie: false,
            words_tie: false,
        };
        sorted.sort_ties(0..hashes.len(), |a, b| a == b, true);
        return sorted;
    }
    let zoom = Zoom::new(hashes);
    let rows: Vec<u32> = sort_zoomed(hashes, zoom).collect();
    let pick = |from: &[u64]| rows.iter().map(|&row| from[row as usize]).collect();
    let mut sorted = Sorted {
        hashes: pick(hashes),
        words: words.map_or_else(|| vec![0; hashes.len()], pick),
        rows,
        hashes_tie: false,
        words_tie: false,
    };
    sorted.sort_ties(0..hashes.len(), |a, b| zoom.ties(a, b), zoom.is_exact());
    sorted
}

impl Sorted {
    /// Rows that are in order: row `i` comes at `i`.
    pub fn of_ordered(hashes: Vec<u64>, words: Vec<u64>) -> Sorted {
        let rows = (0..hashes.len() as u32).collect();
        let mut sorted = Sorted { hashes, words, rows, hashes_tie: false, words_tie: false };
        let has_ties = |tie| sorted.tied(tie).next().is_some();
        let hashes_tie = has_ties(Tie::Hash);
        let words_tie = hashes_tie && has_ties(Tie::Words);
        (sorted.hashes_tie, sorted.words_tie) = (hashes_tie, words_tie);
        sorted
    }

    pub fn len(&self) -> usize {
        self.rows.len()
    }

    #[inline]
    pub fn at(&self, at: usize) -> HashEntry {
        HashEntry { hash: self.hashes[at], word: self.words[at], row: self.rows[at] }
    }

    /// Positions of rows that tie with the one before.
    pub fn tied(&self, tie: Tie) -> impl Iterator<Item = usize> {
        let hashes = self.hashes.windows(2).enumerate();
        let tied = hashes.filter(|(_, pair)| pair[0] == pair[1]).map(|(at, _)| at + 1);
        tied.filter(move |&at| tie == Tie::Hash || self.words[at - 1] == self.words[at])
    }

    /// The rows around `at` that tie with it.
    pub fn group(&self, at: usize, tie: Tie) -> Range<usize> {
        let here = self.at(at);
        let ties =
            |&other: &usize| self.hashes[other] == here.hash && (tie == Tie::Hash || self.words[other] == here.word);
        let before = (0..at).rev().take_while(ties).count();
        let after = (at..self.len()).take_while(ties).count();
        at - before..at + after
    }

    /// Sorts some rows anew, stably.
    pub fn sort_range(&mut self, range: Range<usize>, compare: impl Fn(&HashEntry, &HashEntry) -> Ordering) {
        let mut entries: Vec<HashEntry> = range.clone().map(|at| self.at(at)).collect();
        entries.sort_by(compare);
        for (at, entry) in range.zip(entries) {
            self.set(at, entry);
        }
    }

    /// Exchanges two rows.
    pub fn swap(&mut self, a: usize, b: usize) {
        self.hashes.swap(a, b);
        self.words.swap(a, b);
        self.rows.swap(a, b);
    }

    fn set(&mut self, at: usize, entry: HashEntry) {
        self.hashes[at] = entry.hash;
        self.words[at] = entry.word;
        self.rows[at] = entry.row;
    }

    /// Puts some rows in an order of theirs.
    fn permute(&mut self, range: Range<usize>, order: &[u32]) {
        let entries: Vec<HashEntry> = order.iter().map(|&at| self.at(range.start + at as usize)).collect();
        for (at, entry) in range.zip(entries) {
            self.set(at, entry);
        }
    }

    /// Sorts neighbours whose hashes nearly tie (or do, if that `is_exact`), so far in order of
    /// rows.
    fn sort_ties(&mut self, range: Range<usize>, ties: impl Fn(u64, u64) -> bool, is_exact: bool) {
        let starts = group_starts(&self.hashes[range.clone()], ties);
        if starts.len() == range.len() + 1 {
            return;
        }
        for group in starts.windows(2) {
            let (start, end) = (range.start + group[0] as usize, range.start + group[1] as usize);
            let n = end - start;
            if n == 1 {
                continue;
            }
            let is_few = n <= NETWORK_ROWS_MAX && (is_exact || self.have_one_hash(start..end));
            if !is_few || !sort_group(&mut self.words[start..], &mut self.rows[start..], n) {
                self.sort_some(start..end);
            }
        }
        self.note_ties(range);
    }

    fn have_one_hash(&self, range: Range<usize>) -> bool {
        let hashes = &self.hashes[range];
        hashes.iter().all(|hash| *hash == hashes[0])
    }

    fn note_ties(&mut self, range: Range<usize>) {
        let hashes = self.hashes[range.clone()].windows(2).map(|pair| pair[0] == pair[1]);
        let words = self.words[range].windows(2).map(|pair| pair[0] == pair[1]);
        let (hashes_tie, words_tie) =
            hashes.zip(words).fold((false, false), |(hashes_tie, words_tie), (hash, word)| {
                (hashes_tie | hash, words_tie | (hash & word))
            });
        self.hashes_tie |= hashes_tie;
        self.words_tie |= words_tie;
    }

    /// A stable sort by hash and word.
    fn sort_some(&mut self, range: Range<usize>) {
        if self.have_one_hash(range.clone()) {
            let order = sort_by_hash(&self.words[range.clone()]);
            self.permute(range, &order);
        } else if range.len() < RADIX_ROWS_MIN {
            self.sort_range(range, |a, b| (a.hash, a.word).cmp(&(b.hash, b.word)));
        } else {
            self.sort_crowd(range);
        }
    }

    /// The same of many rows whose hashes differ, but only far behind.
    fn sort_crowd(&mut self, range: Range<usize>) {
        let zoom = Zoom::new(&self.hashes[range.clone()]);
        let order: Vec<u32> = sort_zoomed(&self.hashes[range.clone()], zoom).collect();
        self.permute(range.clone(), &order);
        debug_assert!(zoom.is_exact(), "half of a hash was the same");
        self.sort_ties(range, |a, b| a == b, true);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_come_out_in_order() {
        for n in [0, 1, 5, 100, 10_000] {
            for (mask, offset) in [
                (!0, 0),
                (0xFF, 0),
                (0xF << 60, 0),
                (0xFFFF, 7 << 50),
                (0xF_FFFF, !0 - 0xF_FFFF),
                (0xFFFF << 48 | 0x3FF, 0),
            ] {
                let hash = |row: u64| (row.wrapping_mul(0x9E37_79B9_7F4A_7C15) & mask) + offset;
                let entries: Vec<HashEntry> =
                    (0..n).map(|row| HashEntry { hash: hash(row), word: row % 3, row: row as u32 }).collect();
                let mut expected = entries.clone();
                expected.sort_by_key(|entry| (entry.hash, entry.word, entry.row));
                let hashes: Vec<u64> = entries.iter().map(|entry| entry.hash).collect();
                let words: Vec<u64> = entries.iter().map(|entry| entry.word).collect();
                let sorted = sort_rows(&hashes, Some(&words));
                assert_eq!((0..sorted.len()).map(|at| sorted.at(at)).collect::<Vec<_>>(), expected);
                let ties =
                    |tie: fn(&HashEntry, &HashEntry) -> bool| expected.windows(2).any(|pair| tie(&pair[0], &pair[1]));
                assert_eq!(sorted.hashes_tie, ties(|a, b| a.hash == b.hash));
                assert_eq!(sorted.words_tie, ties(|a, b| (a.hash, a.word) == (b.hash, b.word)));
            }
        }
    }
}
