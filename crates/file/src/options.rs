//! The `WITH (..)` options of a file source, checked.
//!
//! Unknown options and values are errors that name the nearest known one. Options of the session
//! itself (`connector`, `rate`, `retain`) are let through unread.

use std::{collections::BTreeMap, path::Path, time::Duration};

use anabranch_engine::{
    Error,
    connector::{duration_micros, unknown_option},
    nearest::nearest,
};

use crate::faults::{OnError, invalid};

/// What a file holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FileFormat {
    Csv,
    /// One JSON object a line.
    Json,
    Parquet,
    /// TPC-H's text: values end with `|`, no quotes, no header.
    Tbl,
}

impl FileFormat {
    /// The format that a file name's ending stands for.
    pub(crate) fn of_file(path: &Path) -> Result<FileFormat, Error> {
        FileFormat::of_ending(path).ok_or_else(|| {
            invalid(format!("cannot tell the format of file {}", path.display()))
                .with_hint("Add format = 'csv', 'json', 'parquet' or 'tbl'.")
        })
    }

    /// Same, as a question.
    pub(crate) fn of_ending(path: &Path) -> Option<FileFormat> {
        match unpacked_ending(path)?.as_str() {
            "csv" | "tsv" => Some(FileFormat::Csv),
            "json" | "jsonl" | "ndjson" => Some(FileFormat::Json),
            "parquet" | "pq" => Some(FileFormat::Parquet),
            "tbl" => Some(FileFormat::Tbl),
            _ => None,
        }
    }
}

/// The ending of a file's name, without `.gz`, in lower case.
pub(crate) fn unpacked_ending(path: &Path) -> Option<String> {
    let ending = path.extension()?.to_str()?.to_ascii_lowercase();
    match ending.as_str() {
        "gz" => Some(Path::new(path.file_stem()?).extension()?.to_str()?.to_ascii_lowercase()),
        _ => Some(ending),
    }
}

/// All options, as written or defaulted.
#[derive(Clone, Debug)]
pub(crate) struct FileOptions {
    pub path: String,
    /// `None`: tell by the file name.
    pub format: Option<FileFormat>,
    /// `None`: find out.
    pub header: Option<bool>,
    /// `None`: the format's own.
    pub delimiter: Option<u8>,
    /// `Some(None)`: no quoting. `None`: the format's own.
    pub quote: Option<Option<u8>>,
    /// The unquoted text that means NULL.
    pub null: String,
    pub on_error: OnError,
    /// Whether lines that are added and files that are new are read.
    pub follow: bool,
    /// Time from one look at the files that are followed to the next.
    poll: Option<Duration>,
    /// Names of the options that only delimited text understands and that were given.
    text_only: Vec<&'static str>,
}

/// Every name this connector reads.
const KNOWN: [&str; 11] =
    ["path", "format", "header", "delimiter", "quote", "null", "on_error", "follow", "poll", "rate", "retain"];
/// Time from one look to the next, unless told.
const INTERVAL: Duration = Duration::from_secs(1);
/// The shortest one.
const INTERVAL_MIN: Duration = Duration::from_millis(1);
/// Names the session reads.
const FOREIGN: [&str; 3] = ["connector", "rate", "retain"];

impl FileOptions {
    /// Checks names and values.
    pub(crate) fn parse(options: &BTreeMap<String, String>) -> Result<FileOptions, Error> {
        let mut path = None;
        let mut out = FileOptions {
            path: String::new(),
            format: None,
            header: None,
            delimiter: None,
            quote: None,
            null: String::new(),
            on_error: OnError::Fail,
            follow: false,
            poll: None,
            text_only: Vec::new(),
        };
        for (name, value) in options {
            match name.as_str() {
                "path" => path = Some(value.clone()),
                "format" => out.format = Some(parse_format(value)?),
                "header" => {
                    out.header = Some(parse_flag(name, value)?);
                    out.text_only.push("header");
                }
                "delimiter" => {
                    out.delimiter = Some(parse_character(name, value)?);
                    out.text_only.push("delimiter");
                }
                "quote" => {
                    out.quote = Some(if value.is_empty() { None } else { Some(parse_character(name, value)?) });
                    out.text_only.push("quote");
                }
                "null" => {
                    out.null = value.clone();
                    out.text_only.push("null");
                }
                "on_error" => out.on_error = parse_on_error(value)?,
                "follow" => out.follow = parse_flag(name, value)?,
                "poll" => out.poll = Some(parse_interval(value)?),
                name if FOREIGN.contains(&name) => {}
                name => return Err(unknown_option("file", name, &KNOWN)),
            }
        }
        match path {
            Some(path) if !path.is_empty() => out.path = path,
            _ => {
                return Err(invalid("connector \"file\" needs the option \"path\"")
                    .with_hint("Write WITH (connector = 'file', path = 'data/rows.csv')."));
            }
        }
        if let (Some(delimiter), Some(Some(quote))) = (out.delimiter, out.quote)
            && delimiter == quote
        {
            return Err(invalid("options \"delimiter\" and \"quote\" are the same character"));
        }
        if out.poll.is_some() && !out.follow {
            return Err(invalid("option \"poll\" means nothing without \"follow\"")
                .with_hint("Add follow = true to read lines that are added and files that are new."));
        }
        Ok(out)
    }

