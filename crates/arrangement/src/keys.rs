//! Keys to look for: distinct, sorted by hash.
//!
//! Law: keys ascend by (hash, key columns); no two are equal. Keys that are unequal but have the
//! same hash stay apart. Cost: O(rows) with small sorts for columns, O(rows) without sorting for a
//! run.

use std::sync::Arc;

use anabranch_batch::order::Nulls;
use anabranch_batch::{Columns, equal, gather, hash};
use arrow::array::{Array, ArrayRef, new_empty_array};
use arrow::buffer::NullBuffer;

use crate::chunk::{Chunk, gather_rows};
use crate::layout::{ASCENDING, is_exact_key};
use crate::ordering::Pick;
use crate::run::Run;
use crate::sort::{HashEntry, sort_rows};

/// Distinct keys in the order of a run.
#[derive(Clone, Debug)]
pub struct Keys {
    /// The hash of each key, ascending.
    hashes: Vec<u64>,
    /// The key columns, one row per key.
    columns: Columns,
    /// Equal hashes mean equal keys, also against rows of which the same is known.
    exact: bool,
}

/// The index of a row whose key was left out.
const SKIPPED: u32 = u32::MAX;

impl Keys {
    /// The distinct keys among rows; `columns` are the key columns only, `hashes` their hashes.
    /// Also returns, for each row, the index of its key, or `u32::MAX` when the key was left out.
    ///
    /// # Panics
    /// If lengths differ.
    pub fn from_columns(columns: &[ArrayRef], hashes: &[u64], nulls: Nulls) -> (Keys, Vec<u32>) {
        assert!(columns.iter().all(|column| column.len() == hashes.len()), "key columns have one hash per row");
        let null_rows = NullRows::of(columns, nulls);
        let sorted = sort_rows(hashes, None);
        let entries = (0..sorted.len()).map(|at| sorted.at(at));
        let mut entries: Vec<HashEntry> = entries.filter(|entry| !null_rows.contains(entry.row as usize)).collect();
        let exact = is_exact_key(columns);
        let is_repeat = find_repeats(columns, exact, &mut entries);

        let mut of_row = vec![SKIPPED; hashes.len()];
        let mut firsts: Vec<u32> = Vec::with_capacity(entries.len());
        let mut key_hashes: Vec<u64> = Vec::with_capacity(entries.len());
        for (entry, is_repeat) in entries.iter().zip(is_repeat) {
            if !is_repeat {
                firsts.push(entry.row);
                key_hashes.push(entry.hash);
            }
            of_row[entry.row as usize] = firsts.len() as u32 - 1;
        }
        (Keys { hashes: key_hashes, columns: gather::take(columns, &firsts), exact }, of_row)
    }

    /// The distinct keys of a run, whose rows' columns `key` are looked at. Also returns, for each
    /// chunk and row, the index of its key. Cheap when `key` is the key of the run's layout.
    pub fn from_run(run: &Run, key: &[usize], nulls: Nulls) -> (Keys, Vec<Vec<u32>>) {
        if key != run.layout().key || run.parts().len() > 1 {
            return Keys::from_unsorted(run, key, nulls);
        }
        if let [chunk] = run.chunks()
            && chunk.len() == 1
        {
            return Keys::from_row(chunk, key, nulls);
        }
        let mut walk = KeyWalk { picks: Vec::new(), hashes: Vec::new() };
        let mut of_row: Vec<Vec<u32>> = Vec::with_capacity(run.chunks().len());
        let mut previous: Option<(u32, &Arc<Chunk>)> = None;
        for (number, chunk) in run.chunks().iter().enumerate() {
            of_row.push(walk.enter_chunk(run, key, number as u32, chunk, previous, nulls));
            previous = Some((number as u32, chunk));
        }
        let exact = run.chunks().iter().all(|chunk| chunk.facts().exact.key);
        let columns = match run.chunks() {
            [] => empty_columns(run, key),
            // (Every row has a key of its own.)
            [chunk] if walk.picks.len() == run.len() => chunk.pick_columns(key),
            chunks => gather_rows(chunks, key, &walk.picks),
        };
        (Keys { hashes: walk.hashes, columns, exact }, of_row)
    }

