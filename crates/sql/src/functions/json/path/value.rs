//! Values of paths: documents taken apart.

use super::super::document::{Document, DocumentNode, Value, quoted};

/// A value of a path.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum PathValue {
    Null,
    Bool(bool),
    /// As it is written.
    Number(String),
    String(String),
    Array(Vec<PathValue>),
    Object(Vec<(String, PathValue)>),
}

impl PathValue {
    pub fn read(text: &str) -> Result<PathValue, String> {
        let document = Document::read(text)?;
        Ok(PathValue::of(&document, &document.root))
    }

    fn of(document: &Document<'_>, node: &DocumentNode) -> PathValue {
        match &node.value {
            Value::Null => PathValue::Null,
            Value::Bool(is) => PathValue::Bool(*is),
            Value::Number => PathValue::Number(document.raw(node).to_owned()),
            Value::String(text) => PathValue::String(text.clone()),
            Value::Array(elements) => {
                PathValue::Array(elements.iter().map(|element| PathValue::of(document, element)).collect())
            }
            Value::Object(members) => {
                let members = members.iter().map(|(name, node)| (name.clone(), PathValue::of(document, node)));
                PathValue::Object(members.collect())
            }
        }
    }

    /// The value as a document.
    pub fn write(&self, out: &mut String) {
        match self {
            PathValue::Null => out.push_str("null"),
            PathValue::Bool(is) => out.push_str(if *is { "true" } else { "false" }),
            PathValue::Number(text) => out.push_str(text),
            PathValue::String(text) => out.push_str(&quoted(text)),
            PathValue::Array(elements) => {
                out.push('[');
                for (at, element) in elements.iter().enumerate() {
                    out.push_str(if at > 0 { ", " } else { "" });
                    element.write(out);
                }
                out.push(']');
            }
            PathValue::Object(members) => {
                out.push('{');
                for (at, (name, value)) in members.iter().enumerate() {
                    out.push_str(if at > 0 { ", " } else { "" });
                    out.push_str(&quoted(name));
                    out.push_str(": ");
                    value.write(out);
                }
                out.push('}');
            }
        }
    }

    pub fn type_name(&self) -> &'static str {
        match self {
            PathValue::Null => "null",
            PathValue::Bool(_) => "boolean",
            PathValue::Number(_) => "number",
            PathValue::String(_) => "string",
            PathValue::Array(_) => "array",
            PathValue::Object(_) => "object",
        }
    }
}
