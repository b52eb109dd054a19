//! The options of COPY, checked as PostgreSQL checks them.

use anabranch_sql::statement::{CopyColumns, CopyOptions};

use crate::error::Error;

/// What rows look like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CopyKind {
    Text,
    Csv,
    Binary,
}

/// Whether the first line names the columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Header {
    No,
    Yes,
    /// And they are the table's.
    Match,
}

/// What a row does that cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RowPolicy {
    /// It ends the COPY.
    Stop,
    /// It is left out, and counted.
    Skip,
}

/// Which way rows go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    In,
    Out,
}

/// A format with its options.
#[derive(Clone, Debug)]
pub(crate) struct CopyFormat {
    pub kind: CopyKind,
    pub delimiter: u8,
    /// What stands for NULL.
    pub null: String,
    pub header: Header,
    pub quote: u8,
    pub escape: u8,
    /// One entry a column: whether its values are quoted always.
    pub force_quote: Vec<bool>,
    /// Whether its values are never NULL.
    pub force_not_null: Vec<bool>,
    /// Whether a quoted value may be NULL.
    pub force_null: Vec<bool>,
    pub on_error: RowPolicy,
}

impl CopyFormat {
    /// The format that the options name, for columns of these names.
    ///
    /// # Errors
    /// `Invalid` for options that are unknown, or that contradict each other.
    pub fn new(options: &CopyOptions, columns: &[String], way: Way) -> Result<CopyFormat, Error> {
        let find = |name: &str| options.plain.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str());
        let kind = match find("format").map(str::to_lowercase).as_deref() {
            None | Some("text") => CopyKind::Text,
            Some("csv") => CopyKind::Csv,
            Some("binary") => CopyKind::Binary,
            Some(other) => {
                return Err(refused(format!("COPY format \"{other}\" not recognized"), "22023")
                    .with_hint("The formats are text, csv and binary."));
            }
        };
        const KNOWN: [&str; 9] =
            ["format", "delimiter", "null", "header", "quote", "escape", "encoding", "freeze", "on_error"];
        if let Some((unknown, _)) = options.plain.iter().find(|(name, _)| !KNOWN.contains(&name.as_str())) {
            return Err(refused(format!("option \"{unknown}\" not recognized"), "42601"));
        }
        if let Some(encoding) = find("encoding").filter(|name| !matches!(&*name.to_lowercase(), "utf8" | "utf-8")) {
            return Err(refused(format!("encoding \"{encoding}\" is not supported"), "0A000").with_hint("Use UTF8."));
        }
        let header = match find("header").map(str::to_lowercase).as_deref() {
            None | Some("false" | "off" | "0") => Header::No,
            Some("true" | "on" | "1") => Header::Yes,
            Some("match") if way == Way::In => Header::Match,
            Some("match") => return Err(refused("cannot use \"match\" with HEADER in COPY TO", "0A000")),
            Some(_) => return Err(refused("header requires a Boolean value or \"match\"", "42601")),
        };
        let is_csv = kind == CopyKind::Csv;
        let byte = |name: &str, default: u8| match find(name).map(str::as_bytes) {
            None => Ok(default),
            Some([byte]) => Ok(*byte),
            Some(value) => {
                let error = refused(format!("COPY {name} must be a single one-byte character"), "0A000");
                Err(match value {
                    b"\\t" | b"tab" => error.with_hint("A tabulator is E'\\t'."),
                    _ => error,
                })
            }
        };
        let quote = byte("quote", b'"')?;
        let format = CopyFormat {
            kind,
            delimiter: byte("delimiter", if is_csv { b',' } else { b'\t' })?,
            null: find("null").unwrap_or(if is_csv { "" } else { "\\N" }).to_owned(),
            header,
            quote,
            escape: byte("escape", quote)?,
            force_quote: chosen(&options.force_quote, columns)?,
            force_not_null: chosen(&options.force_not_null, columns)?,
            force_null: chosen(&options.force_null, columns)?,
            on_error: policy(find("on_error"))?,
        };
        if find("on_error").is_some() && way == Way::Out {
            return Err(refused("COPY ON_ERROR cannot be used with COPY TO", "42601"));
        }
        if kind == CopyKind::Binary && format.on_error == RowPolicy::Skip {
            return Err(refused("only ON_ERROR STOP is allowed in BINARY mode", "0A000"));
        }
        for name in ["delimiter", "null"].into_iter().filter(|_| kind == CopyKind::Binary) {
            if find(name).is_some() {
                return Err(refused(format!("cannot specify {} in BINARY mode", name.to_uppercase()), "42601"));
            }
        }
        if kind == CopyKind::Binary && header != Header::No {
            return Err(refused("cannot specify HEADER in BINARY mode", "0A000"));
        }
        for (name, is_given, goes) in [
            ("quote", find("quote").is_some(), None),
            ("escape", find("escape").is_some(), None),
            ("force quote", options.force_quote.is_some(), Some(Way::Out)),
            ("force not null", options.force_not_null.is_some(), Some(Way::In)),
            ("force null", options.force_null.is_some(), Some(Way::In)),
        ] {
            if is_given && !is_csv {
                return Err(refused(format!("COPY {name} available only in CSV mode"), "0A000"));
            }
            if is_given && goes.is_some_and(|goes| goes != way) {
                let other = if way == Way::In { "COPY TO" } else { "COPY FROM" };
                return Err(refused(format!("COPY {name} only available using {other}"), "0A000"));
            }
        }
        format.check_bytes()?;
        Ok(format)
    }

    fn check_bytes(&self) -> Result<(), Error> {
        if matches!(self.delimiter, b'\n' | b'\r') {
            return Err(refused("COPY delimiter cannot be newline or carriage return", "22023"));
        }
        if self.null.contains(['\n', '\r']) {
            return Err(refused("COPY null representation cannot use newline or carriage return", "22023"));
        }
        let shown = char::from(self.delimiter);
        if self.kind == CopyKind::Text
            && (shown.is_ascii_lowercase() || shown.is_ascii_digit() || "\\.".contains(shown))
        {
            return Err(refused(format!("COPY delimiter cannot be \"{shown}\""), "22023"));
        }
        if self.kind != CopyKind::Binary && self.null.as_bytes().contains(&self.delimiter) {
            return Err(refused("COPY delimiter must not appear in the NULL specification", "22023"));
        }
        if self.kind == CopyKind::Csv && self.quote == self.delimiter {
            return Err(refused("COPY delimiter and quote must be different", "22023"));
        }
        if self.kind == CopyKind::Csv && self.null.as_bytes().contains(&self.quote) {
            return Err(refused("CSV quote character must not appear in the NULL specification", "22023"));
        }
        Ok(())
    }
}

