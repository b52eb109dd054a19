//! Places that tied rows share: `rank()` and `dense_rank()`.
//!
//! ```text
//! x             3  5  5  7
//! rank          1  2  2  4     one more than the rows before the peers
//! dense_rank    1  2  2  3     the number of groups of peers so far
//! ```
//!
//! Law: at every time the output is, for each group, its rows whose place is at most the limit;
//! numbered ones have their place as a last column.
//!
//! Cost: for each touched group and time a walk over its values up to the first peers behind the
//! limit.

use std::collections::HashMap;
use std::ops::ControlFlow;

use anabranch_arrangement::Keys;
use anabranch_batch::order::{Comparator, Direction};
use anabranch_batch::{Diff, Time};
use anabranch_flow::tactic::Output;
use anabranch_spec::top_k::RankedBy;
use arrow::array::ArrayRef;

use super::{Changes, TopKTactic};
use crate::ordered::trace::{Place, TraceWalk};

impl TopKTactic {
    /// Puts out what changes in these groups at these times, of which the first of each is just
    /// before a change.
    pub(super) fn walk_places(&mut self, keys: &Keys, times: &[Vec<Time>], out: &mut Output) {
        let mut walk = self.trace.walk();
        let mut places = Places::new(&walk, &self.order, self.ranked);
        let (mut changes, mut leaving) = (Changes::default(), Changes::default());
        let (end, left_at) = (self.window.end, self.trace.upto());
        for (key, times) in times.iter().enumerate() {
            places.begin(times.len());
            let now = times.len() - 1;
            walk.group(keys, key, times, |place, counts| {
                let before = places.before(place, counts);
                changes.tie(place, times, Tied { before, counts, end }, self.numbered);
                if self.leaving.is_some() && before[now] >= end && counts[now] > 0 {
                    // (No row is taken back, so that no more rows come before it than now.)
                    leaving.push(place, left_at, -counts[now]);
                }
                let is_done = self.leaving.is_none() && before.iter().all(|&before| before >= end);
                if is_done { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
            });
        }
        let sources = walk.sources();
        out.give_rows(changes.finish(&sources, self.n_columns, self.numbered));
        let leaving = leaving.finish(&sources, self.n_columns, false);
        if let Some(all) = self.leaving.as_mut().filter(|_| !leaving.is_empty()) {
            all.push(leaving);
        }
    }
}

/// Where values stand that come in the order of their group.
struct Places {
    ranked: RankedBy,
    directions: Vec<Direction>,
    /// The columns of the order, of each chunk.
    columns: Vec<Vec<ArrayRef>>,
    /// Rows of one chunk against those of another.
    comparators: HashMap<(u32, u32), Comparator>,
    last: Option<Place>,
    /// What counts before the peers of the present value, at each time.
    before: Vec<Diff>,
    /// Rows of the group up to the present value.
    passed: Vec<Diff>,
    /// Rows among the peers so far.
    among: Vec<Diff>,
}

impl Places {
    fn new(walk: &TraceWalk, order: &[(usize, Direction)], ranked: RankedBy) -> Places {
        let by_column: Vec<Vec<ArrayRef>> = order.iter().map(|&(column, _)| walk.column(column)).collect();
        let n_chunks = walk.sources().len();
        Places {
            ranked,
            directions: order.iter().map(|&(_, direction)| direction).collect(),
            columns: (0..n_chunks).map(|at| by_column.iter().map(|chunks| chunks[at].clone()).collect()).collect(),
            comparators: HashMap::new(),
            last: None,
            before: Vec::new(),
            passed: Vec::new(),
            among: Vec::new(),
        }
    }

    /// Goes to the begin of a group.
    fn begin(&mut self, n_times: usize) {
        self.last = None;
        for counts in [&mut self.before, &mut self.passed, &mut self.among] {
            counts.clear();
            counts.resize(n_times, 0);
        }
    }

    /// The next value's place at each time, from 0.
    fn before(&mut self, place: Place, counts: &[Diff]) -> &[Diff] {
        if !self.last.is_some_and(|last| self.are_peers(last, place)) {
            match self.ranked {
                RankedBy::Row | RankedBy::Rank => self.before.copy_from_slice(&self.passed),
                RankedBy::DenseRank => {
                    self.before.iter_mut().zip(&self.among).for_each(|(before, &among)| *before += among.min(1));
                }
            }
            self.among.fill(0);
        }
        self.last = Some(place);
        for (at, &count) in counts.iter().enumerate() {
            self.passed[at] = self.passed[at].saturating_add(count);
            self.among[at] = self.among[at].saturating_add(count);
        }
        &self.before
    }

    fn are_peers(&mut self, left: Place, right: Place) -> bool {
        let comparator = self.comparators.entry((left.0, right.0)).or_insert_with(|| {
            let of = |chunk: u32| &self.columns[chunk as usize][..];
            Comparator::new(of(left.0), of(right.0), &self.directions)
        });
        comparator.compare(left.1 as usize, right.1 as usize).is_eq()
    }
}

/// A value's place and multiplicity at each time.
#[derive(Clone, Copy)]
struct Tied<'a> {
    before: &'a [Diff],
    counts: &'a [Diff],
    /// The first place that is not shown, from 0.
    end: Diff,
}

impl Tied<'_> {
    /// How many are shown, and their place.
    fn at(&self, index: usize) -> (Diff, Diff) {
        let before = self.before[index];
        (if before < self.end { self.counts[index] } else { 0 }, before)
    }
}

impl Changes {
    /// How many more, or fewer, of a value there are at each time, and with which place.
    fn tie(&mut self, place: Place, times: &[Time], tied: Tied, numbered: bool) {
        let mut before = tied.at(0);
        for (index, &time) in times.iter().enumerate().skip(1) {
            let after = tied.at(index);
            let changed = match numbered && before.1 != after.1 {
                true => [(-before.0, before.1), after],
                false => [(after.0 - before.0, after.1), (0, after.1)],
            };
            for (diff, before) in changed.into_iter().filter(|(diff, _)| *diff != 0) {
                self.push(place, time, diff);
                if numbered {
                    self.numbers.push(before.unsigned_abs() + 1);
                }
            }
            before = after;
        }
    }
}
