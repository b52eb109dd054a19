//! `count`: how many rows, or how many arguments that are not NULL.
//!
//! State: one count a group. `count(*)` and `count(x)` over a column without NULLs share the group's own count of a batch.

use anabranch_batch::Diff;
use arrow::array::ArrayRef;
use arrow::datatypes::{DataType, Int64Type, UInt64Type};

use super::output::{Outcome, Pairs};
use super::state::{Input, Kernel, Walk};

/// The kernel of `count`.
pub(crate) struct Count {
    /// Type of the result: a 64-bit integer, signed or not.
    pub(crate) output_type: DataType,
}

impl Kernel for Count {
    type Slot = Diff;
    type Delta = Diff;

    fn scatter(&self, input: &Input, n_segments: usize) -> Vec<Diff> {
        input.counts(n_segments)
    }

    fn merge(slot: &mut Diff, delta: &Diff) {
        *slot += delta;
    }

    fn walk(&self, walk: Walk<'_, Count>, outcome: &mut Outcome) -> ArrayRef {
        match self.output_type {
            DataType::UInt64 => {
                let mut pairs = Pairs::<UInt64Type>::with_capacity(walk.len());
                let value = |&count: &Diff| Ok(Some(count.max(0) as u64));
                walk.each(value, |segment, before, after| pairs.push(outcome, segment, before, after));
                pairs.finish(&self.output_type)
            }
            _ => {
                let mut pairs = Pairs::<Int64Type>::with_capacity(walk.len());
                let value = |&count: &Diff| Ok(Some(count));
                walk.each(value, |segment, before, after| pairs.push(outcome, segment, before, after));
                pairs.finish(&self.output_type)
            }
        }
    }
}
