//! The prompt: statements, and the rows of a COPY that are typed or pasted behind one.
//!
//! Law: all that is typed goes through the line editor, which holds what was typed ahead.

use std::collections::VecDeque;

use anabranch_engine::Error;
use rustyline::{Editor, error::ReadlineError, history::DefaultHistory};

use super::editing::Editing;
use crate::{data::Lines, place::Relation};

/// The editor of lines.
pub(super) type LineEditor = Editor<Editing, DefaultHistory>;

/// See the module.
pub(super) struct Typed {
    pub editor: LineEditor,
    /// Lines that were pasted at once and are not taken yet.
    left: VecDeque<String>,
}

impl Typed {
    pub(super) fn new(editor: LineEditor) -> Typed {
        Typed { editor, left: VecDeque::new() }
    }

    /// Reads a statement or a command. What was pasted behind rows stands in the line already.
    pub(super) fn statement(&mut self, relations: Vec<Relation>) -> rustyline::Result<String> {
        if let Some(editing) = self.editor.helper_mut() {
            editing.set_relations(relations);
        }
        let left: Vec<String> = self.left.drain(..).collect();
        let left = left.join("\n");
        match left.trim() {
            "" => self.editor.readline("anabranch> "),
            left => self.editor.readline_with_initial("anabranch> ", (left, "")),
        }
    }

    fn rows(&mut self) -> rustyline::Result<String> {
        self.set_reads_rows(true);
        let rows = self.editor.readline(">> ");
        self.set_reads_rows(false);
        rows
    }

    fn set_reads_rows(&mut self, reads: bool) {
        if let Some(editing) = self.editor.helper_mut() {
            editing.reads_rows = reads;
        }
    }
}

impl Lines for Typed {
    fn next(&mut self, line: &mut Vec<u8>) -> Result<bool, Error> {
        if self.left.is_empty() {
            match self.rows() {
                Ok(rows) => {
                    let rows = rows.strip_suffix('\n').unwrap_or(&rows);
                    self.left.extend(rows.split('\n').map(str::to_owned));
                }
                Err(ReadlineError::Eof) => return Ok(false),
                Err(ReadlineError::Interrupted) => return Err(Error::cancelled()),
                Err(problem) => return Err(Error::unavailable(format!("cannot read from the terminal: {problem}"))),
            }
        }
        if let Some(first) = self.left.pop_front() {
            line.extend_from_slice(first.as_bytes());
            line.push(b'\n');
        }
        Ok(true)
    }

    fn are_typed(&self) -> bool {
        true
    }
}
