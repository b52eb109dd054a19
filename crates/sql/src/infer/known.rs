//! What is known of parameters: their types, and of those that are texts which kind of text.

use anabranch_batch::{TextLimit, numeric};
use arrow::datatypes::{DataType, Field};

use super::arguments::TEXT;
use crate::resolve::documents::{limit_of, shown_form_of};
use crate::resolve::type_names::{canonical, is_text};

/// What is known, by parameter.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Known {
    types: Vec<Option<DataType>>,
    /// `uuid`, `json` or `jsonb`, of texts and of lists of texts.
    forms: Vec<Option<TextLimit>>,
}

impl Known {
    pub(super) fn of(given: &[Option<DataType>], n_parameters: usize) -> Known {
        let n = given.len().max(n_parameters);
        let mut types = given.to_vec();
        types.resize(n, None);
        Known { types, forms: vec![None; n] }
    }

    pub(super) fn is_open(&self) -> bool {
        self.types.iter().any(Option::is_none)
    }

    pub(super) fn type_of(&self, at: usize) -> Option<DataType> {
        self.types.get(at)?.clone()
    }

    /// The types, where an unknown one counts as `guess`.
    pub(super) fn guessed(&self, guess: &Option<DataType>) -> Vec<Option<DataType>> {
        self.types.iter().map(|known| known.clone().or_else(|| guess.clone())).collect()
    }

    /// Takes note of a parameter's type, if it is the first one said.
    pub(super) fn note(&mut self, at: Option<usize>, is: &DataType) {
        let is = match canonical(is) {
            // The digits after the point are not part of the type, in PostgreSQL.
            DataType::Decimal128(..) => numeric::TYPE,
            DataType::UInt8 | DataType::UInt16 | DataType::UInt32 | DataType::UInt64 => DataType::Int64,
            other => other,
        };
        if let Some(known) = at.and_then(|at| self.types.get_mut(at)) {
            known.get_or_insert(is);
        }
    }

    /// As [`note`](Self::note), of the type of a column.
    pub(super) fn note_field(&mut self, at: Option<usize>, field: &Field) {
        if let Some(form) = kept_form(field) {
            self.note_form(at, form);
        }
        self.note(at, field.data_type());
    }

    /// Takes note of a text's form, where the type is not known yet.
    pub(super) fn note_form(&mut self, at: Option<usize>, form: TextLimit) {
        if let Some(at) = at.filter(|at| self.types.get(*at).is_some_and(Option::is_none)) {
            self.forms[at] = Some(form);
        }
    }

    /// The parameters as fields that clients are told of; unknown ones are texts.
    pub(super) fn fields(self) -> Vec<Field> {
        let fields = self.types.into_iter().zip(self.forms).map(|(is, form)| {
            let is = is.unwrap_or(TEXT);
            match (form, &is) {
                (Some(form), is) if is_text(is) => form.declare(Field::new("", is.clone(), true)),
                (Some(form), DataType::List(element)) if is_text(element.data_type()) => {
                    let element = form.declare(Field::new_list_field(element.data_type().clone(), true));
                    Field::new_list("", element, true)
                }
                _ => Field::new("", is, true),
            }
        });
        fields.collect()
    }
}

/// The form of a column that is no plain text to clients.
pub(super) fn kept_form(field: &Field) -> Option<TextLimit> {
    let form = limit_of(field).or_else(|| shown_form_of(field));
    form.filter(|form| matches!(form, TextLimit::Uuid | TextLimit::Json | TextLimit::Jsonb))
}