    /// Time from one look at the files that are followed to the next.
    pub(crate) fn interval(&self) -> Duration {
        self.poll.unwrap_or(INTERVAL)
    }

    /// Refuses options that the format has no use for.
    pub(crate) fn check_for(&self, format: FileFormat) -> Result<(), Error> {
        let name = match format {
            FileFormat::Csv | FileFormat::Tbl => return Ok(()),
            FileFormat::Json => "json",
            FileFormat::Parquet => "parquet",
        };
        match self.text_only.first() {
            None => Ok(()),
            Some(option) => Err(invalid(format!("option \"{option}\" means nothing for format \"{name}\""))
                .with_hint("Leave it out; it belongs to formats csv and tbl.")),
        }
    }
}

fn parse_format(value: &str) -> Result<FileFormat, Error> {
    match value.to_ascii_lowercase().as_str() {
        "csv" | "tsv" => Ok(FileFormat::Csv),
        "json" | "jsonl" | "ndjson" => Ok(FileFormat::Json),
        "parquet" => Ok(FileFormat::Parquet),
        "tbl" => Ok(FileFormat::Tbl),
        _ => Err(bad_value("format", value, ["csv", "json", "parquet", "tbl"])),
    }
}

fn parse_on_error(value: &str) -> Result<OnError, Error> {
    match value.to_ascii_lowercase().as_str() {
        "fail" | "stop" => Ok(OnError::Fail),
        "skip" | "ignore" => Ok(OnError::Skip),
        _ => Err(bad_value("on_error", value, ["fail", "skip"])),
    }
}

fn parse_flag(name: &str, value: &str) -> Result<bool, Error> {
    match value.to_ascii_lowercase().as_str() {
        "true" | "on" | "1" | "yes" | "" => Ok(true),
        "false" | "off" | "0" | "no" => Ok(false),
        _ => Err(bad_value(name, value, ["true", "false"])),
    }
}

fn parse_interval(value: &str) -> Result<Duration, Error> {
    let micros = duration_micros(value).filter(|micros| *micros >= INTERVAL_MIN.as_micros() as i64);
    let micros = micros.ok_or_else(|| {
        invalid(format!("option \"poll\" cannot be '{value}'"))
            .with_hint("It takes a time from 1 ms, such as '200 ms' or '5 s'.")
    })?;
    Ok(Duration::from_micros(micros as u64))
}

fn parse_character(name: &str, value: &str) -> Result<u8, Error> {
    match value {
        "\\t" | "tab" => return Ok(b'\t'),
        _ => {}
    }
    match value.as_bytes() {
        [byte] if byte.is_ascii() && !matches!(byte, b'\n' | b'\r') => Ok(*byte),
        _ => Err(invalid(format!("option \"{name}\" must be one ASCII character, not '{value}'"))
            .with_hint("Write '\\t' or 'tab' for a tabulator.")),
    }
}

fn bad_value<const N: usize>(name: &str, value: &str, known: [&'static str; N]) -> Error {
    let error = invalid(format!("option \"{name}\" cannot be '{value}'"));
    let values = format!("It is one of: {}.", known.join(", "));
    match nearest(&value.to_ascii_lowercase(), known) {
        Some(near) => error.with_hint(format!("Did you mean '{near}'? {values}")),
        None => error.with_hint(values),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(pairs: &[(&str, &str)]) -> Result<FileOptions, Error> {
        FileOptions::parse(&pairs.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect())
    }

    #[test]
    fn unknown_options_name_the_nearest() {
        let error = parse(&[("path", "x.csv"), ("delimeter", ";")]).unwrap_err();
        assert_eq!(error.message, "connector \"file\" has no option \"delimeter\"");
        assert!(error.hint.unwrap().starts_with("Did you mean \"delimiter\"?"));
    }

    #[test]
    fn the_sessions_options_pass() {
        let options = parse(&[("path", "x.csv"), ("connector", "file"), ("rate", "10"), ("delimiter", "\\t")]).unwrap();
        assert_eq!(options.delimiter, Some(b'\t'));
    }

    #[test]
    fn a_path_is_needed() {
        assert_eq!(parse(&[]).unwrap_err().message, "connector \"file\" needs the option \"path\"");
    }
}
