//! Numbers with as many digits as they need, and their arithmetic: PostgreSQL's `numeric`.
//!
//! Law: sums, differences, products and remainders are exact. Quotients, roots and logarithms have
//! as many digits as PostgreSQL gives them (its `numeric.c`, of version 15), which depend on the
//! operands' digits; the last one is rounded half away from zero. What has more than 131072 digits
//! before the point, or 16383 after, is an error.

use std::cmp::Ordering;

use super::whole::Whole;

/// Most digits before the point.
const WHOLE_DIGITS_MAX: u32 = 131_072;

/// Most digits after the point.
const SCALE_MAX: u32 = 16_383;

/// Most digits after the point of a quotient, root or logarithm.
pub(super) const RESULT_SCALE_MAX: i64 = 1000;

/// Digits of a quotient, root or logarithm, at least.
pub(super) const RESULT_DIGITS_MIN: i64 = 16;

/// Digits in one of PostgreSQL's: the scales of its results go in such steps.
pub(super) const GROUP_DIGITS: i64 = 4;

/// A number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Number {
    /// Less than all others.
    NegativeInfinity,
    /// What has a last digit.
    Finite(Finite),
    /// Greater than all finite ones.
    Infinity,
    /// Greater than all others, and equal to itself.
    NaN,
}

/// A number with a last digit.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Finite {
    /// Its digits, without the point.
    pub coefficient: Whole,
    /// How many of them stand after the point. (The same number may be written with more zeros;
    /// operations on two scales regard them, as PostgreSQL does.)
    pub scale: u32,
}

/// Why there is no result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The divisor is zero.
    DivisionByZero,
    /// More digits than a number may have.
    Overflow,
    /// The square root of a negative number.
    RootOfNegative,
    /// The logarithm of zero.
    LogarithmOfZero,
    /// The logarithm of a negative number.
    LogarithmOfNegative,
    /// A negative number to a power that is not whole.
    PowerOfNegative,
    /// Zero to a negative power.
    ZeroToNegative,
}

impl std::fmt::Display for Fault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Fault::DivisionByZero => "division by zero",
            Fault::Overflow => "value overflows numeric format",
            Fault::RootOfNegative => "cannot take square root of a negative number",
            Fault::LogarithmOfZero => "cannot take logarithm of zero",
            Fault::LogarithmOfNegative => "cannot take logarithm of a negative number",
            Fault::PowerOfNegative => "a negative number raised to a non-integer power yields a complex result",
            Fault::ZeroToNegative => "zero raised to a negative power is undefined",
        })
    }
}

impl std::error::Error for Fault {}

/// A number, or why there is none.
pub type Outcome = Result<Number, Fault>;

/// What is found before digits matter.
enum Pair<'a> {
    Finite(&'a Finite, &'a Finite),
    /// One of them is infinite or NaN.
    Special,
}

fn pair<'a>(a: &'a Number, b: &'a Number) -> Pair<'a> {
    match (a, b) {
        (Number::Finite(a), Number::Finite(b)) => Pair::Finite(a, b),
        _ => Pair::Special,
    }
}

impl Number {
    /// Zero.
    pub const ZERO: Number = Number::Finite(Finite { coefficient: Whole::Small(0), scale: 0 });

    /// A decimal with so many digits after the point.
    pub fn new(coefficient: impl Into<Whole>, scale: u32) -> Number {
        Number::Finite(Finite { coefficient: coefficient.into(), scale })
    }

    /// Whether it is NaN.
    pub fn is_nan(&self) -> bool {
        *self == Number::NaN
    }

    /// -1, 0 or 1; `None` of NaN.
    pub fn sign(&self) -> Option<i32> {
        match self {
            Number::NaN => None,
            Number::Infinity => Some(1),
            Number::NegativeInfinity => Some(-1),
            Number::Finite(finite) => Some(finite.sign()),
        }
    }

    fn infinite(sign: i32) -> Number {
        match sign {
            1.. => Number::Infinity,
            0 => Number::NaN,
            _ => Number::NegativeInfinity,
        }
    }

    /// Its opposite.
    pub fn negated(&self) -> Number {
        match self {
            Number::NaN => Number::NaN,
            Number::Infinity => Number::NegativeInfinity,
            Number::NegativeInfinity => Number::Infinity,
            Number::Finite(finite) => {
                Number::Finite(Finite { coefficient: finite.coefficient.negated(), scale: finite.scale })
            }
        }
    }

    /// Without its sign.
    pub fn abs(&self) -> Number {
        if self.sign().is_some_and(|sign| sign < 0) { self.negated() } else { self.clone() }
    }

    /// The sum.
    ///
    /// # Errors
    /// If there are too many digits, as of all operations.
    pub fn plus(&self, other: &Number) -> Outcome {
        match pair(self, other) {
            Pair::Finite(a, b) => {
                let (a, b, scale) = a.aligned(b);
                Finite { coefficient: a.plus(&b), scale }.checked()
            }
            Pair::Special => Ok(match (self, other) {
                (Number::NaN, _) | (_, Number::NaN) => Number::NaN,
                (Number::Finite(_), infinite) | (infinite, Number::Finite(_)) => infinite.clone(),
                (a, b) if a == b => a.clone(),
                _ => Number::NaN,
            }),
        }
    }

