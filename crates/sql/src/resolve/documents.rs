//! Documents (`json`, `jsonb`), `uuid`, `name`, `varchar(n)` and `char(n)` among texts.
//!
//! Rows carry documents as text. In a plan the field of such a column is marked, by the key that
//! Arrow has for types beside its own: a cast to text takes the mark away. The mark decides what
//! operators mean, and what a client is told.

use std::collections::HashMap;
use std::sync::Arc;

use anabranch_batch::numeric::NumericPlaces;
use anabranch_batch::{TextLimit, TimePrecision, without_limits};
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

    /// The type, as SQL names it.
    pub(crate) fn type_name(self) -> &'static str {
        match self {
            DocumentForm::Json => "json",
            DocumentForm::Jsonb => "jsonb",
        }
    }

    /// The field with the mark.
    pub(crate) fn mark(self, field: Field) -> Field {
        marked(field, self.name())
    }

    /// The field of lists of documents, with their mark.
    pub(crate) fn mark_list(self, field: Field) -> Field {
        marked(field, &format!("{}{OF_LIST}", self.name()))
    }
}

/// What the mark of a list ends with.
const OF_LIST: &str = "[]";

/// What marks begin with; the name of the type follows.
const PREFIX: &str = "anabranch.";

/// What the mark of a precision begins with; the number of digits follows.
const PRECISION: &str = "anabranch.precision.";

/// What the mark of places begins with; their number follows.
const PLACES: &str = "anabranch.places.";

/// The field with the mark of a limit.
pub(crate) fn marked_field(field: Field, limit: TextLimit) -> Field {
    marked(field, &format!("{PREFIX}{limit}"))
}

fn marked(field: Field, mark: &str) -> Field {
    field.with_metadata(HashMap::from([(KEY.to_string(), mark.to_string())]))
}

/// The precision of a column of times.
pub(crate) fn marked_precision(field: &Field) -> Option<TimePrecision> {
    field.metadata().get(KEY)?.strip_prefix(PRECISION)?.parse().ok().map(TimePrecision)
}

/// The places of a column of numerics without a scale.
pub(crate) fn marked_places(field: &Field) -> Option<NumericPlaces> {
    field.metadata().get(KEY)?.strip_prefix(PLACES)?.parse().ok().map(NumericPlaces)
}

/// The limit whose form the texts of a marked field have: literals beside them are read in it.
pub(crate) fn kept_form_of(field: &Field) -> Option<TextLimit> {
    match shown_form_of(field)? {
        TextLimit::Uuid => Some(TextLimit::Uuid),
        TextLimit::Char(_) => Some(TextLimit::Char(TextLimit::UNBOUNDED)),
        _ => None,
    }
}

/// The form that a marked field is shown with.
pub(crate) fn shown_form_of(field: &Field) -> Option<TextLimit> {
    TextLimit::named(field.metadata().get(KEY)?.strip_prefix(PREFIX)?)
}

/// The form of a marked field.
pub(crate) fn form_of(field: &Field) -> Option<DocumentForm> {
    named_form(field.metadata().get(KEY)?)
}

/// The form of the documents in the lists of a marked field.
pub(crate) fn form_in_list(field: &Field) -> Option<DocumentForm> {
    named_form(field.metadata().get(KEY)?.strip_suffix(OF_LIST)?)
}

fn named_form(name: &str) -> Option<DocumentForm> {
    [DocumentForm::Json, DocumentForm::Jsonb].into_iter().find(|form| form.name() == name)
}

/// The form of the elements of a list: that which a column declares, or that of a marked field.
pub(crate) fn elements_limit_of(field: &Field) -> Option<TextLimit> {
    let marked = || TextLimit::named(field.metadata().get(KEY)?.strip_prefix(PREFIX)?.strip_suffix(OF_LIST)?);
    TextLimit::of_elements(field).or_else(marked)
}

/// The field of a list with the mark of its elements.
pub(crate) fn marked_list(field: Field, limit: TextLimit) -> Field {
    marked(field, &format!("{PREFIX}{limit}{OF_LIST}"))
}

/// Whether a marked field is of a type whose values mean more than their texts: a document, or a
/// label; or a list of documents.
pub(crate) fn is_kind_of_text(field: &Field) -> bool {
    form_of(field).is_some() || EnumMark::of_elements(field).is_some() || form_in_list(field).is_some()
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

/// A relation's columns as plans see them: without lengths and precisions; texts of types beside
/// `text` are marked.
pub fn planned_columns(schema: &SchemaRef) -> SchemaRef {
    let plain = without_limits(schema);
    let is_told = |field: &Field| {
        TimePrecision::of(field).is_some()
            || NumericPlaces::of(field).is_some()
            || EnumMark::of_elements(field).is_some()
    };
    let has_limit = |field: &Field| limit_of(field).or_else(|| elements_limit_of(field)).is_some();
    let has_mark = |field: &Field| has_limit(field) || is_told(field) || type_of(field).is_some();
    if !schema.fields().iter().any(|field| has_mark(field)) {
        return plain;
    }
    let fields = plain.fields().iter().zip(schema.fields()).map(|(plain, given)| {
        let plain = plain.as_ref().clone();
        if let Some(enumeration) = EnumMark::of_elements(given) {
            return enumeration.mark(plain);
        }
        if let Some(limit) = elements_limit_of(given) {
            return marked_list(plain, limit);
        }
        let plain = if type_of(given).is_some() { plain.with_metadata(HashMap::new()) } else { plain };
        match (limit_of(given), TimePrecision::of(given)) {
            (Some(limit), _) => marked_field(plain, limit),
            (None, Some(TimePrecision(digits))) => marked(plain, &format!("{PRECISION}{digits}")),
            (None, None) => match NumericPlaces::of(given) {
                Some(NumericPlaces(places)) => marked(plain, &format!("{PLACES}{places}")),
                None => plain,
            },
        }
    });
    Arc::new(Schema::new(fields.collect::<Vec<_>>()))
}
