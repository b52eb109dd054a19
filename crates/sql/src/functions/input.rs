//! Values read from text, and PostgreSQL's words for what does not fit a type.
//!
//! A cast of text first tries Arrow's kernel on the whole column. Only if that fails are the values
//! tried again without the blanks around them; so what is written usually costs one kernel.
//! Decimals and booleans, around which Arrow passes over Unicode's blanks, are read here. Dates,
//! times and intervals are read by `time`. Law: a value is read exactly, or its text is in the
//! error.

use std::sync::Arc;

use anabranch_batch::dimensions::next_ragged;
use anabranch_batch::numeric::TYPE as PLAIN_NUMERIC;
use arrow::array::{Array, ArrayRef, AsArray, BinaryViewBuilder, BooleanArray, ListArray, StringViewArray};
use arrow::buffer::OffsetBuffer;
use arrow::compute::{CastOptions, can_cast_types, cast, cast_with_options};
use arrow::datatypes::{DataType, FieldRef, Float64Type};
use arrow::util::display::array_value_to_string;

use crate::functions::bytes_in;
use crate::functions::decimal_text::read_plain;
use crate::functions::numeric_casts::convert_plain;
use crate::functions::numerics::{converts, is_convertible};
use crate::functions::rows::is_bytes;
use crate::resolve::type_names::{is_text, sql_name};
use crate::resolve::value_errors::field_overflow;
pub use crate::resolve::value_errors::in_words;
use crate::time::columns;
use crate::time::tokens::is_space;

/// Whether [`convert`] knows the way between two types.
pub fn can_convert(from: &DataType, to: &DataType) -> bool {
    if converts(from, to) { is_convertible(from, to) } else { can_cast_types(from, to) }
}

/// The column as another type; every value exactly, or an error in PostgreSQL's words.
///
/// # Errors
/// The first value that does not fit, by row.
pub fn convert(column: &ArrayRef, to: &DataType) -> Result<ArrayRef, String> {
    let strict = CastOptions { safe: false, ..CastOptions::default() };
    if let (DataType::List(element), true) = (to, is_text(column.data_type())) {
        return read_lists(column, element);
    }
    if columns::is_read(to) && is_text(column.data_type()) {
        let texts = cast(column, &DataType::Utf8View).map_err(|e| in_words(&e.to_string()))?;
        return columns::read_texts(texts.as_string_view(), to);
    }
    if converts(column.data_type(), to) {
        return convert_plain(column, to);
    }
    if is_bytes(to) && is_text(column.data_type()) {
        return read_bytes_column(column, to);
    }
    if is_text(column.data_type()) && matches!(to, DataType::Decimal128(..) | DataType::Boolean) {
        let texts = cast(column, &DataType::Utf8View).map_err(|e| in_words(&e.to_string()))?;
        return match to {
            DataType::Decimal128(digits, scale) => match read_plain(texts.as_string_view(), *digits, *scale) {
                Some(decimals) => Ok(Arc::new(decimals)),
                None => read_decimals(&texts, to),
            },
            _ => read_booleans(texts.as_string_view()),
        };
    }
    match cast_with_options(column, to, &strict) {
        Ok(converted) => match out_of_range(&converted, column) {
            Some(text) => Err(format!("\"{text}\" is out of range for type {}", sql_name(to))),
            None => Ok(converted),
        },
        Err(_) if is_text(column.data_type()) => convert_spelt(column, to),
        Err(error) => Err(match first_lost(column, to) {
            Some(_) if to.is_integer() => format!("{} out of range", sql_name(to)),
            Some(row) if to.is_decimal() => {
                format!("{}: {}", field_overflow(to), array_value_to_string(column, row).unwrap_or_default())
            }
            _ => in_words(&error.to_string()),
        }),
    }
}

/// Decimals by way of plain numerics, which are rounded as PostgreSQL rounds.
fn read_decimals(texts: &ArrayRef, to: &DataType) -> Result<ArrayRef, String> {
    let read = |texts: &ArrayRef| convert_plain(&convert_plain(texts, &PLAIN_NUMERIC)?, to);
    read(texts).map_err(|problem| {
        let row = (0..texts.len()).find(|row| read(&texts.slice(*row, 1)).is_err());
        row.map_or(problem, |row| misfit(texts.as_string_view().value(row), to))
    })
}

