//! The search of an as-of join: which left rows of a key change their match, and from what to what.
//!
//! Instants are turned here (see [`AsofSpec::turned`]): left rows are walked onward, matches lie
//! behind them (with *nearest* also ahead).
//!
//! Law: a sweep over a key passes each right row at most once in each direction. A right row that
//! is there at all times ends the passing, so a sweep passes rows that changed, and one more for
//! each left row. Cost of a key: O((changed rows + left rows whose match may change) log rows).

use anabranch_arrangement::Keys;
use anabranch_batch::order::prefix_of_whole;
use anabranch_batch::{Diff, Time};
use anabranch_spec::asof::Strategy;
use arrow::array::ArrayRef;

use super::emission::{AsofMatch, Emission};
use super::spec::AsofSpec;
use super::sweep::{Ahead, Behind, Side};
use crate::ordered::trace::TraceWalk;

/// Walks keys, one after another.
pub(super) struct Search<'a> {
    spec: &'a AsofSpec,
    left: Side,
    behind: Behind,
    ahead: Option<Ahead>,
    /// The match of the present left row at each time.
    found: Vec<Option<AsofMatch>>,
    /// The multiplicity of the present left row at each time.
    counts: Vec<Diff>,
}

impl<'a> Search<'a> {
    pub(super) fn new(spec: &'a AsofSpec, left: TraceWalk, behind: TraceWalk, ahead: Option<TraceWalk>) -> Search<'a> {
        Search {
            left: Side::new(left, spec.join.left_time),
            behind: Behind::new(Side::new(behind, spec.join.right_time)),
            ahead: ahead.map(|ahead| Ahead::new(Side::new(ahead, spec.join.right_time))),
            spec,
            found: vec![],
            counts: vec![],
        }
    }

    /// The columns that places of left rows, of matches behind and of matches ahead refer to.
    #[expect(clippy::type_complexity, reason = "three lists of the same kind")]
    pub(super) fn sources(&self) -> (Vec<&[ArrayRef]>, Vec<&[ArrayRef]>, Vec<&[ArrayRef]>) {
        let ahead = self.ahead.as_ref().map(Ahead::sources).unwrap_or_default();
        (self.left.walk.sources(), self.behind.sources(), ahead)
    }

    /// Emits what changes under a key: `left` and `right` are the instants of its rows that change
    /// (with the key's number), `times` the time before the changes, then the times of the changes.
    pub(super) fn walk_key(
        &mut self,
        keys: &Keys,
        key: usize,
        times: &[Time],
        left: &[(u32, i64)],
        right: &[(u32, i64)],
        emission: &mut Emission,
    ) {
        let starts = self.starts(keys, key, times, right);
        self.behind.start(times.len());
        self.ahead.iter_mut().for_each(|ahead| ahead.start(times.len()));
        let (mut next_left, mut next_right) = (0, 0);
        // Left rows from here on are wanted; the walk must be moved there first, unless it goes on.
        let mut target = None;
        // The last right row that changes, while its reach lasts.
        let mut reach: Option<i64> = None;
        let mut searched = None;
        loop {
            if target.is_none() {
                let of_left = left.get(next_left).map(|(_, instant)| *instant);
                let of_right = starts.get(next_right).copied();
                let Some(first) = of_left.into_iter().chain(of_right).min() else { return };
                self.left.walk.seek(keys, key, prefix_of_whole(self.spec.turned(first), self.spec.onward()));
                target = Some(first);
            }
            let Some((place, at, counts)) = self.left.next(times, self.spec) else { return };
            self.counts.clear();
            self.counts.extend_from_slice(counts);
            if target.is_some_and(|target| at < target) {
                continue;
            }
            while starts.get(next_right).is_some_and(|start| *start <= at) {
                reach = Some(right[next_right].1);
                next_right += 1;
            }
            while left.get(next_left).is_some_and(|(_, instant)| *instant < at) {
                next_left += 1;
            }
            let is_changed = left.get(next_left).is_some_and(|(_, instant)| *instant == at);
            if reach.is_some() || is_changed {
                if searched != Some(at) {
                    self.find(keys, key, times, at);
                    searched = Some(at);
                }
                reach = reach.filter(|last| !self.is_beyond(at, *last));
            }
            if reach.is_some() || is_changed {
                emission.add(place, times, &self.counts, &self.found);
            } else {
                target = None;
            }
        }
    }

    /// From which instant on each of the changed right rows may be a match. Ascending.
    fn starts(&mut self, keys: &Keys, key: usize, times: &[Time], right: &[(u32, i64)]) -> Vec<i64> {
        let instants = right.iter().map(|(_, instant)| *instant);
        if self.spec.join.strategy != Strategy::Nearest {
            return instants.collect();
        }
        // Left rows up to a right row that is there at all times are nearer to that row.
        self.behind.start_stable();
        instants.map(|instant| self.behind.stable_before(self.spec, keys, key, times, instant)).collect()
    }

    /// Whether left rows at this instant and after are out of the reach of the right rows up to
    /// `last`.
    fn is_beyond(&self, at: i64, last: i64) -> bool {
        let is_far = at > last && self.spec.join.tolerance.is_some_and(|tolerance| at.abs_diff(last) > tolerance);
        // What lies behind a left row lies behind those after it: without a difference here, none
        // follows before the next right row that changes.
        let has_seen_last = self.ahead.is_none() && (self.spec.join.exact || at > last);
        let is_settled = || has_seen_last && self.found.iter().all(|found| *found == self.found[0]);
        is_far || is_settled() || self.found.iter().all(|found| found.is_some_and(|found| found.instant > last))
    }

    /// Finds the match of a left row at each of the times. Left rows are asked for in order.
    fn find(&mut self, keys: &Keys, key: usize, times: &[Time], at: i64) {
        self.found.clear();
        self.found.resize(times.len(), None);
        self.behind.find(self.spec, keys, key, times, at, &mut self.found);
        if let Some(ahead) = &mut self.ahead {
            ahead.find(self.spec, keys, key, times, at, &mut self.found);
        }
    }
}
