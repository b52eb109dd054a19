//! Text to syntax tree, in Souffle's syntax.
//!
//! Law: any text gives a tree or an error with a place; none makes the parser panic or overflow the
//! stack. Trees are at most [`DEPTH_MAX`](parser::DEPTH_MAX) deep, so that all walks over them may
//! recurse.
//!
//! Source: the language reference of Souffle (souffle-lang.github.io).

mod argument;
mod clause;
mod declaration;
mod lexer;
mod parser;
mod token;

use anabranch_engine::Error;

use crate::ast::Program;

impl Program {
    /// Parses the text of a program. The program is not checked beyond its syntax.
    ///
    /// # Errors
    /// `Invalid`, with the place in `text`: for what is no Datalog, and for what is not supported.
    ///
    /// ```
    /// use anabranch_datalog::Program;
    ///
    /// let program = Program::parse(".decl edge(x: number, y: number)\nedge(1, 2).")?;
    /// assert_eq!(program.relations.len(), 1);
    /// # Ok::<(), anabranch_engine::Error>(())
    /// ```
    pub fn parse(text: &str) -> Result<Program, Error> {
        parser::parse(text)
    }
}
