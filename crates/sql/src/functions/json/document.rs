//! Documents as trees, and what operators of `json` and `jsonb` do to them.
//!
//! Law: answers are those of PostgreSQL 15. A tree borrows nothing; a value's text is a part of the
//! document's, so what is taken out of a `json` is written as it was, and what is taken out of a
//! `jsonb` is in normal form. Cost: one pass over the document a call.

use anabranch_batch::json::{fault, normal};

/// The most arrays and objects in each other.
const DEPTH_MAX: usize = 500;

/// A value, and where its text lies in the document's.
#[derive(Clone, Debug)]
pub(super) struct DocumentNode {
    pub start: usize,
    pub end: usize,
    pub value: Value,
}

#[derive(Clone, Debug)]
pub(super) enum Value {
    Null,
    Bool(bool),
    Number,
    /// Without its quotes.
    String(String),
    Array(Vec<DocumentNode>),
    /// In order; names may repeat.
    Object(Vec<(String, DocumentNode)>),
}

/// A document with its tree.
pub(super) struct Document<'a> {
    pub text: &'a str,
    pub root: DocumentNode,
}

impl<'a> Document<'a> {
    /// # Errors
    /// When the text is no document.
    pub fn read(text: &'a str) -> Result<Document<'a>, String> {
        let mut reader = DocumentReader { text: text.as_bytes(), at: 0, depth: 0 };
        let root = reader.node();
        reader.skip();
        match root.filter(|_| reader.at == text.len()) {
            Some(root) => Ok(Document { text, root }),
            None => Err(fault(text)),
        }
    }

    /// A value's text as it is written.
    pub fn raw(&self, node: &DocumentNode) -> &'a str {
        &self.text[node.start..node.end]
    }

    /// A value as text: strings without quotes, and NULL for null.
    pub fn plain(&self, node: &DocumentNode) -> Option<String> {
        match &node.value {
            Value::Null => None,
            Value::String(text) => Some(text.clone()),
            _ => Some(self.raw(node).to_string()),
        }
    }

    /// The value that a path leads to.
    pub fn follow(&self, path: &[Option<String>]) -> Option<&DocumentNode> {
        path.iter().try_fold(&self.root, |node, step| step.as_ref().and_then(|step| node.step(step)))
    }

    /// Whether `part`, of another document, is contained.
    pub fn contains(&self, other: &Document<'_>) -> bool {
        match (&self.root.value, &other.root.value) {
            // (An array may contain a value by itself.)
            (Value::Array(elements), Value::Null | Value::Bool(_) | Value::Number | Value::String(_)) => {
                elements.iter().any(|element| self.equals(element, other, &other.root))
            }
            _ => self.node_contains(&self.root, other, &other.root),
        }
    }

    fn node_contains(&self, node: &DocumentNode, other: &Document<'_>, part: &DocumentNode) -> bool {
        match (&node.value, &part.value) {
            (Value::Object(_), Value::Object(members)) => members
                .iter()
                .all(|(name, value)| node.member(name).is_some_and(|own| self.node_contains(own, other, value))),
            (Value::Array(own), Value::Array(elements)) => elements.iter().all(|element| {
                own.iter().any(|candidate| match (&candidate.value, &element.value) {
                    (Value::Array(_), Value::Array(_)) | (Value::Object(_), Value::Object(_)) => {
                        self.node_contains(candidate, other, element)
                    }
                    _ => self.equals(candidate, other, element),
                })
            }),
            _ => self.equals(node, other, part),
        }
    }

    /// Whether two scalars are equal.
    fn equals(&self, node: &DocumentNode, other: &Document<'_>, part: &DocumentNode) -> bool {
        match (&node.value, &part.value) {
            (Value::Null, Value::Null) => true,
            (Value::Bool(a), Value::Bool(b)) => a == b,
            (Value::String(a), Value::String(b)) => a == b,
            (Value::Number, Value::Number) => number_key(self.raw(node)) == number_key(other.raw(part)),
            _ => false,
        }
    }

