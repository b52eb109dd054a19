//! Bodies as alternatives of conjunctions: `;` and `!` over groups are multiplied out.

use anabranch_engine::Error;

use crate::ast::{Argument, Atom, Comparison, Formula, Span};

/// Alternatives of one rule, at most: groups of alternatives multiply.
const ALTERNATIVES_MAX: usize = 1_000;
/// Literals of one alternative, at most: each is a step of a plan, and plans are walked by
/// recursion.
const LITERALS_MAX: usize = 100;

/// A literal of a conjunction.
#[derive(Clone, Copy)]
pub(super) enum Part<'a> {
    Atom(&'a Atom),
    NotAtom(&'a Atom),
    Constraint { comparison: Comparison, left: &'a Argument, right: &'a Argument, at: Span },
}

/// The conjunctions of which one has to hold.
pub(super) fn alternatives(body: &Formula, at: Span) -> Result<Vec<Vec<Part<'_>>>, Error> {
    let all = expand(body, false).ok_or_else(|| {
        Error::invalid(format!("the rule has more than {ALTERNATIVES_MAX} alternatives"))
            .at(at.start)
            .with_hint("Define relations for its groups of alternatives.")
    })?;
    match all.iter().any(|conjunction| conjunction.len() > LITERALS_MAX) {
        true => Err(Error::invalid(format!("the rule has more than {LITERALS_MAX} literals"))
            .at(at.start)
            .with_hint("Define relations for parts of its body.")),
        false => Ok(all),
    }
}

fn expand(formula: &Formula, negated: bool) -> Option<Vec<Vec<Part<'_>>>> {
    match (formula, negated) {
        (Formula::Not(inner), _) => expand(inner, !negated),
        (Formula::Atom(atom), false) => Some(vec![vec![Part::Atom(atom)]]),
        (Formula::Atom(atom), true) => Some(vec![vec![Part::NotAtom(atom)]]),
        (Formula::Constraint(constraint), _) => {
            let comparison = match negated {
                true => constraint.comparison.negated(),
                false => constraint.comparison,
            };
            let (left, right, at) = (&constraint.left, &constraint.right, constraint.at);
            Some(vec![vec![Part::Constraint { comparison, left, right, at }]])
        }
        (Formula::And(parts), false) | (Formula::Or(parts), true) => all_of(parts, negated),
        (Formula::Or(parts), false) | (Formula::And(parts), true) => one_of(parts, negated),
    }
}

fn one_of(parts: &[Formula], negated: bool) -> Option<Vec<Vec<Part<'_>>>> {
    let mut all = vec![];
    for part in parts {
        all.extend(expand(part, negated)?);
    }
    (all.len() <= ALTERNATIVES_MAX).then_some(all)
}

fn all_of(parts: &[Formula], negated: bool) -> Option<Vec<Vec<Part<'_>>>> {
    let mut all = vec![vec![]];
    for part in parts {
        let next = expand(part, negated)?;
        if all.len() * next.len() > ALTERNATIVES_MAX {
            return None;
        }
        all = all
            .iter()
            .flat_map(|before: &Vec<Part<'_>>| next.iter().map(move |one| [&before[..], one].concat()))
            .collect();
    }
    Some(all)
}
