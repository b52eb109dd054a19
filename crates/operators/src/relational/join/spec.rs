//! What a join matches on, and what it makes of pairs.

use anabranch_batch::Time;
use anabranch_batch::order::Nulls;

use crate::stateless::filter_project::Stage;

/// Of two sides, the one with so many times fewer rows is looked up in the other, even if it was
/// there first.
pub(crate) const SMALL_PART: usize = 8;

/// What to join on, and what to make of the pairs.
#[derive(Clone)]
pub struct JoinSpec {
    /// Key columns of the left arrangement.
    pub left_key: Vec<usize>,
    /// Key columns of the right arrangement.
    pub right_key: Vec<usize>,
    /// Whether NULL keys match each other.
    pub nulls: Nulls,
    /// Columns of the left rows that the stage needs.
    pub gather_left: Vec<usize>,
    /// Columns of the right rows that the stage needs.
    pub gather_right: Vec<usize>,
    /// Residual predicate and projection, over the gathered left columns followed by the gathered
    /// right ones.
    pub stage: Stage,
    /// Output times are at least this.
    pub as_of: Time,
}

impl JoinSpec {
    /// Columns of the output that hold the key: a pair is where its rows are arranged, on the
    /// worker of the key's hash.
    pub fn placed(&self) -> Option<Vec<usize>> {
        let gathered = |(left, right): (&usize, &usize)| {
            let of_left = self.gather_left.iter().position(|column| column == left);
            let of_right = || self.gather_right.iter().position(|column| column == right);
            of_left.or_else(|| Some(self.gather_left.len() + of_right()?))
        };
        let key: Vec<usize> = self.left_key.iter().zip(&self.right_key).map(gathered).collect::<Option<_>>()?;
        self.stage.shown(&key)
    }
}
