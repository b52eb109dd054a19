//! Sums that fit 64 bits: the results of a chunk of segments in one plain loop.
//!
//! Law: exactly what [`Chunk::each`] makes of the same chunk. Whether it may be done is known before anything is merged: the sums of all slots and deltas of
//! the chunk are so far from 2^62 that no sum on the way, nor a result made of it, leaves 64 bits.
//!
//! Cost: some 90 instructions a segment, a division for an average among them; wide sums, whose results may fail, cost some 350.

use anabranch_batch::Diff;
use arrow::datatypes::ArrowPrimitiveType;

use super::output::{Outcome, Pairs};
use super::state::{Chunk, Kernel, WARM_SEGMENTS};
use super::sum::Total;

/// Bits, beside the sign, of what is worked with.
const BITS: u32 = 62;

/// How results are made of sums that fit.
#[derive(Clone, Copy, Debug)]
pub(super) struct Narrow<F> {
    /// Bits that a slot's sum may have, beside the sign, so that `value` fits whatever the deltas of a chunk add to it.
    bits: u32,
    /// The result of a sum and a positive number of arguments.
    value: F,
}

impl<F> Narrow<F> {
    /// For a `value` that is defined, and within the range of its type, while the sum times `factor` (positive) fits 62 bits. `None` if there is no such sum.
    pub(super) fn new(factor: i128, value: F) -> Option<Narrow<F>> {
        let factor_bits = i128::BITS - factor.leading_zeros();
        // (One bit for the sum of the deltas.)
        BITS.checked_sub(factor_bits + 1).map(|bits| Narrow { bits, value })
    }

    /// Whether all results of the chunk can be made this way.
    #[inline]
    pub(super) fn fits<const N: usize, K>(&self, chunk: &Chunk<'_, K>) -> bool
    where
        K: Kernel<Slot = Total<N>, Delta = Total<N>>,
    {
        let Some(delta_bits) = self.bits.checked_sub(WARM_SEGMENTS.ilog2()) else { return false };
        let runs = chunk.slot_of_segment.chunk_by(|a, b| a == b);
        let slots = runs.map(|run| chunk.slots[run[0] as usize].sum.beyond(self.bits));
        let deltas = chunk.deltas.iter().map(|delta| delta.sum.beyond(delta_bits));
        slots.fold(0, |beyond, slot| beyond | slot) | deltas.fold(0, |beyond, delta| beyond | delta) == 0
    }

    /// Merges the deltas of a chunk that [`fits`](Narrow::fits), and adds the pairs of its segments.
    #[inline]
    pub(super) fn step<T, const N: usize, K>(&self, chunk: Chunk<'_, K>, pairs: &mut Pairs<T>, outcome: &mut Outcome)
    where
        T: ArrowPrimitiveType,
        K: Kernel<Slot = Total<N>, Delta = Total<N>>,
        F: Fn(i64, Diff) -> T::Native,
    {
        let mut first = 0;
        for run in chunk.slot_of_segment.chunk_by(|a, b| a == b) {
            let state = &mut chunk.slots[run[0] as usize];
            let deltas = &chunk.deltas[first..first + run.len()];
            let (mut sum, mut count) = (state.sum.low(), state.count);
            let mut after = self.result(sum, count);
            let mut is_full = count > 0;
            let results = deltas.iter().map(|delta| {
                let before = after;
                sum += delta.sum.low();
                count += delta.count;
                is_full &= count > 0;
                after = self.result(sum, count);
                [before, after]
            });
            pairs.extend(outcome, chunk.first + first, results);
            let exist = deltas.iter().scan(state.count, |count, delta| {
                let before = *count;
                *count += delta.count;
                Some([before > 0, *count > 0])
            });
            pairs.extend_validity(outcome, chunk.first + first, deltas.len(), (!is_full).then_some(exist));
            *state = Total { sum: i128::from(sum).into(), count };
            first += run.len();
        }
    }

    /// What is made of a sum and a number of arguments, if there is something.
    #[inline]
    fn result<V: Default>(&self, sum: i64, count: Diff) -> V
    where
        F: Fn(i64, Diff) -> V,
    {
        if count > 0 { (self.value)(sum, count) } else { V::default() }
    }
}
