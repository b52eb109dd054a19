//! Declared forms of text columns: the lengths of `varchar(n)` and `char(n)`, and `name`, `"char"`,
//! `uuid`, `json`, `jsonb`.
//!
//! Arrow has no types for them: rows carry plain text, and the limit travels in the metadata of a
//! relation's field. Law, as PostgreSQL assigns: characters count, not bytes; spaces beyond the
//! limit are cut off; any other character beyond it does not fit. Trailing spaces of a `char(n)`
//! mean nothing, so they are not kept; [`TextLimit::padded`] adds them where a column is shown.
//! Cost: a look at the lengths when no value can be too long, else one pass over the values.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, ListArray, StringViewArray};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};

use crate::numeric::NumericPlaces;
use crate::time_precision::TimePrecision;

use crate::json;

/// The key in a field's metadata; the value is what [`Display`](fmt::Display) writes.
const KEY: &str = "anabranch.text_limit";

/// The same key of arrays, whose elements are meant.
const ELEMENTS_KEY: &str = "anabranch.element_limit";

/// What a text column takes, and how its texts are kept.
///
/// ```
/// use anabranch_batch::TextLimit;
/// assert_eq!(TextLimit::Varchar(3).fit("abc  ").as_deref(), Some("abc"));
/// assert_eq!(TextLimit::Varchar(3).fit("abcd"), None);
/// assert_eq!(TextLimit::Varchar(3).to_string(), "character varying(3)");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TextLimit {
    /// `varchar(n)`; of any length with [`TextLimit::UNBOUNDED`].
    Varchar(u64),
    /// `char(n)`; `bpchar` with [`TextLimit::UNBOUNDED`].
    Char(u64),
    /// `name`: 63 bytes at most, others are cut off.
    Name,
    /// `"char"`: one character, others are cut off.
    Letter,
    /// `uuid`: 32 hexadecimal digits, kept in lower case and groups of 8, 4, 4, 4 and 12.
    Uuid,
    /// `json`: a document, kept as it is written.
    Json,
    /// `jsonb`: a document in its [normal form](json::normal).
    Jsonb,
}

/// Bytes of a `name`, without the one that ends it in PostgreSQL.
const NAME_BYTES_MAX: usize = 63;

impl TextLimit {
    /// The length of a `varchar` or `bpchar` that says none.
    pub const UNBOUNDED: u64 = u64::MAX;

    /// The forms that have no length.
    const PLAIN: [TextLimit; 7] = [
        TextLimit::Varchar(TextLimit::UNBOUNDED),
        TextLimit::Char(TextLimit::UNBOUNDED),
        TextLimit::Name,
        TextLimit::Letter,
        TextLimit::Uuid,
        TextLimit::Json,
        TextLimit::Jsonb,
    ];

    /// The limit that a field declares.
    pub fn of(field: &Field) -> Option<TextLimit> {
        TextLimit::named(field.metadata().get(KEY)?)
    }

    /// The limit that [`Display`](fmt::Display) writes so.
    pub fn named(text: &str) -> Option<TextLimit> {
        if let Some(form) = TextLimit::PLAIN.iter().find(|form| form.to_string() == *text) {
            return Some(*form);
        }
        let (name, digits) = text.strip_suffix(')')?.split_once('(')?;
        let n = digits.parse().ok()?;
        match name {
            "character" => Some(TextLimit::Char(n)),
            "character varying" => Some(TextLimit::Varchar(n)),
            _ => None,
        }
    }

    /// Whether every text is kept as it is.
    pub fn takes_all(self) -> bool {
        self == TextLimit::Varchar(TextLimit::UNBOUNDED)
    }