    /// The key of a chunk of one row.
    fn from_row(chunk: &Chunk, key: &[usize], nulls: Nulls) -> (Keys, Vec<Vec<u32>>) {
        let (columns, exact) = (chunk.pick_columns(key), chunk.facts().exact.key);
        if nulls == Nulls::Differ && columns.iter().any(|column| column.logical_null_count() > 0) {
            let columns = gather::take(&columns, &[]);
            return (Keys { hashes: vec![], columns, exact }, vec![vec![SKIPPED]]);
        }
        (Keys { hashes: vec![chunk.hashes().at(0)], columns, exact }, vec![vec![0]])
    }

    /// Number of keys.
    pub fn len(&self) -> usize {
        self.hashes.len()
    }

    /// Whether there are no keys.
    pub fn is_empty(&self) -> bool {
        self.hashes.is_empty()
    }

    /// The hash of each key, ascending.
    pub fn hashes(&self) -> &[u64] {
        &self.hashes
    }

    /// The key columns, one row per key.
    pub fn columns(&self) -> &[ArrayRef] {
        &self.columns
    }

    pub(crate) fn is_exact(&self) -> bool {
        self.exact
    }

    fn from_unsorted(run: &Run, key: &[usize], nulls: Nulls) -> (Keys, Vec<Vec<u32>>) {
        let columns = key_columns(run, key);
        let sources: Vec<&[ArrayRef]> = columns.iter().map(|columns| &**columns).collect();
        let columns = gather::concat(&sources);
        let (keys, of_row) = Keys::from_columns(&columns, &hash::hash_columns(&columns, run.len()), nulls);
        let mut rest = of_row.as_slice();
        let split = |chunk: &Arc<Chunk>| {
            let (rows, after) = rest.split_at(chunk.len());
            rest = after;
            rows.to_vec()
        };
        (keys, run.chunks().iter().map(split).collect())
    }
}

/// The columns `key` of no rows.
fn empty_columns(run: &Run, key: &[usize]) -> Columns {
    key.iter().map(|&column| new_empty_array(&run.layout().types[column])).collect()
}

/// The columns `key` of each chunk; those of no rows when there is none.
fn key_columns(run: &Run, key: &[usize]) -> Vec<Columns> {
    match run.chunks() {
        [] => vec![empty_columns(run, key)],
        chunks => chunks.iter().map(|chunk| chunk.pick_columns(key)).collect(),
    }
}

/// Which sorted entries have the key of the entry before them. Entries with equal hashes and
/// unequal keys are sorted by key.
fn find_repeats(columns: &[ArrayRef], exact: bool, entries: &mut [HashEntry]) -> Vec<bool> {
    let mut is_repeat: Vec<bool> =
        (0..entries.len()).map(|i| i > 0 && entries[i].hash == entries[i - 1].hash).collect();
    if exact {
        return is_repeat;
    }
    let verify = |entries: &[HashEntry], is_repeat: &mut [bool]| {
        let tied: Vec<usize> = (0..entries.len()).filter(|&i| is_repeat[i]).collect();
        let left: Vec<u32> = tied.iter().map(|&i| entries[i - 1].row).collect();
        let right: Vec<u32> = tied.iter().map(|&i| entries[i].row).collect();
        let mut is_collision = false;
        for (&i, equal) in tied.iter().zip(equal::rows_equal(columns, &left, columns, &right)) {
            is_repeat[i] = equal;
            is_collision |= !equal;
        }
        is_collision
    };
    let ties = is_repeat.clone();
    if verify(entries, &mut is_repeat) {
        let comparator = anabranch_batch::order::Comparator::new(columns, columns, &vec![ASCENDING; columns.len()]);
        for group in entries.chunk_by_mut(|a, b| a.hash == b.hash) {
            group.sort_by(|a, b| comparator.compare(a.row as usize, b.row as usize));
        }
        is_repeat = ties;
        verify(entries, &mut is_repeat);
    }
    is_repeat
}

