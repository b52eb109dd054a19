//! Lines to fields.

use crate::core::Core;
use crate::functor::{parse_number, unsigned};
use crate::record::{self, NIL, RecordPart};
use crate::value::{Base, Value};

/// Whether the text ends within double quotes, so that the record goes on in the next line.
pub(super) fn is_open(text: &str) -> bool {
    text.bytes().filter(|byte| *byte == b'"').count() % 2 == 1
}

/// The fields of a line. `is_structured` tells of each field whether it is a record, in which the
/// delimiter may stand.
pub(super) fn fields(line: &str, delimiter: &str, is_structured: &dyn Fn(usize) -> bool) -> Vec<String> {
    let mut fields = vec![];
    let mut rest = line;
    loop {
        let from = if is_structured(fields.len()) { balanced(rest) } else { 0 };
        match rest[from..].find(delimiter) {
            Some(at) => {
                fields.push(rest[..from + at].to_owned());
                rest = &rest[from + at + delimiter.len()..];
            }
            None => {
                fields.push(rest.to_owned());
                return fields;
            }
        }
    }
}

/// Bytes of the brackets that the text begins with, up to where they are closed.
fn balanced(text: &str) -> usize {
    let mut depth = 0_usize;
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b'[' | b'(' => depth += 1,
            b']' | b')' => {
                depth = depth.saturating_sub(1);
                if depth == 0 {
                    return at + 1;
                }
            }
            _ => {}
        }
    }
    0
}

/// The fields of an RFC 4180 record.
pub(super) fn quoted_fields(text: &str, delimiter: &str) -> Result<Vec<String>, String> {
    let mut fields = vec![];
    let mut rest = text;
    loop {
        let (field, after) = match rest.strip_prefix('"') {
            Some(inner) => quoted(inner)?,
            None => {
                let end = rest.find(delimiter).unwrap_or(rest.len());
                (rest[..end].to_owned(), &rest[end..])
            }
        };
        fields.push(field);
        if after.is_empty() {
            return Ok(fields);
        }
        rest = after.strip_prefix(delimiter).ok_or("there is text after a field's closing quote")?;
    }
}

/// The field up to its closing quote, and what follows.
fn quoted(text: &str) -> Result<(String, &str), String> {
    let mut field = String::new();
    let mut rest = text;
    loop {
        let end = rest.find('"').ok_or("a field's closing quote is missing")?;
        field.push_str(&rest[..end]);
        rest = &rest[end + 1..];
        match rest.strip_prefix('"') {
            Some(after) => {
                field.push('"');
                rest = after;
            }
            None => return Ok((field, rest)),
        }
    }
}

/// The value of a field.
pub(super) fn value(text: &str, base: Base, core: &Core) -> Result<Value, String> {
    match base {
        Base::Symbol => Ok(Value::Text(text.to_owned())),
        Base::Number => parse_number(text).map(Value::Number),
        Base::Unsigned => parse_number(text).and_then(unsigned).map(Value::Number),
        Base::Float => text.trim().parse().map(Value::Float).map_err(|_| format!("'{text}' is no float")),
        Base::Record(_) | Base::Branches(_) => {
            let (value, rest) = structure(text.trim(), base, core, 0)?;
            match rest.is_empty() {
                true => Ok(Value::Text(value)),
                false => Err(format!("'{rest}' follows the record")),
            }
        }
    }
}

/// Records within records, at most.
const DEPTH_MAX: usize = 1_000;

/// The record or branch that the text begins with, in its text form, and what follows.
fn structure<'t>(text: &'t str, base: Base, core: &Core, depth: usize) -> Result<(String, &'t str), String> {
    if depth > DEPTH_MAX {
        return Err(format!("the record is nested more than {DEPTH_MAX} deep"));
    }
    let text = text.trim_start();
    match base {
        Base::Record(place) => {
            if let Some(rest) = text.strip_prefix(NIL) {
                return Ok((NIL.to_owned(), rest));
            }
            let inner = text.strip_prefix('[').ok_or_else(|| format!("'{text}' is no record"))?;
            parts(inner, None, &core.records[place], ']', core, depth)
        }
        Base::Branches(place) => {
            let inner = text.strip_prefix('$').ok_or_else(|| format!("'{text}' is no branch"))?;
            let end = inner.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_' || c == '?')).unwrap_or(inner.len());
            let (name, rest) = inner.split_at(end);
            let branch = core.branches[place].iter().find(|(branch, _)| branch == name);
            let (_, fields) = branch.ok_or_else(|| format!("there is no branch {name}"))?;
            match rest.strip_prefix('(') {
                Some(inner) => parts(inner, Some(name), fields, ')', core, depth),
                None if fields.is_empty() => Ok((record::write(Some(name), []), rest)),
                None => Err(format!("branch {name} lacks its values")),
            }
        }
        _ => Err("the value is no record".to_owned()),
    }
}

fn parts<'t>(
    text: &'t str,
    branch: Option<&str>,
    fields: &[Base],
    close: char,
    core: &Core,
    depth: usize,
) -> Result<(String, &'t str), String> {
    let mut rest = text;
    let mut values = vec![];
    for (idx, base) in fields.iter().enumerate() {
        if idx > 0 {
            rest = rest.trim_start().strip_prefix(',').ok_or("a record lacks a value")?;
        }
        rest = rest.trim_start();
        let after = match base {
            Base::Record(_) | Base::Branches(_) => {
                let (value, after) = structure(rest, *base, core, depth + 1)?;
                values.push((Value::Text(value), true));
                after
            }
            _ => {
                let (field, after) = plain_part(rest, close);
                values.push((value(&field, *base, core)?, false));
                after
            }
        };
        rest = after;
    }
    let rest = rest.trim_start().strip_prefix(close).ok_or("a record is not closed, or has too many values")?;
    let parts = values.iter().map(|(value, is_inner)| match value {
        Value::Text(text) if *is_inner => RecordPart::Inner(text),
        Value::Text(text) => RecordPart::Text(text),
        Value::Number(number) => RecordPart::Number(*number),
        Value::Float(number) => RecordPart::Float(*number),
    });
    Ok((record::write(branch, parts), rest))
}

/// A symbol or number in a record, with or without quotes.
fn plain_part(text: &str, close: char) -> (String, &str) {
    if text.starts_with('"') {
        let mut escaped = false;
        for (at, byte) in text.bytes().enumerate().skip(1) {
            match byte {
                _ if escaped => escaped = false,
                b'\\' => escaped = true,
                b'"' => return (record::unquoted(&text[..=at]), &text[at + 1..]),
                _ => {}
            }
        }
    }
    let end = text.find([',', close]).unwrap_or(text.len());
    (text[..end].to_owned(), &text[end..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_are_doubled_inside() {
        assert_eq!(quoted_fields("\"a,\"\"b\",c", ",").unwrap(), ["a,\"b", "c"]);
        assert!(quoted_fields("\"a", ",").is_err());
    }

    #[test]
    fn a_record_keeps_its_delimiters() {
        assert_eq!(fields("[1, [2, nil]],x", ",", &|column| column == 0), ["[1, [2, nil]]", "x"]);
        assert_eq!(fields("a\tb", "\t", &|_| false), ["a", "b"]);
    }
}
