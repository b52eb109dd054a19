//! Documents of JSON: whether a text is one, and the normal form that `jsonb` has.
//!
//! The grammar is RFC 8259's. The normal form is PostgreSQL's: `{"a": 1, "bb": [true, null]}`, with
//! shorter names first, the last of equal names kept, and numbers written out. Cost: one pass over
//! the text; the normal form sorts each object's names.

use std::borrow::Cow;
use std::collections::BTreeMap;

/// The most arrays and objects in each other.
const DEPTH_MAX: usize = 500;

/// The most digits in front of or behind the point of a number's normal form.
const DIGITS_MAX: usize = 131_072;

/// Whether a text is a document.
///
/// ```
/// use anabranch_batch::json;
/// assert!(json::is_document(r#"{"a": [1, 2e3]}"#));
/// assert!(!json::is_document("{a: 1}"));
/// ```
pub fn is_document(text: &str) -> bool {
    let mut reader = JsonReader { text: text.as_bytes(), at: 0, depth: 0 };
    reader.document(&mut Checked).is_some()
}

/// The normal form of a document; `None` if the text is none, or holds a zero character, which no
/// text can.
///
/// ```
/// use anabranch_batch::json;
/// assert_eq!(json::normal(r#"{"bb":1.50, "a" : [1e2],"bb":2}"#).as_deref(), Some(r#"{"a": [100], "bb": 2}"#));
/// ```
pub fn normal(text: &str) -> Option<String> {
    let mut reader = JsonReader { text: text.as_bytes(), at: 0, depth: 0 };
    reader.document(&mut Normal)
}

/// What is wrong with a text that is no document.
///
/// ```
/// use anabranch_batch::json;
/// assert!(json::fault("[").starts_with("invalid input syntax"));
/// assert!(json::fault(&"[".repeat(1000)).starts_with("stack depth"));
/// ```
pub fn fault(text: &str) -> String {
    let (mut depth, mut is_quoted, mut is_escaped) = (0_usize, false, false);
    for byte in text.bytes() {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' if is_quoted => is_escaped = true,
            b'"' => is_quoted = !is_quoted,
            b'[' | b'{' if !is_quoted => depth += 1,
            b']' | b'}' if !is_quoted => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth > DEPTH_MAX {
            return format!("stack depth limit exceeded: more than {DEPTH_MAX} arrays and objects in each other");
        }
    }
    "invalid input syntax for type json".to_owned()
}

/// A document in normal form with its numbers without zeros at their end: `1.0` is `1`. Documents
/// that are equal have the same text then.
///
/// ```
/// use anabranch_batch::json;
/// assert_eq!(json::without_zeros(r#"{"1.0": [1.50, 2.0, 100, "1.0\""]}"#), r#"{"1.0": [1.5, 2, 100, "1.0\""]}"#);
/// ```
pub fn without_zeros(text: &str) -> Cow<'_, str> {
    let mut out = String::new();
    let (mut copied, mut point) = (0, None);
    let (mut in_string, mut is_escaped) = (false, false);
    for (at, byte) in text.bytes().chain([b' ']).enumerate() {
        if in_string {
            in_string = is_escaped || byte != b'"';
            is_escaped = !is_escaped && byte == b'\\';
        } else if byte == b'.' {
            point = Some(at);
        } else if !byte.is_ascii_digit() {
            if let Some(point) = point.take()
                && text[point..at].ends_with('0')
            {
                out.push_str(&text[copied..point]);
                let fraction = text[point..at].trim_end_matches('0');
                out.push_str(if fraction == "." { "" } else { fraction });
                copied = at;
            }
            in_string = byte == b'"';
        }
    }
    if copied == 0 {
        return Cow::Borrowed(text);
    }
    out.push_str(&text[copied..]);
    Cow::Owned(out)
}

/// What a reader makes of the parts of a document.
trait Make {
    type Value;
    fn word(&mut self, word: &'static str) -> Self::Value;
    fn number(&mut self, text: &str) -> Option<Self::Value>;
    fn string(&mut self, string: &Parts) -> Option<Self::Value>;
    fn array(&mut self, elements: Vec<Self::Value>) -> Self::Value;
    fn object(&mut self, members: Vec<(Parts, Self::Value)>) -> Option<Self::Value>;
}

/// A string without its quotes; `None` where surrogates or a zero keep it from being a text.
type Parts = Option<String>;

struct Checked;

impl Make for Checked {
    type Value = ();

    fn word(&mut self, _word: &'static str) {}

    fn number(&mut self, _text: &str) -> Option<()> {
        Some(())
    }

    fn string(&mut self, _string: &Parts) -> Option<()> {
        Some(())
    }

    fn array(&mut self, _elements: Vec<()>) {}

    fn object(&mut self, _members: Vec<(Parts, ())>) -> Option<()> {
        Some(())
    }
}

struct Normal;

impl Make for Normal {
    type Value = String;

