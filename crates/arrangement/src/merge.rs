//! Merging adjacent runs into one, a bit at a time.
//!
//! Law: at every moment the rows of the runs are those of [`RunMerge::view`]: what is already
//! merged, followed by the untouched rest of the oldest run; and the untouched rest of each of the
//! others. Times before `since` are advanced to it, equal updates summed, zeros dropped.
//!
//! Cost: each row is moved once, whatever the number of runs; none of a chunk between whose first
//! and last hash the other runs have nothing, as where keys come in order: it becomes part of the
//! result as it is. Memory of the inputs is given back chunk by chunk, so a merge needs little more
//! than its result (when no other owner holds the inputs).
//!
//! Elsewhere a range of hashes that has some thousand rows in all runs, a block, is sorted by radix
//! in the cache (`ordering`), where a tournament of the runs would wait for each comparison before
//! the next. A hash whose rows are not all in one chunk of each run is merged by blocks of its
//! words, or row by row (`one_hash`).
//!
//! Source: radix sort of cache-sized pieces as in Satish et al., *Fast Sort on CPUs and GPUs*
//! (SIGMOD 2010).

use std::cell::OnceCell;
use std::collections::VecDeque;
use std::sync::Arc;

use anabranch_batch::Time;

use crate::chunk::{CHUNK_ROWS, Chunk};
use crate::floor::Floors;
use crate::layout::Layout;
use crate::one_hash::OneHashMerge;
use crate::ordering::HashBlock;
use crate::pending_rows::PendingRows;
use crate::run::Run;

/// A chunk with fewer rows is not moved as it is, nor are fewer rows made a chunk for that: else
/// runs would have more and more smaller and smaller chunks.
const CHUNK_ROWS_MIN: usize = CHUNK_ROWS / 2;

/// Fuel, in rows, for moving a chunk as it is.
const MOVE_FUEL: usize = 64;
/// Fuel, in rows, for packing a chunk.
const PACK_FUEL: usize = 2048;

/// An unfinished merge of adjacent runs.
#[derive(Debug)]
pub(crate) struct RunMerge {
    layout: Arc<Layout>,
    lower: Time,
    upper: Time,
    since: Time,
    /// Rows of all inputs.
    rows: usize,
    /// What remains of the inputs, oldest first.
    inputs: Vec<MergeInput>,
    /// Rows taken from the inputs, but not yet in a chunk.
    pending: PendingRows,
    /// The rows that are taken next; empty in between.
    block: HashBlock,
    /// The hash that is being merged row by row.
    one_hash: Option<OneHashMerge>,
    /// What is merged.
    merged: Vec<Arc<Chunk>>,
    /// What readers see; forgotten when memory was given back.
    view: OnceCell<Arc<Run>>,
    /// How often that was.
    progress: usize,
    /// Chunks are packed where that pays.
    packs: bool,
}

/// What remains of one input, and a cursor.
#[derive(Debug)]
pub(crate) struct MergeInput {
    /// Chunks not yet given back.
    chunks: VecDeque<Arc<Chunk>>,
    /// First row of the first chunk that is not yet in `merged`.
    start: usize,
    /// The cursor: index in `chunks` and row in it.
    chunk: usize,
    pub row: usize,
    /// The number of the current chunk in `pending`, once rows of it were taken.
    source: Option<u32>,
    /// What rows need not come along, and how rows are laid out.
    floors: Arc<Floors>,
    layout: Arc<Layout>,
    /// Whether rows below the floors may still be in the current chunk.
    is_fresh: bool,
}

impl RunMerge {
    /// Starts merging runs, oldest first, of which rows below the floors stay out.
    ///
    /// # Panics
    /// If there is none, or they are out of order, or themselves being merged.
    pub fn new(runs: &[Arc<Run>], since: Time, floors: &Arc<Floors>) -> RunMerge {
        let (Some(first), Some(last)) = (runs.first(), runs.last()) else { panic!("some run is merged") };
        assert!(runs.windows(2).all(|pair| pair[0].upper() <= pair[1].lower()), "runs are merged in order");
        assert!(runs.iter().all(|run| run.parts().len() <= 1), "runs that are being merged are not merged again");
        let since = runs.iter().map(|run| run.since()).fold(since, Time::max);
        let inputs = runs.iter().map(|run| MergeInput::new(run.chunks(), first.layout(), floors)).collect();
        RunMerge::of_inputs(first.layout(), (first.lower(), last.upper()), since, inputs)
    }

