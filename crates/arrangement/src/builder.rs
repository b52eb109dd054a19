//! The builder: unsorted batches in, sorted runs out.
//!
//! Law: what was pushed is, at any moment, in a sealed run or still held, never both. A run holds
//! exactly the updates with times before its `upper` that no earlier run held.
//!
//! Cost: `push` is a pointer (unless rows have lifetimes); `seal` is O(held rows) to hash (unless
//! batches are keyed already) and to split by time, then one scatter and small sorts by two words,
//! and one copy of each cell. Columns are compared only where words tie. Very many rows are sorted
//! in pieces, which become the parts of a run that the spine merges: a copy more, where their keys
//! do not come in order, but by fuel, and nothing as large as all of them is made on the way.

use std::sync::Arc;

use anabranch_batch::{Batch, Diffs, END, FlatBatch, Time, Times, equal};
use arrow::array::BooleanArray;

use crate::chunk::{Chunk, Exact};
use crate::footprint::Footprint;
use crate::layout::Layout;
use crate::ordering::{HashBlock, RowSource};
use crate::pending_rows::{PendingRows, chunk_of_row};
use crate::run::Run;

/// Rows that are sorted together: what a sort goes through should stay in the second-level cache,
/// and be memory that was used before.
const PIECE_ROWS: usize = 1 << 16;
/// With fewer rows, merging pieces costs more than sorting all at once.
const PIECES_ROWS_MIN: usize = 1 << 18;

/// Rows that neighbours take back are left out before sorting if they are at least such a part.
const CANCELLED_PART: usize = 16;

/// Unsorted batches in, a sorted run out.
#[derive(Debug)]
pub struct Builder {
    layout: Arc<Layout>,
    /// Batches that are not empty, each with its earliest time.
    held: Vec<(Time, FlatBatch)>,
    /// Rows of `held`.
    rows: usize,
    /// What was sorted already, each piece of one time.
    pieces: Vec<Arc<Run>>,
    /// The earliest and the latest time of all updates.
    span: Option<(Time, Time)>,
}

impl Builder {
    /// A builder that holds nothing.
    pub fn new(layout: Arc<Layout>) -> Builder {
        Builder { layout, held: Vec::new(), rows: 0, pieces: Vec::new(), span: None }
    }

    /// Takes a batch of rows. Lifetimes are written out as two updates.
    ///
    /// # Panics
    /// If the batch does not have the layout's columns.
    pub fn push(&mut self, batch: impl Into<FlatBatch>) {
        self.push_flat(batch.into());
    }

    fn push_flat(&mut self, batch: FlatBatch) {
        assert_eq!(batch.columns().len(), self.layout.types.len(), "a batch has the columns of its arrangement");
        if !batch.is_empty() {
            let (first, last) = batch.times().range();
            let (least, greatest) = self.span.unwrap_or((first, last));
            self.span = Some((first.min(least), last.max(greatest)));
            self.rows += batch.len();
            self.held.push((first, batch));
        }
        if self.rows >= PIECES_ROWS_MIN {
            self.sort_held();
        }
    }

    /// Sorts what is held, if all of it has one time: a large history is sorted while it comes, not
    /// when it has come.
    fn sort_held(&mut self) {
        let time = |batch: &FlatBatch| match batch.times() {
            Times::Constant(time) => Some(*time),
            Times::Column(_) => None,
        };
        let Some(one) = self.held.first().and_then(|(_, batch)| time(batch)) else { return };
        if self.held.iter().any(|(_, batch)| time(batch) != Some(one)) {
            return;
        }
        let held = std::mem::take(&mut self.held).into_iter().map(|(_, batch)| batch.into_batch()).collect();
        self.rows = 0;
        for chunks in sort_pieces(&self.layout, held, Time::MIN) {
            // A piece is no run of a spine yet, so its interval is empty.
            let piece = Run::new(Arc::clone(&self.layout), Time::MIN, Time::MIN, Time::MIN, chunks);
            self.pieces.push(Arc::new(piece));
        }
    }

