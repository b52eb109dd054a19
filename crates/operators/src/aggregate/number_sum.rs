//! `sum` and `avg` whose results are plain `numeric`: of plain numerics, and of decimals and
//! integers whose results their type has no room for.
//!
//! State of plain arguments: the exact sum of the finite ones, as whole number and scale, and how
//! many there are of each kind: so what was NaN or infinite leaves nothing behind when its row
//! goes. A mean has as many digits as PostgreSQL's quotient of sum and count.
//!
//! Cost: a number is decoded and added a row; up to 38 digits nothing is allocated for it.

use anabranch_batch::Diff;
use anabranch_batch::numeric::{self, Finite, Number, Whole};
use arrow::array::{ArrayRef, AsArray, LargeBinaryBuilder};

use super::output::{GroupOutcome, Value};
use super::state::{Accumulator, Input, Kernel, StateWalk};
use super::sum::SumVerb;

/// The kernel over plain numerics.
#[derive(Debug)]
pub(crate) struct NumberSum {
    pub(crate) verb: SumVerb,
}

/// A sum, and how many arguments are in it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct NumberTotal {
    sum: Whole,
    /// Digits of the sum after the point.
    scale: u32,
    /// Arguments of any kind.
    count: Diff,
    nans: Diff,
    infinities: Diff,
    negative_infinities: Diff,
}

impl NumberTotal {
    fn add(&mut self, other: &NumberTotal) {
        self.add_finite(&other.sum, other.scale);
        self.count += other.count;
        self.nans += other.nans;
        self.infinities += other.infinities;
        self.negative_infinities += other.negative_infinities;
    }

    fn add_finite(&mut self, sum: &Whole, scale: u32) {
        if scale > self.scale {
            self.sum = self.sum.shifted(scale - self.scale);
            self.scale = scale;
        }
        self.sum = match scale == self.scale {
            true => self.sum.plus(sum),
            false => self.sum.plus(&sum.shifted(self.scale - scale)),
        };
        if self.sum.is_zero() {
            self.scale = 0;
        }
    }

    fn add_number(&mut self, number: &Number, diff: Diff) {
        self.count += diff;
        match number {
            Number::NaN => self.nans += diff,
            Number::Infinity => self.infinities += diff,
            Number::NegativeInfinity => self.negative_infinities += diff,
            Number::Finite(Finite { coefficient, scale }) if diff == 1 => self.add_finite(coefficient, *scale),
            Number::Finite(Finite { coefficient, scale }) => {
                self.add_finite(&coefficient.times(&Whole::Small(diff.into())), *scale);
            }
        }
    }

    fn total(&self) -> Number {
        match (self.nans != 0, self.infinities != 0, self.negative_infinities != 0) {
            (true, ..) | (_, true, true) => Number::NaN,
            (_, true, _) => Number::Infinity,
            (_, _, true) => Number::NegativeInfinity,
            // What has left the sum leaves no digits behind.
            _ => Number::Finite(Finite { coefficient: self.sum.clone(), scale: self.scale }.shortest()),
        }
    }
}

impl Accumulator for NumberTotal {
    fn word(&self) -> u64 {
        self.count as u64
    }

    fn is_zero(&self) -> bool {
        let counts = [self.count, self.nans, self.infinities, self.negative_infinities];
        counts == [0; 4] && self.sum.is_zero()
    }

    fn heap_bytes(&self) -> usize {
        self.sum.heap_bytes()
    }
}

impl Kernel for NumberSum {
    type Slot = NumberTotal;
    type Delta = NumberTotal;

    const IS_SHARED: bool = true;

    fn scatter(&self, input: &Input, n_segments: usize) -> Vec<NumberTotal> {
        let argument = input.argument.as_ref().expect("a sum has an argument");
        let numbers = argument.as_binary::<i64>();
        let mut totals = vec![NumberTotal::default(); n_segments];
        input.each_valid(|row, segment, diff| {
            totals[segment].add_number(&numeric::number_of(numbers.value(row)), diff);
        });
        totals
    }

    fn merge(slot: &mut NumberTotal, delta: &NumberTotal) {
        slot.add(delta);
    }

    fn walk(&self, walk: StateWalk<'_, Self>, outcome: &mut GroupOutcome) -> ArrayRef {
        number_pairs(walk, outcome, |total| match total.count {
            ..=0 => Ok(None),
            count => result(self.verb, &total.total(), count).map(Some),
        })
    }
}

/// The sum, or the mean of so many.
pub(crate) fn result(verb: SumVerb, sum: &Number, count: Diff) -> Result<Number, String> {
    match verb {
        SumVerb::Sum => Ok(sum.clone()),
        SumVerb::Avg => sum.divided(&Number::new(i128::from(count), 0)).map_err(|fault| fault.to_string()),
    }
}

/// The numbers before and after each segment.
pub(crate) fn number_pairs<K: Kernel>(
    walk: StateWalk<'_, K>,
    outcome: &mut GroupOutcome,
    value: impl Fn(&K::Slot) -> Value<Number>,
) -> ArrayRef {
    let mut pairs = LargeBinaryBuilder::with_capacity(2 * walk.len(), 16 * walk.len());
    let encoded = |slot: &K::Slot| -> Value<Vec<u8>> {
        let number = value(slot)?;
        Ok(number.map(|number| {
            let mut bytes = Vec::with_capacity(16);
            numeric::encode(&number, &mut bytes);
            bytes
        }))
    };
    walk.each(encoded, |segment, before, after| {
        outcome.mark_if(segment, before != after);
        for (entry, side) in [(2 * segment, before), (2 * segment + 1, after)] {
            match side {
                Ok(bytes) => pairs.append_option(bytes),
                Err(message) => {
                    outcome.fail(entry, message);
                    pairs.append_null();
                }
            }
        }
    });
    std::sync::Arc::new(pairs.finish())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn total(numbers: &[(&str, Diff)]) -> NumberTotal {
        let mut total = NumberTotal::default();
        for (text, diff) in numbers {
            total.add_number(&numeric::parse(text).unwrap(), *diff);
        }
        total
    }

    #[test]
    fn what_goes_leaves_nothing_behind() {
        let gone =
            [("1e-300", 2), ("NaN", 1), ("5", 3), ("1e-300", -2), ("NaN", -1), ("5", -3), ("-inf", 1), ("-inf", -1)];
        assert!(total(&gone).is_zero());
        let kept = total(&[("1e-300", 1), ("2.50", 1), ("1e-300", -1)]);
        assert_eq!(kept.total().to_string(), "2.5");
    }

    #[test]
    fn infinities_and_nan_are_counted() {
        for (numbers, expected) in [
            (&[("inf", 1), ("1", 1)][..], "Infinity"),
            (&[("inf", 1), ("-inf", 1)], "NaN"),
            (&[("NaN", 1), ("-inf", 1)], "NaN"),
            (&[("-inf", 2), ("1", 1)], "-Infinity"),
        ] {
            assert_eq!(total(numbers).total().to_string(), expected);
        }
    }

    #[test]
    fn means_have_the_digits_of_postgresql() {
        let of = |numbers: &[(&str, Diff)]| {
            let total = total(numbers);
            result(SumVerb::Avg, &total.total(), total.count).unwrap().to_string()
        };
        assert_eq!(of(&[("10", 1), ("0.5", 2)]), "3.6666666666666667");
        assert_eq!(of(&[("1e30", 1), ("2", 2)]), "333333333333333333333333333335");
    }
}
