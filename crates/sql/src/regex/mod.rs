//! Regular expressions as PostgreSQL has them.
//!
//! Why not a library: PostgreSQL finds the longest (or, where the first quantifier says so, the
//! shortest) of the matches that begin leftmost, and divides it among groups by rules of its own
//! (its manual, section 9.7.3.5). Libraries report the first match in the order of alternatives:
//! `'ab' ~ 'a|ab'` is the same for both, `substring('ab' from 'a|ab')` is not.
//!
//! Reading order: [`text`], [`syntax`], [`parse`], [`program`] (which characters match),
//! [`automaton`] (the same, quickly), [`dissect`] (which groups matched what). Cost: a test reads
//! each character once, with all states of the pattern at once; a text without what every match
//! begins with is passed over.

mod automaton;
mod dissect;
mod parse;
mod program;
mod syntax;
#[cfg(test)]
mod tests;
mod text;

use dissect::{Dissection, Groups};
use program::{RegexProgram, Wanted};
pub(crate) use syntax::is_alphanumeric;
use syntax::{Preference, Tree};
use text::Prefix;
pub(crate) use text::SearchedText;

/// How a pattern is read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Flags {
    pub(crate) ignores_case: bool,
    /// Blanks and remarks in the pattern mean nothing.
    pub(crate) is_expanded: bool,
    /// `.` and `[^..]` match no line break.
    pub(crate) stops_at_lines: bool,
    /// `^` and `$` match at line breaks.
    pub(crate) anchors_at_lines: bool,
    /// The pattern is a text without signs.
    pub(crate) is_literal: bool,
}

impl Flags {
    /// Takes in a letter; false if it is none.
    fn set(&mut self, letter: char) -> bool {
        match letter {
            'c' => self.ignores_case = false,
            'i' => self.ignores_case = true,
            'm' | 'n' => (self.stops_at_lines, self.anchors_at_lines) = (true, true),
            'p' => (self.stops_at_lines, self.anchors_at_lines) = (true, false),
            's' => (self.stops_at_lines, self.anchors_at_lines) = (false, false),
            'w' => (self.stops_at_lines, self.anchors_at_lines) = (false, true),
            't' => self.is_expanded = false,
            'x' => self.is_expanded = true,
            'q' => self.is_literal = true,
            _ => return false,
        }
        true
    }

    /// The flags of a text such as `gi`, and whether `g` is among them.
    pub(crate) fn read(text: &str) -> Result<(Self, bool), String> {
        let mut flags = Self::default();
        let mut is_global = false;
        for letter in text.chars() {
            match letter {
                'g' => is_global = true,
                'b' | 'e' => {
                    return Err(format!(
                        "regular expression option \"{letter}\" is not supported: write the pattern as an advanced regular expression"
                    ));
                }
                letter if flags.set(letter) => {}
                letter => return Err(format!("invalid regular expression option: \"{letter}\"")),
            }
        }
        Ok((flags, is_global))
    }
}

/// A pattern, ready to be matched.
#[derive(Debug)]
pub(crate) struct Regex {
    tree: Tree,
    program: RegexProgram,
    n_groups: usize,
    flags: Flags,
    prefix: Option<Prefix>,
}

/// Beginnings of matches that lead nowhere, after which the rest of the text is searched for any
/// match at all: the search for one reads each character once.
const FAILED_STARTS_MAX: usize = 8;

/// Where a pattern matched. Places are counted in characters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RegexMatch {
    /// Start and end of the match, then of each group; `None` where a group took no part.
    pub(crate) groups: Groups,
}

impl RegexMatch {
    pub(crate) fn start(&self) -> usize {
        self.whole().0
    }

    pub(crate) fn end(&self) -> usize {
        self.whole().1
    }

    fn whole(&self) -> (usize, usize) {
        self.groups[0].expect("a match has a start and an end")
    }
}

