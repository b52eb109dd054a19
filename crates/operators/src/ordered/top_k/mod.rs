//! The first rows of each group in an order: ORDER BY .. LIMIT .. OFFSET, `row_number()`, `rank()`
//! and `dense_rank()`.
//!
//! ```text
//! 2 least x:   in    (3) +1, (7) +1 at 1    (5) +1 at 2            (3) -1 at 3
//!              out   (3) +1, (7) +1 at 1    (7) -1, (5) +1 at 2    (3) -1, (7) +1 at 3
//! ```
//!
//! Law: at every time the output is, for each group, its rows `offset .. offset + limit` in the
//! order; a row with multiplicity n counts n times; ties are broken by the remaining columns,
//! ascending, NULLs last, so that the answer is a function of the contents. With row numbers, each
//! row's number in its group (from 1, rows before `offset` counted) is a last column. Places that
//! tied rows share are those of [`places`].
//!
//! State: all rows, sorted within their group, until no change of the group will come; where no row
//! is ever taken back, those of each group up to the end of the window, since a row behind them
//! stays there.
//!
//! Cost: for each touched group and time a walk over its values up to the end of the window, before
//! and after (all of them without a limit); only differences are put out. Where the first rows are
//! wanted, most insertions need no walk: [`shown`] knows what they change, and the rows wait
//! unsorted until a reader asks for them.

mod places;
mod shown;

use std::ops::{ControlFlow, Range};

use anabranch_arrangement::{Floor, Keys, Layout, MergeEffort, ValueOrder};
use anabranch_batch::order::{Direction, Nulls};
use anabranch_batch::{Batch, Columns, Diff, Diffs, Time, Times, gather};
use anabranch_spec::order::SortKey;
use anabranch_spec::top_k::{RankedBy, TopK};
use arrow::array::{ArrayRef, UInt64Array};
use arrow::datatypes::DataType;
use std::sync::Arc;

use crate::ordered::trace::{OrderedTrace, Place, only_used, touched_times};
use anabranch_flow::pending::Pending;
use anabranch_flow::tactic::{Output, Passed, Timed};
use shown::{Reveals, Shown};

/// Which rows are wanted, of rows of which types.
#[derive(Clone, Debug)]
pub struct TopKSpec {
    /// Which rows are wanted.
    pub top: TopK,
    /// Types of all input columns.
    pub input_types: Vec<DataType>,
    /// Whether no row is ever taken back.
    pub is_append_only: bool,
    /// How eagerly the state is merged.
    pub effort: MergeEffort,
}

/// The tactic. See the module's page.
#[derive(Debug)]
pub struct TopKTactic {
    group: Vec<usize>,
    /// Columns that decide the order, as far as they are asked for.
    order: Vec<(usize, Direction)>,
    ranked: RankedBy,
    /// Places in a group that are put out, from 0.
    window: Range<Diff>,
    numbered: bool,
    n_columns: usize,
    pending: Pending,
    /// What is known of groups without a walk, if that is of use.
    shown: Option<Shown>,
    trace: OrderedTrace,
    /// Rows behind the window that never come into it, if no row is taken back: retractions that
    /// the trace has not taken in.
    leaving: Option<Vec<Batch>>,
}

impl TopKTactic {
    /// The first rows of nothing.
    pub fn new(spec: TopKSpec) -> TopKTactic {
        let TopKSpec { top, input_types, is_append_only, effort } = spec;
        let offset = Diff::try_from(top.offset).unwrap_or(Diff::MAX);
        let limit = top.limit.map_or(Diff::MAX, |limit| Diff::try_from(limit).unwrap_or(Diff::MAX));
        let n_columns = input_types.len();
        let order: Vec<_> =
            top.order.iter().map(SortKey::pair).filter(|(column, _)| !top.group.contains(column)).collect();
        let is_of_rows = top.ranked == RankedBy::Row;
        assert!(is_of_rows || offset == 0, "places of ties are counted from the first");
        let is_of_first = is_of_rows && offset == 0 && top.limit.is_some_and(|limit| limit > 0);
        let shown = is_of_first.then(|| {
            let reveals = if top.numbered { Reveals::InOrder } else { Reveals::AtOnce };
            Shown::new(limit, reveals, top.group.clone(), order.clone(), &input_types)
        });
        let values = ValueOrder::Sorted(order.clone());
        let layout = Layout { key: top.group.clone(), values, types: input_types };
        TopKTactic {
            group: top.group,
            order,
            ranked: top.ranked,
            window: offset..offset.saturating_add(limit),
            numbered: top.numbered,
            n_columns,
            pending: Pending::default(),
            shown,
            trace: OrderedTrace::new(layout, effort),
            leaving: (is_append_only && top.limit.is_some()).then(Vec::new),
        }
    }

