//! The end of a partition: what rows that come behind all others need of the rows before them.
//!
//! Law: the results of rows that come behind all others of their partition are those that the whole
//! partition would give, where frames end at their row or before and leave nothing out
//! ([`reaches_back_only`]); no result of another row changes. Rows come in the window's order, and
//! behind all peers of the last row where a frame counts peers.
//!
//! A frame that begins at the partition's first row is a running aggregate: elements enter it and
//! never leave. Others begin among the rows that are kept: from the first row that the last row's
//! frames reach on, for no frame of a later row reaches further back.
//!
//! Cost: a row costs the rows that its moving frames hold, and an update of each running aggregate.

use anabranch_batch::Columns;
use anabranch_batch::gather::{self, compact_views};
use anabranch_spec::aggregate::AggregateCall;
use anabranch_spec::frame::{Exclude, FrameBound};
use anabranch_spec::window::{Place, Window, WindowCall, WindowFunction};
use arrow::array::{Array, ArrayRef, UInt32Array};

use super::frames::{Frames, Results, take};
use super::running::Running;
use super::spans::Peers;
use super::spec::WindowSpec;
use crate::ordered::by_partition::Kept;
use crate::ordered::versions::Version;

/// Whether no frame of these calls reaches a row behind its own or leaves rows out.
pub(super) fn reaches_back_only(window: &Window) -> bool {
    window.reaches_back_only() && window.calls.iter().all(|call| call.frame.exclude == Exclude::Nothing)
}

/// Whether some frame counts peers: a row that is a peer of the last one would change its result.
pub(super) fn counts_peers(calls: &[WindowCall]) -> bool {
    let is_of_peers = |bound: FrameBound| matches!(bound, FrameBound::Peers(_) | FrameBound::Key(_));
    calls.iter().any(|call| is_of_peers(call.frame.start) || is_of_peers(call.frame.end))
}

/// See the module.
pub(super) struct Tail {
    /// The last rows of the partition, in order; at least one.
    rows: Columns,
    calls: Vec<TailCall>,
}

/// How the results of a call go on.
enum TailCall {
    /// From the rows that are kept; no frame begins before this one of them.
    Moving { least: usize },
    /// A running aggregate, and the next row to enter, among the rows that are kept.
    Running(Box<Running>, usize),
    /// The value of one of the partition's first rows.
    Fixed(ArrayRef),
}

/// Rows behind a tail, with their results.
pub(super) struct Followers {
    /// All input columns.
    pub columns: Columns,
    /// One for each call.
    pub results: Vec<Results>,
}

impl Tail {
    /// The end of a partition that is there, with the results of its rows; `None` where a fixed
    /// value is still to come.
    pub(super) fn new(frames: &Frames<'_>, version: &Version, results: &[Results]) -> Option<Tail> {
        let last = version.to.checked_sub(1).filter(|last| *last >= version.from)?;
        let mut first = last;
        let mut calls = Vec::with_capacity(results.len());
        for (call, of_call) in frames.spec.window.calls.iter().zip(results) {
            let span = frames.spans(version, &call.frame, 0).pop()?;
            match kind_of(call) {
                Kind::Moving => first = first.min(kept_from(call, &span)),
                Kind::Running(_) => first = first.min(span.end),
                Kind::Fixed(at) if span.len() > at => {}
                Kind::Fixed(_) => return None,
            }
            calls.push((call, of_call, span));
        }
        let whole: Vec<ArrayRef> =
            frames.columns.iter().map(|column| column.slice(version.from, version.to - version.from)).collect();
        let begin = first - version.from;
        let calls = calls.into_iter().map(|(call, of_call, span)| match kind_of(call) {
            Kind::Moving => TailCall::Moving { least: kept_from(call, &span) - first },
            Kind::Fixed(_) => TailCall::Fixed(take(&of_call.values, &UInt32Array::from(vec![last as u32]))),
            Kind::Running(aggregate) => {
                let mut running = Running::new(aggregate, &whole, true);
                running.enter(&running.pick(&whole), 0, &[span.end - version.from]);
                running.set_last(match of_call.failed.binary_search_by_key(&last, |(row, _)| *row) {
                    Ok(at) => Err(of_call.failed[at].1.clone()),
                    Err(_) => Ok(take(&of_call.values, &UInt32Array::from(vec![last as u32]))),
                });
                TailCall::Running(Box::new(running), span.end - version.from - begin)
            }
        });
        let calls = calls.collect();
        Some(Tail { rows: kept(&whole, begin), calls })
    }

