//! Statements that do not work here, and what to write instead.

use super::Input;
use crate::error::{ErrorKind, SqlError};
use crate::resolve::suggest::nearest;

/// First words that begin a statement.
const WORDS: [&str; 18] = [
    "alter",
    "select",
    "with",
    "values",
    "table",
    "create",
    "insert",
    "update",
    "delete",
    "copy",
    "subscribe",
    "explain",
    "show",
    "describe",
    "drop",
    "set",
    "tail",
    "desc",
];

impl Input<'_> {
    /// The error for a statement that begins with `first` (upper case; empty if not a word).
    pub(super) fn refuse(&self, first: &str) -> SqlError {
        let hint = match first {
            "REPLACE" | "UPSERT" => "Write DELETE for the rows to replace, then INSERT.",
            "GRANT" | "REVOKE" | "REASSIGN" => "There are no roles yet; leave it out.",
            "CLUSTER" => "Leave it out: arrangements are compacted as they grow.",
            "LISTEN" | "NOTIFY" => "Write SUBSCRIBE to a view of what you want to hear of.",
            "CALL" | "DO" => "Write the statements themselves.",
            "USE" => "Leave it out: there is one database.",
            "LOAD" | "IMPORT" => "Write COPY table FROM 'path' (format = csv).",
            "SUMMARIZE" => {
                "Write DESCRIBE for the columns, and SELECT count(*), min(c), max(c) .. FROM for their values."
            }
            "ATTACH" | "DETACH" => {
                "There is one database: name its folder on the command line, or read files as sources."
            }
            "INSTALL" | "PRAGMA" => "Leave it out: nothing is installed, and SHOW and SET tell and change settings.",
            "EXPORT" => "Write COPY table TO 'path', or run anabranch dump on the folder.",
            "PIVOT" | "UNPIVOT" => "Begin the query with SELECT.",
            _ => {
                let error = self.unexpected("a statement");
                return match nearest(first, WORDS.into_iter()) {
                    Some(word) if !first.is_empty() => {
                        error.with_hint(format!("Perhaps you meant {}.", word.to_uppercase()))
                    }
                    _ => error,
                };
            }
        };
        self.place(SqlError::unsupported(first, hint))
    }

    /// The error for `CREATE kind`, with the next token being the kind.
    pub(super) fn refuse_create(&self, kind: &str) -> SqlError {
        let hint = match kind {
            "TRIGGER" | "RULE" => {
                "Write CREATE MATERIALIZED VIEW for a result that follows the data, and SUBSCRIBE to act on changes."
            }
            "FUNCTION" | "PROCEDURE" | "AGGREGATE" | "MACRO" => {
                "Write the expression in the query, or name a query with CREATE VIEW."
            }
            "STATISTICS" | "TABLESPACE" | "ACCESS" | "EVENT" => "Leave it out: it would change no answer.",
            "CAST" | "OPERATOR" | "CONVERSION" | "LANGUAGE" | "TRANSFORM" => {
                "Write the expression in the query, with the casts and operators that there are."
            }
            "COLLATION" | "TEXT" => "Texts compare by their bytes: write lower() to ignore case.",
            "GROUP" => "There are no roles yet.",
            "DATABASE" => "There is one database: CREATE SCHEMA divides it.",
            "ROLE" | "USER" | "POLICY" => "There are no roles yet.",
            "TEMP" | "TEMPORARY" | "UNLOGGED" | "GLOBAL" | "LOCAL" => {
                "Tables can be temporary: write CREATE TEMPORARY TABLE name AS query."
            }
            "EXTERNAL" | "FOREIGN" => "Write CREATE SOURCE name WITH (connector = 'file', path = '..', format = csv).",
            "RECURSIVE" => "Write CREATE VIEW name AS WITH RECURSIVE name (..) AS (..) SELECT .. FROM name.",
            "SINK" | "CONNECTION" | "SECRET" | "SUBSCRIPTION" | "PUBLICATION" | "SERVER" => {
                "Sinks come with a later version: SUBSCRIBE and write the rows yourself."
            }
            "" => return self.unexpected("TABLE, SOURCE, VIEW, MATERIALIZED VIEW or INDEX"),
            other => {
                let known = ["table", "source", "view", "materialized", "index"];
                let error = self.unexpected("TABLE, SOURCE, VIEW, MATERIALIZED VIEW or INDEX");
                return match nearest(other, known.into_iter()) {
                    Some(word) => error.with_hint(format!("Perhaps you meant CREATE {}.", word.to_uppercase())),
                    None => error,
                };
            }
        };
        let error = SqlError::unsupported(format!("CREATE {kind}"), hint);
        debug_assert_eq!(error.kind, ErrorKind::Unsupported);
        self.place(error)
    }

    fn place(&self, mut error: SqlError) -> SqlError {
        error.position = Some(self.range.start);
        error
    }
}
