//! Wide integers for exact sums.
//!
//! Law: arithmetic is modulo 2^(64 N), so sums are exact whatever passes through on the way, as
//! long as what remains fits. 192 bits hold every sum of 2^64 decimals of 38 digits; 320 bits hold
//! those of 76 digits.

use anabranch_batch::Diff;
use arrow::datatypes::i256;

/// A two's complement integer of `N` 64-bit limbs, least significant first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Fixed<const N: usize>([u64; N]);

impl<const N: usize> Default for Fixed<N> {
    fn default() -> Self {
        Fixed([0; N])
    }
}

impl<const N: usize> From<i128> for Fixed<N> {
    #[inline]
    fn from(value: i128) -> Self {
        let mut limbs = [(value >> 127) as u64; N];
        limbs[0] = value as u64;
        limbs[1] = (value >> 64) as u64;
        Fixed(limbs)
    }
}

impl<const N: usize> From<i256> for Fixed<N> {
    fn from(value: i256) -> Self {
        let (low, high) = value.to_parts();
        let mut limbs = [(high >> 127) as u64; N];
        let parts = [low as u64, (low >> 64) as u64, high as u64, (high >> 64) as u64];
        limbs.iter_mut().zip(parts).for_each(|(limb, part)| *limb = part);
        Fixed(limbs)
    }
}

impl<const N: usize> Fixed<N> {
    /// Adds `other`.
    #[inline]
    pub(crate) fn add(&mut self, other: &Fixed<N>) {
        let mut carry = false;
        for (limb, addend) in self.0.iter_mut().zip(other.0) {
            let (sum, first) = limb.overflowing_add(addend);
            let (sum, second) = sum.overflowing_add(u64::from(carry));
            *limb = sum;
            carry = first | second;
        }
    }

    /// `self` times `factor`.
    pub(crate) fn times(self, factor: Diff) -> Fixed<N> {
        let mut carry = 0u128;
        let product = self.0.map(|limb| {
            let product = u128::from(limb) * u128::from(factor.unsigned_abs()) + carry;
            carry = product >> 64;
            product as u64
        });
        if factor < 0 { Fixed(product).negated() } else { Fixed(product) }
    }

    pub(crate) fn is_zero(&self) -> bool {
        self.0 == [0; N]
    }

    /// Zero if and only if the value fits `bits` bits and a sign.
    #[inline]
    pub(crate) fn beyond(&self, bits: u32) -> u64 {
        let sign = ((self.0[0] as i64) >> 63) as u64;
        self.0[1..].iter().fold((self.0[0] ^ sign) >> bits, |beyond, &limb| beyond | (limb ^ sign))
    }

    /// The 64 lowest bits: the value, where [`beyond`](Fixed::beyond) 63 bits there is nothing.
    #[inline]
    pub(crate) fn low(&self) -> i64 {
        self.0[0] as i64
    }

    /// The value, if it fits.
    #[inline]
    pub(crate) fn to_i128(self) -> Option<i128> {
        let value = (u128::from(self.0[1]) << 64 | u128::from(self.0[0])) as i128;
        let sign = (value >> 127) as u64;
        self.0[2..].iter().all(|&limb| limb == sign).then_some(value)
    }

    /// The value, if it fits.
    pub(crate) fn to_i256(self) -> Option<i256> {
        let sign = ((self.0[N - 1] as i64) >> 63) as u64;
        let limb = |index: usize| u128::from(self.0.get(index).copied().unwrap_or(sign));
        let value = i256::from_parts(limb(1) << 64 | limb(0), (limb(3) << 64 | limb(2)) as i128);
        (Fixed::from(value) == self).then_some(value)
    }

    /// The nearest double, or nearly so beyond 128 bits.
    pub(crate) fn to_f64(self) -> f64 {
        match self.to_i128() {
            Some(value) => value as f64,
            None if (self.0[N - 1] as i64) < 0 => -self.negated().to_f64(),
            None => self.0.iter().rev().fold(0.0, |value, &limb| value * 2f64.powi(64) + limb as f64),
        }
    }

    fn negated(self) -> Fixed<N> {
        let mut result = Fixed(self.0.map(|limb| !limb));
        result.add(&Fixed::from(1i128));
        result
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_and_products_are_exact() {
        let mut sum = Fixed::<3>::default();
        for _ in 0..1000 {
            sum.add(&Fixed::from(i128::MAX));
        }
        assert_eq!(sum.to_i128(), None);
        assert_eq!(sum, Fixed::from(i128::MAX).times(1000));
        assert_eq!(sum.to_i256(), Some(i256::from_i128(i128::MAX) * i256::from_i128(1000)));
        sum.add(&Fixed::from(i128::MAX).times(-999));
        assert_eq!(sum.to_i128(), Some(i128::MAX));
        sum.add(&Fixed::from(-i128::MAX));
        sum.add(&Fixed::from(-5i128));
        assert_eq!(sum.to_i128(), Some(-5));
        assert_eq!((sum.times(-7).to_i128(), sum.to_f64()), (Some(35), -5.0));
    }

    #[test]
    fn narrow_values_are_told_from_wide_ones() {
        for (value, bits) in
            [(0i128, 0), (-1, 0), (1, 1), (-2, 1), (255, 8), (-256, 8), (i64::MAX.into(), 63), (i64::MIN.into(), 63)]
        {
            let fixed = Fixed::<3>::from(value);
            assert_eq!((fixed.beyond(bits), fixed.low()), (0, value as i64), "{value}");
            assert!(bits == 0 || fixed.beyond(bits - 1) != 0, "{value}");
        }
        for value in [1i128 << 63, -(1 << 63) - 1, 1 << 64, i128::MIN] {
            assert!(Fixed::<3>::from(value).beyond(63) != 0, "{value}");
        }
    }

    #[test]
    fn five_limbs_hold_256_bit_sums() {
        let mut sum = Fixed::<5>::from(i256::MAX);
        sum.add(&Fixed::from(i256::MAX));
        assert_eq!(sum.to_i256(), None);
        sum.add(&Fixed::from(i256::MAX).times(-1));
        assert_eq!(sum.to_i256(), Some(i256::MAX));
        assert_eq!(Fixed::<5>::from(i256::MIN).to_i256(), Some(i256::MIN));
        assert!(Fixed::<5>::from(i256::MIN).to_f64() < -5.7e76);
    }
}
