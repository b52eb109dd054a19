//! Patterns over time: what follows what, and how many events a part of it looks at.

/// A regular expression over elements.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Pattern {
    /// One element, by number.
    Element(usize),
    /// One after another.
    Sequence(Vec<Pattern>),
    /// Any one of these.
    Alternatives(Vec<Pattern>),
    /// At least so often, at most so often.
    Repeat(Box<Pattern>, usize, Option<usize>),
}

/// How many events an element looks at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Takes {
    /// The one event of an instant.
    Event,
    /// An instant of which some event meets the condition.
    Some,
    /// An instant of which every event does.
    All,
    /// An instant of which no event does.
    None,
}

/// Whether matches overlap.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Overlap {
    /// Every event may begin one.
    Allowed,
    /// One begins when none is in progress.
    Forbidden,
}

/// What several events of a group at one time are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Simultaneous {
    /// One instant without order.
    Instant,
    /// A sequence, in order of arrival.
    Arrival,
}

impl Pattern {
    /// The expression, no or one time.
    pub fn optional(self) -> Pattern {
        Pattern::Repeat(Box::new(self), 0, Some(1))
    }

    /// The expression any number of times.
    pub fn star(self) -> Pattern {
        Pattern::Repeat(Box::new(self), 0, None)
    }

    /// The expression at least once.
    pub fn plus(self) -> Pattern {
        Pattern::Repeat(Box::new(self), 1, None)
    }

    /// Occurrences of elements, repetitions written out; saturating.
    pub fn n_occurrences(&self) -> usize {
        let sum = |parts: &[Pattern]| parts.iter().fold(0usize, |sum, part| sum.saturating_add(part.n_occurrences()));
        match self {
            Pattern::Element(_) => 1,
            Pattern::Sequence(parts) | Pattern::Alternatives(parts) => sum(parts),
            Pattern::Repeat(part, min, max) => part.n_occurrences().saturating_mul(max.unwrap_or((*min).max(1))),
        }
    }

    /// Whether no event at all is a match.
    pub fn accepts_nothing_at_all(&self) -> bool {
        match self {
            Pattern::Element(_) => false,
            Pattern::Sequence(parts) => parts.iter().all(Pattern::accepts_nothing_at_all),
            Pattern::Alternatives(parts) => parts.iter().any(Pattern::accepts_nothing_at_all),
            Pattern::Repeat(part, min, _) => *min == 0 || part.accepts_nothing_at_all(),
        }
    }
}
