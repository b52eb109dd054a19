//! What goes wrong between text and plan, in PostgreSQL's manner: a message, the place, and the way
//! out.
//!
//! A message is lower case, factual and names the object; `detail` says more; `hint` says what to
//! write instead. Places are byte offsets into the text that was given to
//! [`parse`](crate::syntax::parse()); planning knows lines and columns only and leaves the offset
//! to [`SqlError::place`], which needs the text.

use std::fmt;

use datafusion_common::{Column, DataFusionError, SchemaError};
use datafusion_expr::sqlparser::parser::ParserError;
use datafusion_expr::sqlparser::tokenizer::{Location, TokenizerError};

use crate::planner_messages::{first_line, from_message, known_message, lower_first, operation_error};
use crate::resolve::suggest::nearest;
use crate::resolve::value_errors::in_words;
use crate::syntax::names::OTHER_TABLE;

/// Result of the functions of this crate.
pub type Result<T> = std::result::Result<T, SqlError>;

/// Who must do what about an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorKind {
    /// The text is not SQL.
    Syntax,
    /// A table, column, function or type that does not exist.
    UnknownName,
    /// Operands or columns of types that do not fit.
    Type,
    /// Valid SQL that this engine does not run; the hint says what to write instead.
    Unsupported,
    /// A name that exists already or twice.
    Duplicate,
    /// A statement that contradicts itself or the rules of SQL.
    Invalid,
    /// A defect of the planner.
    Internal,
}

/// An error of parsing or planning.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SqlError {
    /// What kind of error.
    pub kind: ErrorKind,
    /// One line, lower case, names the object.
    pub message: String,
    /// More about the cause, as a sentence.
    pub detail: Option<String>,
    /// What to do, as a sentence.
    pub hint: Option<String>,
    /// Byte offset into the text given to `parse`.
    pub position: Option<usize>,
    /// Line and column (both from 1, columns in characters) in that text, when only these are
    /// known.
    pub line_column: Option<(u64, u64)>,
}

impl SqlError {
    /// An error without place, detail and hint.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), detail: None, hint: None, position: None, line_column: None }
    }

    /// A valid construct that is not supported.
    pub fn unsupported(construct: impl fmt::Display, hint: impl Into<String>) -> Self {
        Self::new(ErrorKind::Unsupported, format!("{construct} is not supported")).with_hint(hint)
    }

    /// A defect of the planner.
    pub fn internal(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Internal, message)
            .with_hint("This is a defect of Anabranch: please report it with the statement.")
    }

    /// Adds a hint; an empty one is none.
    pub fn with_hint(mut self, hint: impl Into<String>) -> Self {
        let hint = hint.into();
        self.hint = (!hint.is_empty()).then_some(hint);
        self
    }

    /// Adds a detail.
    pub fn with_detail(mut self, detail: impl Into<String>) -> Self {
        self.detail = Some(detail.into());
        self
    }

    /// Adds the place, unless one is known.
    pub fn at(mut self, location: Location) -> Self {
        if self.line_column.is_none() && location.line > 0 {
            self.line_column = Some((location.line, location.column));
        }
        self
    }

    /// The byte offset of the error in `text`, the text that was parsed.
    pub fn place(&self, text: &str) -> Option<usize> {
        self.position
            .or_else(|| self.line_column.map(|(line, column)| offset_of(text, line, column)))
            .map(|offset| floor_char_boundary(text, offset))
    }

    /// The error as a terminal shows it: message, the line with a caret under the place, detail and
    /// hint.
    pub fn render(&self, text: &str) -> String {
        let mut out = format!("error: {}", self.message);
        if let Some(offset) = self.place(text) {
            out.push_str(&excerpt(text, offset));
        }
        if let Some(detail) = &self.detail {
            out.push_str(&format!("\ndetail: {detail}"));
        }
        if let Some(hint) = &self.hint {
            out.push_str(&format!("\nhint: {hint}"));
        }
        out
    }
}

impl fmt::Display for SqlError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for SqlError {}

