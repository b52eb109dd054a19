//! Deterministic automata of a program's fragments, made while they run.
//!
//! Law: an automaton answers what the program answers that follows all ways at once; it is that
//! program, with what it did for a set of states and a character written down. Cost: a look-up a
//! character; a step that is new costs what the program's costs. Parts with conditions on places
//! have none, for a step of theirs depends on more than the character. Source: Thompson,
//! "Programming Techniques: Regular expression search algorithm" (1968), whose machine is made
//! while it runs, and RE2, which keeps what it has made.

use std::collections::HashMap;

use super::program::{Fragment, RegexProgram, RegexSearch, StateId, Wanted, Ways};

/// Characters whose steps are kept; steps of others are taken anew.
const KEPT_CHARACTERS: usize = 128;

/// The most states of all automata of a program, half a kilobyte each.
const AUTOMATON_STATES_MAX: usize = 2_000;

/// A step that has not been taken.
const UNKNOWN: u32 = u32::MAX;

/// The automata of one program.
#[derive(Debug, Default)]
pub(super) struct Automata {
    list: Vec<Automaton>,
    n_states: usize,
    /// Whether a state more was wanted than there may be: the program is run as it is from there
    /// on.
    is_full: bool,
}

#[derive(Debug)]
struct Automaton {
    fragment: Fragment,
    /// Whether a match may begin at each place.
    begins_anywhere: bool,
    states: Vec<AutomatonState>,
    numbers: HashMap<Box<[StateId]>, u32>,
}

#[derive(Debug)]
struct AutomatonState {
    /// States of the program, in ascending order.
    of: Box<[StateId]>,
    is_end: bool,
    next: Box<[u32; KEPT_CHARACTERS]>,
}

impl Automata {
    /// Automata of which no run is answered.
    #[cfg(test)]
    pub(super) fn full() -> Self {
        Self { is_full: true, ..Self::default() }
    }

    /// The ends of matches, as `RegexProgram::run` tells them, and how many characters were read.
    /// These are given from the place on at which matches begin. `None` if there are too many
    /// states.
    pub(super) fn run(
        &mut self,
        program: &RegexProgram,
        search: RegexSearch,
        characters: impl Iterator<Item = char>,
    ) -> Option<(Vec<usize>, usize)> {
        if self.is_full {
            return None;
        }
        let ran = self.run_within(program, search, characters);
        self.is_full = ran.is_none();
        ran
    }

    fn run_within(
        &mut self,
        program: &RegexProgram,
        RegexSearch { fragment, beginning, wanted }: RegexSearch,
        characters: impl Iterator<Item = char>,
    ) -> Option<(Vec<usize>, usize)> {
        let (from, begins_anywhere) = (beginning.from(), beginning.is_anywhere());
        let is_same = |one: &Automaton| one.fragment == fragment && one.begins_anywhere == begins_anywhere;
        let at = match self.list.iter().position(is_same) {
            Some(at) => at,
            None => {
                let (states, numbers) = (vec![], HashMap::new());
                let mut automaton = Automaton { fragment, begins_anywhere, states, numbers };
                automaton.state(&program.begun(fragment), &mut self.n_states)?;
                self.list.push(automaton);
                self.list.len() - 1
            }
        };
        let automaton = &mut self.list[at];
        let mut ends = Vec::new();
        let mut last = None;
        let mut state = 0;
        let mut at = from;
        for c in characters {
            let here = &automaton.states[state];
            if here.is_end {
                match wanted {
                    Wanted::All => ends.push(at),
                    Wanted::First => return Some((vec![at], at - from)),
                    Wanted::Last => last = Some(at),
                }
            }
            if here.of.is_empty() && !begins_anywhere {
                ends.extend(last);
                return Some((ends, at - from));
            }
            state = match here.next.get(c as usize) {
                Some(next) if *next != UNKNOWN => *next as usize,
                _ => automaton.step(program, state, c, &mut self.n_states)?,
            };
            at += 1;
        }
        if automaton.states[state].is_end {
            last = Some(at);
        }
        ends.extend(last);
        Some((ends, at - from))
    }
}

impl Automaton {
    /// The number of the state that stands for these of the program.
    fn state(&mut self, of: &Ways, n_states: &mut usize) -> Option<u32> {
        // (In whatever order they were reached, they are one state.)
        let mut list: Box<[StateId]> = of.list().into();
        list.sort_unstable();
        if let Some(number) = self.numbers.get(&list) {
            return Some(*number);
        }
        if *n_states >= AUTOMATON_STATES_MAX {
            return None;
        }
        *n_states += 1;
        let number = self.states.len() as u32;
        let is_end = of.has(self.fragment.exit);
        self.numbers.insert(list.clone(), number);
        self.states.push(AutomatonState { of: list, is_end, next: Box::new([UNKNOWN; KEPT_CHARACTERS]) });
        Some(number)
    }

    /// Takes a step that is not kept yet, and keeps it.
    fn step(&mut self, program: &RegexProgram, from: usize, c: char, n_states: &mut usize) -> Option<usize> {
        let mut reached = program.stepped(&self.states[from].of, c, self.fragment);
        if self.begins_anywhere {
            program.begin(&mut reached, self.fragment);
        }
        let number = self.state(&reached, n_states)?;
        if let Some(next) = self.states[from].next.get_mut(c as usize) {
            *next = number;
        }
        Some(number as usize)
    }
}
