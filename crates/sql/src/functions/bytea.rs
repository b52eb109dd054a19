//! Functions of bytes: reading and writing them as text, and what PostgreSQL has for both `text`
//! and `bytea`.

use std::sync::Arc;

use datafusion_expr::ScalarUDF;
use sha2::{Digest, Sha224, Sha256, Sha384, Sha512};

use super::bytes_in::{hexadecimal, read_escaped};
use super::rows::RowCall::{Bytes, Int, Quoted, Text};
use super::rows::{Out, Patterns, RowAnswer, RowFunction, RowValue, Way, by_datafusion};
use crate::functions::text::md5;

/// All functions of this module.
pub(crate) fn all() -> Vec<Arc<ScalarUDF>> {
    use datafusion_functions::{string, unicode};
    vec![
        RowFunction::beside(unicode::character_length(), "character_length", &["length", "char_length"], LENGTH),
        RowFunction::beside(unicode::substr(), "substr", &["substring"], SUBSTR),
        RowFunction::udf("strpos", &["position", "instr"], POSITION),
        RowFunction::beside(string::octet_length(), "octet_length", &[], OCTETS),
        RowFunction::udf("bit_length", &[], BITS),
        RowFunction::udf("md5", &[], MD5),
        RowFunction::udf("sha224", &[], SHA224),
        RowFunction::udf("sha256", &[], SHA256),
        RowFunction::udf("sha384", &[], SHA384),
        RowFunction::udf("sha512", &[], SHA512),
        RowFunction::beside(string::btrim(), "btrim", &["trim"], TRIM),
        RowFunction::beside(string::ltrim(), "ltrim", &[], LTRIM),
        RowFunction::beside(string::rtrim(), "rtrim", &[], RTRIM),
        RowFunction::udf("overlay", &[], OVERLAY),
        RowFunction::udf("encode", &[], ENCODE),
        RowFunction::udf("decode", &[], DECODE),
        RowFunction::udf("get_byte", &[], GET_BYTE),
        RowFunction::udf("set_byte", &[], SET_BYTE),
        RowFunction::udf("get_bit", &[], GET_BIT),
        RowFunction::udf("set_bit", &[], SET_BIT),
        RowFunction::udf("bytea_concat", &[], CONCAT),
        RowFunction::udf("convert_from", &[], CONVERT_FROM),
        RowFunction::udf("convert_to", &[], CONVERT_TO),
        RowFunction::udf("bit_count", &[], BIT_COUNT),
        RowFunction::udf(LIKE_BYTES, &[], LIKE),
    ]
}

/// `bytea LIKE bytea`.
pub(crate) const LIKE_BYTES: &str = "__bytea_like";

