//! Rows that concern no change to come, in joins whose rows a floor cannot tell from others.
//!
//! Law, backward: no left row below the floor of both times is looked up again, and no right row
//! comes below that floor. Of the right rows of a key below the floor, those of the last instant
//! can still be nearest, within the tolerance; each earlier one lies behind a row that is nearer.
//!
//! Law, forward (without a tolerance): a left row whose match is below the floor keeps it for ever,
//! so it leaves. Of the right rows of a key below the floor, those of the last instant tell which
//! left rows these are. An earlier one leaves once the left rows up to it have left: a left row
//! never sees its match go.
//!
//! Cost: a look through all rows, when as many have come as half of them: O(1) a row.

use std::ops::ControlFlow;

use anabranch_arrangement::{Keys, ticks};
use anabranch_batch::{Batch, Diff, Diffs, Times, gather};
use anabranch_spec::asof::Strategy;
use arrow::array::Int64Array;

use super::spec::AsofSpec;
use crate::ordered::trace::{OrderedTrace, Place, TraceWalk, only_used};

/// How many rows there are, and when to look through them.
#[derive(Debug, Default)]
pub(super) struct Aged {
    /// Changes that came since the last look.
    n_new: usize,
    /// Rows that the last look left there.
    n_kept: usize,
    /// Rows that are there: those that were taken back are none.
    n_rows: Diff,
    /// Forward: left rows whose match is below this have left.
    left_below: Option<i64>,
    /// Rows of the left and the right side that leave, as retractions that the traces have not
    /// taken in.
    leaving: [Option<Batch>; 2],
}

/// Rows of a trace that leave.
struct LeavingRows {
    walk: TraceWalk,
    /// Ticks of the time column of each chunk.
    times: Vec<Int64Array>,
    places: Vec<Place>,
    diffs: Vec<Diff>,
}

impl LeavingRows {
    fn of(trace: &OrderedTrace, time: usize) -> LeavingRows {
        let walk = trace.walk();
        let times = walk.column(time).iter().map(ticks).collect();
        LeavingRows { walk, times, places: vec![], diffs: vec![] }
    }

    /// The rows of a key that leave: those of which `leaves(tick)` says so, called in the order of
    /// the trace. `None` ends the walk.
    fn look(&mut self, trace: &OrderedTrace, keys: &Keys, key: usize, mut leaves: impl FnMut(i64) -> Option<bool>) {
        let LeavingRows { walk, times, places, diffs } = self;
        walk.group(keys, key, &[trace.upto().saturating_sub(1)], |place, counts| {
            let Some(leaves) = leaves(times[place.0 as usize].value(place.1 as usize)) else {
                return ControlFlow::Break(());
            };
            if leaves {
                places.push(place);
                diffs.push(-counts[0]);
            }
            ControlFlow::Continue(())
        });
    }

    fn finish(self, trace: &OrderedTrace) -> Option<Batch> {
        if self.places.is_empty() {
            return None;
        }
        let sources = self.walk.sources();
        let (sources, places) = only_used(&sources, self.places);
        let columns = gather::interleave(&sources, &places);
        // (The time is the first that the trace has not taken in. No row asks for one before.)
        let times = Times::Constant(trace.upto());
        Some(Batch::with_len(columns, places.len(), times, Diffs::Column(self.diffs.into())))
    }
}

impl Aged {
    /// Takes note of changes that come.
    pub fn note(&mut self, changes: Option<&Batch>) {
        let Some(changes) = changes else { return };
        self.n_new += changes.len();
        self.n_rows += (0..changes.len()).map(|row| changes.diffs().get(row)).sum::<Diff>();
    }

    /// The changes of the left side with those that leave.
    pub fn with_leaving_left(&mut self, left: Option<Batch>, spec: &AsofSpec) -> Option<Batch> {
        with(self.leaving[0].take(), left, &spec.join.left_key)
    }

    /// The changes of the right side with those that leave.
    pub fn with_leaving_right(&mut self, right: Option<Batch>, spec: &AsofSpec) -> Option<Batch> {
        with(self.leaving[1].take(), right, &spec.join.right_key)
    }

    /// Finds the rows that leave, if it is time to look.
    pub fn look(&mut self, left: &OrderedTrace, right: &OrderedTrace, spec: &AsofSpec, below: i64) {
        let waits = self.leaving.iter().any(Option::is_some);
        if waits || self.n_new == 0 || 2 * self.n_new < self.n_kept {
            return;
        }
        self.leaving = match spec.join.strategy {
            Strategy::Forward => self.look_ahead(left, right, spec, below),
            _ => [None, look_behind(right, spec, below)],
        };
        let leaving = self.leaving.iter().flatten();
        let diffs = leaving.flat_map(|batch| (0..batch.len()).map(|row| batch.diffs().get(row)));
        self.n_rows += diffs.sum::<Diff>();
        (self.n_new, self.n_kept) = (0, usize::try_from(self.n_rows).unwrap_or(0));
    }

    fn look_ahead(
        &mut self,
        left: &OrderedTrace,
        right: &OrderedTrace,
        spec: &AsofSpec,
        below: i64,
    ) -> [Option<Batch>; 2] {
        let keys = right.keys();
        let mut of_left = LeavingRows::of(left, spec.join.left_time);
        let mut of_right = LeavingRows::of(right, spec.join.right_time);
        let mut found = LeavingRows::of(right, spec.join.right_time);
        for key in 0..keys.len() {
            // (The earliest right rows come first.)
            let (mut last, mut last_left) = (None, None);
            found.look(right, &keys, key, |at| {
                if at >= below {
                    return None;
                }
                last = Some(at);
                last_left = if self.left_below.is_some_and(|before| at < before) { last } else { last_left };
                Some(false)
            });
            if let Some(last_left) = last_left {
                of_right.look(right, &keys, key, |at| (at < last_left).then_some(true));
            }
            let Some(last) = last else { continue };
            of_left.look(left, &keys, key, |at| Some(if spec.join.exact { at <= last } else { at < last }));
        }
        self.left_below = Some(below);
        [of_left.finish(left), of_right.finish(right)]
    }

    pub fn size_bytes(&self) -> usize {
        self.leaving.iter().flatten().map(Batch::size_bytes).sum()
    }
}

fn with(leaving: Option<Batch>, changes: Option<Batch>, key: &[usize]) -> Option<Batch> {
    let Some(leaving) = leaving else { return changes };
    let all: Vec<Batch> = changes.into_iter().chain([leaving]).collect();
    Batch::concat(&all).map(|batch| batch.with_key(key))
}

/// The right rows that leave a join backward.
fn look_behind(right: &OrderedTrace, spec: &AsofSpec, below: i64) -> Option<Batch> {
    let keys = right.keys();
    let reach = spec.join.tolerance.and_then(|tolerance| i64::try_from(tolerance).ok());
    let too_far = reach.map_or(i64::MIN, |reach| below.saturating_sub(reach));
    let mut of_right = LeavingRows::of(right, spec.join.right_time);
    for key in 0..keys.len() {
        let mut last = None;
        // (The latest rows come first.)
        of_right.look(right, &keys, key, |at| Some(at < below && (*last.get_or_insert(at) > at || at < too_far)));
    }
    of_right.finish(right)
}
