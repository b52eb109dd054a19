//! The rows around a splice: before and behind it, and which of them may have other results.
//!
//! Law: every row whose frame, or whose result, the splice changes is concerned, and what the
//! frames of concerned rows hold lies within the region; or the region says in which direction it
//! is to grow. Frames move with their rows and never back, so a row before one whose frame ends
//! before the splice is not concerned, nor one behind a row whose frame begins behind it.

use std::ops::Range;

use anabranch_batch::equal::rows_equal;
use anabranch_batch::gather;
use anabranch_batch::order::Comparator;
use anabranch_spec::frame::{Exclude, FrameBound};
use anabranch_spec::window::{Place, WindowCall, WindowFunction};
use arrow::array::ArrayRef;

use super::frames::{Frames, Results};
use super::leaves::Leaves;
use super::spans::Peers;
use super::spec::WindowSpec;
use super::splice::Splice;
use super::tail::{Kind, kind_of};
use crate::ordered::versions::Version;

/// Two versions of some rows of a partition: without the splice, and with it.
pub(super) struct Region {
    /// The rows of the partition that the old version holds.
    pub rows: Range<usize>,
    /// The rows of both versions.
    pub columns: Vec<ArrayRef>,
    pub versions: [Version; 2],
    pub peers: Peers,
    /// In each version, the rows that differ.
    spliced: [Range<usize>; 2],
    is_begin: bool,
    is_end: bool,
}

/// Where a region is to grow.
#[derive(Clone, Copy)]
pub(super) enum Growth {
    Left,
    Right,
}

/// The frames of the rows of each version.
pub(super) type Spans = [Vec<Range<usize>>; 2];

impl Region {
    /// A splice, with so many rows before and behind it.
    pub(super) fn new(spec: &WindowSpec, leaves: &Leaves, splice: &Splice, left: usize, right: usize) -> Region {
        let (n_rows, n_new) = (leaves.n_rows(), splice.with.first().map_or(0, |column| column.len()));
        let rows = splice.rows.start.saturating_sub(left)..splice.rows.end.saturating_add(right).min(n_rows);
        let width: Vec<usize> = (0..spec.input_types.len()).collect();
        let old = leaves.load(rows.clone(), &width);
        let part = |from: usize, to: usize| -> Vec<ArrayRef> {
            old.iter().map(|column| column.slice(from - rows.start, to - from)).collect()
        };
        let (before, behind) = (part(rows.start, splice.rows.start), part(splice.rows.end, rows.end));
        let columns = gather::concat(&[&old, &before, &splice.with, &behind]).to_vec();
        let (n_old, at) = (rows.len(), splice.rows.start - rows.start);
        let version = |from, to| Version { from, to, added: None, removed: None };
        let versions = [version(0, n_old), version(n_old, columns[0].len())];
        Region {
            peers: Peers::new(&versions, &spec.window.order, &columns),
            spliced: [at..at + splice.rows.len(), n_old + at..n_old + at + n_new],
            is_begin: rows.start == 0,
            is_end: rows.end == n_rows,
            versions,
            columns,
            rows,
        }
    }

    /// The rows of both versions as rows with frames.
    pub(super) fn frames<'a>(&'a self, spec: &'a WindowSpec) -> Frames<'a> {
        Frames { spec, versions: &self.versions, columns: &self.columns, peers: &self.peers }
    }

    /// Whether the bounds of frames that are keys of rows move with the rows, in the version that
    /// comes.
    pub(super) fn is_in_step(&self, spec: &WindowSpec) -> bool {
        let Version { from, to, .. } = self.versions[1];
        are_in_step(spec, &self.columns, from..to)
    }

    /// The rows that each row of both versions looks at, for each call.
    pub(super) fn spans(&self, spec: &WindowSpec) -> Vec<Spans> {
        let frames = self.frames(spec);
        let of_call = |call: &WindowCall| {
            [0, 1].map(|of| {
                let mut spans = frames.spans(&self.versions[of], &call.frame, 0);
                if looks_at_last(call) {
                    spans.iter_mut().for_each(|span| span.start = span.end.saturating_sub(1).max(span.start));
                }
                spans
            })
        };
        spec.window.calls.iter().map(of_call).collect()
    }

