//! Batches sorted into chunks, in pieces that stay in the cache.
//!
//! Law: the chunks of a piece are sorted and consolidated, and all pieces together have the updates
//! of the batches, less those that cancel within a piece.
//!
//! Cost: that of `ordering`. Rows that their neighbours take back are left out before.

use std::sync::Arc;

use anabranch_batch::{Batch, Diffs, Time, Times, equal};

use crate::chunk::{Chunk, Exact};
use crate::layout::Layout;
use crate::ordering::{HashBlock, RowSource};
use crate::pending_rows::{PendingRows, chunk_of_row};

/// Rows that are sorted together: what a sort goes through should stay in the second-level cache,
/// and be memory that was used before.
const PIECE_ROWS: usize = 1 << 16;
/// With fewer rows, merging pieces costs more than sorting all at once.
pub(crate) const PIECES_ROWS_MIN: usize = 1 << 18;

/// Rows that neighbours take back are left out before sorting if they are at least such a part.
const CANCELLED_PART: usize = 16;

/// The batches that are sorted together, in turn.
pub(crate) fn into_pieces(mut batches: Vec<Batch>) -> Vec<Vec<Batch>> {
    // (Of rows that come in order each worker sends a range: in the order of the ranges they need
    // no sorting.)
    batches.sort_by_key(|batch| batch.key().and_then(|key| key.hashes.first().copied()));
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

/// The chunks of a piece; `None` if all of it cancels.
pub(crate) fn sort_piece(layout: &Arc<Layout>, piece: Vec<Batch>, since: Time) -> Option<Vec<Arc<Chunk>>> {
    let batch = Batch::concat(&piece)?;
    drop(piece);
    let chunks = sort_batch(layout, batch, since);
    (!chunks.is_empty()).then_some(chunks)
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