impl From<SqlError> for DataFusionError {
    fn from(error: SqlError) -> Self {
        DataFusionError::External(Box::new(error))
    }
}

impl From<TokenizerError> for SqlError {
    fn from(error: TokenizerError) -> Self {
        SqlError::new(ErrorKind::Syntax, lower_first(&error.message)).at(error.location)
    }
}

impl From<ParserError> for SqlError {
    fn from(error: ParserError) -> Self {
        let message = match error {
            ParserError::TokenizerError(message) | ParserError::ParserError(message) => message,
            ParserError::RecursionLimitExceeded => {
                return SqlError::new(ErrorKind::Unsupported, "the statement is nested too deeply")
                    .with_hint("Name parts of it with WITH or CREATE VIEW.");
            }
        };
        let (message, location) = split_location(&message);
        let error = match message.strip_prefix("Expected: ").and_then(|rest| rest.rsplit_once(", found: ")) {
            Some((expected, "EOF")) => SqlError::new(ErrorKind::Syntax, "syntax error at end of input")
                .with_detail(format!("Expected {expected}.")),
            Some((expected, found)) => {
                let expected = if expected == "literal int" { "a whole number" } else { expected };
                let error = SqlError::new(ErrorKind::Syntax, format!("syntax error at or near \"{found}\""))
                    .with_detail(format!("Expected {expected}."));
                match found {
                    "`" => error.with_hint("Write names in double quotes, as in \"order\"."),
                    _ => error,
                }
            }
            None => operation_error(message).unwrap_or_else(|| SqlError::new(ErrorKind::Syntax, lower_first(message))),
        };
        match location {
            Some((line, column)) => error.at(Location { line, column }),
            None => error,
        }
    }
}

impl From<DataFusionError> for SqlError {
    fn from(error: DataFusionError) -> Self {
        match error {
            DataFusionError::Context(_, inner) => SqlError::from(*inner),
            DataFusionError::Diagnostic(diagnostic, inner) => {
                let error = SqlError::from(*inner);
                match diagnostic.span {
                    Some(span) => error.at(Location { line: span.start.line, column: span.start.column }),
                    None => error,
                }
            }
            DataFusionError::Collection(errors) => match errors.into_iter().next() {
                Some(first) => SqlError::from(first),
                None => SqlError::internal("planning failed without a reason"),
            },
            DataFusionError::Shared(inner) => from_message(&inner.strip_backtrace()),
            DataFusionError::SchemaError(inner, _) => from_schema(*inner),
            DataFusionError::SQL(inner, _) => SqlError::from(*inner),
            DataFusionError::NotImplemented(message) => known_message(first_line(&message))
                .unwrap_or_else(|| SqlError::new(ErrorKind::Unsupported, lower_first(first_line(&message)))),
            DataFusionError::Plan(message) | DataFusionError::Execution(message) => from_message(&message),
            DataFusionError::ArrowError(inner, _) => from_arrow(&inner.to_string()),
            DataFusionError::External(inner) => match inner.downcast::<SqlError>() {
                Ok(error) => *error,
                Err(other) => SqlError::new(ErrorKind::Invalid, other.to_string()),
            },
            DataFusionError::Internal(message) => {
                known_message(first_line(&message)).unwrap_or_else(|| SqlError::internal(first_line(&message)))
            }
            other => SqlError::new(ErrorKind::Invalid, lower_first(first_line(&other.strip_backtrace()))),
        }
    }
}

/// A constant that could not be computed.
fn from_arrow(message: &str) -> SqlError {
    SqlError::new(ErrorKind::Invalid, lower_first(&in_words(message)))
}

fn from_schema(error: SchemaError) -> SqlError {
    match error {
        SchemaError::AmbiguousReference { field } => {
            SqlError::new(ErrorKind::Invalid, format!("column reference \"{}\" is ambiguous", field.name))
                .with_hint("Write the table's name or alias before the column.")
        }
        SchemaError::DuplicateQualifiedField { qualifier, .. } => {
            SqlError::new(ErrorKind::Duplicate, format!("table name \"{qualifier}\" specified more than once"))
                .with_hint("Give each use of the table its own alias.")
        }
        SchemaError::DuplicateUnqualifiedField { name } => {
            SqlError::new(ErrorKind::Duplicate, format!("column \"{name}\" appears twice"))
                .with_hint("Give each expression its own name with AS.")
        }
        SchemaError::FieldNotFound { field, valid_fields } => unknown_column(&field, &valid_fields),
    }
}

