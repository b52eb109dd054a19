//! Sweeps over the right rows of a key, for left rows that come in order.
//!
//! [`Behind`] carries the match of each time from one left row to the next, so it looks only at
//! what lies between them. [`Ahead`] holds the right rows that it has passed and that are still
//! ahead.

use std::collections::VecDeque;

use anabranch_arrangement::Keys;
use anabranch_batch::order::prefix_of_whole;
use anabranch_batch::{Diff, Time};
use arrow::array::ArrayRef;

use super::emission::AsofMatch;
use super::spec::AsofSpec;
use crate::ordered::instants::Instants;
use crate::ordered::trace::{Place, TraceWalk};

/// One side's walk, and the times of its rows.
pub(super) struct Side {
    pub(super) walk: TraceWalk,
    /// Of each chunk that places refer to.
    instants: Vec<Instants>,
}

impl Side {
    pub(super) fn new(walk: TraceWalk, time: usize) -> Side {
        Side { instants: walk.column(time).iter().map(Instants::of).collect(), walk }
    }

    /// The next row that is there at one of the times: its place, its instant, and its multiplicity
    /// at each.
    pub(super) fn next(&mut self, times: &[Time], spec: &AsofSpec) -> Option<(Place, i64, &[Diff])> {
        let (place, counts) = self.walk.next(times)?;
        Some((place, spec.turned(self.instants[place.0 as usize].at(place.1 as usize)), counts))
    }
}

/// The right rows behind the left rows of one key, which are asked for in order.
pub(super) struct Behind {
    side: Side,
    /// The nearest right row behind `swept`, at each time; none where it is out of tolerance.
    carried: Vec<Option<AsofMatch>>,
    /// The instant up to which `carried` is right.
    swept: Option<i64>,
    /// The latest instant up to `stable_swept` with a right row that is there at all times.
    stable: i64,
    stable_swept: Option<i64>,
}

impl Behind {
    pub(super) fn new(side: Side) -> Behind {
        Behind { side, carried: vec![], swept: None, stable: i64::MIN, stable_swept: None }
    }

    pub(super) fn sources(&self) -> Vec<&[ArrayRef]> {
        self.side.walk.sources()
    }

    /// Begins a key.
    pub(super) fn start(&mut self, n_times: usize) {
        self.carried.clear();
        self.carried.resize(n_times, None);
        self.swept = None;
    }

    /// Begins a key, for [`Behind::stable_before`].
    pub(super) fn start_stable(&mut self) {
        (self.stable, self.stable_swept) = (i64::MIN, None);
    }

    fn seek(&mut self, spec: &AsofSpec, keys: &Keys, key: usize, from: i64) {
        self.side.walk.seek(keys, key, prefix_of_whole(spec.turned(from), spec.backward()));
    }

    /// The last instant before this one with a right row that is there at all times, or the least
    /// of all. Instants are asked for in order.
    pub(super) fn stable_before(
        &mut self,
        spec: &AsofSpec,
        keys: &Keys,
        key: usize,
        times: &[Time],
        instant: i64,
    ) -> i64 {
        let Some(from) = instant.checked_sub(1) else { return i64::MIN };
        self.seek(spec, keys, key, from);
        while let Some((_, at, counts)) = self.side.next(times, spec) {
            if self.stable_swept.is_some_and(|swept| at <= swept) {
                break;
            }
            // (Words of instants at the ends of their range are not exact.)
            if at <= from && counts.iter().all(|count| *count > 0) {
                self.stable = at;
                break;
            }
        }
        self.stable_swept = Some(from);
        self.stable
    }

    /// The nearest right row behind the left rows at `at`, at each of the times.
    pub(super) fn find(
        &mut self,
        spec: &AsofSpec,
        keys: &Keys,
        key: usize,
        times: &[Time],
        at: i64,
        found: &mut [Option<AsofMatch>],
    ) {
        let Some(from) = (if spec.join.exact { Some(at) } else { at.checked_sub(1) }) else { return };
        let is_near = |instant: i64| spec.join.tolerance.is_none_or(|tolerance| at.abs_diff(instant) <= tolerance);
        let mut missing = if self.swept == Some(from) { 0 } else { times.len() };
        if missing > 0 {
            self.seek(spec, keys, key, from);
        }
        while missing > 0
            && let Some((place, instant, counts)) = self.side.next(times, spec)
        {
            // (Words of instants at the ends of their range are not exact.)
            if instant > from {
                continue;
            }
            // What lies further back is carried; what is too far is so for all that follow.
            if self.swept.is_some_and(|swept| instant <= swept) || !is_near(instant) {
                break;
            }
            for (found, count) in found.iter_mut().zip(counts) {
                if *count > 0 && found.is_none() {
                    *found = Some(AsofMatch { place, is_ahead: false, instant });
                    missing -= 1;
                }
            }
        }
        for (found, carried) in found.iter_mut().zip(&mut self.carried) {
            *found = found.or(*carried).filter(|found| is_near(found.instant));
            *carried = *found;
        }
        self.swept = Some(from);
    }
}

