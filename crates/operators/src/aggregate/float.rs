//! `sum` and `avg` of floats: exact until the end.
//!
//! State: a [`FloatSum`] and the number of arguments that are not NULL. Law: the result is the true
//! sum, rounded once (and, for an average, divided once): the same bits whatever was added and
//! removed before. Overflow gives infinity.

use anabranch_batch::Diff;
use arrow::array::{ArrayRef, AsArray};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Float64Type};

use super::float_sum::FloatSum;
use super::output::{GroupOutcome, Pairs};
use super::state::{Accumulator, Input, Kernel, StateWalk};
use super::sum::SumVerb;

/// The kernel of float sums and averages. Arguments are doubles.
pub(crate) struct FloatTotal {
    /// Sum or average.
    pub(crate) verb: SumVerb,
    /// Type of the result: a float.
    pub(crate) output_type: DataType,
}

/// A sum and how many arguments are in it.
#[derive(Clone, Debug, Default)]
pub(crate) struct FloatSlot {
    sum: FloatSum,
    count: Diff,
}

impl Accumulator for FloatSlot {
    fn word(&self) -> u64 {
        self.count as u64
    }

    fn is_zero(&self) -> bool {
        self.count == 0 && self.sum.is_zero()
    }

    fn heap_bytes(&self) -> usize {
        self.sum.heap_bytes()
    }
}

impl Kernel for FloatTotal {
    type Slot = FloatSlot;
    type Delta = FloatSlot;

    fn scatter(&self, input: &Input, n_segments: usize) -> Vec<FloatSlot> {
        let argument = input.argument.as_ref().expect("a sum has an argument");
        let values = argument.as_primitive::<Float64Type>().values();
        let mut deltas = vec![FloatSlot::default(); n_segments];
        input.each_valid(|row, segment, diff| {
            let delta = &mut deltas[segment];
            delta.sum.add(values[row], diff);
            delta.count += diff;
        });
        deltas
    }

    fn merge(slot: &mut FloatSlot, delta: &FloatSlot) {
        slot.sum.merge(&delta.sum);
        slot.count += delta.count;
    }

    fn walk(&self, walk: StateWalk<'_, FloatTotal>, outcome: &mut GroupOutcome) -> ArrayRef {
        let mut pairs = Pairs::<Float64Type>::with_capacity(walk.len());
        let value = |total: &FloatSlot| {
            let divisor = if self.verb == SumVerb::Avg { total.count as f64 } else { 1.0 };
            Ok((total.count > 0).then(|| total.sum.round() / divisor))
        };
        walk.each(value, |segment, before, after| pairs.push(outcome, segment, before, after));
        let pairs = pairs.finish(&DataType::Float64);
        cast(&pairs, &self.output_type).expect("floats become floats")
    }
}
