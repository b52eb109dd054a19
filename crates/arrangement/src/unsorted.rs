//! The rows of a run that is not sorted yet: the history of an arrangement that is new.
//!
//! Law: the chunks that come out have the updates of the batches, as those of the builder would.
//! Any thread may ask for them; the rows are sorted once.
//!
//! | state | what there is | left by |
//! |---|---|---|
//! | *batches* | the rows as they came, which a join may look at | the first piece that is sorted |
//! | *pieces* | some sorted, some not | the last piece |
//! | *done* | nothing: the run has its chunks | - |
//!
//! Cost: the batches share the columns that they came with; sorting is that of `pieces`. A join of
//! two histories looks one up in the other and needs no order (see `join` in the operators); what
//! is looked up at the first change afterwards, if there ever is one, is sorted then, or in spare
//! time.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard};

use anabranch_batch::{Batch, Time};

use crate::chunk::Chunk;
use crate::layout::Layout;
use crate::pieces::{into_pieces, sort_piece};

/// Rows that are not sorted, or in part.
#[derive(Debug)]
pub(crate) struct Unsorted {
    layout: Arc<Layout>,
    /// Times before this one are advanced to it.
    since: Time,
    state: Mutex<SortingState>,
}

#[derive(Debug)]
enum SortingState {
    Batches(Vec<Batch>),
    Pieces { left: VecDeque<Vec<Batch>>, sorted: Vec<Vec<Arc<Chunk>>> },
}

impl Unsorted {
    /// Rows as they came.
    pub fn new(layout: Arc<Layout>, since: Time, batches: Vec<Batch>) -> Unsorted {
        Unsorted { layout, since, state: Mutex::new(SortingState::Batches(batches)) }
    }

    /// The rows as they came, unless sorting has begun.
    pub fn batches(&self) -> Option<Vec<Batch>> {
        match &*self.lock() {
            SortingState::Batches(batches) => Some(batches.clone()),
            SortingState::Pieces { .. } => None,
        }
    }

    /// Sorts another piece. Returns how many rows it had; `None` if all are sorted.
    pub fn sort_one(&self) -> Option<usize> {
        let mut state = self.lock();
        let (left, sorted) = state.pieces();
        let piece = left.pop_front()?;
        let rows = piece.iter().map(Batch::len).sum();
        sorted.extend(sort_piece(&self.layout, piece, self.since));
        Some(rows)
    }

    /// Sorts what is left, and gives the chunks of each piece away.
    pub fn take_chunks(&self) -> Vec<Vec<Arc<Chunk>>> {
        let mut state = self.lock();
        let (left, sorted) = state.pieces();
        sorted.extend(left.drain(..).filter_map(|piece| sort_piece(&self.layout, piece, self.since)));
        std::mem::take(sorted)
    }

    fn lock(&self) -> MutexGuard<'_, SortingState> {
        // (A sort that has panicked has lost its piece: all that read the run fail.)
        self.state.lock().expect("rows are not read once sorting them has failed")
    }
}

impl SortingState {
    /// What is left to sort, and what is sorted.
    fn pieces(&mut self) -> (&mut VecDeque<Vec<Batch>>, &mut Vec<Vec<Arc<Chunk>>>) {
        if let SortingState::Batches(batches) = self {
            *self = SortingState::Pieces { left: into_pieces(std::mem::take(batches)).into(), sorted: Vec::new() };
        }
        match self {
            SortingState::Pieces { left, sorted } => (left, sorted),
            SortingState::Batches(_) => unreachable!("batches were just cut into pieces"),
        }
    }
}