    /// Starts merging the parts of a run.
    pub fn of_parts(run: &Run, since: Time, floors: &Arc<Floors>) -> RunMerge {
        let inputs = run.chunks_by_part().map(|chunks| MergeInput::new(chunks, run.layout(), floors)).collect();
        RunMerge::of_inputs(run.layout(), (run.lower(), run.upper()), since.max(run.since()), inputs)
    }

    fn of_inputs(layout: &Arc<Layout>, (lower, upper): (Time, Time), since: Time, inputs: Vec<MergeInput>) -> RunMerge {
        let are_keys_exact = inputs.iter().flat_map(|input| &input.chunks).all(|chunk| chunk.facts().exact.key);
        RunMerge {
            pending: PendingRows::of_chunks(Arc::clone(layout), since, are_keys_exact),
            layout: Arc::clone(layout),
            lower,
            upper,
            since,
            rows: inputs.iter().flat_map(|input| &input.chunks).map(|chunk| chunk.len()).sum(),
            inputs,
            block: HashBlock::default(),
            one_hash: None,
            merged: Vec::new(),
            view: OnceCell::new(),
            progress: 0,
            packs: false,
        }
    }

    /// The same, of which chunks come out packed where that pays.
    pub fn packing(mut self) -> RunMerge {
        self.pending.set_packing();
        RunMerge { packs: true, ..self }
    }

    /// Merges until `fuel` rows are used up or the merge is done; returns whether it is done.
    pub fn work(&mut self, fuel: &mut isize) -> bool {
        while *fuel > 0 {
            if (self.pending.is_full() || self.pending.is_spent())
                && self.one_hash.as_ref().is_none_or(|one_hash| !one_hash.is_open())
            {
                self.settle();
            }
            let rows = CHUNK_ROWS.min(fuel.unsigned_abs());
            let Some(first) = self.inputs.iter_mut().filter_map(MergeInput::next_hash).min() else {
                self.settle();
                return true;
            };
            let taken = self.move_chunk(first).unwrap_or_else(|| self.take_rows(first, rows));
            *fuel -= taken.cast_signed();
        }
        false
    }

    /// Merges to the end.
    pub fn finish(mut self) -> Run {
        while !self.work(&mut isize::MAX.clone()) {}
        self.into_run()
    }

    /// Rows of all inputs.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// The result.
    ///
    /// # Panics
    /// If the merge is not done.
    pub fn into_run(self) -> Run {
        assert!(self.inputs.iter().all(|input| input.chunks.is_empty()), "only a finished merge is a run");
        let run = Run::new(self.layout, self.lower, self.upper, self.since, self.merged);
        if self.packs { run.packed() } else { run }
    }

    /// What readers see meanwhile: one run of several sorted parts. O(chunks) when it changed, else
    /// O(1).
    pub fn view(&self) -> Arc<Run> {
        let view = || {
            let mut parts: Vec<Vec<Arc<Chunk>>> = self.inputs.iter().map(|input| input.rest().collect()).collect();
            parts[0] = self.merged.iter().cloned().chain(parts[0].drain(..)).collect();
            Arc::new(Run::from_parts(Arc::clone(&self.layout), self.lower, self.upper, self.since, parts))
        };
        Arc::clone(self.view.get_or_init(view))
    }

    /// How often memory was given back so far; when it changes, so does [`RunMerge::view`].
    pub fn progress(&self) -> usize {
        self.progress
    }

    /// Takes about `rows` rows from the inputs, those of hash `first` and after. Returns how many
    /// they were.
    fn take_rows(&mut self, first: u64, rows: usize) -> usize {
        if self.one_hash.as_ref().is_some_and(|one_hash| one_hash.hash() != first) {
            self.pending.close_single();
            self.one_hash = None;
        }
        let horizon = self.inputs.iter().filter_map(MergeInput::horizon).min();
        if self.one_hash.is_some() || horizon == Some(first) {
            let one_hash = self.one_hash.get_or_insert_with(|| OneHashMerge::new(first));
            return one_hash.take(&self.layout, self.since, &mut self.inputs, &mut self.pending, rows);
        }
        self.take_block(self.bound(first, rows).into_iter().chain(horizon).min())
    }