    /// The first concerned row, counted from the first of each version.
    pub(super) fn first_concerned(&self, spec: &WindowSpec, spans: &[Spans]) -> Result<usize, Growth> {
        let at = self.spliced[0].start;
        let mut first = at;
        let calls = || spec.window.calls.iter().zip(spans);
        for (_, spans) in calls().filter(|(call, _)| !matches!(kind_of(call), Kind::Fixed(_))) {
            let ends_before = |row: &usize| [0, 1].iter().all(|&of| spans[of][*row].end <= self.spliced[of].start);
            first = first.min((0..at).take_while(ends_before).count());
        }
        let is_cut = |call: &WindowCall, of: usize, span: &Range<usize>| {
            let from = self.versions[of].from;
            match kind_of(call) {
                Kind::Moving => span.start <= from,
                Kind::Running(_) => span.end <= from,
                // (The row that all frames hold lies before.)
                Kind::Fixed(nth) => span.end <= from || self.rows.start + (span.end - from) <= nth,
            }
        };
        let is_any_cut = calls().any(|(call, spans)| {
            [0, 1].iter().any(|&of| spans[of].get(first).is_some_and(|span| is_cut(call, of, span)))
        });
        let is_outside = !self.is_begin && (first == 0 || is_any_cut);
        if is_outside { Err(Growth::Left) } else { Ok(first) }
    }

    /// The concerned rows of each version, counted from its first, where the results of running
    /// calls are the same for so many rows at the end.
    pub(super) fn concerned(
        &self,
        spec: &WindowSpec,
        spans: &[Spans],
        first: usize,
        n_running_same: usize,
    ) -> Result<[Range<usize>; 2], Growth> {
        let n_behind = self.n_behind();
        let n_same = spec.window.calls.iter().zip(spans).map(|(call, spans)| match kind_of(call) {
            Kind::Moving => (0..n_behind).take_while(|back| self.begins_behind(spans, *back)).count(),
            Kind::Fixed(_) => n_behind,
            Kind::Running(_) => n_running_same,
        });
        let n_same = n_same.min().unwrap_or(n_behind);
        let concerned = [0, 1].map(|of| first..(self.versions[of].to - self.versions[of].from - n_same).max(first));
        let is_cut = spans.iter().any(|spans| {
            [0, 1].iter().any(|&of| {
                let rows: &Range<usize> = &concerned[of];
                !rows.is_empty() && spans[of][rows.end - 1].end >= self.versions[of].to
            })
        });
        let is_outside = !self.is_end && (n_same == 0 || is_cut);
        if is_outside { Err(Growth::Right) } else { Ok(concerned) }
    }

    /// Rows behind the splice.
    fn n_behind(&self) -> usize {
        self.versions[0].to - self.spliced[0].end
    }

    /// The number of rows at the end with the same results of a running call that remembers nothing
    /// but its result; `results` are those of the rows from `first` on.
    pub(super) fn n_same(&self, spans: &Spans, first: usize, results: [&Results; 2]) -> usize {
        let n_behind = self.n_behind();
        let is_same = |back: usize| {
            let rows = [0, 1].map(|of| spans[of].len() - 1 - back);
            // (The frame holds the splice, and ends inside.)
            let holds = |of: usize| {
                let end = spans[of][rows[of]].end;
                end >= self.spliced[of].end && (self.is_end || end < self.versions[of].to)
            };
            let [old, new] = [0, 1].map(|of| (rows[of] - first) as u32);
            let values = results.map(|of| std::slice::from_ref(&of.values));
            holds(0) && holds(1) && rows_equal(values[0], &[old], values[1], &[new])[0]
        };
        // (From the splice on: the first that is the same, and all behind it.)
        (0..n_behind).rev().find(|back| is_same(*back)).unwrap_or(0)
    }

    /// Whether the row so far from the end looks at nothing before the end of the splice.
    fn begins_behind(&self, spans: &Spans, back: usize) -> bool {
        [0, 1].iter().all(|&of| {
            let row = spans[of].len() - 1 - back;
            spans[of][row].start >= self.spliced[of].end
        })
    }
}

/// Whether a call looks at the last row of its frames only.
fn looks_at_last(call: &WindowCall) -> bool {
    matches!(call.function, WindowFunction::Value { place: Place::Last, .. }) && call.frame.exclude == Exclude::Nothing
}

/// Whether the bounds of frames that are keys move on from row to row, or stay. (Computed keys may
/// move back where their arithmetic is not monotone, as over changes of summer time.)
pub(super) fn are_in_step(spec: &WindowSpec, columns: &[ArrayRef], rows: Range<usize>) -> bool {
    let bounds = spec.window.calls.iter().flat_map(|call| [call.frame.start, call.frame.end]);
    let keys = bounds.filter_map(|bound| if let FrameBound::Key(column) = bound { Some(column) } else { None });
    keys.into_iter().all(|column| {
        let bound = [columns[column].clone()];
        let order = Comparator::new(&bound, &bound, &[spec.window.order[0].direction()]);
        rows.clone().skip(1).all(|row| order.compare(row - 1, row).is_le())
    })
}
