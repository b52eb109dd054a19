//! Joins of a question that is asked once: nothing is arranged, nothing is kept.
//!
//! Law: at the time `as_of` the output accumulates to what [`join`](super::join) and
//! [`semi_join`](super::semi_join) yield, and after it nothing changes: the answer is as of that
//! time, and is dropped with its dataflow. Errors of conditions are those of the same pairs.
//!
//! Method: rows of both sides wait until they are complete. The side with fewer rows becomes an
//! [index](super::key_index) in memory, by key; the rows of the other side are looked up in it, in
//! the order in which they come, and only those that meet a key are copied. A semi-join counts for
//! each key, or for each row where there is a condition beyond the keys, so it needs no distinct
//! keys. A turn takes on some rows or pairs.
//!
//! State, for the length of the question: the rows of both sides, columns that are read as they
//! were shared with them; of the smaller side a copy, and some twelve bytes a row. Cost: a look-up
//! a row of the larger side, and a gather of what has met; nothing is sorted. Source: hash joins,
//! as in any column store (Manegold, Boncz, Kersten, *Optimizing main-memory join on modern
//! hardware*, TKDE 2002).

mod inner;
mod semi;

use anabranch_arrangement::Footprint;
use anabranch_batch::{Batch, Time, Until};
use anabranch_flow::chain::{Chain, timed};
use anabranch_flow::pending::split_at;

use super::join::JoinSpec;
use super::semi_join::SemiJoinSpec;
pub use inner::OnceJoin;
pub use semi::OnceSemiJoin;

/// The inner join of two streams, as of the time of the specification.
pub fn join_once<'s>(left: Chain<'s>, right: Chain<'s>, spec: JoinSpec) -> Chain<'s> {
    let (as_of, placed) = (spec.as_of, spec.placed());
    let inputs = vec![(left, spec.left_key.clone()), (right, spec.right_key.clone())];
    timed(inputs, "Join", as_of, Box::new(OnceJoin::new(spec))).placed(placed)
}

/// The semi, anti or mark join of two streams, as of the time of the specification.
pub fn semi_join_once<'s>(left: Chain<'s>, right: Chain<'s>, spec: SemiJoinSpec) -> Chain<'s> {
    let (as_of, placed) = (spec.as_of, spec.placed());
    let inputs = vec![(left, spec.left_key.clone()), (right, spec.right_key.clone())];
    timed(inputs, "SemiJoin", as_of, Box::new(OnceSemiJoin::new(spec))).placed(placed)
}

/// What has come of two sides.
#[derive(Debug, Default)]
struct Waiting {
    sides: [Vec<Batch>; 2],
    /// Rows came, or may have come, that are not answered.
    is_due: bool,
}

impl Waiting {
    /// Keeps the rows of a side that are there at `as_of`.
    fn push(&mut self, side: usize, batch: Batch, as_of: Time) {
        let batch = match batch.until() {
            Until::Forever => batch,
            _ => batch.flatten(),
        };
        let batch = if batch.times().max() > as_of { split_at(&batch.compact(), as_of + 1).0 } else { batch };
        if !batch.is_empty() {
            self.is_due = true;
            self.sides[side].push(batch);
        }
    }

    fn size_bytes(&self) -> usize {
        Footprint::bytes_of(self.sides.iter().flatten())
    }
}

#[cfg(test)]
mod tests;
