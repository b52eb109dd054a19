//! Variances and standard deviations of floats, without cancellation and without drift.
//!
//! State: the exact sum S of the arguments, the exact sum Q of their squares, and their number n.
//! The result comes from the integer D = n Q - S S, computed exactly and rounded once: D / n^2, or
//! D / (n (n - 1)). So equal arguments have variance exactly 0, and removing arguments leaves the
//! very bits that the others alone give.
//!
//! Cost: two exact additions a row; a result costs a product of two sums, a few hundred
//! nanoseconds.

use std::cell::RefCell;

use anabranch_batch::Diff;
use arrow::array::{ArrayRef, AsArray};
use arrow::datatypes::{DataType, Float64Type};

use super::float_sum::FloatSum;
use super::limbs::Limbs;
use super::output::{GroupOutcome, Pairs};
use super::state::{Accumulator, Input, Kernel, StateWalk};

/// The kernel of variances. Arguments and results are doubles.
pub(crate) struct Variance {
    /// What the squared deviations are divided by.
    pub(crate) divisor: Divisor,
    /// What is reported.
    pub(crate) report: VarianceReport,
    /// Memory for D.
    pub(crate) scratch: RefCell<Limbs>,
}

/// What the sum of squared deviations from the mean is divided by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Divisor {
    /// n
    Population,
    /// n - 1
    Sample,
}

/// What is reported of the variance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum VarianceReport {
    Variance,
    /// Its square root.
    Deviation,
}

/// Sums of arguments and of their squares.
#[derive(Clone, Debug, Default)]
pub(crate) struct Moments {
    count: Diff,
    sum: FloatSum,
    squares: FloatSum,
}

impl Accumulator for Moments {
    fn word(&self) -> u64 {
        self.count as u64
    }

    fn is_zero(&self) -> bool {
        self.count == 0 && self.sum.is_zero() && self.squares.is_zero()
    }

    fn heap_bytes(&self) -> usize {
        self.sum.heap_bytes() + self.squares.heap_bytes()
    }
}

impl Kernel for Variance {
    type Slot = Moments;
    type Delta = Moments;

    fn scatter(&self, input: &Input, n_segments: usize) -> Vec<Moments> {
        let argument = input.argument.as_ref().expect("a variance has an argument");
        let values = argument.as_primitive::<Float64Type>().values();
        let mut deltas = vec![Moments::default(); n_segments];
        input.each_valid(|row, segment, diff| {
            let delta = &mut deltas[segment];
            delta.count += diff;
            delta.sum.add(values[row], diff);
            delta.squares.add_square(values[row], diff);
        });
        deltas
    }

    fn merge(slot: &mut Moments, delta: &Moments) {
        slot.count += delta.count;
        slot.sum.merge(&delta.sum);
        slot.squares.merge(&delta.squares);
    }

    fn walk(&self, walk: StateWalk<'_, Variance>, outcome: &mut GroupOutcome) -> ArrayRef {
        let mut pairs = Pairs::<Float64Type>::with_capacity(walk.len());
        let value = |moments: &Moments| Ok(self.value(moments));
        walk.each(value, |segment, before, after| pairs.push(outcome, segment, before, after));
        pairs.finish(&DataType::Float64)
    }
}

impl Variance {
    fn value(&self, moments: &Moments) -> Option<f64> {
        let count = u64::try_from(moments.count).ok().filter(|&count| count > 0)?;
        let degrees = match self.divisor {
            Divisor::Population => count,
            Divisor::Sample => count - 1,
        };
        if degrees == 0 {
            return None;
        }
        if moments.sum.is_special() || moments.squares.is_special() {
            return Some(f64::NAN);
        }
        let variance = self.deviation(moments, count).max(0.0) / count as f64 / degrees as f64;
        Some(if self.report == VarianceReport::Deviation { variance.sqrt() } else { variance })
    }

    /// n Q - S S, rounded once.
    fn deviation(&self, moments: &Moments, count: u64) -> f64 {
        let mut difference = self.scratch.borrow_mut();
        difference.clear();
        let (is_negative, squares, exponent) = moments.squares.magnitude();
        difference.add_product(&squares, exponent, count, is_negative);
        let (_, sum, exponent) = moments.sum.magnitude();
        for (index, &limb) in sum.iter().enumerate().filter(|&(_, &limb)| limb != 0) {
            difference.add_product(&sum, 2 * exponent + 64 * index as i32, limb, true);
        }
        difference.round()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn variance(values: &[f64], divisor: Divisor) -> Option<f64> {
        let mut moments = Moments { count: values.len() as i64, ..Moments::default() };
        for &value in values {
            moments.sum.add(value, 1);
            moments.squares.add_square(value, 1);
        }
        Variance { divisor, report: VarianceReport::Variance, scratch: RefCell::default() }.value(&moments)
    }

    #[test]
    fn variances_are_accurate_far_from_zero() {
        let shifted: Vec<f64> = [4.0, 7.0, 13.0, 16.0].iter().map(|value| value + 1e15).collect();
        assert_eq!(variance(&shifted, Divisor::Sample), Some(30.0));
        assert_eq!(variance(&shifted, Divisor::Population), Some(22.5));
        assert_eq!(variance(&[0.1; 7], Divisor::Sample), Some(0.0));
        assert_eq!(variance(&[0.1], Divisor::Sample), None);
        assert_eq!(variance(&[0.1], Divisor::Population), Some(0.0));
        assert_eq!(variance(&[], Divisor::Population), None);
        assert_eq!(variance(&[1e200, -1e-200], Divisor::Population), Some(f64::INFINITY));
        assert!(variance(&[1.0, f64::INFINITY], Divisor::Sample).is_some_and(f64::is_nan));
    }
}