const LIKE: &[Way] = &[Way {
    takes: &[Bytes, Bytes],
    required: 2,
    answer: RowAnswer::Bool,
    compute: |args, _| is_like(args[0].bytes(), args[1].bytes()).map(Out::Bool),
}];
const LENGTH: &[Way] = &[
    Way { takes: &[Text], required: 1, answer: RowAnswer::Int, compute: by_datafusion },
    Way {
        takes: &[Bytes],
        required: 1,
        answer: RowAnswer::Int,
        compute: |args, _| Ok(Out::Int(args[0].bytes().len() as i64)),
    },
    Way { takes: &[Bytes, Text], required: 2, answer: RowAnswer::Int, compute: length_in },
];
const SUBSTR: &[Way] = &[
    Way { takes: &[Text, Int, Int], required: 2, answer: RowAnswer::Text, compute: by_datafusion },
    Way { takes: &[Bytes, Int, Int], required: 2, answer: RowAnswer::Bytes, compute: substr },
    Way { takes: &[Text, Text], required: 2, answer: RowAnswer::Text, compute: super::regex::substring },
    Way { takes: &[Text, Text, Text], required: 3, answer: RowAnswer::Text, compute: super::similar::substring },
];
const POSITION: &[Way] = &[
    Way { takes: &[Text, Text], required: 2, answer: RowAnswer::Int, compute: position_in_text },
    Way { takes: &[Bytes, Bytes], required: 2, answer: RowAnswer::Int, compute: position },
    Way { takes: &[Bytes, Quoted], required: 2, answer: RowAnswer::Int, compute: position },
    Way { takes: &[Quoted, Bytes], required: 2, answer: RowAnswer::Int, compute: position },
];
const OCTETS: &[Way] = &[
    Way { takes: &[Text], required: 1, answer: RowAnswer::Int, compute: by_datafusion },
    Way { takes: &[Bytes], required: 1, answer: RowAnswer::Int, compute: |args, _| n_bits(args[0].bytes().len(), 1) },
];
const BITS: &[Way] = &[
    Way { takes: &[Text], required: 1, answer: RowAnswer::Int, compute: |args, _| n_bits(args[0].text().len(), 8) },
    Way { takes: &[Bytes], required: 1, answer: RowAnswer::Int, compute: |args, _| n_bits(args[0].bytes().len(), 8) },
];
const MD5: &[Way] = &[
    Way { takes: &[Text], required: 1, answer: RowAnswer::Text, compute: |args, _| digest(args[0].text().as_bytes()) },
    Way { takes: &[Bytes], required: 1, answer: RowAnswer::Text, compute: |args, _| digest(args[0].bytes()) },
];
const SHA256: &[Way] = &[Way {
    takes: &[Bytes],
    required: 1,
    answer: RowAnswer::Bytes,
    compute: |args, _| Ok(Out::Bytes(Sha256::digest(args[0].bytes()).to_vec())),
}];
const SHA224: &[Way] = &[Way {
    takes: &[Bytes],
    required: 1,
    answer: RowAnswer::Bytes,
    compute: |args, _| Ok(Out::Bytes(Sha224::digest(args[0].bytes()).to_vec())),
}];
const SHA384: &[Way] = &[Way {
    takes: &[Bytes],
    required: 1,
    answer: RowAnswer::Bytes,
    compute: |args, _| Ok(Out::Bytes(Sha384::digest(args[0].bytes()).to_vec())),
}];
const SHA512: &[Way] = &[Way {
    takes: &[Bytes],
    required: 1,
    answer: RowAnswer::Bytes,
    compute: |args, _| Ok(Out::Bytes(Sha512::digest(args[0].bytes()).to_vec())),
}];
const TRIM: &[Way] = &[
    Way { takes: &[Text, Text], required: 1, answer: RowAnswer::Text, compute: by_datafusion },
    Way { takes: &[Bytes, Bytes], required: 2, answer: RowAnswer::Bytes, compute: trim_both },
    Way { takes: &[Bytes, Quoted], required: 2, answer: RowAnswer::Bytes, compute: trim_both },
    Way { takes: &[Quoted, Bytes], required: 2, answer: RowAnswer::Bytes, compute: trim_both },
];
const LTRIM: &[Way] = &[
    Way { takes: &[Text, Text], required: 1, answer: RowAnswer::Text, compute: by_datafusion },
    Way { takes: &[Bytes, Bytes], required: 2, answer: RowAnswer::Bytes, compute: trim_start },
    Way { takes: &[Bytes, Quoted], required: 2, answer: RowAnswer::Bytes, compute: trim_start },
    Way { takes: &[Quoted, Bytes], required: 2, answer: RowAnswer::Bytes, compute: trim_start },
];
const RTRIM: &[Way] = &[
    Way { takes: &[Text, Text], required: 1, answer: RowAnswer::Text, compute: by_datafusion },
    Way { takes: &[Bytes, Bytes], required: 2, answer: RowAnswer::Bytes, compute: trim_end },
    Way { takes: &[Bytes, Quoted], required: 2, answer: RowAnswer::Bytes, compute: trim_end },
    Way { takes: &[Quoted, Bytes], required: 2, answer: RowAnswer::Bytes, compute: trim_end },
];
const OVERLAY: &[Way] = &[
    Way { takes: &[Text, Text, Int, Int], required: 3, answer: RowAnswer::Text, compute: overlay_text },
    Way { takes: &[Bytes, Bytes, Int, Int], required: 3, answer: RowAnswer::Bytes, compute: overlay_bytes },
    Way { takes: &[Bytes, Quoted, Int, Int], required: 3, answer: RowAnswer::Bytes, compute: overlay_bytes },
    Way { takes: &[Quoted, Bytes, Int, Int], required: 3, answer: RowAnswer::Bytes, compute: overlay_bytes },
];
const ENCODE: &[Way] = &[Way { takes: &[Bytes, Text], required: 2, answer: RowAnswer::Text, compute: encode }];
const DECODE: &[Way] = &[Way { takes: &[Text, Text], required: 2, answer: RowAnswer::Bytes, compute: decode }];
const GET_BYTE: &[Way] = &[Way { takes: &[Bytes, Int], required: 2, answer: RowAnswer::Int, compute: get_byte }];
const SET_BYTE: &[Way] = &[Way { takes: &[Bytes, Int, Int], required: 3, answer: RowAnswer::Bytes, compute: set_byte }];
const GET_BIT: &[Way] = &[Way { takes: &[Bytes, Int], required: 2, answer: RowAnswer::Int, compute: get_bit }];
const SET_BIT: &[Way] = &[Way { takes: &[Bytes, Int, Int], required: 3, answer: RowAnswer::Bytes, compute: set_bit }];
const CONCAT: &[Way] = &[Way { takes: &[Bytes, Bytes], required: 2, answer: RowAnswer::Bytes, compute: concat }];
const CONVERT_FROM: &[Way] =
    &[Way { takes: &[Bytes, Text], required: 2, answer: RowAnswer::Text, compute: convert_from }];