    /// The difference.
    ///
    /// # Errors
    /// As of [`plus`](Number::plus).
    pub fn minus(&self, other: &Number) -> Outcome {
        self.plus(&other.negated())
    }

    /// The product.
    ///
    /// # Errors
    /// As of [`plus`](Number::plus).
    pub fn times(&self, other: &Number) -> Outcome {
        match pair(self, other) {
            Pair::Finite(a, b) => {
                let product = Finite { coefficient: a.coefficient.times(&b.coefficient), scale: a.scale + b.scale };
                let product = if product.scale > SCALE_MAX { product.rounded(SCALE_MAX.into()) } else { product };
                product.checked()
            }
            Pair::Special => Ok(match (self.sign(), other.sign()) {
                (Some(a), Some(b)) => Number::infinite(a * b),
                _ => Number::NaN,
            }),
        }
    }

    /// The quotient, with sixteen digits at least.
    ///
    /// # Errors
    /// Of zero as divisor.
    pub fn divided(&self, divisor: &Number) -> Outcome {
        if let (false, Number::Finite(divisor)) = (self.is_nan(), divisor)
            && divisor.sign() == 0
        {
            return Err(Fault::DivisionByZero);
        }
        match pair(self, divisor) {
            Pair::Finite(a, b) => a.divided(b, a.quotient_scale(b)).checked(),
            Pair::Special => Ok(match (self, divisor) {
                (Number::NaN, _) | (_, Number::NaN) => Number::NaN,
                (Number::Finite(_), _) => Number::ZERO,
                (infinite, Number::Finite(divisor)) if divisor.sign() < 0 => infinite.negated(),
                (infinite, Number::Finite(_)) => infinite.clone(),
                _ => Number::NaN,
            }),
        }
    }

    /// What a division that is cut to a whole number leaves.
    ///
    /// # Errors
    /// Of zero as divisor.
    pub fn remainder(&self, divisor: &Number) -> Outcome {
        if let (false, Number::Finite(divisor)) = (self.is_nan(), divisor)
            && divisor.sign() == 0
        {
            return Err(Fault::DivisionByZero);
        }
        match pair(self, divisor) {
            Pair::Finite(a, b) => {
                let (a, b, scale) = a.aligned(b);
                Finite { coefficient: a.divided(&b).1, scale }.checked()
            }
            Pair::Special => Ok(match (self, divisor) {
                (Number::Finite(_), Number::Infinity | Number::NegativeInfinity) => self.clone(),
                _ => Number::NaN,
            }),
        }
    }

    /// Rounded half away from zero, to so many digits after the point (before it, if negative).
    ///
    /// # Errors
    /// As of [`plus`](Number::plus).
    pub fn rounded(&self, places: i64) -> Outcome {
        self.each_finite(|finite| finite.rounded(places))
    }

    /// Cut to so many digits after the point (before it, if negative).
    ///
    /// # Errors
    /// As of [`plus`](Number::plus).
    pub fn cut(&self, places: i64) -> Outcome {
        self.each_finite(|finite| finite.cut(places))
    }

    /// The least whole number that is not less.
    ///
    /// # Errors
    /// As of [`plus`](Number::plus).
    pub fn ceiling(&self) -> Outcome {
        self.each_finite(|finite| finite.next_whole(1))
    }

    /// The greatest whole number that is not greater.
    ///
    /// # Errors
    /// As of [`plus`](Number::plus).
    pub fn floor(&self) -> Outcome {
        self.each_finite(|finite| finite.next_whole(-1))
    }

    fn each_finite(&self, of: impl Fn(&Finite) -> Finite) -> Outcome {
        match self {
            Number::Finite(finite) => of(finite).checked(),
            special => Ok(special.clone()),
        }
    }

    /// NaN is greater than all others.
    pub fn compare(&self, other: &Number) -> Ordering {
        let rank = |number: &Number| match number {
            Number::NegativeInfinity => 0,
            Number::Finite(_) => 1,
            Number::Infinity => 2,
            Number::NaN => 3,
        };
        match pair(self, other) {
            Pair::Finite(a, b) => {
                let (a, b, _) = a.aligned(b);
                a.compare(&b)
            }
            Pair::Special => rank(self).cmp(&rank(other)),
        }
    }
}

impl Finite {
    /// -1, 0 or 1.
    pub fn sign(&self) -> i32 {
        match (self.coefficient.is_zero(), self.coefficient.is_negative()) {
            (true, _) => 0,
            (false, true) => -1,
            (false, false) => 1,
        }
    }