fn refused(message: impl Into<String>, code: &'static str) -> Error {
    Error::invalid(message).with_sqlstate(code)
}

fn policy(named: Option<&str>) -> Result<RowPolicy, Error> {
    match named.map(str::to_lowercase).as_deref() {
        None | Some("stop" | "fail") => Ok(RowPolicy::Stop),
        Some("ignore" | "skip") => Ok(RowPolicy::Skip),
        Some(other) => {
            Err(refused(format!("COPY ON_ERROR \"{other}\" not recognized"), "22023")
                .with_hint("It is stop or ignore."))
        }
    }
}

/// One entry a column.
fn chosen(named: &Option<CopyColumns>, columns: &[String]) -> Result<Vec<bool>, Error> {
    match named {
        None => Ok(vec![false; columns.len()]),
        Some(CopyColumns::All) => Ok(vec![true; columns.len()]),
        Some(CopyColumns::Named(names)) => {
            if let Some(unknown) = names.iter().find(|name| !columns.contains(name)) {
                return Err(refused(
                    format!("column \"{unknown}\" does not exist among those that are copied"),
                    "42703",
                ));
            }
            Ok(columns.iter().map(|column| names.contains(column)).collect())
        }
    }
}

/// The format of a name for COPY FROM, and its escape if it has one.
#[cfg(test)]
pub(crate) fn named(name: &str, escape: Option<&str>) -> CopyFormat {
    let mut plain = vec![("format".to_owned(), name.to_owned())];
    plain.extend(escape.map(|escape| ("escape".to_owned(), escape.to_owned())));
    let options = CopyOptions { plain, ..CopyOptions::default() };
    CopyFormat::new(&options, &[], Way::In).expect("it is a format")
}