    fn word(&mut self, word: &'static str) -> String {
        word.to_string()
    }

    fn number(&mut self, text: &str) -> Option<String> {
        plain_number(text)
    }

    fn string(&mut self, string: &Parts) -> Option<String> {
        string.as_deref().map(quoted)
    }

    fn array(&mut self, elements: Vec<String>) -> String {
        format!("[{}]", elements.join(", "))
    }

    fn object(&mut self, members: Vec<(Parts, String)>) -> Option<String> {
        let mut sorted: BTreeMap<(usize, String), String> = BTreeMap::new();
        for (name, value) in members {
            let name = name?;
            sorted.insert((name.len(), name), value);
        }
        let members: Vec<String> =
            sorted.into_iter().map(|((_, name), value)| format!("{}: {value}", quoted(&name))).collect();
        Some(format!("{{{}}}", members.join(", ")))
    }
}

/// A string in quotes, with escapes where they must be.
fn quoted(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            c if c < ' ' => out.push_str(&format!("\\u{:04x}", u32::from(c))),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

/// `-1.50e1` as `-15.0`: the number without an exponent, as `numeric` writes it.
fn plain_number(text: &str) -> Option<String> {
    let (sign, digits) = text.strip_prefix('-').map_or(("", text), |digits| ("-", digits));
    let (mantissa, exponent) = digits.split_once(['e', 'E']).unwrap_or((digits, "0"));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let exponent: i64 = exponent.parse().ok()?;
    let all = format!("{whole}{fraction}");
    let point = whole.len() as i64 + exponent;
    let n_decimals = usize::try_from((fraction.len() as i64 - exponent).max(0)).ok()?;
    let n_whole = usize::try_from(point.max(0)).ok()?;
    if n_decimals > DIGITS_MAX || n_whole > DIGITS_MAX {
        return None;
    }
    let zeros = |n: i64| "0".repeat(usize::try_from(n).unwrap_or(0));
    let (front, back) = if point <= 0 {
        (String::new(), zeros(-point) + &all)
    } else if point as usize >= all.len() {
        (all.clone() + &zeros(point - all.len() as i64), String::new())
    } else {
        (all[..point as usize].to_string(), all[point as usize..].to_string())
    };
    let back = if n_decimals == 0 { String::new() } else { back };
    let front = front.trim_start_matches('0');
    let front = if front.is_empty() { "0" } else { front };
    let is_zero = front == "0" && back.bytes().all(|digit| digit == b'0');
    let sign = if is_zero { "" } else { sign };
    Some(if back.is_empty() { format!("{sign}{front}") } else { format!("{sign}{front}.{back}") })
}

struct JsonReader<'t> {
    text: &'t [u8],
    at: usize,
    depth: usize,
}

impl JsonReader<'_> {
    fn document<M: Make>(&mut self, make: &mut M) -> Option<M::Value> {
        let value = self.value(make)?;
        self.skip();
        (self.at == self.text.len()).then_some(value)
    }