fn read_booleans(texts: &StringViewArray) -> Result<ArrayRef, String> {
    let read = |text: &str| boolean(text).ok_or_else(|| misfit(text, &DataType::Boolean));
    let booleans: Result<BooleanArray, String> = texts.iter().map(|text| text.map(read).transpose()).collect();
    Ok(Arc::new(booleans?))
}

/// A boolean by any begin of its word that is no begin of another's.
fn boolean(text: &str) -> Option<bool> {
    let word = trimmed(text).to_ascii_lowercase();
    let begins = |whole: &str, from: usize| word.len() >= from && whole.starts_with(&word);
    if begins("true", 1) || begins("yes", 1) || begins("on", 2) || word == "1" {
        return Some(true);
    }
    (begins("false", 1) || begins("no", 1) || begins("off", 2) || word == "0").then_some(false)
}

/// A text without the blanks of the C locale around it: those that casts pass over.
pub(crate) fn trimmed(text: &str) -> &str {
    text.trim_matches(is_space)
}

fn read_bytes_column(column: &ArrayRef, to: &DataType) -> Result<ArrayRef, String> {
    let texts = cast(column, &DataType::Utf8View).map_err(|e| in_words(&e.to_string()))?;
    let texts = texts.as_string_view();
    let mut bytes = BinaryViewBuilder::with_capacity(texts.len());
    for text in texts {
        match text {
            Some(text) => bytes.append_value(bytes_in::read(text)?),
            None => bytes.append_null(),
        }
    }
    let bytes: ArrayRef = Arc::new(bytes.finish());
    cast(&bytes, to).map_err(|e| in_words(&e.to_string()))
}

/// Lists as PostgreSQL writes them: `{1,2}`, `{"a, b",NULL}`.
fn read_lists(column: &ArrayRef, element: &FieldRef) -> Result<ArrayRef, String> {
    let texts = cast(column, &DataType::Utf8View).map_err(|e| in_words(&e.to_string()))?;
    let texts = texts.as_string_view();
    let mut elements: Vec<Option<String>> = Vec::new();
    let mut lengths: Vec<usize> = Vec::with_capacity(texts.len());
    let is_of_lists = matches!(element.data_type(), DataType::List(_));
    for text in texts {
        let before = elements.len();
        if let Some(text) = text {
            let n_lists = read_list(text, &mut elements).ok_or_else(|| match trimmed(text).starts_with('[') {
                true => format!("arrays begin at 1 here: write \"{text}\" without its bounds"),
                false => format!("malformed array literal: \"{text}\""),
            })?;
            let n_expected = if is_of_lists { elements.len() - before } else { 0 };
            if n_lists != n_expected {
                return Err(format!("malformed array literal: \"{text}\""));
            }
        }
        lengths.push(elements.len() - before);
    }
    let elements: ArrayRef = Arc::new(elements.into_iter().collect::<StringViewArray>());
    let elements = convert(&elements, element.data_type())?;
    let offsets = OffsetBuffer::from_lengths(lengths);
    let lists = ListArray::try_new(element.clone(), offsets, elements, texts.nulls().cloned());
    let lists = lists.map_err(|e| in_words(&e.to_string()))?;
    match next_ragged(&lists, 0) {
        Some(row) => Err(format!("malformed array literal: \"{}\"", texts.value(row))),
        None => Ok(Arc::new(lists)),
    }
}

/// Where the list ends that the text begins with; `None` if it does not end.
fn end_of_list(text: &str) -> Option<usize> {
    let (mut depth, mut quoted) = (0, false);
    let mut chars = text.char_indices();
    while let Some((at, c)) = chars.next() {
        match c {
            '\\' => {
                chars.next()?;
            }
            '"' => quoted = !quoted,
            '{' if !quoted => depth += 1,
            '}' if !quoted => {
                depth -= 1;
                if depth == 0 {
                    return Some(at + 1);
                }
            }
            _ => {}
        }
    }
    None
}

