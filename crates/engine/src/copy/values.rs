//! The values of a line, in the text format and as csv.
//!
//! Law: they are what PostgreSQL reads. Cost: a value without escapes is a part of the line; bytes
//! that mean something are looked for many at a time.

use std::borrow::Cow;

use memchr::memchr2;

use super::options::CopyFormat;

/// A value; NULL is none.
pub(super) type LineValue<'l> = Option<Cow<'l, [u8]>>;

/// The values of a line of text: backslashes escape.
pub(super) fn text_values<'l>(line: &'l [u8], format: &CopyFormat, n_columns: usize) -> Vec<LineValue<'l>> {
    let mut values = Vec::with_capacity(n_columns);
    let null = format.null.as_bytes();
    let (mut from, mut at) = (0, 0);
    // What of the present value is unescaped.
    let mut unescaped: Option<Vec<u8>> = None;
    loop {
        let rest = &line[at..];
        let found = memchr2(format.delimiter, b'\\', rest).unwrap_or(rest.len());
        if let Some(value) = &mut unescaped {
            value.extend_from_slice(&rest[..found]);
        }
        at += found;
        if line.get(at) == Some(&b'\\') && format.delimiter != b'\\' {
            let value = unescaped.get_or_insert_with(|| line[from..at].to_vec());
            at += 1 + unescape(&line[at + 1..], value);
            continue;
        }
        let value = match unescaped.take() {
            Some(value) => Cow::Owned(value),
            None => Cow::Borrowed(&line[from..at]),
        };
        values.push((&line[from..at] != null).then_some(value));
        if at == line.len() {
            return values;
        }
        at += 1;
        from = at;
    }
}

/// The values of a line of csv.
pub(super) fn csv_values<'l>(line: &'l [u8], format: &CopyFormat, n_columns: usize) -> Vec<LineValue<'l>> {
    let mut values = Vec::with_capacity(n_columns);
    let mut at = 0;
    loop {
        let rest = &line[at..];
        let stop = memchr2(format.delimiter, format.quote, rest).unwrap_or(rest.len());
        let (value, had_quotes, length) = match rest.get(stop) == Some(&format.quote) {
            true => {
                let (value, length) = quoted(rest, format);
                (Cow::Owned(value), true, length)
            }
            false => (Cow::Borrowed(&rest[..stop]), false, stop),
        };
        values.push(csv_value(values.len(), value, had_quotes, format));
        at += length;
        if at >= line.len() {
            return values;
        }
        at += 1;
    }
}

/// A value with quotes, up to the delimiter behind it, and its length in the line.
fn quoted(rest: &[u8], format: &CopyFormat) -> (Vec<u8>, usize) {
    let CopyFormat { delimiter, quote, escape, .. } = *format;
    let (mut value, mut is_quoted, mut at) = (Vec::new(), false, 0);
    while at < rest.len() {
        let (byte, next) = (rest[at], rest.get(at + 1).copied());
        if is_quoted {
            if byte == escape && (next == Some(escape) || next == Some(quote)) {
                value.extend(next);
                at += 1;
            } else if byte == quote {
                is_quoted = false;
            } else {
                let plain = memchr2(escape, quote, &rest[at + 1..]).map_or(rest.len(), |found| at + 1 + found);
                value.extend_from_slice(&rest[at..plain]);
                at = plain;
                continue;
            }
        } else if byte == delimiter {
            break;
        } else if byte == quote {
            is_quoted = true;
        } else {
            value.push(byte);
        }
        at += 1;
    }
    (value, at)
}

fn csv_value<'l>(at: usize, value: Cow<'l, [u8]>, had_quotes: bool, format: &CopyFormat) -> LineValue<'l> {
    let has = |columns: &[bool]| columns.get(at).copied().unwrap_or(false);
    let may_be_null = if had_quotes { has(&format.force_null) } else { !has(&format.force_not_null) };
    (!(may_be_null && *value == *format.null.as_bytes())).then_some(value)
}

/// Appends what stands after a backslash; tells how many bytes that is.
fn unescape(rest: &[u8], value: &mut Vec<u8>) -> usize {
    let number = |digits: &[u8], radix: u32, most: usize| {
        let n = digits.iter().take(most).take_while(|digit| char::from(**digit).is_digit(radix)).count();
        let text = std::str::from_utf8(&digits[..n]).ok()?;
        Some((u32::from_str_radix(text, radix).ok()? as u8, n))
    };
    let Some(first) = rest.first() else {
        value.push(b'\\');
        return 0;
    };
    let plain = match first {
        b'b' => 8,
        b'f' => 12,
        b'n' => b'\n',
        b'r' => b'\r',
        b't' => b'\t',
        b'v' => 11,
        b'0'..=b'7' => {
            let (byte, n) = number(rest, 8, 3).unwrap_or((0, 1));
            value.push(byte);
            return n;
        }
        b'x' => match number(&rest[1..], 16, 2) {
            Some((byte, n)) => {
                value.push(byte);
                return 1 + n;
            }
            None => b'x',
        },
        other => *other,
    };
    value.push(plain);
    1
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::copy::options::named as format;

    /// The values of a line of text, byte by byte.
    fn text_model(line: &[u8]) -> Vec<Option<Vec<u8>>> {
        let (mut values, mut value, mut from, mut at) = (vec![], vec![], 0, 0);
        while at <= line.len() {
            match line.get(at) {
                None | Some(b'\t') => {
                    let whole = std::mem::take(&mut value);
                    values.push((&line[from..at] != b"\\N").then_some(whole));
                    from = at + 1;
                }
                Some(b'\\') => at += unescape(&line[at + 1..], &mut value),
                Some(byte) => value.push(*byte),
            }
            at += 1;
        }
        values
    }

    /// The values of a line of csv, byte by byte.
    fn csv_model(line: &[u8], escape: u8) -> Vec<Option<Vec<u8>>> {
        let (mut values, mut value, mut is_quoted, mut had_quotes, mut at) = (vec![], vec![], false, false, 0);
        while at <= line.len() {
            let next = line.get(at + 1).copied();
            match line.get(at) {
                Some(byte) if is_quoted && *byte == escape && (next == Some(escape) || next == Some(b'"')) => {
                    value.extend(next);
                    at += 1;
                }
                Some(b'"') => (is_quoted, had_quotes) = (!is_quoted, true),
                Some(byte) if is_quoted || *byte != b',' => value.push(*byte),
                _ => {
                    let whole = std::mem::take(&mut value);
                    values.push((had_quotes || !whole.is_empty()).then_some(whole));
                    had_quotes = false;
                }
            }
            at += 1;
        }
        values
    }

    fn owned(values: Vec<LineValue<'_>>) -> Vec<Option<Vec<u8>>> {
        values.into_iter().map(|value| value.map(Cow::into_owned)).collect()
    }

    /// Bytes that mean something are frequent among random ones.
    fn line_of(bytes: &[u8]) -> Vec<u8> {
        bytes.iter().map(|byte| b"\t\\N,\"'axn07"[usize::from(*byte) % 11]).collect()
    }

    #[test]
    fn values_are_those_of_the_model() {
        bolero::check!().for_each(|bytes: &[u8]| {
            let line = line_of(bytes);
            assert_eq!(owned(text_values(&line, &format("text", None), 1)), text_model(&line));
            assert_eq!(owned(csv_values(&line, &format("csv", None), 1)), csv_model(&line, b'"'));
            assert_eq!(owned(csv_values(&line, &format("csv", Some("'")), 1)), csv_model(&line, b'\''));
        });
    }
}