/// The right rows ahead of the left rows of one key, which are asked for in order.
pub(super) struct Ahead {
    side: Side,
    /// Right rows that were passed and are ahead still, in order; `dropped` others came before.
    passed: VecDeque<(Place, i64)>,
    /// The multiplicities of those, one for each time and row.
    counts: VecDeque<Diff>,
    dropped: usize,
    /// For each time, the number of the first passed row that is there then, or of the first that
    /// is to be looked at.
    nearest: Vec<usize>,
    /// Whether the walk has begun, and has not come to its end.
    state: WalkState,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum WalkState {
    NotBegun,
    Begun,
    AtEnd,
}

impl Ahead {
    pub(super) fn new(side: Side) -> Ahead {
        let (passed, counts, nearest) = (VecDeque::new(), VecDeque::new(), vec![]);
        Ahead { side, passed, counts, dropped: 0, nearest, state: WalkState::NotBegun }
    }

    pub(super) fn sources(&self) -> Vec<&[ArrayRef]> {
        self.side.walk.sources()
    }

    /// Begins a key.
    pub(super) fn start(&mut self, n_times: usize) {
        self.passed.clear();
        self.counts.clear();
        self.nearest.clear();
        self.nearest.resize(n_times, 0);
        (self.dropped, self.state) = (0, WalkState::NotBegun);
    }

    /// Replaces the matches behind the left rows at `at` by those ahead that are as near or nearer.
    pub(super) fn find(
        &mut self,
        spec: &AsofSpec,
        keys: &Keys,
        key: usize,
        times: &[Time],
        at: i64,
        found: &mut [Option<AsofMatch>],
    ) {
        let Some(from) = (if spec.join.exact { Some(at) } else { at.checked_add(1) }) else { return };
        while self.passed.front().is_some_and(|(_, instant)| *instant < from) {
            self.passed.pop_front();
            self.counts.drain(..times.len());
            self.dropped += 1;
        }
        if self.passed.is_empty() && self.state != WalkState::AtEnd {
            self.side.walk.seek(keys, key, prefix_of_whole(spec.turned(from), spec.onward()));
            self.state = WalkState::Begun;
        }
        for (n, found) in found.iter_mut().enumerate() {
            self.nearest[n] = self.nearest[n].max(self.dropped);
            let Some((place, instant)) = self.first_at(spec, times, n, from) else { continue };
            let distance = instant.abs_diff(at);
            let is_near = spec.join.tolerance.is_none_or(|tolerance| distance <= tolerance);
            if is_near && found.is_none_or(|behind| distance <= behind.instant.abs_diff(at)) {
                *found = Some(AsofMatch { place, is_ahead: true, instant });
            }
        }
    }

    /// The first row from `from` on that is there at time number `n`.
    fn first_at(&mut self, spec: &AsofSpec, times: &[Time], n: usize, from: i64) -> Option<(Place, i64)> {
        loop {
            let at = self.nearest[n] - self.dropped;
            if at == self.passed.len() && !self.pass(spec, times, from) {
                return None;
            }
            if self.counts[at * times.len() + n] > 0 {
                return Some(self.passed[at]);
            }
            self.nearest[n] += 1;
        }
    }

    /// Passes one row more; `false` without one.
    fn pass(&mut self, spec: &AsofSpec, times: &[Time], from: i64) -> bool {
        while self.state == WalkState::Begun {
            match self.side.next(times, spec) {
                // (Words of instants at the ends of their range are not exact.)
                Some((_, instant, _)) if instant < from => {}
                Some((place, instant, counts)) => {
                    self.passed.push_back((place, instant));
                    self.counts.extend(counts);
                    return true;
                }
                None => self.state = WalkState::AtEnd,
            }
        }
        false
    }
}
