//! The order of `jsonb`, as a text whose order it is.
//!
//! Law: of two documents in normal form, the keys compare as PostgreSQL compares the documents:
//! null, strings, numbers, booleans, arrays, objects; longer arrays and objects behind shorter
//! ones, then element by element, member by member (name, value), shorter names first. An empty
//! array as a whole document comes before all others. Cost: one pass over the document; the key has
//! two digits a byte.

use std::fmt::Write;

use anabranch_batch::numeric;

use super::document::{Document, DocumentNode, Value};

/// What begins a value; of arrays and objects, so that a text's end comes before all of them.
const EMPTY: u8 = 1;
const NULL: u8 = 2;
const STRING: u8 = 3;
const NUMBER: u8 = 4;
const BOOL: u8 = 5;
const ARRAY: u8 = 6;
const OBJECT: u8 = 7;

/// The key of a document.
pub(super) fn key(document: &Document<'_>) -> Result<String, String> {
    let mut bytes = Vec::new();
    match &document.root.value {
        Value::Array(elements) if elements.is_empty() => bytes.push(EMPTY),
        _ => put(&mut bytes, document, &document.root)?,
    }
    let mut text = String::with_capacity(2 * bytes.len());
    for byte in bytes {
        let _ = write!(text, "{byte:02x}");
    }
    Ok(text)
}

fn put(out: &mut Vec<u8>, document: &Document<'_>, node: &DocumentNode) -> Result<(), String> {
    match &node.value {
        Value::Null => out.push(NULL),
        Value::Bool(is) => out.extend([BOOL, u8::from(*is)]),
        Value::Number => {
            let number = numeric::parse(document.raw(node)).map_err(|_| "a number of a document is too long")?;
            out.push(NUMBER);
            let mut bytes = Vec::new();
            numeric::encode(&number, &mut bytes);
            put_ended(out, &bytes);
        }
        Value::String(text) => {
            out.push(STRING);
            put_ended(out, text.as_bytes());
        }
        Value::Array(elements) => {
            out.push(ARRAY);
            out.extend((elements.len() as u32).to_be_bytes());
            elements.iter().try_for_each(|element| put(out, document, element))?;
        }
        Value::Object(members) => {
            let mut members: Vec<_> = members.iter().collect();
            members.sort_by(|(a, _), (b, _)| a.len().cmp(&b.len()).then_with(|| a.cmp(b)));
            out.push(OBJECT);
            out.extend((members.len() as u32).to_be_bytes());
            for (name, value) in members {
                put_ended(out, name.as_bytes());
                put(out, document, value)?;
            }
        }
    }
    Ok(())
}

/// Bytes with an end that comes before any that follow.
fn put_ended(out: &mut Vec<u8>, bytes: &[u8]) {
    for byte in bytes {
        match byte {
            0 => out.extend([0, 1]),
            byte => out.push(*byte),
        }
    }
    out.extend([0, 0]);
}
