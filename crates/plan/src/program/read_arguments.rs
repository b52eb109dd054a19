//! What is given to the calls of a program's text.

use std::collections::BTreeMap;

use super::read_tokens::TokenKind;

/// What stands between the parentheses of a call.
#[derive(Default)]
pub(super) struct Arguments {
    pub(super) steps: Vec<usize>,
    pub(super) numbers: Vec<usize>,
    pub(super) texts: Vec<String>,
    /// Texts of lists.
    pub(super) list: Option<Vec<String>>,
    pub(super) options: BTreeMap<String, TokenKind>,
    /// Options that are lists of shards, which may have a name.
    pub(super) groups: BTreeMap<String, ShardList>,
}

/// Shards of a list, and its name.
pub(super) type ShardList = (Option<String>, Vec<usize>);

impl Arguments {
    /// Numbers and texts; none if there are others.
    pub(super) fn positional(&self) -> (&[usize], &[String]) {
        match self.steps.is_empty() && self.list.is_none() {
            true => (&self.numbers, &self.texts),
            false => (&[], &[]),
        }
    }
}

/// A token in words, for errors.
pub(super) fn shown(token: &TokenKind) -> String {
    match token {
        TokenKind::Name(name) => format!("\"{name}\""),
        TokenKind::Text(text) => format!("the text \"{text}\""),
        TokenKind::Number(number) => format!("\"{number}\""),
        TokenKind::Fraction(number) => format!("\"{number}\""),
        TokenKind::Mark(mark) => format!("\"{mark}\""),
        TokenKind::End => "the end of the line".to_owned(),
    }
}
