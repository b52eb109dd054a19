//! `sum` and `avg` of integers and decimals: exact.
//!
//! State: the sum as a wide integer and the number of arguments that are not NULL. A result that
//! does not fit its type is a row error and no wrong number; it goes away when the sum comes back
//! into range. An average is one division of exact numbers, rounded half away from zero (as
//! PostgreSQL's numeric does); as plain `numeric` it has PostgreSQL's digits (`number_sum`).
//!
//! Cost: one 64-bit addition a row while the batch cannot overflow it, or one of 128 bits, which is
//! decided once a batch; wider arithmetic otherwise. `sum` and `avg` of one argument add it up
//! once.

use anabranch_batch::numeric::{self, Number};
use anabranch_batch::{Diff, Diffs, types};
use arrow::array::{Array, ArrayRef, AsArray};
use arrow::compute::cast;
use arrow::datatypes::{
    ArrowPrimitiveType, DECIMAL64_MAX_PRECISION, DataType, Decimal64Type, Decimal128Type, Decimal256Type, Float64Type,
    Int32Type, Int64Type, UInt64Type, i256,
};

use super::fixed::Fixed;
use super::lanes;
use super::narrow::Narrow;
use super::number_sum::{number_pairs, result};
use super::output::{GroupOutcome, Pairs, Value};
use super::state::{Accumulator, Input, Kernel, StateWalk};

/// The kernel of exact sums. `N` limbs hold the sum: 3, or 5 for 256-bit decimals.
#[derive(Debug)]
pub(crate) struct ExactSum<const N: usize> {
    /// Sum or average.
    pub(crate) verb: SumVerb,
    /// Digits after the point in the argument; 0 for integers.
    pub(crate) input_scale: i8,
    /// Type of the result.
    pub(crate) output_type: DataType,
}

/// What is made of the sum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SumVerb {
    Sum,
    Avg,
}

/// A sum and how many arguments are in it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct SumTotal<const N: usize> {
    pub(crate) sum: Fixed<N>,
    pub(crate) count: Diff,
}

impl<const N: usize> Accumulator for SumTotal<N> {
    fn word(&self) -> u64 {
        self.count as u64
    }

    fn is_zero(&self) -> bool {
        self.count == 0 && self.sum.is_zero()
    }
}

impl<const N: usize> Kernel for ExactSum<N> {
    type Slot = SumTotal<N>;
    type Delta = SumTotal<N>;

    const IS_SHARED: bool = true;

    fn scatter(&self, input: &Input, n_segments: usize) -> Vec<SumTotal<N>> {
        let argument = input.argument.as_ref().expect("a sum has an argument");
        match argument.data_type() {
            DataType::Int32 => scatter_values::<Int32Type, N>(argument, input, n_segments, i128::from),
            DataType::UInt64 => scatter_values::<UInt64Type, N>(argument, input, n_segments, i128::from),
            DataType::Decimal64(..) => scatter_values::<Decimal64Type, N>(argument, input, n_segments, i128::from),
            DataType::Decimal128(..) => scatter_values::<Decimal128Type, N>(argument, input, n_segments, |value| value),
            DataType::Decimal256(..) => scatter_wide(argument, input, n_segments),
            _ => scatter_values::<Int64Type, N>(argument, input, n_segments, i128::from),
        }
    }

    #[inline]
    fn merge(slot: &mut SumTotal<N>, delta: &SumTotal<N>) {
        slot.sum.add(&delta.sum);
        slot.count += delta.count;
    }

