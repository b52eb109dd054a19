//! One `SELECT` in the making.
//!
//! A node over a block becomes part of it where SQL's order of evaluation allows that; else the
//! block is put into FROM. Tables of steps are numbered marks until the text is done, so that both
//! sides of a join can be put side by side.

use crate::expressions::{BoundText, list};

/// Stands around the number of a table.
const MARK: char = '\u{1}';

/// What a `SELECT` says.
#[derive(Clone, Debug)]
pub(super) struct Block {
    /// What stands in FROM.
    pub from: String,
    /// Whether `from` is one table by itself, and by which name.
    pub table: Option<String>,
    /// A text for each column.
    pub columns: Vec<BoundText>,
    /// A name for each column.
    pub names: Vec<String>,
    /// Conditions of WHERE.
    pub filter: Vec<String>,
    /// GROUP BY, if rows are grouped.
    pub group: Option<Vec<String>>,
    /// Conditions of HAVING.
    pub having: Vec<String>,
    /// Whether equal rows come once.
    pub is_distinct: bool,
    /// ORDER BY, LIMIT and OFFSET.
    pub tail: String,
    /// Whether columns hold window functions.
    pub has_windows: bool,
}

/// A table mark.
pub(super) fn table(number: usize) -> String {
    format!("{MARK}{number}{MARK}")
}

/// The text with tables' numbers moved up by so many.
pub(super) fn renumbered(text: &str, by: usize) -> String {
    with_tables(text, &|number| table(number + by))
}

/// The text with names for tables' marks.
pub(super) fn with_tables(text: &str, name: &dyn Fn(usize) -> String) -> String {
    let mut out = String::new();
    for (at, part) in text.split(MARK).enumerate() {
        match (at % 2, part.parse()) {
            (1, Ok(number)) => out.push_str(&name(number)),
            _ => out.push_str(part),
        }
    }
    out
}

/// A name as SQL reads it.
pub(super) fn identifier(name: &str) -> String {
    let is_plain = name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_')
        && !name.starts_with(|c: char| c.is_ascii_digit())
        && !RESERVED.contains(&name);
    match is_plain {
        true => name.to_owned(),
        false => format!("\"{}\"", name.replace('"', "\"\"")),
    }
}

/// Words that are no names of columns in PostgreSQL unless they are quoted, and those that are read
/// otherwise without an `AS` or as calls.
const RESERVED: &[&str] = &[
    "",
    "all",
    "analyse",
    "analyze",
    "and",
    "any",
    "array",
    "as",
    "asc",
    "asymmetric",
    "both",
    "case",
    "cast",
    "check",
    "collate",
    "column",
    "constraint",
    "create",
    "current_date",
    "current_role",
    "current_time",
    "current_timestamp",
    "current_user",
    "day",
    "default",
    "deferrable",
    "desc",
    "distinct",
    "do",
    "else",
    "end",
    "except",
    "exists",
    "extract",
    "false",
    "fetch",
    "filter",
    "for",
    "foreign",
    "from",
    "grant",
    "group",
    "having",
    "hour",
    "in",
    "initially",
    "intersect",
    "interval",
    "into",
    "lateral",
    "leading",
    "limit",
    "localtime",
    "localtimestamp",
    "minute",
    "month",
    "not",
    "null",
    "offset",
    "on",
    "only",
    "or",
    "order",
    "other",
    "over",
    "placing",
    "position",
    "primary",
    "references",
    "returning",
    "row",
    "second",
    "select",
    "session_user",
    "shard",
    "some",
    "substring",
    "symmetric",
    "table",
    "then",
    "to",
    "trailing",
    "trim",
    "true",
    "union",
    "unique",
    "user",
    "using",
    "values",
    "variadic",
    "when",
    "where",
    "window",
    "with",
    "year",
    "date",
    "time",
    "timestamp",
    "left",
    "right",
    "full",
    "inner",
    "outer",
    "cross",
    "join",
    "natural",
    "is",
    "like",
    "ilike",
    "similar",
    "overlaps",
    "isnull",
    "notnull",
];

impl Block {
    /// All columns of a table.
    pub fn of_table(from: String, name: String, names: Vec<String>) -> Block {
        let columns = names.iter().map(|column| BoundText::tight(format!("{name}.{}", identifier(column)))).collect();
        Block {
            from,
            table: Some(name),
            columns,
            names,
            filter: vec![],
            group: None,
            having: vec![],
            is_distinct: false,
            tail: String::new(),
            has_windows: false,
        }
    }

    /// The same rows from a table of this name.
    pub fn nested(self, name: &str) -> Block {
        let names = self.names.clone();
        let from = format!("({}) AS {name}", self.text());
        Block::of_table(from, name.to_owned(), names)
    }

    /// Whether nothing but conditions and columns stand over the table.
    pub fn is_rows(&self) -> bool {
        self.group.is_none() && !self.is_distinct && self.tail.is_empty() && !self.has_windows
    }

    /// Whether the block is all of one table.
    pub fn is_table(&self) -> bool {
        let Some(table) = &self.table else { return false };
        let mut columns = self.columns.iter().zip(&self.names);
        self.is_rows()
            && self.filter.is_empty()
            && columns.all(|(text, name)| text.text == format!("{table}.{}", identifier(name)))
    }

    /// `SELECT ..`.
    pub fn text(&self) -> String {
        let columns = self.columns.iter().zip(&self.names).map(|(text, name)| {
            let name = identifier(name);
            // (A column of a table has its own name; an expression that ends with one has not.)
            let is_table = |table: &str| table.chars().all(|c| c.is_alphanumeric() || c == '_' || c == MARK);
            let is_named = text.text.rsplit_once('.').is_some_and(|(table, last)| last == name && is_table(table));
            if is_named { text.text.clone() } else { format!("{} AS {name}", text.text) }
        });
        let distinct = if self.is_distinct { "DISTINCT " } else { "" };
        let mut text = format!("SELECT {distinct}{} FROM {}", list(columns), self.from);
        let mut clause = |word: &str, parts: &[String], between: &str| {
            if !parts.is_empty() {
                text.push_str(&format!(" {word} {}", parts.join(between)));
            }
        };
        clause("WHERE", &self.filter, " AND ");
        clause("GROUP BY", self.group.as_deref().unwrap_or_default(), ", ");
        clause("HAVING", &self.having, " AND ");
        text + &self.tail
    }
}
