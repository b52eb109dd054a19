//! Roots, exponentials, logarithms and powers.
//!
//! Law: as many digits as PostgreSQL gives (`numeric.c` of version 15), of which the last is
//! rounded from some thirty more. Computed with whole numbers at a fixed scale; nothing depends on
//! floats but the scales, as in PostgreSQL.

use super::number::{Fault, Finite, GROUP_DIGITS, Number, Outcome, RESULT_DIGITS_MIN, RESULT_SCALE_MAX};
use super::text::to_f64;
use super::whole::Whole;

/// Digits that are computed beyond those of a result.
const GUARD_DIGITS: u32 = 30;

/// Exponentials of greater numbers are not computed.
const EXPONENT_MAX: f64 = 6000.0;

const LOG10_E: f64 = std::f64::consts::LOG10_E;

const ONE: Finite = Finite { coefficient: Whole::Small(1), scale: 0 };

impl Number {
    /// The square root.
    ///
    /// # Errors
    /// Of negative numbers.
    pub fn square_root(&self) -> Outcome {
        match self {
            Number::Finite(finite) if finite.sign() >= 0 => {
                let (weight, _) = finite.leading();
                let scale = finite.result_scale(None, (weight + 1) * GROUP_DIGITS / 2 - 1);
                finite.square_root(scale).checked()
            }
            Number::Finite(_) | Number::NegativeInfinity => Err(Fault::RootOfNegative),
            special => Ok(special.clone()),
        }
    }

    /// e to the power of the number.
    ///
    /// # Errors
    /// Where the result has too many digits.
    pub fn exponential(&self) -> Outcome {
        match self {
            Number::Finite(finite) => {
                let weight = (to_f64(self) * LOG10_E).clamp(-2000.0, 2000.0);
                finite.exponential(finite.result_scale(None, weight as i64))
            }
            Number::NegativeInfinity => Ok(Number::ZERO),
            special => Ok(special.clone()),
        }
    }

    /// The natural logarithm.
    ///
    /// # Errors
    /// Of zero and negative numbers.
    pub fn logarithm(&self) -> Outcome {
        match self {
            Number::Finite(finite) => {
                check_logarithm(finite)?;
                let scale = finite.result_scale(None, finite.logarithm_weight());
                finite.logarithm(scale).checked()
            }
            Number::NegativeInfinity => Err(Fault::LogarithmOfNegative),
            special => Ok(special.clone()),
        }
    }

    /// The logarithm to a base.
    ///
    /// # Errors
    /// Of zero and negative numbers, and where the base is one.
    pub fn logarithm_to(&self, base: &Number) -> Outcome {
        for number in [base, self] {
            match number {
                Number::Finite(finite) => check_logarithm(finite)?,
                Number::NegativeInfinity => return Err(Fault::LogarithmOfNegative),
                Number::NaN | Number::Infinity => {}
            }
        }
        match (base, self) {
            (Number::Finite(base), Number::Finite(finite)) => {
                let (base_weight, weight) = (base.logarithm_weight(), finite.logarithm_weight());
                let scale = finite.result_scale(Some(base), weight - base_weight);
                let precise = |weight: i64| (i64::from(scale + GUARD_DIGITS) - weight).max(0) as u32;
                let (divisor, dividend) =
                    (base.logarithm(precise(-weight.abs())), finite.logarithm(precise(-base_weight.abs())));
                if divisor.sign() == 0 {
                    return Err(Fault::DivisionByZero);
                }
                dividend.divided(&divisor, scale).checked()
            }
            (Number::NaN, _) | (_, Number::NaN) | (Number::Infinity, Number::Infinity) => Ok(Number::NaN),
            (Number::Infinity, _) => Ok(Number::ZERO),
            _ => Ok(Number::Infinity),
        }
    }