    fn walk(&self, walk: StateWalk<'_, Self>, outcome: &mut GroupOutcome) -> ArrayRef {
        match self.output_type {
            DataType::UInt64 => self.pairs::<UInt64Type>(walk, outcome, |total| self.integer(total)),
            DataType::Float64 => {
                let scale = 10f64.powi(self.input_scale.into());
                let narrow = Narrow::new(1, |sum, count| self.quotient(sum as f64, count) / scale);
                self.pairs_by::<Float64Type, _>(walk, outcome, |total| Ok(self.float(total)), narrow)
            }
            DataType::Decimal64(precision, scale) => {
                let rescale = Rescale::new(self.input_scale, scale);
                let limit = power_of_ten(precision.min(DECIMAL64_MAX_PRECISION)) as u128;
                let value = |total: &SumTotal<N>| Ok(self.decimal(total, &rescale, limit)?.map(|value| value as i64));
                self.pairs::<Decimal64Type>(walk, outcome, value)
            }
            DataType::Decimal128(precision, scale) => {
                let rescale = Rescale::new(self.input_scale, scale);
                let limit = power_of_ten(precision.min(38)) as u128;
                let value = |total: &SumTotal<N>| self.decimal(total, &rescale, limit);
                match self.verb {
                    SumVerb::Sum => self.pairs_by::<Decimal128Type, _>(walk, outcome, value, rescale.narrow_sum(limit)),
                    SumVerb::Avg => {
                        self.pairs_by::<Decimal128Type, _>(walk, outcome, value, rescale.narrow_mean(limit))
                    }
                }
            }
            DataType::Decimal256(precision, scale) => {
                let rescale = Rescale::new(self.input_scale, scale);
                let limit = i256::from_i128(10).checked_pow(u32::from(precision.min(76))).expect("10^76 fits 256 bits");
                self.pairs::<Decimal256Type>(walk, outcome, |total| self.decimal_wide(total, &rescale, limit))
            }
            DataType::LargeBinary => number_pairs(walk, outcome, |total| self.number(total)),
            DataType::Duration(_) => {
                let pairs = self.pairs::<Int64Type>(walk, outcome, |total| self.duration(total));
                cast(&pairs, &self.output_type).expect("durations are 64-bit integers")
            }
            _ => {
                let narrow = Narrow::new(1, |sum, _| sum);
                self.pairs_by::<Int64Type, _>(walk, outcome, |total| self.integer(total), narrow)
            }
        }
    }
}

impl<const N: usize> ExactSum<N> {
    /// The results before and after each segment, by `value`.
    fn pairs<T: ArrowPrimitiveType>(
        &self,
        walk: StateWalk<'_, Self>,
        outcome: &mut GroupOutcome,
        value: impl Fn(&SumTotal<N>) -> Value<T::Native>,
    ) -> ArrayRef {
        self.pairs_by::<T, fn(i64, Diff) -> T::Native>(walk, outcome, value, None)
    }

    /// The same, and by `narrow` wherever sums are small enough.
    fn pairs_by<T: ArrowPrimitiveType, F: Fn(i64, Diff) -> T::Native>(
        &self,
        walk: StateWalk<'_, Self>,
        outcome: &mut GroupOutcome,
        value: impl Fn(&SumTotal<N>) -> Value<T::Native>,
        narrow: Option<Narrow<F>>,
    ) -> ArrayRef {
        let mut pairs = Pairs::<T>::with_capacity(walk.len());
        walk.each_chunk(|chunk| match &narrow {
            Some(narrow) if chunk.deltas.len() > 1 && narrow.fits(&chunk) => narrow.step(chunk, &mut pairs, outcome),
            _ => chunk.each(&value, |segment, before, after| pairs.push(outcome, segment, before, after)),
        });
        match self.output_type {
            DataType::Duration(_) => pairs.finish(&DataType::Int64),
            _ => pairs.finish(&self.output_type),
        }
    }

    #[inline]
    fn integer<I: TryFrom<i128>>(&self, total: &SumTotal<N>) -> Value<I> {
        if total.count <= 0 {
            return Ok(None);
        }
        let value = total.sum.to_i128().and_then(|sum| I::try_from(sum).ok());
        value.map(Some).ok_or_else(|| "bigint out of range in sum".into())
    }

    fn duration(&self, total: &SumTotal<N>) -> Value<i64> {
        if total.count <= 0 {
            return Ok(None);
        }
        let sum = total.sum.to_i128();
        let value = if self.verb == SumVerb::Avg { sum.map(|sum| sum / i128::from(total.count)) } else { sum };
        let value = value.and_then(|value| i64::try_from(value).ok());
        value.map(Some).ok_or_else(|| "interval out of range in sum".into())
    }

    fn float(&self, total: &SumTotal<N>) -> Option<f64> {
        let scale = 10f64.powi(self.input_scale.into());
        (total.count > 0).then(|| self.quotient(total.sum.to_f64(), total.count) / scale)
    }