impl Regex {
    /// # Errors
    /// Why the pattern is none, in PostgreSQL's words.
    pub(crate) fn new(pattern: &str, flags: Flags) -> Result<Self, String> {
        let (mut tree, n_groups, flags) = parse::parse(pattern, flags)?;
        // (PostgreSQL divides such a match by ways that these rules do not tell.)
        if tree.has_reference && tree.prefers == Some(Preference::Shortest) {
            return Err("a back reference in a regular expression that prefers the shortest match is not supported: begin with a greedy quantifier".into());
        }
        let program = RegexProgram::compile(&mut tree)?;
        let mut prefix = Vec::new();
        tree.begins_with(&mut prefix);
        Ok(Self { tree, program, n_groups, flags, prefix: Prefix::of(prefix) })
    }

    /// How many groups it has.
    pub(crate) fn n_groups(&self) -> usize {
        self.n_groups
    }

    /// Whether it matches somewhere.
    ///
    /// # Errors
    /// If that takes too long.
    pub(crate) fn is_match(&self, text: &SearchedText) -> Result<bool, String> {
        if self.tree.has_reference {
            return Ok(self.find(text, 0)?.is_some());
        }
        text.begin();
        let Some(start) = self.candidate(text, 0) else { return Ok(false) };
        let is_found = self.program.is_found(self.program.fragment(&self.tree), text, start);
        if text.is_spent() { Err(too_long()) } else { Ok(is_found) }
    }

    /// The first place, from one on, at which the characters stand that every match begins with.
    fn candidate(&self, text: &SearchedText, from: usize) -> Option<usize> {
        match &self.prefix {
            Some(prefix) => text.find(prefix, from),
            None => (from <= text.len()).then_some(from),
        }
    }

    /// The first match that begins at or behind a place.
    ///
    /// # Errors
    /// If that takes too long.
    pub(crate) fn find(&self, text: &SearchedText, from: usize) -> Result<Option<RegexMatch>, String> {
        text.begin();
        let fragment = self.program.fragment(&self.tree);
        let prefers_shortest = self.tree.prefers == Some(Preference::Shortest);
        let preferred = if prefers_shortest { Wanted::First } else { Wanted::Last };
        // (Where there is a prefix, few places are left to be tried.)
        let mut until_search = if self.prefix.is_none() { 0 } else { FAILED_STARTS_MAX };
        let mut next = from;
        while let Some(start) = self.candidate(text, next) {
            if until_search == 0 && !self.program.is_found(fragment, text, start) {
                break;
            }
            until_search = until_search.wrapping_sub(1);
            next = start + 1;
            let ends = self.program.ends(fragment, text, start, text.len(), preferred);
            let mut found = self.divided(text, start, &ends)?;
            // (Another end than the preferred one is that of the match if a group is to be met
            // again.)
            if found.is_none() && !ends.is_empty() {
                let mut ends = self.program.ends(fragment, text, start, text.len(), Wanted::All);
                if !prefers_shortest {
                    ends.reverse();
                }
                found = self.divided(text, start, &ends)?;
            }
            if found.is_some() {
                return Ok(found);
            }
        }
        if text.is_spent() { Err(too_long()) } else { Ok(None) }
    }

    /// The match from a place to the first of these ends up to which its groups can be divided.
    fn divided(&self, text: &SearchedText, start: usize, ends: &[usize]) -> Result<Option<RegexMatch>, String> {
        for end in ends {
            let groups = vec![None; self.n_groups + 1];
            let mut dissection =
                Dissection { program: &self.program, text, ignores_case: self.flags.ignores_case, groups };
            if dissection.matches(&self.tree, start, *end) {
                let mut groups = dissection.groups;
                groups[0] = Some((start, *end));
                return Ok(Some(RegexMatch { groups }));
            }
            if text.is_spent() {
                return Err(too_long());
            }
        }
        Ok(None)
    }
}

fn too_long() -> String {
    "the regular expression takes too long on this text: make its repetitions less nested, or the text shorter".into()
}
