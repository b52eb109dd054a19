//! The search of an as-of join: which left rows of a key change their match, and from what to what.
//!
//! Instants are turned here (see [`AsofSpec::turned`]): left rows are walked onward, matches lie behind them (with *nearest* also ahead).

use anabranch_arrangement::Keys;
use anabranch_batch::order::prefix_of_whole;
use anabranch_batch::{Diff, Time};
use arrow::array::ArrayRef;

use super::emission::{Emission, Match};
use super::{AsofSpec, Strategy};
use crate::ordered::instants::Instants;
use crate::ordered::trace::{Place, Walk};

/// One side's walk, and the times of its rows.
struct Side {
    walk: Walk,
    /// Of each chunk that places refer to.
    instants: Vec<Instants>,
}

/// Walks keys, one after another.
pub(super) struct Search<'a> {
    spec: &'a AsofSpec,
    left: Side,
    behind: Side,
    ahead: Option<Side>,
    /// The match of the present left row at each time.
    found: Vec<Option<Match>>,
    /// Whether the nearest row ahead is known, at each time.
    is_known: Vec<bool>,
    /// The multiplicity of the present left row at each time.
    counts: Vec<Diff>,
}

impl Side {
    fn new(walk: Walk, time: usize) -> Side {
        Side { instants: walk.column(time).iter().map(Instants::of).collect(), walk }
    }

    /// The next row that is there at one of the times: its place, its instant, and its multiplicity at each.
    fn next(&mut self, times: &[Time], spec: &AsofSpec) -> Option<(Place, i64, &[Diff])> {
        let (place, counts) = self.walk.next(times)?;
        Some((place, spec.turned(self.instants[place.0 as usize].at(place.1 as usize)), counts))
    }
}

impl<'a> Search<'a> {
    pub(super) fn new(spec: &'a AsofSpec, left: Walk, behind: Walk, ahead: Option<Walk>) -> Search<'a> {
        Search {
            left: Side::new(left, spec.left_time),
            behind: Side::new(behind, spec.right_time),
            ahead: ahead.map(|ahead| Side::new(ahead, spec.right_time)),
            spec,
            found: vec![],
            is_known: vec![],
            counts: vec![],
        }
    }

    /// The columns that places of left rows, of matches behind and of matches ahead refer to.
    #[expect(clippy::type_complexity, reason = "three lists of the same kind")]
    pub(super) fn sources(&self) -> (Vec<&[ArrayRef]>, Vec<&[ArrayRef]>, Vec<&[ArrayRef]>) {
        let ahead = self.ahead.as_ref().map(|ahead| ahead.walk.sources()).unwrap_or_default();
        (self.left.walk.sources(), self.behind.walk.sources(), ahead)
    }

    /// Emits what changes under a key: `left` and `right` are the instants of its rows that change (with the key's number), `times` the time before the
    /// changes, then the times of the changes.
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

    /// From which instant on each of the changed right rows may be a match.
    fn starts(&mut self, keys: &Keys, key: usize, times: &[Time], right: &[(u32, i64)]) -> Vec<i64> {
        let instants = right.iter().map(|(_, instant)| *instant);
        match self.spec.strategy {
            Strategy::Backward | Strategy::Forward => instants.collect(),
            Strategy::Nearest => instants.map(|instant| self.stable_before(keys, key, times, instant)).collect(),
        }
    }

    /// The last instant before this one with a right row that is there at all times: left rows up to it are nearer to that.
    fn stable_before(&mut self, keys: &Keys, key: usize, times: &[Time], instant: i64) -> i64 {
        let Some(from) = instant.checked_sub(1) else { return i64::MIN };
        self.seek_behind(keys, key, from);
        while let Some((_, at, counts)) = self.behind.next(times, self.spec) {
            if at < instant && counts.iter().all(|count| *count > 0) {
                return at;
            }
        }
        i64::MIN
    }

    /// Whether left rows at this instant and after are out of the reach of the right rows up to `last`.
    fn is_beyond(&self, at: i64, last: i64) -> bool {
        let is_far = at > last && self.spec.tolerance.is_some_and(|tolerance| at.abs_diff(last) > tolerance);
        is_far || self.found.iter().all(|found| found.is_some_and(|found| found.instant > last))
    }

    fn seek_behind(&mut self, keys: &Keys, key: usize, from: i64) {
        self.behind.walk.seek(keys, key, prefix_of_whole(self.spec.turned(from), self.spec.backward()));
    }

    /// Finds the match of a left row at each of the times.
    fn find(&mut self, keys: &Keys, key: usize, times: &[Time], at: i64) {
        self.found.clear();
        self.found.resize(times.len(), None);
        self.find_behind(keys, key, times, at);
        if self.ahead.is_some() {
            self.find_ahead(keys, key, times, at);
        }
    }

    fn find_behind(&mut self, keys: &Keys, key: usize, times: &[Time], at: i64) {
        let Some(from) = (if self.spec.exact { Some(at) } else { at.checked_sub(1) }) else { return };
        self.seek_behind(keys, key, from);
        let mut missing = times.len();
        while missing > 0
            && let Some((place, instant, counts)) = self.behind.next(times, self.spec)
        {
            // (Words of instants at the ends of their range are not exact.)
            if instant > from {
                continue;
            }
            if self.spec.tolerance.is_some_and(|tolerance| at.abs_diff(instant) > tolerance) {
                return;
            }
            for (found, count) in self.found.iter_mut().zip(counts) {
                if *count > 0 && found.is_none() {
                    *found = Some(Match { place, is_ahead: false, instant });
                    missing -= 1;
                }
            }
        }
    }

    /// As [`Search::find_behind`], of what lies as near ahead, or nearer.
    fn find_ahead(&mut self, keys: &Keys, key: usize, times: &[Time], at: i64) {
        let Some(from) = (if self.spec.exact { Some(at) } else { at.checked_add(1) }) else { return };
        let tolerance = self.spec.tolerance;
        let spec = self.spec;
        let Some(ahead) = &mut self.ahead else { return };
        ahead.walk.seek(keys, key, prefix_of_whole(spec.turned(from), spec.onward()));
        self.is_known.clear();
        self.is_known.resize(times.len(), false);
        let mut missing = times.len();
        while missing > 0
            && let Some((place, instant, counts)) = ahead.next(times, spec)
        {
            if instant < from {
                continue;
            }
            let distance = instant.abs_diff(at);
            if tolerance.is_some_and(|tolerance| distance > tolerance) {
                return;
            }
            for ((found, is_known), count) in self.found.iter_mut().zip(&mut self.is_known).zip(counts) {
                if *count > 0 && !*is_known {
                    (*is_known, missing) = (true, missing - 1);
                    if found.is_none_or(|behind| distance <= behind.instant.abs_diff(at)) {
                        *found = Some(Match { place, is_ahead: true, instant });
                    }
                }
            }
        }
    }
}
