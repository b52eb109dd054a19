//! Functions of text that DataFusion computes otherwise than PostgreSQL.

use std::sync::Arc;

use datafusion_expr::ScalarUDF;

use super::rows::RowCall::{Int, Int4, Text};
use super::rows::{Out, Patterns, RowAnswer, RowFunction, RowValue, Way};

/// All functions of this module.
pub(crate) fn all() -> [Arc<ScalarUDF>; 6] {
    [
        RowFunction::udf("chr", &[], CHR),
        RowFunction::udf("to_hex", &[], TO_HEX),
        RowFunction::udf("lpad", &[], LPAD),
        RowFunction::udf("rpad", &[], RPAD),
        RowFunction::udf("like_escape", &[], LIKE_ESCAPE),
        RowFunction::udf("unistr", &[], UNISTR),
    ]
}

const CHR: &[Way] = &[Way { takes: &[Int], required: 1, answer: RowAnswer::Text, compute: chr }];
const TO_HEX: &[Way] = &[
    Way { takes: &[Int4], required: 1, answer: RowAnswer::Text, compute: |args, _| hex(args, u64::from(u32::MAX)) },
    Way { takes: &[Int], required: 1, answer: RowAnswer::Text, compute: |args, _| hex(args, u64::MAX) },
];
const LPAD: &[Way] = &[Way {
    takes: &[Text, Int, Text],
    required: 2,
    answer: RowAnswer::Text,
    compute: |args, _| pad(args, Side::Left),
}];
const RPAD: &[Way] = &[Way {
    takes: &[Text, Int, Text],
    required: 2,
    answer: RowAnswer::Text,
    compute: |args, _| pad(args, Side::Right),
}];
const LIKE_ESCAPE: &[Way] = &[Way { takes: &[Text, Text], required: 2, answer: RowAnswer::Text, compute: like_escape }];

const UNISTR: &[Way] = &[Way { takes: &[Text], required: 1, answer: RowAnswer::Text, compute: unistr }];

/// Most bytes of a text, at four a character: a gigabyte less its header.
const PADDED_BYTES_MAX: i64 = 0x3fff_ffff - 4;

type Answered = Result<Out, String>;

fn chr(args: &[RowValue], _: &mut Patterns) -> Answered {
    match args[0].int() {
        n @ ..0 => Err(format!("character number must be positive: {n}")),
        0 => Err("null character not permitted".into()),
        n if n > 0x10_ffff => Err(format!("requested character too large for encoding: {n}")),
        n => match char::from_u32(n as u32) {
            Some(c) => Ok(Out::Text(c.to_string())),
            None => Err(format!("requested character not valid for encoding: {n}")),
        },
    }
}

fn hex(args: &[RowValue], mask: u64) -> Answered {
    Ok(Out::Text(format!("{:x}", args[0].int() as u64 & mask)))
}

#[derive(Clone, Copy)]
enum Side {
    Left,
    Right,
}

fn pad(args: &[RowValue], side: Side) -> Answered {
    let (text, length) = (args[0].text(), args[1].int().max(0));
    if length.saturating_mul(4) > PADDED_BYTES_MAX {
        return Err("requested length too large".into());
    }
    let length = length as usize;
    let fill = args.get(2).map_or(" ", |fill| fill.text());
    let n = text.chars().count();
    let cut: String = text.chars().take(length).collect();
    if fill.is_empty() || n >= length {
        return Ok(Out::Text(cut));
    }
    let fill: String = fill.chars().cycle().take(length - n).collect();
    Ok(Out::Text(match side {
        Side::Left => fill + &cut,
        Side::Right => cut + &fill,
    }))
}

/// A text with `\XXXX`, `\+XXXXXX`, `\uXXXX` and `\UXXXXXXXX` read as characters.
fn unistr(args: &[RowValue], _: &mut Patterns) -> Answered {
    let (mut out, mut rest) = (String::new(), args[0].text());
    let mut high: Option<u32> = None;
    while let Some(at) = rest.find('\\') {
        let is_apart = at > 0;
        out.push_str(&rest[..at]);
        rest = &rest[at + 1..];
        if let Some(after) = rest.strip_prefix('\\') {
            (rest, high) = (after, None);
            out.push('\\');
            continue;
        }
        let (skipped, n_digits) = match rest.as_bytes().first() {
            Some(b'u') => (1, 4),
            Some(b'U') => (1, 8),
            Some(b'+') => (1, 6),
            _ => (0, 4),
        };
        let digits =
            rest.get(skipped..skipped + n_digits).filter(|digits| digits.bytes().all(|b| b.is_ascii_hexdigit()));
        let code = digits.and_then(|digits| u32::from_str_radix(digits, 16).ok()).ok_or("invalid Unicode escape")?;
        rest = &rest[skipped + n_digits..];
        let code = match (high.take().filter(|_| !is_apart), code) {
            (Some(high), 0xdc00..=0xdfff) => 0x1_0000 + ((high - 0xd800) << 10) + (code - 0xdc00),
            (None, 0xd800..=0xdbff) => {
                high = Some(code);
                continue;
            }
            (None, code) => code,
            (Some(_), _) => return Err("invalid Unicode surrogate pair".into()),
        };
        out.push(char::from_u32(code).filter(|c| *c != '\0').ok_or("invalid Unicode escape value")?);
    }
    if high.is_some() {
        return Err("invalid Unicode surrogate pair".into());
    }
    out.push_str(rest);
    Ok(Out::Text(out))
}

/// A pattern of LIKE with another escape character, with backslashes for it.
fn like_escape(args: &[RowValue], _: &mut Patterns) -> Answered {
    let mut letters = args[1].text().chars();
    let escape = letters.next();
    if letters.next().is_some() {
        return Err("invalid escape string".into());
    }
    let mut out = String::new();
    let mut pattern = args[0].text().chars();
    while let Some(c) = pattern.next() {
        let (c, is_escaped) = match escape {
            Some(escape) if escape == c => match pattern.next() {
                Some(c) => (c, true),
                None => return Err("LIKE pattern must not end with escape character".into()),
            },
            _ => (c, c == '\\'),
        };
        if c == '\\' || (is_escaped && matches!(c, '%' | '_')) {
            out.push('\\');
        }
        out.push(c);
    }
    Ok(Out::Text(out))
}
