//! `normalize`, `IS NORMALIZED`, `to_number` and `parse_ident`: texts read by rules of others.
//!
//! ```text
//! normalize(x, NFD)      __normalize(x, 'nfd')
//! x IS NFD NORMALIZED    __is_normalized(x, 'nfd')
//! to_number(x, '99')     CAST(__number_digits(x, '99') AS numeric)
//! ```

use std::sync::Arc;

use datafusion_expr::ScalarUDF;
use unicode_normalization::UnicodeNormalization;

use super::rows::RowCall::{Int, Text};
use super::rows::{Out, Patterns, RowAnswer, RowFunction, RowValue, Way};
use crate::time::number_template::NumberTemplate;

/// All functions of this module.
pub(crate) fn all() -> [Arc<ScalarUDF>; 5] {
    [
        RowFunction::udf("__normalize", &[], NORMALIZE),
        RowFunction::udf("__is_normalized", &[], IS_NORMALIZED),
        RowFunction::udf("__number_digits", &[], NUMBER_DIGITS),
        RowFunction::udf("parse_ident", &[], PARSE_IDENT),
        RowFunction::udf("pg_size_bytes", &[], SIZE_BYTES),
    ]
}

const NORMALIZE: &[Way] = &[Way {
    takes: &[Text, Text],
    required: 2,
    answer: RowAnswer::Text,
    compute: |args, _| Ok(Out::Text(normal(args[0].text(), args[1].text()))),
}];
const IS_NORMALIZED: &[Way] = &[Way {
    takes: &[Text, Text],
    required: 2,
    answer: RowAnswer::Bool,
    compute: |args, _| Ok(Out::Bool(normal(args[0].text(), args[1].text()) == args[0].text())),
}];
const NUMBER_DIGITS: &[Way] = &[Way { takes: &[Text, Text], required: 2, answer: RowAnswer::Text, compute: digits }];
const PARSE_IDENT: &[Way] = &[Way { takes: &[Text, Int], required: 1, answer: RowAnswer::Texts, compute: parse_ident }];
const SIZE_BYTES: &[Way] = &[Way { takes: &[Text], required: 1, answer: RowAnswer::Long, compute: size_bytes }];

fn normal(text: &str, form: &str) -> String {
    match form {
        "nfd" => text.nfd().collect(),
        "nfkc" => text.nfkc().collect(),
        "nfkd" => text.nfkd().collect(),
        _ => text.nfc().collect(),
    }
}

fn digits(args: &[RowValue], _: &mut Patterns) -> Result<Out, String> {
    match args[1].text() {
        "" => Ok(Out::Null),
        template => Ok(Out::Text(NumberTemplate::parse(template)?.read(args[0].text())?)),
    }
}

/// The parts of a name as it is written in SQL, folded; what stands behind it is an error, unless
/// the second argument is 0.
fn parse_ident(args: &[RowValue], _: &mut Patterns) -> Result<Out, String> {
    let whole = args[0].text();
    let wrong = || format!("string is not a valid identifier: \"{whole}\"");
    let is_strict = args.get(1).is_none_or(|strict| strict.int() != 0);
    let mut parts = Vec::new();
    let mut rest = whole.trim_start();
    loop {
        let after = match rest.strip_prefix('"') {
            Some(quoted) => {
                let (part, after) = quoted_part(quoted).ok_or_else(wrong)?;
                if part.is_empty() {
                    return Err(wrong());
                }
                parts.push(Some(part));
                after
            }
            None => {
                let starts = |c: char| c.is_ascii_alphabetic() || c == '_' || !c.is_ascii();
                let goes_on = |c: char| starts(c) || c.is_ascii_digit() || c == '$';
                if !rest.starts_with(starts) {
                    return Err(wrong());
                }
                let end = rest.find(|c| !goes_on(c)).unwrap_or(rest.len());
                parts.push(Some(rest[..end].to_lowercase()));
                &rest[end..]
            }
        };
        let after = after.trim_start();
        match after.strip_prefix('.') {
            Some(next) => rest = next.trim_start(),
            None if after.is_empty() || !is_strict => return Ok(Out::Texts(parts)),
            None => return Err(wrong()),
        }
    }
}

/// What stands before the closing quote, and what comes behind it.
fn quoted_part(text: &str) -> Option<(String, &str)> {
    let (mut part, mut rest) = (String::new(), text);
    loop {
        let (before, after) = rest.split_once('"')?;
        part.push_str(before);
        match after.strip_prefix('"') {
            Some(after) => {
                part.push('"');
                rest = after;
            }
            None => return Some((part, after)),
        }
    }
}

/// `1.5 GB` in bytes.
fn size_bytes(args: &[RowValue], _: &mut Patterns) -> Result<Out, String> {
    const UNITS: [(&str, i32); 7] = [("", 0), ("bytes", 0), ("b", 0), ("kb", 10), ("mb", 20), ("gb", 30), ("tb", 40)];
    let text = args[0].text().trim();
    let end = text.find(|c: char| c.is_ascii_alphabetic() || c.is_whitespace()).unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    let number: f64 = number.parse().map_err(|_| format!("invalid size: \"{}\"", args[0].text()))?;
    let unit = unit.trim().to_lowercase();
    let Some((_, shift)) = UNITS.iter().find(|(known, _)| *known == unit) else {
        return Err(format!("invalid size: \"{}\"", args[0].text()));
    };
    Ok(Out::Int((number * f64::from(*shift).exp2()) as i64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_as_postgresql_does() {
        for (text, template, expected) in [
            ("12,454.8-", "99G999D9S", "-12454.8"),
            ("$1,234.56", "L9,999.99", " 1234.56"),
            ("-34,338,492", "99G999G999", "-34338492"),
            ("0.00001-", "9.999999S", "-0.00001"),
            ("5.01-", "FM9.999999S", "-5.01"),
            ("5 4 4 4 4 8 . 7 8", "9 9 9 9 9 9 . 9 9", " 544448.78"),
            (".-01", "S99.99", "-.01"),
            ("42nd", "99th", " 42"),
            ("<564646.654564>", "999999.999999PR", "-564646.654564"),
            ("123456", "99999V99", " 1234.56"),
            ("abc", "999", " "),
        ] {
            let read = NumberTemplate::parse(template).expect("it is a template").read(text);
            assert_eq!(read.as_deref(), Ok(expected), "{text} {template}");
        }
    }
}
