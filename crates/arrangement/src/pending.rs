//! Rows chosen for the next chunk, in order, but not yet copied: where a merge or a sort meets consolidation.
//!
//! Law: rows come in the layout's order. Equal rows at equal times end up in one row, whatever the sources and wherever chunks
//! are cut: the last few rows of a full block are *given back* when they may equal the rows that follow.
//!
//! Cost: a comparison of words per row; columns are compared (vectorised) only for rows whose hash, word and time all
//! equal their predecessor's. Each kept cell is copied once.

use std::rc::Rc;

use anabranch_batch::{Columns, Diff, Diffs, Time, Times, equal, gather};
use arrow::array::ArrayRef;

use crate::Layout;
use crate::chunk::{CHUNK_ROWS, Chunk, ChunkRows, Exact};
use crate::hashes::Hashes;
use crate::lane::Lane;
use crate::layout::pick_columns;

/// A row of a source: (source, row).
pub(crate) type Pick = (u32, u32);

/// More equal rows than this at the end of a block are summed on the spot, fewer are given back.
const GIVE_BACK_ROWS_MAX: usize = 64;

/// With more sources than this, a chunk is made of however few rows remain, so that sources can go.
const SOURCES_MAX: usize = 32;

/// Rows for which there is always room after a block was settled without becoming a chunk.
const ROOM_ROWS_MIN: usize = 1 << 10;

/// Rows chosen for the next chunk.
#[derive(Debug)]
pub(crate) struct Pending {
    layout: Rc<Layout>,
    /// Times before this one are advanced to it.
    since: Time,
    /// Where rows come from.
    sources: Vec<Source>,
    /// The rows, and their key hashes and value words, in order.
    picks: Vec<Pick>,
    hashes: Vec<u64>,
    words: Vec<u64>,
    /// Times and summed diffs of the first rows; those of the others are still in their source.
    times: Lane,
    diffs: Lane,
    /// Rows before this one are summed up and cannot be given back.
    settled: usize,
    /// The block is full at this many rows.
    limit: usize,
}

/// Columns that rows are picked from.
#[derive(Clone, Debug)]
pub(crate) struct Source {
    pub columns: Columns,
    pub times: Times,
    pub diffs: Diffs,
    pub exact: Exact,
}

/// What became of a full block.
pub(crate) struct Settled {
    /// Rows given back, in order: the caller offers them again.
    pub given_back: Vec<Pick>,
    /// The chunk that was made, unless too few rows remained.
    pub chunk: Option<Chunk>,
}

impl From<&Chunk> for Source {
    fn from(chunk: &Chunk) -> Source {
        Source {
            columns: chunk.shared_columns().clone(),
            times: chunk.times().clone(),
            diffs: chunk.diffs().clone(),
            exact: chunk.facts().exact,
        }
    }
}

impl Pending {
    pub fn new(layout: Rc<Layout>, since: Time) -> Pending {
        Pending {
            layout,
            since,
            sources: Vec::new(),
            picks: Vec::new(),
            hashes: Vec::new(),
            words: Vec::new(),
            times: Lane::default(),
            diffs: Lane::default(),
            settled: 0,
            limit: CHUNK_ROWS,
        }
    }

    /// Number of rows.
    pub fn len(&self) -> usize {
        self.picks.len()
    }

    /// Number of rows that still fit; zero: time to settle.
    pub fn room(&self) -> usize {
        self.limit.saturating_sub(self.picks.len())
    }

    /// Makes rows of `source` available to pick, under the number returned.
    pub fn add_source(&mut self, source: Source) -> u32 {
        self.sources.push(source);
        u32::try_from(self.sources.len() - 1).expect("a block has far fewer sources than rows")
    }

    /// Appends a row. Its hash and word are those of its source.
    #[inline]
    pub fn push(&mut self, pick: Pick, hash: u64, word: u64) {
        self.picks.push(pick);
        self.hashes.push(hash);
        self.words.push(word);
    }

    /// The columns rows go to, for loops that append many: picks, key hashes, value words.
    #[inline]
    pub fn lanes(&mut self) -> (&mut Vec<Pick>, &mut Vec<u64>, &mut Vec<u64>) {
        (&mut self.picks, &mut self.hashes, &mut self.words)
    }

