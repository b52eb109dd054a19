//! The inner join that is asked once.

use anabranch_batch::{Batch, Time};
use anabranch_flow::paced::TURN_ROWS;
use anabranch_flow::tactic::{Output, Timed};

use super::Waiting;
use crate::relational::hash_pairs::HashPairs;
use crate::relational::join::JoinSpec;

/// The tactic. See the module's page.
pub struct OnceJoin {
    spec: JoinSpec,
    waiting: Waiting,
    pairs: Option<HashPairs>,
    is_answered: bool,
}

impl OnceJoin {
    /// A join of nothing so far.
    pub fn new(spec: JoinSpec) -> OnceJoin {
        OnceJoin { spec, waiting: Waiting::default(), pairs: None, is_answered: false }
    }
}

impl Timed for OnceJoin {
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
            self.pairs = HashPairs::new(&self.spec, std::mem::take(&mut self.waiting).sides);
        }
        self.pairs = self.pairs.take().and_then(|mut pairs| (!pairs.work(&self.spec, TURN_ROWS, out)).then_some(pairs));
    }

    fn has_more(&self) -> bool {
        self.pairs.is_some()
    }

    fn pending_from(&self) -> Option<Time> {
        (self.waiting.is_due || self.pairs.is_some()).then_some(self.spec.as_of)
    }

    fn size_bytes(&self) -> usize {
        self.waiting.size_bytes() + self.pairs.as_ref().map_or(0, HashPairs::size_bytes)
    }
}