    #[inline]
    fn quotient(&self, sum: f64, count: Diff) -> f64 {
        if self.verb == SumVerb::Avg { sum / count as f64 } else { sum }
    }

    #[inline]
    fn decimal(&self, total: &SumTotal<N>, rescale: &Rescale, limit: u128) -> Value<i128> {
        if total.count <= 0 {
            return Ok(None);
        }
        let narrow = total.sum.to_i128().and_then(|sum| rescale.apply(sum, self.divisor(total)));
        let value = match narrow {
            Some(value) => Some(value),
            None => total.sum.to_i256().and_then(|sum| rescale.apply_wide(sum, self.divisor(total))?.to_i128()),
        };
        let fits = |value: &i128| value.unsigned_abs() < limit;
        value.filter(fits).map(Some).ok_or_else(|| self.out_of_range())
    }

    fn number(&self, total: &SumTotal<N>) -> Value<Number> {
        if total.count <= 0 {
            return Ok(None);
        }
        let scale = u32::try_from(self.input_scale).unwrap_or(0);
        let sum = match total.sum.to_i128() {
            Some(sum) => Some(Number::new(sum, scale)),
            None => total.sum.to_i256().and_then(|sum| numeric::parse(&format!("{sum}e-{scale}")).ok()),
        };
        let sum = sum.ok_or_else(|| self.out_of_range())?;
        result(self.verb, &sum, total.count).map(Some)
    }

    fn decimal_wide(&self, total: &SumTotal<N>, rescale: &Rescale, limit: i256) -> Value<i256> {
        if total.count <= 0 {
            return Ok(None);
        }
        let value = total.sum.to_i256().and_then(|sum| rescale.apply_wide(sum, self.divisor(total)));
        let fits = |value: &i256| *value < limit && *value > -limit;
        value.filter(fits).map(Some).ok_or_else(|| self.out_of_range())
    }

    fn divisor(&self, total: &SumTotal<N>) -> i128 {
        if self.verb == SumVerb::Avg { i128::from(total.count) } else { 1 }
    }

    fn out_of_range(&self) -> String {
        let verb = if self.verb == SumVerb::Avg { "avg" } else { "sum" };
        format!("numeric out of range in {verb}: the result does not fit {}", types::widened_type(&self.output_type))
    }
}

/// The powers of ten that fit. (Results of a single row take no longer than computing three of
/// them.)
const POWERS_OF_TEN: [i128; 39] = {
    let mut powers = [1; 39];
    let mut digits = 1;
    while digits < powers.len() {
        powers[digits] = powers[digits - 1] * 10;
        digits += 1;
    }
    powers
};

/// At most 38 digits.
fn power_of_ten(digits: u8) -> i128 {
    POWERS_OF_TEN[usize::from(digits)]
}

/// From one decimal scale to another.
struct Rescale {
    factor: i128,
    divisor: i128,
}

impl Rescale {
    fn new(from: i8, to: i8) -> Rescale {
        let digits = i32::from(to) - i32::from(from);
        let power = |digits: i32| power_of_ten(digits.clamp(0, 38) as u8);
        Rescale { factor: power(digits), divisor: power(-digits) }
    }

    /// `sum / divisor` at the new scale, rounded half away from zero; `None` if an intermediate
    /// result does not fit.
    #[inline]
    fn apply(&self, sum: i128, divisor: i128) -> Option<i128> {
        let numerator = if self.factor == 1 { sum } else { sum.checked_mul(self.factor)? };
        let divisor = if self.divisor == 1 { divisor } else { divisor.checked_mul(self.divisor)? };
        if divisor == 1 {
            return Some(numerator);
        }
        let (quotient, remainder) = match (i64::try_from(numerator), i64::try_from(divisor)) {
            (Ok(numerator), Ok(divisor)) if divisor > 0 => return Some(divide_rounded(numerator, divisor).into()),
            _ => (numerator / divisor, numerator % divisor),
        };
        let is_up = remainder.unsigned_abs() >= divisor.unsigned_abs().div_ceil(2);
        Some(if is_up { quotient + numerator.signum() } else { quotient })
    }

