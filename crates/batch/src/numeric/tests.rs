//! Arithmetic against PostgreSQL's answers (`reference.txt`, made by `tools/numeric_reference.py`),
//! and the law of the encoding.

use std::cmp::Ordering;

use super::*;
use crate::testing::Rng;

fn number(text: &str) -> Number {
    parse(text).unwrap_or_else(|problem| panic!("{text}: {problem:?}"))
}

fn computed(op: &str, a: &Number, b: &str) -> Outcome {
    let b_number = || number(b);
    let places = || b.parse::<i64>().unwrap();
    match op {
        "+" => a.plus(&b_number()),
        "-" => a.minus(&b_number()),
        "*" => a.times(&b_number()),
        "/" => a.divided(&b_number()),
        "%" => a.remainder(&b_number()),
        "round" => a.rounded(places()),
        "trunc" => a.cut(places()),
        "sqrt" => a.square_root(),
        "exp" => a.exponential(),
        "ln" => a.logarithm(),
        "ceil" => a.ceiling(),
        "floor" => a.floor(),
        "power" => a.power(&b_number()),
        "log" => b_number().logarithm_to(a),
        other => panic!("operation {other}"),
    }
}

#[test]
fn results_are_those_of_postgresql() {
    let mut wrong = Vec::new();
    for line in include_str!("reference.txt").lines() {
        let parts: Vec<&str> = line.split(' ').collect();
        let [op, a, b, expected] = parts.as_slice() else { panic!("{line}") };
        let result = computed(op, &number(a), b);
        let is_right = match (&result, *expected) {
            (Err(_), "!") => true,
            (Ok(result), expected) if expected != "!" => result.compare(&number(expected)) == Ordering::Equal,
            _ => false,
        };
        if !is_right {
            wrong.push(format!("{line}\n    got {}", result.map_or_else(|fault| fault.to_string(), |n| n.to_string())));
        }
    }
    assert!(wrong.is_empty(), "{} are wrong:\n{}", wrong.len(), wrong.join("\n"));
}

fn random(rng: &mut Rng) -> Number {
    match rng.below(20) {
        0 => Number::NaN,
        1 => Number::Infinity,
        2 => Number::NegativeInfinity,
        3 => Number::ZERO,
        kind => {
            let n_digits = 1 + rng.below(if kind < 8 { 60 } else { 6 });
            let digits: String = (0..n_digits).map(|_| char::from(b'0' + rng.below(10) as u8)).collect();
            let exponent = rng.below(if kind % 2 == 0 { 400 } else { 12 }) as i64;
            let exponent = if rng.below(2) == 0 { exponent } else { -exponent };
            let sign = if rng.below(2) == 0 { "-" } else { "" };
            number(&format!("{sign}{digits}e{exponent}"))
        }
    }
}

fn bytes(number: &Number) -> Vec<u8> {
    let mut bytes = Vec::new();
    encode(number, &mut bytes);
    bytes
}

#[test]
fn bytes_have_the_order_and_the_equality_of_numbers() {
    let mut rng = Rng::from_env(7);
    let mut numbers: Vec<Number> = (0..400).map(|_| random(&mut rng)).collect();
    let more: Vec<Number> = numbers.iter().filter_map(|n| n.plus(&Number::new(1, 3)).ok()).collect();
    numbers.extend(more);
    for a in &numbers {
        let decoded = decode(&bytes(a)).unwrap();
        assert_eq!(decoded.compare(a), Ordering::Equal, "{a}");
        for b in &numbers {
            assert_eq!(bytes(a).cmp(&bytes(b)), a.compare(b), "{a} and {b}");
        }
    }
}

#[test]
fn decimals_are_encoded_as_their_numbers() {
    let mut rng = Rng::from_env(8);
    for _ in 0..2000 {
        let digits = 1 + rng.below(38) as u32;
        let value = (i128::from(rng.next()) << 63 | i128::from(rng.next() >> 1)) % 10i128.pow(digits);
        let value = if rng.below(2) == 0 { -value } else { value };
        let value = if rng.below(3) == 0 { value / 1000 * 1000 } else { value };
        let scale = rng.below(38) as u32;
        let mut plain = Vec::new();
        encode_decimal(value, scale, &mut plain);
        let text = format!("{value}e-{scale}");
        assert_eq!(plain, bytes(&number(&text)), "{text}");
        let wide = number(&text).plus(&number("1e60")).unwrap().minus(&number("1e60")).unwrap();
        assert_eq!(plain, bytes(&wide), "{text}");
    }
}

#[test]
fn other_bytes_are_no_numbers() {
    for bytes in [&b""[..], b"\x80\x01", b"\x00", b"\x7f", b"\xab", b"\xab\x00", b"\xab\x66", b"\x54\x90", b"\xff"] {
        assert_eq!(decode(bytes), None, "{bytes:?}");
    }
}

#[test]
fn texts_are_read_as_postgresql_reads_them() {
    for (text, expected) in [
        (" 12.50 ", Some("12.50")),
        ("-.5", Some("-0.5")),
        ("7.", Some("7")),
        ("1e3", Some("1000")),
        ("1.5e-3", Some("0.0015")),
        ("nan", Some("NaN")),
        ("-INF", Some("-Infinity")),
        ("+infinity", Some("Infinity")),
        ("", None),
        (".", None),
        ("1e", None),
        ("1_000", None),
        ("0x10", None),
        ("-nan", None),
        ("1e200000", None),
        ("1e99999999999999999999", None),
    ] {
        assert_eq!(parse(text).ok().map(|number| number.to_string()).as_deref(), expected, "{text}");
    }
}

#[test]
fn floats_are_the_nearest() {
    for text in ["0.1", "123456789012345678901234567890.5", "1e-320", "-2.5", "9007199254740993", "1e400"] {
        assert_eq!(to_f64(&number(text)), text.parse::<f64>().unwrap(), "{text}");
    }
    assert_eq!(from_float(0.1 + 0.2, 15).to_string(), "0.300000000000000");
    assert_eq!(from_float(f64::NEG_INFINITY, 15), Number::NegativeInfinity);
}
