//! Integers times powers of two, as long as needed.
//!
//! Law: a [`Limbs`] is exactly the sum of what was added to it; its top limb is sign only, so that
//! a carry always has room. Cost: O(limbs) at worst an addition; typically three, as a carry seldom
//! runs far.

/// A two's complement integer times `2^exponent`.
#[derive(Clone, Debug, Default)]
pub(crate) struct Limbs {
    /// Least significant first; none for zero.
    limbs: Vec<u64>,
    /// Exponent of the first limb, a multiple of 64.
    exponent: i32,
}

impl Limbs {
    /// Adds `value * 2^exponent`.
    pub(crate) fn add(&mut self, value: i128, exponent: i32) {
        let offset = self.make_room(exponent);
        let (start, shift) = (offset / 64, offset % 64);
        let sign = (value >> 127) as u64;
        let high = if shift == 0 { sign } else { (value >> (128 - shift)) as u64 };
        let low = (value as u128) << shift;
        let parts = [low as u64, (low >> 64) as u64, high];

        let mut carry = false;
        for (index, limb) in self.limbs[start..].iter_mut().enumerate() {
            let addend = parts.get(index).copied().unwrap_or(sign);
            if index >= parts.len() && addend.wrapping_add(u64::from(carry)) == 0 {
                break;
            }
            let (sum, first) = limb.overflowing_add(addend);
            let (sum, second) = sum.overflowing_add(u64::from(carry));
            *limb = sum;
            carry = first | second;
        }
    }

    /// Adds `factor * magnitude * 2^exponent`, `magnitude` given least significant limb first.
    pub(crate) fn add_product(&mut self, magnitude: &[u64], exponent: i32, factor: u64, is_negative: bool) {
        for (index, &limb) in magnitude.iter().enumerate() {
            let product = u128::from(limb) * u128::from(factor);
            for (part, offset) in [(product as u64, 0), ((product >> 64) as u64, 64)] {
                if part != 0 {
                    let part = i128::from(part);
                    self.add(if is_negative { -part } else { part }, exponent + 64 * index as i32 + offset);
                }
            }
        }
    }

    /// Adds another number.
    pub(crate) fn merge(&mut self, other: &Limbs) {
        for (index, &limb) in other.limbs.iter().enumerate() {
            let is_top = index + 1 == other.limbs.len();
            let value = if is_top { i128::from(limb as i64) } else { i128::from(limb) };
            if value != 0 {
                self.add(value, other.exponent + 64 * index as i32);
            }
        }
    }

    /// The number as an integer of at most 126 bits and an exponent, if it has no more. Trims the
    /// limbs.
    pub(crate) fn as_window(&mut self) -> Option<(i128, i32)> {
        self.trim();
        let (is_negative, magnitude, exponent) = self.magnitude();
        let zeros = magnitude.iter().take_while(|&&limb| limb == 0).count();
        let magnitude = &magnitude[zeros..];
        let Some(&first) = magnitude.first() else { return Some((0, 0)) };
        // An odd integer of at most 126 bits may lie in three limbs.
        let shift = first.trailing_zeros();
        let limb = |index: usize| magnitude.get(index).copied().unwrap_or(0);
        let used = magnitude.len() - magnitude.iter().rev().take_while(|&&limb| limb == 0).count();
        let top = 64 * used as u32 - limb(used - 1).leading_zeros();
        if top - shift > 126 {
            return None;
        }
        let low = (u128::from(limb(1)) << 64 | u128::from(first)) >> shift;
        let high = if shift == 0 { 0 } else { u128::from(limb(2)) << (128 - shift) };
        let value = (low | high) as i128;
        Some((if is_negative { -value } else { value }, exponent + 64 * zeros as i32 + shift as i32))
    }

    /// The number as sign, absolute value and exponent.
    pub(crate) fn magnitude(&self) -> (bool, Vec<u64>, i32) {
        if !self.is_negative() {
            return (false, self.limbs.clone(), self.exponent);
        }
        let mut carry = true;
        let negate = |limb: &u64| {
            let (limb, overflow) = (!limb).overflowing_add(u64::from(carry));
            carry = overflow;
            limb
        };
        (true, self.limbs.iter().map(negate).collect(), self.exponent)
    }

    /// The nearest double.
    pub(crate) fn round(&self) -> f64 {
        let (is_negative, magnitude, exponent) = self.magnitude();
        round_magnitude(&magnitude, exponent, is_negative)
    }

