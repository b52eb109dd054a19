//! Documents (`json`, `jsonb`), `uuid` and `char(n)` among texts.
//!
//! Rows carry documents as text. In a plan the field of such a column is marked, by the key that
//! Arrow has for types beside its own: a cast to text takes the mark away. The mark decides what
//! operators mean, and what a client is told.

use std::collections::HashMap;
use std::sync::Arc;

use anabranch_batch::{TextLimit, without_limits};
use arrow::datatypes::{Field, Schema, SchemaRef};

use crate::resolve::type_marks::{EnumMark, type_of};

/// Arrow's key for the name of a type beside its own.
const KEY: &str = "ARROW:extension:name";

/// Which kind of document.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum DocumentForm {
    /// As it was written.
    Json,
    /// In its normal form.
    Jsonb,
}

impl DocumentForm {
    fn name(self) -> &'static str {
        match self {
            DocumentForm::Json => "anabranch.json",
            DocumentForm::Jsonb => "anabranch.jsonb",
        }
    }

    /// The field with the mark.
    pub(crate) fn mark(self, field: Field) -> Field {
        field.with_metadata(HashMap::from([(KEY.to_string(), self.name().to_string())]))
    }
}

/// Arrow's name for texts that are kept in another form than they may be written in.
const UUID: &str = "anabranch.uuid";
const CHARACTER: &str = "anabranch.character";

/// The field of a `uuid`.
pub(crate) fn uuid_field(field: Field) -> Field {
    field.with_metadata(HashMap::from([(KEY.to_string(), UUID.to_string())]))
}

/// The limit whose form the texts of a marked field have: literals beside them are read in it.
pub(crate) fn kept_form_of(field: &Field) -> Option<TextLimit> {
    match field.metadata().get(KEY)?.as_str() {
        UUID => Some(TextLimit::Uuid),
        CHARACTER => Some(TextLimit::Char(u64::MAX)),
        _ => None,
    }
}

/// The form that a marked field is shown with.
pub(crate) fn shown_form_of(field: &Field) -> Option<TextLimit> {
    match form_of(field) {
        Some(DocumentForm::Json) => Some(TextLimit::Json),
        Some(DocumentForm::Jsonb) => Some(TextLimit::Jsonb),
        None => kept_form_of(field).filter(|form| *form == TextLimit::Uuid),
    }
}

/// The form of a marked field.
pub(crate) fn form_of(field: &Field) -> Option<DocumentForm> {
    let name = field.metadata().get(KEY)?;
    [DocumentForm::Json, DocumentForm::Jsonb].into_iter().find(|form| form.name() == name)
}

/// The limit of a column, those of documents in answers too.
pub(crate) fn limit_of(field: &Field) -> Option<TextLimit> {
    TextLimit::of(field).or_else(|| {
        Some(match form_of(field)? {
            DocumentForm::Json => TextLimit::Json,
            DocumentForm::Jsonb => TextLimit::Jsonb,
        })
    })
}

/// A relation's columns as plans see them: without lengths and precisions; documents are marked.
pub fn planned_columns(schema: &SchemaRef) -> SchemaRef {
    let plain = without_limits(schema);
    let mark = |field: &Field| match limit_of(field)? {
        TextLimit::Json => Some(DocumentForm::Json.name()),
        TextLimit::Jsonb => Some(DocumentForm::Jsonb.name()),
        TextLimit::Uuid => Some(UUID),
        TextLimit::Char(_) => Some(CHARACTER),
        TextLimit::Varchar(_) => None,
    };
    if schema.fields().iter().all(|field| mark(field).is_none() && type_of(field).is_none()) {
        return plain;
    }
    let fields = plain.fields().iter().zip(schema.fields()).map(|(plain, given)| {
        let marked = |mark: &str| HashMap::from([(KEY.to_string(), mark.to_string())]);
        let plain = plain.as_ref().clone().with_metadata(HashMap::new());
        if let Some(enumeration) = EnumMark::of(given) {
            return enumeration.declare(plain);
        }
        mark(given).map_or(plain.clone(), |mark| plain.with_metadata(marked(mark)))
    });
    Arc::new(Schema::new(fields.collect::<Vec<_>>()))
}
