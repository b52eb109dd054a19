//! Partitions as they are at each time, and the changes between what their rows yield.

use std::collections::BTreeMap;
use std::sync::Arc;

use anabranch_arrangement::{Floor, Layout, ValueOrder};
use anabranch_batch::{Batch, Time};
use anabranch_spec::order::SortKey;
use arrow::array::{ArrayRef, StringViewArray};

use super::WindowSpec;
use super::frames::Frames;
use super::spans::Peers;
use crate::ordered::trace::OrderedTrace;
use crate::ordered::versions::{Updates, Version, absorb};
use anabranch_flow::pending::Pending;
use anabranch_flow::tactic::{Output, Passed, Timed};

/// The tactic. See the page of [`super`].
pub struct WindowTactic {
    spec: WindowSpec,
    pending: Pending,
    trace: OrderedTrace,
}

impl WindowTactic {
    /// Functions over no rows yet.
    pub fn new(spec: WindowSpec) -> WindowTactic {
        let order = spec
            .window
            .order
            .iter()
            .map(SortKey::pair)
            .filter(|(column, _)| !spec.window.partition.contains(column))
            .collect();
        let (key, types) = (spec.window.partition.clone(), spec.input_types.clone());
        WindowTactic {
            trace: OrderedTrace::new(Layout { key, values: ValueOrder::Sorted(order), types }, spec.effort),
            pending: Pending::default(),
            spec,
        }
    }

    /// Puts out what came and what went.
    fn give(&self, versions: &[Version], mut columns: Vec<ArrayRef>, out: &mut Output) {
        let peers = Peers::new(versions, &self.spec.window.order, &columns);
        let frames = Frames { spec: &self.spec, versions, columns: &columns, peers: &peers };
        let (mut results, mut failed) = (Vec::new(), BTreeMap::new());
        for call in &self.spec.window.calls {
            let of_call = frames.results(call);
            results.push(of_call.values);
            // (A row that fails twice is one error, the first call's.)
            of_call.failed.into_iter().for_each(|(row, message)| _ = failed.entry(row).or_insert(message));
        }
        columns.append(&mut results);
        let (mut updates, mut errors) = (Updates::default(), Updates::default());
        let number: BTreeMap<usize, u32> = failed.keys().copied().zip(0..).collect();
        for version in versions {
            for row in version.from..version.to {
                match number.get(&row) {
                    None => updates.enter(row as u32, version),
                    Some(number) => errors.enter(*number, version),
                }
            }
        }
        out.give_rows(updates.finish(&columns));
        let messages: ArrayRef = Arc::new(StringViewArray::from_iter_values(failed.values()));
        out.give_errors(errors.finish(&[messages]));
    }
}

impl Timed for WindowTactic {
    fn push(&mut self, input: usize, batch: Batch) {
        assert_eq!(input, 0, "window functions have one input");
        self.pending.push(batch);
    }

    fn advance(&mut self, upto: Time, out: &mut Output) {
        let Some(batch) = self.pending.take_before(upto) else { return };
        let read: Vec<usize> = (0..self.spec.input_types.len()).collect();
        let (versions, columns) = absorb(&mut self.trace, batch, &self.spec.window.partition, &read, upto);
        if !versions.is_empty() {
            self.give(&versions, columns, out);
        }
    }

    fn free(&mut self, passed: &[Passed]) {
        if let Some(first) = passed.first() {
            self.trace.set_floor(Floor { column: first.column, below: first.below });
        }
    }

    fn idle(&mut self) {
        self.trace.idle();
    }

    fn pending_from(&self) -> Option<Time> {
        self.pending.pending_from()
    }

    fn size_bytes(&self) -> usize {
        self.pending.size_bytes() + self.trace.size_bytes()
    }
}
