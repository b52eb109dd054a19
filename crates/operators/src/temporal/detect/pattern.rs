//! Regular expressions over events, and the automata they compile to.
//!
//! Law: an automaton accepts a sequence of elements exactly when the expression does. Automata have
//! no empty arcs: a state is one occurrence of an element in the expression, and is entered by an
//! event (or instant) that the element accepts. So an event takes an instance along at most one arc
//! to each occurrence, and a match that can be read in two ways through empty choices counts once.
//!
//! Cost: O(n²) for n occurrences, once a query. Source: Glushkov, "The abstract theory of automata"
//! (1961); Trill's `Detect` builds arcs with epsilons instead.

use anabranch_spec::pattern::Pattern;

/// Most occurrences that an expression may have, repetitions written out.
pub const OCCURRENCES_MAX: usize = 10_000;

/// An automaton without empty arcs. State `i` is entered by its element; instances begin outside of
/// all states.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Automaton {
    /// By state: the element that enters it.
    pub element: Vec<usize>,
    /// By state: the states that may come next, in order.
    pub next: Vec<Vec<u32>>,
    /// By state: whether a match is complete.
    pub is_final: Vec<bool>,
    /// The states that may come first, in order.
    pub first: Vec<u32>,
    /// Whether a match can be arbitrarily long.
    pub is_unbounded: bool,
}

/// Where the matches of a part of the expression begin and end.
#[derive(Clone, Debug, Default)]
struct PatternPart {
    first: Vec<u32>,
    last: Vec<u32>,
    /// Whether the part accepts the empty sequence.
    is_nullable: bool,
}

impl Automaton {
    /// The automaton of an expression. The empty match is never one.
    ///
    /// # Panics
    /// If the expression has more than [`OCCURRENCES_MAX`] occurrences, or repeats at most fewer
    /// times than at least.
    pub fn new(pattern: &Pattern) -> Automaton {
        assert!(pattern.n_occurrences() <= OCCURRENCES_MAX, "a pattern has at most {OCCURRENCES_MAX} occurrences");
        let mut automaton = Automaton::default();
        let part = automaton.add(pattern);
        automaton.is_final = vec![false; automaton.element.len()];
        part.last.iter().for_each(|&state| automaton.is_final[state as usize] = true);
        automaton.first = part.first;
        automaton.next.iter_mut().for_each(|next| {
            next.sort_unstable();
            next.dedup();
        });
        automaton
    }

    fn add(&mut self, pattern: &Pattern) -> PatternPart {
        match pattern {
            Pattern::Element(element) => {
                let state = self.element.len() as u32;
                self.element.push(*element);
                self.next.push(Vec::new());
                PatternPart { first: vec![state], last: vec![state], is_nullable: false }
            }
            Pattern::Sequence(parts) => {
                let empty = PatternPart { is_nullable: true, ..PatternPart::default() };
                parts.iter().fold(empty, |before, part| {
                    let part = self.add(part);
                    self.follow(before, part)
                })
            }
            Pattern::Alternatives(parts) => parts.iter().fold(PatternPart::default(), |mut all, part| {
                let part = self.add(part);
                all.first.extend(part.first);
                all.last.extend(part.last);
                all.is_nullable |= part.is_nullable;
                all
            }),
            Pattern::Repeat(part, min, max) => self.add_repeated(part, *min, *max),
        }
    }

    /// The part once for each necessary time; optional times nest, so that each is entered only
    /// after the one before. The last time loops when there is no most.
    fn add_repeated(&mut self, part: &Pattern, min: usize, max: Option<usize>) -> PatternPart {
        assert!(max.is_none_or(|max| max >= min), "a repetition ends no earlier than it begins");
        let times: Vec<PatternPart> = (0..max.unwrap_or(min.max(1))).map(|_| self.add(part)).collect();
        if let (None, Some(last)) = (max, times.last()) {
            self.connect(&last.last, &last.first);
            self.is_unbounded = true;
        }
        let empty = PatternPart { is_nullable: true, ..PatternPart::default() };
        times.into_iter().enumerate().rev().fold(empty, |after, (time, one)| {
            let mut all = self.follow(one, after);
            all.is_nullable |= time >= min;
            all
        })
    }

