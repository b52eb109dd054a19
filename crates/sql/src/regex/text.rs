//! A text that is searched. Places are counted in characters; where all of these are ASCII, they
//! are the text's bytes, and nothing is copied.
//!
//! Law: a text is searched for one pattern, whose conditions on what stands before a place are
//! looked for once.

use std::borrow::Cow;
use std::cell::{Cell, RefCell};

use memchr::memmem::Finder;

/// The most that one search may cost, in look-ups of an automaton: some seconds.
const VISITS_MAX: u64 = 2_000_000_000;

pub(crate) struct SearchedText<'t> {
    text: &'t str,
    pub(super) characters: Characters,
    visits: Cell<u64>,
    /// For each condition on what stands before a place: its state in the program, and the places
    /// at which it holds, ascending.
    ends_before: RefCell<Vec<(usize, Vec<usize>)>>,
}

pub(super) enum Characters {
    Ascii,
    Any(Vec<char>),
}

/// What every match of a pattern begins with.
#[derive(Debug)]
pub(super) struct Prefix {
    characters: Vec<char>,
    finder: Finder<'static>,
}

impl Prefix {
    /// The prefix of these characters, unless there are none.
    pub(super) fn of(characters: Vec<char>) -> Option<Self> {
        let text: String = characters.iter().collect();
        let finder = Finder::new(&text).into_owned();
        (!text.is_empty()).then_some(Self { characters, finder })
    }
}

impl<'t> SearchedText<'t> {
    pub(crate) fn new(text: &'t str) -> Self {
        let characters = if text.is_ascii() { Characters::Ascii } else { Characters::Any(text.chars().collect()) };
        Self { text, characters, visits: Cell::new(0), ends_before: RefCell::default() }
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

    /// The first place, from one on, at which a prefix stands.
    pub(super) fn find(&self, prefix: &Prefix, from: usize) -> Option<usize> {
        match &self.characters {
            Characters::Ascii => Some(from + prefix.finder.find(self.text.as_bytes().get(from..)?)?),
            Characters::Any(characters) => {
                (from..characters.len()).find(|at| characters[*at..].starts_with(&prefix.characters))
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

    /// Whether what begins with a state of the program ends at a place; `all` finds all such
    /// places.
    pub(super) fn has_end(&self, state: usize, at: usize, all: impl FnOnce() -> Vec<usize>) -> bool {
        let has = |known: &[(usize, Vec<usize>)]| {
            let (_, ends) = known.iter().find(|(of, _)| *of == state)?;
            Some(ends.binary_search(&at).is_ok())
        };
        if let Some(has) = has(&self.ends_before.borrow()) {
            return has;
        }
        // (A condition within may be looked for meanwhile.)
        let ends = all();
        let has = ends.binary_search(&at).is_ok();
        self.ends_before.borrow_mut().push((state, ends));
        has
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
