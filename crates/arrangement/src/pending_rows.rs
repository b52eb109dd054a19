//! Rows chosen for the next chunks, in order, but not yet copied: where a merge or a sort meets
//! consolidation.
//!
//! Law: rows come in the layout's order, blocks of whole hashes one after the other, or the rows of
//! one hash one by one. Equal rows at equal times end up in one row, whatever the sources; rows
//! that sum to zero vanish. Chunks are cut between hashes, but inside those that have more rows
//! than a chunk.
//!
//! Cost: that of `ordering`. Each kept cell is copied once.

use std::ops::Range;
use std::sync::Arc;

use anabranch_batch::{Columns, Diff, Diffs, Time, Times, gather, hash};
use arrow::array::{ArrayRef, new_empty_array};

use crate::chunk::{CHUNK_ROWS, Chunk, ChunkRows, Exact, pack};
use crate::control_column::ControlColumn;
use crate::hashes::Hashes;
use crate::layout::{Layout, pick_columns};
use crate::ordering::{HashBlock, Pick, RowSource, common_exact, order};

/// With more sources than this, chunks are made of however few rows there are, so that sources can
/// go.
const SOURCES_MAX: usize = 32;

/// With so few rows, copying costs more than it can save.
const KEPT_ROWS_MAX: usize = 4;
/// What a row of a column may take.
const KEPT_BYTES_PER_ROW: usize = 64;

/// Rows chosen for the next chunks.
#[derive(Debug)]
pub(crate) struct PendingRows {
    layout: Arc<Layout>,
    /// Times before this one are advanced to it.
    since: Time,
    /// Where rows come from.
    sources: Vec<RowSource>,
    /// The rows, and their key hashes, value words, times and summed diffs, in order.
    picks: Vec<Pick>,
    hashes: Vec<u64>,
    words: Vec<u64>,
    times: ControlColumn,
    diffs: ControlColumn,
    /// Equal hashes meant equal keys.
    key_unique: bool,
    /// Keys of all sources follow from their hashes, where the layout lets them: then sources need
    /// no key column, and that of a chunk is made.
    keys_follow: bool,
    /// Chunks are packed where that pays.
    packs: bool,
}

/// A row that comes alone.
pub(crate) struct SingleRow {
    pub pick: Pick,
    pub hash: u64,
    pub word: u64,
    pub time: Time,
    pub diff: Diff,
}

impl PendingRows {
    pub fn new(layout: Arc<Layout>, since: Time) -> PendingRows {
        PendingRows {
            layout,
            since,
            sources: Vec::new(),
            picks: Vec::new(),
            hashes: Vec::new(),
            words: Vec::new(),
            times: ControlColumn::default(),
            diffs: ControlColumn::default(),
            key_unique: true,
            keys_follow: false,
            packs: false,
        }
    }

    /// For rows of chunks. `are_keys_exact` if equal hashes mean equal keys in all that will come.
    pub fn of_chunks(layout: Arc<Layout>, since: Time, are_keys_exact: bool) -> PendingRows {
        PendingRows {
            keys_follow: are_keys_exact && layout.invertible_key().is_some(),
            ..PendingRows::new(layout, since)
        }
    }

    /// From now on chunks are packed where that pays.
    pub fn set_packing(&mut self) {
        self.packs = true;
    }

    /// Number of rows.
    pub fn len(&self) -> usize {
        self.picks.len()
    }

    /// Whether it is time to make chunks.
    pub fn is_full(&self) -> bool {
        self.len() >= CHUNK_ROWS / 4 * 3 || self.sources.len() > SOURCES_MAX
    }

    /// Whether all rows that were taken have cancelled, so that sources can go.
    pub fn is_spent(&self) -> bool {
        self.len() == 0 && !self.sources.is_empty()
    }

    /// Makes rows of `source` available to pick, under the number returned.
    pub fn add_source(&mut self, source: RowSource) -> u32 {
        self.sources.push(source);
        u32::try_from(self.sources.len() - 1).expect("there are far fewer sources than rows")
    }

    /// Makes rows of a chunk available to pick.
    pub fn add_chunk(&mut self, chunk: &Chunk) -> u32 {
        self.add_source(RowSource::of_chunk(chunk, !self.keys_follow))
    }

    /// Lets go of all sources. Only when no row is pending.
    pub fn forget_sources(&mut self) {
        assert_eq!(self.len(), 0, "pending rows need their sources");
        self.sources.clear();
    }