    /// The one part after the other.
    fn follow(&mut self, before: PatternPart, after: PatternPart) -> PatternPart {
        self.connect(&before.last, &after.first);
        let mut first = before.first;
        let mut last = after.last;
        if before.is_nullable {
            first.extend(after.first);
        }
        if after.is_nullable {
            last.extend(before.last);
        }
        PatternPart { first, last, is_nullable: before.is_nullable && after.is_nullable }
    }

    fn connect(&mut self, from: &[u32], to: &[u32]) {
        from.iter().for_each(|&state| self.next[state as usize].extend(to));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether the automaton accepts these elements.
    fn accepts(automaton: &Automaton, elements: &[usize]) -> bool {
        let mut states: Option<Vec<u32>> = None;
        for element in elements {
            let candidates: Vec<u32> = match &states {
                None => automaton.first.clone(),
                Some(states) => states.iter().flat_map(|&state| automaton.next[state as usize].clone()).collect(),
            };
            states = Some(candidates.into_iter().filter(|&s| automaton.element[s as usize] == *element).collect());
        }
        states.is_some_and(|states| states.iter().any(|&state| automaton.is_final[state as usize]))
    }

    /// Whether the expression accepts these elements, by trying all ways to cut.
    fn model(pattern: &Pattern, elements: &[usize]) -> bool {
        let cuts = |left: &Pattern, right: &Pattern| {
            (0..=elements.len()).any(|cut| model(left, &elements[..cut]) && model(right, &elements[cut..]))
        };
        match pattern {
            Pattern::Element(element) => elements == [*element],
            Pattern::Sequence(parts) => match parts.split_first() {
                None => elements.is_empty(),
                Some((head, tail)) => cuts(head, &Pattern::Sequence(tail.to_vec())),
            },
            Pattern::Alternatives(parts) => parts.iter().any(|part| model(part, elements)),
            Pattern::Repeat(part, min, max) => {
                (*min == 0 && elements.is_empty())
                    || (*max != Some(0)
                        && (!elements.is_empty() || *min > 0)
                        && (usize::from(!elements.is_empty())..=elements.len()).any(|cut| {
                            let rest = Pattern::Repeat(
                                part.clone(),
                                min.saturating_sub(1),
                                max.map(|max| max.saturating_sub(1)),
                            );
                            model(part, &elements[..cut])
                                && if cut == 0 { true } else { model(&rest, &elements[cut..]) }
                        }))
            }
        }
    }

    fn random_pattern(state: &mut u64, depth: usize) -> Pattern {
        let mut random = |n: u64| {
            *state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (*state >> 33) % n
        };
        let choice = if depth == 0 { 0 } else { random(6) };
        let n = random(3);
        let max = random(3);
        match choice {
            0 | 1 => Pattern::Element(n as usize % 2),
            2 => Pattern::Sequence((0..n).map(|_| random_pattern(state, depth - 1)).collect()),
            3 => Pattern::Alternatives((0..=n).map(|_| random_pattern(state, depth - 1)).collect()),
            4 => random_pattern(state, depth - 1).star(),
            _ => Pattern::Repeat(
                Box::new(random_pattern(state, depth - 1)),
                n as usize,
                (max > 0).then_some((n + max) as usize),
            ),
        }
    }

    #[test]
    fn automata_accept_what_expressions_mean() {
        let mut state = 5;
        for _ in 0..300 {
            let pattern = random_pattern(&mut state, 3);
            if pattern.n_occurrences() > 30 {
                continue;
            }
            let automaton = Automaton::new(&pattern);
            for len in 1..5usize {
                for bits in 0..1usize << len {
                    let elements: Vec<usize> = (0..len).map(|i| bits >> i & 1).collect();
                    assert_eq!(accepts(&automaton, &elements), model(&pattern, &elements), "{pattern:?} {elements:?}");
                }
            }
            assert_eq!(model(&pattern, &[]), pattern.accepts_nothing_at_all(), "{pattern:?}");
        }
    }

    #[test]
    fn only_loops_are_unbounded() {
        let element = || Pattern::Element(0);
        assert!(Automaton::new(&element().plus()).is_unbounded);
        assert!(!Automaton::new(&Pattern::Repeat(Box::new(element()), 2, Some(9))).is_unbounded);
    }
}
