//! What can go wrong, told by who must act.
//!
//! Law: an error leaves the session as it was before the call: no object half made, no row half
//! applied. `message` is lower case, factual, and names the object and its kind; `detail` and
//! `hint` are sentences.

use std::fmt;

use anabranch_sql::input::in_words;
use anabranch_sql::{SqlError, excerpt};

use crate::sqlstate;

/// An error of a session. [`Display`](fmt::Display) prints the message alone; [`Error::render`]
/// prints all of it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Error {
    /// Who must act.
    pub kind: ErrorKind,
    /// What happened, in one line.
    pub message: String,
    /// More about this case.
    pub detail: Option<String>,
    /// What to do instead.
    pub hint: Option<String>,
    /// Byte offset into the script where the problem is.
    pub position: Option<usize>,
    /// What few errors have. In a box: an error is the other half of every result, and stays below
    /// 128 bytes.
    more: Option<Box<ErrorMore>>,
    /// Its SQLSTATE, where the message does not tell; see [`Error::sqlstate`].
    pub(crate) code: Option<&'static str>,
}

/// What few errors have.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct ErrorMore {
    /// Line and column in the script, from 1, when the planner knew only these.
    line_column: Option<(u64, u64)>,
    subject: Option<ErrorSubject>,
    context: Option<String>,
}

/// What broke a constraint, as PostgreSQL tells it beside the message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ErrorSubject {
    /// The relation, after its schema unless that is `public`.
    pub relation: String,
    /// The column that forbids NULL.
    pub column: Option<String>,
    /// The constraint, or the index that is unique.
    pub constraint: Option<String>,
}

/// Who must act on an [`Error`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ErrorKind {
    /// Change the statement or the argument.
    Invalid,
    /// Some rows are at fault: a value that does not parse, a division by zero, a broken
    /// constraint.
    Data,
    /// Something outside (a file, a network) did not answer; retry or repair it.
    Unavailable,
    /// The thing that was used is gone; open it anew.
    Closed,
    /// The statement was interrupted. Data and views are unharmed.
    Cancelled,
    /// Our bug; please report it.
    Internal,
}

impl fmt::Display for ErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            ErrorKind::Invalid => "invalid",
            ErrorKind::Data => "data",
            ErrorKind::Unavailable => "unavailable",
            ErrorKind::Closed => "closed",
            ErrorKind::Cancelled => "cancelled",
            ErrorKind::Internal => "internal",
        })
    }
}

/// The message of a statement that took too long, in PostgreSQL's words.
const TIMED_OUT: &str = "canceling statement due to statement timeout";

impl Error {
    /// An error of that kind, with a message only.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Error {
        let message = message.into();
        Error { kind, message, detail: None, hint: None, position: None, more: None, code: None }
    }

    /// The statement or argument is wrong.
    pub fn invalid(message: impl Into<String>) -> Error {
        Error::new(ErrorKind::Invalid, message)
    }

    /// Some rows are wrong.
    pub fn data(message: impl Into<String>) -> Error {
        Error::new(ErrorKind::Data, message)
    }

    /// Something outside did not answer. The number that the system has for its reason is left out.
    pub fn unavailable(message: impl Into<String>) -> Error {
        Error::new(ErrorKind::Unavailable, without_number(message.into()))
    }

    /// The thing is gone.
    pub fn closed(message: impl Into<String>) -> Error {
        Error::new(ErrorKind::Closed, message)
    }

    /// The statement was interrupted.
    pub fn cancelled() -> Error {
        Error::new(ErrorKind::Cancelled, "the statement was interrupted")
    }

    /// The statement took longer than `statement_timeout`.
    pub(crate) fn timed_out() -> Error {
        Error::new(ErrorKind::Cancelled, TIMED_OUT)
            .with_hint("SET statement_timeout = 0 lets statements run as long as they need.")
    }

    /// Whether the statement was stopped by `statement_timeout`, here or in a server.
    pub fn is_timeout(&self) -> bool {
        self.kind == ErrorKind::Cancelled && self.message == TIMED_OUT
    }

    /// A broken invariant of ours.
    pub fn internal(message: impl Into<String>) -> Error {
        Error::new(ErrorKind::Internal, message)
            .with_hint("This is a bug in Anabranch; please report it with the statement.")
    }

    /// The same error with a detail.
    #[must_use]
    pub fn with_detail(mut self, detail: impl Into<String>) -> Error {
        self.detail = Some(detail.into());
        self
    }

    /// The same error with a hint.
    #[must_use]
    pub fn with_hint(mut self, hint: impl Into<String>) -> Error {
        self.hint = Some(hint.into());
        self
    }

    /// The same error with a SQLSTATE of its own.
    #[must_use]
    pub fn with_sqlstate(mut self, code: &'static str) -> Error {
        self.code = Some(code);
        self
    }

    /// The same error with where it came about: the line of a COPY.
    #[must_use]
    pub fn with_context(mut self, context: impl Into<String>) -> Error {
        self.more.get_or_insert_default().context = Some(context.into());
        self
    }

    /// The same error about a constraint of a relation.
    #[must_use]
    pub(crate) fn about_constraint(self, relation: &str, constraint: &str) -> Error {
        self.about(ErrorSubject { relation: relation.into(), column: None, constraint: Some(constraint.into()) })
    }

    /// The same error about a column of a relation.
    #[must_use]
    pub(crate) fn about_column(self, relation: &str, column: &str) -> Error {
        self.about(ErrorSubject { relation: relation.into(), column: Some(column.into()), constraint: None })
    }

    fn about(mut self, subject: ErrorSubject) -> Error {
        self.more.get_or_insert_default().subject = Some(subject);
        self
    }

    /// The same error, placed at a byte offset of the script.
    #[must_use]
    pub fn at(mut self, position: usize) -> Error {
        self.position = Some(position);
        self
    }

    /// The whole error as PostgreSQL's shell prints it: message, the line of `script` with a caret,
    /// detail, hint and context.
    ///
    /// ```
    /// use anabranch_engine::Error;
    /// let error = Error::invalid("unknown column \"b\"").with_hint("Did you mean \"a\"?").at(7);
    /// assert_eq!(
    ///     error.render("select b from t"),
    ///     "error: unknown column \"b\"\nLINE 1: select b from t\n               ^\nhint: Did you mean \"a\"?"
    /// );
    /// ```
    pub fn render(&self, script: &str) -> String {
        let mut out = format!("error: {}", self.message);
        if let Some(position) = self.position.filter(|p| *p <= script.len() && script.is_char_boundary(*p)) {
            out.push_str(&excerpt(script, position));
        }
        if let Some(detail) = &self.detail {
            out.push_str(&format!("\ndetail: {detail}"));
        }
        if let Some(hint) = &self.hint {
            out.push_str(&format!("\nhint: {hint}"));
        }
        if let Some(context) = self.context() {
            out.push_str(&format!("\ncontext: {context}"));
        }
        out
    }
}

