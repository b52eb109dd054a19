//! Sums that fit 64 bits: the results of a chunk of segments in one plain loop.
//!
//! Law: exactly what [`Chunk::each`] makes of the same chunk. Whether it may be done is known
//! before anything is merged: the sums of all slots and deltas of the chunk are so far from 2^62
//! that no sum on the way, nor a result made of it, leaves 64 bits.
//!
//! Cost: some 90 instructions a segment, a division for an average among them; wide sums, whose
//! results may fail, cost some 350.

use std::ops::BitOr;

use anabranch_batch::Diff;
use arrow::datatypes::ArrowPrimitiveType;

use super::output::{GroupOutcome, Pairs};
use super::state::{Chunk, Kernel, WARM_SEGMENTS};
use super::sum::SumTotal;

/// Bits, beside the sign, of what is worked with.
const BITS: u32 = 62;

/// How results are made of sums that fit.
#[derive(Clone, Copy, Debug)]
pub(super) struct Narrow<F> {
    /// Bits that a slot's sum may have, beside the sign, so that `value` fits whatever the deltas
    /// of a chunk add to it.
    bits: u32,
    /// The result of a sum and a positive number of arguments.
    value: F,
}

impl<F> Narrow<F> {
    /// For a `value` that is defined, and within the range of its type, while the sum times
    /// `factor` (positive) fits 62 bits. `None` if there is no such sum.
    pub(super) fn new(factor: i128, value: F) -> Option<Narrow<F>> {
        let factor_bits = i128::BITS - factor.leading_zeros();
        // (One bit for the sum of the deltas.)
        BITS.checked_sub(factor_bits + 1).map(|bits| Narrow { bits, value })
    }

    /// Whether all results of the chunk can be made this way.
    #[inline]
    pub(super) fn fits<const N: usize, K>(&self, chunk: &Chunk<'_, K>) -> bool
    where
        K: Kernel<Slot = SumTotal<N>, Delta = SumTotal<N>>,
    {
        let Some(delta_bits) = self.bits.checked_sub(WARM_SEGMENTS.ilog2()) else { return false };
        let beyond = |slot: &SumTotal<N>| slot.sum.beyond(self.bits);
        let slots = match chunk.slots.len() < chunk.slot_of_segment.len() {
            true => chunk.slots.iter().map(beyond).fold(0, BitOr::bitor),
            false => {
                chunk.slot_of_segment.iter().map(|&slot| beyond(&chunk.slots[slot as usize])).fold(0, BitOr::bitor)
            }
        };
        slots | chunk.deltas.iter().map(|delta| delta.sum.beyond(delta_bits)).fold(0, BitOr::bitor) == 0
    }

    /// Merges the deltas of a chunk that [`fits`](Narrow::fits), and adds the pairs of its
    /// segments.
    #[inline]
    pub(super) fn step<T, const N: usize, K>(
        &self,
        chunk: Chunk<'_, K>,
        pairs: &mut Pairs<T>,
        outcome: &mut GroupOutcome,
    ) where
        T: ArrowPrimitiveType,
        K: Kernel<Slot = SumTotal<N>, Delta = SumTotal<N>>,
        F: Fn(i64, Diff) -> T::Native,
    {
        // What each slot is after its segment. (Results wait: they are long to make, and none
        // depends on another.)
        let mut is_full = true;
        let merged = chunk.slot_of_segment.iter().zip(chunk.deltas).map(|(&slot, delta)| {
            let state = &mut chunk.slots[slot as usize];
            let (sum, count) = (state.sum.low() + delta.sum.low(), state.count + delta.count);
            is_full &= (state.count > 0) & (count > 0);
            *state = SumTotal { sum: i128::from(sum).into(), count };
            (sum, count)
        });
        let after: Vec<(i64, Diff)> = merged.collect();
        let segments = chunk.deltas.iter().zip(&after);
        let results = segments.clone().map(|(delta, &(sum, count))| {
            [self.result(sum - delta.sum.low(), count - delta.count), self.result(sum, count)]
        });
        pairs.extend(outcome, chunk.first, results);
        let exist = segments.map(|(delta, &(_, count))| [count > delta.count, count > 0]);
        pairs.extend_validity(outcome, chunk.first, chunk.deltas.len(), (!is_full).then_some(exist));
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
