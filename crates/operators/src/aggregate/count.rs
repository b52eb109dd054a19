//! `count`: how many rows, or how many arguments that are not NULL.
//!
//! State: one count a group; none for `count(*)` without filter, which is the group's own
//! multiplicity.

use anabranch_batch::Diff;
use arrow::array::{ArrayRef, Int64Array, UInt64Array};
use arrow::datatypes::{ArrowPrimitiveType, DataType, Int64Type, UInt64Type};
use std::sync::Arc;

use super::output::{GroupOutcome, Pairs};
use super::state::{Input, Kernel, StateWalk};
use super::turn::AggregateTurn;

/// The kernel of `count`.
pub(crate) struct Count {
    /// Type of the result: a 64-bit integer, signed or not.
    pub(crate) output_type: DataType,
}

impl Kernel for Count {
    type Slot = Diff;
    type Delta = Diff;

    fn scatter(&self, input: &Input, n_segments: usize) -> Vec<Diff> {
        input.counts(n_segments).into_owned()
    }

    fn merge(slot: &mut Diff, delta: &Diff) {
        *slot += delta;
    }

    fn walk(&self, walk: StateWalk<'_, Count>, outcome: &mut GroupOutcome) -> ArrayRef {
        match self.output_type {
            DataType::UInt64 => self.pairs::<UInt64Type>(walk, outcome, |count| count.max(0) as u64),
            _ => self.pairs::<Int64Type>(walk, outcome, |count| count),
        }
    }
}

impl Count {
    fn pairs<T: ArrowPrimitiveType>(
        &self,
        walk: StateWalk<'_, Count>,
        outcome: &mut GroupOutcome,
        value: impl Fn(Diff) -> T::Native,
    ) -> ArrayRef {
        let mut pairs = Pairs::<T>::with_capacity(walk.len());
        walk.each_chunk(|chunk| {
            let counts = chunk.slot_of_segment.iter().zip(chunk.deltas).map(|(&slot, delta)| {
                let count = &mut chunk.slots[slot as usize];
                let before = *count;
                *count += delta;
                [value(before), value(*count)]
            });
            pairs.extend_full(outcome, chunk.first, counts);
        });
        pairs.finish(&self.output_type)
    }
}

/// Pairs of `count(*)`: the multiplicities of the groups.
pub(crate) fn count_rows(turn: &AggregateTurn, output_type: &DataType, outcome: &mut GroupOutcome) -> ArrayRef {
    for (segment, &delta) in turn.multiplicities.iter().enumerate() {
        outcome.mark_if(segment, delta != 0);
    }
    let pairs = turn.multiplicities_before.iter().zip(turn.multiplicities);
    let counts = pairs.map(|(&before, delta)| [before, before + delta]).collect::<Vec<[Diff; 2]>>().into_flattened();
    match output_type {
        DataType::UInt64 => Arc::new(counts.into_iter().map(|count| count.max(0) as u64).collect::<UInt64Array>()),
        _ => Arc::new(Int64Array::from(counts)),
    }
}
