//! Partitions as they are at each time, and the changes between what their rows yield.

use std::collections::BTreeMap;
use std::sync::Arc;

use anabranch_arrangement::{Floor, Layout, ValueOrder};
use anabranch_batch::consolidate::consolidate;
use anabranch_batch::{Batch, Time};
use anabranch_spec::order::SortKey;
use arrow::array::{ArrayRef, StringViewArray};

use super::aged::AgedRows;
use super::frames::{Frames, Results};
use super::inner::{Inner, LEAF_PARTITION_ROWS_MIN};
use super::leaf_partition::{LeafPartition, Outcome};
use super::region::are_in_step;
use super::row_order::RowOrder;
use super::spans::Peers;
use super::spec::WindowSpec;
use super::tail::{Followers, Tail};
use super::tails::{TAIL_ROWS_MIN, Tails};
use crate::ordered::trace::{OrderedTrace, touched_times};
use crate::ordered::versions::{Changed, Touched, Updates, Version, Versions, versions};
use anabranch_flow::pending::Pending;
use anabranch_flow::tactic::{Output, Passed, Timed};

/// The tactic. See the page of [`super`].
pub struct WindowTactic {
    spec: WindowSpec,
    pending: Pending,
    trace: OrderedTrace,
    pub(super) tails: Tails,
    pub(super) inner: Inner,
    /// Rows that leave.
    aged: AgedRows,
}

impl WindowTactic {
    /// Functions over no rows yet.
    pub fn new(spec: WindowSpec) -> WindowTactic {
        WindowTactic::with_rows_min(spec, TAIL_ROWS_MIN, LEAF_PARTITION_ROWS_MIN)
    }

    /// The same, where partitions of so many rows have tails, and leaves.
    pub(super) fn with_rows_min(spec: WindowSpec, tail: usize, leaf: usize) -> WindowTactic {
        let order = spec
            .window
            .order
            .iter()
            .map(SortKey::pair)
            .filter(|(column, _)| !spec.window.partition.contains(column))
            .collect();
        let (key, types) = (spec.window.partition.clone(), spec.input_types.clone());
        let layout = Layout { key, values: ValueOrder::Sorted(order), types };
        let order = RowOrder::new(&spec, &layout);
        WindowTactic {
            tails: Tails::new(&spec, order.clone(), tail),
            inner: Inner::new(&spec, order, leaf),
            trace: OrderedTrace::new(layout, spec.effort),
            pending: Pending::default(),
            aged: AgedRows::default(),
            spec,
        }
    }

    /// Puts out what changes in partitions of which the end or the leaves are kept, and takes the
    /// times that are done away: `times` are those to look at, of each group.
    fn take_in(&mut self, touched: &Touched, times: &mut [Vec<Time>], out: &mut Output) {
        if self.tails.is_empty() && self.inner.is_empty() {
            return;
        }
        let batch = &touched.batch;
        let mut rows_of: Vec<Vec<u32>> = vec![Vec::new(); touched.keys.len()];
        (0u32..).zip(&touched.of_row).for_each(|(row, group)| rows_of[*group as usize].push(row));
        for (rows, times) in rows_of.into_iter().zip(times) {
            if let Some(taken) = self.inner.take_in(&self.spec, batch, &rows) {
                taken.outcomes.into_iter().for_each(|(time, outcome)| put_out_changes(outcome, time, out));
                match taken.left_from {
                    None => times.clear(),
                    Some(from) => {
                        times.retain(|time| *time >= from);
                        times.insert(0, from.saturating_sub(1));
                    }
                }
            } else if let Some((rows, followers)) = self.tails.follow(&self.spec, batch, rows) {
                let Followers { columns, results } = followers;
                let version =
                    |row: u32| Version { from: 0, to: 0, added: Some(batch.times().get(row as usize)), removed: None };
                put_out(columns.to_vec(), results, (0..).zip(rows.into_iter().map(version)), out);
                times.clear();
            }
        }
    }

