//! Numbers as bytes whose order is that of the numbers.
//!
//! ```text
//! -Infinity   02
//! negative    the complement of its absolute value's bytes, then ff
//! zero        80
//! positive    80 + 41 + e, for exponents e from -40 to 40; else 81 or d3, and e + 2^20 in three bytes
//!             then a byte for each two digits: 1 + (0 .. 99), the last not zero
//! Infinity    fd
//! NaN         fe
//! ```
//!
//! A number is `0.d1 d2 d3 ..` times 100 to the power of its exponent, where the first pair of
//! digits is not zero.
//!
//! Law: two numbers have the same bytes exactly if they are equal, and bytes compare as their
//! numbers do; so columns of them are hashed, sorted, joined and grouped as any bytes are. (Of two
//! positive numbers of which one's digits begin with the other's, the longer is greater. Of two
//! negative ones the longer is less: no complement of a digit is `ff`, which ends the shorter.)

use num_bigint::{BigInt, Sign};

use super::number::{Finite, Number};
use super::whole::{POWERS, Whole};

const NEGATIVE_INFINITY: u8 = 0x02;
const ZERO: u8 = 0x80;
const TINY: u8 = 0x81;
const HUGE: u8 = 0xd3;
const INFINITY: u8 = 0xfd;
const NAN: u8 = 0xfe;
const END: u8 = 0xff;

/// The first byte of a positive number with exponent 0.
const MIDDLE: i32 = 0xaa;

/// Greatest exponent, and opposite of the least, that the first byte holds.
const INLINE_EXPONENT: i32 = 40;

const EXPONENT_OFFSET: i32 = 1 << 20;

const _: () = assert!(TINY as i32 == MIDDLE - INLINE_EXPONENT - 1 && HUGE as i32 == MIDDLE + INLINE_EXPONENT + 1);

/// Appends the bytes of a number.
pub fn encode(number: &Number, out: &mut Vec<u8>) {
    match number {
        Number::NaN => out.push(NAN),
        Number::Infinity => out.push(INFINITY),
        Number::NegativeInfinity => out.push(NEGATIVE_INFINITY),
        Number::Finite(finite) => encode_finite(finite, out),
    }
}

/// Appends the bytes of a decimal with so many digits after the point.
pub fn encode_decimal(value: i128, scale: u32, out: &mut Vec<u8>) {
    if value == 0 {
        return out.push(ZERO);
    }
    let start = out.len();
    // Pairs of digits are counted from the point: an odd number of places gets a zero behind.
    let (mut rest, mut pairs_behind) = (value.unsigned_abs(), scale.div_ceil(2) as i32);
    let mut pairs = [0u8; 21];
    let mut first = pairs.len();
    if scale % 2 == 1 {
        let last = (rest % 10) as u8 * 10;
        rest /= 10;
        if last != 0 {
            first -= 1;
            pairs[first] = last;
        } else {
            pairs_behind -= 1;
        }
    }
    // (Divisions of 64 bits take a tenth of the time of 128.)
    while rest > u128::from(u64::MAX) {
        let pair = (rest % 100) as u8;
        rest /= 100;
        push_pair(&mut pairs, &mut first, &mut pairs_behind, pair);
    }
    let mut rest = rest as u64;
    while rest > 0 {
        push_pair(&mut pairs, &mut first, &mut pairs_behind, (rest % 100) as u8);
        rest /= 100;
    }
    finish(out, start, value < 0, &pairs[first..], pairs_behind);
}

/// Puts a pair in front of the others; zeros behind all others only count.
fn push_pair(pairs: &mut [u8], first: &mut usize, pairs_behind: &mut i32, pair: u8) {
    if pair == 0 && *first == pairs.len() {
        *pairs_behind -= 1;
    } else {
        *first -= 1;
        pairs[*first] = pair;
    }
}

