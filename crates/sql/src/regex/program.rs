//! Nondeterministic automata of patterns, and their runs.
//!
//! Each part of a tree has a fragment with one entry and one exit, so any part can be run alone. A
//! run follows all ways at once: its cost is (characters read) x (states), whatever the pattern.
//! What it did is kept in an [`automaton`](super::automaton) where it depends on characters alone.

use std::cell::RefCell;

use super::automaton::Automata;
use super::syntax::{Class, Guard, Node, RegexSide, Tree, is_word};
use super::text::{Characters, SearchedText};

/// The most states of a program.
const STATES_MAX: usize = 50_000;

/// What a state that is followed costs, beside a look-up in an automaton.
const FOLLOWED: usize = 10;

pub(super) type StateId = usize;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Fragment {
    pub(super) entry: StateId,
    pub(super) exit: StateId,
    /// Whether a condition on places may be within.
    pub(super) is_guarded: bool,
}

impl Fragment {
    fn plain(entry: StateId, exit: StateId) -> Self {
        Self { entry, exit, is_guarded: false }
    }
}

#[derive(Debug)]
enum ProgramState {
    /// Nothing leads on but what was added.
    Fork(Vec<StateId>),
    One(usize, StateId),
    Guarded(usize, StateId),
}

#[derive(Debug)]
enum Check {
    Plain(Guard),
    Look { side: RegexSide, wanted: bool, fragment: Fragment },
}

#[derive(Debug, Default)]
pub(super) struct RegexProgram {
    states: Vec<ProgramState>,
    classes: Vec<Class>,
    checks: Vec<Check>,
    fragments: Vec<Fragment>,
    automata: RefCell<Automata>,
}

/// Which of the ends of a part's matches are wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wanted {
    All,
    /// The first one, or whether there is a match.
    First,
    Last,
}

/// Where a match begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Beginning {
    /// At this place alone.
    At(usize),
    /// At this place or any behind it.
    Behind(usize),
}

impl Beginning {
    pub(super) fn from(self) -> usize {
        let (Self::At(from) | Self::Behind(from)) = self;
        from
    }

    pub(super) fn is_anywhere(self) -> bool {
        matches!(self, Self::Behind(_))
    }
}

/// What is looked for.
#[derive(Clone, Copy, Debug)]
pub(super) struct RegexSearch {
    pub(super) fragment: Fragment,
    pub(super) beginning: Beginning,
    pub(super) wanted: Wanted,
}

impl RegexProgram {
    /// The program of a tree, whose parts are told their fragments.
    pub(super) fn compile(tree: &mut Tree) -> Result<Self, String> {
        let mut program = Self::default();
        program.part(tree)?;
        Ok(program)
    }

    /// The program, which follows all ways from here on.
    #[cfg(test)]
    pub(super) fn without_automata(mut self) -> Self {
        self.automata = RefCell::new(Automata::full());
        self
    }

    /// What is left of a sequence from one of its parts on.
    pub(super) fn rest(&self, from: &Tree, exit: StateId) -> Fragment {
        Fragment { entry: self.fragment(from).entry, exit, is_guarded: !self.checks.is_empty() }
    }

    pub(super) fn fragment(&self, tree: &Tree) -> Fragment {
        self.fragments[tree.fragment]
    }

    fn add(&mut self, state: ProgramState) -> Result<StateId, String> {
        if self.states.len() >= STATES_MAX {
            return Err("invalid regular expression: regular expression is too complex".into());
        }
        self.states.push(state);
        Ok(self.states.len() - 1)
    }

    fn fork(&mut self) -> Result<StateId, String> {
        self.add(ProgramState::Fork(vec![]))
    }

    fn lead(&mut self, from: StateId, to: StateId) {
        if let ProgramState::Fork(ways) = &mut self.states[from] {
            ways.push(to);
        }
    }