impl Error {
    /// What it is about, for programs that look for more than a message.
    pub fn subject(&self) -> Option<&ErrorSubject> {
        self.more.as_ref()?.subject.as_ref()
    }

    /// Where it came about: `COPY t, line 2, column a: "x"`.
    pub fn context(&self) -> Option<&str> {
        self.more.as_ref()?.context.as_deref()
    }

    /// The same error of a text that its reader has not written.
    pub(crate) fn without_place(mut self) -> Error {
        self.position = None;
        if let Some(more) = &mut self.more {
            more.line_column = None;
        }
        self
    }

    /// The same error with its place as an offset into `script`, the text that was parsed.
    #[must_use]
    pub(crate) fn placed_in(mut self, script: &str) -> Error {
        let line_column = self.more.as_mut().and_then(|more| more.line_column.take());
        if let Some(line_column) = line_column.filter(|_| self.position.is_none()) {
            let mut placed = SqlError::new(anabranch_sql::ErrorKind::Invalid, "");
            placed.line_column = Some(line_column);
            self.position = placed.place(script);
        }
        self
    }
}

impl From<SqlError> for Error {
    fn from(error: SqlError) -> Error {
        let kind = match error.kind {
            anabranch_sql::ErrorKind::Internal => ErrorKind::Internal,
            _ => ErrorKind::Invalid,
        };
        Error {
            kind,
            message: error.message,
            detail: error.detail,
            hint: error.hint,
            position: error.position,
            more: error.line_column.map(|at| Box::new(ErrorMore { line_column: Some(at), ..ErrorMore::default() })),
            code: sqlstate::of_planner(error.kind),
        }
    }
}

impl From<arrow::error::ArrowError> for Error {
    /// Arrow's errors come from values: a cast that does not fit, a division by zero.
    fn from(error: arrow::error::ArrowError) -> Error {
        use arrow::error::ArrowError;
        match error {
            ArrowError::DivideByZero => Error::data("division by zero"),
            ArrowError::ArithmeticOverflow(text)
            | ArrowError::ComputeError(text)
            | ArrowError::CastError(text)
            | ArrowError::ParseError(text)
            | ArrowError::InvalidArgumentError(text) => Error::data(in_words(&text)),
            other => Error::data(other.to_string()),
        }
    }
}

/// A message without the number that the system has for its reason.
fn without_number(message: String) -> String {
    let Some((before, behind)) = message.split_once(" (os error ") else { return message };
    let behind = behind.split_once(')').map_or("", |(_, behind)| behind);
    format!("{before}{behind}")
}

/// The error of a file that cannot be read or written.
pub(crate) fn of_file(path: &str, what: &str, error: &std::io::Error) -> Error {
    let code = match error.kind() {
        std::io::ErrorKind::NotFound => "58P01",
        std::io::ErrorKind::PermissionDenied => "42501",
        _ => "58030",
    };
    Error::unavailable(format!("file \"{path}\" cannot be {what}: {error}")).with_sqlstate(code)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_caret_points_into_the_right_line() {
        let error = Error::invalid("unknown column").at(9);
        assert_eq!(error.render("select\n  x"), "error: unknown column\nLINE 2:   x\n          ^");
    }

    #[test]
    fn a_position_outside_the_script_is_left_out() {
        assert_eq!(Error::invalid("x").at(99).render("select"), "error: x");
    }
}
