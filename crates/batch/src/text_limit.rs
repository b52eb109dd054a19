//! Declared lengths of text columns: `varchar(n)` and `char(n)`.
//!
//! Arrow has no types for them: rows carry plain text, and the limit travels in the metadata of a
//! relation's field. Law, as PostgreSQL assigns: characters count, not bytes; spaces beyond the
//! limit are cut off; any other character beyond it does not fit. Trailing spaces of a `char(n)`
//! mean nothing, so they are not kept; PostgreSQL pads it when it is shown, which we leave to the
//! reader. Cost: a look at the lengths when no value can be too long, else one pass over the
//! values.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, StringViewArray};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};

/// The key in a field's metadata; the value is what [`Display`](fmt::Display) writes.
const KEY: &str = "anabranch.text_limit";

/// The most characters that a text column takes.
///
/// ```
/// use anabranch_batch::TextLimit;
/// assert_eq!(TextLimit::Varchar(3).fit("abc  "), Some("abc"));
/// assert_eq!(TextLimit::Varchar(3).fit("abcd"), None);
/// assert_eq!(TextLimit::Varchar(3).to_string(), "character varying(3)");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TextLimit {
    /// `varchar(n)`.
    Varchar(u64),
    /// `char(n)`.
    Char(u64),
}

impl TextLimit {
    /// The limit that a field declares.
    pub fn of(field: &Field) -> Option<TextLimit> {
        let text = field.metadata().get(KEY)?;
        let (name, digits) = text.strip_suffix(')')?.split_once('(')?;
        let n = digits.parse().ok()?;
        Some(if name == "character" { TextLimit::Char(n) } else { TextLimit::Varchar(n) })
    }

    /// The field with this limit declared.
    pub fn declare(self, field: Field) -> Field {
        field.with_metadata(HashMap::from([(KEY.to_string(), self.to_string())]))
    }

    /// The text as it is stored; `None` if it is too long.
    pub fn fit(self, text: &str) -> Option<&str> {
        let (TextLimit::Varchar(n) | TextLimit::Char(n)) = self;
        let text = match self {
            TextLimit::Varchar(_) => text,
            TextLimit::Char(_) => text.trim_end_matches(' '),
        };
        if text.len() as u64 <= n {
            return Some(text);
        }
        match text.char_indices().nth(n as usize) {
            None => Some(text),
            Some((end, _)) => text[end..].bytes().all(|byte| byte == b' ').then(|| &text[..end]),
        }
    }

    /// The column as it is stored, with NULL for texts that are too long, and their rows.
    ///
    /// # Panics
    /// If the column is not of type `Utf8View`.
    pub fn fit_column(self, column: &ArrayRef) -> (ArrayRef, Vec<usize>) {
        let texts = column.as_string_view();
        let as_is = |row: usize| texts.is_null(row) || self.fit(texts.value(row)) == Some(texts.value(row));
        if (0..texts.len()).all(as_is) {
            return (column.clone(), vec![]);
        }
        let mut too_long = Vec::new();
        let fitted = texts.iter().enumerate().map(|(row, text)| {
            let fitted = self.fit(text?);
            if fitted.is_none() {
                too_long.push(row);
            }
            fitted
        });
        let fitted: StringViewArray = fitted.collect();
        (Arc::new(fitted), too_long)
    }
}

impl fmt::Display for TextLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TextLimit::Varchar(n) => write!(f, "character varying({n})"),
            TextLimit::Char(n) => write!(f, "character({n})"),
        }
    }
}

/// The schema without declared limits: what plans are made over.
pub fn without_limits(schema: &SchemaRef) -> SchemaRef {
    if schema.fields().iter().all(|field| TextLimit::of(field).is_none()) {
        return schema.clone();
    }
    let fields = schema.fields().iter().map(|field| match field.data_type() {
        DataType::Utf8View => field.as_ref().clone().with_metadata(HashMap::new()),
        _ => field.as_ref().clone(),
    });
    Arc::new(Schema::new(fields.collect::<Vec<_>>()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spaces_beyond_the_limit_are_cut_off() {
        assert_eq!(TextLimit::Varchar(3).fit("a    "), Some("a  "));
        assert_eq!(TextLimit::Char(3).fit("a    "), Some("a"));
        assert_eq!(TextLimit::Varchar(3).fit("a   b"), None);
        assert_eq!(TextLimit::Varchar(3).fit("éàü"), Some("éàü"));
        assert_eq!(TextLimit::Varchar(2).fit("éàü"), None);
        assert_eq!(TextLimit::Varchar(2).fit("éà "), Some("éà"));
    }

    #[test]
    fn limits_survive_in_a_field() {
        for limit in [TextLimit::Varchar(10), TextLimit::Char(1)] {
            let field = limit.declare(Field::new("a", DataType::Utf8View, true));
            assert_eq!(TextLimit::of(&field), Some(limit));
            let plain = without_limits(&Arc::new(Schema::new(vec![field])));
            assert_eq!(TextLimit::of(plain.field(0)), None);
        }
    }

    #[test]
    fn a_column_keeps_what_fits() {
        let column: ArrayRef = Arc::new(StringViewArray::from(vec![Some("abc"), None, Some("abcd"), Some("ab   ")]));
        let (fitted, too_long) = TextLimit::Varchar(3).fit_column(&column);
        assert_eq!(too_long, [2]);
        let expected = StringViewArray::from(vec![Some("abc"), None, None, Some("ab ")]);
        assert_eq!(fitted.as_string_view(), &expected);
    }
}
