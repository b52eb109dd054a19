//! Documents without a part, with a part changed, or with a part put in: `-`, `#-`, `jsonb_set`,
//! `jsonb_insert`.
//!
//! Cost: the text of the document is copied, but for the part.

use super::document::{Document, DocumentNode, Value, place, quoted};
use super::frame::{Arg, FrameOut, normalised};

pub(super) fn delete(args: &[Arg]) -> Result<FrameOut, String> {
    let document = Document::read(args[0].text())?;
    match &args[1] {
        Arg::Number(at) => match &document.root.value {
            Value::Array(elements) => {
                let gone = place(*at, elements.len());
                without(&document, |at, _| Some(at) == gone)
            }
            Value::Object(_) => Err("cannot delete from object using integer index".to_string()),
            _ => Err("cannot delete from scalar".to_string()),
        },
        name => without(&document, |_, own| own == Some(name.text())),
    }
}

pub(super) fn delete_all(args: &[Arg]) -> Result<FrameOut, String> {
    let document = Document::read(args[0].text())?;
    let names: Vec<&str> = args[1].path().iter().flatten().map(String::as_str).collect();
    without(&document, |_, own| own.is_some_and(|own| names.contains(&own)))
}

/// The document without members of these names, or elements that are these strings.
fn without(document: &Document<'_>, is_gone: impl Fn(usize, Option<&str>) -> bool) -> Result<FrameOut, String> {
    let parts: Vec<String> = match &document.root.value {
        Value::Object(members) => members
            .iter()
            .enumerate()
            .filter(|(at, (name, _))| !is_gone(*at, Some(name)))
            .map(|(_, (name, node))| format!("{}: {}", quoted(name), document.raw(node)))
            .collect(),
        Value::Array(elements) => elements
            .iter()
            .enumerate()
            .filter(|(at, node)| {
                let own = match &node.value {
                    Value::String(text) => Some(text.as_str()),
                    _ => None,
                };
                !is_gone(*at, own)
            })
            .map(|(_, node)| document.raw(node).to_string())
            .collect(),
        _ => return Err("cannot delete from scalar".to_string()),
    };
    let (open, close) = if matches!(document.root.value, Value::Object(_)) { ('{', '}') } else { ('[', ']') };
    normalised(format!("{open}{}{close}", parts.join(", ")))
}

pub(super) fn delete_path(args: &[Arg]) -> Result<FrameOut, String> {
    let document = Document::read(args[0].text())?;
    if document.root.is_scalar() {
        return Err("cannot delete path in scalar".to_string());
    }
    normalised(changed(&document, &document.root, args[1].path(), &Change::Delete)?)
}

/// What becomes of the place that a path leads to.
enum Change<'a> {
    Delete,
    /// Sets the place, and makes it where it is not there, if that is wanted.
    Set {
        value: &'a str,
        creates: bool,
    },
    /// Puts a value beside the place.
    Insert {
        value: &'a str,
        after: bool,
    },
}

pub(super) fn set(args: &[Arg], inserts: bool) -> Result<FrameOut, String> {
    let document = Document::read(args[0].text())?;
    let value = args[2].text();
    Document::read(value)?;
    let flag = match args.get(3) {
        Some(Arg::Bool(flag)) => *flag,
        _ => !inserts,
    };
    if document.root.is_scalar() {
        return Err("cannot set path in scalar".to_string());
    }
    let change = match inserts {
        true => Change::Insert { value, after: flag },
        false => Change::Set { value, creates: flag },
    };
    normalised(changed(&document, &document.root, args[1].path(), &change)?)
}

/// A value's text with the place changed that a path leads to.
fn changed(
    document: &Document<'_>,
    node: &DocumentNode,
    path: &[Option<String>],
    change: &Change<'_>,
) -> Result<String, String> {
    let Some((step, rest)) = path.split_first() else { return Ok(document.raw(node).to_string()) };
    let Some(step) = step else { return Err("path element at position 1 is null".to_string()) };
    match &node.value {
        Value::Object(members) => changed_members(document, members, step, rest, change),
        Value::Array(elements) => changed_elements(document, elements, step, rest, change),
        _ => Ok(document.raw(node).to_string()),
    }
}

fn changed_members(
    document: &Document<'_>,
    members: &[(String, DocumentNode)],
    step: &str,
    rest: &[Option<String>],
    change: &Change<'_>,
) -> Result<String, String> {
    let mut parts = Vec::with_capacity(members.len() + 1);
    let mut found = false;
    for (name, own) in members {
        if name != step {
            parts.push(format!("{}: {}", quoted(name), document.raw(own)));
            continue;
        }
        found = true;
        let value = match (rest.is_empty(), change) {
            (false, _) => changed(document, own, rest, change)?,
            (true, Change::Delete) => continue,
            (true, Change::Set { value, .. }) => (*value).to_string(),
            (true, Change::Insert { .. }) => return Err("cannot replace existing key".to_string()),
        };
        parts.push(format!("{}: {value}", quoted(name)));
    }
    if !found && rest.is_empty() {
        match change {
            Change::Set { value, creates: true } | Change::Insert { value, .. } => {
                parts.push(format!("{}: {value}", quoted(step)));
            }
            _ => {}
        }
    }
    Ok(format!("{{{}}}", parts.join(", ")))
}

fn changed_elements(
    document: &Document<'_>,
    elements: &[DocumentNode],
    step: &str,
    rest: &[Option<String>],
    change: &Change<'_>,
) -> Result<String, String> {
    let wanted: i64 =
        step.trim().parse().map_err(|_| format!("path element at position 1 is not an integer: \"{step}\""))?;
    let at = place(wanted, elements.len());
    let mut parts = Vec::with_capacity(elements.len() + 1);
    for (own_at, own) in elements.iter().enumerate() {
        if Some(own_at) != at {
            parts.push(document.raw(own).to_string());
            continue;
        }
        match (rest.is_empty(), change) {
            (false, _) => parts.push(changed(document, own, rest, change)?),
            (true, Change::Delete) => {}
            (true, Change::Set { value, .. }) => parts.push((*value).to_string()),
            (true, Change::Insert { value, after }) => {
                let own = document.raw(own).to_string();
                let value = (*value).to_string();
                parts.extend(if *after { [own, value] } else { [value, own] });
            }
        }
    }
    if at.is_none() && rest.is_empty() {
        let value = match change {
            Change::Set { value, creates: true } | Change::Insert { value, .. } => Some((*value).to_string()),
            _ => None,
        };
        // (Beyond an end is that end.)
        match value {
            Some(value) if wanted < 0 => parts.insert(0, value),
            Some(value) => parts.push(value),
            None => {}
        }
    }
    Ok(format!("[{}]", parts.join(", ")))
}