    /// The touched groups, and for each the times asked for: just before its first change, then at
    /// each change.
    fn queries(&self, batch: &Batch) -> (Keys, Vec<Vec<Time>>) {
        let hashes = &batch.key().expect("the batch is keyed").hashes;
        let columns: Vec<ArrayRef> = self.group.iter().map(|&column| batch.column(column).clone()).collect();
        let (keys, of_row) = Keys::from_columns(&columns, hashes, Nulls::Equal);
        let times = touched_times(&of_row, batch.times());
        (keys, times)
    }

    /// Rows for the trace, with those that leave.
    fn with_leaving(&mut self, batch: Batch) -> Batch {
        let leaving = self.leaving.as_mut().map(std::mem::take).unwrap_or_default();
        if leaving.is_empty() {
            return batch;
        }
        let all: Vec<Batch> = std::iter::once(batch).chain(leaving).collect();
        Batch::concat(&all).map(|all| all.with_key(&self.group)).unwrap_or_default()
    }

    /// Puts out what changes in these groups at these times, of which the first of each is just
    /// before a change.
    /// `n_behind` are the rows of each behind the window at the last of its times, where that is
    /// known; they leave if rows leave at all.
    fn walk(&mut self, keys: &Keys, times: &[Vec<Time>], n_behind: Option<&[Diff]>, out: &mut Output) -> Ends {
        let mut walk = self.trace.walk();
        let (mut changes, mut leaving) = (Changes::default(), Changes::default());
        let left_at = self.trace.upto();
        let (mut shown, mut last_places) = (Vec::with_capacity(times.len()), Vec::new());
        for (key, times) in times.iter().enumerate() {
            // Rows of the group before the present value, at each time.
            let mut passed = vec![0; times.len()];
            let mut last_place = None;
            let mut n_left = match &self.leaving {
                Some(_) => n_behind.map_or(Diff::MAX, |n_behind| n_behind[key]),
                None => 0,
            };
            walk.group(keys, key, times, |place, counts| {
                let ranges = Ranges { passed: &passed, counts, window: &self.window };
                if !ranges.at(times.len() - 1).is_empty() {
                    last_place = Some(place);
                }
                if self.numbered {
                    changes.number(place, times, ranges)
                } else {
                    changes.count(place, times, ranges)
                }
                let behind = if n_left > 0 { ranges.behind(times.len() - 1).min(n_left) } else { 0 };
                if behind > 0 {
                    // (The time is the first that the trace has not taken in.)
                    leaving.push(place, left_at, -behind);
                    n_left -= behind;
                }
                passed.iter_mut().zip(counts).for_each(|(passed, &count)| *passed = passed.saturating_add(count));
                let is_done = passed.iter().all(|&passed| passed >= self.window.end);
                if is_done && n_left <= 0 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
            });
            shown.push(passed.last().map_or(0, |&passed| passed.min(self.window.end)));
            last_places.extend(last_place);
        }
        let sources = walk.sources();
        out.give_rows(changes.finish(&sources, self.n_columns, self.numbered));
        let leaving = leaving.finish(&sources, self.n_columns, false);
        if let Some(all) = self.leaving.as_mut().filter(|_| !leaving.is_empty()) {
            all.push(leaving);
        }
        let last = if last_places.is_empty() || self.shown.is_none() {
            Columns::from([])
        } else {
            let (sources, places) = only_used(&sources, last_places);
            gather::interleave(&sources, &places)
        };
        Ends { shown, last }
    }
}

/// How groups look after the last time that was asked for.
struct Ends {
    /// Rows up to the end of the window, for each group.
    shown: Vec<Diff>,
    /// The last of them, for each group that has some.
    last: Columns,
}

impl Timed for TopKTactic {
    fn push(&mut self, input: usize, batch: Batch) {
        assert_eq!(input, 0, "top-k has one input");
        self.pending.push(batch);
    }

