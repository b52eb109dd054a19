//! The parser's position, and the loop over the elements of a program.

use anabranch_engine::Error;

use super::lexer::words;
use super::token::{Placed, Token};
use crate::ast::{Name, Program, Span};

/// Parts within parts, at most. Deep enough for people, shallow enough for every stack.
pub(super) const DEPTH_MAX: usize = 100;

/// The tree of a text.
pub(super) fn parse(text: &str) -> Result<Program, Error> {
    let mut parser = Parser { words: words(text)?, at: 0, nested: 0 };
    let mut program = Program { text: text.to_owned(), ..Program::default() };
    while parser.peek() != &Token::End {
        match parser.peek().clone() {
            Token::Directive(name) => parser.declaration(&name, &mut program)?,
            Token::Name(_) => parser.clause(&mut program)?,
            other => return Err(parser.expected("a declaration or a rule", &other)),
        }
    }
    Ok(program)
}

/// A position in the words.
pub(super) struct Parser {
    words: Vec<Placed>,
    at: usize,
    nested: usize,
}

impl Parser {
    pub(super) fn peek(&self) -> &Token {
        self.peek_at(0)
    }

    /// The word so many words further on.
    pub(super) fn peek_at(&self, offset: usize) -> &Token {
        let last = self.words.len() - 1;
        &self.words[(self.at + offset).min(last)].token
    }

    /// The place of the next word.
    pub(super) fn here(&self) -> Span {
        self.words[self.at].at
    }

    /// The place of the last word taken.
    pub(super) fn before(&self) -> Span {
        self.words[self.at.saturating_sub(1)].at
    }

    pub(super) fn next(&mut self) -> Token {
        let token = self.words[self.at].token.clone();
        // The last word is the end, which is never passed.
        self.at = (self.at + 1).min(self.words.len() - 1);
        token
    }

    pub(super) fn is_sign(&self, sign: &str) -> bool {
        matches!(self.peek(), Token::Sign(next) if *next == sign)
    }

    pub(super) fn take(&mut self, sign: &str) -> bool {
        let is = self.is_sign(sign);
        if is {
            self.next();
        }
        is
    }

    pub(super) fn expect(&mut self, sign: &str, of: &str) -> Result<(), Error> {
        match self.take(sign) {
            true => Ok(()),
            false => Err(self.expected(&format!("'{sign}' {of}"), &self.peek().clone())),
        }
    }

    pub(super) fn expected(&self, wanted: &str, found: &Token) -> Error {
        Error::invalid(format!("{wanted} is expected, but there is {}", found.shown())).at(self.here().start)
    }

    pub(super) fn name(&mut self, wanted: &str) -> Result<Name, Error> {
        let at = self.here();
        match self.peek().clone() {
            Token::Name(text) => {
                self.next();
                Ok(Name { text, at })
            }
            other => Err(self.expected(wanted, &other)),
        }
    }

    /// A name that components could qualify.
    pub(super) fn plain_name(&mut self, wanted: &str) -> Result<Name, Error> {
        let name = self.name(wanted)?;
        let qualified = self.is_sign(".") && matches!(self.peek_at(1), Token::Name(_));
        let adjoins = self.here().start == name.at.end
            && self.words[(self.at + 1).min(self.words.len() - 1)].at.start == name.at.end + 1;
        match qualified && adjoins {
            true => Err(super::declaration::components(name.at, &format!("the qualified name {}.", name.text))),
            false => Ok(name),
        }
    }

    /// Does `work` one level deeper.
    pub(super) fn deeper<T>(&mut self, work: impl FnOnce(&mut Parser) -> Result<T, Error>) -> Result<T, Error> {
        if self.nested >= DEPTH_MAX {
            return Err(too_deep(self.here()));
        }
        self.nested += 1;
        let result = work(self);
        self.nested -= 1;
        result
    }

    /// The sign or other word after the parenthesis that is open here, and whether a comma stands
    /// directly inside of it.
    pub(super) fn past_parenthesis(&self) -> (Token, bool) {
        let mut depth = 0;
        let mut has_comma = false;
        for (idx, word) in self.words.iter().enumerate().skip(self.at) {
            match &word.token {
                Token::Sign("(" | "[" | "{") => depth += 1,
                Token::Sign(")" | "]" | "}") => depth -= 1,
                Token::Sign(",") if depth == 1 => has_comma = true,
                _ => {}
            }
            if depth == 0 {
                let next = self.words.get(idx + 1);
                return (next.map_or(Token::End, |next| next.token.clone()), has_comma);
            }
        }
        (Token::End, has_comma)
    }
}

pub(super) fn too_deep(at: Span) -> Error {
    Error::invalid(format!("the rule is nested more than {DEPTH_MAX} deep"))
        .at(at.start)
        .with_hint("Define relations for its parts.")
}
