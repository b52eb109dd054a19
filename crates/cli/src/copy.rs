//! `\copy` and `.import`: COPY between a relation and files of this machine.
//!
//! A session of this process reads and writes the files itself. A server is sent COPY with STDIN or
//! STDOUT, and the bytes go over the connection.

use std::fs::File;
use std::io::{BufWriter, Read, Write, stdin, stdout};

use anabranch_engine::Error;

/// What a COPY over a connection reads or writes here.
pub(crate) enum Transfer {
    None,
    From(Box<dyn Read + Send>),
    To(Box<dyn Write + Send>),
}

/// A `\copy`, taken apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Copy {
    /// A relation with its columns, or a query in parentheses.
    what: String,
    direction: Direction,
    end: End,
    options: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Direction {
    From,
    To,
}

/// The side that is here.
#[derive(Clone, Debug, PartialEq, Eq)]
enum End {
    File(String),
    /// Standard input or output.
    Standard,
}

impl Copy {
    /// Reads what stands behind `\copy`.
    ///
    /// # Errors
    /// `Invalid` when it is no copy.
    pub(crate) fn parse(text: &str) -> Result<Copy, Error> {
        let wrong = || {
            Error::invalid(format!("\\copy {text} is no copy"))
                .with_hint("Write \\copy table FROM 'file' (FORMAT csv), or \\copy (SELECT ..) TO 'file'.")
        };
        let (at, direction) = direction_in(text).ok_or_else(wrong)?;
        let what = text[..at].trim().to_owned();
        let rest = text[at..].trim_start_matches(|c: char| c.is_ascii_alphabetic()).trim_start();
        let (end, options) = end_in(rest).ok_or_else(wrong)?;
        if what.is_empty() {
            return Err(wrong());
        }
        Ok(Copy { what, direction, end, options: options.trim().trim_end_matches(';').to_owned() })
    }

    /// The COPY of a table from a file of CSV.
    pub(crate) fn of_csv(table: &str, path: &str, has_header: bool) -> Copy {
        let header = if has_header { ", HEADER" } else { "" };
        Copy {
            what: table.to_owned(),
            direction: Direction::From,
            end: End::File(path.to_owned()),
            options: format!("(FORMAT csv{header})"),
        }
    }

    /// The statement of a session that reads and writes files itself.
    pub(crate) fn statement_with_file(&self) -> String {
        let end = match (&self.end, self.direction) {
            (End::File(path), _) => format!("'{}'", path.replace('\'', "''")),
            (End::Standard, Direction::From) => "STDIN".into(),
            (End::Standard, Direction::To) => "STDOUT".into(),
        };
        self.statement(&end)
    }

    /// The statement of a server, to which the rows go over the connection.
    pub(crate) fn statement_over_connection(&self) -> String {
        self.statement(match self.direction {
            Direction::From => "STDIN",
            Direction::To => "STDOUT",
        })
    }

    fn statement(&self, end: &str) -> String {
        let direction = match self.direction {
            Direction::From => "FROM",
            Direction::To => "TO",
        };
        format!("COPY {} {direction} {end} {}", self.what, self.options).trim_end().to_owned()
    }

    /// Opens what is read or written here.
    ///
    /// # Errors
    /// `Unavailable` when the file cannot be opened.
    pub(crate) fn transfer(&self) -> Result<Transfer, Error> {
        let unusable =
            |path: &str, problem: std::io::Error| Error::unavailable(format!("cannot open {path}: {problem}"));
        Ok(match (self.direction, &self.end) {
            (Direction::From, End::Standard) => Transfer::From(Box::new(stdin())),
            (Direction::To, End::Standard) => Transfer::To(Box::new(stdout())),
            (Direction::From, End::File(path)) => {
                Transfer::From(Box::new(File::open(path).map_err(|problem| unusable(path, problem))?))
            }
            (Direction::To, End::File(path)) => {
                Transfer::To(Box::new(BufWriter::new(File::create(path).map_err(|problem| unusable(path, problem))?)))
            }
        })
    }
}

/// Where FROM or TO stands outside of parentheses and quotes.
fn direction_in(text: &str) -> Option<(usize, Direction)> {
    let (mut depth, mut quote) = (0, None);
    for (at, c) in text.char_indices() {
        match (quote, c) {
            (Some(open), c) if open == c => quote = None,
            (Some(_), _) => {}
            (None, '\'' | '"') => quote = Some(c),
            (None, '(') => depth += 1,
            (None, ')') => depth -= 1,
            (None, c) if depth == 0 && !c.is_whitespace() && text[..at].ends_with([' ', ')']) => {
                let word = text[at..].split_whitespace().next().unwrap_or_default();
                match word.to_ascii_uppercase().as_str() {
                    "FROM" => return Some((at, Direction::From)),
                    "TO" => return Some((at, Direction::To)),
                    _ => {}
                }
            }
            _ => {}
        }
    }
    None
}

/// The file, or standard input or output, and what stands behind.
fn end_in(rest: &str) -> Option<(End, &str)> {
    if let Some(quoted) = rest.strip_prefix('\'') {
        let mut path = String::new();
        let mut left = quoted;
        loop {
            let (part, after) = left.split_once('\'')?;
            path.push_str(part);
            match after.strip_prefix('\'') {
                Some(after) => {
                    path.push('\'');
                    left = after;
                }
                None => return Some((End::File(path), after)),
            }
        }
    }
    let end = rest.find(|c: char| c.is_whitespace() || c == ';').unwrap_or(rest.len());
    let (word, after) = rest.split_at(end);
    match word.to_ascii_uppercase().as_str() {
        "" => None,
        "STDIN" | "STDOUT" | "PSTDIN" | "PSTDOUT" => Some((End::Standard, after)),
        _ => Some((End::File(word.to_owned()), after)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_is_taken_apart() {
        let copy = Copy::parse("t (a, b) FROM 'in''s.csv' WITH (FORMAT csv);").unwrap();
        assert_eq!(copy.statement_with_file(), "COPY t (a, b) FROM 'in''s.csv' WITH (FORMAT csv)");
        assert_eq!(copy.statement_over_connection(), "COPY t (a, b) FROM STDIN WITH (FORMAT csv)");
        let copy = Copy::parse("(SELECT 'x to y' AS a FROM t) to out.txt").unwrap();
        assert_eq!(copy.statement_over_connection(), "COPY (SELECT 'x to y' AS a FROM t) TO STDOUT");
        assert_eq!(copy.end, End::File("out.txt".into()));
        assert_eq!(Copy::parse("t to stdout").unwrap().end, End::Standard);
    }

    #[test]
    fn what_is_no_copy_is_refused() {
        for text in ["", "t", "t FROM", "FROM 'a'", "t FROM 'a"] {
            assert!(Copy::parse(text).is_err(), "{text}");
        }
    }
}
