//! What the changes of a turn do to the sessions of their partitions.
//!
//! The changes of a partition at a time are put in order. Those within the gap of each other, and
//! the sessions within the gap of them, are a *stretch*: no session reaches from one stretch into
//! another, before or after. A stretch of rows that come is one session. Where rows go, and one of
//! them was an end of its session or held its parts together, the rows of the stretch are walked.
//!
//! Rows that change are put out with their new bounds; for that, rows of sessions whose bounds
//! change are put out anew first. A row whose time has no session any more has its old bounds.

use std::ops::Range;

use anabranch_arrangement::Keys;
use anabranch_batch::order::prefix_of_whole;
use anabranch_batch::{Diff, Time};
use anabranch_flow::tactic::Output;

use super::emission::Emission;
use super::known::{KnownSessions, PartitionSessions, SessionBounds};
use super::{ONWARD, SessionSpec};
use crate::ordered::instants::Instants;
use crate::ordered::trace::{OrderedTrace, Place, TraceWalk};
use crate::ordered::versions::Touched;

/// A row that changes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Change {
    key: u32,
    time: Time,
    instant: i64,
    row: u32,
}

/// A row of a stretch that is walked.
struct Walked {
    place: Place,
    instant: i64,
    /// Its multiplicity before the changes.
    before: Diff,
}

/// Changes of a partition at a time, and the sessions that they may concern.
struct Stretch {
    changes: Range<usize>,
    first: i64,
    last: i64,
    old: Vec<SessionBounds>,
}

/// A turn under way.
struct Turn<'a> {
    gap: u64,
    keys: &'a Keys,
    walk: TraceWalk,
    /// Times of the rows of each chunk of the walk.
    instants: Vec<Instants>,
    diffs: &'a dyn Fn(u32) -> Diff,
    emission: Emission,
}

/// Takes the changes of a turn, which the trace has taken in, into the known sessions; puts out
/// what they change.
pub(super) fn turn(
    spec: &SessionSpec,
    trace: &OrderedTrace,
    known: &mut KnownSessions,
    touched: &Touched,
    out: &mut Output,
) {
    let time = spec.windows.time;
    let slots = known.slots(&touched.keys);
    let walk = trace.walk();
    let mut turn = Turn {
        gap: spec.windows.gap,
        keys: &touched.keys,
        instants: walk.column(time).iter().map(Instants::of).collect(),
        walk,
        diffs: &|row| touched.batch.diffs().get(row as usize),
        emission: Emission::of_changes(touched.batch.len()),
    };
    let changes = in_order(touched, time);
    let mut new = Vec::new();
    for of_time in changes.chunk_by(|a, b| (a.key, a.time) == (b.key, b.time)) {
        let slot = slots[of_time[0].key as usize];
        let mut at = 0;
        while at < of_time.len() {
            let stretch = stretch(known.of(slot), of_time, at, turn.gap);
            at = stretch.changes.end;
            new.clear();
            turn.settle(&stretch, &of_time[stretch.changes.clone()], &mut new);
            known.replace(slot, &stretch.old, &new);
        }
    }
    known.forget_empty(slots);
    turn.emission.finish(&turn.walk.sources(), &touched.batch, &spec.input_types[time], out);
}

/// The rows that change, by partition, time and instant.
fn in_order(touched: &Touched, time: usize) -> Vec<Change> {
    let (times, instants) = (touched.batch.times(), Instants::of(touched.batch.column(time)));
    let rows = touched.of_row.iter().enumerate();
    let change = |(row, key): (usize, &u32)| Change {
        key: *key,
        time: times.get(row),
        instant: instants.at(row),
        row: row as u32,
    };
    let mut changes: Vec<Change> = rows.map(change).collect();
    changes.sort_unstable();
    changes
}

/// The stretch that begins with a change.
fn stretch(known: &PartitionSessions, changes: &[Change], from: usize, gap: u64) -> Stretch {
    let begin = changes[from].instant;
    let mut stretch = Stretch { changes: from..from + 1, first: begin, last: begin, old: vec![] };
    let mut next = known.after(begin);
    if let Some(before) = known.at_or_before(begin).filter(|before| is_within(before.last, begin, gap)) {
        (stretch.first, stretch.last) = (before.first, begin.max(before.last));
        stretch.old.push(before);
    }
    loop {
        let to = stretch.changes.end;
        if let Some(change) = changes.get(to).filter(|change| is_within(stretch.last, change.instant, gap)) {
            stretch.last = stretch.last.max(change.instant);
            stretch.changes.end += 1;
        } else if let Some(session) = next.filter(|session| is_within(stretch.last, session.first, gap)) {
            stretch.last = stretch.last.max(session.last);
            stretch.old.push(session);
            next = known.after(session.first);
        } else {
            return stretch;
        }
    }
}

/// Whether a time is no further than the gap behind another.
fn is_within(before: i64, time: i64, gap: u64) -> bool {
    time <= before || time.abs_diff(before) <= gap
}

