//! The key hashes of a chunk: kept, computed again from the key, or packed.
//!
//! Law: [`Hashes::at`] is the hash of a row's key, ascending with the row. Where the key is one
//! column of 64-bit integers without NULLs its hash is a bijection of the integer, so the integers,
//! which the chunk has anyway, are all that is needed: 8 bytes a row less. Where keys are many,
//! hashes are packed, and it is the key that follows from them (see [`Chunk`](crate::Chunk)).
//!
//! Cost: `at` is one load, two where hashes are packed; a merge, which reads all, asks for
//! [`Hashes::append_to`].

use anabranch_batch::hash;
use arrow::array::ArrayRef;
use arrow::buffer::ScalarBuffer;

use crate::packed::{Packed, PackedView};

/// The key hashes of a chunk.
#[derive(Clone, Debug)]
pub(crate) enum Hashes {
    Kept(ScalarBuffer<u64>),
    /// Integers of the key column, whose memory this is.
    Derived(ScalarBuffer<u64>),
    /// Hashes, of which the key is made.
    Packed(Packed),
}

/// The hashes of a chunk, for loops. (Each asks once which form it is.)
#[derive(Clone, Copy, Debug)]
pub(crate) enum HashesView<'a> {
    Stored(Stored<'a>),
    Packed(PackedView<'a>),
}

/// Hashes, or the integers that they follow from.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stored<'a> {
    words: &'a [u64],
    /// The bits in which a word differs from its hash: see [`hash::hash_word`].
    flip: u64,
}

/// Ascending numbers that can be searched.
pub(crate) trait Ascending: Copy {
    fn len(self) -> usize;
    fn at(self, index: usize) -> u64;
}

impl Hashes {
    /// The hashes of rows whose key columns are these: `kept` unless they follow from the columns.
    pub fn new(kept: &[u64], key: &[ArrayRef]) -> Hashes {
        match hash::invertible_words(key) {
            Some(words) => {
                assert_eq!(words.len(), kept.len(), "a key has one hash per row");
                Hashes::Derived(words)
            }
            None => Hashes::Kept(kept.to_vec().into()),
        }
    }

    pub fn len(&self) -> usize {
        self.view().len()
    }

    #[inline]
    pub fn view(&self) -> HashesView<'_> {
        match self {
            Hashes::Kept(words) => HashesView::Stored(Stored { words, flip: 0 }),
            Hashes::Derived(words) => HashesView::Stored(Stored { words, flip: hash::hash_word(0) }),
            Hashes::Packed(packed) => HashesView::Packed(packed.view()),
        }
    }

    #[inline]
    pub fn at(&self, row: usize) -> u64 {
        self.view().at(row)
    }

    /// All hashes. O(1) where they are kept, else O(rows).
    pub fn all(&self) -> ScalarBuffer<u64> {
        if let Hashes::Kept(words) = self {
            return words.clone();
        }
        let mut hashes = Vec::with_capacity(self.len());
        self.append_to(&mut hashes, 0..self.len());
        hashes.into()
    }

    /// Appends those of some rows.
    pub fn append_to(&self, hashes: &mut Vec<u64>, rows: std::ops::Range<usize>) {
        match self {
            Hashes::Kept(words) => hashes.extend_from_slice(&words[rows]),
            Hashes::Derived(words) => hashes.extend(words[rows].iter().map(|&word| hash::hash_word(word))),
            Hashes::Packed(packed) => packed.view().append_to(hashes, rows),
        }
    }

    /// Those of `rows` rows from `start` on, sharing memory.
    pub fn slice(&self, start: usize, rows: usize) -> Hashes {
        match self {
            Hashes::Kept(words) => Hashes::Kept(words.slice(start, rows)),
            Hashes::Derived(words) => Hashes::Derived(words.slice(start, rows)),
            Hashes::Packed(packed) => Hashes::Packed(packed.slice(start, rows)),
        }
    }

    /// Memory that is not the key column's.
    pub fn size_bytes(&self) -> usize {
        match self {
            Hashes::Kept(words) => size_of::<u64>() * words.len(),
            Hashes::Derived(_) => 0,
            Hashes::Packed(packed) => packed.size_bytes(),
        }
    }
}

impl HashesView<'_> {
    /// How many rows from `start` on have this hash.
    #[inline]
    pub fn count_equal(self, start: usize, hash: u64) -> usize {
        match self {
            HashesView::Stored(stored) => count_equal(stored, start, hash),
            HashesView::Packed(packed) => count_equal(packed, start, hash),
        }
    }

    /// The first row with a hash of at least `wanted`, looking around `guess`. O(log distance).
    #[inline]
    pub fn gallop(self, guess: usize, wanted: u64) -> usize {
        match self {
            HashesView::Stored(stored) => gallop(stored, guess, wanted),
            HashesView::Packed(packed) => gallop(packed, guess, wanted),
        }
    }

    /// The first row from `start` on with a hash of at least `wanted`, looking from there. O(log
    /// distance).
    #[inline]
    pub fn gallop_up(self, start: usize, wanted: u64) -> usize {
        match self {
            HashesView::Stored(stored) => gallop_up(stored, start, wanted),
            HashesView::Packed(packed) => gallop_up(packed, start, wanted),
        }
    }
}

