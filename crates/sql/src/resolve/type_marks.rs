//! What the field of a column tells of a user's type: its name, and the labels of an enumeration.
//!
//! In a plan the mark of an enumeration has the keys that Arrow has for types beside its own: what
//! is cast to text has it no more, wherever it comes from.

use std::collections::HashMap;

use arrow::datatypes::{DataType, Field};

/// The key of the name of a user's type in a field's metadata.
pub(crate) const TYPE: &str = "anabranch.type";

/// The key of the name of a domain over an enumeration, which is the type that a column declares.
pub(crate) const DECLARED: &str = "anabranch.declared";

/// The key of the labels of an enumeration, in their order.
const LABELS: &str = "anabranch.labels";

/// The same keys, of the elements of an array: the column is told as one of texts.
const ELEMENTS: &str = "anabranch.elements";
const ELEMENTS_LABELS: &str = "anabranch.elements.labels";

/// Arrow's keys for a type beside its own, which a cast takes away: marks of columns in plans stand
/// there.
const PLANNED: &str = "ARROW:extension:name";
const PLANNED_LABELS: &str = "ARROW:extension:metadata";

/// What the mark of an enumeration begins with in a plan; the type's name follows.
const PREFIX: &str = "anabranch.enum.";

/// What stands between two labels: a control character, which no keyboard types.
const BETWEEN: char = '\u{1f}';

/// An enumeration, as a mark of a field.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct EnumMark {
    /// The type's name.
    pub name: String,
    /// The labels, joined.
    pub labels: String,
}

impl EnumMark {
    /// That of a type with these labels.
    pub fn new(name: &str, labels: &[String]) -> EnumMark {
        EnumMark { name: name.to_owned(), labels: labels.join(&BETWEEN.to_string()) }
    }

    /// That of a field.
    pub fn of(field: &Field) -> Option<EnumMark> {
        let is_list = matches!(field.data_type(), DataType::List(_));
        EnumMark::of_elements(field).filter(|_| !is_list)
    }

    /// That of a field, or of the elements of an array.
    pub fn of_elements(field: &Field) -> Option<EnumMark> {
        let metadata = field.metadata();
        let both = |name, labels| Some((metadata.get(name)?.as_str(), metadata.get(labels)?));
        let declared = both(TYPE, LABELS).or_else(|| both(ELEMENTS, ELEMENTS_LABELS));
        let planned = || Some((metadata.get(PLANNED)?.strip_prefix(PREFIX)?, metadata.get(PLANNED_LABELS)?));
        let (name, labels) = declared.or_else(planned)?;
        Some(EnumMark { name: name.to_owned(), labels: labels.clone() })
    }

    /// The field of a value in a plan, with the mark.
    pub(crate) fn mark(&self, field: Field) -> Field {
        let metadata = [(PLANNED, format!("{PREFIX}{}", self.name)), (PLANNED_LABELS, self.labels.clone())];
        field.with_metadata(metadata.map(|(key, value)| (key.to_owned(), value)).into())
    }

    /// The field of a column that is of the type, or of arrays of it.
    pub fn declare(&self, field: Field) -> Field {
        let is_list = matches!(field.data_type(), DataType::List(_));
        let (name, labels) = if is_list { (ELEMENTS, ELEMENTS_LABELS) } else { (TYPE, LABELS) };
        let metadata = [(name, &self.name), (labels, &self.labels)];
        field.with_metadata(metadata.map(|(key, value)| (key.to_owned(), value.clone())).into())
    }

    /// The place of a label.
    pub fn place(&self, label: &str) -> Option<usize> {
        self.labels().position(|known| known == label)
    }

    /// The labels in their order.
    pub fn labels(&self) -> impl Iterator<Item = &str> {
        self.labels.split(BETWEEN)
    }

    /// What is wrong with a text that is no label.
    pub fn misfit(&self, text: &str) -> String {
        format!("invalid input value for enum {}: \"{text}\"", self.name)
    }
}

/// What the name of an array of a user's type ends with.
const OF_ARRAY: &str = "[]";

/// The name of the type of arrays of a user's type.
pub(crate) fn array_name(element: &str) -> String {
    format!("{element}{OF_ARRAY}")
}

/// The name of the user's type of whose values arrays have that type.
pub(crate) fn element_name(name: &str) -> Option<&str> {
    name.strip_suffix(OF_ARRAY)
}

/// The name of the user's type that a field, or the elements of its arrays, are of.
pub fn type_within(field: &Field) -> Option<&str> {
    type_of(field).or_else(|| field.metadata().get(ELEMENTS).map(String::as_str))
}

/// The name of the user's type that a field is of.
pub fn type_of(field: &Field) -> Option<&str> {
    field.metadata().get(TYPE).map(String::as_str)
}

/// The name of the user's type that a column declares.
pub(crate) fn declared_type_of(field: &Field) -> Option<&str> {
    field.metadata().get(DECLARED).map(String::as_str).or_else(|| type_of(field))
}

/// The field of a column whose type is not known yet.
pub(crate) fn unresolved(name: &str, type_name: &str) -> Field {
    let metadata = HashMap::from([(TYPE.to_owned(), type_name.to_owned())]);
    Field::new(name, DataType::Null, true).with_metadata(metadata)
}

/// Whether the type of a column is not known yet.
pub(crate) fn is_unresolved(field: &Field) -> bool {
    *field.data_type() == DataType::Null && type_of(field).is_some()
}