const CONVERT_TO: &[Way] = &[Way { takes: &[Text, Text], required: 2, answer: RowAnswer::Bytes, compute: convert_to }];
const BIT_COUNT: &[Way] = &[Way { takes: &[Bytes], required: 1, answer: RowAnswer::Long, compute: bit_count }];

type Answered = Result<Out, String>;

fn encode(args: &[RowValue], _: &mut Patterns) -> Answered {
    let bytes = args[0].bytes();
    Ok(Out::Text(match args[1].text().to_ascii_lowercase().as_str() {
        "hex" => hex(bytes),
        "base64" => base64(bytes),
        "escape" => escaped(bytes),
        _ => return Err(format!("unrecognized encoding: \"{}\"", args[1].text())),
    }))
}

fn decode(args: &[RowValue], _: &mut Patterns) -> Answered {
    let text = args[0].text();
    Ok(Out::Bytes(match args[1].text().to_ascii_lowercase().as_str() {
        "hex" => hexadecimal(text)?,
        "base64" => from_base64(text)?,
        "escape" => read_escaped(text).ok_or("invalid input syntax for type bytea")?,
        _ => return Err(format!("unrecognized encoding: \"{}\"", args[1].text())),
    }))
}

/// Zeros and bytes beyond ASCII as octal numbers, backslashes doubled.
fn escaped(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    for byte in bytes {
        match byte {
            b'\\' => text.push_str("\\\\"),
            0 | 128.. => text.push_str(&format!("\\{byte:03o}")),
            plain => text.push(char::from(*plain)),
        }
    }
    text
}

const BASE64: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// RFC 2045, section 6.8: lines of 76 characters, broken by a line feed.
fn base64(bytes: &[u8]) -> String {
    const LINE: usize = 76;
    let mut text = String::with_capacity(bytes.len() * 4 / 3 + 4);
    let mut column = 0;
    for three in bytes.chunks(3) {
        let bits = three.iter().enumerate().fold(0u32, |bits, (n, byte)| bits | u32::from(*byte) << (16 - 8 * n));
        for n in 0..4 {
            let digit = BASE64[(bits >> (18 - 6 * n)) as usize & 63];
            text.push(if n <= three.len() { char::from(digit) } else { '=' });
        }
        column += 4;
        if column == LINE && three.len() == 3 {
            text.push('\n');
            column = 0;
        }
    }
    text
}

fn from_base64(text: &str) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::with_capacity(text.len() * 3 / 4);
    let (mut bits, mut n_digits, mut padding) = (0u32, 0, 0);
    for c in text.chars() {
        if matches!(c, ' ' | '\t' | '\n' | '\r') {
            continue;
        }
        let digit = if c == '=' {
            // Padding may only stand at the end of four.
            if padding == 0 {
                padding = match n_digits {
                    2 => 1,
                    3 => 2,
                    _ => return Err("unexpected \"=\" while decoding base64 sequence".into()),
                };
            }
            0
        } else {
            let digit = BASE64.iter().position(|digit| u32::from(*digit) == u32::from(c));
            digit.ok_or_else(|| format!("invalid symbol \"{c}\" found while decoding base64 sequence"))? as u32
        };
        bits = bits << 6 | digit;
        n_digits += 1;
        if n_digits == 4 {
            bytes.push((bits >> 16) as u8);
            if padding == 0 || padding > 1 {
                bytes.push((bits >> 8) as u8);
            }
            if padding == 0 || padding > 2 {
                bytes.push(bits as u8);
            }
            (bits, n_digits) = (0, 0);
        }
    }
    if n_digits != 0 {
        return Err("invalid base64 end sequence".into());
    }
    Ok(bytes)
}

