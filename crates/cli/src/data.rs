//! The rows of a COPY .. FROM STDIN: where they are typed, and how they reach the statement.
//!
//! Law: rows come from where the statement came from, as in psql: from the lines behind it in a
//! text, and else from standard input or the shell's prompt. They end with a line `\.`, or with
//! their source. A statement that fails, or was stopped, leaves none of its rows to be run as
//! statements: what is left of them is read and left out.

use std::{
    io::{self, BufRead, IsTerminal, stdin},
    ops::Range,
    sync::mpsc::SyncSender,
};

use anabranch_engine::Error;

/// What a COPY that has begun wants.
pub(crate) struct Wanted {
    /// Dropped without [`Piece::Done`], it stops the COPY.
    pub pieces: SyncSender<Piece>,
    /// Whether rows are in the binary format, which no line ends.
    pub is_binary: bool,
}

/// A part of what a COPY reads.
pub(crate) enum Piece {
    Rows(Vec<u8>),
    /// All rows were sent.
    Done,
}

/// How many pieces may wait.
pub(crate) const PIECES_MAX: usize = 16;

/// Rows are sent on in pieces of about this many bytes.
const PIECE_BYTES: usize = 1 << 16;

/// What to type, as psql says it.
const ADVICE: &str = "Enter data to be copied followed by a newline.\n\
                      End with a backslash and a period on a line by itself, or an EOF signal.";

/// Lines of rows.
pub(crate) trait Lines {
    /// Appends the next line with its end; false when there is none.
    ///
    /// # Errors
    /// `Cancelled` when the person at the keyboard gives up; `Unavailable` when it cannot be read.
    fn next(&mut self, line: &mut Vec<u8>) -> Result<bool, Error>;

    /// Whether a person types them.
    fn are_typed(&self) -> bool;
}

/// Standard input.
pub(crate) struct StandardLines;

/// Lines of a text, and then those of another source.
pub(crate) struct TextLines<'a> {
    text: &'a [u8],
    behind: Option<&'a mut dyn Lines>,
}

impl Lines for StandardLines {
    fn next(&mut self, line: &mut Vec<u8>) -> Result<bool, Error> {
        let unread = |error: io::Error| Error::unavailable(format!("standard input cannot be read: {error}"));
        Ok(stdin().lock().read_until(b'\n', line).map_err(unread)? > 0)
    }

    fn are_typed(&self) -> bool {
        stdin().is_terminal()
    }
}

impl<'a> TextLines<'a> {
    pub(crate) fn new(text: &'a str, behind: Option<&'a mut dyn Lines>) -> TextLines<'a> {
        TextLines { text: text.as_bytes(), behind }
    }
}

impl Lines for TextLines<'_> {
    fn next(&mut self, line: &mut Vec<u8>) -> Result<bool, Error> {
        if self.text.is_empty() {
            return self.behind.as_mut().map_or(Ok(false), |behind| behind.next(line));
        }
        let end = self.text.iter().position(|byte| *byte == b'\n').map_or(self.text.len(), |at| at + 1);
        let (first, rest) = self.text.split_at(end);
        line.extend_from_slice(first);
        if !first.ends_with(b"\n") {
            line.push(b'\n');
        }
        self.text = rest;
        Ok(true)
    }

    fn are_typed(&self) -> bool {
        self.text.is_empty() && self.behind.as_ref().is_some_and(|behind| behind.are_typed())
    }
}

/// Sends rows to a COPY until they end; gives the lines that were read.
///
/// # Errors
/// Of the source. The COPY's own errors come with its reply.
pub(crate) fn feed(wanted: &Wanted, lines: &mut dyn Lines) -> Result<usize, Error> {
    let is_typed = lines.are_typed();
    if is_typed {
        eprintln!("{ADVICE}");
    }
    let mut rows = Vec::new();
    let mut is_refused = false;
    let mut n_lines = 0;
    loop {
        let start = rows.len();
        let is_end = !lines.next(&mut rows)?;
        n_lines += usize::from(!is_end);
        let is_mark = !wanted.is_binary && is_end_mark(&rows[start..]);
        if is_mark {
            rows.truncate(start);
        }
        let is_last = is_end || is_mark;
        if !rows.is_empty() && (is_last || lines.are_typed() || rows.len() >= PIECE_BYTES) {
            let piece = std::mem::take(&mut rows);
            is_refused = is_refused || wanted.pieces.send(Piece::Rows(piece)).is_err();
        }
        if is_last {
            // (Of a COPY that has failed the reply tells.)
            let _ = wanted.pieces.send(Piece::Done);
            return Ok(n_lines);
        }
    }
}

/// Whether a line says that rows end.
fn is_end_mark(line: &[u8]) -> bool {
    matches!(line, b"\\.\n" | b"\\.\r\n" | b"\\.")
}

/// Whether a statement is a COPY that reads rows from where it was typed.
pub(crate) fn reads_lines(statement: &str) -> bool {
    let begins = statement.get(..4).is_some_and(|word| word.eq_ignore_ascii_case("copy"));
    begins && {
        let words = statement.split(|c: char| c.is_whitespace() || c == '(').filter(|word| !word.is_empty());
        let words: Vec<String> = words.map(str::to_ascii_lowercase).collect();
        words.windows(2).any(|pair| pair[0] == "from" && pair[1] == "stdin")
    }
}

/// Where the rows behind a statement that ends at `end` lie in its text: from the next line to the
/// line that ends them.
pub(crate) fn rows_behind(text: &str, end: usize) -> Option<Range<usize>> {
    let start = end + text[end..].find('\n')? + 1;
    let mut at = start;
    for line in text[start..].split_inclusive('\n') {
        at += line.len();
        if is_end_mark(line.as_bytes()) {
            return Some(start..at);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_of_typed_rows_is_known_by_its_words() {
        assert!(reads_lines("COPY t (a, b) FROM stdin") && reads_lines("copy t from\n STDIN(format csv)"));
        assert!(!reads_lines("copy t from 'stdin'") && !reads_lines("select 1") && !reads_lines("copy t to stdout"));
    }

    #[test]
    fn rows_lie_behind_the_line_of_their_statement() {
        let text = "copy t from stdin; -- now\n1\n\\.\nselect 1;";
        assert_eq!(rows_behind(text, 17).map(|rows| &text[rows]), Some("1\n\\.\n"));
        assert_eq!(rows_behind("copy t from stdin;\n1\n", 17), None);
        assert_eq!(rows_behind("copy t from stdin", 17), None);
    }

    #[test]
    fn lines_of_a_text_come_before_those_behind_it() {
        let mut behind = TextLines::new("c", None);
        let mut lines = TextLines::new("a\nb", Some(&mut behind));
        let mut all = Vec::new();
        while lines.next(&mut all).unwrap() {}
        assert_eq!(all, b"a\nb\nc\n");
    }
}
