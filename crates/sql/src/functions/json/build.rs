//! Documents made of values: arrays, objects, and the lists of aggregates.

use super::document::{Document, Value, quoted};
use super::frame::{Arg, FrameOut};

pub(super) fn pair(args: &[Arg]) -> Result<FrameOut, String> {
    match args {
        [Arg::Value { text: Some(name), .. }, Arg::Value { json, .. }] => {
            Ok(FrameOut::Text(format!("{} : {json}", quoted(name))))
        }
        _ => Err("field name must not be null".to_string()),
    }
}

/// A value as an element of `json_agg`, which begins a line for each row and array.
pub(super) fn line(value: &Arg) -> String {
    let Arg::Value { json, text } = value else { return value.text().to_string() };
    let text = text.as_deref().unwrap_or_default();
    let is_row = json.starts_with('{') && text.starts_with('(');
    let is_array = json.starts_with('[') && text.starts_with('{');
    if is_row || is_array { format!("\n {json}") } else { json.clone() }
}

/// The elements of a list as `json_agg` lists them.
pub(super) fn of_list(args: &[Arg]) -> Result<String, String> {
    let document = Document::read(args[0].text())?;
    let Value::Array(elements) = &document.root.value else { return Err("a list was expected".to_string()) };
    let parts: Vec<&str> = elements.iter().map(|node| document.raw(node)).collect();
    Ok(format!("[{}]", parts.join(", ")))
}

pub(super) fn joined(parts: &[Option<String>]) -> String {
    parts.iter().map(|part| part.as_deref().unwrap_or("null")).collect::<Vec<_>>().join(", ")
}

pub(super) fn array_of(args: &[Arg]) -> String {
    format!("[{}]", args.iter().map(Arg::text).collect::<Vec<_>>().join(", "))
}

pub(super) fn object_of(args: &[Arg]) -> Result<String, String> {
    if args.len() % 2 == 1 {
        return Err("argument list must have even number of elements".to_string());
    }
    let mut parts = Vec::with_capacity(args.len() / 2);
    for (at, pair) in args.chunks(2).enumerate() {
        match pair {
            [Arg::Value { text: Some(name), .. }, Arg::Value { json, .. }] => {
                parts.push(format!("{} : {json}", quoted(name)));
            }
            _ => return Err(format!("argument {}: key must not be null", 2 * at + 1)),
        }
    }
    Ok(format!("{{{}}}", parts.join(", ")))
}

/// Names and texts in turn, or names and texts of two lists.
pub(super) fn object_of_lists(args: &[Arg]) -> Result<String, String> {
    let pairs: Vec<(Option<String>, Option<String>)> = match args {
        [Arg::Path(both)] if both.len() % 2 == 0 => {
            both.chunks(2).map(|pair| (pair[0].clone(), pair[1].clone())).collect()
        }
        [Arg::Path(_)] => return Err("array must have even number of elements".to_string()),
        [Arg::Path(names), Arg::Path(values)] if names.len() == values.len() => {
            names.iter().cloned().zip(values.iter().cloned()).collect()
        }
        _ => return Err("mismatched array dimensions".to_string()),
    };
    let mut parts = Vec::with_capacity(pairs.len());
    for (name, value) in pairs {
        let name = name.ok_or("null value not allowed for object key")?;
        parts.push(format!("{} : {}", quoted(&name), value.map_or("null".to_string(), |value| quoted(&value))));
    }
    Ok(format!("{{{}}}", parts.join(", ")))
}