fn unknown_column(field: &Column, valid: &[Column]) -> SqlError {
    if field.relation.as_ref().is_some_and(|relation| matches!(relation.table(), "__in" | "__any" | "__one" | "__row"))
    {
        return SqlError::unsupported(
            "this subquery with columns from outside of it",
            "Join with the tables of the subquery, or name them in a derived table.",
        );
    }
    let mut message = match &field.relation {
        Some(relation) => {
            let table = relation.table();
            let table = table.strip_prefix(OTHER_TABLE).unwrap_or(table);
            format!("column \"{table}.{}\" does not exist", field.name)
        }
        None => format!("column \"{}\" does not exist", field.name),
    };
    if matches!(field.name.as_str(), "ctid" | "xmin" | "xmax" | "cmin" | "cmax" | "tableoid")
        && !valid.iter().any(|column| column.name == field.name)
    {
        let what = format!("system column {}", field.name);
        return SqlError::unsupported(what, "Rows are told apart by their values: give the table a primary key.");
    }
    let known_relation = |name: &str| valid.iter().any(|c| c.relation.as_ref().is_some_and(|r| r.table() == name));
    if let Some(relation) = &field.relation
        && !known_relation(relation.table())
    {
        message = format!("missing FROM-clause entry for table \"{}\"", relation.table());
        let relations: Vec<&str> = valid.iter().filter_map(|c| c.relation.as_ref()).map(|r| r.table()).collect();
        let hint = nearest(relation.table(), relations.iter().copied())
            .map(|name| format!("Perhaps you meant \"{name}\"."))
            .unwrap_or_default();
        return SqlError::new(ErrorKind::UnknownName, message).with_hint(hint);
    }
    // (Columns that are called by their expressions, or by the planner, have no name to be told.)
    let is_told = |name: &&str| !name.contains('(') && !name.starts_with("__");
    let mut names: Vec<&str> = valid.iter().map(|c| c.name.as_str()).filter(is_told).collect();
    names.sort_unstable();
    names.dedup();
    // (The header of a CSV that is cut elsewhere is one name.)
    if let [only] = names.as_slice()
        && let Some(delimiter) = [';', '|', '\t'].into_iter().find(|delimiter| only.contains(*delimiter))
    {
        let shown = if delimiter == '\t' { "'\\t'".to_owned() } else { format!("'{delimiter}'") };
        return SqlError::new(ErrorKind::UnknownName, message).with_hint(format!(
            "The only column is \"{only}\": of a file whose values are cut by {shown}, write read_csv('path', delim => {shown})."
        ));
    }
    let hint = match nearest(&field.name, names.iter().copied()) {
        Some(name) => format!("Perhaps you meant the column \"{name}\"."),
        None if !names.is_empty() && names.len() <= 20 => format!("Columns in reach: {}.", names.join(", ")),
        None => String::new(),
    };
    SqlError::new(ErrorKind::UnknownName, message).with_hint(hint)
}

/// The error for a parameter where a statement has none.
pub(crate) fn no_parameter(id: &str) -> SqlError {
    SqlError::new(ErrorKind::UnknownName, format!("there is no parameter {id}"))
        .with_hint("Write the value itself, or prepare the statement and run it with values.")
}

/// Takes ` at Line: 1, Column: 5` off the end of a parser message.
fn split_location(message: &str) -> (&str, Option<(u64, u64)>) {
    let Some((head, place)) = message.rsplit_once(" at Line: ") else {
        return (message, None);
    };
    let Some((line, column)) = place.split_once(", Column: ") else {
        return (message, None);
    };
    match (line.trim().parse(), column.trim().parse()) {
        (Ok(line), Ok(column)) => (head, Some((line, column))),
        _ => (message, None),
    }
}

