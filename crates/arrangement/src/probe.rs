//! Looking many keys up in many runs.
//!
//! Law: every update of a wanted key with a time before `before` is found, once; nothing else is.
//! Matches come by key, then run, then the order of the run.
//!
//! Cost: see `locate` for finding; a match costs three words. Keys are compared on their columns
//! (once per key, run and chunk, unless the chunk holds a collision), except where hashes say it
//! all.

use std::ops::Range;
use std::sync::Arc;

use anabranch_batch::order::Comparator;
use anabranch_batch::{Columns, Diff, Time};
use arrow::array::{Array, new_empty_array};

use crate::chunk::{Chunk, gather_rows};
use crate::keys::Keys;
use crate::layout::{ASCENDING, Layout};
use crate::locate::{BLOCK_KEYS, HashSearch, Hit};
use crate::run::{Run, SortedPart};

/// Matches of keys in runs, ordered by key, then run, then row.
#[derive(Clone, Default, Debug)]
pub struct Matches {
    /// Index of the key, one entry per match; ascending.
    pub key: Vec<u32>,
    /// Index in `chunks` of the chunk that holds the row.
    pub source: Vec<u32>,
    /// The row of that chunk.
    pub row: Vec<u32>,
    /// The chunks with matches.
    pub chunks: Vec<Arc<Chunk>>,
    /// The layout of the rows, once a run was probed.
    layout: Option<Arc<Layout>>,
}

/// Looks up the keys from index `from` on in every run, and appends the updates with times before
/// `before` to `out`. Stops after a key when `fuel` matches were found (a key's matches are never
/// divided). Returns the index of the next key to look for: `keys.len()` when done.
///
/// `key_columns` are the positions of the key in the rows of the runs.
pub fn probe(
    runs: &[Arc<Run>],
    key_columns: &[usize],
    keys: &Keys,
    from: usize,
    before: Time,
    fuel: usize,
    out: &mut Matches,
) -> usize {
    out.layout = runs.first().map(|run| Arc::clone(run.layout())).or(out.layout.take());
    let wanted = keys.len().saturating_sub(from).max(1);
    let parts = runs.iter().flat_map(|run| run.parts().iter().map(move |part| (run, part)));
    let mut targets: Vec<ProbeTarget> =
        parts.map(|(run, part)| ProbeTarget::new(run, part, part.rows / wanted)).collect();
    let limit = out.len().saturating_add(fuel);
    let mut start = from;
    while start < keys.len() {
        let end = keys.len().min(start + BLOCK_KEYS);
        locate(&mut targets, &keys.hashes()[start..end]);
        for key in start..end {
            let wanted = WantedKey { key_columns, keys, key, hash: keys.hashes()[key], before };
            for target in &mut targets {
                target.emit(&wanted, (key - start) as u32, out);
            }
            if out.len() >= limit {
                return key + 1;
            }
        }
        start = end;
    }
    keys.len()
}

/// Finds a block of keys in all targets, in steps that wait for memory once.
fn locate(targets: &mut [ProbeTarget], hashes: &[u64]) {
    targets.iter_mut().for_each(|target| target.search.start(hashes));
    targets.iter_mut().for_each(|target| target.search.refine(hashes));
    for target in targets {
        target.hits.clear();
        target.used = 0;
        target.search.finish(hashes, &mut target.hits);
    }
}

impl Matches {
    /// Number of matches.
    pub fn len(&self) -> usize {
        self.key.len()
    }

    /// Whether there are no matches.
    pub fn is_empty(&self) -> bool {
        self.key.is_empty()
    }

    /// Forgets all matches.
    pub fn clear(&mut self) {
        self.key.clear();
        self.source.clear();
        self.row.clear();
        self.chunks.clear();
    }

    /// The columns at `columns` of the rows, one row per match. Before any run was probed the types
    /// are unknown and there are none.
    pub fn gather(&self, columns: &[usize]) -> Columns {
        if self.chunks.is_empty() {
            let empty =
                |layout: &Arc<Layout>| columns.iter().map(|&column| new_empty_array(&layout.types[column])).collect();
            return self.layout.as_ref().map_or_else(|| Columns::from([]), empty);
        }
        let picks: Vec<(u32, u32)> = self.source.iter().copied().zip(self.row.iter().copied()).collect();
        gather_rows(&self.chunks, columns, &picks)
    }

    /// The time of each match.
    pub fn times(&self) -> Vec<Time> {
        self.rows().map(|(chunk, row)| chunk.times().get(row)).collect()
    }

    /// The multiplicity of each match.
    pub fn diffs(&self) -> Vec<Diff> {
        self.rows().map(|(chunk, row)| chunk.diffs().get(row)).collect()
    }