    /// Takes all rows of some hashes, which come after all hashes before; or, of the hash of one
    /// key, all rows of some words, likewise. `is_sorted` if they are of one source, and in order.
    pub fn take(&mut self, block: &HashBlock, is_sorted: bool) {
        let from = self.len();
        let ordered = order(&self.layout, &self.sources, self.since, block, is_sorted);
        self.key_unique &= ordered.key_unique;
        append(&mut self.picks, block.picks_of(&ordered.rows.rows));
        append(&mut self.hashes, ordered.rows.hashes);
        append(&mut self.words, ordered.rows.words);
        self.read_times(from);
        self.read_diffs(from);
        if !ordered.repeats.is_empty() {
            sum_repeats(self.diffs.each_mut(), ordered.repeats.iter().map(|at| from + at));
        }
        self.drop_zeros(from);
    }

    /// Takes one row of the hash that is being taken row by row, the next in order; `is_repeat` if
    /// it equals the one before in all but the diff, and `is_key` if it has the key of the one
    /// before.
    pub fn take_single(&mut self, row: SingleRow, is_repeat: bool, is_key: bool) {
        self.key_unique &= is_key;
        if is_repeat {
            *self.diffs.each_mut().last_mut().expect("a row that repeats another comes after it") += row.diff;
            return;
        }
        self.close_single();
        self.picks.push(row.pick);
        self.hashes.push(row.hash);
        self.words.push(row.word);
        self.times.extend_constant(row.time, 1);
        self.diffs.extend_constant(row.diff, 1);
    }

    /// No more rows come that may equal the last one.
    pub fn close_single(&mut self) {
        if self.len() > 0 && self.diffs.get(self.len() - 1) == 0 {
            self.truncate(self.len() - 1);
        }
    }

    /// Copies the rows into chunks; none is pending afterwards.
    pub fn make_chunks(&mut self) -> Vec<Arc<Chunk>> {
        let chunks = cuts(&self.hashes).into_iter().map(|rows| Arc::new(self.make_chunk(rows))).collect();
        self.truncate(0);
        self.key_unique = true;
        chunks
    }

    fn read_times(&mut self, from: usize) {
        let (sources, since) = (&self.sources, self.since);
        let unread = &self.picks[from..];
        match common(sources.iter().map(|source| source.common_time(since))) {
            Some(time) => self.times.extend_constant(time, unread.len()),
            None => self.times.extend(unread.iter().map(|&(source, row)| sources[source as usize].time(row, since))),
        }
    }

    fn read_diffs(&mut self, from: usize) {
        let sources = &self.sources;
        let unread = &self.picks[from..];
        let constant = common(sources.iter().map(|source| match source.diffs {
            Diffs::Constant(diff) => Some(diff),
            Diffs::Column(_) => None,
        }));
        match constant {
            Some(diff) => self.diffs.extend_constant(diff, unread.len()),
            None => {
                self.diffs.extend(unread.iter().map(|&(source, row)| sources[source as usize].diffs.get(row as usize)))
            }
        }
    }

    /// Drops rows without a diff, of those from `from` on.
    fn drop_zeros(&mut self, from: usize) {
        let has_zeros = match self.diffs.constant() {
            Some(diff) => diff == 0,
            None => self.len() > from && self.diffs.each_mut()[from..].contains(&0),
        };
        if !has_zeros {
            return;
        }
        let mut kept = from;
        for row in from..self.len() {
            if self.diffs.get(row) != 0 {
                self.picks[kept] = self.picks[row];
                self.hashes[kept] = self.hashes[row];
                self.words[kept] = self.words[row];
                self.times.copy(row, kept);
                self.diffs.copy(row, kept);
                kept += 1;
            }
        }
        self.truncate(kept);
    }

    fn truncate(&mut self, rows: usize) {
        self.picks.truncate(rows);
        self.hashes.truncate(rows);
        self.words.truncate(rows);
        self.times.truncate(rows);
        self.diffs.truncate(rows);
    }

    fn make_chunk(&self, rows: Range<usize>) -> Chunk {
        let exact = common_exact(&self.sources);
        let (columns, hashes) = self.copy_rows(rows.clone(), exact);
        let times = match self.times.constant() {
            Some(time) => Times::Constant(time),
            None => Times::Column(self.times.each(rows.clone()).to_vec().into()).simplify(),
        };
        let diffs = match self.diffs.constant() {
            Some(diff) => Diffs::Constant(diff),
            None => Diffs::Column(self.diffs.each(rows.clone()).to_vec().into()).simplify(),
        };
        let rows = ChunkRows {
            hashes,
            words: (!self.layout.are_words_cheap(exact)).then(|| self.words[rows].to_vec()),
            times,
            diffs,
            columns,
            exact,
            key_unique: self.key_unique,
        };
        Chunk::new(&self.layout, rows)
    }