    /// Whether an object has the name, or an array the string.
    pub fn has(&self, name: &str) -> bool {
        match &self.root.value {
            Value::Object(_) => self.root.member(name).is_some(),
            Value::Array(elements) => {
                elements.iter().any(|element| matches!(&element.value, Value::String(text) if text == name))
            }
            Value::String(text) => text == name,
            _ => false,
        }
    }
}

/// A number's digits without zeros that mean nothing.
fn number_key(text: &str) -> String {
    let plain = normal(text).unwrap_or_else(|| text.to_string());
    if plain.contains('.') { plain.trim_end_matches('0').trim_end_matches('.').to_string() } else { plain }
}

impl DocumentNode {
    /// The member of that name: the last of several.
    pub fn member(&self, name: &str) -> Option<&DocumentNode> {
        match &self.value {
            Value::Object(members) => members.iter().rev().find(|(own, _)| own == name).map(|(_, node)| node),
            _ => None,
        }
    }

    /// The element of that number, from 0; from the end if negative.
    pub fn element(&self, at: i64) -> Option<&DocumentNode> {
        match &self.value {
            Value::Array(elements) => elements.get(place(at, elements.len())?),
            _ => None,
        }
    }

    /// One step of a path.
    pub fn step(&self, step: &str) -> Option<&DocumentNode> {
        match &self.value {
            Value::Object(_) => self.member(step),
            Value::Array(_) => self.element(step.trim().parse().ok()?),
            _ => None,
        }
    }

    pub fn is_scalar(&self) -> bool {
        !matches!(self.value, Value::Array(_) | Value::Object(_))
    }

    /// What `json_typeof` says.
    pub fn type_name(&self) -> &'static str {
        match &self.value {
            Value::Null => "null",
            Value::Bool(_) => "boolean",
            Value::Number => "number",
            Value::String(_) => "string",
            Value::Array(_) => "array",
            Value::Object(_) => "object",
        }
    }
}

/// The place of an element counted from the start, or from the end if negative.
pub(super) fn place(at: i64, length: usize) -> Option<usize> {
    let at = if at < 0 { at + length as i64 } else { at };
    usize::try_from(at).ok().filter(|at| *at < length)
}

/// A text in quotes, with escapes where they must be.
pub(crate) fn quoted(text: &str) -> String {
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

struct DocumentReader<'t> {
    text: &'t [u8],
    at: usize,
    depth: usize,
}

impl DocumentReader<'_> {
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

    fn node(&mut self) -> Option<DocumentNode> {
        self.skip();
        let start = self.at;
        let value = match *self.text.get(self.at)? {
            b'{' => self.nested(Self::object)?,
            b'[' => self.nested(Self::array)?,
            b'"' => Value::String(self.string()?),
            b't' => self.word("true", Value::Bool(true))?,
            b'f' => self.word("false", Value::Bool(false))?,
            b'n' => self.word("null", Value::Null)?,
            _ => self.number()?,
        };
        Some(DocumentNode { start, end: self.at, value })
    }

    fn nested(&mut self, read: impl FnOnce(&mut Self) -> Option<Value>) -> Option<Value> {
        self.at += 1;
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return None;
        }
        let value = read(self);
        self.depth -= 1;
        value
    }

    fn word(&mut self, word: &str, value: Value) -> Option<Value> {
        let found = self.text[self.at..].starts_with(word.as_bytes());
        self.at += word.len();
        found.then_some(value)
    }

    fn number(&mut self) -> Option<Value> {
        let start = self.at;
        while matches!(self.text.get(self.at), Some(b'0'..=b'9' | b'-' | b'+' | b'.' | b'e' | b'E')) {
            self.at += 1;
        }
        let text = std::str::from_utf8(&self.text[start..self.at]).ok()?;
        (!text.is_empty() && anabranch_batch::json::is_document(text)).then_some(Value::Number)
    }

    /// The text in quotes that begins here.
    fn string(&mut self) -> Option<String> {
        let start = self.at + 1;
        self.at = start;
        let mut has_escapes = false;
        loop {
            match *self.text.get(self.at)? {
                b'"' => break,
                b'\\' => {
                    has_escapes = true;
                    self.at += 2;
                }
                ..b' ' => return None,
                _ => self.at += 1,
            }
        }
        let inner = std::str::from_utf8(&self.text[start..self.at]).ok()?;
        self.at += 1;
        if has_escapes { unescaped(inner) } else { Some(inner.to_string()) }
    }

    fn array(&mut self) -> Option<Value> {
        let mut elements = Vec::new();
        if self.eat(b']') {
            return Some(Value::Array(elements));
        }
        loop {
            elements.push(self.node()?);
            if self.eat(b']') {
                return Some(Value::Array(elements));
            }
            if !self.eat(b',') {
                return None;
            }
        }
    }

    fn object(&mut self) -> Option<Value> {
        let mut members = Vec::new();
        if self.eat(b'}') {
            return Some(Value::Object(members));
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
            members.push((name, self.node()?));
            if self.eat(b'}') {
                return Some(Value::Object(members));
            }
            if !self.eat(b',') {
                return None;
            }
        }
    }
}

