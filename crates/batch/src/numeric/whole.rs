//! Whole numbers of any size: 128 bits while these suffice, limbs on the heap beyond.
//!
//! Law: a number that fits 128 bits is held in 128 bits, so that two forms of one number never
//! meet.

use std::cmp::Ordering;

use num_bigint::{BigInt, Sign};

/// A whole number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Whole {
    /// Within 128 bits.
    Small(i128),
    /// Beyond 128 bits.
    Big(Box<BigInt>),
}

use Whole::{Big, Small};

/// The powers of ten below 2^127.
pub(super) const POWERS: [i128; 39] = {
    let mut powers = [1; 39];
    let mut digits = 1;
    while digits < powers.len() {
        powers[digits] = powers[digits - 1] * 10;
        digits += 1;
    }
    powers
};

impl Default for Whole {
    fn default() -> Self {
        Small(0)
    }
}

impl From<i128> for Whole {
    fn from(value: i128) -> Self {
        Small(value)
    }
}

impl From<BigInt> for Whole {
    fn from(value: BigInt) -> Self {
        match i128::try_from(&value) {
            Ok(small) => Small(small),
            Err(_) => Big(Box::new(value)),
        }
    }
}

impl Whole {
    /// The same on the heap.
    pub(super) fn to_big(&self) -> BigInt {
        match self {
            Small(value) => BigInt::from(*value),
            Big(value) => BigInt::clone(value),
        }
    }

    /// The value, if 128 bits hold it.
    pub fn to_i128(&self) -> Option<i128> {
        match self {
            Small(value) => Some(*value),
            Big(_) => None,
        }
    }

    /// Whether it is zero.
    pub fn is_zero(&self) -> bool {
        *self == Small(0)
    }

    /// Whether it is below zero.
    pub fn is_negative(&self) -> bool {
        match self {
            Small(value) => *value < 0,
            Big(value) => value.sign() == Sign::Minus,
        }
    }

    /// Bytes on the heap.
    pub fn heap_bytes(&self) -> usize {
        match self {
            Small(_) => 0,
            Big(value) => size_of::<BigInt>() + (value.bits() as usize).div_ceil(8),
        }
    }

    /// Its opposite.
    pub fn negated(&self) -> Whole {
        match self {
            Small(value) if *value != i128::MIN => Small(-value),
            other => (-other.to_big()).into(),
        }
    }

    /// Without its sign.
    pub fn abs(&self) -> Whole {
        if self.is_negative() { self.negated() } else { self.clone() }
    }

    /// The sum.
    pub fn plus(&self, other: &Whole) -> Whole {
        if let (Small(a), Small(b)) = (self, other)
            && let Some(sum) = a.checked_add(*b)
        {
            return Small(sum);
        }
        (self.to_big() + other.to_big()).into()
    }

    /// The difference.
    pub fn minus(&self, other: &Whole) -> Whole {
        self.plus(&other.negated())
    }

    /// The product.
    pub fn times(&self, other: &Whole) -> Whole {
        if let (Small(a), Small(b)) = (self, other)
            && let Some(product) = a.checked_mul(*b)
        {
            return Small(product);
        }
        (self.to_big() * other.to_big()).into()
    }

    /// The quotient cut towards zero, and the remainder, which has the sign of the dividend. The
    /// divisor is not zero.
    pub fn divided(&self, divisor: &Whole) -> (Whole, Whole) {
        if let (Small(a), Small(b)) = (self, divisor)
            && let (Some(quotient), Some(remainder)) = (a.checked_div(*b), a.checked_rem(*b))
        {
            return (Small(quotient), Small(remainder));
        }
        let (a, b) = (self.to_big(), divisor.to_big());
        let quotient = &a / &b;
        let remainder = a - &quotient * b;
        (quotient.into(), remainder.into())
    }

    /// The quotient rounded half away from zero.
    pub fn divided_rounded(&self, divisor: &Whole) -> Whole {
        let (quotient, remainder) = self.divided(divisor);
        let twice = remainder.abs().times(&Small(2));
        if twice.compare(&divisor.abs()) == Ordering::Less {
            return quotient;
        }
        let away = if self.is_negative() == divisor.is_negative() { 1 } else { -1 };
        quotient.plus(&Small(away))
    }

    /// The order of the two.
    pub fn compare(&self, other: &Whole) -> Ordering {
        match (self, other) {
            (Small(a), Small(b)) => a.cmp(b),
            (Big(a), Big(b)) => a.cmp(b),
            (Small(_), Big(b)) if b.sign() == Sign::Minus => Ordering::Greater,
            (Small(_), Big(_)) => Ordering::Less,
            (Big(_), Small(_)) => other.compare(self).reverse(),
        }
    }

    /// Ten to the power of `digits`.
    pub fn power_of_ten(digits: u32) -> Whole {
        match POWERS.get(digits as usize) {
            Some(power) => Small(*power),
            None => BigInt::from(10).pow(digits).into(),
        }
    }

    /// With so many zeros behind.
    pub fn shifted(&self, digits: u32) -> Whole {
        if digits == 0 || self.is_zero() { self.clone() } else { self.times(&Whole::power_of_ten(digits)) }
    }

    /// Its square root, cut to a whole number. The number is not negative.
    pub fn root(&self) -> Whole {
        match self {
            Small(value) => Small(value.isqrt()),
            Big(value) => value.sqrt().into(),
        }
    }

    /// Decimal digits of its absolute value; 0 of zero.
    pub fn n_digits(&self) -> u32 {
        match self {
            Small(0) => 0,
            Small(value) => value.unsigned_abs().ilog10() + 1,
            Big(value) => value.magnitude().to_radix_be(10).len() as u32,
        }
    }

    /// Its decimal digits, with a sign if negative.
    pub fn to_text(&self) -> String {
        match self {
            Small(value) => value.to_string(),
            Big(value) => value.to_string(),
        }
    }

    /// Of decimal digits; `None` if there are none, or others among them.
    pub fn from_digits(digits: &str) -> Option<Whole> {
        if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
            return None;
        }
        match digits.parse::<i128>() {
            Ok(small) => Some(Small(small)),
            Err(_) => BigInt::parse_bytes(digits.as_bytes(), 10).map(Whole::from),
        }
    }
}