/// Adds the elements of one list; `None` if it is not well formed. A list within is an element as
/// it is written; how many there are is told.
pub(crate) fn read_list(text: &str, elements: &mut Vec<Option<String>>) -> Option<usize> {
    let inner = trimmed(text).strip_prefix('{')?.strip_suffix('}')?;
    let mut n_lists = 0;
    let mut rest = trimmed(inner);
    if rest.is_empty() {
        return Some(n_lists);
    }
    loop {
        if rest.starts_with('{') {
            let end = end_of_list(rest)?;
            elements.push(Some(rest[..end].to_string()));
            n_lists += 1;
            rest = rest[end..].trim_start_matches(is_space);
            if rest.is_empty() {
                return Some(n_lists);
            }
            rest = rest.strip_prefix(',')?.trim_start_matches(is_space);
            continue;
        }
        let mut element = String::new();
        let quoted = rest.starts_with('"');
        let mut chars = rest.char_indices().skip(usize::from(quoted));
        let mut end = None;
        while let Some((at, c)) = chars.next() {
            match c {
                '\\' => element.push(chars.next()?.1),
                '"' if quoted => {
                    end = Some(at + 1);
                    break;
                }
                ',' if !quoted => {
                    end = Some(at);
                    break;
                }
                '{' | '}' | '"' if !quoted => return None,
                other => element.push(other),
            }
        }
        let end = if quoted { end? } else { end.unwrap_or(rest.len()) };
        let bare = if quoted { element } else { trimmed(&element).to_string() };
        match quoted {
            false if bare.is_empty() => return None,
            false if bare.eq_ignore_ascii_case("null") => elements.push(None),
            _ => elements.push(Some(bare)),
        }
        rest = rest[end..].trim_start_matches(is_space);
        if rest.is_empty() {
            return Some(n_lists);
        }
        rest = rest.strip_prefix(',')?.trim_start_matches(is_space);
    }
}

/// Texts that Arrow does not read as they stand.
fn convert_spelt(column: &ArrayRef, to: &DataType) -> Result<ArrayRef, String> {
    let strict = CastOptions { safe: false, ..CastOptions::default() };
    let texts = cast_with_options(column, &DataType::Utf8View, &strict).map_err(|e| in_words(&e.to_string()))?;
    let texts = texts.as_string_view();
    let spelt: StringViewArray = texts.iter().map(|text| text.map(trimmed)).collect();
    let spelt: ArrayRef = Arc::new(spelt);
    match cast_with_options(&spelt, to, &strict) {
        Ok(converted) => Ok(converted),
        Err(error) => Err(match first_lost(&spelt, to) {
            Some(row) => misfit(texts.value(row), to),
            None => in_words(&error.to_string()),
        }),
    }
}

/// The first text whose float is infinite or zero though the number is not.
fn out_of_range(floats: &ArrayRef, column: &ArrayRef) -> Option<String> {
    if !floats.data_type().is_floating() || !is_text(column.data_type()) {
        return None;
    }
    let wide = cast(floats, &DataType::Float64).ok()?;
    let wide = wide.as_primitive::<Float64Type>();
    let is_edge = |row: &usize| wide.is_valid(*row) && (wide.value(*row) == 0.0 || wide.value(*row).is_infinite());
    let edges: Vec<usize> = (0..wide.len()).filter(is_edge).collect();
    if edges.is_empty() {
        return None;
    }
    let texts = cast(column, &DataType::Utf8View).ok()?;
    let texts = texts.as_string_view();
    let is_beyond = |row: &usize| {
        let text = texts.value(*row).bytes();
        match wide.value(*row) == 0.0 {
            true => text.take_while(|byte| !byte.eq_ignore_ascii_case(&b'e')).any(|byte| matches!(byte, b'1'..=b'9')),
            false => text.into_iter().any(|byte| byte.is_ascii_digit()),
        }
    };
    edges.into_iter().find(is_beyond).map(|row| texts.value(row).to_string())
}