/// Start and end, within a length, of what `substr(.., from, count)` asks for.
fn span(from: i64, count: Option<i64>, length: usize) -> Result<(usize, usize), String> {
    let end = match count {
        Some(count) if count < 0 && from.saturating_add(count) < from => {
            return Err("negative substring length not allowed".into());
        }
        Some(count) => from.saturating_add(count),
        None => i64::MAX,
    };
    let place = |n: i64| usize::try_from(n - 1).unwrap_or(0).min(length);
    let start = place(from);
    Ok((start, place(end).max(start)))
}

fn substr(args: &[RowValue], _: &mut Patterns) -> Answered {
    let bytes = args[0].bytes();
    let (start, end) = span(args[1].int(), args.get(2).map(|count| count.int()), bytes.len())?;
    Ok(Out::Bytes(bytes[start..end].to_vec()))
}

fn position(args: &[RowValue], _: &mut Patterns) -> Answered {
    let (bytes, wanted) = (args[0].bytes(), args[1].bytes());
    if wanted.is_empty() {
        return Ok(Out::Int(1));
    }
    let place = bytes.windows(wanted.len()).position(|window| window == wanted);
    Ok(Out::Int(place.map_or(0, |place| place as i64 + 1)))
}

fn position_in_text(args: &[RowValue], _: &mut Patterns) -> Answered {
    let (text, wanted) = (args[0].text(), args[1].text());
    Ok(Out::Int(text.find(wanted).map_or(0, |at| text[..at].chars().count() as i64 + 1)))
}

fn n_bits(n_bytes: usize, factor: i64) -> Answered {
    Ok(Out::Int(n_bytes as i64 * factor))
}