    /// Sums a full block up; makes a chunk of it when enough rows remain.
    pub fn settle(&mut self, key_unique: bool) -> Settled {
        let tail = self.tail_start();
        let keep_tail = tail < self.settled.max(1) || self.len() - tail > GIVE_BACK_ROWS_MAX;
        let given_back = if keep_tail { Vec::new() } else { self.give_back(tail) };
        self.consolidate();
        let is_enough = self.len() >= CHUNK_ROWS / 4 * 3 || self.sources.len() > SOURCES_MAX;
        let chunk = (!keep_tail && is_enough && self.len() > 0).then(|| self.make_chunk(key_unique));
        self.limit = CHUNK_ROWS.max(self.len() + ROOM_ROWS_MIN);
        Settled { given_back, chunk }
    }

    /// Sums the last block up. `None` when no row remains.
    pub fn finish(&mut self, key_unique: bool) -> Option<Chunk> {
        self.consolidate();
        (self.len() > 0).then(|| self.make_chunk(key_unique))
    }

    /// Lets go of all sources. Only when no row is pending.
    pub fn forget_sources(&mut self) {
        assert_eq!(self.len(), 0, "pending rows need their sources");
        self.sources.clear();
    }

    /// Where the rows start that equal the last one in everything but the diff.
    fn tail_start(&mut self) -> usize {
        self.read_times();
        let mut start = self.len().saturating_sub(1);
        while start > 0 && self.looks_equal(start) && self.are_equal(&[start as u32])[0] {
            start -= 1;
        }
        start
    }

    fn give_back(&mut self, start: usize) -> Vec<Pick> {
        self.hashes.truncate(start);
        self.words.truncate(start);
        self.times.truncate(start);
        self.picks.split_off(start)
    }

    /// Sums rows equal in all but the diff, and drops those that sum to zero.
    fn consolidate(&mut self) {
        self.read_times();
        self.read_diffs();
        let same_hash =
            self.hashes.windows(2).enumerate().filter(|(_, pair)| pair[0] == pair[1]).map(|(row, _)| row + 1);
        let alike: Vec<u32> = same_hash.filter(|&row| self.looks_equal(row)).map(|row| row as u32).collect();
        if !alike.is_empty() {
            let equal = self.are_equal(&alike);
            let repeats = alike.iter().zip(equal).filter(|&(_, equal)| equal).map(|(&row, _)| row as usize);
            sum_repeats(self.diffs.numbers(), repeats);
        }
        let has_zeros = match self.diffs.same() {
            Some(diff) => diff == 0,
            None => self.len() > 0 && self.diffs.numbers().contains(&0),
        };
        if has_zeros {
            self.drop_zeros();
        }
        self.settled = self.len();
    }

    /// Hash, word and time of `row` are those of the row before it. Needs times.
    #[inline]
    fn looks_equal(&self, row: usize) -> bool {
        self.hashes[row] == self.hashes[row - 1]
            && self.words[row] == self.words[row - 1]
            && self.times.get(row) == self.times.get(row - 1)
    }

    /// Whether each of `rows` equals the row before it, in all columns. One vectorised comparison per pair of sources.
    fn are_equal(&self, rows: &[u32]) -> Vec<bool> {
        if self.sources.iter().all(|source| source.exact == Exact { key: true, value: true }) {
            return vec![true; rows.len()];
        }
        let sources_of = |row: u32| (self.picks[row as usize - 1].0, self.picks[row as usize].0);
        let mut order: Vec<u32> = (0..rows.len() as u32).collect();
        order.sort_by_key(|&i| sources_of(rows[i as usize]));
        let mut equal = vec![false; rows.len()];
        for group in order.chunk_by(|&i, &j| sources_of(rows[i as usize]) == sources_of(rows[j as usize])) {
            let (left, right) = sources_of(rows[group[0] as usize]);
            let left_rows: Vec<u32> = group.iter().map(|&i| self.picks[rows[i as usize] as usize - 1].1).collect();
            let right_rows: Vec<u32> = group.iter().map(|&i| self.picks[rows[i as usize] as usize].1).collect();
            let (left, right) = (&self.sources[left as usize].columns, &self.sources[right as usize].columns);
            for (&i, is_equal) in group.iter().zip(equal::rows_equal(left, &left_rows, right, &right_rows)) {
                equal[i as usize] = is_equal;
            }
        }
        equal
    }