    /// Sums that fit 64 bits at the new scale, if that cannot fail for them: absolute values below
    /// `limit` are in range.
    fn narrow_sum(&self, limit: u128) -> Option<Narrow<impl Fn(i64, Diff) -> i128>> {
        let factor = self.narrow_factor(limit)?;
        Narrow::new(self.factor, move |sum, _| i128::from(sum * factor))
    }

    /// The same of means.
    fn narrow_mean(&self, limit: u128) -> Option<Narrow<impl Fn(i64, Diff) -> i128>> {
        let factor = self.narrow_factor(limit)?;
        Narrow::new(self.factor, move |sum, count| i128::from(divide_rounded(sum * factor, count)))
    }

    fn narrow_factor(&self, limit: u128) -> Option<i64> {
        i64::try_from(self.factor).ok().filter(|_| self.divisor == 1 && limit > 1 << 62)
    }

    fn apply_wide(&self, sum: i256, divisor: i128) -> Option<i256> {
        let numerator = sum.checked_mul(i256::from_i128(self.factor))?;
        let divisor = i256::from_i128(divisor).checked_mul(i256::from_i128(self.divisor))?;
        let quotient = numerator.checked_div(divisor)?;
        let remainder = numerator.checked_rem(divisor)?.wrapping_abs();
        let is_up = remainder >= divisor.wrapping_sub(remainder);
        Some(if is_up { quotient.wrapping_add(numerator.signum()) } else { quotient })
    }
}

/// Rounded half away from zero; the divisor is positive.
#[inline]
fn divide_rounded(numerator: i64, divisor: i64) -> i64 {
    let (quotient, remainder) = (numerator / divisor, numerator % divisor);
    let is_up = remainder.unsigned_abs() >= divisor.unsigned_abs().div_ceil(2) && divisor > 1;
    if is_up { quotient + numerator.signum() } else { quotient }
}

/// The least `n` for which the absolute values are at most two to the power of `n`, or one more.
fn magnitude_bits<N: Copy>(values: &[N], widen: impl Fn(N) -> i128) -> u32 {
    let magnitudes = values.iter().fold(0, |magnitudes, &value| {
        let value = widen(value);
        magnitudes | (value ^ (value >> 127)) as u128
    });
    u128::BITS - magnitudes.leading_zeros()
}

/// For so few values it is not worth while to look how large they are.
const FEW_ROWS: usize = 8;

/// Values that stay in the first-level cache.
const NARROW_ROWS: usize = 1 << 10;

fn diff_max(diffs: &Diffs) -> u64 {
    match diffs {
        Diffs::Constant(diff) => diff.unsigned_abs(),
        Diffs::Column(diffs) => diffs.iter().map(|diff| diff.unsigned_abs()).max().unwrap_or(0),
    }
}

/// Sums of each segment: in 64 bits or 128 if the sum of all absolute values fits.
fn scatter_values<T: ArrowPrimitiveType, const N: usize>(
    argument: &ArrayRef,
    input: &Input,
    n_segments: usize,
    widen: impl Fn(T::Native) -> i128 + Copy,
) -> Vec<SumTotal<N>> {
    let values = argument.as_primitive::<T>().values();
    let is_plain = input.nulls().is_none() && matches!(input.diffs, Diffs::Constant(1));
    if is_plain && values.len() <= FEW_ROWS && size_of::<T::Native>() <= size_of::<i64>() {
        let mut sums = vec![0i128; n_segments];
        values.iter().zip(input.segment).for_each(|(&value, &segment)| sums[segment as usize] += widen(value));
        return totals(sums, input, Fixed::from);
    }
    if let Some(sums) = is_plain.then(|| narrow_sums(values, input.segment, n_segments, widen)).flatten() {
        return totals(sums, input, |sum| i128::from(sum).into());
    }
    let terms = u128::from(diff_max(input.diffs)).saturating_mul(argument.len() as u128);
    let bits = magnitude_bits(values, widen) + (u128::BITS - terms.leading_zeros());
    match bits {
        ..=126 if is_plain => {
            totals(lanes::sums(input.segment, n_segments, |row| widen(values[row])), input, Fixed::from)
        }
        ..=126 => {
            let mut sums = vec![0i128; n_segments];
            input.each_valid(|row, segment, diff| sums[segment] += widen(values[row]) * i128::from(diff));
            totals(sums, input, Fixed::from)
        }
        _ => {
            let mut sums = vec![Fixed::<N>::default(); n_segments];
            input.each_valid(|row, segment, diff| sums[segment].add(&Fixed::from(widen(values[row])).times(diff)));
            totals(sums, input, |sum| sum)
        }
    }
}

