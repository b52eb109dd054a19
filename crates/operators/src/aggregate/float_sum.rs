//! Sums of floats that are exact, and so do not drift when what was added is taken away again.
//!
//! Law: a [`FloatSum`] is the true sum of what was added (as a rational number), and
//! [`FloatSum::round`] is that sum rounded once, to the nearest double, ties to even. So the result
//! depends neither on the order of additions nor on additions that were undone; the sum over
//! nothing is exactly zero. Infinities and NaN are counted beside the sum.
//!
//! Method: a double is an integer times a power of two. While all bits of a sum fit a window of 127
//! bits (numbers of similar size do: 53 bits each leave 74 for different exponents and carries) it
//! is that window and an exponent. Otherwise it spills into [`Limbs`], a two's complement integer
//! of as many 64-bit limbs as the exponents span (at most 34 for sums of doubles, 67 for sums of
//! squares), and returns to the window when it fits again. After Kulisch's long accumulator, and
//! Neal, "Fast exact summation using small and large superaccumulators" (2015), of whose chunks
//! ours differ by propagating carries at once: limbs are rare.
//!
//! Cost: about 4 ns an addition in the window; 32 bytes a sum.

use anabranch_batch::Diff;

use super::limbs::{Limbs, round_magnitude};

/// Spare low bits when a new exponent is chosen, so that slightly smaller numbers need no shifting.
const SLACK_BITS: i32 = 16;

/// Bits of a window that may be used; one more is the sign.
const WINDOW_BITS: i32 = 126;

/// An exact sum of doubles. See the module's page.
#[derive(Clone, Debug, Default)]
pub struct FloatSum {
    /// The sum is `window * 2^exponent`, if not spilled. (Two words, to need an alignment of 8
    /// only.)
    window: [u64; 2],
    exponent: i32,
    /// What the window cannot hold.
    spill: Option<Box<Spill>>,
}

#[derive(Clone, Debug, Default)]
struct Spill {
    /// The sum, if the window is zero.
    limbs: Limbs,
    /// How many NaN, +infinity and -infinity were added.
    specials: [Diff; 3],
}

impl FloatSum {
    /// Adds `value`, `diff` times.
    #[inline]
    pub fn add(&mut self, value: f64, diff: Diff) {
        match decode(value) {
            Some((integer, exponent)) => self.add_scaled(i128::from(integer) * i128::from(diff), exponent),
            None => self.add_special(value, diff),
        }
    }

    /// Adds the square of `value`, `diff` times.
    #[inline]
    pub(crate) fn add_square(&mut self, value: f64, diff: Diff) {
        let Some((integer, exponent)) = decode(value) else {
            return self.add_special(value * value, diff);
        };
        let square = i128::from(integer) * i128::from(integer);
        match square.checked_mul(i128::from(diff)) {
            Some(product) => self.add_scaled(product, 2 * exponent),
            None => {
                // 106 bits of square, 16 bits of diff at a time.
                self.add_scaled(square * i128::from(diff & 0xffff), 2 * exponent);
                self.add_scaled(square * i128::from(diff >> 16 & 0xffff), 2 * exponent + 16);
                self.add_scaled(square * i128::from(diff >> 32 & 0xffff), 2 * exponent + 32);
                self.add_scaled(square * i128::from(diff >> 48), 2 * exponent + 48);
            }
        }
    }

    /// Adds another sum.
    #[inline]
    pub fn merge(&mut self, other: &FloatSum) {
        self.add_scaled(other.window(), other.exponent);
        if let Some(spill) = &other.spill {
            self.merge_spill(spill);
        }
        if self.spill.is_some() {
            self.unspill();
        }
    }

    /// Whether this is the sum of nothing.
    pub fn is_zero(&self) -> bool {
        self.window == [0; 2] && self.spill.is_none()
    }

    /// The sum, rounded to the nearest double: infinite if it is too large, or if infinities of one
    /// sign were added; NaN if NaN, or infinities of both signs, were.
    pub fn round(&self) -> f64 {
        let Some(spill) = &self.spill else {
            let window = self.window();
            let magnitude = window.unsigned_abs();
            return round_magnitude(&[magnitude as u64, (magnitude >> 64) as u64], self.exponent, window < 0);
        };
        match spill.specials {
            [0, 0, 0] => spill.limbs.round(),
            [0, up, 0] if up > 0 => f64::INFINITY,
            [0, 0, down] if down > 0 => f64::NEG_INFINITY,
            _ => f64::NAN,
        }
    }

    /// Whether NaN or infinities are in the sum.
    pub(crate) fn is_special(&self) -> bool {
        self.spill.as_ref().is_some_and(|spill| spill.specials != [0; 3])
    }