    /// The type without a length: what `pg_typeof` tells.
    pub fn type_name(self) -> &'static str {
        match self {
            TextLimit::Varchar(_) => "character varying",
            TextLimit::Char(_) => "character",
            TextLimit::Name => "name",
            TextLimit::Letter => "\"char\"",
            TextLimit::Uuid => "uuid",
            TextLimit::Json => "json",
            TextLimit::Jsonb => "jsonb",
        }
    }

    /// A column as it is shown: `char(n)` is filled up with spaces to its length.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use anabranch_batch::TextLimit;
    /// # use arrow::array::{ArrayRef, AsArray, StringViewArray};
    /// let kept: ArrayRef = Arc::new(StringViewArray::from(vec!["ab"]));
    /// assert_eq!(TextLimit::Char(4).padded(&kept).as_string_view().value(0), "ab  ");
    /// ```
    pub fn padded(self, column: &ArrayRef) -> ArrayRef {
        let (TextLimit::Char(n), Some(texts)) = (self, column.as_string_view_opt()) else { return column.clone() };
        if n == TextLimit::UNBOUNDED {
            return column.clone();
        }
        let pad = |text: &str| {
            let missing = (n as usize).saturating_sub(text.chars().count());
            format!("{text}{}", " ".repeat(missing))
        };
        let padded: StringViewArray = texts.iter().map(|text| text.map(pad)).collect();
        Arc::new(padded)
    }

    /// The text cut to the length, as a cast does; forms without a length keep it whole.
    ///
    /// ```
    /// # use anabranch_batch::TextLimit;
    /// assert_eq!(TextLimit::Varchar(2).cut("a cd"), "a ");
    /// assert_eq!(TextLimit::Char(2).cut("a cd"), "a");
    /// ```
    pub fn cut(self, text: &str) -> &str {
        let first = |n: u64| match text.char_indices().nth(usize::try_from(n).unwrap_or(usize::MAX)) {
            Some((end, _)) if text.len() as u64 > n => &text[..end],
            _ => text,
        };
        match self {
            TextLimit::Varchar(n) if n < text.len() as u64 => first(n),
            TextLimit::Char(n) if n < text.len() as u64 => first(n).trim_end_matches(' '),
            TextLimit::Char(_) => text.trim_end_matches(' '),
            TextLimit::Letter => first(1),
            TextLimit::Name if text.len() > NAME_BYTES_MAX => {
                let fits = |(at, c): &(usize, char)| at + c.len_utf8() <= NAME_BYTES_MAX;
                let end = text.char_indices().take_while(fits).last().map_or(0, |(at, c)| at + c.len_utf8());
                &text[..end]
            }
            _ => text,
        }
    }

    /// The field with this limit declared.
    pub fn declare(self, field: Field) -> Field {
        field.with_metadata(HashMap::from([(KEY.to_string(), self.to_string())]))
    }

    /// The limit that the field of an array declares for its elements.
    pub fn of_elements(field: &Field) -> Option<TextLimit> {
        TextLimit::named(field.metadata().get(ELEMENTS_KEY)?)
    }

    /// The field of an array with this limit declared for its elements.
    pub fn declare_elements(self, field: Field) -> Field {
        field.with_metadata(HashMap::from([(ELEMENTS_KEY.to_string(), self.to_string())]))
    }

    /// Arrays with their elements as they are stored; else the first element that does not fit.
    ///
    /// # Errors
    /// That element.
    pub fn fit_elements(self, column: &ArrayRef) -> Result<ArrayRef, String> {
        if let Some(lists) = column.as_list_opt::<i32>() {
            let values = self.fit_elements(lists.values())?;
            let DataType::List(element) = lists.data_type() else { return Ok(column.clone()) };
            let (offsets, nulls) = (lists.offsets().clone(), lists.nulls().cloned());
            return Ok(Arc::new(ListArray::new(element.clone(), offsets, values, nulls)));
        }
        let Some(texts) = column.as_string_view_opt() else { return Ok(column.clone()) };
        let (fitted, misfits) = self.fit_column(column);
        misfits.first().map_or(Ok(fitted), |row| Err(texts.value(*row).to_string()))
    }

    /// The text as it is stored; `None` if it does not fit.
    pub fn fit(self, text: &str) -> Option<Cow<'_, str>> {
        match self {
            TextLimit::Varchar(n) => cut(text, n).map(Cow::Borrowed),
            TextLimit::Name | TextLimit::Letter => Some(Cow::Borrowed(self.cut(text))),
            TextLimit::Char(n) => cut(text.trim_end_matches(' '), n).map(Cow::Borrowed),
            TextLimit::Uuid => uuid(text).map(|uuid| if uuid == text { Cow::Borrowed(text) } else { Cow::Owned(uuid) }),
            TextLimit::Json => json::is_document(text).then_some(Cow::Borrowed(text)),
            TextLimit::Jsonb => json::normal(text).map(Cow::Owned),
        }
    }

    /// What is wrong with a text that does not fit.
    pub fn misfit(self, text: &str) -> String {
        match self {
            TextLimit::Varchar(_) | TextLimit::Char(_) => format!("value too long for type {self}"),
            TextLimit::Uuid | TextLimit::Name | TextLimit::Letter => {
                format!("invalid input syntax for type {self}: \"{text}\"")
            }
            TextLimit::Json | TextLimit::Jsonb => json::fault(text),
        }
    }

    /// The column as it is stored, with NULL for texts that do not fit, and their rows.
    ///
    /// # Panics
    /// If the column is not of type `Utf8View`.
    pub fn fit_column(self, column: &ArrayRef) -> (ArrayRef, Vec<usize>) {
        if self.takes_all() {
            return (column.clone(), vec![]);
        }
        let texts = column.as_string_view();
        let as_is = |row: usize| texts.is_null(row) || self.fit(texts.value(row)).as_deref() == Some(texts.value(row));
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

/// The text without spaces beyond `n` characters; `None` if there is more.
fn cut(text: &str, n: u64) -> Option<&str> {
    if text.len() as u64 <= n {
        return Some(text);
    }
    match text.char_indices().nth(n as usize) {
        None => Some(text),
        Some((end, _)) => text[end..].bytes().all(|byte| byte == b' ').then(|| &text[..end]),
    }
}

/// A uuid as PostgreSQL writes it; read with or without braces, and with a hyphen or none behind
/// each four digits.
fn uuid(text: &str) -> Option<String> {
    let mut rest = text.as_bytes();
    let in_braces = rest.first() == Some(&b'{');
    if in_braces {
        rest = rest[1..].strip_suffix(b"}")?;
    }
    let mut out = String::with_capacity(36);
    for n in 0..32 {
        let (digit, behind) = rest.split_first()?;
        if !digit.is_ascii_hexdigit() {
            return None;
        }
        if matches!(n, 8 | 12 | 16 | 20) {
            out.push('-');
        }
        out.push(char::from(digit.to_ascii_lowercase()));
        rest = behind;
        if n % 4 == 3 && n < 31 {
            rest = rest.strip_prefix(b"-").unwrap_or(rest);
        }
    }
    rest.is_empty().then_some(out)
}

impl fmt::Display for TextLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            TextLimit::Varchar(TextLimit::UNBOUNDED) => f.write_str("character varying"),
            TextLimit::Char(TextLimit::UNBOUNDED) => f.write_str("bpchar"),
            TextLimit::Varchar(n) | TextLimit::Char(n) => write!(f, "{}({n})", self.type_name()),
            plain => f.write_str(plain.type_name()),
        }
    }
}

