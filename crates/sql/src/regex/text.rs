//! A text that is searched. Places are counted in characters; where all of these are ASCII, they are
//! the text's bytes, and nothing is copied.

use std::borrow::Cow;
use std::cell::Cell;

/// The most states that one search may visit: some seconds.
const VISITS_MAX: u64 = 2_000_000_000;

pub(crate) struct SearchedText<'t> {
    text: &'t str,
    pub(super) characters: Characters,
    visits: Cell<u64>,
}

pub(super) enum Characters {
    Ascii,
    Any(Vec<char>),
}

impl<'t> SearchedText<'t> {
    pub(crate) fn new(text: &'t str) -> Self {
        let characters = if text.is_ascii() { Characters::Ascii } else { Characters::Any(text.chars().collect()) };
        Self { text, characters, visits: Cell::new(0) }
    }

    /// The text as it was given.
    pub(super) fn text(&self) -> &'t str {
        self.text
    }

    /// How many characters there are.
    pub(crate) fn len(&self) -> usize {
        match &self.characters {
            Characters::Ascii => self.text.len(),
            Characters::Any(characters) => characters.len(),
        }
    }

    /// The character at a place, if one is there.
    pub(super) fn get(&self, at: usize) -> Option<char> {
        match &self.characters {
            Characters::Ascii => self.text.as_bytes().get(at).map(|byte| char::from(*byte)),
            Characters::Any(characters) => characters.get(at).copied(),
        }
    }

    /// The first place, from one on, at which a text begins that is not empty.
    pub(super) fn find(&self, wanted: &str, from: usize) -> Option<usize> {
        match &self.characters {
            Characters::Ascii => Some(from + self.text.get(from..)?.find(wanted)?),
            Characters::Any(characters) => {
                let begins = |at: &usize| {
                    let mut here = characters[*at..].iter();
                    wanted.chars().all(|c| here.next() == Some(&c))
                };
                (from..characters.len()).find(begins)
            }
        }
    }

    /// The characters from one place to another.
    pub(crate) fn part(&self, start: usize, end: usize) -> Cow<'t, str> {
        match &self.characters {
            Characters::Ascii => Cow::Borrowed(&self.text[start..end]),
            Characters::Any(characters) => Cow::Owned(characters[start..end].iter().collect()),
        }
    }

    /// Begins a search, whose steps are counted.
    pub(super) fn begin(&self) {
        self.visits.set(0);
    }

    pub(super) fn visit(&self, n_states: usize) {
        self.visits.set(self.visits.get() + n_states as u64);
    }

    /// Whether the search has taken more steps than it may.
    pub(super) fn is_spent(&self) -> bool {
        self.visits.get() > VISITS_MAX
    }
}
