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

use std::sync::Arc;

use anabranch_batch::gather::{self, compact_views};
use anabranch_batch::{Batch, Columns, Diffs, Time, Times};
use anabranch_spec::aggregate::AggregateCall;
use anabranch_spec::frame::{Exclude, FrameBound};
use anabranch_spec::window::{Place, WindowCall, WindowFunction};
use arrow::array::{Array, ArrayRef, Int64Array, UInt32Array, new_null_array};

use super::frames::{Frames, Results, changes_in_time, message_of, or_zero, spec_of, take};
use super::spans::Peers;
use super::spec::WindowSpec;
use crate::aggregate::Aggregate;
use crate::ordered::versions::Version;
use anabranch_flow::tactic::{Output, Timed};

/// Whether no frame of these calls reaches a row behind its own or leaves rows out.
pub(super) fn reaches_back_only(calls: &[WindowCall]) -> bool {
    let is_back = |bound: FrameBound| match bound {
        FrameBound::Rows(rows) => rows <= 0,
        FrameBound::Peers(groups) => groups <= 0,
        FrameBound::First | FrameBound::Key(_) => true,
        FrameBound::Last => false,
    };
    let ends_back = |bound: FrameBound| is_back(bound) && !matches!(bound, FrameBound::First | FrameBound::Key(_));
    calls.iter().all(|WindowCall { function, frame }| {
        let is_of_frame = matches!(function, WindowFunction::Aggregate(_) | WindowFunction::Value { .. });
        is_of_frame && is_back(frame.start) && ends_back(frame.end) && frame.exclude == Exclude::Nothing
    })
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
    /// A running aggregate.
    Running(Box<Running>),
    /// The value of one of the partition's first rows.
    Fixed(ArrayRef),
}

/// An aggregate of all rows from the first one on.
struct Running {
    call: AggregateCall,
    aggregate: Aggregate,
    /// The next row to enter, among the rows that are kept.
    next: usize,
    /// Rows that have entered: the place of the next in the order.
    n_entered: i64,
    /// Changes before this time are in the aggregate.
    time: Time,
    /// The result now: a column of one row, or why there is none.
    last: Result<ArrayRef, String>,
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
            match tail_of(call) {
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
        let calls = calls.into_iter().map(|(call, of_call, span)| match tail_of(call) {
            Kind::Moving => TailCall::Moving { least: kept_from(call, &span) - first },
            Kind::Fixed(_) => TailCall::Fixed(take(&of_call.values, &UInt32Array::from(vec![last as u32]))),
            Kind::Running(aggregate) => {
                let mut running = Running::new(aggregate, &whole);
                running.enter(&whole, &[span.end - version.from]);
                running.next -= begin;
                running.last = match of_call.failed.binary_search_by_key(&last, |(row, _)| *row) {
                    Ok(at) => Err(of_call.failed[at].1.clone()),
                    Err(_) => Ok(take(&of_call.values, &UInt32Array::from(vec![last as u32]))),
                };
                TailCall::Running(Box::new(running))
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
                TailCall::Running(running) => {
                    let ends: Vec<usize> =
                        frames.spans(&versions[0], &call.frame, 0)[n_kept..].iter().map(|span| span.end).collect();
                    let results = running.enter(&columns, &ends);
                    begin = begin.min(running.next);
                    results
                }
            });
        }
        for tail in &mut self.calls {
            match tail {
                TailCall::Moving { least } => *least -= begin,
                TailCall::Running(running) => running.next -= begin,
                TailCall::Fixed(_) => {}
            }
        }
        self.rows = kept(&columns, begin);
        Followers { columns: columns.iter().map(|column| column.slice(n_kept, n_rows - n_kept)).collect(), results }
    }

    pub(super) fn size_bytes(&self) -> usize {
        let of_call = |call: &TailCall| match call {
            TailCall::Moving { .. } => 0,
            TailCall::Fixed(value) => value.get_array_memory_size(),
            TailCall::Running(running) => size_of::<Running>() + running.aggregate.size_bytes(),
        };
        self.rows.iter().map(|column| column.get_array_memory_size()).sum::<usize>()
            + self.calls.iter().map(of_call).sum::<usize>()
    }
}

/// How a call goes on behind the last row.
enum Kind<'a> {
    Moving,
    Running(&'a AggregateCall),
    /// The row with this number, from 0.
    Fixed(usize),
}

fn tail_of(call: &WindowCall) -> Kind<'_> {
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