/// A string's text without escapes.
fn unescaped(inner: &str) -> Option<String> {
    let mut out = String::with_capacity(inner.len());
    let mut chars = inner.chars();
    while let Some(c) = chars.next() {
        if c != '\\' {
            out.push(c);
            continue;
        }
        match chars.next()? {
            letter @ ('"' | '\\' | '/') => out.push(letter),
            'b' => out.push('\u{8}'),
            'f' => out.push('\u{c}'),
            'n' => out.push('\n'),
            'r' => out.push('\r'),
            't' => out.push('\t'),
            'u' => {
                let code = four_digits(&mut chars)?;
                let code = match code {
                    0xd800..0xdc00 => {
                        if (chars.next()?, chars.next()?) != ('\\', 'u') {
                            return None;
                        }
                        let second = four_digits(&mut chars)?;
                        let low = second.checked_sub(0xdc00).filter(|low| *low < 0x400)?;
                        0x10000 + (code - 0xd800) * 0x400 + low
                    }
                    code => code,
                };
                out.push(char::from_u32(code).filter(|c| *c != '\0')?);
            }
            _ => return None,
        }
    }
    Some(out)
}

fn four_digits(chars: &mut std::str::Chars<'_>) -> Option<u32> {
    (0..4).try_fold(0, |code, _| Some(code * 16 + chars.next()?.to_digit(16)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_know_where_they_stand() {
        let document = Document::read(" {\"a\" : [1, \"b\\n\\u00e9\"], \"a\": {\"c\": null}} ").expect("a document");
        let last = document.root.member("a").expect("a member");
        assert_eq!(document.raw(last), "{\"c\": null}");
        assert!(document.plain(last.member("c").expect("a member")).is_none());
        for text in ["", "{", "[1,]", "{\"a\"}", "1 2", "01", "\"\\x\"", "tru", "\"\\ud800\""] {
            assert!(Document::read(text).is_err(), "{text}");
        }
    }

    #[test]
    fn containment_is_postgresqls() {
        let contains = |a: &str, b: &str| {
            let (a, b) = (Document::read(a).expect("a document"), Document::read(b).expect("a document"));
            a.contains(&b)
        };
        assert!(!contains("[1, 2, [1, 3]]", "[1, 3]"));
        assert!(contains("[1, 2, [1, 3]]", "[[1, 3]]"));
        assert!(contains("[\"foo\", \"bar\"]", "\"bar\""));
        assert!(!contains("\"bar\"", "[\"bar\"]"));
        assert!(contains("{\"a\": {\"b\": 1.0, \"c\": 2}}", "{\"a\": {\"b\": 1}}"));
        assert!(contains("{}", "{}"));
        assert!(!contains("{\"a\": 1}", "{\"a\": {}}"));
    }
}