/// The schema without declared limits and precisions: what plans are made over.
pub fn without_limits(schema: &SchemaRef) -> SchemaRef {
    let is_limited = |field: &Field| {
        let limit = TextLimit::of(field).or_else(|| TextLimit::of_elements(field));
        limit.is_some() || TimePrecision::of(field).is_some() || NumericPlaces::of(field).is_some()
    };
    if !schema.fields().iter().any(|field| is_limited(field)) {
        return schema.clone();
    }
    let fields = schema.fields().iter().map(|field| match is_limited(field) {
        true => field.as_ref().clone().with_metadata(HashMap::new()),
        false => field.as_ref().clone(),
    });
    Arc::new(Schema::new(fields.collect::<Vec<_>>()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spaces_beyond_the_limit_are_cut_off() {
        assert_eq!(TextLimit::Varchar(3).fit("a    ").as_deref(), Some("a  "));
        assert_eq!(TextLimit::Char(3).fit("a    ").as_deref(), Some("a"));
        assert_eq!(TextLimit::Varchar(3).fit("a   b"), None);
        assert_eq!(TextLimit::Varchar(3).fit("éàü").as_deref(), Some("éàü"));
        assert_eq!(TextLimit::Varchar(2).fit("éàü"), None);
        assert_eq!(TextLimit::Varchar(2).fit("éà ").as_deref(), Some("éà"));
    }

    #[test]
    fn casts_cut_characters() {
        assert_eq!(TextLimit::Varchar(2).cut("éàü"), "éà");
        assert_eq!(TextLimit::Char(3).cut("é  àü"), "é");
        assert_eq!(TextLimit::Char(TextLimit::UNBOUNDED).cut("ab  "), "ab");
        assert_eq!(TextLimit::Letter.cut("éàü"), "é");
        assert_eq!(TextLimit::Name.cut(&"é".repeat(40)), "é".repeat(31));
    }

    #[test]
    fn uuids_are_kept_in_one_form() {
        let kept = "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11";
        for text in [
            kept,
            "A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11",
            "{a0eebc999c0b4ef8bb6d6bb9bd380a11}",
            "a0ee-bc99-9c0b-4ef8-bb6d-6bb9-bd38-0a11",
        ] {
            assert_eq!(TextLimit::Uuid.fit(text).as_deref(), Some(kept));
        }
        for text in ["", "a0ee", "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a1", "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11 ", "x"] {
            assert_eq!(TextLimit::Uuid.fit(text), None);
        }
    }

    #[test]
    fn limits_survive_in_a_field() {
        for limit in [TextLimit::Varchar(10), TextLimit::Char(1)].into_iter().chain(TextLimit::PLAIN) {
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