    /// The rows that are kept; the last one is the partition's last.
    pub(super) fn rows(&self) -> &Columns {
        &self.rows
    }

    /// Takes in rows that come behind the partition's last one, in order.
    pub(super) fn follow(&mut self, spec: &WindowSpec, new: &[ArrayRef]) -> Followers {
        let n_kept = self.rows[0].len();
        let columns = gather::concat(&[&self.rows, new]);
        let n_rows = columns[0].len();
        let versions = [Version { from: 0, to: n_rows, added: None, removed: None }];
        let peers = Peers::new(&versions, &spec.window.order, &columns);
        let frames = Frames { spec, versions: &versions, columns: &columns, peers: &peers };
        let (mut results, mut begin) = (Vec::with_capacity(self.calls.len()), n_rows - 1);
        for (call, tail) in spec.window.calls.iter().zip(&mut self.calls) {
            results.push(match tail {
                TailCall::Moving { least } => {
                    let of_call = frames.results(call, *least).behind(n_kept);
                    let span = frames.spans(&versions[0], &call.frame, *least).pop().expect("there are rows");
                    *least = kept_from(call, &span);
                    begin = begin.min(*least);
                    of_call
                }
                TailCall::Fixed(value) => {
                    let values = take(value, &UInt32Array::from(vec![0; n_rows - n_kept]));
                    Results { values, failed: vec![] }
                }
                TailCall::Running(running, next) => {
                    let ends: Vec<usize> =
                        frames.spans(&versions[0], &call.frame, 0)[n_kept..].iter().map(|span| span.end).collect();
                    let results = running.enter(&running.pick(&columns), *next, &ends);
                    *next = ends.last().copied().unwrap_or(*next).max(*next);
                    begin = begin.min(*next);
                    results
                }
            });
        }
        for tail in &mut self.calls {
            match tail {
                TailCall::Moving { least } => *least -= begin,
                TailCall::Running(_, next) => *next -= begin,
                TailCall::Fixed(_) => {}
            }
        }
        self.rows = kept(&columns, begin);
        Followers { columns: columns.iter().map(|column| column.slice(n_kept, n_rows - n_kept)).collect(), results }
    }
}

impl Kept for Tail {
    fn sample(&self) -> &Columns {
        &self.rows
    }

    fn size_bytes(&self) -> usize {
        let of_call = |call: &TailCall| match call {
            TailCall::Moving { .. } => 0,
            TailCall::Fixed(value) => value.get_array_memory_size(),
            TailCall::Running(running, _) => running.size_bytes(),
        };
        self.rows.iter().map(|column| column.get_array_memory_size()).sum::<usize>()
            + self.calls.iter().map(of_call).sum::<usize>()
    }
}

/// What the frames of a call need of the rows before them.
pub(super) enum Kind<'a> {
    Moving,
    Running(&'a AggregateCall),
    /// The row with this number, from 0.
    Fixed(usize),
}

pub(super) fn kind_of(call: &WindowCall) -> Kind<'_> {
    match (&call.function, call.frame.start) {
        (WindowFunction::Aggregate(aggregate), FrameBound::First) => Kind::Running(aggregate),
        (WindowFunction::Value { place: Place::First, .. }, FrameBound::First) => Kind::Fixed(0),
        // (There is no row with the number 0: NULL from the first row on.)
        (WindowFunction::Value { place: Place::Nth(n), .. }, FrameBound::First) => Kind::Fixed(n.saturating_sub(1)),
        _ => Kind::Moving,
    }
}

/// The first row that the frame of a later row may reach, of a call whose last row has this frame.
fn kept_from(call: &WindowCall, span: &std::ops::Range<usize>) -> usize {
    match call.frame.start {
        // (The last value of all rows so far.)
        FrameBound::First => span.end.saturating_sub(1).max(span.start),
        _ => span.start,
    }
}

/// A copy of the rows from `begin` on that keeps no others alive.
fn kept(columns: &[ArrayRef], begin: usize) -> Columns {
    let rows: Vec<u32> = (begin as u32..columns[0].len() as u32).collect();
    compact_views(gather::take(columns, &rows))
}