impl Running {
    /// Over no rows yet.
    fn new(call: &AggregateCall, columns: &[ArrayRef]) -> Running {
        let types = elements(call, columns, &[], 0);
        let spec = crate::aggregate::AggregateSpec { is_append_only: true, ..spec_of(call, &types) };
        Running {
            call: call.clone(),
            aggregate: Aggregate::new(spec, None),
            next: 0,
            n_entered: 0,
            time: 0,
            last: Ok(or_zero(call, new_null_array(&call.output_type, 1))),
        }
    }

    /// For frames that end, one after another, before these rows: enters what they hold, and gives
    /// their results.
    fn enter(&mut self, columns: &[ArrayRef], ends: &[usize]) -> Results {
        let (mut rows, mut times): (Vec<u32>, Vec<Time>) = (Vec::new(), Vec::new());
        for (time, end) in (self.time..).zip(ends) {
            // (An end that lies behind the next row has nothing to enter.)
            let entering = self.next..(*end).max(self.next);
            times.extend(std::iter::repeat_n(time, entering.len()));
            self.next = entering.end;
            rows.extend(entering.map(|row| row as u32));
        }
        let mut out = Output::default();
        let (from, upto) = (self.time, self.time + ends.len() as Time);
        if !rows.is_empty() {
            let columns = elements(&self.call, columns, &rows, self.n_entered);
            let batch = Batch::with_len(columns, rows.len(), Times::Column(times.into()), Diffs::Constant(1));
            self.n_entered += rows.len() as i64;
            self.aggregate.push(0, batch);
            self.aggregate.advance(upto, &mut out);
            while self.aggregate.has_more() {
                self.aggregate.advance(upto, &mut out);
            }
        }
        self.time = upto;
        self.results(&out, from, ends.len())
    }

    /// What is there at each time, from what changes.
    fn results(&mut self, out: &Output, from: Time, n_times: usize) -> Results {
        let values: Vec<ArrayRef> = out.rows.iter().map(|batch| batch.column(1).clone()).collect();
        let mut rows = changes_in_time(&out.rows).into_iter().peekable();
        let mut errors = changes_in_time(&out.errors).into_iter().peekable();
        // Source 0 is the result before.
        let before = self.last.as_ref().ok().cloned();
        let nothing = or_zero(&self.call, new_null_array(&self.call.output_type, 1));
        let mut sources: Vec<&[ArrayRef]> = vec![std::slice::from_ref(before.as_ref().unwrap_or(&nothing))];
        sources.extend(values.iter().map(std::slice::from_ref));
        let mut at: Result<(u32, u32), String> = self.last.as_ref().map(|_| (0, 0)).map_err(Clone::clone);
        let (mut picks, mut failed) = (Vec::with_capacity(n_times), Vec::new());
        for number in 0..n_times {
            let time = from + number as Time;
            while let Some((_, diff, batch, row)) = errors.next_if(|(at, ..)| *at <= time) {
                if diff > 0 {
                    at = Err(message_of(&out.errors[batch], row));
                }
            }
            while let Some((_, diff, batch, row)) = rows.next_if(|(at, ..)| *at <= time) {
                if diff > 0 {
                    at = Ok((batch as u32 + 1, row as u32));
                }
            }
            match &at {
                Ok(pick) => picks.push(*pick),
                Err(message) => {
                    failed.push((number, message.clone()));
                    picks.push((0, 0));
                }
            }
        }
        let values = or_zero(&self.call, gather::interleave(&sources, &picks)[0].clone());
        if let Some(last) = n_times.checked_sub(1) {
            self.last = match at {
                Ok(_) => Ok(compact_views([take(&values, &UInt32Array::from(vec![last as u32]))].into())[0].clone()),
                Err(message) => Err(message),
            };
        }
        Results { values, failed }
    }
}

/// What a running aggregate sees of these rows: one group, argument, filter, place in the order.
fn elements(call: &AggregateCall, columns: &[ArrayRef], rows: &[u32], first: i64) -> Columns {
    let read: Vec<ArrayRef> = call.argument.iter().chain(&call.filter).map(|&at| columns[at].clone()).collect();
    let group: ArrayRef = Arc::new(Int64Array::from(vec![0; rows.len()]));
    let place: ArrayRef = Arc::new(Int64Array::from_iter_values(first..first + rows.len() as i64));
    let read = gather::take(&read, rows);
    std::iter::once(group).chain(read.iter().cloned()).chain([place]).collect()
}