    fn advance(&mut self, upto: Time, out: &mut Output) {
        let Some(batch) = self.pending.take_before(upto) else { return };
        let batch = batch.with_key(&self.group);
        let Some(shown) = &mut self.shown else {
            let (keys, times) = self.queries(&batch);
            let batch = self.with_leaving(batch);
            self.trace.absorb(batch, upto);
            if self.ranked == RankedBy::Row {
                self.walk(&keys, &times, None, out);
            } else {
                self.walk_places(&keys, &times, out);
            }
            return;
        };
        let decided = shown.decide(&batch);
        if decided.rows.len() == batch.len() {
            out.give_rows(batch.clone());
        } else if !decided.rows.is_empty() {
            out.give_rows(batch.take(&decided.rows));
        }
        // (Rows that are not shown at once, in groups that are not asked for, stand behind the last
        // one shown.)
        let rows = self.leaving.as_ref().map(|_| shown.kept(&batch, &decided));
        let asked = shown.asked(&batch, &decided, rows.as_deref().unwrap_or_default());
        let kept = match &rows {
            Some(rows) if rows.len() < batch.len() => batch.take(rows),
            _ => batch.clone(),
        };
        let kept = self.with_leaving(kept);
        self.trace.defer(kept, upto);
        if let Some(asked) = asked {
            self.trace.settle();
            let n_behind = self.leaving.is_some().then_some(&asked.n_behind[..]);
            let ends = self.walk(&asked.keys, &asked.times, n_behind, out);
            let shown = self.shown.as_mut().expect("it was asked before");
            shown.learn(&asked, &ends.shown, &ends.last);
        }
        if let Some(shown) = &mut self.shown {
            shown.release(&batch, &decided);
        }
    }

    fn free(&mut self, passed: &[Passed]) {
        let Some(first) = passed.first() else { return };
        self.trace.set_floor(Floor { column: first.column, below: first.below });
        if let Some(shown) = &mut self.shown {
            shown.free(passed);
        }
    }

    fn idle(&mut self) {
        self.trace.idle();
    }

    fn pending_from(&self) -> Option<Time> {
        self.pending.pending_from()
    }

    fn state_rows(&self) -> Option<usize> {
        Some(self.trace.n_rows())
    }

    fn size_bytes(&self) -> usize {
        let shown = self.shown.as_ref().map_or(0, Shown::size_bytes);
        let leaving: usize = self.leaving.iter().flatten().map(Batch::size_bytes).sum();
        self.pending.size_bytes() + self.trace.size_bytes() + shown + leaving
    }
}

/// Positions that a value takes in its group at each time, cut to the window.
#[derive(Clone, Copy)]
struct Ranges<'a> {
    passed: &'a [Diff],
    counts: &'a [Diff],
    window: &'a Range<Diff>,
}

impl Ranges<'_> {
    fn at(&self, index: usize) -> Range<Diff> {
        let start = self.passed[index].max(self.window.start);
        let end = self.passed[index].saturating_add(self.counts[index]).min(self.window.end);
        start..end.max(start)
    }

    /// Of how many the position is behind the window.
    fn behind(&self, index: usize) -> Diff {
        let end = self.passed[index].saturating_add(self.counts[index]);
        end - end.min(self.window.end.max(self.passed[index]))
    }
}

/// Output rows under construction.
#[derive(Default)]
struct Changes {
    places: Vec<Place>,
    times: Vec<Time>,
    diffs: Vec<Diff>,
    numbers: Vec<u64>,
}

impl Changes {
    /// How many more, or fewer, of a value there are at each time.
    fn count(&mut self, place: Place, times: &[Time], ranges: Ranges) {
        let size = |range: Range<Diff>| range.end - range.start;
        let mut before = size(ranges.at(0));
        for (index, &time) in times.iter().enumerate().skip(1) {
            let after = size(ranges.at(index));
            if after != before {
                self.push(place, time, after - before);
            }
            before = after;
        }
    }

    /// Which numbers a value gains and loses at each time.
    fn number(&mut self, place: Place, times: &[Time], ranges: Ranges) {
        let mut before = ranges.at(0);
        for (index, &time) in times.iter().enumerate().skip(1) {
            let after = ranges.at(index);
            for (diff, from, other) in [(-1, &before, &after), (1, &after, &before)] {
                for position in from.clone().filter(|position| !other.contains(position)) {
                    self.push(place, time, diff);
                    self.numbers.push(position as u64 + 1);
                }
            }
            before = after;
        }
    }

    fn push(&mut self, place: Place, time: Time, diff: Diff) {
        self.places.push(place);
        self.times.push(time);
        self.diffs.push(diff);
    }

    fn finish(self, sources: &[&[ArrayRef]], n_columns: usize, numbered: bool) -> Batch {
        let len = self.places.len();
        if len == 0 {
            return Batch::default();
        }
        let (sources, places) = only_used(sources, self.places);
        let mut columns = gather::interleave(&sources, &places).to_vec();
        debug_assert_eq!(columns.len(), n_columns);
        if numbered {
            columns.push(Arc::new(UInt64Array::from(self.numbers)));
        }
        let (times, diffs) = (Times::Column(self.times.into()).simplify(), Diffs::Column(self.diffs.into()).simplify());
        Batch::with_len(Columns::from(columns), len, times, diffs)
    }
}