/// Distinct keys of a sorted run, as far as it was walked.
struct KeyWalk {
    /// (chunk, row) of the first row of each key.
    picks: Vec<Pick>,
    hashes: Vec<u64>,
}

impl KeyWalk {
    /// Walks one chunk; returns the index of each row's key. `previous` is the chunk before.
    fn enter_chunk(
        &mut self,
        run: &Run,
        key: &[usize],
        number: u32,
        chunk: &Arc<Chunk>,
        previous: Option<(u32, &Arc<Chunk>)>,
        nulls: Nulls,
    ) -> Vec<u32> {
        let null_rows = if chunk.is_packed() { NullRows(None) } else { NullRows::of(&chunk.pick_columns(key), nulls) };
        let hashes = chunk.key_hashes();
        let within =
            (!chunk.facts().key_unique).then(|| run.layout().key_comparator(&chunk.columns(), &chunk.columns()));
        if null_rows.is_none() && within.is_none() {
            let is_continued = previous.is_some_and(|(_, previous)| is_continued(run, previous, chunk));
            return self.enter_hashes(number, &hashes, is_continued);
        }
        let mut of_row = Vec::with_capacity(hashes.len());
        for (row, &hash) in hashes.iter().enumerate() {
            let is_repeat = match row {
                0 => previous.is_some_and(|(_, previous)| is_continued(run, previous, chunk)),
                _ => {
                    hash == hashes[row - 1] && within.as_ref().is_none_or(|within| within.compare(row - 1, row).is_eq())
                }
            };
            if null_rows.contains(row) {
                of_row.push(SKIPPED);
                continue;
            }
            if !is_repeat {
                self.picks.push((number, row as u32));
                self.hashes.push(hash);
            }
            of_row.push(self.hashes.len() as u32 - 1);
        }
        of_row
    }

    /// Walks a chunk whose keys all count, and are equal where their hashes are; `is_continued` if
    /// the first is the last one of before. How many rows a key has is for no processor to guess:
    /// no branch.
    fn enter_hashes(&mut self, number: u32, hashes: &[u64], is_continued: bool) -> Vec<u32> {
        let mut n_keys = self.hashes.len();
        self.hashes.resize(n_keys + hashes.len(), 0);
        self.picks.resize(n_keys + hashes.len(), (0, 0));
        let mut previous = hashes.first().map_or(0, |first| if is_continued { *first } else { !first });
        let mut of_row = Vec::with_capacity(hashes.len());
        for (row, &hash) in (0..).zip(hashes) {
            // (Written anew by the next key, if this one is not.)
            if let (Some(key), Some(pick)) = (self.hashes.get_mut(n_keys), self.picks.get_mut(n_keys)) {
                (*key, *pick) = (hash, (number, row));
            }
            n_keys += usize::from(hash != previous);
            previous = hash;
            of_row.push(n_keys as u32 - 1);
        }
        self.hashes.truncate(n_keys);
        self.picks.truncate(n_keys);
        of_row
    }
}

/// Whether the last key of `previous` is the first of `chunk`.
fn is_continued(run: &Run, previous: &Chunk, chunk: &Chunk) -> bool {
    let last = previous.len() - 1;
    previous.hashes().at(last) == chunk.hashes().at(0)
        && (previous.facts().exact.and(chunk.facts().exact).key
            || run.layout().key_comparator(&previous.columns(), &chunk.columns()).compare(last, 0).is_eq())
}

/// Rows whose key is left out.
struct NullRows(Option<NullBuffer>);

impl NullRows {
    fn of(columns: &[ArrayRef], nulls: Nulls) -> NullRows {
        match nulls {
            Nulls::Equal => NullRows(None),
            Nulls::Differ => {
                let all = columns.iter().map(|column| column.logical_nulls());
                NullRows(all.fold(None, |left, right| NullBuffer::union(left.as_ref(), right.as_ref())))
            }
        }
    }

    fn is_none(&self) -> bool {
        self.0.as_ref().is_none_or(|nulls| nulls.null_count() == 0)
    }

    #[inline]
    fn contains(&self, row: usize) -> bool {
        self.0.as_ref().is_some_and(|nulls| nulls.is_null(row))
    }
}
