//! A semi-join of rows that are arranged nowhere else, as a tactic of two inputs.
//!
//! Law: as that of [`super`]. State: the two arrangements, which are its own. It is for few rows: a
//! loop evaluates the keys that an epoch touches by it (see [`crate::recursive`]).

use std::sync::Arc;

use anabranch_arrangement::{Layout, Listener, MergeEffort, Writer, arrangement};
use anabranch_batch::{Batch, Time};
use anabranch_flow::pending::Pending;
use anabranch_flow::tactic::{Output, Timed};

use super::matching::Matching;
use super::spec::SemiJoinSpec;

/// The tactic. See the module's page.
pub struct TimedSemiJoin {
    sides: [TimedSide; 2],
    matching: Matching,
}

struct TimedSide {
    writer: Writer,
    listener: Listener,
    pending: Pending,
}

impl TimedSemiJoin {
    /// A semi-join over nothing, of rows that are laid out like this.
    pub fn new(spec: SemiJoinSpec, left: &Arc<Layout>, right: &Arc<Layout>) -> TimedSemiJoin {
        let arranged = |layout: &Arc<Layout>| arrangement(Arc::clone(layout), MergeEffort::default());
        let ((left, left_reader), (right, right_reader)) = (arranged(left), arranged(right));
        let side = |writer, listener| TimedSide { writer, listener, pending: Pending::default() };
        let sides = [side(left, left_reader.listen(None)), side(right, right_reader.listen(None))];
        TimedSemiJoin { sides, matching: Matching::new(spec, left_reader, right_reader) }
    }
}

impl Timed for TimedSemiJoin {
    fn push(&mut self, input: usize, batch: Batch) {
        self.sides[input].pending.push(batch);
    }

    fn advance(&mut self, upto: Time, out: &mut Output) {
        if !self.matching.is_under_way() {
            for (side, runs) in self.sides.iter_mut().zip(&mut self.matching.runs) {
                side.pending.take_ready(upto).into_iter().for_each(|batch| side.writer.push(batch));
                side.writer.complete(upto);
                runs.extend(side.listener.drain());
            }
        }
        self.matching.advance(upto, out);
    }

    fn has_more(&self) -> bool {
        self.matching.is_under_way()
    }

    fn pending_from(&self) -> Option<Time> {
        self.sides.iter().filter_map(|side| side.pending.pending_from()).min()
    }

    fn size_bytes(&self) -> usize {
        self.sides.iter().map(|side| side.pending.size_bytes()).sum()
    }
}
