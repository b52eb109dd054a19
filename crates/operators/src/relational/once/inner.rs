//! The inner join that is asked once.

use anabranch_batch::{Batch, Time, Times};
use anabranch_flow::tactic::{Output, Timed};

use super::Waiting;
use super::index::{KeyIndex, gathered};
use super::pairs::{LookUps, Pairs, products};
use crate::relational::join::JoinSpec;

/// Pairs that are put out together, at least, while there are more: batches of few rows cost more
/// than their rows.
const BATCH_ROWS: usize = 1 << 13;

/// The tactic. See the module's page.
pub struct OnceJoin {
    spec: JoinSpec,
    waiting: Waiting,
    /// The side that is indexed, and the rows of the other.
    work: Option<(usize, LookUps)>,
    /// Pairs that are too few to be put out.
    few: Vec<Batch>,
    is_answered: bool,
}

impl OnceJoin {
    /// A join of nothing so far.
    pub fn new(spec: JoinSpec) -> OnceJoin {
        OnceJoin { spec, waiting: Waiting::default(), work: None, few: Vec::new(), is_answered: false }
    }

    fn begin(&mut self) {
        let smaller = self.waiting.smaller();
        let [left, right] = std::mem::take(&mut self.waiting).sides;
        let (indexed, others) = if smaller == 0 { (left, right) } else { (right, left) };
        let keys = [&self.spec.left_key, &self.spec.right_key];
        let index = KeyIndex::new(indexed, keys[smaller], self.spec.nulls);
        self.work = index.map(|index| (smaller, LookUps::new(index, keys[1 - smaller], others)));
    }

    /// Puts out the pairs that were too few.
    fn flush(&mut self, out: &mut Output) {
        if let Some(pairs) = Batch::concat(&std::mem::take(&mut self.few)) {
            self.spec.stage.apply(pairs, out);
        }
    }
}

/// Pairs as rows, the left columns first.
fn rows_of(spec: &JoinSpec, indexed: usize, index: &KeyIndex, batch: &Batch, pairs: &Pairs) -> Batch {
    let gather = [&spec.gather_left, &spec.gather_right];
    let own = gathered(&index.rows, gather[indexed], &pairs.indexed);
    let other = gathered(batch, gather[1 - indexed], &pairs.rows);
    let (left, right) = if indexed == 0 { (own, other) } else { (other, own) };
    let columns = left.iter().chain(right.iter()).cloned().collect();
    let diffs = products([(&index.rows, &pairs.indexed), (batch, &pairs.rows)]);
    Batch::with_len(columns, pairs.rows.len(), Times::Constant(spec.as_of), diffs)
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
        if upto <= self.spec.as_of || self.is_answered && self.work.is_none() {
            return;
        }
        if !self.is_answered {
            self.is_answered = true;
            self.begin();
        }
        if let Some((indexed, mut look_ups)) = self.work.take() {
            look_ups.pair_some(|index, batch, pairs, _| {
                if !pairs.rows.is_empty() {
                    self.few.push(rows_of(&self.spec, indexed, index, batch, pairs));
                }
                if self.few.iter().map(Batch::len).sum::<usize>() >= BATCH_ROWS {
                    self.flush(out);
                }
            });
            match look_ups.is_over() {
                true => self.flush(out),
                false => self.work = Some((indexed, look_ups)),
            }
        }
    }

    fn has_more(&self) -> bool {
        self.work.is_some()
    }

    fn pending_from(&self) -> Option<Time> {
        (self.waiting.is_due || self.work.is_some()).then_some(self.spec.as_of)
    }

    fn size_bytes(&self) -> usize {
        let work = self.work.as_ref().map_or(0, |(_, look_ups)| look_ups.size_bytes());
        self.waiting.size_bytes() + work + self.few.iter().map(Batch::size_bytes).sum::<usize>()
    }
}
