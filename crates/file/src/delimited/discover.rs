//! Names and types of columns that were not declared, from the first records of a file.
//!
//! A column gets the narrowest type that reads every sampled value: boolean, bigint, double
//! precision, date, timestamp, timestamp with time zone, else text. Digits with a leading zero, or
//! too many for bigint, are text: codes and identifiers keep their form. A first record that is all
//! text, distinct and not empty is a header.

use arrow::datatypes::{DataType, Field, TimeUnit};

use super::{
    column::content,
    split::{Records, SplitCell, SplitForm},
    values::{self, FileZone},
};

/// Records looked at.
pub(crate) const SAMPLE_ROWS: usize = 10_000;

/// What a column may still be.
#[derive(Clone, Debug)]
pub(crate) struct Guess {
    seen: bool,
    boolean: bool,
    integer: bool,
    float: bool,
    date: bool,
    timestamp: bool,
    /// Some timestamp told its zone.
    zoned: bool,
}

impl Default for Guess {
    fn default() -> Guess {
        Guess { seen: false, boolean: true, integer: true, float: true, date: true, timestamp: true, zoned: false }
    }
}

impl Guess {
    /// Takes one value, not NULL, into account.
    pub(crate) fn see(&mut self, text: &[u8]) {
        self.seen = true;
        let is = |word: &str| text.eq_ignore_ascii_case(word.as_bytes());
        self.boolean = self.boolean && (is("true") || is("false") || is("t") || is("f"));
        if self.float {
            let number = text.strip_prefix(b"-").unwrap_or(text);
            let digits = !number.is_empty() && number.iter().all(u8::is_ascii_digit);
            let code = digits && number.len() > 1 && number[0] == b'0';
            let integer = digits && !code && values::integer(text).is_some();
            let numeric = number.first().is_some_and(|byte| byte.is_ascii_digit() || *byte == b'.') || is("nan");
            self.integer = self.integer && integer;
            self.float = if digits { integer } else { numeric && values::float(text).is_some() };
        }
        self.integer = self.integer && self.float;
        self.date = self.date && text.len() == 10 && values::date(text).is_some();
        if self.timestamp {
            self.timestamp = values::timestamp(text, FileZone::Apply).is_some();
            self.zoned |= values::timestamp(text, FileZone::Apply) != values::timestamp(text, FileZone::Ignore)
                || text.ends_with(b"Z")
                || text.ends_with(b"+00")
                || text.ends_with(b"+00:00");
        }
    }

    /// The narrowest type left. Text for a column without values.
    pub(crate) fn data_type(&self) -> DataType {
        match self {
            Guess { seen: false, .. } => DataType::Utf8View,
            Guess { boolean: true, .. } => DataType::Boolean,
            Guess { integer: true, .. } => DataType::Int64,
            Guess { float: true, .. } => DataType::Float64,
            Guess { date: true, .. } => DataType::Date32,
            Guess { timestamp: true, zoned: true, .. } => {
                DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into()))
            }
            Guess { timestamp: true, .. } => DataType::Timestamp(TimeUnit::Microsecond, None),
            _ => DataType::Utf8View,
        }
    }
}

/// Whether a first record, that no option says anything about, names the columns.
pub(crate) fn looks_like_header(names: &[String]) -> bool {
    let distinct = names.iter().enumerate().all(|(i, name)| !names[..i].contains(name));
    let text = |name: &String| {
        let mut guess = Guess::default();
        guess.see(name.as_bytes());
        !name.is_empty() && (guess.data_type() == DataType::Utf8View || guess.data_type() == DataType::Boolean)
    };
    distinct && names.iter().all(text)
}

/// The columns of sampled records. `names` are a header's; without one they are `column1` and so
/// on.
pub(crate) fn columns(
    bytes: &[u8],
    sample: &Records,
    from: usize,
    quote: u8,
    null: &str,
    names: Option<&[String]>,
) -> Vec<Field> {
    let width = match names {
        Some(names) => names.len(),
        None if sample.len() > from => sample.cells_of(from).len(),
        None => 0,
    };
    let mut guesses = vec![Guess::default(); width];
    for record in from..sample.len() {
        let cells = sample.cells_of(record);
        if cells.len() != width {
            continue;
        }
        for (guess, &cell) in guesses.iter_mut().zip(cells) {
            let raw = &bytes[cell.start as usize..cell.end as usize];
            if cell.form == SplitForm::Plain && raw == null.as_bytes() {
                continue;
            }
            if let Some(text) = content(bytes, cell, quote) {
                guess.see(text.trim_ascii());
            }
        }
    }
    let name = |i: usize| names.map_or_else(|| format!("column{}", i + 1), |names| names[i].clone());
    guesses.iter().enumerate().map(|(i, guess)| Field::new(name(i), guess.data_type(), true)).collect()
}

/// The names a header record gives: lower case, trimmed, made distinct.
pub(crate) fn header_names(bytes: &[u8], cells: &[SplitCell], quote: u8) -> Vec<String> {
    let names = cells.iter().map(|&cell| {
        let text = content(bytes, cell, quote).unwrap_or_default();
        String::from_utf8_lossy(text.trim_ascii()).to_lowercase()
    });
    distinct(names)
}

/// `a, a, b` becomes `a, a_2, b`; an empty name becomes `column1` by its place.
pub(crate) fn distinct(names: impl IntoIterator<Item = String>) -> Vec<String> {
    let mut out: Vec<String> = Vec::new();
    for (i, name) in names.into_iter().enumerate() {
        let base = if name.is_empty() { format!("column{}", i + 1) } else { name };
        let mut name = base.clone();
        let mut copy = 2;
        while out.contains(&name) {
            name = format!("{base}_{copy}");
            copy += 1;
        }
        out.push(name);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn guess(values: &[&str]) -> DataType {
        let mut guess = Guess::default();
        values.iter().for_each(|value| guess.see(value.as_bytes()));
        guess.data_type()
    }

    #[test]
    fn the_narrowest_type_wins() {
        let stamp = |zone: Option<&str>| DataType::Timestamp(TimeUnit::Microsecond, zone.map(Into::into));
        assert_eq!(guess(&[]), DataType::Utf8View);
        assert_eq!(guess(&["1", "-2"]), DataType::Int64);
        assert_eq!(guess(&["1", "2.5", "NaN"]), DataType::Float64);
        assert_eq!(guess(&["1", "x"]), DataType::Utf8View);
        assert_eq!(guess(&["007"]), DataType::Utf8View);
        assert_eq!(guess(&["99999999999999999999"]), DataType::Utf8View);
        assert_eq!(guess(&["true", "F"]), DataType::Boolean);
        assert_eq!(guess(&["2013-01-01"]), DataType::Date32);
        assert_eq!(guess(&["2013-01-01", "2013-01-01 05:00:00"]), stamp(None));
        assert_eq!(guess(&["2013-01-01T05:00:00Z"]), stamp(Some("UTC")));
    }

    #[test]
    fn headers_are_text() {
        let names = |names: &[&str]| names.iter().map(|name| name.to_string()).collect::<Vec<_>>();
        assert!(looks_like_header(&names(&["id", "name"])));
        assert!(!looks_like_header(&names(&["1", "name"])));
        assert!(!looks_like_header(&names(&["a", "a"])));
    }

    #[test]
    fn names_are_made_distinct() {
        assert_eq!(distinct(["a", "", "a", "a"].map(String::from)), ["a", "column2", "a_2", "a_3"]);
    }
}