/// The sums of each segment in 64 bits; `None` if they may not fit. A block of values is looked at,
/// and then added up, while it is in the first-level cache.
fn narrow_sums<V: Copy>(
    values: &[V],
    of_row: &[u32],
    n_segments: usize,
    widen: impl Fn(V) -> i128 + Copy,
) -> Option<Vec<i64>> {
    let term_bits = usize::BITS - values.len().leading_zeros();
    let mut sums = lanes::Sums::new(n_segments, values.len());
    let mut words = vec![0i64; NARROW_ROWS.min(values.len())];
    for (values, of_row) in values.chunks(NARROW_ROWS).zip(of_row.chunks(NARROW_ROWS)) {
        let (mut magnitudes, mut excess) = (0u64, 0u64);
        for (word, &value) in words.iter_mut().zip(values) {
            let value = widen(value);
            *word = value as i64;
            let sign = *word >> 63;
            magnitudes |= (*word ^ sign) as u64;
            excess |= ((value >> 64) as i64 ^ sign) as u64;
        }
        if excess != 0 || u64::BITS - magnitudes.leading_zeros() + term_bits > 62 {
            return None;
        }
        sums.add(of_row, &words[..of_row.len()]);
    }
    Some(sums.finish())
}

fn scatter_wide<const N: usize>(argument: &ArrayRef, input: &Input, n_segments: usize) -> Vec<SumTotal<N>> {
    let values = argument.as_primitive::<Decimal256Type>().values();
    let mut sums = vec![Fixed::<N>::default(); n_segments];
    input.each_valid(|row, segment, diff| sums[segment].add(&Fixed::from(values[row]).times(diff)));
    totals(sums, input, |sum| sum)
}