    /// The sum as `(sign, magnitude, exponent)`, specials aside: limbs least significant first.
    pub(crate) fn magnitude(&self) -> (bool, Vec<u64>, i32) {
        match &self.spill {
            None => {
                let magnitude = self.window().unsigned_abs();
                (self.window() < 0, vec![magnitude as u64, (magnitude >> 64) as u64], self.exponent)
            }
            Some(spill) => spill.limbs.magnitude(),
        }
    }

    /// Bytes on the heap.
    pub(crate) fn heap_bytes(&self) -> usize {
        self.spill.as_ref().map_or(0, |spill| size_of::<Spill>() + spill.limbs.heap_bytes())
    }

    #[inline]
    fn window(&self) -> i128 {
        (u128::from(self.window[1]) << 64 | u128::from(self.window[0])) as i128
    }

    #[inline]
    fn set_window(&mut self, window: i128) {
        self.window = [window as u64, (window >> 64) as u64];
    }

    /// Adds `value * 2^exponent`.
    #[inline]
    fn add_scaled(&mut self, value: i128, exponent: i32) {
        let shift = exponent.wrapping_sub(self.exponent);
        if (0..WINDOW_BITS).contains(&shift) && self.spill.is_none() {
            let shifted = value << shift;
            if shifted >> shift == value
                && let Some(sum) = self.window().checked_add(shifted)
            {
                return self.set_window(sum);
            }
        }
        self.add_unaligned(value, exponent);
    }

    /// Adds `value * 2^exponent`, moving the window if that helps, else spilling.
    #[cold]
    fn add_unaligned(&mut self, value: i128, exponent: i32) {
        if value == 0 {
            return;
        }
        if let Some(spill) = &mut self.spill {
            return spill.limbs.add(value, exponent);
        }
        let (window, window_exponent) = trim(self.window(), self.exponent);
        let (value, exponent) = trim(value, exponent);
        if window == 0 {
            let slack = SLACK_BITS.min(WINDOW_BITS - bits(value)).max(0);
            self.exponent = exponent - slack;
            return self.set_window(value << slack);
        }
        // One bit more than either may be needed for the sum.
        let base = window_exponent.min(exponent);
        let top = (bits(window) + window_exponent).max(bits(value) + exponent);
        if top - base < WINDOW_BITS {
            let slack = SLACK_BITS.min(WINDOW_BITS - 1 - (top - base));
            self.exponent = base - slack;
            let aligned = (window << (window_exponent - self.exponent)) + (value << (exponent - self.exponent));
            return self.set_window(aligned);
        }
        let spill = self.spill_window();
        spill.limbs.add(value, exponent);
    }

    fn add_special(&mut self, value: f64, diff: Diff) {
        let kind = if value.is_nan() {
            0
        } else if value > 0.0 {
            1
        } else {
            2
        };
        self.spill_window().specials[kind] += diff;
    }

    fn merge_spill(&mut self, other: &Spill) {
        let spill = self.spill_window();
        spill.limbs.merge(&other.limbs);
        spill.specials.iter_mut().zip(other.specials).for_each(|(count, change)| *count += change);
    }

    /// Moves the window into the limbs.
    fn spill_window(&mut self) -> &mut Spill {
        let (window, exponent) = (self.window(), self.exponent);
        self.set_window(0);
        let spill = self.spill.get_or_insert_with(Box::default);
        if window != 0 {
            spill.limbs.add(window, exponent);
        }
        spill
    }

    /// Moves the limbs back into the window, if that is possible.
    #[cold]
    fn unspill(&mut self) {
        let Some(spill) = &mut self.spill else { return };
        if spill.specials == [0; 3]
            && let Some((value, exponent)) = spill.limbs.as_window()
        {
            self.spill = None;
            self.exponent = exponent;
            self.set_window(value);
        }
    }
}

/// A finite double as integer times power of two; `None` for others.
#[inline]
fn decode(value: f64) -> Option<(i64, i32)> {
    let word = value.to_bits();
    let biased = (word >> 52 & 0x7ff) as i32;
    let fraction = (word & ((1 << 52) - 1)) as i64;
    if biased == 0x7ff {
        return None;
    }
    let integer = if biased == 0 { fraction } else { fraction | 1 << 52 };
    Some((if value.is_sign_negative() { -integer } else { integer }, biased.max(1) - 1075))
}

/// The same number with an odd integer.
fn trim(value: i128, exponent: i32) -> (i128, i32) {
    let zeros = if value == 0 { 0 } else { value.trailing_zeros() };
    (value >> zeros, exponent + zeros as i32)
}

/// Bits of the absolute value.
fn bits(value: i128) -> i32 {
    (128 - value.unsigned_abs().leading_zeros()) as i32
}

#[cfg(test)]
#[path = "float_sum_tests.rs"]
mod tests;