fn count_equal(sorted: impl Ascending, start: usize, wanted: u64) -> usize {
    (start..sorted.len()).take_while(|&row| sorted.at(row) == wanted).count()
}

impl Ascending for HashesView<'_> {
    #[inline]
    fn len(self) -> usize {
        match self {
            HashesView::Stored(stored) => stored.len(),
            HashesView::Packed(packed) => packed.len(),
        }
    }

    #[inline]
    fn at(self, row: usize) -> u64 {
        match self {
            HashesView::Stored(stored) => stored.at(row),
            HashesView::Packed(packed) => packed.at(row),
        }
    }
}

impl Ascending for Stored<'_> {
    #[inline]
    fn len(self) -> usize {
        self.words.len()
    }

    #[inline]
    fn at(self, row: usize) -> u64 {
        self.words[row] ^ self.flip
    }
}

impl Ascending for PackedView<'_> {
    #[inline]
    fn len(self) -> usize {
        self.rows()
    }

    #[inline]
    fn at(self, row: usize) -> u64 {
        self.word(row)
    }
}

impl Ascending for &[u64] {
    #[inline]
    fn len(self) -> usize {
        <[u64]>::len(self)
    }

    #[inline]
    fn at(self, index: usize) -> u64 {
        self[index]
    }
}

/// Index of the first of `sorted` that is at least `wanted`, looking around `guess`. O(log
/// distance).
pub(crate) fn gallop(sorted: impl Ascending, guess: usize, wanted: u64) -> usize {
    if sorted.at(guess) < wanted {
        return gallop_up(sorted, guess, wanted);
    }
    let mut step = 1;
    let mut high = guess;
    while step <= high && sorted.at(high - step) >= wanted {
        high -= step;
        step *= 2;
    }
    lower_bound(sorted, high.saturating_sub(step), high, wanted)
}

/// Index of the first of `sorted` from `start` on that is at least `wanted`, looking from there.
/// O(log distance).
pub(crate) fn gallop_up(sorted: impl Ascending, start: usize, wanted: u64) -> usize {
    let mut step = 1;
    let mut low = start;
    while low + step <= sorted.len() && sorted.at(low + step - 1) < wanted {
        low += step;
        step *= 2;
    }
    lower_bound(sorted, low, sorted.len().min(low + step), wanted)
}

/// Index of the first in `low .. high` that is at least `wanted`; `high` if there is none.
fn lower_bound(sorted: impl Ascending, mut low: usize, mut high: usize, wanted: u64) -> usize {
    while low < high {
        let middle = low + (high - low) / 2;
        if sorted.at(middle) < wanted {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    low
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::array::{Int32Array, Int64Array, StringViewArray};
    use std::sync::Arc;

    #[test]
    fn galloping_finds_the_lower_bound_from_everywhere() {
        let sorted: Vec<u64> = (0..100).map(|i| i / 3 * 5).collect();
        for wanted in 0..180 {
            let expected = sorted.partition_point(|&hash| hash < wanted);
            for guess in 0..sorted.len() {
                assert_eq!(gallop(&sorted[..], guess, wanted), expected);
                assert_eq!(gallop_up(&sorted[..], guess, wanted), expected.max(guess));
            }
        }
    }

    #[test]
    fn hashes_of_64_bit_keys_are_computed_again_and_others_are_kept() {
        let long: Vec<ArrayRef> = vec![Arc::new(Int64Array::from(vec![-3, 0, 7]))];
        let short: Vec<ArrayRef> = vec![Arc::new(Int32Array::from(vec![-3, 0, 7]))];
        let text: Vec<ArrayRef> = vec![Arc::new(StringViewArray::from(vec!["a", "b", "c"]))];
        let nulls: Vec<ArrayRef> = vec![Arc::new(Int64Array::from(vec![Some(-3), None, Some(7)]))];
        for (columns, size_bytes) in [(&long, 0), (&short, 24), (&text, 24), (&nulls, 24)] {
            let kept = hash::hash_columns(columns, 3);
            let hashes = Hashes::new(&kept, columns);
            assert_eq!((&hashes.all()[..], hashes.size_bytes()), (&kept[..], size_bytes));
            assert_eq!(hashes.slice(1, 2).at(1), kept[2]);
        }
    }
}
