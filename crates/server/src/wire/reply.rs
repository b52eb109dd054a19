//! What clients hear. Each function appends one message to a buffer.

use anabranch_engine::{Error, ErrorSubject, TransactionState};
use arrow::datatypes::Schema;

use anabranch_sql::pg_types::PgType;

/// How bad a notice or an error is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Severity {
    /// The statement failed.
    Error,
    /// The connection ends.
    Fatal,
    /// Worth knowing.
    Notice,
    /// Worth knowing, and perhaps not what was meant.
    Warning,
}

impl Severity {
    fn name(self) -> &'static str {
        match self {
            Severity::Error => "ERROR",
            Severity::Fatal => "FATAL",
            Severity::Notice => "NOTICE",
            Severity::Warning => "WARNING",
        }
    }
}

/// What is told of an error or a notice.
pub(crate) struct ReplyReport<'a> {
    pub severity: Severity,
    /// SQLSTATE.
    pub code: &'a str,
    pub message: &'a str,
    pub detail: Option<&'a str>,
    pub hint: Option<&'a str>,
    /// Characters from the start of the text, from 1.
    pub position: Option<usize>,
    pub subject: Option<&'a ErrorSubject>,
    pub context: Option<&'a str>,
}

/// Appends a message: its letter, its length, and what `body` writes.
pub(crate) fn message(out: &mut Vec<u8>, letter: u8, body: impl FnOnce(&mut Vec<u8>)) {
    out.push(letter);
    let start = out.len();
    out.extend_from_slice(&[0; 4]);
    body(out);
    let length = u32::try_from(out.len() - start).expect("a message is far below 4 GiB");
    out[start..start + 4].copy_from_slice(&length.to_be_bytes());
}

/// Appends a text and its end; bytes of zero cannot be in one.
pub(crate) fn text(out: &mut Vec<u8>, text: &str) {
    out.extend(text.bytes().filter(|byte| *byte != 0));
    out.push(0);
}

/// AuthenticationOk and its steps.
pub(crate) fn authentication(out: &mut Vec<u8>, step: i32, data: &[u8]) {
    message(out, b'R', |out| {
        out.extend_from_slice(&step.to_be_bytes());
        out.extend_from_slice(data);
    });
}

/// ParameterStatus.
pub(crate) fn parameter_status(out: &mut Vec<u8>, name: &str, value: &str) {
    message(out, b'S', |out| {
        text(out, name);
        text(out, value);
    });
}

/// BackendKeyData: what the client cancels with.
pub(crate) fn key_data(out: &mut Vec<u8>, id: i32, secret: i32) {
    message(out, b'K', |out| {
        out.extend_from_slice(&id.to_be_bytes());
        out.extend_from_slice(&secret.to_be_bytes());
    });
}

/// NegotiateProtocolVersion: the server speaks 3.0, and knows none of these options.
pub(crate) fn negotiate(out: &mut Vec<u8>, options: &[&str]) {
    message(out, b'v', |out| {
        out.extend_from_slice(&0i32.to_be_bytes());
        out.extend_from_slice(&(options.len() as i32).to_be_bytes());
        options.iter().for_each(|option| text(out, option));
    });
}

/// ReadyForQuery.
pub(crate) fn ready(out: &mut Vec<u8>, transaction: TransactionState) {
    let state = match transaction {
        TransactionState::Idle => b'I',
        TransactionState::Open => b'T',
        TransactionState::Failed => b'E',
    };
    message(out, b'Z', |out| out.push(state));
}

/// CommandComplete.
pub(crate) fn complete(out: &mut Vec<u8>, tag: &str) {
    message(out, b'C', |out| text(out, tag));
}

/// A message without a body.
pub(crate) fn bare(out: &mut Vec<u8>, letter: u8) {
    message(out, letter, |_| {});
}

/// ParameterDescription.
pub(crate) fn parameters(out: &mut Vec<u8>, types: impl ExactSizeIterator<Item = u32>) {
    message(out, b't', |out| {
        out.extend_from_slice(&(types.len() as u16).to_be_bytes());
        types.for_each(|oid| out.extend_from_slice(&oid.to_be_bytes()));
    });
}

/// RowDescription.
pub(crate) fn columns(out: &mut Vec<u8>, schema: &Schema, formats: impl Fn(usize) -> i16) {
    message(out, b'T', |out| {
        out.extend_from_slice(&(schema.fields().len() as u16).to_be_bytes());
        for (n, field) in schema.fields().iter().enumerate() {
            let of = PgType::of(field);
            text(out, field.name());
            // (No table's column: neither table nor number.)
            out.extend_from_slice(&[0; 6]);
            out.extend_from_slice(&of.oid.to_be_bytes());
            out.extend_from_slice(&of.size.to_be_bytes());
            out.extend_from_slice(&of.modifier.to_be_bytes());
            out.extend_from_slice(&formats(n).to_be_bytes());
        }
    });
}

/// ErrorResponse or NoticeResponse.
pub(crate) fn report(out: &mut Vec<u8>, report: &ReplyReport<'_>) {
    let letter = match report.severity {
        Severity::Error | Severity::Fatal => b'E',
        Severity::Notice | Severity::Warning => b'N',
    };
    message(out, letter, |out| {
        let mut field = |letter: u8, value: &str| {
            out.push(letter);
            text(out, value);
        };
        field(b'S', report.severity.name());
        field(b'V', report.severity.name());
        field(b'C', report.code);
        field(b'M', report.message);
        if let Some(detail) = report.detail {
            field(b'D', detail);
        }
        if let Some(hint) = report.hint {
            field(b'H', hint);
        }
        if let Some(position) = report.position {
            field(b'P', &position.to_string());
        }
        if let Some(context) = report.context {
            field(b'W', context);
        }
        if let Some(subject) = report.subject {
            let (schema, table) = subject.relation.split_once('.').unwrap_or(("public", &subject.relation));
            field(b's', schema);
            field(b't', table);
            subject.column.iter().for_each(|column| field(b'c', column));
            subject.constraint.iter().for_each(|constraint| field(b'n', constraint));
        }
        out.push(0);
    });
}

/// ErrorResponse of a statement's error; `script` is the text that its position is in.
pub(crate) fn error(out: &mut Vec<u8>, error: &Error, script: &str) {
    let position = error.position.and_then(|at| script.get(..at)).map(|before| before.chars().count() + 1);
    report(
        out,
        &ReplyReport {
            severity: Severity::Error,
            code: error.sqlstate(),
            message: &error.message,
            detail: error.detail.as_deref(),
            hint: error.hint.as_deref(),
            position,
            subject: error.subject(),
            context: error.context(),
        },
    );
}

/// A report with a message only.
pub(crate) fn plain(out: &mut Vec<u8>, severity: Severity, code: &str, message: &str) {
    report(
        out,
        &ReplyReport {
            severity,
            code,
            message,
            detail: None,
            hint: None,
            position: None,
            subject: None,
            context: None,
        },
    );
}