    /// Updates held.
    pub fn rows(&self) -> usize {
        self.rows + self.pieces.iter().map(|piece| piece.len()).sum::<usize>()
    }

    /// Bytes of the batches held; what they share counts once.
    pub fn size_bytes(&self) -> usize {
        let pieces: usize = self.pieces.iter().map(|piece| piece.size_bytes()).sum();
        Footprint::bytes_of(self.held.iter().map(|(_, batch)| &**batch)) + pieces
    }

    /// The earliest time among the updates held.
    pub(crate) fn min_time(&self) -> Option<Time> {
        self.span.map(|(first, _)| first)
    }

    /// The latest time among the updates held.
    pub(crate) fn max_time(&self) -> Option<Time> {
        self.span.map(|(_, last)| last)
    }

    /// How many batches and sorted pieces it holds.
    pub(crate) fn parts(&self) -> usize {
        self.held.len() + self.pieces.len()
    }

    /// The updates held.
    pub(crate) fn batches(&self) -> Vec<FlatBatch> {
        let pieces = self.pieces.iter().flat_map(|piece| piece.chunks().iter().map(|chunk| chunk.to_batch()));
        self.held.iter().map(|(_, batch)| batch.clone()).chain(pieces).collect()
    }

    /// Lets go of batches of which no update is later than `since`.
    pub(crate) fn forget_until(&mut self, since: Time) {
        self.held.retain(|(_, batch)| batch.times().max() > since);
        self.pieces.retain(|piece| piece.time_max() > since);
        self.rows = self.held.iter().map(|(_, batch)| batch.len()).sum();
        self.set_span();
    }

    fn set_span(&mut self) {
        let held = self.held.iter().map(|(first, batch)| (*first, batch.times().max()));
        let kept = self.pieces.iter().map(|piece| (piece.time_min(), piece.time_max()));
        self.span = held.chain(kept).reduce(|all, span| (all.0.min(span.0), all.1.max(span.1)));
    }

    /// Makes the held updates with times before `upper` a run `[lower, upper)`; holds the rest. No
    /// reader will tell times before `since` apart. The run may be empty; one of very many rows has
    /// several parts.
    ///
    /// # Panics
    /// If an update held is earlier than `lower`, or `since` is not before `upper`.
    pub fn seal(&mut self, lower: Time, upper: Time, since: Time) -> Run {
        assert!(self.min_time().is_none_or(|time| lower <= time), "no update is earlier than the last sealed upper");
        assert!(since == Time::MIN || since < upper, "times are moved inside the interval only");
        let due = self.take_before(upper);
        let is_due = |piece: &mut Arc<Run>| upper == END || piece.time_max() < upper;
        let pieces = self.pieces.extract_if(.., is_due).map(|piece| piece.chunks().to_vec());
        let parts = pieces.chain(sort_pieces(&self.layout, due, since)).collect();
        self.set_span();
        Run::from_parts(Arc::clone(&self.layout), lower, upper, since, parts)
    }

    fn take_before(&mut self, upper: Time) -> Vec<Batch> {
        let mut due = Vec::new();
        for (min, batch) in std::mem::take(&mut self.held) {
            if upper == END || batch.times().max() < upper {
                due.push(batch.into_batch());
            } else if upper <= min {
                self.held.push((min, batch));
            } else {
                let is_due: BooleanArray = (0..batch.len()).map(|row| Some(batch.times().get(row) < upper)).collect();
                let is_early = arrow::compute::not(&is_due).expect("negation has no cause to fail");
                let rest = batch.filter(&is_early);
                due.push(batch.filter(&is_due).into_batch());
                self.held.push((rest.times().min(), rest));
            }
        }
        self.rows = self.held.iter().map(|(_, batch)| batch.len()).sum();
        due
    }
}