    /// The number to the power of another.
    ///
    /// # Errors
    /// Of zero to a negative power, of a negative number to one that is not whole, and where the
    /// result has too many digits.
    pub fn power(&self, exponent: &Number) -> Outcome {
        match (self, exponent) {
            (Number::Finite(base), Number::Finite(exponent)) => base.power(exponent),
            _ => self.power_of_special(exponent),
        }
    }

    fn power_of_special(&self, exponent: &Number) -> Outcome {
        let one = Number::new(1, 0);
        let is_zero = |number: &Number| number.sign() == Some(0);
        if is_zero(exponent) || self.compare(&one).is_eq() {
            return Ok(one);
        }
        if self.is_nan() || exponent.is_nan() {
            return Ok(Number::NaN);
        }
        let (sign, exponent_sign) = (self.sign().unwrap_or(0), exponent.sign().unwrap_or(0));
        if sign == 0 && exponent_sign < 0 {
            return Err(Fault::ZeroToNegative);
        }
        if sign == 0 {
            return Ok(Number::ZERO);
        }
        let Number::Finite(finite) = exponent else {
            // To an infinite power: what is beyond one grows, what is below vanishes.
            return Ok(match (self.abs().compare(&one), exponent_sign) {
                (std::cmp::Ordering::Equal, _) => one,
                (std::cmp::Ordering::Greater, 1) | (std::cmp::Ordering::Less, -1) => Number::Infinity,
                _ => Number::ZERO,
            });
        };
        // An infinity to a finite power.
        if sign < 0 && !finite.is_whole() {
            return Err(Fault::PowerOfNegative);
        }
        Ok(match exponent_sign {
            -1 => Number::ZERO,
            _ if sign < 0 && finite.is_odd() => Number::NegativeInfinity,
            _ => Number::Infinity,
        })
    }
}

fn check_logarithm(finite: &Finite) -> Result<(), Fault> {
    match finite.sign() {
        0 => Err(Fault::LogarithmOfZero),
        1 => Ok(()),
        _ => Err(Fault::LogarithmOfNegative),
    }
}

impl Finite {
    fn is_whole(&self) -> bool {
        self.coefficient.divided(&Whole::power_of_ten(self.scale)).1.is_zero()
    }

    fn is_odd(&self) -> bool {
        let whole = self.coefficient.divided(&Whole::power_of_ten(self.scale)).0;
        !whole.divided(&Whole::Small(2)).1.is_zero()
    }

    /// The coefficient at a scale, cut.
    fn fixed(&self, scale: u32) -> Whole {
        match i64::from(scale) - i64::from(self.scale) {
            more @ 0.. => self.coefficient.shifted(more as u32),
            less => self.coefficient.divided(&Whole::power_of_ten(less.unsigned_abs() as u32)).0,
        }
    }

    fn square_root(&self, scale: u32) -> Finite {
        let shift = 2 * i64::from(scale) - i64::from(self.scale);
        if shift < 0 {
            let wide = self.square_root(self.scale.div_ceil(2));
            return wide.rounded(scale.into());
        }
        let square = self.coefficient.shifted(shift as u32);
        let root = square.root();
        // Half a unit above the root has the square root * (root + 1) + 1/4.
        let rest = square.minus(&root.times(&root));
        let is_up = rest.compare(&root).is_gt();
        Finite { coefficient: if is_up { root.plus(&Whole::Small(1)) } else { root }, scale }
    }

    /// The approximate decimal weight of the natural logarithm (`estimate_ln_dweight`).
    fn logarithm_weight(&self) -> i64 {
        let tenths = |n: i128| Finite { coefficient: Whole::Small(n), scale: 1 };
        let below = |a: &Finite, b: &Finite| Number::Finite(a.clone()).compare(&Number::Finite(b.clone())).is_lt();
        if !below(self, &tenths(9)) && !below(&tenths(11), self) {
            let unit = Whole::power_of_ten(self.scale);
            let rest = Finite { coefficient: self.coefficient.minus(&unit), scale: self.scale };
            if rest.sign() == 0 {
                return 0;
            }
            let (weight, first) = rest.leading();
            return weight * GROUP_DIGITS + first.ilog10() as i64;
        }
        let n_digits = i64::from(self.coefficient.n_digits());
        let weight = n_digits - i64::from(self.scale) - 8;
        let logarithm = (self.first_digits(n_digits, 8) as f64).ln() + weight as f64 * std::f64::consts::LN_10;
        logarithm.abs().log10() as i64
    }

