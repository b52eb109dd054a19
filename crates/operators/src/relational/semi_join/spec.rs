//! What a semi, anti or mark join matches on, and what it yields.

use anabranch_batch::Time;
use anabranch_batch::order::Nulls;

use crate::expression::ExpressionRef;
use crate::stateless::filter_project::Stage;

/// Which left rows to yield.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keep {
    /// Those that match.
    Semi,
    /// Those that do not.
    Anti,
    /// All, with a last boolean column that tells.
    Mark,
}

/// A condition on pairs beyond equal keys.
#[derive(Clone)]
pub struct Residual {
    /// Columns of the left rows that it needs.
    pub gather_left: Vec<usize>,
    /// Columns of the right rows that it needs.
    pub gather_right: Vec<usize>,
    /// Boolean, over the gathered left columns followed by the gathered right ones.
    pub predicate: ExpressionRef,
}

/// What to match on, and what to yield.
#[derive(Clone)]
pub struct SemiJoinSpec {
    /// Key columns of the left arrangement.
    pub left_key: Vec<usize>,
    /// Key columns of the right arrangement.
    pub right_key: Vec<usize>,
    /// Whether NULL keys match each other.
    pub nulls: Nulls,
    /// Which left rows to yield.
    pub keep: Keep,
    /// The condition beyond equal keys.
    pub residual: Option<Residual>,
    /// Columns of the left rows to yield (with [`Keep::Mark`], the mark follows them).
    pub gather: Vec<usize>,
    /// Applied to what is yielded.
    pub stage: Stage,
    /// Output times are at least this.
    pub as_of: Time,
}

impl SemiJoinSpec {
    /// Columns of the output that hold the left key: a row stays where it is arranged, on the
    /// worker of the key's hash.
    pub fn placed(&self) -> Option<Vec<usize>> {
        let gathered = |key: &usize| self.gather.iter().position(|column| column == key);
        self.stage.shown(&self.left_key.iter().map(gathered).collect::<Option<Vec<usize>>>()?)
    }
}