/// The sums, and how many arguments are in each.
fn totals<S, const N: usize>(sums: Vec<S>, input: &Input, widen: impl Fn(S) -> Fixed<N>) -> Vec<SumTotal<N>> {
    let counts = input.counts(sums.len());
    sums.into_iter().zip(counts.iter()).map(|(sum, &count)| SumTotal { sum: widen(sum), count }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::aggregate::state::{Chunk, WARM_SEGMENTS};
    use anabranch_batch::hash::spread;

    #[test]
    fn averages_round_half_away_from_zero() {
        let rescale = Rescale::new(2, 4);
        assert_eq!(rescale.apply(1, 8), Some(13)); // 0.01 / 8 = 0.00125
        assert_eq!(rescale.apply(-1, 8), Some(-13));
        assert_eq!(rescale.apply(1, 3), Some(33));
        let wide = |sum: i128, divisor: i128| {
            rescale.apply_wide(i256::from_i128(sum), divisor).and_then(|value| value.to_i128())
        };
        for (sum, divisor) in
            [(1, 8), (-1, 8), (1, 3), (-200, 3), (0, 5), (i128::from(i64::MAX), 7), (i128::MAX / 100, 9)]
        {
            assert_eq!(wide(sum, divisor), rescale.apply(sum, divisor), "{sum} / {divisor}");
        }
        assert_eq!(Rescale::new(4, 2).apply(150, 1), Some(2)); // 0.0150
    }

    /// A chunk's pairs and which segments changed, by narrow sums where they fit, else by wide
    /// ones.
    fn pairs_of_chunk(
        is_narrow: bool,
        sum: &ExactSum<3>,
        slots: &mut [SumTotal<3>],
        of: &[u32],
        deltas: &[SumTotal<3>],
    ) -> (ArrayRef, GroupOutcome) {
        let DataType::Decimal128(precision, scale) = sum.output_type else { panic!("the test is of decimals") };
        let (rescale, limit) = (Rescale::new(sum.input_scale, scale), 10u128.pow(precision.into()));
        let chunk: Chunk<'_, ExactSum<3>> = Chunk { first: 0, slots, slot_of_segment: of, deltas };
        let mut pairs = Pairs::<Decimal128Type>::with_capacity(of.len());
        let mut outcome = GroupOutcome::new(of.len());
        fn step(
            narrow: Narrow<impl Fn(i64, Diff) -> i128>,
            chunk: Chunk<'_, ExactSum<3>>,
            pairs: &mut Pairs<Decimal128Type>,
            outcome: &mut GroupOutcome,
        ) {
            assert!(narrow.fits(&chunk), "the test's sums fit");
            narrow.step(chunk, pairs, outcome);
        }
        let fit = "there are sums that fit";
        match (is_narrow, sum.verb) {
            (true, SumVerb::Sum) => step(rescale.narrow_sum(limit).expect(fit), chunk, &mut pairs, &mut outcome),
            (true, SumVerb::Avg) => step(rescale.narrow_mean(limit).expect(fit), chunk, &mut pairs, &mut outcome),
            (false, _) => {
                let value = |total: &SumTotal<3>| sum.decimal(total, &rescale, limit);
                chunk.each(value, |segment, before, after| pairs.push(&mut outcome, segment, before, after));
            }
        }
        (pairs.finish(&sum.output_type), outcome)
    }

    #[test]
    fn narrow_sums_have_the_results_of_wide_ones() {
        let mut state = 7u64;
        for (round, (verb, digits)) in
            (0..200).zip([(SumVerb::Sum, 0), (SumVerb::Avg, 4), (SumVerb::Sum, 3)].into_iter().cycle())
        {
            let output_type = DataType::Decimal128(38, 2 + digits);
            let sum = ExactSum::<3> { verb, input_scale: 2, output_type };
            // As large as they may be in some rounds: 10^4 has 14 bits, a chunk 128 segments.
            let bits = [8, 30, 62 - 14 - 1][round % 3];
            let mut next = || {
                state += 1;
                spread(state)
            };
            let mut total = |bits: u32, counts: u64| {
                let value = (next() >> (64 - bits)) as i128 * if next() % 2 == 0 { 1 } else { -1 };
                SumTotal { sum: value.into(), count: (next() % counts) as Diff - 2 }
            };
            let slots: Vec<SumTotal<3>> = (0..20).map(|_| total(bits, 30)).collect();
            let deltas: Vec<SumTotal<3>> = (0..WARM_SEGMENTS).map(|_| total(bits - 7, 5)).collect();
            // Segments of a slot lie side by side, or are in order of time.
            let run = if round % 2 == 0 { 9 } else { 1 };
            let of: Vec<u32> = (0..deltas.len() as u32).map(|segment| (segment / run * 7) % 20).collect();
            let (mut narrow, mut wide) = (slots.clone(), slots);
            let (narrow_pairs, narrow_outcome) = pairs_of_chunk(true, &sum, &mut narrow, &of, &deltas);
            let (wide_pairs, wide_outcome) = pairs_of_chunk(false, &sum, &mut wide, &of, &deltas);
            assert_eq!(&narrow_pairs, &wide_pairs, "{verb:?}, {bits} bits");
            assert_eq!(narrow_outcome.changed(), wide_outcome.changed());
            assert_eq!(narrow, wide);
        }
    }

    #[test]
    fn sums_that_may_leave_64_bits_are_wide() {
        let rescale = Rescale::new(2, 6);
        let narrow = rescale.narrow_mean(10u128.pow(38)).expect("there are sums that fit");
        for (slot, delta, fits) in
            [(1i128 << 46, 1i128 << 39, true), (1 << 47, 0, false), (0, 1 << 40, false), (i128::MIN, 0, false)]
        {
            let of = |sum: i128| [SumTotal::<3> { sum: sum.into(), count: 1 }];
            let chunk: Chunk<'_, ExactSum<3>> =
                Chunk { first: 0, slots: &mut of(slot), slot_of_segment: &[0], deltas: &of(delta) };
            assert_eq!(narrow.fits(&chunk), fits, "{slot} and {delta}");
        }
        assert!(Rescale::new(2, 6).narrow_mean(10u128.pow(18)).is_none(), "results may be out of range");
        assert!(Rescale::new(6, 2).narrow_sum(10u128.pow(38)).is_none(), "the divisor is not the count");
    }
}