    /// Makes the chunk that begins with hash `first` part of the result as it is, or packed, if
    /// nothing is to be merged with it. Returns what that cost.
    fn move_chunk(&mut self, first: u64) -> Option<usize> {
        let is_between = self.one_hash.is_none() && (self.pending.len() == 0 || self.pending.len() >= CHUNK_ROWS_MIN);
        if !is_between {
            return None;
        }
        let mover = self.inputs.iter().position(|input| input.is_at(first))?;
        let input = &self.inputs[mover];
        let chunk = input.current().filter(|chunk| input.row == 0 && chunk.len() >= CHUNK_ROWS_MIN)?;
        let last = chunk.hashes().at(chunk.len() - 1);
        let is_alone = |(number, other): (usize, &mut MergeInput)| {
            number == mover || other.next_hash().is_none_or(|next| last < next)
        };
        let chunk = Arc::clone(chunk);
        if !self.inputs.iter_mut().enumerate().all(is_alone) {
            return None;
        }
        let chunk = chunk.advanced(&self.layout, self.since)?;
        let packed = if self.packs { chunk.packed(&self.layout) } else { None };
        let cost = if packed.is_some() { PACK_FUEL } else { MOVE_FUEL };
        // Pending rows lie before the moved chunk: they become chunks first, so that `merged` stays
        // in order.
        self.settle();
        self.merged.push(packed.unwrap_or(chunk));
        self.inputs[mover].pop();
        Some(cost)
    }

    /// A hash before which the current chunks have about `rows` rows, and some at least; `None` if
    /// they have not many more.
    fn bound(&self, first: u64, rows: usize) -> Option<u64> {
        let counts = |bound| self.inputs.iter().map(|input| input.rows_before(bound)).collect();
        let at = |input: usize, ahead| {
            let input = &self.inputs[input];
            Some(input.current()?.hashes().at(input.row + ahead))
        };
        bound_before(None, first, rows, counts, at)
    }

    /// Takes the rows of the current chunks with hashes before `bound`, which are all there are.
    /// Returns how many they were.
    fn take_block(&mut self, bound: Option<u64>) -> usize {
        let RunMerge { layout, inputs, pending, block, .. } = self;
        let mut n_ranges = 0;
        for input in inputs {
            let Some(chunk) = input.current().cloned() else { continue };
            let hashes = chunk.hashes();
            let end = input.row + input.rows_before(bound);
            if end > input.row {
                let source = input.source(pending);
                hashes.append_to(&mut block.hashes, input.row..end);
                chunk.append_words(layout, &mut block.words, input.row..end);
                block.picks.extend((input.row..end).map(|row| (source, row as u32)));
                input.row = end;
                n_ranges += 1;
            }
        }
        let rows = block.hashes.len();
        pending.take(block, n_ranges == 1);
        block.clear();
        rows
    }

    /// Makes chunks of what is pending: all rows before the cursors are in `merged` (or cancelled)
    /// then. Lets go of their chunks.
    fn settle(&mut self) {
        self.pending.close_single();
        self.merged.extend(self.pending.make_chunks());
        self.pending.forget_sources();
        self.one_hash = None;
        self.view.take();
        self.progress += 1;
        self.inputs.iter_mut().for_each(MergeInput::forget_consumed);
    }
}

/// A hash (or word) before which some sorted lists have about `rows` entries, at most `bound`
/// (`None` is after all of them) and after `first`, the least of them; `bound` if they have not
/// many more. `counts` are those of the entries of each list before a bound, `at` is an entry of a
/// list.
pub(crate) fn bound_before(
    mut bound: Option<u64>,
    first: u64,
    rows: usize,
    counts: impl Fn(Option<u64>) -> Vec<usize>,
    at: impl Fn(usize, usize) -> Option<u64>,
) -> Option<u64> {
    loop {
        let counts = counts(bound);
        let total: usize = counts.iter().sum();
        let largest = (0..counts.len()).max_by_key(|&list| counts[list]);
        let (Some(next), Some(largest)) = (first.checked_add(1), largest) else { return bound };
        if total <= rows + rows / 2 {
            return bound;
        }
        let ahead = (counts[largest] - 1).min((counts[largest] as u128 * rows as u128 / total as u128) as usize);
        let closer = at(largest, ahead).map(|entry| entry.max(next));
        if closer.is_none() || closer == bound {
            return bound;
        }
        bound = closer;
    }
}

