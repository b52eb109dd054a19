//! Exactness of float sums, against integers where they suffice and against the sum of what
//! remains.

use super::*;

/// A small linear congruential generator.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        self.0 >> 11
    }

    fn below(&mut self, n: usize) -> usize {
        (self.next() % n as u64) as usize
    }

    /// Doubles of exponents in a range about zero; now and then subnormal or huge.
    fn double(&mut self, spread: i32) -> f64 {
        let sign = if self.next().is_multiple_of(2) { 1.0 } else { -1.0 };
        let exponent = self.below(2 * spread as usize + 1) as i32 - spread;
        match self.below(50) {
            0 if spread > 500 => sign * f64::from_bits(self.next() % (1 << 52)),
            1 => 0.0,
            _ => sign * (1.0 + self.next() as f64 / 2f64.powi(53)) * 2f64.powi(exponent),
        }
    }
}

fn sum_of(values: &[f64]) -> FloatSum {
    let mut sum = FloatSum::default();
    values.iter().for_each(|&value| sum.add(value, 1));
    sum
}

#[test]
fn adding_and_removing_in_any_order_leaves_the_sum_of_what_remains() {
    for seed in 0..200 {
        let mut random = Random(seed);
        let spread = [2, 20, 60, 300, 1000][seed as usize % 5];
        let values: Vec<f64> = (0..100).map(|_| random.double(spread)).collect();
        let (kept, removed) = values.split_at(random.below(100));
        let mut steps: Vec<(f64, i64)> = values.iter().map(|&value| (value, 1)).collect();
        steps.extend(removed.iter().map(|&value| (value, -1)));
        for index in (1..steps.len()).rev() {
            steps.swap(index, random.below(index + 1));
        }
        let (mut sum, mut other) = (FloatSum::default(), FloatSum::default());
        for (index, &(value, diff)) in steps.iter().enumerate() {
            if index % 3 == 0 { sum.add(value, diff) } else { other.add(value, diff) }
        }
        sum.merge(&other);
        assert_eq!(sum.round().to_bits(), sum_of(kept).round().to_bits(), "seed {seed}");
        kept.iter().for_each(|&value| {
            sum.merge(&{
                let mut one = FloatSum::default();
                one.add(value, -1);
                one
            })
        });
        assert!(sum.is_zero(), "seed {seed}: {sum:?}");
        assert_eq!((sum.round().to_bits(), sum.heap_bytes()), (0, 0), "seed {seed}");
    }
}

#[test]
fn sums_are_rounded_once() {
    assert_eq!(sum_of(&[1e100, 1.0, -1e100]).round(), 1.0);
    assert_eq!(sum_of(&[0.1; 10]).round(), 1.0);
    assert_eq!(sum_of(&[1.0, 2f64.powi(-53)]).round(), 1.0); // a tie goes to even
    assert_eq!(sum_of(&[1.0, 2f64.powi(-53), 2f64.powi(-1074)]).round(), 1.0 + f64::EPSILON);
    assert_eq!(sum_of(&[1.0 + f64::EPSILON, 2f64.powi(-53)]).round(), 1.0 + 2.0 * f64::EPSILON);
    assert_eq!(sum_of(&[f64::MAX, f64::MAX, -f64::MAX]).round(), f64::MAX);
    assert_eq!(sum_of(&[f64::MAX, f64::MAX]).round(), f64::INFINITY);
    assert_eq!(sum_of(&[-f64::MAX, -f64::MAX]).round(), f64::NEG_INFINITY);
    let tiny = f64::from_bits(1);
    assert_eq!(sum_of(&[tiny, tiny, tiny]).round(), f64::from_bits(3));
    assert_eq!(sum_of(&[tiny, f64::MIN_POSITIVE, -tiny]).round(), f64::MIN_POSITIVE);
    assert_eq!(sum_of(&[-0.0]).round().to_bits(), 0);
}

#[test]
fn integers_sum_as_integers() {
    let mut random = Random(7);
    for _ in 0..100 {
        let values: Vec<i64> = (0..50).map(|_| random.next() as i64 - (1 << 52)).collect();
        let doubles: Vec<f64> = values.iter().map(|&value| value as f64).collect();
        let total: i128 = values.iter().map(|&value| i128::from(value)).sum();
        assert_eq!(sum_of(&doubles).round(), total as f64);
    }
}

#[test]
fn diffs_multiply() {
    let mut sum = FloatSum::default();
    sum.add(0.1, 1 << 40);
    sum.add(1e-300, 3);
    sum.add(0.1, -(1 << 40));
    assert_eq!(sum.round(), 3.0 * 1e-300);
    let mut squares = FloatSum::default();
    squares.add_square(3.3, i64::MAX);
    squares.add_square(3.3, -i64::MAX + 1);
    assert_eq!(squares.round(), 3.3 * 3.3);
    squares.add_square(1e200, -2);
    assert_eq!(squares.round(), f64::NEG_INFINITY);
    squares.add_square(1e200, 2);
    squares.add_square(1e-200, 2);
    assert_eq!(squares.round(), 3.3 * 3.3);
    squares.add_square(3.3, -1);
    assert_eq!(squares.round(), 0.0); // 2e-400 is no double
    assert!(!squares.is_zero());
}

#[test]
fn infinities_and_nan_come_and_go() {
    let mut sum = sum_of(&[1.5, f64::INFINITY]);
    assert_eq!(sum.round(), f64::INFINITY);
    sum.add(f64::NEG_INFINITY, 1);
    assert!(sum.round().is_nan());
    sum.add(f64::INFINITY, -1);
    assert_eq!(sum.round(), f64::NEG_INFINITY);
    sum.add(f64::NAN, 2);
    assert!(sum.round().is_nan());
    sum.add(f64::NAN, -2);
    let mut rest = FloatSum::default();
    rest.add(f64::NEG_INFINITY, -1);
    sum.merge(&rest);
    assert_eq!((sum.round(), sum.heap_bytes()), (1.5, 0));
}