/// Byte offset of a line and a column, both from 1; the end of the text when beyond it.
pub(crate) fn offset_of(text: &str, line: u64, column: u64) -> usize {
    let mut start = 0;
    for _ in 1..line {
        match text[start..].find('\n') {
            Some(at) => start += at + 1,
            None => return text.len(),
        }
    }
    let before = column.saturating_sub(1) as usize;
    // (Letters of one byte each are not counted one by one: a long line is asked for often.)
    if text.as_bytes()[start..].get(..before).is_some_and(<[u8]>::is_ascii) {
        return start + before;
    }
    let in_line = text[start..].char_indices().nth(before).map(|(at, _)| at);
    in_line.map_or(text.len(), |at| start + at)
}

fn floor_char_boundary(text: &str, offset: usize) -> usize {
    let mut offset = offset.min(text.len());
    while !text.is_char_boundary(offset) {
        offset -= 1;
    }
    offset
}

/// The line of an offset with a caret under it, each on a line of its own: `LINE 1: ..`. Of a long
/// line what is around the caret.
pub fn excerpt(text: &str, offset: usize) -> String {
    let start = text[..offset].rfind('\n').map_or(0, |at| at + 1);
    let end = text[offset..].find('\n').map_or(text.len(), |at| offset + at);
    let line_no = text[..offset].matches('\n').count() + 1;
    let prefix = format!("LINE {line_no}: ");
    let before = text[start..offset].chars().count();
    let line: Vec<char> = text[start..end].trim_end_matches('\r').replace('\t', " ").chars().collect();
    let (from, to) = shown(line.len(), before);
    let left = if from > 0 { "..." } else { "" };
    let right = if to < line.len() { "..." } else { "" };
    let line: String = line[from..to].iter().collect();
    let caret = prefix.chars().count() + left.len() + before - from;
    format!("\n{prefix}{left}{line}{right}\n{:caret$}^", "")
}

/// Characters of a line that are shown whole, and those that are shown of a longer one.
const LINE_CHARS_MAX: usize = 80;
const WINDOW_CHARS: usize = 72;
/// Characters behind the caret that are shown, if there are so many.
const BEHIND_CHARS: usize = 16;

/// The part of a line that is shown.
fn shown(n_chars: usize, caret: usize) -> (usize, usize) {
    if n_chars <= LINE_CHARS_MAX {
        return (0, n_chars);
    }
    let to = (caret + BEHIND_CHARS).clamp(WINDOW_CHARS, n_chars);
    (to - WINDOW_CHARS, to)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_caret_stands_under_the_place() {
        let mut error = SqlError::new(ErrorKind::Syntax, "syntax error at or near \"frm\"");
        error.position = Some(9);
        assert_eq!(error.render("select *\nfrm t"), "error: syntax error at or near \"frm\"\nLINE 2: frm t\n        ^");
    }

    #[test]
    fn long_lines_are_cut_around_the_caret() {
        let text = format!("select {}x from t where {}", "1, ".repeat(40), "a = 1 and ".repeat(20));
        for (at, begins, ends) in [(0, "select", "..."), (127, "...", "..."), (text.len(), "...", "a = 1 and ")] {
            let shown = excerpt(&text, at);
            let lines: Vec<&str> = shown.trim_start().lines().collect();
            assert!(lines[0].chars().count() <= 90, "{shown}");
            let line = lines[0].strip_prefix("LINE 1: ").unwrap();
            assert!(line.starts_with(begins) && line.ends_with(ends), "{shown}");
            let pointed = &lines[0][lines[1].len() - 1..];
            assert!(text[at..].starts_with(pointed.trim_end_matches("...")), "{shown}");
        }
    }

    #[test]
    fn offsets_count_bytes_and_columns_count_characters() {
        assert_eq!(offset_of("é x", 1, 3), 3);
        assert_eq!(offset_of("a\nbc", 2, 2), 3);
        assert_eq!(offset_of("a", 5, 1), 1);
    }
}