    fn skip(&mut self) {
        while matches!(self.text.get(self.at), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    fn eat(&mut self, byte: u8) -> bool {
        self.skip();
        let is_next = self.text.get(self.at) == Some(&byte);
        self.at += usize::from(is_next);
        is_next
    }

    fn value<M: Make>(&mut self, make: &mut M) -> Option<M::Value> {
        self.skip();
        match *self.text.get(self.at)? {
            b'{' => self.nested(|reader| reader.object(make)),
            b'[' => self.nested(|reader| reader.array(make)),
            b'"' => {
                let string = self.string()?;
                make.string(&string)
            }
            b't' => self.word("true").map(|word| make.word(word)),
            b'f' => self.word("false").map(|word| make.word(word)),
            b'n' => self.word("null").map(|word| make.word(word)),
            _ => self.number(make),
        }
    }

    fn nested<V>(&mut self, read: impl FnOnce(&mut Self) -> Option<V>) -> Option<V> {
        self.at += 1;
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return None;
        }
        let value = read(self);
        self.depth -= 1;
        value
    }

    fn word(&mut self, word: &'static str) -> Option<&'static str> {
        let found = self.text[self.at..].starts_with(word.as_bytes());
        self.at += word.len();
        found.then_some(word)
    }

    fn digits(&mut self) -> Option<()> {
        let start = self.at;
        while self.text.get(self.at).is_some_and(u8::is_ascii_digit) {
            self.at += 1;
        }
        (self.at > start).then_some(())
    }

    fn number<M: Make>(&mut self, make: &mut M) -> Option<M::Value> {
        let start = self.at;
        self.at += usize::from(self.text[self.at] == b'-');
        let is_zero = self.text.get(self.at) == Some(&b'0');
        let whole = self.at;
        self.digits()?;
        if is_zero && self.at > whole + 1 {
            return None;
        }
        if self.text.get(self.at) == Some(&b'.') {
            self.at += 1;
            self.digits()?;
        }
        if matches!(self.text.get(self.at), Some(b'e' | b'E')) {
            self.at += 1;
            self.at += usize::from(matches!(self.text.get(self.at), Some(b'+' | b'-')));
            self.digits()?;
        }
        make.number(std::str::from_utf8(&self.text[start..self.at]).ok()?)
    }

    /// The outer option is whether it is well formed.
    fn string(&mut self) -> Option<Parts> {
        self.at += 1;
        let mut bytes = Vec::new();
        let mut is_text = true;
        loop {
            let byte = *self.text.get(self.at)?;
            self.at += 1;
            match byte {
                b'"' => break,
                b'\\' => match self.escape()? {
                    Some(c) => bytes.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes()),
                    None => is_text = false,
                },
                ..b' ' => return None,
                other => bytes.push(other),
            }
        }
        let text = String::from_utf8(bytes).ok()?;
        Some(is_text.then_some(text))
    }

    /// The character of an escape; the inner option is whether a text can hold it.
    fn escape(&mut self) -> Option<Option<char>> {
        let letter = *self.text.get(self.at)?;
        self.at += 1;
        Some(Some(match letter {
            b'"' | b'\\' | b'/' => char::from(letter),
            b'b' => '\u{8}',
            b'f' => '\u{c}',
            b'n' => '\n',
            b'r' => '\r',
            b't' => '\t',
            b'u' => {
                let code = self.four_digits()?;
                let is_first = (0xd800..0xdc00).contains(&code);
                if is_first && self.text[self.at..].starts_with(b"\\u") {
                    self.at += 2;
                    let second = self.four_digits()?;
                    let is_second = (0xdc00..0xe000).contains(&second);
                    let both = 0x10000 + (code - 0xd800) * 0x400 + second.wrapping_sub(0xdc00);
                    return Some(if is_second { char::from_u32(both) } else { None });
                }
                return Some(char::from_u32(code).filter(|c| *c != '\0'));
            }
            _ => return None,
        }))
    }

    fn four_digits(&mut self) -> Option<u32> {
        let digits = self.text.get(self.at..self.at + 4)?;
        self.at += 4;
        digits.iter().try_fold(0, |code, digit| Some(code * 16 + char::from(*digit).to_digit(16)?))
    }

    fn array<M: Make>(&mut self, make: &mut M) -> Option<M::Value> {
        let mut elements = Vec::new();
        if self.eat(b']') {
            return Some(make.array(elements));
        }
        loop {
            elements.push(self.value(make)?);
            if self.eat(b']') {
                return Some(make.array(elements));
            }
            if !self.eat(b',') {
                return None;
            }
        }
    }

    fn object<M: Make>(&mut self, make: &mut M) -> Option<M::Value> {
        let mut members = Vec::new();
        if self.eat(b'}') {
            return make.object(members);
        }
        loop {
            self.skip();
            if self.text.get(self.at) != Some(&b'"') {
                return None;
            }
            let name = self.string()?;
            if !self.eat(b':') {
                return None;
            }
            members.push((name, self.value(make)?));
            if self.eat(b'}') {
                return make.object(members);
            }
            if !self.eat(b',') {
                return None;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn documents_are_told_from_other_texts() {
        for text in ["1", " -0.5e+3 ", "\"\\u0041\"", "[]", "{}", "[1,[2,{\"a\":null}]]", "true", "\"\\u0000\""] {
            assert!(is_document(text), "{text}");
        }
        for text in ["", "01", "1.", ".5", "+1", "[1,]", "{\"a\"}", "{a:1}", "'a'", "nul", "\"\\x\"", "\"a\nb\"", "1 2"]
        {
            assert!(!is_document(text), "{text}");
        }
        assert!(!is_document(&"[".repeat(100_000)));
    }

    #[test]
    fn numbers_are_written_out() {
        for (text, expected) in [
            ("1e2", "100"),
            ("1.50", "1.50"),
            ("-0", "0"),
            ("-0.0", "0.0"),
            ("1.5e-3", "0.0015"),
            ("12.345e1", "123.45"),
            ("0e5", "0"),
            ("1.20e1", "12.0"),
        ] {
            assert_eq!(normal(text).as_deref(), Some(expected), "{text}");
        }
        assert_eq!(normal("1e999999999"), None);
    }

    #[test]
    fn members_are_sorted_by_length_and_the_last_of_equals_is_kept() {
        let normal = normal("{\"bb\":1,\"c\":2,\"a\":\"\\u00e9\\n\",\"bb\":[]}");
        assert_eq!(normal.as_deref(), Some("{\"a\": \"é\\n\", \"c\": 2, \"bb\": []}"));
    }
}