    /// The columns of a chunk, and its hashes.
    fn copy_rows(&self, rows: Range<usize>, exact: Exact) -> (Columns, Hashes) {
        let (picks, hashes) = (&self.picks[rows.clone()], &self.hashes[rows]);
        let key = self.layout.invertible_key().filter(|_| self.keys_follow);
        let Some(key) = key else {
            let columns = gather::compact_views(self.copy_columns(picks, None));
            let hashes = Hashes::new(hashes, &pick_columns(&columns, &self.layout.key));
            return (columns, hashes);
        };
        let key_type = &self.layout.types[key];
        let columns = gather::compact_views(self.copy_columns(picks, Some(key)));
        let packed = if self.packs { pack(&self.layout, exact, hashes) } else { None };
        let (key_column, hashes) = match packed {
            Some(packed) => (new_empty_array(key_type), packed),
            None => {
                let column = hash::unhash(key_type, hashes);
                let hashes = Hashes::new(hashes, std::slice::from_ref(&column));
                (column, hashes)
            }
        };
        let mut columns = columns.to_vec();
        columns.insert(key, key_column);
        (columns.into(), hashes)
    }

    /// The columns of some rows, all but `without`.
    fn copy_columns(&self, picks: &[Pick], without: Option<usize>) -> Columns {
        if let ([source], None) = (&self.sources[..], without) {
            if are_kept_as_they_are(source, picks) {
                return source.columns.clone();
            }
            let rows: Vec<u32> = picks.iter().map(|pick| pick.1).collect();
            return gather::take(&source.columns, &rows);
        }
        let Some(without) = without else {
            let columns: Vec<&[ArrayRef]> = self.sources.iter().map(|source| &*source.columns).collect();
            return gather::interleave(&columns, picks);
        };
        let wanted: Vec<usize> = (0..self.layout.types.len()).filter(|&column| column != without).collect();
        let columns: Vec<Columns> = self.sources.iter().map(|source| pick_columns(&source.columns, &wanted)).collect();
        let columns: Vec<&[ArrayRef]> = columns.iter().map(|columns| &**columns).collect();
        gather::interleave(&columns, picks)
    }
}

/// The chunk of the only row of a source, as [`PendingRows`] would make it; `None` if its diff is
/// zero.
pub(crate) fn chunk_of_row(layout: &Layout, source: &RowSource, hash: u64, word: u64, since: Time) -> Option<Chunk> {
    let diff = source.diffs.get(0);
    if diff == 0 {
        return None;
    }
    let columns = match are_kept_as_they_are(source, &[(0, 0)]) {
        true => source.columns.clone(),
        false => gather::compact_views(gather::take(&source.columns, &[0])),
    };
    let rows = ChunkRows {
        hashes: Hashes::new(&[hash], &pick_columns(&columns, &layout.key)),
        words: (!layout.are_words_cheap(source.exact)).then(|| vec![word]),
        times: Times::Constant(source.time(0, since)),
        diffs: Diffs::Constant(diff),
        columns,
        exact: source.exact,
        key_unique: true,
    };
    Some(Chunk::new(layout, rows))
}

/// Whether the picks are the few rows of a source as they come, in columns that keep nothing else
/// alive: then they need not be copied.
fn are_kept_as_they_are(source: &RowSource, picks: &[Pick]) -> bool {
    picks.len() <= KEPT_ROWS_MAX
        && picks.iter().enumerate().all(|(at, pick)| pick.1 as usize == at)
        && source.columns.iter().all(|column| {
            column.len() == picks.len() && column.get_buffer_memory_size() <= KEPT_BYTES_PER_ROW * KEPT_ROWS_MAX
        })
}

/// Appends to a list, which mostly is empty.
fn append<T: Copy>(list: &mut Vec<T>, more: Vec<T>) {
    if list.is_empty() {
        *list = more;
    } else {
        list.extend_from_slice(&more);
    }
}

