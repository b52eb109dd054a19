//! Semi, anti and mark joins that are asked once.

use anabranch_batch::{Batch, Time};
use anabranch_flow::paced::TURN_ROWS;
use anabranch_flow::tactic::{Output, Timed};

use super::Waiting;
use crate::relational::hash_matches::HashMatches;
use crate::relational::semi_join::SemiJoinSpec;

/// The tactic. See the module's page.
pub struct OnceSemiJoin {
    spec: SemiJoinSpec,
    waiting: Waiting,
    work: Option<HashMatches>,
    is_answered: bool,
}

impl OnceSemiJoin {
    /// A join of nothing so far.
    pub fn new(spec: SemiJoinSpec) -> OnceSemiJoin {
        OnceSemiJoin { spec, waiting: Waiting::default(), work: None, is_answered: false }
    }
}

impl Timed for OnceSemiJoin {
    fn push(&mut self, input: usize, batch: Batch) {
        if !self.is_answered {
            self.waiting.push(input, batch, self.spec.as_of);
        }
    }

    fn takes_absent(&self) -> bool {
        true
    }

    fn advance(&mut self, upto: Time, out: &mut Output) {
        if upto <= self.spec.as_of {
            return;
        }
        if !self.is_answered {
            self.is_answered = true;
            self.work = HashMatches::new(&self.spec, std::mem::take(&mut self.waiting).sides);
        }
        self.work = self.work.take().and_then(|work| work.work(&self.spec, TURN_ROWS, out));
    }

    fn has_more(&self) -> bool {
        self.work.is_some()
    }

    fn pending_from(&self) -> Option<Time> {
        (self.waiting.is_due || self.work.is_some()).then_some(self.spec.as_of)
    }

    fn size_bytes(&self) -> usize {
        self.waiting.size_bytes() + self.work.as_ref().map_or(0, HashMatches::size_bytes)
    }
}