    fn part(&mut self, tree: &mut Tree) -> Result<Fragment, String> {
        let n_checks = self.checks.len();
        let exit = self.fork()?;
        let fragment = match &mut tree.node {
            Node::Empty => self.passing(exit)?,
            Node::One(class) => {
                self.classes.push(class.clone());
                Fragment::plain(self.add(ProgramState::One(self.classes.len() - 1, exit))?, exit)
            }
            Node::Guard(guard) => {
                let check = match guard {
                    Guard::Look { side, wanted, body } => {
                        Check::Look { side: *side, wanted: *wanted, fragment: self.part(body)? }
                    }
                    plain => Check::Plain(plain.clone()),
                };
                self.checks.push(check);
                Fragment::plain(self.add(ProgramState::Guarded(self.checks.len() - 1, exit))?, exit)
            }
            Node::Concat(parts) => {
                let entry = self.fork()?;
                let mut last = entry;
                for part in parts {
                    let fragment = self.part(part)?;
                    self.lead(last, fragment.entry);
                    last = fragment.exit;
                }
                self.lead(last, exit);
                Fragment::plain(entry, exit)
            }
            Node::Alternate(parts) => {
                let entry = self.fork()?;
                for part in parts {
                    let fragment = self.part(part)?;
                    self.lead(entry, fragment.entry);
                    self.lead(fragment.exit, exit);
                }
                Fragment::plain(entry, exit)
            }
            Node::Repeat { body, min, max } => self.rounds(body, *min, *max, exit)?,
            Node::Group { body, .. } | Node::Reference { body, .. } => {
                let inner = self.part(body)?;
                self.lead(inner.exit, exit);
                Fragment::plain(inner.entry, exit)
            }
        };
        let fragment = Fragment { is_guarded: self.checks.len() > n_checks, ..fragment };
        tree.fragment = self.fragments.len();
        self.fragments.push(fragment);
        Ok(fragment)
    }

    fn passing(&mut self, exit: StateId) -> Result<Fragment, String> {
        Ok(Fragment::plain(self.add(ProgramState::Fork(vec![exit]))?, exit))
    }

    /// A body several times. The body's own fragment is the first round: it is what is run alone.
    fn rounds(&mut self, body: &mut Tree, min: u32, max: Option<u32>, exit: StateId) -> Result<Fragment, String> {
        let mut copy = body.clone();
        let first = self.part(body)?;
        if max == Some(0) {
            return self.passing(exit);
        }
        let entry = self.fork()?;
        self.lead(entry, first.entry);
        if min == 0 {
            self.lead(entry, exit);
        }
        let mut last = first;
        for round in 2..=min.max(max.unwrap_or(0)) {
            let next = self.part(&mut copy)?;
            self.lead(last.exit, next.entry);
            if round > min {
                self.lead(last.exit, exit);
            }
            last = next;
        }
        if max.is_none() {
            self.lead(last.exit, last.entry);
        }
        self.lead(last.exit, exit);
        Ok(Fragment::plain(entry, exit))
    }

    /// The ends, ascending and at most `stop`, of the matches of a fragment that begin at `from`.
    pub(super) fn ends(
        &self,
        fragment: Fragment,
        text: &SearchedText,
        from: usize,
        stop: usize,
        wanted: Wanted,
    ) -> Vec<usize> {
        self.run(RegexSearch { fragment, beginning: Beginning::At(from), wanted }, text, stop)
    }

    /// Whether a match of the fragment begins at or behind a place.
    pub(super) fn is_found(&self, fragment: Fragment, text: &SearchedText, from: usize) -> bool {
        let search = RegexSearch { fragment, beginning: Beginning::Behind(from), wanted: Wanted::First };
        !self.run(search, text, text.len()).is_empty()
    }

    fn run(&self, search: RegexSearch, text: &SearchedText, stop: usize) -> Vec<usize> {
        if !search.fragment.is_guarded {
            let from = search.beginning.from();
            if from > stop {
                return vec![];
            }
            let mut automata = self.automata.borrow_mut();
            let ran = match &text.characters {
                Characters::Ascii => {
                    let characters = text.text().as_bytes()[from..stop].iter().map(|byte| char::from(*byte));
                    automata.run(self, search, characters)
                }
                Characters::Any(characters) => automata.run(self, search, characters[from..stop].iter().copied()),
            };
            if let Some((ends, n_read)) = ran {
                text.visit(n_read + 1);
                return ends;
            }
        }
        self.follow(search, text, stop)
    }

    /// Follows all ways at once.
    fn follow(
        &self,
        RegexSearch { fragment, beginning, wanted }: RegexSearch,
        text: &SearchedText,
        stop: usize,
    ) -> Vec<usize> {
        let (mut active, mut next) = (Ways::none(self), Ways::none(self));
        let mut ends = Vec::new();
        let (from, begins_anywhere) = (beginning.from(), beginning.is_anywhere());
        for at in from..=stop {
            if begins_anywhere || at == from {
                self.enter(&mut active, fragment.entry, fragment.exit, &|check| self.holds(check, text, at));
            }
            if active.has(fragment.exit) {
                if wanted == Wanted::Last {
                    ends.clear();
                }
                ends.push(at);
                if wanted == Wanted::First {
                    break;
                }
            }
            if at == stop || (active.list.is_empty() && !begins_anywhere) || text.is_spent() {
                break;
            }
            text.visit(FOLLOWED * (active.list.len() + 1));
            let Some(c) = text.get(at) else { break };
            self.step(&active.list, c, &mut next, fragment.exit, &|check| self.holds(check, text, at + 1));
            active.clear();
            std::mem::swap(&mut active, &mut next);
        }
        ends
    }

