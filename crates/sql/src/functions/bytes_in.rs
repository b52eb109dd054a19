//! Bytes as PostgreSQL reads them of texts.

/// Bytes as PostgreSQL reads them: `\x` and pairs of hexadecimal digits, or a text with `\\` for a
/// backslash and `\ooo` for other bytes.
///
/// # Errors
/// If the text is neither.
pub(crate) fn read(text: &str) -> Result<Vec<u8>, String> {
    match text.strip_prefix("\\x") {
        Some(digits) => hexadecimal(digits),
        None => read_escaped(text).ok_or_else(|| "invalid input syntax for type bytea".into()),
    }
}

/// Pairs of hexadecimal digits, with blanks between pairs.
///
/// # Errors
/// If the text has other characters, or half a pair.
pub(super) fn hexadecimal(digits: &str) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::with_capacity(digits.len() / 2);
    let mut rest = digits.chars();
    let value = |c: char| c.to_digit(16).ok_or_else(|| format!("invalid hexadecimal digit: \"{c}\""));
    while let Some(first) = rest.next() {
        if matches!(first, ' ' | '\n' | '\t' | '\r') {
            continue;
        }
        let first = value(first)?;
        let Some(second) = rest.next() else { return Err("invalid hexadecimal data: odd number of digits".into()) };
        bytes.push((first * 16 + value(second)?) as u8);
    }
    Ok(bytes)
}

/// A text with `\\` for a backslash and `\ooo` for other bytes than those of ASCII.
pub(super) fn read_escaped(text: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, behind @ ..] = rest {
        rest = match (first, behind) {
            (b'\\', [b'\\', behind @ ..]) => {
                bytes.push(b'\\');
                behind
            }
            (b'\\', [a @ b'0'..=b'3', b @ b'0'..=b'7', c @ b'0'..=b'7', behind @ ..]) => {
                bytes.push((a - b'0') * 64 + (b - b'0') * 8 + (c - b'0'));
                behind
            }
            (b'\\', _) => return None,
            _ => {
                bytes.push(*first);
                behind
            }
        };
    }
    Some(bytes)
}
