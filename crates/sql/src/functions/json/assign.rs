//! `j['a'][0] = v` in UPDATE: a document with one value put where subscripts lead.
//!
//! Law: what is missing on the way is made, an array where the subscript is a number; arrays are
//! filled up with null. A scalar on the way is an error.

use super::document::{Document, DocumentNode, Value, quoted};

/// A subscript.
struct SubscriptStep<'a> {
    name: &'a str,
    is_number: bool,
}

/// The document with the value at its subscripts; `kinds` has for each `i` or `t` (a number or a
/// text).
pub(super) fn assigned(
    document: Option<&str>,
    names: &[Option<String>],
    kinds: &str,
    value: &str,
) -> Result<String, String> {
    let names: Option<Vec<&str>> = names.iter().map(|name| name.as_deref()).collect();
    let names = names.ok_or("jsonb subscript in assignment must not be null")?;
    let kinds = kinds.chars();
    let steps: Vec<SubscriptStep> =
        names.into_iter().zip(kinds).map(|(name, kind)| SubscriptStep { name, is_number: kind == 'i' }).collect();
    Document::read(value)?;
    match document {
        None => made(&steps, 1, value),
        Some(text) => {
            let document = Document::read(text)?;
            put(&document, &document.root, &steps, 1, value)
        }
    }
}

fn put(
    document: &Document<'_>,
    node: &DocumentNode,
    steps: &[SubscriptStep<'_>],
    position: usize,
    value: &str,
) -> Result<String, String> {
    let Some((step, rest)) = steps.split_first() else { return Ok(value.to_owned()) };
    match &node.value {
        Value::Object(members) => {
            let mut parts = Vec::with_capacity(members.len() + 1);
            let mut found = false;
            for (name, own) in members {
                let text = match name == step.name {
                    true => put(document, own, rest, position + 1, value)?,
                    false => document.raw(own).to_owned(),
                };
                found |= name == step.name;
                parts.push(format!("{}: {text}", quoted(name)));
            }
            if !found {
                parts.push(format!("{}: {}", quoted(step.name), made(rest, position + 1, value)?));
            }
            Ok(format!("{{{}}}", parts.join(", ")))
        }
        Value::Array(elements) => {
            let at = place(step, elements.len(), position)?;
            let mut parts: Vec<String> = elements.iter().map(|own| document.raw(own).to_owned()).collect();
            if at < elements.len() {
                parts[at] = put(document, &elements[at], rest, position + 1, value)?;
            } else {
                parts.resize(at, "null".to_owned());
                parts.push(made(rest, position + 1, value)?);
            }
            Ok(format!("[{}]", parts.join(", ")))
        }
        _ => Err("cannot replace existing key: the path assumes a composite object, but it is a scalar value".into()),
    }
}

/// What is made where there is nothing yet.
fn made(steps: &[SubscriptStep<'_>], position: usize, value: &str) -> Result<String, String> {
    let Some((step, rest)) = steps.split_first() else { return Ok(value.to_owned()) };
    let inner = made(rest, position + 1, value)?;
    if !step.is_number {
        return Ok(format!("{{{}: {inner}}}", quoted(step.name)));
    }
    let mut parts = vec!["null".to_owned(); place(step, 0, position)?];
    parts.push(inner);
    Ok(format!("[{}]", parts.join(", ")))
}

/// A place in an array; the first 32,767 behind its end may be filled up.
fn place(step: &SubscriptStep<'_>, length: usize, position: usize) -> Result<usize, String> {
    const GAP_MAX: usize = 1 << 15;
    let name = step.name;
    let at: i64 = name
        .trim()
        .parse()
        .map_err(|_| format!("path element at position {position} is not an integer: \"{name}\""))?;
    let from_start = if at < 0 { at + length as i64 } else { at };
    usize::try_from(from_start)
        .ok()
        .filter(|at| *at < length + GAP_MAX)
        .ok_or_else(|| format!("path element at position {position} is out of range: {at}"))
}