impl MergeInput {
    fn new(chunks: &[Arc<Chunk>], layout: &Arc<Layout>, floors: &Arc<Floors>) -> MergeInput {
        MergeInput {
            chunks: chunks.iter().cloned().collect(),
            start: 0,
            chunk: 0,
            row: 0,
            source: None,
            floors: Arc::clone(floors),
            layout: Arc::clone(layout),
            is_fresh: true,
        }
    }

    /// The chunk that the cursor is in; `None` at the end.
    pub fn current(&self) -> Option<&Arc<Chunk>> {
        self.chunks.get(self.chunk)
    }

    /// The hash of the next row; `None` at the end. Leaves a chunk that has no more rows, and
    /// leaves rows below the floors out of the one it enters.
    pub fn next_hash(&mut self) -> Option<u64> {
        if self.current().is_some_and(|chunk| self.row == chunk.len()) {
            (self.chunk, self.row, self.source, self.is_fresh) = (self.chunk + 1, 0, None, true);
        }
        while self.is_fresh && self.chunk < self.chunks.len() {
            match self.above_floors(&self.chunks[self.chunk]) {
                Some(rest) => {
                    self.chunks[self.chunk] = rest;
                    self.is_fresh = false;
                }
                None => _ = self.chunks.remove(self.chunk),
            }
        }
        self.current().map(|chunk| chunk.hashes().at(self.row))
    }

    /// The rows of a chunk that some reader may ask for; `None` if there are none.
    fn above_floors(&self, chunk: &Arc<Chunk>) -> Option<Arc<Chunk>> {
        if self.floors.is_empty() {
            return Some(Arc::clone(chunk));
        }
        let stay = self.floors.staying(|column| chunk.column(column), chunk.len());
        match stay.len() {
            0 => None,
            n if n == chunk.len() => Some(Arc::clone(chunk)),
            _ => Some(chunk.pick(&self.layout, &stay)),
        }
    }

    /// The number of the current chunk in `pending`.
    pub fn source(&mut self, pending: &mut PendingRows) -> u32 {
        let chunk = &self.chunks[self.chunk];
        *self.source.get_or_insert_with(|| pending.add_chunk(chunk))
    }

    /// The chunk after the current one.
    pub fn behind(&self) -> Option<&Arc<Chunk>> {
        self.chunks.get(self.chunk + 1)
    }

    /// The first hash after the current chunk.
    fn horizon(&self) -> Option<u64> {
        self.behind().map(|chunk| chunk.hashes().at(0))
    }

    /// Whether the next row has this hash. The chunk that the cursor is in has a next row.
    fn is_at(&self, hash: u64) -> bool {
        self.current().is_some_and(|chunk| chunk.hashes().at(self.row) == hash)
    }

    /// Rows left of the current chunk with hashes before `bound`.
    fn rows_before(&self, bound: Option<u64>) -> usize {
        let rows = |chunk: &Arc<Chunk>| match bound {
            None => chunk.len() - self.row,
            Some(bound) => chunk.hashes().view().gallop_up(self.row, bound) - self.row,
        };
        self.current().map_or(0, rows)
    }

    /// Lets go of the current chunk, the first, of which no row was taken.
    fn pop(&mut self) {
        assert!(self.chunk == 0 && self.row == 0 && self.start == 0, "only a whole chunk is moved");
        self.chunks.pop_front();
        self.is_fresh = true;
    }

    fn forget_consumed(&mut self) {
        self.next_hash();
        self.chunks.drain(..self.chunk);
        (self.start, self.chunk, self.source) = (self.row, 0, None);
    }

    /// The rows that are not in a merged chunk yet.
    fn rest(&self) -> impl Iterator<Item = Arc<Chunk>> + '_ {
        self.chunks.iter().enumerate().map(|(i, chunk)| if i == 0 { chunk.tail(self.start) } else { Arc::clone(chunk) })
    }
}
