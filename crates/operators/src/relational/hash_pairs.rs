//! The pairs of two collections that are not in order: the smaller one becomes an index, in which
//! the other is looked up.
//!
//! Law: the pairs of rows with equal keys, each once, at the time `as_of` of the specification.
//! Cost: a look-up a row of the larger side, and a gather of what has met; nothing is sorted.
//! Memory, until the last pair is out: a copy of the smaller side, and some twelve bytes a row.

use anabranch_batch::{Batch, Times};
use anabranch_flow::tactic::Output;

use super::join::spec::JoinSpec;
use super::key_index::{KeyIndex, gathered};
use super::look_ups::{LookUps, Pairs, products};

/// Pairs that are put out together, at least, while there are more: batches of few rows cost more
/// than their rows.
const BATCH_ROWS: usize = 1 << 13;

/// A join at work.
pub(crate) struct HashPairs {
    /// The side that is indexed, 0 if it is the left one.
    indexed: usize,
    look_ups: LookUps,
    /// Pairs that are too few to be put out.
    few: Vec<Batch>,
}

impl HashPairs {
    /// The pairs of the left and the right rows; `None` if there are none.
    pub fn new(spec: &JoinSpec, [left, right]: [Vec<Batch>; 2]) -> Option<HashPairs> {
        let rows = |side: &[Batch]| side.iter().map(Batch::n_present).sum::<usize>();
        let smaller = usize::from(rows(&right) < rows(&left));
        let (indexed, others) = if smaller == 0 { (left, right) } else { (right, left) };
        let keys = [&spec.left_key, &spec.right_key];
        let index = KeyIndex::new(indexed, keys[smaller], spec.nulls)?;
        Some(HashPairs { indexed: smaller, look_ups: LookUps::new(index, keys[1 - smaller], others), few: Vec::new() })
    }

    /// Goes through some `rows` rows and pairs; true at the end.
    pub fn work(&mut self, spec: &JoinSpec, rows: usize, out: &mut Output) -> bool {
        let HashPairs { indexed, look_ups, few } = self;
        look_ups.pair_some(rows, |index, batch, pairs, _| {
            if !pairs.rows.is_empty() {
                few.push(rows_of(spec, *indexed, index, batch, pairs));
            }
            if few.iter().map(Batch::len).sum::<usize>() >= BATCH_ROWS {
                flush(spec, few, out);
            }
        });
        if look_ups.is_over() {
            flush(spec, few, out);
        }
        look_ups.is_over()
    }

    pub fn size_bytes(&self) -> usize {
        self.look_ups.size_bytes() + self.few.iter().map(Batch::size_bytes).sum::<usize>()
    }
}

/// Puts out the pairs that were too few.
fn flush(spec: &JoinSpec, few: &mut Vec<Batch>, out: &mut Output) {
    if let Some(pairs) = Batch::concat(&std::mem::take(few)) {
        spec.stage.apply(pairs, out);
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
