//! `upper`, `lower` and `initcap`: each character for itself, as PostgreSQL has them.
//!
//! Law: a text keeps its number of characters. A character that Unicode writes as several in the
//! other case becomes the one that it has there, or stays (`ß`).

use std::sync::Arc;

use datafusion_expr::ScalarUDF;

use super::rows::RowCall::Text;
use super::rows::{Out, RowAnswer, RowFunction, Way};
use crate::regex::is_alphanumeric;

/// All functions of this module.
pub(crate) fn all() -> [Arc<ScalarUDF>; 3] {
    [
        RowFunction::udf("upper", &[], UPPER),
        RowFunction::udf("lower", &[], LOWER),
        RowFunction::udf("initcap", &[], INITCAP),
    ]
}

const UPPER: &[Way] = &[Way {
    takes: &[Text],
    required: 1,
    answer: RowAnswer::Text,
    compute: |args, _| Ok(Out::Text(upper(args[0].text()))),
}];
const LOWER: &[Way] = &[Way {
    takes: &[Text],
    required: 1,
    answer: RowAnswer::Text,
    compute: |args, _| Ok(Out::Text(lower(args[0].text()))),
}];
const INITCAP: &[Way] = &[Way {
    takes: &[Text],
    required: 1,
    answer: RowAnswer::Text,
    compute: |args, _| Ok(Out::Text(initcap(args[0].text()))),
}];

fn upper(text: &str) -> String {
    match text.is_ascii() {
        true => text.to_ascii_uppercase(),
        false => text.chars().map(upper_of).collect(),
    }
}

fn lower(text: &str) -> String {
    match text.is_ascii() {
        true => text.to_ascii_lowercase(),
        false => text.chars().map(lower_of).collect(),
    }
}

/// Words begin with an upper-case letter; they are of letters and digits.
fn initcap(text: &str) -> String {
    let mut is_within = false;
    let cased = |c: char| {
        let cased = if is_within { lower_of(c) } else { upper_of(c) };
        is_within = is_alphanumeric(cased);
        cased
    };
    text.chars().map(cased).collect()
}

fn upper_of(c: char) -> char {
    let mut cased = c.to_uppercase();
    match (cased.next(), cased.next()) {
        (Some(one), None) => one,
        _ => one_upper(c),
    }
}

/// The upper case of a character for which Unicode's is several. Greek ones with an iota below have
/// one with the iota beside.
fn one_upper(c: char) -> char {
    let code = u32::from(c);
    let upper = match code {
        0x1f80..=0x1faf if code & 8 == 0 => code + 8,
        0x1fb3 | 0x1fc3 | 0x1ff3 => code + 9,
        _ => code,
    };
    char::from_u32(upper).unwrap_or(c)
}

fn lower_of(c: char) -> char {
    // (Of `İ` Unicode's is `i` and a point above.)
    c.to_lowercase().next().unwrap_or(c)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn characters_are_cased_one_by_one() {
        for (text, in_upper, in_lower, in_words) in [
            ("ßa x", "ßA X", "ßa x", "ßa X"),
            ("İx", "İX", "ix", "İx"),
            ("ǆa", "ǄA", "ǆa", "Ǆa"),
            ("ᾳ ŉ ﬁ", "ᾼ ŉ ﬁ", "ᾳ ŉ ﬁ", "ᾼ ŉ ﬁ"),
            ("ΑΣ ος", "ΑΣ ΟΣ", "ασ ος", "Ασ Ος"),
            ("a²b a½b ⅷx", "A²B A½B ⅧX", "a²b a½b ⅷx", "A²B A½B Ⅷx"),
            ("éa-b_c1d 'x", "ÉA-B_C1D 'X", "éa-b_c1d 'x", "Éa-B_C1d 'X"),
        ] {
            assert_eq!(
                (upper(text).as_str(), lower(text).as_str(), initcap(text).as_str()),
                (in_upper, in_lower, in_words)
            );
        }
    }
}