/// Batches that are sorted together.
fn into_pieces(batches: Vec<Batch>) -> Vec<Vec<Batch>> {
    if batches.iter().map(Batch::len).sum::<usize>() < PIECES_ROWS_MIN {
        return vec![batches];
    }
    let mut pieces: Vec<Vec<Batch>> = Vec::new();
    let mut rows = PIECE_ROWS;
    for batch in batches {
        if rows >= PIECE_ROWS {
            rows = 0;
            pieces.push(Vec::new());
        }
        rows += batch.len();
        pieces.last_mut().expect("the first batch begins a piece").push(batch);
    }
    pieces
}

/// Batches sorted in pieces, each a list of chunks.
fn sort_pieces(layout: &Arc<Layout>, mut batches: Vec<Batch>, since: Time) -> impl Iterator<Item = Vec<Arc<Chunk>>> {
    // (Of rows that come in order each worker sends a range: in the order of the ranges they need
    // no sorting.)
    batches.sort_by_key(|batch| batch.key().and_then(|key| key.hashes.first().copied()));
    into_pieces(batches).into_iter().filter_map(move |piece| {
        let batch = Batch::concat(&piece)?;
        drop(piece);
        let chunks = sort_batch(layout, batch, since);
        (!chunks.is_empty()).then_some(chunks)
    })
}

/// Sorts and consolidates a batch.
fn sort_batch(layout: &Arc<Layout>, batch: Batch, since: Time) -> Vec<Arc<Chunk>> {
    let batch = batch.with_key(&layout.key);
    let (words, value_exact) = layout.value_words(batch.columns(), batch.len());
    let exact = Exact { key: layout.is_key_exact(batch.columns()), value: value_exact };
    let (batch, words) = match uncancelled(&batch, &words, exact, since) {
        Some(rows) => (batch.take(&rows), rows.iter().map(|&row| words[row as usize]).collect()),
        None => (batch, words),
    };
    let hashes = batch.key().expect("it was just keyed").hashes.clone();
    let source = RowSource {
        times: batch.times().clone(),
        diffs: batch.diffs().clone(),
        exact,
        time_max: batch.times().max(),
        key_unique: false,
        columns: batch.columns().clone(),
    };
    if batch.len() == 1 {
        return chunk_of_row(layout, &source, hashes[0], words[0], since).into_iter().map(Arc::new).collect();
    }
    let mut pending = PendingRows::new(Arc::clone(layout), since);
    pending.add_source(source);
    pending.take(&HashBlock { hashes: hashes.to_vec(), words, picks: Vec::new() }, false);
    pending.make_chunks()
}

/// Rows without those that the row beside them takes back, as where something was replaced again
/// and again, at times that no reader tells apart. `None` if that are few.
fn uncancelled(batch: &Batch, words: &[u64], exact: Exact, since: Time) -> Option<Vec<u32>> {
    let Diffs::Column(diffs) = batch.diffs() else { return None };
    if !matches!(batch.times(), Times::Constant(_)) && batch.times().max() > since {
        return None;
    }
    let hashes = &batch.key()?.hashes;
    let cancels = |left: u32, right: u32| {
        let (left, right) = (left as usize, right as usize);
        hashes[left] == hashes[right] && words[left] == words[right] && diffs[left] == diffs[right].wrapping_neg()
    };
    let mut kept: Vec<u32> = Vec::with_capacity(batch.len());
    let (mut given, mut taken) = (Vec::new(), Vec::new());
    for row in 0..batch.len() as u32 {
        match kept.last() {
            Some(&last) if cancels(last, row) => {
                given.extend(kept.pop());
                taken.push(row);
            }
            _ => kept.push(row),
        }
    }
    if given.is_empty() || given.len() < batch.len() / CANCELLED_PART {
        return None;
    }
    let columns = batch.columns();
    let is_so =
        exact.key && exact.value || equal::rows_equal(columns, &given, columns, &taken).iter().all(|equal| *equal);
    is_so.then_some(kept)
}