    /// The natural logarithm of a positive number, at a scale.
    fn logarithm(&self, scale: u32) -> Finite {
        let precision = scale + GUARD_DIGITS;
        // m * 10^e, with m from 1 to 10.
        let n_digits = i64::from(self.coefficient.n_digits());
        let exponent = n_digits - 1 - i64::from(self.scale);
        let mantissa = Finite { coefficient: self.coefficient.clone(), scale: (n_digits - 1) as u32 };
        let mut sum = fixed_logarithm(mantissa.fixed(precision), precision);
        if exponent != 0 {
            let ten = fixed_logarithm(Whole::power_of_ten(precision + 1), precision);
            sum = sum.plus(&ten.times(&Whole::Small(exponent.into())));
        }
        Finite { coefficient: sum, scale: precision }.rounded(scale.into())
    }

    fn exponential(&self, scale: u32) -> Outcome {
        let value = to_f64(&Number::Finite(self.clone()));
        if value.abs() >= EXPONENT_MAX {
            return if value > 0.0 { Err(Fault::Overflow) } else { Ok(Number::ZERO) };
        }
        let weight = (value * LOG10_E).max(0.0) as u32;
        let precision = scale + weight + GUARD_DIGITS;
        let power = fixed_exponential(&self.fixed(precision), precision);
        Finite { coefficient: power, scale: precision }.rounded(scale.into()).checked()
    }

    fn power(&self, exponent: &Finite) -> Outcome {
        let short = exponent.clone().shortest();
        let whole = short.coefficient.to_i128().filter(|_| short.scale == 0).and_then(|n| i32::try_from(n).ok());
        match (self.sign(), exponent.sign()) {
            (0, -1) => return Err(Fault::ZeroToNegative),
            (_, 0) => return Ok(Number::new(1, 0)),
            (0, _) => return Ok(Number::ZERO),
            _ => {}
        }
        if let Some(whole) = whole {
            return self.power_of_whole(whole);
        }
        if self.sign() < 0 && !exponent.is_whole() {
            return Err(Fault::PowerOfNegative);
        }
        let is_negative = self.sign() < 0 && exponent.is_odd();
        let base = Finite { coefficient: self.coefficient.abs(), scale: self.scale };
        let rough = (8 - base.logarithm_weight()).max(0) as u32;
        let product = Number::Finite(base.logarithm(rough)).times(&Number::Finite(exponent.clone()))?;
        let value = to_f64(&product);
        if value.abs() > 2000.0 * 3.01 {
            return if value > 0.0 { Err(Fault::Overflow) } else { Ok(Number::ZERO) };
        }
        let weight = (value * LOG10_E) as i64;
        let scale = base.result_scale(Some(exponent), weight);
        let precision = scale + weight.max(0) as u32 + GUARD_DIGITS + exponent.coefficient.n_digits();
        let product = base.logarithm(precision).coefficient.times(&exponent.coefficient);
        let product = Finite { coefficient: product, scale: precision + exponent.scale };
        let power = product.exponential(scale)?;
        Ok(if is_negative { power.negated() } else { power })
    }