    /// Reads the times of rows appended since the last time.
    fn read_times(&mut self) {
        let (sources, since) = (&self.sources, self.since);
        let unread = &self.picks[self.times.len()..];
        let constant = common(sources.iter().map(|source| match source.times {
            Times::Constant(time) => Some(time.max(since)),
            Times::Column(_) => None,
        }));
        match constant {
            Some(time) => self.times.extend_same(time, unread.len()),
            None => self.times.extend(
                unread.iter().map(|&(source, row)| sources[source as usize].times.get(row as usize).max(since)),
            ),
        }
    }

    /// Reads the diffs of rows appended since the last time.
    fn read_diffs(&mut self) {
        let sources = &self.sources;
        let unread = &self.picks[self.diffs.len()..];
        let constant = common(sources.iter().map(|source| match source.diffs {
            Diffs::Constant(diff) => Some(diff),
            Diffs::Column(_) => None,
        }));
        match constant {
            Some(diff) => self.diffs.extend_same(diff, unread.len()),
            None => {
                self.diffs.extend(unread.iter().map(|&(source, row)| sources[source as usize].diffs.get(row as usize)))
            }
        }
    }

    fn drop_zeros(&mut self) {
        let mut kept = 0;
        let (times, diffs) = (self.times.numbers(), self.diffs.numbers());
        for row in 0..self.picks.len() {
            if diffs[row] != 0 {
                self.picks[kept] = self.picks[row];
                self.hashes[kept] = self.hashes[row];
                self.words[kept] = self.words[row];
                times[kept] = times[row];
                diffs[kept] = diffs[row];
                kept += 1;
            }
        }
        self.picks.truncate(kept);
        self.hashes.truncate(kept);
        self.words.truncate(kept);
        self.times.truncate(kept);
        self.diffs.truncate(kept);
    }

    /// Copies the rows; none is pending afterwards.
    fn make_chunk(&mut self, key_unique: bool) -> Chunk {
        let columns: Vec<&[ArrayRef]> = self.sources.iter().map(|source| &*source.columns).collect();
        let columns = gather::compact_views(gather::interleave(&columns, &self.picks));
        let exact = self.sources.iter().map(|source| source.exact).fold(Exact { key: true, value: true }, Exact::and);
        let key = pick_columns(&columns, &self.layout.key);
        let rows = ChunkRows {
            hashes: Hashes::new(&self.hashes, &key),
            words: (!self.layout.are_words_cheap(exact)).then(|| self.words.clone()),
            times: match self.times.same() {
                Some(time) => Times::Constant(time),
                None => Times::Column(self.times.numbers().clone().into()).simplify(),
            },
            diffs: match self.diffs.same() {
                Some(diff) => Diffs::Constant(diff),
                None => Diffs::Column(self.diffs.numbers().clone().into()).simplify(),
            },
            columns,
            exact,
            key_unique,
        };
        self.clear();
        Chunk::new(&self.layout, rows)
    }

    /// Forgets all rows, and keeps the memory for the next block.
    fn clear(&mut self) {
        self.picks.clear();
        self.hashes.clear();
        self.words.clear();
        self.times.clear();
        self.diffs.clear();
        self.settled = 0;
        self.limit = CHUNK_ROWS;
    }
}

/// What all of `constants` are, if they are all the same.
fn common(mut constants: impl Iterator<Item = Option<i64>>) -> Option<i64> {
    let first = constants.next()??;
    constants.all(|constant| constant == Some(first)).then_some(first)
}

/// Adds the diff of each of `repeats` (ascending) to the first row of its kind, and leaves zero in its place.
fn sum_repeats(diffs: &mut [Diff], repeats: impl Iterator<Item = usize>) {
    let (mut first, mut previous) = (usize::MAX, usize::MAX);
    for row in repeats {
        if previous != row - 1 {
            first = row - 1;
        }
        diffs[first] += std::mem::take(&mut diffs[row]);
        previous = row;
    }
}
