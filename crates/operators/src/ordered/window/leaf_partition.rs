//! A large partition in leaves, of which a change concerns some rows.
//!
//! Law: what is put out for a change is what the whole partition would give before and after it.
//!
//! Cost: of moving frames, the rows that the change's frames reach; of frames that begin with the
//! first row, all rows behind the change, or as many as have another least or greatest value. A
//! running aggregate stands where the change before was, and goes to the next one row by row.

use std::ops::Range;

use anabranch_batch::{Columns, gather};
use anabranch_spec::aggregate::AggregateFunction;
use anabranch_spec::frame::{Exclude, FrameBound};
use anabranch_spec::window::{Place, WindowCall, WindowFunction};
use arrow::array::{ArrayRef, UInt32Array, new_null_array};

use super::frames::{Results, take};
use super::leaves::Leaves;
use super::region::{Growth, Region, Spans};
use super::running::Running;
use super::spec::WindowSpec;
use super::splice::Splice;
use super::tail::{Kind, kind_of};
use crate::ordered::by_partition::Kept;

/// Rows before and behind a change that are looked at first.
const REACH_ROWS: usize = if cfg!(test) { 2 } else { 64 };

/// Whether a change concerns only the rows around it, or behind it.
pub(super) fn are_local(calls: &[WindowCall]) -> bool {
    calls.iter().all(|WindowCall { function, frame }| {
        let is_of_frame = matches!(function, WindowFunction::Aggregate(_) | WindowFunction::Value { .. });
        let is_whole = frame.exclude == Exclude::Nothing;
        let begins = match frame.start {
            FrameBound::First => is_whole,
            FrameBound::Last => false,
            _ => true,
        };
        is_of_frame && begins && !matches!(frame.end, FrameBound::First | FrameBound::Last)
    })
}

/// See the module.
pub(super) struct LeafPartition {
    pub(super) leaves: Leaves,
    /// For each call that has one. They are over the same number of rows, all of them before the
    /// next change.
    running: Vec<Option<Running>>,
}

/// What rows of a partition gave and what they give.
pub(super) struct Outcome {
    /// The columns of old and new rows.
    pub columns: Vec<ArrayRef>,
    /// Their results.
    pub results: Vec<Results>,
    /// The rows that go.
    pub old: Range<usize>,
    /// The rows that come.
    pub new: Range<usize>,
}

impl LeafPartition {
    /// Of the rows of a partition in order.
    pub(super) fn new(spec: &WindowSpec, columns: &[ArrayRef]) -> LeafPartition {
        let running = spec.window.calls.iter().map(|call| match kind_of(call) {
            Kind::Running(aggregate) => Some(Running::new(aggregate, columns, false)),
            _ => None,
        });
        LeafPartition { leaves: Leaves::new(columns), running: running.collect() }
    }

    /// Takes in a change. `None` if all rows of the partition are to be looked at.
    pub(super) fn splice(&mut self, spec: &WindowSpec, splice: &Splice) -> Option<Outcome> {
        let is_fixed = |call: &WindowCall| matches!(kind_of(call), Kind::Fixed(nth) if splice.rows.start <= nth);
        if spec.window.calls.iter().any(is_fixed) {
            return None;
        }
        let goes_to_end = spec.window.calls.iter().any(|call| self.needs_all_behind(call));
        let (mut left, mut right) = (REACH_ROWS, if goes_to_end { usize::MAX } else { REACH_ROWS });
        let outcome = loop {
            let region = Region::new(spec, &self.leaves, splice, left, right);
            if !region.is_in_step(spec) {
                return None;
            }
            match self.outcome(spec, region) {
                Ok(outcome) => break outcome,
                Err(Growth::Left) => left *= 4,
                Err(Growth::Right) => right = right.saturating_mul(4),
            }
        };
        self.leaves.replace(splice.rows.clone(), &splice.with);
        Some(outcome)
    }

    /// Whether a change of a row changes results of all rows behind it.
    fn needs_all_behind(&self, call: &WindowCall) -> bool {
        matches!(kind_of(call), Kind::Running(_)) && !is_its_result(call)
    }

