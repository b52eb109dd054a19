//! `bit_and`, `bit_or` and `bit_xor`: counts of set bits.
//!
//! State: for `bit_and` and `bit_or` how often each of 64 bits is set (512 bytes a group, given
//! back when it empties); for `bit_xor` the parities alone. Narrow integers are sign-extended to 64
//! bits and cut back at the end.

use anabranch_batch::Diff;
use arrow::array::{ArrayRef, AsArray};
use arrow::compute::cast;
use arrow::datatypes::{
    ArrowPrimitiveType, DataType, Int8Type, Int16Type, Int32Type, Int64Type, UInt8Type, UInt16Type, UInt32Type,
    UInt64Type,
};

use super::output::{GroupOutcome, Pairs};
use super::state::{Accumulator, Input, Kernel, StateWalk};

/// The kernels of the bit aggregates.
#[derive(Clone, Debug)]
pub(crate) struct Bits {
    /// How bits are combined.
    pub(crate) verb: BitVerb,
    /// Type of argument and result: an integer.
    pub(crate) data_type: DataType,
}

/// How bits are combined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BitVerb {
    And,
    Or,
    Xor,
}

/// How often each bit is set.
#[derive(Clone, Debug, Default)]
pub(crate) struct BitCounts {
    /// Arguments that are not NULL.
    count: Diff,
    /// Bits set in an odd number of arguments.
    parity: u64,
    /// How often each bit is set; `None` if never, or if only parities matter.
    set: Option<Box<[Diff; 64]>>,
}

impl Accumulator for BitCounts {
    fn word(&self) -> u64 {
        self.count as u64
    }

    fn is_zero(&self) -> bool {
        self.count == 0 && self.parity == 0 && self.set.is_none()
    }

    fn heap_bytes(&self) -> usize {
        self.set.as_ref().map_or(0, |set| size_of_val(&**set))
    }
}

impl BitCounts {
    fn add(&mut self, bits: u64, diff: Diff, verb: BitVerb) {
        self.count += diff;
        if diff % 2 != 0 {
            self.parity ^= bits;
        }
        if verb != BitVerb::Xor {
            let set = self.set.get_or_insert_with(|| Box::new([0; 64]));
            let mut rest = bits;
            while rest != 0 {
                set[rest.trailing_zeros() as usize] += diff;
                rest &= rest - 1;
            }
        }
    }

    fn bits(&self, verb: BitVerb) -> Option<u64> {
        let is_set = |bit: &usize| {
            let times = self.set.as_ref().map_or(0, |set| set[*bit]);
            if verb == BitVerb::And { times >= self.count } else { times > 0 }
        };
        match verb {
            _ if self.count <= 0 => None,
            BitVerb::Xor => Some(self.parity),
            BitVerb::And | BitVerb::Or => Some((0..64).filter(is_set).fold(0, |bits, bit| bits | 1 << bit)),
        }
    }
}

impl Kernel for Bits {
    type Slot = BitCounts;
    type Delta = BitCounts;

    fn scatter(&self, input: &Input, n_segments: usize) -> Vec<BitCounts> {
        let argument = input.argument.as_ref().expect("bit aggregates have an argument");
        let mut deltas = vec![BitCounts::default(); n_segments];
        if self.data_type == DataType::UInt64 {
            let values = argument.as_primitive::<UInt64Type>().values();
            input.each_valid(|row, segment, diff| deltas[segment].add(values[row], diff, self.verb));
        } else {
            let wide = cast(argument, &DataType::Int64).expect("integers fit 64 bits");
            let values = wide.as_primitive::<Int64Type>().values();
            input.each_valid(|row, segment, diff| deltas[segment].add(values[row] as u64, diff, self.verb));
        }
        deltas
    }

    fn merge(slot: &mut BitCounts, delta: &BitCounts) {
        slot.count += delta.count;
        slot.parity ^= delta.parity;
        if let Some(delta) = &delta.set {
            let set = slot.set.get_or_insert_with(|| Box::new([0; 64]));
            set.iter_mut().zip(delta.iter()).for_each(|(count, change)| *count += change);
            if set.iter().all(|&count| count == 0) {
                slot.set = None;
            }
        }
    }

    fn walk(&self, walk: StateWalk<'_, Bits>, outcome: &mut GroupOutcome) -> ArrayRef {
        match self.data_type {
            DataType::Int8 => self.pairs::<Int8Type>(walk, outcome, |bits| bits as i8),
            DataType::Int16 => self.pairs::<Int16Type>(walk, outcome, |bits| bits as i16),
            DataType::Int32 => self.pairs::<Int32Type>(walk, outcome, |bits| bits as i32),
            DataType::UInt8 => self.pairs::<UInt8Type>(walk, outcome, |bits| bits as u8),
            DataType::UInt16 => self.pairs::<UInt16Type>(walk, outcome, |bits| bits as u16),
            DataType::UInt32 => self.pairs::<UInt32Type>(walk, outcome, |bits| bits as u32),
            DataType::UInt64 => self.pairs::<UInt64Type>(walk, outcome, |bits| bits),
            _ => self.pairs::<Int64Type>(walk, outcome, |bits| bits as i64),
        }
    }
}

impl Bits {
    fn pairs<T: ArrowPrimitiveType>(
        &self,
        walk: StateWalk<'_, Bits>,
        outcome: &mut GroupOutcome,
        narrow: impl Fn(u64) -> T::Native,
    ) -> ArrayRef {
        let mut pairs = Pairs::<T>::with_capacity(walk.len());
        let value = |counts: &BitCounts| Ok(counts.bits(self.verb).map(&narrow));
        walk.each(value, |segment, before, after| pairs.push(outcome, segment, before, after));
        pairs.finish(&self.data_type)
    }
}