/// What all of `constants` are, if they are all the same.
fn common(mut constants: impl Iterator<Item = Option<i64>>) -> Option<i64> {
    let first = constants.next()??;
    constants.all(|constant| constant == Some(first)).then_some(first)
}

/// Adds the diff of each of `repeats` (ascending) to the first row of its kind, and leaves zero in
/// its place.
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

/// Pieces of about [`CHUNK_ROWS`] rows: cut where a hash ends, if one does in reach.
fn cuts(hashes: &[u64]) -> Vec<Range<usize>> {
    const REACH: usize = CHUNK_ROWS / 2;
    let mut pieces = Vec::new();
    let mut start = 0;
    while hashes.len() - start > CHUNK_ROWS + REACH {
        let wanted = start + CHUNK_ROWS;
        let is_cut = |at: &usize| hashes[at - 1] != hashes[*at];
        let end = (wanted..wanted + REACH).find(is_cut).or_else(|| (wanted - REACH..wanted).rev().find(is_cut));
        let end = end.unwrap_or(wanted);
        pieces.push(start..end);
        start = end;
    }
    if start < hashes.len() {
        pieces.push(start..hashes.len());
    }
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_are_cut_between_hashes_where_that_is_possible() {
        let hashes = |rows: usize, each: usize| (0..rows).map(|row| (row / each) as u64).collect::<Vec<u64>>();
        for (rows, each) in [(0, 1), (1, 1), (50_000, 1), (50_000, 7), (50_000, 3000), (50_000, 30_000), (9000, 9000)] {
            let hashes = hashes(rows, each);
            let pieces = cuts(&hashes);
            assert_eq!(pieces.iter().map(|piece| piece.len()).sum::<usize>(), rows);
            for pair in pieces.windows(2) {
                assert_eq!(pair[0].end, pair[1].start);
                assert!(each > CHUNK_ROWS / 2 || hashes[pair[0].end - 1] != hashes[pair[1].start]);
            }
            assert!(pieces.iter().all(|piece| piece.len() <= CHUNK_ROWS / 2 * 3));
        }
    }

    #[test]
    fn a_row_alone_is_the_chunk_that_pending_makes() {
        use crate::ValueOrder;
        use anabranch_batch::hash;
        use arrow::array::{Int64Array, StringViewArray};
        use arrow::datatypes::DataType;

        let texts = StringViewArray::from_iter_values((0..100).map(|row| format!("a text longer than a view, {row}")));
        let numbers = Int64Array::from_iter((0..100).map(|row| (row != 3).then_some(row)));
        let types = vec![DataType::Int64, DataType::Utf8View];
        for (key, row, diff, since) in [(0, 7, 1, 0), (0, 3, -2, 9), (1, 7, 1, 9), (1, 3, 5, 0), (0, 7, 0, 0)] {
            let layout = Arc::new(Layout { key: vec![key], values: ValueOrder::Hash, types: types.clone() });
            let columns: Columns =
                vec![Arc::new(numbers.slice(row, 1)) as ArrayRef, Arc::new(texts.slice(row, 1))].into();
            let (words, value) = layout.value_words(&columns, 1);
            let exact = crate::chunk::Exact { key: layout.is_key_exact(&columns), value };
            let hashes = hash::hash_columns(&columns[key..=key], 1);
            let (times, diffs) = (Times::Constant(5), Diffs::Constant(diff));
            let source = RowSource { columns, times, diffs, exact, time_max: 5, key_unique: false };
            let alone = chunk_of_row(&layout, &source, hashes[0], words[0], since);
            let mut pending = PendingRows::new(Arc::clone(&layout), since);
            pending.add_source(source);
            pending.take(&HashBlock { hashes, words, picks: vec![] }, false);
            let all = pending.make_chunks();
            assert_eq!((alone.is_some(), all.len()), (diff != 0, usize::from(diff != 0)));
            for (alone, other) in alone.iter().zip(&all) {
                assert_eq!(alone.columns(), other.columns());
                assert_eq!(alone.key_hashes(), other.key_hashes());
                assert_eq!(alone.stored_words(), other.stored_words());
                assert_eq!((alone.times().get(0), alone.diffs().get(0)), (5.max(since), diff));
                assert_eq!((other.times().get(0), other.diffs().get(0)), (5.max(since), diff));
                assert_eq!(alone.facts().exact, other.facts().exact);
                // (What is kept of the hundred texts is the one.)
                assert!(alone.size_bytes() < 600 && alone.facts().key_unique == other.facts().key_unique);
            }
        }
    }
}