/// The first row whose value does not fit the type.
fn first_lost(column: &ArrayRef, to: &DataType) -> Option<usize> {
    let safe = CastOptions { safe: true, ..CastOptions::default() };
    let converted = cast_with_options(column, to, &safe).ok()?;
    (0..column.len()).find(|row| converted.is_null(*row) && !column.is_null(*row))
}

/// What PostgreSQL says of a text that is no value of the type.
fn misfit(text: &str, to: &DataType) -> String {
    let name = sql_name(to);
    let name = name.split('(').next().unwrap_or_default();
    let plain = trimmed(text);
    let digits = plain.strip_prefix(['-', '+']).unwrap_or(plain);
    let is_number = plain.parse::<f64>().is_ok();
    if to.is_integer() && !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return format!("value \"{text}\" is out of range for type {name}");
    }
    if to.is_decimal() && is_number {
        return format!("{}: {plain}", field_overflow(to));
    }
    format!("invalid input syntax for type {name}: \"{text}\"")
}

#[cfg(test)]
mod tests {
    use arrow::datatypes::{Int32Type, TimeUnit, TimestampMicrosecondType};

    use super::*;

    fn texts(values: &[&str]) -> ArrayRef {
        Arc::new(StringViewArray::from(values.to_vec()))
    }

    #[test]
    fn texts_are_read_as_postgresql_does() {
        let read = convert(&texts(&[" 42 ", "-7"]), &DataType::Int32).expect("they are values");
        assert_eq!(read.as_primitive::<Int32Type>().values(), &[42, -7]);
        let timestamp = DataType::Timestamp(TimeUnit::Microsecond, None);
        let spellings = ["1970-01-01 10:00", "1970-1-1 10:00:00", "1970/01/01 10:00 AM", "19700101 10:00:00.0"];
        let read = convert(&texts(&spellings), &timestamp).expect("they are values");
        assert_eq!(read.as_primitive::<TimestampMicrosecondType>().values(), &[36_000_000_000; 4]);
    }

    #[test]
    fn what_does_not_fit_is_named() {
        let says = |value: &str, to: DataType| convert(&texts(&["1", value]), &to).expect_err("it is no value");
        assert_eq!(says("abc", DataType::Int32), "invalid input syntax for type integer: \"abc\"");
        assert_eq!(says("1.5", DataType::Int32), "invalid input syntax for type integer: \"1.5\"");
        assert_eq!(says("9999999999", DataType::Int32), "value \"9999999999\" is out of range for type integer");
        assert_eq!(says("x", DataType::Decimal128(5, 2)), "invalid input syntax for type numeric: \"x\"");
        assert!(says("1234.5", DataType::Decimal128(5, 2)).starts_with("numeric field overflow"));
    }

    #[test]
    fn dates_out_of_range_are_told_from_other_texts() {
        let says = |value: &str| convert(&texts(&[value]), &DataType::Date32).expect_err("it is no value");
        assert_eq!(says("2024-02-30"), "date/time field value out of range: \"2024-02-30\"");
        assert_eq!(says("soon"), "invalid input syntax for type date: \"soon\"");
    }

    #[test]
    fn lists_are_read_as_postgresql_writes_them() {
        let read = |text: &str| {
            let mut elements = Vec::new();
            read_list(text, &mut elements).map(|_| elements)
        };
        let some = |texts: &[&str]| Some(texts.iter().map(|text| Some(text.to_string())).collect::<Vec<_>>());
        assert_eq!(read("{}"), Some(vec![]));
        assert_eq!(read("{a, b}"), some(&["a", "b"]));
        assert_eq!(read(r#"{"a, b","say \"x\"",c}"#), some(&["a, b", "say \"x\"", "c"]));
        assert_eq!(read(r#"{NULL,"NULL"}"#), Some(vec![None, Some("NULL".into())]));
        assert_eq!(read("{{a},{b}}"), some(&["{a}", "{b}"]));
        for bad in ["a", "{a", "{a,}", "{,}", r#"{"a}"#] {
            assert_eq!(read(bad), None, "{bad}");
        }
    }
}
