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

use anabranch_batch::{Batch, END, FlatBatch, Time, Times};
use arrow::array::BooleanArray;

use crate::footprint::Footprint;
use crate::layout::Layout;
use crate::pieces::{PIECES_ROWS_MIN, into_pieces, sort_piece};
use crate::run::Run;

/// Fewer rows are in order as they come.
const UNSORTED_ROWS_MIN: usize = 2;

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
    /// Whether what is sealed may stay unsorted.
    is_patient: bool,
    /// The earliest and the latest time of all updates.
    span: Option<(Time, Time)>,
}

impl Builder {
    /// A builder that holds nothing.
    pub fn new(layout: Arc<Layout>) -> Builder {
        Builder { layout, held: Vec::new(), rows: 0, pieces: Vec::new(), is_patient: false, span: None }
    }

    /// From now on what is sealed may stay [unsorted](Run::unsorted), or is sorted again.
    pub(crate) fn set_patient(&mut self, is_patient: bool) {
        self.is_patient = is_patient;
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
        if self.rows >= PIECES_ROWS_MIN && !self.is_patient {
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
        let sorted = into_pieces(held).into_iter().filter_map(|piece| sort_piece(&self.layout, piece, Time::MIN));
        for chunks in sorted {
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
    /// reader will tell times before `since` apart, so updates up to it may be earlier than
    /// `lower`. The run may be empty; one of very many rows has several parts.
    ///
    /// # Panics
    /// If an update held is between `since` and `lower`, or `since` is not before `upper`.
    pub fn seal(&mut self, lower: Time, upper: Time, since: Time) -> Run {
        let is_told = |time: Time| lower <= time || time <= since;
        assert!(self.min_time().is_none_or(is_told), "no update is earlier than the last sealed upper");
        assert!(since == Time::MIN || since < upper, "times are moved inside the interval only");
        let due = self.take_before(upper);
        let is_due = |piece: &mut Arc<Run>| upper == END || piece.time_max() < upper;
        let pieces: Vec<_> = self.pieces.extract_if(.., is_due).map(|piece| piece.chunks().to_vec()).collect();
        self.set_span();
        let due_rows = due.iter().map(Batch::len).sum::<usize>();
        if self.is_patient && pieces.is_empty() && due_rows >= UNSORTED_ROWS_MIN {
            return Run::unsorted(Arc::clone(&self.layout), lower, upper, since, due);
        }
        let sorted = into_pieces(due).into_iter().filter_map(|piece| sort_piece(&self.layout, piece, since));
        let parts = pieces.into_iter().chain(sorted).collect();
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