    /// The matches of a key.
    pub fn range_of(&self, key: usize) -> Range<usize> {
        let start = self.key.partition_point(|&other| (other as usize) < key);
        let len = self.key[start..].partition_point(|&other| other as usize == key);
        start..start + len
    }

    fn rows(&self) -> impl Iterator<Item = (&Arc<Chunk>, usize)> {
        self.source.iter().zip(&self.row).map(|(&source, &row)| (&self.chunks[source as usize], row as usize))
    }
}

/// The key that is looked for.
struct WantedKey<'a> {
    key_columns: &'a [usize],
    keys: &'a Keys,
    key: usize,
    hash: u64,
    before: Time,
}

/// A sorted part of a run that is searched.
struct ProbeTarget<'a> {
    chunks: &'a [Arc<Chunk>],
    part: &'a SortedPart,
    search: HashSearch<'a>,
    /// What was found of the current block, and how much of it is used up.
    hits: Vec<Hit>,
    used: usize,
    /// The last chunk with matches, and its number in the matches.
    source: Option<(usize, u32)>,
    /// Compares keys with rows of this chunk.
    comparator: Option<(usize, Comparator)>,
}

impl<'a> ProbeTarget<'a> {
    fn new(run: &'a Run, part: &'a SortedPart, rows_per_key: usize) -> ProbeTarget<'a> {
        let chunks = &run.chunks()[part.start..part.start + part.hashes.len()];
        let search = HashSearch::new(part, rows_per_key);
        ProbeTarget { chunks, part, search, hits: Vec::new(), used: 0, source: None, comparator: None }
    }

    /// Appends the matches of a key, which is number `in_block` of the block.
    #[inline]
    fn emit(&mut self, wanted: &WantedKey, in_block: u32, out: &mut Matches) {
        let Some(&hit) = self.hits.get(self.used) else { return };
        if hit.key != in_block {
            return;
        }
        self.used += 1;
        let (mut chunk, mut row) = (hit.chunk as usize, hit.row as usize);
        loop {
            row = self.emit_from_chunk(wanted, chunk, row, out);
            chunk += 1;
            let continues =
                row == self.part.hashes[chunk - 1].len() && self.part.firsts.get(chunk) == Some(&wanted.hash);
            if !continues {
                return;
            }
            row = 0;
        }
    }

    /// Appends the matches in one chunk from row `start` on; returns the first row after those with
    /// this hash.
    fn emit_from_chunk(&mut self, wanted: &WantedKey, number: usize, start: usize, out: &mut Matches) -> usize {
        let chunks = self.chunks;
        let chunk = &chunks[number];
        let facts = chunk.facts();
        let end = start + self.part.hashes[number].view().count_equal(start, wanted.hash);
        let is_exact = wanted.keys.is_exact() && facts.exact.key;
        let has_one_key = is_exact || facts.key_unique;
        // A hash with one key in this chunk needs one comparison; with several keys, each row needs
        // one (below).
        if has_one_key && !is_exact && !self.is_key(wanted, number, start) {
            return end;
        }
        if has_one_key && facts.time_max < wanted.before {
            let source = self.source(number, out);
            out.key.extend(std::iter::repeat_n(wanted.key as u32, end - start));
            out.source.extend(std::iter::repeat_n(source, end - start));
            out.row.extend(start as u32..end as u32);
            return end;
        }
        for row in start..end {
            if chunk.times().get(row) < wanted.before && (has_one_key || self.is_key(wanted, number, row)) {
                let source = self.source(number, out);
                out.key.push(wanted.key as u32);
                out.source.push(source);
                out.row.push(row as u32);
            }
        }
        end
    }

    /// Whether a row has the wanted key, by the columns.
    fn is_key(&mut self, wanted: &WantedKey, chunk: usize, row: usize) -> bool {
        let WantedKey { key_columns, keys, key, .. } = wanted;
        if self.chunks[chunk].is_packed() {
            return !keys.columns()[0].is_null(*key);
        }
        if self.comparator.as_ref().is_none_or(|&(of, _)| of != chunk) {
            let columns = self.chunks[chunk].pick_columns(key_columns);
            self.comparator =
                Some((chunk, Comparator::new(keys.columns(), &columns, &vec![ASCENDING; key_columns.len()])));
        }
        self.comparator.as_ref().is_some_and(|(_, comparator)| comparator.compare(*key, row).is_eq())
    }

    /// The number of a chunk in the matches.
    #[inline]
    fn source(&mut self, chunk: usize, out: &mut Matches) -> u32 {
        match self.source {
            Some((of, source)) if of == chunk => source,
            _ => {
                out.chunks.push(Arc::clone(&self.chunks[chunk]));
                let source = out.chunks.len() as u32 - 1;
                self.source = Some((chunk, source));
                source
            }
        }
    }
}