fn digest(bytes: &[u8]) -> Answered {
    Ok(Out::Text(hex(&md5(bytes))))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn trim_both(args: &[RowValue], _: &mut Patterns) -> Answered {
    Ok(trim(args, true, true))
}

fn trim_start(args: &[RowValue], _: &mut Patterns) -> Answered {
    Ok(trim(args, true, false))
}

fn trim_end(args: &[RowValue], _: &mut Patterns) -> Answered {
    Ok(trim(args, false, true))
}

fn trim(args: &[RowValue], at_start: bool, at_end: bool) -> Out {
    let (bytes, set) = (args[0].bytes(), args[1].bytes());
    let is_kept = |byte: &u8| !set.contains(byte);
    let start = if at_start { bytes.iter().position(is_kept).unwrap_or(bytes.len()) } else { 0 };
    let end = if at_end { bytes.iter().rposition(is_kept).map_or(0, |last| last + 1) } else { bytes.len() };
    Out::Bytes(bytes[start..end.max(start)].to_vec())
}

/// What `overlay` keeps: up to the first place, and from the second on. Both begin at 0.
fn kept(from: i64, count: i64, length: usize) -> Result<(usize, usize), String> {
    if from <= 0 {
        return Err("negative substring length not allowed".into());
    }
    let behind = from.checked_add(count).filter(|n| i32::try_from(*n).is_ok()).ok_or("integer out of range")?;
    let place = |n: i64| usize::try_from(n - 1).unwrap_or(0).min(length);
    Ok((place(from), place(behind)))
}

fn overlay_text(args: &[RowValue], _: &mut Patterns) -> Answered {
    let text: Vec<char> = args[0].text().chars().collect();
    let new = args[1].text();
    let count = args.get(3).map_or_else(|| new.chars().count() as i64, |count| count.int());
    let (end, start) = kept(args[2].int(), count, text.len())?;
    Ok(Out::Text(text[..end].iter().copied().chain(new.chars()).chain(text[start..].iter().copied()).collect()))
}

fn overlay_bytes(args: &[RowValue], _: &mut Patterns) -> Answered {
    let (bytes, new) = (args[0].bytes(), args[1].bytes());
    let count = args.get(3).map_or(new.len() as i64, |count| count.int());
    let (end, start) = kept(args[2].int(), count, bytes.len())?;
    Ok(Out::Bytes([&bytes[..end], new, &bytes[start..]].concat()))
}

/// The byte of that number, within the value.
fn place(n: i64, length: usize) -> Result<usize, String> {
    let at = usize::try_from(n).ok().filter(|at| *at < length);
    at.ok_or_else(|| format!("index {n} out of valid range, 0..{}", length as i64 - 1))
}

/// Whether bytes match a pattern: `%` is any number of bytes, `_` one, and what follows a backslash
/// itself. Cost: where a match fails behind a `%`, it is tried again one byte later.
fn is_like(bytes: &[u8], pattern: &[u8]) -> Result<bool, String> {
    let (mut at, mut rest) = (0, pattern);
    // (The pattern behind the last `%`, and where the bytes for it begin.)
    let mut again: Option<(&[u8], usize)> = None;
    loop {
        let is_met = match rest.split_first() {
            None if at == bytes.len() => return Ok(true),
            None => false,
            Some((b'%', behind)) => {
                (again, rest) = (Some((behind, at)), behind);
                continue;
            }
            Some((b'_', behind)) if at < bytes.len() => {
                (at, rest) = (at + 1, behind);
                true
            }
            Some((b'_', _)) => false,
            Some((b'\\', [])) => return Err("LIKE pattern must not end with escape character".to_owned()),
            Some((b'\\', [byte, behind @ ..])) | Some((byte, behind)) if bytes.get(at) == Some(byte) => {
                (at, rest) = (at + 1, behind);
                true
            }
            Some(_) => false,
        };
        match &mut again {
            _ if is_met => {}
            Some((behind, from)) if *from < bytes.len() => {
                *from += 1;
                (at, rest) = (*from, behind);
            }
            _ => return Ok(false),
        }
    }
}

fn get_byte(args: &[RowValue], _: &mut Patterns) -> Answered {
    let bytes = args[0].bytes();
    Ok(Out::Int(i64::from(bytes[place(args[1].int(), bytes.len())?])))
}

fn set_byte(args: &[RowValue], _: &mut Patterns) -> Answered {
    let mut bytes = args[0].bytes().to_vec();
    let at = place(args[1].int(), bytes.len())?;
    bytes[at] = args[2].int() as u8;
    Ok(Out::Bytes(bytes))
}

fn get_bit(args: &[RowValue], _: &mut Patterns) -> Answered {
    let bytes = args[0].bytes();
    let at = place(args[1].int(), bytes.len() * 8)?;
    Ok(Out::Int(i64::from(bytes[at / 8] >> (at % 8) & 1)))
}

fn set_bit(args: &[RowValue], _: &mut Patterns) -> Answered {
    let mut bytes = args[0].bytes().to_vec();
    let at = place(args[1].int(), bytes.len() * 8)?;
    match args[2].int() {
        0 => bytes[at / 8] &= !(1 << (at % 8)),
        1 => bytes[at / 8] |= 1 << (at % 8),
        _ => return Err("new bit must be 0 or 1".into()),
    }
    Ok(Out::Bytes(bytes))
}

fn concat(args: &[RowValue], _: &mut Patterns) -> Answered {
    Ok(Out::Bytes([args[0].bytes(), args[1].bytes()].concat()))
}

fn is_utf8(encoding: &str) -> Result<(), String> {
    match encoding.to_ascii_lowercase().as_str() {
        "utf8" | "utf-8" | "unicode" => Ok(()),
        _ => Err(format!("encoding \"{encoding}\" is not supported: texts are UTF8")),
    }
}

fn from_utf8(bytes: &[u8]) -> Result<&str, String> {
    match std::str::from_utf8(bytes) {
        Ok(text) if !text.contains('\0') => Ok(text),
        _ => Err("invalid byte sequence for encoding \"UTF8\"".into()),
    }
}

fn convert_from(args: &[RowValue], _: &mut Patterns) -> Answered {
    is_utf8(args[1].text())?;
    Ok(Out::Text(from_utf8(args[0].bytes())?.to_string()))
}

fn convert_to(args: &[RowValue], _: &mut Patterns) -> Answered {
    is_utf8(args[1].text())?;
    Ok(Out::Bytes(args[0].text().as_bytes().to_vec()))
}

fn length_in(args: &[RowValue], _: &mut Patterns) -> Answered {
    is_utf8(args[1].text())?;
    Ok(Out::Int(from_utf8(args[0].bytes())?.chars().count() as i64))
}

fn bit_count(args: &[RowValue], _: &mut Patterns) -> Answered {
    Ok(Out::Int(args[0].bytes().iter().map(|byte| i64::from(byte.count_ones())).sum()))
}