    /// `power_var_int`.
    fn power_of_whole(&self, whole: i32) -> Outcome {
        const WEIGHT_MAX: f64 = 131_072.0;
        let n_digits = i64::from(self.coefficient.n_digits());
        let n_first = n_digits.min(16);
        let behind = n_digits - n_first - i64::from(self.scale);
        let estimate = f64::from(whole) * ((self.first_digits(n_digits, n_first) as f64).log10() + behind as f64);
        if estimate > WEIGHT_MAX {
            return Err(Fault::Overflow);
        }
        if estimate + 1.0 < -(RESULT_SCALE_MAX as f64) {
            return Ok(Number::ZERO);
        }
        let scale = i64::from(self.scale).clamp(RESULT_DIGITS_MIN, RESULT_SCALE_MAX) as u32;
        if whole == 1 {
            return self.rounded(scale.into()).checked();
        }
        // As many digits as the result has, and some for the errors of the multiplications.
        let n_kept = (i64::from(scale) + estimate as i64).max(RESULT_DIGITS_MIN) + i64::from(GUARD_DIGITS) + 10;
        let power = self.rough_power(whole.unsigned_abs(), n_kept);
        let result = match whole {
            ..0 => ONE.divided(&power, scale),
            _ => power.rounded(scale.into()),
        };
        result.checked()
    }

    /// The power, of which about so many digits are right.
    fn rough_power(&self, exponent: u32, n_kept: i64) -> Finite {
        let mut result = ONE;
        for bit in (0..u32::BITS - exponent.leading_zeros()).rev() {
            result = result.rough_product(&result, n_kept);
            if exponent >> bit & 1 == 1 {
                result = result.rough_product(self, n_kept);
            }
        }
        result
    }

    fn rough_product(&self, other: &Finite, n_kept: i64) -> Finite {
        let product =
            Finite { coefficient: self.coefficient.times(&other.coefficient), scale: self.scale + other.scale };
        let n_digits = i64::from(product.coefficient.n_digits());
        let places = n_kept - (n_digits - i64::from(product.scale));
        if n_digits > n_kept && places >= 0 { product.rounded(places) } else { product }
    }
}

/// Numbers below this one by a thousandth at most make short series.
const NEAR: i128 = 1000;

/// The logarithm of a number from 1 on, both at a fixed scale.
fn fixed_logarithm(value: Whole, precision: u32) -> Whole {
    let unit = Whole::power_of_ten(precision);
    let limit = unit.plus(&unit.divided(&Whole::Small(NEAR)).0);
    let (mut root, mut n_roots) = (value, 0);
    while root.compare(&limit).is_gt() {
        root = root.times(&unit).root();
        n_roots += 1;
    }
    // ln x = 2 * artanh((x - 1) / (x + 1)) = 2 * (y + y^3 / 3 + y^5 / 5 ..)
    let y = root.minus(&unit).times(&unit).divided(&root.plus(&unit)).0;
    let square = y.times(&y).divided(&unit).0;
    let (mut sum, mut power, mut n) = (y.clone(), y, 3);
    loop {
        power = power.times(&square).divided(&unit).0;
        let term = power.divided(&Whole::Small(n)).0;
        if term.is_zero() {
            break;
        }
        sum = sum.plus(&term);
        n += 2;
    }
    sum.times(&Whole::Small(2i128 << n_roots))
}

/// The exponential of a number, both at a fixed scale.
fn fixed_exponential(value: &Whole, precision: u32) -> Whole {
    let unit = Whole::power_of_ten(precision);
    let limit = unit.divided(&Whole::Small(NEAR)).0;
    let (mut part, mut n_halves) = (value.clone(), 0);
    while part.abs().compare(&limit).is_gt() {
        part = part.divided(&Whole::Small(2)).0;
        n_halves += 1;
    }
    let (mut sum, mut term, mut n) = (unit.plus(&part), part.clone(), 2);
    loop {
        term = term.times(&part).divided(&unit.times(&Whole::Small(n))).0;
        if term.is_zero() {
            break;
        }
        sum = sum.plus(&term);
        n += 1;
    }
    for _ in 0..n_halves {
        sum = sum.times(&sum).divided(&unit).0;
    }
    sum
}