impl Turn<'_> {
    /// Finds the sessions of a stretch, and puts out what has changed.
    fn settle(&mut self, stretch: &Stretch, changes: &[Change], new: &mut Vec<SessionBounds>) {
        let Change { key, time, .. } = changes[0];
        let n_rows = stretch.old.iter().map(|old| old.n_rows).sum::<Diff>()
            + changes.iter().map(|change| (self.diffs)(change.row)).sum::<Diff>();
        let whole = SessionBounds { first: stretch.first, last: stretch.last, n_rows };
        let grows = changes.iter().all(|change| (self.diffs)(change.row) > 0);
        if grows || self.holds(stretch, changes) {
            new.push(whole);
            for old in stretch.old.iter().filter(|old| (old.first, old.last) != (whole.first, whole.last)) {
                for row in self.rows(key as usize, old, time, |_, _| ()) {
                    self.emission.rewrite(row.place, time, row.before, *old, whole);
                }
            }
            changes.iter().for_each(|change| self.emission.bound(change.row, whole));
            return;
        }
        let gap = self.gap;
        let rows = self.rows(key as usize, &whole, time, |instant, n_rows| match new.last_mut() {
            Some(session) if is_within(session.last, instant, gap) => {
                session.last = instant;
                session.n_rows += n_rows;
            }
            _ => new.push(SessionBounds { first: instant, last: instant, n_rows }),
        });
        let (mut at_old, mut at_new) = (0, 0);
        for row in rows.iter().filter(|row| row.before > 0) {
            let (old, new) =
                (covering(&stretch.old, &mut at_old, row.instant), covering(new, &mut at_new, row.instant));
            if let (Some(old), Some(new)) = (old, new)
                && (old.first, old.last) != (new.first, new.last)
            {
                self.emission.rewrite(row.place, time, row.before, old, new);
            }
        }
        let (mut at_old, mut at_new) = (0, 0);
        for change in changes {
            let alone = SessionBounds { first: change.instant, last: change.instant, n_rows: 0 };
            let old = covering(&stretch.old, &mut at_old, change.instant);
            let bounds = covering(new, &mut at_new, change.instant).or(old).unwrap_or(alone);
            self.emission.bound(change.row, bounds);
        }
    }

    /// Whether the stretch was one session, and still is, with the same bounds.
    fn holds(&mut self, stretch: &Stretch, changes: &[Change]) -> bool {
        let [session] = stretch.old[..] else { return false };
        if (session.first, session.last) != (stretch.first, stretch.last) {
            return false;
        }
        let key = changes[0].key as usize;
        let times = [changes[0].time];
        // (Up to here rows are known to be held together.)
        let mut held: Option<i64> = None;
        for change in changes.iter().filter(|change| (self.diffs)(change.row) < 0) {
            if held.is_some_and(|held| change.instant <= held) {
                continue;
            }
            let Some(after) = self.first_from(key, change.instant, &times) else { return false };
            if after > change.instant {
                let is_end = change.instant == session.first || after > session.last;
                let reach = i64::try_from(i128::from(after) - i128::from(self.gap)).unwrap_or(i64::MIN);
                let before = self.first_from(key, reach, &times);
                if is_end || before.is_none_or(|before| before >= change.instant) {
                    return false;
                }
            }
            held = Some(after);
        }
        true
    }

    /// The first instant from one on at which the partition has a row.
    fn first_from(&mut self, key: usize, instant: i64, times: &[Time]) -> Option<i64> {
        self.walk.seek(self.keys, key, prefix_of_whole(instant, ONWARD));
        loop {
            let (place, _) = self.walk.next(times)?;
            let at = self.instants[place.0 as usize].at(place.1 as usize);
            if at >= instant {
                return Some(at);
            }
        }
    }

    /// The rows within some bounds, just before a time or at it; those at it are told to `present`,
    /// with their multiplicity.
    fn rows(
        &mut self,
        key: usize,
        bounds: &SessionBounds,
        time: Time,
        mut present: impl FnMut(i64, Diff),
    ) -> Vec<Walked> {
        let mut rows = Vec::new();
        self.walk.seek(self.keys, key, prefix_of_whole(bounds.first, ONWARD));
        while let Some((place, counts)) = self.walk.next(&[time.saturating_sub(1), time]) {
            let instant = self.instants[place.0 as usize].at(place.1 as usize);
            if instant > bounds.last {
                break;
            }
            if instant < bounds.first {
                continue;
            }
            if counts[1] > 0 {
                present(instant, counts[1]);
            }
            rows.push(Walked { place, instant, before: counts[0] });
        }
        rows
    }
}

/// The session that an instant lies in; they are asked for in order, from `at` on.
fn covering(sessions: &[SessionBounds], at: &mut usize, instant: i64) -> Option<SessionBounds> {
    while sessions.get(*at).is_some_and(|session| session.last < instant) {
        *at += 1;
    }
    sessions.get(*at).copied().filter(|session| session.first <= instant)
}