    /// Adds what a character leads to from these states.
    fn step(&self, from: &[StateId], c: char, next: &mut Ways, exit: StateId, holds: &dyn Fn(&Check) -> bool) {
        for state in from {
            if let ProgramState::One(class, to) = &self.states[*state]
                && self.classes[*class].has(c)
            {
                self.enter(next, *to, exit, holds);
            }
        }
    }

    /// Adds a state and all that it leads to without a character. The exit leads nowhere: what
    /// follows is another part's.
    fn enter(&self, active: &mut Ways, state: StateId, exit: StateId, holds: &dyn Fn(&Check) -> bool) {
        active.open.push(state);
        while let Some(state) = active.open.pop() {
            if std::mem::replace(&mut active.is_in[state], true) {
                continue;
            }
            active.list.push(state);
            match &self.states[state] {
                ProgramState::Fork(ways) if state != exit => active.open.extend(ways.iter().rev()),
                ProgramState::Guarded(check, to) if holds(&self.checks[*check]) => active.open.push(*to),
                _ => {}
            }
        }
    }

    /// The states in which a program without conditions begins.
    pub(super) fn begun(&self, fragment: Fragment) -> Ways {
        let mut ways = Ways::none(self);
        self.begin(&mut ways, fragment);
        ways
    }

    /// Adds those to states that are there.
    pub(super) fn begin(&self, ways: &mut Ways, fragment: Fragment) {
        self.enter(ways, fragment.entry, fragment.exit, &|_| false);
    }

    /// The states to which a character leads in a program without conditions.
    pub(super) fn stepped(&self, from: &[StateId], c: char, fragment: Fragment) -> Ways {
        let mut ways = Ways::none(self);
        self.step(from, c, &mut ways, fragment.exit, &|_| false);
        ways
    }

    fn holds(&self, check: &Check, text: &SearchedText, at: usize) -> bool {
        let before = at.checked_sub(1).and_then(|before| text.get(before));
        let behind = text.get(at);
        let (word_before, word_behind) = (before.is_some_and(is_word), behind.is_some_and(is_word));
        match check {
            Check::Plain(guard) => match guard {
                Guard::TextStart => before.is_none(),
                Guard::TextEnd => behind.is_none(),
                Guard::LineStart => before.is_none_or(|c| c == '\n'),
                Guard::LineEnd => behind.is_none_or(|c| c == '\n'),
                Guard::WordStart => !word_before && word_behind,
                Guard::WordEnd => word_before && !word_behind,
                Guard::WordEdge => word_before != word_behind,
                Guard::NotWordEdge => word_before == word_behind,
                Guard::Look { .. } => false,
            },
            Check::Look { side: RegexSide::Ahead, wanted, fragment } => {
                *wanted != self.ends(*fragment, text, at, text.len(), Wanted::First).is_empty()
            }
            Check::Look { side: RegexSide::Behind, wanted, fragment } => {
                let search = RegexSearch { fragment: *fragment, beginning: Beginning::Behind(0), wanted: Wanted::All };
                *wanted == text.has_end(fragment.entry, at, || self.run(search, text, text.len()))
            }
        }
    }
}

/// The states that a run is in.
pub(super) struct Ways {
    is_in: Vec<bool>,
    list: Vec<StateId>,
    /// Ways still to be followed; empty between calls.
    open: Vec<StateId>,
}

impl Ways {
    fn none(program: &RegexProgram) -> Self {
        Self { is_in: vec![false; program.states.len()], list: vec![], open: vec![] }
    }

    pub(super) fn has(&self, state: StateId) -> bool {
        self.is_in[state]
    }

    /// The states, in the order in which they were reached.
    pub(super) fn list(&self) -> &[StateId] {
        &self.list
    }

    fn clear(&mut self) {
        self.list.iter().for_each(|state| self.is_in[*state] = false);
        self.list.clear();
    }
}