    /// Without zeros at the end of its places.
    pub fn shortest(mut self) -> Finite {
        while self.scale > 0 {
            match self.coefficient.divided(&Whole::Small(10)) {
                (coefficient, Whole::Small(0)) => self = Finite { coefficient, scale: self.scale - 1 },
                _ => break,
            }
        }
        self
    }

    /// The number, if it has not too many digits.
    pub(super) fn checked(self) -> Outcome {
        let fits = match self.coefficient {
            Whole::Small(_) => true,
            Whole::Big(_) => self.coefficient.n_digits() <= WHOLE_DIGITS_MAX + self.scale,
        };
        if fits && self.scale <= SCALE_MAX { Ok(Number::Finite(self)) } else { Err(Fault::Overflow) }
    }

    /// Both coefficients at the greater scale.
    fn aligned(&self, other: &Finite) -> (Whole, Whole, u32) {
        let scale = self.scale.max(other.scale);
        (self.coefficient.shifted(scale - self.scale), other.coefficient.shifted(scale - other.scale), scale)
    }

    /// At another scale, rounded half away from zero where digits go.
    pub fn rounded(&self, places: i64) -> Finite {
        self.at(places, Whole::divided_rounded)
    }

    fn cut(&self, places: i64) -> Finite {
        self.at(places, |value, unit| value.divided(unit).0)
    }

    fn at(&self, places: i64, divide: impl Fn(&Whole, &Whole) -> Whole) -> Finite {
        let dropped = i64::from(self.scale) - places;
        if dropped <= 0 {
            return self.clone();
        }
        // More digits than there are leave nothing, or a carry.
        let dropped = dropped.min(i64::from(self.coefficient.n_digits()) + 1).max(0) as u32;
        let unit = Whole::power_of_ten(dropped);
        let value = divide(&self.coefficient, &unit);
        match u32::try_from(places) {
            _ if value.is_zero() => Finite { coefficient: value, scale: places.max(0) as u32 },
            Ok(scale) => Finite { coefficient: value, scale },
            Err(_) => Finite { coefficient: value.shifted(places.unsigned_abs() as u32), scale: 0 },
        }
    }

    fn next_whole(&self, sign: i32) -> Finite {
        let (value, rest) = self.coefficient.divided(&Whole::power_of_ten(self.scale));
        let moves = !rest.is_zero() && rest.is_negative() == (sign < 0);
        let value = if moves { value.plus(&Whole::Small(sign.into())) } else { value };
        Finite { coefficient: value, scale: 0 }
    }

    /// The quotient at a scale.
    pub fn divided(&self, divisor: &Finite, scale: u32) -> Finite {
        // a / 10^s / (b / 10^t) at scale r is a 10^(r + t - s) / b.
        let shift = i64::from(scale) + i64::from(divisor.scale) - i64::from(self.scale);
        let (numerator, denominator) = match shift {
            0.. => (self.coefficient.shifted(shift as u32), divisor.coefficient.clone()),
            _ => (self.coefficient.clone(), divisor.coefficient.shifted(shift.unsigned_abs() as u32)),
        };
        Finite { coefficient: numerator.divided_rounded(&denominator), scale }
    }

    /// PostgreSQL's scale of a quotient (`select_div_scale`).
    pub fn quotient_scale(&self, divisor: &Finite) -> u32 {
        let ((weight, first), (divisor_weight, divisor_first)) = (self.leading(), divisor.leading());
        let mut quotient_weight = weight - divisor_weight;
        if first <= divisor_first {
            quotient_weight -= 1;
        }
        self.result_scale(Some(divisor), quotient_weight * GROUP_DIGITS)
    }

    /// The scale of a result whose first digit stands in this place, counted from the point.
    pub(super) fn result_scale(&self, other: Option<&Finite>, weight: i64) -> u32 {
        let scale = (RESULT_DIGITS_MIN - weight).max(self.scale.into());
        let scale = scale.max(other.map_or(0, |other| other.scale.into()));
        scale.clamp(0, RESULT_SCALE_MAX) as u32
    }

    /// The weight of the first group of four digits (0 before the point), and the group.
    pub(super) fn leading(&self) -> (i64, i64) {
        let n_digits = i64::from(self.coefficient.n_digits());
        if n_digits == 0 {
            return (0, 0);
        }
        let n_whole = n_digits - i64::from(self.scale);
        let weight = (n_whole - 1).div_euclid(GROUP_DIGITS);
        // Digits of the first group, all of them before the group's end.
        let n_first = n_whole - weight * GROUP_DIGITS;
        (weight, self.first_digits(n_digits, n_first))
    }

    /// The first `n` of so many digits, with zeros behind if there are fewer.
    pub(super) fn first_digits(&self, n_digits: i64, n: i64) -> i64 {
        let value = self.coefficient.abs();
        let value = match n_digits - n {
            behind @ 0.. => value.divided(&Whole::power_of_ten(behind as u32)).0,
            missing => value.shifted(missing.unsigned_abs() as u32),
        };
        value.to_i128().map_or(i64::MAX, |value| value as i64)
    }
}