fn encode_finite(finite: &Finite, out: &mut Vec<u8>) {
    if let Some(value) = finite.coefficient.to_i128() {
        return encode_decimal(value, finite.scale, out);
    }
    let start = out.len();
    let is_odd = finite.scale % 2 == 1;
    let even = if is_odd { finite.coefficient.shifted(1) } else { finite.coefficient.clone() };
    let mut pairs_behind = finite.scale.div_ceil(2) as i32;
    let mut pairs = even.to_big().magnitude().to_radix_be(100);
    while pairs.last() == Some(&0) {
        pairs.pop();
        pairs_behind -= 1;
    }
    finish(out, start, finite.coefficient.is_negative(), &pairs, pairs_behind);
}

/// Writes the exponent and the pairs of a number that is not zero.
fn finish(out: &mut Vec<u8>, start: usize, is_negative: bool, pairs: &[u8], pairs_behind: i32) {
    let exponent = pairs.len() as i32 - pairs_behind;
    if exponent.abs() <= INLINE_EXPONENT {
        out.push((MIDDLE + exponent) as u8);
    } else {
        out.push(if exponent < 0 { TINY } else { HUGE });
        out.extend_from_slice(&(exponent + EXPONENT_OFFSET).to_be_bytes()[1..]);
    }
    out.extend(pairs.iter().map(|pair| pair + 1));
    if is_negative {
        out[start..].iter_mut().for_each(|byte| *byte = !*byte);
        out.push(END);
    }
}

/// The number of its bytes; `None` if no number has these.
pub fn decode(bytes: &[u8]) -> Option<Number> {
    let (&first, rest) = bytes.split_first()?;
    match (first, rest) {
        (ZERO, []) => return Some(Number::ZERO),
        (NAN, []) => return Some(Number::NaN),
        (INFINITY, []) => return Some(Number::Infinity),
        (NEGATIVE_INFINITY, []) => return Some(Number::NegativeInfinity),
        _ => {}
    }
    let is_negative = first < ZERO;
    let (rest, flip) = match is_negative {
        true => (rest.strip_suffix(&[END])?, 0xff),
        false => (rest, 0),
    };
    let (exponent, pairs) = match first ^ flip {
        TINY | HUGE => {
            let (wide, pairs) = rest.split_first_chunk::<3>()?;
            let [a, b, c] = wide.map(|byte| byte ^ flip);
            (i32::from_be_bytes([0, a, b, c]) - EXPONENT_OFFSET, pairs)
        }
        inline @ TINY..=HUGE => (i32::from(inline) - MIDDLE, rest),
        _ => return None,
    };
    let pair = |byte: &u8| (byte ^ flip).wrapping_sub(1);
    if pairs.is_empty() || pairs.iter().any(|byte| pair(byte) > 99) {
        return None;
    }
    let n_pairs = i32::try_from(pairs.len()).ok()?;
    let coefficient = if pairs.len() <= 19 {
        // (Nine pairs fit 64 bits, which are multiplied in a third of the time.)
        let (front, back) = pairs.split_at(pairs.len().saturating_sub(9));
        let of = |pairs: &[u8]| pairs.iter().fold(0u64, |value, byte| value * 100 + u64::from(pair(byte)));
        let high = front.iter().fold(0i128, |value, byte| value * 100 + i128::from(pair(byte)));
        let value = high * POWERS[2 * back.len()] + i128::from(of(back));
        Whole::Small(if is_negative { -value } else { value })
    } else {
        let digits: Vec<u8> = pairs.iter().map(pair).collect();
        let sign = if is_negative { Sign::Minus } else { Sign::Plus };
        BigInt::from_radix_be(sign, &digits, 100)?.into()
    };
    let scale = 2 * (n_pairs - exponent);
    let finite = match u32::try_from(scale) {
        Ok(scale) if scale > 0 && pairs.last().map(pair).is_some_and(|last| last % 10 == 0) => {
            Finite { coefficient: coefficient.divided(&Whole::Small(10)).0, scale: scale - 1 }
        }
        Ok(scale) => Finite { coefficient, scale },
        Err(_) => Finite { coefficient: coefficient.shifted(scale.unsigned_abs()), scale: 0 },
    };
    Some(Number::Finite(finite))
}