    /// Puts out what came and what went of all rows of some partitions.
    fn give(&mut self, changed: Versions, hashes: &[u64], out: &mut Output) {
        let Versions { versions, columns, changed, .. } = changed;
        let peers = Peers::new(&versions, &self.spec.window.order, &columns);
        let frames = Frames { spec: &self.spec, versions: &versions, columns: &columns, peers: &peers };
        let results: Vec<Results> = self.spec.window.calls.iter().map(|call| frames.results(call, 0)).collect();
        for Changed { version, group, has_grown } in changed {
            let version = &versions[version];
            let n_rows = version.to - version.from;
            if has_grown && self.tails.may_be_of(n_rows) {
                if let Some(tail) = Tail::new(&frames, version, &results) {
                    self.tails.keep(hashes[group], tail);
                }
            } else if self.inner.may_be_of(n_rows) && are_in_step(&self.spec, &columns, version.from..version.to) {
                let rows: Vec<ArrayRef> = columns.iter().map(|column| column.slice(version.from, n_rows)).collect();
                self.inner.keep(hashes[group], LeafPartition::new(&self.spec, &rows));
            }
        }
        let rows = versions.iter().flat_map(|version| (version.from..version.to).map(move |row| (row, version)));
        put_out(columns, results, rows, out);
    }
}

/// Puts out what rows of a partition give, and takes back what they gave.
fn put_out_changes(outcome: Outcome, time: Time, out: &mut Output) {
    let Outcome { columns, results, old, new } = outcome;
    let version = |added, removed| Version { from: 0, to: 0, added, removed };
    let old = old.map(|row| (row, version(None, Some(time))));
    let new = new.map(|row| (row, version(Some(time), None)));
    put_out(columns, results, old.chain(new), out);
}

/// Puts out rows with their results, as long as they are there.
fn put_out<V: std::borrow::Borrow<Version>>(
    mut columns: Vec<ArrayRef>,
    results: Vec<Results>,
    rows: impl Iterator<Item = (usize, V)>,
    out: &mut Output,
) {
    let mut failed = BTreeMap::new();
    for of_call in results {
        columns.push(of_call.values);
        // (A row that fails twice is one error, the first call's.)
        of_call.failed.into_iter().for_each(|(row, message)| _ = failed.entry(row).or_insert(message));
    }
    let (mut updates, mut errors) = (Updates::default(), Updates::default());
    let number: BTreeMap<usize, u32> = failed.keys().copied().zip(0..).collect();
    for (row, version) in rows {
        match number.get(&row) {
            None => updates.enter(row as u32, version.borrow()),
            Some(number) => errors.enter(*number, version.borrow()),
        }
    }
    out.give_rows(updates.finish(&columns));
    let messages: ArrayRef = Arc::new(StringViewArray::from_iter_values(failed.values()));
    out.give_errors(errors.finish(&[messages]));
}

impl Timed for WindowTactic {
    fn push(&mut self, input: usize, batch: Batch) {
        assert_eq!(input, 0, "window functions have one input");
        self.pending.push(batch);
    }

    fn advance(&mut self, upto: Time, out: &mut Output) {
        let Some(mut batch) = self.pending.take_before(upto) else { return };
        // (What comes and goes at one time, as out of an outer join, is no change.)
        let keeps_some = !self.tails.is_empty() || !self.inner.is_empty();
        if keeps_some && (0..batch.len()).any(|row| batch.diffs().get(row) < 0) {
            batch = consolidate(batch);
        }
        let touched = Touched::new(batch, &self.spec.window.partition);
        let mut times = touched_times(&touched.of_row, touched.batch.times());
        self.take_in(&touched, &mut times, out);
        let Touched { batch, keys, .. } = touched;
        let batch = self.aged.with_leaving(batch, &self.spec.window.partition);
        if times.iter().all(Vec::is_empty) {
            return self.trace.defer(batch, upto);
        }
        self.trace.absorb(batch, upto);
        let read: Vec<usize> = (0..self.spec.input_types.len()).collect();
        let changed = versions(&self.trace, &keys, &times, &read);
        if !changed.versions.is_empty() {
            self.give(changed, keys.hashes(), out);
        }
    }

    fn free(&mut self, passed: &[Passed]) {
        let Some(first) = passed.first() else { return };
        if self.spec.window.partition.contains(&first.column) {
            let floor = Floor { column: first.column, below: first.below };
            self.trace.set_floor(floor);
            self.tails.set_floor(floor);
            self.inner.set_floor(floor);
        } else if let Some(reach) = self.spec.window.reach() {
            // (Leaves tell results of rows that lack others now.)
            if self.aged.look(&self.trace, &reach, first.column, first.below) {
                self.inner.forget();
            }
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
        self.pending.size_bytes()
            + self.trace.size_bytes()
            + self.tails.size_bytes()
            + self.inner.size_bytes()
            + self.aged.size_bytes()
    }
}