    /// Less than zero?
    pub(crate) fn is_negative(&self) -> bool {
        self.limbs.last().is_some_and(|&top| (top as i64) < 0)
    }

    /// Makes the number zero; keeps the memory.
    pub(crate) fn clear(&mut self) {
        self.limbs.clear();
    }

    pub(crate) fn heap_bytes(&self) -> usize {
        self.limbs.capacity() * size_of::<u64>()
    }

    /// Extends the limbs so that 128 bits at `exponent` can be added; returns the offset of its
    /// first bit.
    fn make_room(&mut self, exponent: i32) -> usize {
        let base = exponent.div_euclid(64) * 64;
        if self.limbs.is_empty() {
            self.exponent = base;
        }
        if base < self.exponent {
            let missing = ((self.exponent - base) / 64) as usize;
            self.limbs.splice(0..0, std::iter::repeat_n(0, missing));
            self.exponent = base;
        }
        let offset = (exponent - self.exponent) as usize;
        let sign = if self.is_negative() { !0 } else { 0 };
        let len_min = offset / 64 + 4;
        if self.limbs.len() < len_min {
            self.limbs.resize(len_min, sign);
        }
        if self.limbs.last() != Some(&sign) {
            self.limbs.push(sign);
        }
        offset
    }

    /// Drops zero limbs at the bottom and sign limbs at the top.
    fn trim(&mut self) {
        let sign = if self.is_negative() { !0 } else { 0 };
        let needed = |limbs: &[u64]| match limbs {
            [.., before, top] => *top != sign || (*before as i64) >> 63 != sign as i64,
            [top] => *top != 0,
            [] => true,
        };
        while !needed(&self.limbs) {
            self.limbs.pop();
        }
        let zeros = self.limbs.iter().take_while(|&&limb| limb == 0).count();
        self.limbs.drain(..zeros);
        self.exponent += 64 * zeros as i32;
    }
}

/// `magnitude * 2^exponent`, limbs least significant first, rounded to the nearest double, ties to
/// even.
pub(crate) fn round_magnitude(magnitude: &[u64], exponent: i32, is_negative: bool) -> f64 {
    let used = magnitude.len() - magnitude.iter().rev().take_while(|&&limb| limb == 0).count();
    let Some(top) = used.checked_sub(1) else {
        return 0.0;
    };
    let bits = 64 * used as i32 - magnitude[top].leading_zeros() as i32;
    // Position of the result's last bit: 53 bits, fewer for subnormal numbers.
    let last = (bits - 53).max(-1074 - exponent);
    let rounded = if last <= 0 {
        bits_from(&magnitude[..used], 0)
    } else if last > bits {
        0
    } else {
        let kept = bits_from(&magnitude[..used], last as usize);
        let half = bit(magnitude, last as usize - 1);
        let is_more = half && has_bits_below(magnitude, last as usize - 1);
        kept + u64::from(half && (is_more || kept % 2 == 1))
    };
    let value = scale(rounded as f64, exponent + last.max(0));
    if is_negative { -value } else { value }
}

/// 64 bits from position `from`.
fn bits_from(limbs: &[u64], from: usize) -> u64 {
    let (index, shift) = (from / 64, from % 64);
    let limb = |index: usize| limbs.get(index).copied().unwrap_or(0);
    if shift == 0 { limb(index) } else { limb(index) >> shift | limb(index + 1) << (64 - shift) }
}

fn bit(limbs: &[u64], position: usize) -> bool {
    limbs.get(position / 64).is_some_and(|limb| limb >> (position % 64) & 1 == 1)
}

fn has_bits_below(limbs: &[u64], position: usize) -> bool {
    let (index, shift) = (position / 64, position % 64);
    limbs[..index].iter().any(|&limb| limb != 0) || limbs[index] & ((1 << shift) - 1) != 0
}

/// `value * 2^exponent`, for a value of at most 53 bits and a product that is a double or too large
/// for one.
fn scale(value: f64, exponent: i32) -> f64 {
    let power = |exponent: i32| f64::from_bits(((exponent + 1023) as u64) << 52);
    match exponent {
        ..-1022 => value * power(-1022) * power((exponent + 1022).max(-1022)),
        -1022..=1023 => value * power(exponent),
        _ => value * power(1023) * power((exponent - 1023).min(1023)),
    }
}
