//! Ascending words in as few bits as they need.
//!
//! Law: [`PackedView::word`] is the word that was packed, whatever was sliced off.
//!
//! Form: blocks of 64 rows, each its first word and then each row's distance from it, in as many
//! bits as the largest distance of the chunk has. What is dense takes a bit or two a row; of 10
//! million random words, 48 of 64.
//!
//! Cost: packing and reading all some two nanoseconds a row, reading one two loads, mostly of
//! neighbouring cache lines.
//!
//! Source: frame of reference, as in Goldstein, Ramakrishnan and Shaft, *Compressing Relations and
//! Indexes* (ICDE 1998); Zukowski et al., *Super-Scalar RAM-CPU Cache Compression* (ICDE 2006).

use std::ops::Range;

use arrow::buffer::Buffer;

const BLOCK_ROWS: usize = 64;
const WORD_BYTES: usize = size_of::<u64>();
/// More bits do not pay, nor would they be read with one load.
const WIDTH_MAX: usize = 52;

/// Ascending words.
#[derive(Clone, Debug)]
pub(crate) struct Packed {
    /// A block is its first word and `width` more; a word that no reader needs is behind the last,
    /// so that all can be read as words.
    bytes: Buffer,
    /// Bits a row.
    width: usize,
    /// The first row, and how many there are.
    start: usize,
    len: usize,
}

/// Packed words, for loops.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PackedView<'a> {
    bytes: &'a [u8],
    width: usize,
    start: usize,
    len: usize,
}

impl Packed {
    /// Packs ascending words; `None` if that does not pay.
    pub fn new(words: &[u64]) -> Option<Packed> {
        let span = words.chunks(BLOCK_ROWS).filter_map(|block| Some(block.last()? - block.first()?)).max()?;
        let width = (u64::BITS - span.leading_zeros()) as usize;
        if width > WIDTH_MAX {
            return None;
        }
        let mut packed = Vec::with_capacity(words.len().div_ceil(BLOCK_ROWS) * (1 + width) + 1);
        for block in words.chunks(BLOCK_ROWS) {
            pack_block(block, width, &mut packed);
        }
        packed.push(0);
        Some(Packed { bytes: Buffer::from_vec(packed), width, start: 0, len: words.len() })
    }

    #[inline]
    pub fn view(&self) -> PackedView<'_> {
        PackedView { bytes: &self.bytes, width: self.width, start: self.start, len: self.len }
    }

    /// Some rows, sharing memory.
    pub fn slice(&self, start: usize, rows: usize) -> Packed {
        assert!(start + rows <= self.len, "rows are in bounds");
        Packed { start: self.start + start, len: rows, ..self.clone() }
    }

    /// Memory of these rows.
    pub fn size_bytes(&self) -> usize {
        self.len.div_ceil(BLOCK_ROWS) * block_bytes(self.width)
    }
}

impl PackedView<'_> {
    #[inline]
    pub fn rows(self) -> usize {
        self.len
    }

    /// The word of a row.
    #[inline]
    pub fn word(self, row: usize) -> u64 {
        debug_assert!(row < self.len, "rows are in bounds");
        let row = self.start + row;
        let block = row / BLOCK_ROWS * block_bytes(self.width);
        read(self.bytes, block) + self.distance(block, row % BLOCK_ROWS)
    }

    /// Appends the words of some rows.
    pub fn append_to(self, words: &mut Vec<u64>, rows: Range<usize>) {
        assert!(rows.end <= self.len, "rows are in bounds");
        let (mut row, end) = (self.start + rows.start, self.start + rows.end);
        words.reserve(rows.len());
        while row < end {
            let block = row / BLOCK_ROWS * block_bytes(self.width);
            let first = read(self.bytes, block);
            let block_end = end.min(row / BLOCK_ROWS * BLOCK_ROWS + BLOCK_ROWS);
            let inside = row % BLOCK_ROWS..row % BLOCK_ROWS + (block_end - row);
            words.extend(inside.map(|row| first + self.distance(block, row)));
            row = block_end;
        }
    }

    /// How far a row of the block at a byte is from its first word.
    #[inline]
    fn distance(self, block: usize, row: usize) -> u64 {
        let bit = row * self.width;
        (read(self.bytes, block + WORD_BYTES + bit / 8) >> (bit % 8)) & ((1 << self.width) - 1)
    }
}

fn block_bytes(width: usize) -> usize {
    WORD_BYTES * (1 + width)
}

#[inline]
fn read(bytes: &[u8], at: usize) -> u64 {
    let Some(word) = bytes[at..].first_chunk() else { unreachable!("a word is behind the last") };
    u64::from_le_bytes(*word)
}

/// Appends a block. (A word is written in the bytes' order of [`read`].)
fn pack_block(block: &[u64], width: usize, packed: &mut Vec<u64>) {
    let first = block[0];
    packed.push(first.to_le());
    let end = packed.len() + width;
    let (mut word, mut used) = (0, 0);
    for distance in block.iter().map(|word| word - first) {
        word |= distance << used;
        used += width;
        if used >= 64 {
            packed.push(word.to_le());
            used -= 64;
            // (What did not fit; nothing where all of it did.)
            word = if used > 0 { distance >> (width - used) } else { 0 };
        }
    }
    packed.push(word.to_le());
    packed.resize(end, 0);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Ascending words whose neighbours are about `gap` apart.
    fn ascending(rows: usize, gap: u64) -> Vec<u64> {
        let mut state = rows as u64;
        let mut word = 1 << 62;
        let mut next = || {
            state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
            word += (state >> 16) % gap;
            word
        };
        (0..rows).map(|_| next()).collect()
    }

    #[test]
    fn words_come_back_from_any_slice() {
        for rows in [1, 2, 63, 64, 65, 127, 128, 200, 1000] {
            for bits in [0, 1, 2, 3, 7, 8, 20, 31, 40, 44] {
                let words = ascending(rows, 1 << bits);
                let packed = Packed::new(&words).unwrap_or_else(|| panic!("{rows} rows in {bits} bits"));
                for start in [0, 1, rows / 3, rows / 2, rows - 1] {
                    for len in [0, 1, (rows - start) / 2, rows - start].into_iter().filter(|len| start + len <= rows) {
                        let slice = packed.slice(start, len);
                        let expected = &words[start..start + len];
                        assert_eq!((0..len).map(|row| slice.view().word(row)).collect::<Vec<u64>>(), expected);
                        let mut all = vec![7];
                        slice.view().append_to(&mut all, 0..len);
                        assert_eq!(all[1..], *expected);
                        let mut last = Vec::new();
                        slice.view().append_to(&mut last, len / 2..len);
                        assert_eq!(last, expected[len / 2..]);
                    }
                }
            }
        }
    }

    #[test]
    fn only_what_takes_fewer_bytes_is_packed() {
        assert!(Packed::new(&[]).is_none());
        assert!(Packed::new(&[0, u64::MAX]).is_none());
        assert!(Packed::new(&[3; 100]).is_some_and(|packed| packed.size_bytes() == 16 && packed.view().word(99) == 3));
        let least = Packed::new(&[u64::MAX - 1, u64::MAX]).map(|packed| packed.view().word(1));
        assert_eq!(least, Some(u64::MAX));
        let dense: Vec<u64> = (0..8192).collect();
        assert!(Packed::new(&dense).is_some_and(|packed| packed.size_bytes() == 128 * 7 * 8));
    }
}