    fn outcome(&mut self, spec: &WindowSpec, region: Region) -> Result<Outcome, Growth> {
        let spans = region.spans(spec);
        let first = region.first_concerned(spec, &spans)?;
        self.go_to(region.rows.start, &region.columns);
        let mut results: Vec<Option<[Results; 2]>> = Vec::with_capacity(spans.len());
        let mut n_same = usize::MAX;
        for ((call, spans), running) in spec.window.calls.iter().zip(&spans).zip(&mut self.running) {
            results.push(running.as_mut().map(|running| {
                let results = around(running, &region, spans, first);
                let [old, new] = &results;
                n_same = n_same.min(if is_its_result(call) { region.n_same(spans, first, [old, new]) } else { 0 });
                results
            }));
        }
        let concerned = region.concerned(spec, &spans, first, n_same)?;
        let frames = region.frames(spec);
        let calls = spec.window.calls.iter().zip(results);
        let results = calls.map(|(call, running)| match (running, kind_of(call)) {
            (Some(results), _) => joined(results, first, &region),
            (None, Kind::Fixed(nth)) if region.rows.start > 0 => self.fixed(call, nth, &region),
            _ => frames.results(call, 0),
        });
        let results = results.collect();
        let [old, new] = [0, 1].map(|of| {
            let (rows, from) = (&concerned[of], region.versions[of].from);
            from + rows.start..from + rows.end
        });
        Ok(Outcome { columns: region.columns, results, old, new })
    }

    /// Every row gets the value of the same one.
    fn fixed(&self, call: &WindowCall, nth: usize, region: &Region) -> Results {
        let WindowFunction::Value { column, place } = &call.function else { unreachable!("values are fixed") };
        let n_rows = region.versions[1].to;
        let value = &self.leaves.load(nth..nth + 1, &[*column])[0];
        let values = match place {
            // (There is no such row.)
            Place::Nth(0) => new_null_array(value.data_type(), n_rows),
            _ => take(value, &UInt32Array::from(vec![0; n_rows])),
        };
        Results { values, failed: vec![] }
    }

    /// Running aggregates take in the rows before this one, and no others.
    fn go_to(&mut self, place: usize, columns: &[ArrayRef]) {
        for running in self.running.iter_mut().flatten() {
            // (It is nearer from the beginning.)
            if running.n_rows().saturating_sub(place) > place {
                running.restart(columns);
            }
            let at = running.n_rows();
            if at > place {
                let rows = self.leaves.load(place..at, running.reads());
                running.leave(&rows, 0..at - place);
            } else if at < place {
                let rows = self.leaves.load(at..place, running.reads());
                running.enter(&rows, 0, &[place - at]);
            }
        }
    }
}

impl Kept for LeafPartition {
    fn sample(&self) -> &Columns {
        self.leaves.first()
    }

    fn size_bytes(&self) -> usize {
        self.leaves.size_bytes() + self.running.iter().flatten().map(Running::size_bytes).sum::<usize>()
    }
}

/// Whether a running call remembers nothing but its result: where that is the same, all that
/// follow are.
fn is_its_result(call: &WindowCall) -> bool {
    use AggregateFunction::{BoolAnd, BoolOr, Max, Min};
    matches!(&call.function, WindowFunction::Aggregate(call) if matches!(call.function, Min | Max | BoolAnd | BoolOr))
}

/// The results of a running call for the rows from `first` on, of each version. The aggregate is
/// over the rows before the region, before and afterwards.
fn around(running: &mut Running, region: &Region, spans: &Spans, first: usize) -> [Results; 2] {
    let columns = running.pick(&region.columns);
    [0, 1].map(|of| {
        let from = region.versions[of].from;
        let ends: Vec<usize> = spans[of][first..].iter().map(|span| span.end).collect();
        let results = running.enter(&columns, from, &ends);
        running.leave(&columns, from..ends.last().map_or(from, |end| (*end).max(from)));
        results
    })
}

/// The results of the rows from `first` on of both versions, as those of all rows: others are none.
fn joined([old, new]: [Results; 2], first: usize, region: &Region) -> Results {
    let none = new_null_array(old.values.data_type(), first);
    let values = [&none, &old.values, &none, &new.values].map(std::slice::from_ref);
    let starts = [region.versions[0].from + first, region.versions[1].from + first];
    let failed = [old.failed, new.failed].into_iter().zip(starts);
    let failed = failed.flat_map(|(failed, start)| failed.into_iter().map(move |(row, text)| (start + row, text)));
    Results { failed: failed.collect(), values: gather::concat(&values)[0].clone() }
}
