//! The words of the language.

use crate::ast::Span;

/// A word.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Token {
    /// A name or keyword.
    Name(String),
    /// `_`
    Wildcard,
    /// `.decl`, without the dot.
    Directive(String),
    /// A string, its escapes resolved.
    Text(String),
    Integer(i64),
    Unsigned(i64),
    Float(f64),
    /// `(`, `:-`, `<=` ..
    Sign(&'static str),
    /// The end of the text.
    End,
}

/// A word and its place.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Placed {
    pub token: Token,
    pub at: Span,
}

/// The words after a dot that begin a directive.
pub(super) const DIRECTIVES: &[&str] = &[
    "decl",
    "type",
    "input",
    "output",
    "printsize",
    "limitsize",
    "comp",
    "init",
    "pragma",
    "functor",
    "plan",
    "strict",
    "override",
    "number_type",
    "symbol_type",
    "lattice",
    "include",
    "once",
];

/// Signs, longest first.
pub(super) const SIGNS: &[&str] = &[
    ":-", "<:", "<=", ">=", "!=", "->", "::", "(", ")", "[", "]", "{", "}", ",", ";", ":", ".", "=", "<", ">", "!",
    "+", "-", "*", "/", "%", "^", "|", "$", "@",
];

impl Token {
    /// The word as messages show it.
    pub fn shown(&self) -> String {
        match self {
            Token::Name(name) => format!("'{name}'"),
            Token::Wildcard => "'_'".to_owned(),
            Token::Directive(name) => format!("'.{name}'"),
            Token::Text(_) => "a string".to_owned(),
            Token::Integer(_) | Token::Unsigned(_) | Token::Float(_) => "a number".to_owned(),
            Token::Sign(sign) => format!("'{sign}'"),
            Token::End => "the end of the program".to_owned(),
        }
    }
}
